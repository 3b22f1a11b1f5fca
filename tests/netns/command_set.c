/* SPDX-License-Identifier: BSD-2-Clause */
/* napier set: what it changes, keeps for later and refuses. */
#include "command_rig.h"

static void sets_keep(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view;

	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 poller=thread weight=16", rig->base),
			 0);
	assert_string_equal(p.out,
			    "p1: kept, as there is no such port now: napier show lists them\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0/9 weight=16", rig->base), 0);
	assert_string_equal(p.out, "p0/9: kept, as there is no such queue now\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s default poller=thread", rig->base), 0);
	assert_string_equal(p.out, "default poller thread\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 weight=16 cpu=0", rig->base), 0);
	assert_string_equal(p.out, "p0/0 weight 16, cpu 0\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 idle_suspend=9", rig->base), 0);
	assert_string_equal(p.out, "p0/0 idle_suspend 9 us kept for busy-poll\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 class=fifo priority=4", rig->base),
			 0);
	assert_string_equal(
		p.out, "p0/0 class kept for its thread (poller softirq has none of its own)\n");

	assert_int_equal(napier(rig, &p, "port add --run-dir %s %s", rig->base, rig->spec[1]), 0);
	assert_memory_equal(p.out, "p1: packet:in1, ", 16);
	view = show_json(rig, " p1");
	assert_string_equal(text(find(view, "napis", "port", "p1"), "poller"), "thread");
	assert_int_equal(number(find(view, "napis", "port", "p1"), "weight"), 16);
	json_decref(view);
	assert_int_equal(netns_cross(&rig->links, 0, 500, 60), 500);
	assert_int_equal(napier(rig, &p, "port remove --run-dir %s p1", rig->base), 0);
	view = show_json(rig, "");
	assert_null(find(view, "ports", "name", "p1"));
	json_decref(view);

	assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 0);
	process_end(&engine);
	rig->engine = 0;
	assert_int_equal(engine.status, 0);
	assert_true(notified(rig, "STOPPING=1", 0));
}

/* The threads of every poller, placed live; kept for those that are not there; all or none. */
static void places_runners(void **state)
{
	static const struct {
		const char *arguments;
		int status;
		const char *says;
	} cases[] = {
		{"irq/0 cpus=0", 1, "irq/0: cpus: it is the thread of CPU 0; move NAPIs with cpu="},
		{"irq/1000 nice=1", 1, "irq/1000: not an engine CPU; those are 0"},
		{"kworker cpus=1000", 1,
		 "cpus: CPU 1000 cannot be used: this process may run on CPUs 0"},
		{"irq/0 weight=3", 2,
		 "unknown key \"weight\": the keys of a thread are cpus, class, nice, priority"},
		{"kworker/1 nice=1", 2,
		 "\"kworker/1\": the engine's threads are irq/N, ksoftirqd/N and busy/N, N being "
		 "the CPU, and kworker, all of them"},
		{"busy nice=1", 2, "\"busy\": the engine's threads are irq/N"},
	};
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;

	engine_start(rig, &engine, "run --cpus 0 --run-dir %s %s %s", rig->base, rig->spec[0],
		     rig->spec[1]);
	assert_int_equal(
		napier(rig, &p, "set --run-dir %s irq/0 class=fifo priority=33", rig->base), 0);
	assert_memory_equal(p.out, "irq/0 class fifo priority 33, thread ", 37);
	assert_int_equal(napier(rig, &p, "set --run-dir %s ksoftirqd/0 nice=7", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s busy/0 nice=3", rig->base), 0);
	assert_string_equal(p.out, "busy/0: kept, as there is no such thread now\n");
	assert_int_equal(
		napier(rig, &p, "set --run-dir %s p0 poller=busy-poll idle_suspend=9", rig->base),
		0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 poller=workqueue", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s kworker nice=4 cpus=0", rig->base), 0);
	assert_non_null(strstr(p.out, "kworker/1 class fair nice 4, cpus 0, thread "));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			napier(rig, &p, "set --run-dir %s %s", rig->base, cases[i].arguments),
			cases[i].status);
		if (!strstr(p.err, cases[i].says))
			fail_msg("%s: %s", cases[i].arguments, p.err);
	}
	view = show_json(rig, "");
	o = find(view, "runners", "name", "irq/0");
	assert_int_equal(number(o, "priority"), 33);
	assert_int_equal(number(json_object_get(o, "asked"), "priority"), 33);
	o = find(view, "runners", "name", "ksoftirqd/0");
	assert_int_equal(number(o, "nice"), 7);
	o = find(view, "runners", "name", "busy/0");
	assert_int_equal(number(o, "nice"), 3);
	assert_int_equal(number(json_object_get(o, "asked"), "nice"), 3);
	o = find(view, "runners", "name", "kworker/0");
	assert_int_equal(number(o, "nice"), 4);
	assert_string_equal(text(json_object_get(o, "asked"), "cpus"), "0");
	json_decref(view);
	engine_stop(rig, &engine);
}

/* Asked for at the start, live, as the default; shown with what it chose; ended by another. */
static void chooses_pollers(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;

	engine_start(rig, &engine, "run --poller auto --run-dir %s %s", rig->base, rig->spec[0]);
	view = show_json(rig, "");
	o = find(view, "napis", "port", "p0");
	assert_string_equal(text(o, "poller_asked"), "auto");
	assert_string_equal(text(o, "poller"), "softirq");
	assert_string_equal(text(o, "why"), "nothing measured yet");
	assert_string_equal(text(json_object_get(view, "engine"), "default_poller"), "auto");
	json_decref(view);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 poller=thread", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 poller=auto", rig->base), 0);
	assert_string_equal(p.out, "p0/0 poller auto, thread now\n");
	assert_int_equal(napier(rig, &p, "show --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "auto: thread"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 poller=softirq", rig->base), 0);
	view = show_json(rig, "");
	o = find(view, "napis", "port", "p0");
	assert_string_equal(text(o, "poller_asked"), "softirq");
	assert_null(json_object_get(o, "why"));
	json_decref(view);
	engine_stop(rig, &engine);
}

/* Of the engine and of its CPUs: from the file, then live, and each time what show says of it. */
static void sets_engine(void **state)
{
	static const char conf[] = "engine = { cpus = \"0-1\"; netdev_budget = 200;"
				   " deferral = \"looped:3\";"
				   " cpu = ( { cpu = 1; deferral = \"never\"; } ); };\n"
				   "ports = ( { port = \"mem:m\"; } );\n";
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;

	engine_start_file(rig, &engine, conf);
	view = show_json(rig, "");
	assert_int_equal(number(json_object_get(view, "engine"), "netdev_budget"), 200);
	o = json_object_get(view, "cpus");
	assert_string_equal(text(json_array_get(o, 0), "deferral"), "looped:3");
	assert_string_equal(text(json_array_get(o, 1), "deferral"), "never");
	json_decref(view);

	assert_int_equal(napier(rig, &p,
				"set --run-dir %s engine netdev_budget=9 netdev_budget_usecs=50 "
				"dev_weight=8 deferral=ksoftirqd-running",
				rig->base),
			 0);
	assert_string_equal(p.out, "engine dev_weight 8, netdev_budget 9, netdev_budget_usecs 50\n"
				   "cpu/0 deferral ksoftirqd-running\n"
				   "cpu/1 deferral ksoftirqd-running\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s cpu/1 deferral=looped", rig->base), 0);
	assert_string_equal(p.out, "cpu/1 deferral looped:2\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s engine cpus=1", rig->base), 0);
	assert_string_equal(p.out, "engine cpus 1 (away: 0)\n");
	view = show_json(rig, "");
	o = json_object_get(view, "cpus");
	assert_true(json_is_true(json_object_get(json_array_get(o, 0), "away")));
	assert_false(json_is_true(json_object_get(json_array_get(o, 1), "away")));
	assert_null(find(view, "runners", "name", "irq/0"));
	assert_int_equal(number(find(view, "napis", "port", "m"), "cpu"), 1);
	json_decref(view);
	assert_int_equal(napier(rig, &p, "show --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "0 away "));
	assert_int_equal(napier(rig, &p, "set --run-dir %s engine cpus=1-2", rig->base), 1);
	assert_non_null(strstr(p.err, "cpus: the engine was not started with CPU 2; those that can "
				      "be given are 0-1"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s engine cpus=", rig->base), 2);
	assert_string_equal(p.err, "napier: cpus=: the engine needs one CPU at least\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s engine cpus=any", rig->base), 0);
	assert_string_equal(p.out, "engine cpus 0-1\n");
	assert_int_equal(
		napier(rig, &p, "set --run-dir %s engine dev_weight=9 netdev_budget=0", rig->base),
		2);
	view = show_json(rig, "");
	o = json_object_get(view, "engine");
	assert_int_equal(number(o, "netdev_budget"), 9);
	assert_int_equal(number(o, "netdev_budget_usecs"), 50);
	assert_int_equal(number(o, "dev_weight"), 8);
	assert_int_equal(number(find(view, "napis", "port", "m"), "weight"), 8);
	o = json_object_get(view, "cpus");
	assert_string_equal(text(json_array_get(o, 0), "deferral"), "ksoftirqd-running");
	assert_string_equal(text(json_array_get(o, 1), "deferral"), "looped:2");
	json_decref(view);
	engine_stop(rig, &engine);
}

/* GRO: from the file and live, what was asked and what is in force. */
static void merges(void **state)
{
	static const char conf[] = "engine = { gro_normal_batch = 32; };\n"
				   "ports = ( { port = \"mem:m,name=m,peer=n\"; gro = \"on\"; },"
				   " { port = \"mem:n,name=n\"; } );\n";
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;

	engine_start_file(rig, &engine, conf);
	view = show_json(rig, "");
	assert_int_equal(number(json_object_get(view, "engine"), "gro_normal_batch"), 32);
	o = find(view, "napis", "port", "m");
	assert_string_equal(text(o, "gro_asked"), "on");
	assert_string_equal(text(o, "gro"), "tcp,udp");
	assert_int_equal(number(o, "merged"), 0);
	o = find(view, "napis", "port", "n");
	assert_string_equal(text(o, "gro_asked"), "auto");
	assert_string_equal(text(o, "gro"), "none"); /* m takes no super-packets */
	json_decref(view);
	assert_int_equal(napier(rig, &p, "show --run-dir %s m", rig->base), 0);
	assert_non_null(strstr(p.out, "PKTS/POLL  GRO "));
	assert_non_null(strstr(p.out, "m/0: gro on, merges tcp,udp, merged 0\n"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s m gro=off weight=32", rig->base), 0);
	assert_string_equal(p.out, "m/0 weight 32, gro off, merges none\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s m/0 gro=auto", rig->base), 0);
	assert_string_equal(p.out, "m/0 gro auto, merges none\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s m gro=yes", rig->base), 2);
	assert_non_null(strstr(p.err, "gro=yes: must be auto, on or off"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s backlog gro=on", rig->base), 1);
	assert_non_null(strstr(p.err, "backlog: nothing is received there that could be merged"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s engine gro_normal_batch=8", rig->base),
			 0);
	assert_string_equal(p.out, "engine gro_normal_batch 8\n");
	engine_stop(rig, &engine);
}

/* Steering: from the file and live, the backlogs as NAPIs, and what each CPU did. */
static void steers(void **state)
{
	static const char conf[] =
		"engine = { cpus = \"0-1\"; rps_sock_flow_entries = 256;"
		" symmetric_hash = true; backlog = { poller = \"thread\"; }; };\n"
		"ports = ( { port = \"mem:m,name=m,peer=n\"; rps_cpus = \"0-1\"; },"
		" { port = \"mem:n,name=n\"; } );\n";
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;

	engine_start_file(rig, &engine, conf);
	view = show_json(rig, "");
	o = json_object_get(view, "engine");
	assert_int_equal(number(o, "rps_sock_flow_entries"), 256);
	assert_int_equal(number(o, "netdev_max_backlog"), 1000);
	assert_string_equal(text(o, "symmetric_hash"), "on");
	assert_string_equal(text(find(view, "napis", "port", "m"), "rps_cpus"), "0-1");
	assert_string_equal(text(find(view, "napis", "port", "n"), "rps_cpus"), "none");
	assert_string_equal(text(find(view, "napis", "port", "backlog"), "poller"), "thread");
	assert_non_null(find(view, "runners", "name", "napi/backlog-1"));
	json_decref(view);

	assert_int_equal(
		napier(rig, &p, "set --run-dir %s m rps_cpus=1 rps_flow_cnt=64", rig->base), 0);
	assert_string_equal(p.out, "m/0 rps_cpus 1, rps_flow_cnt 64\n");
	assert_int_equal(napier(rig, &p, "set --run-dir %s m rps_cpus=1", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s backlog/1 poller=softirq", rig->base),
			 0);
	assert_non_null(strstr(p.out, "backlog/1 poller softirq (was thread)"));
	assert_int_equal(napier(rig, &p,
				"set --run-dir %s engine netdev_max_backlog=50 flow_limit=4096 "
				"rps_sock_flow_entries=0 symmetric_hash=off",
				rig->base),
			 0);
	assert_string_equal(p.out, "engine netdev_max_backlog 50, flow_limit 4096, "
				   "rps_sock_flow_entries 0, symmetric_hash off\n");
	assert_int_equal(napier(rig, &p, "show --run-dir %s --softnet", rig->base), 0);
	assert_non_null(strstr(p.out, "RECEIVED_RPS"));
	assert_int_equal(napier(rig, &p, "show --run-dir %s --softnet --json", rig->base), 0);
	o = json_loads(p.out, 0, NULL);
	assert_int_equal(json_array_size(o), 2);
	assert_int_equal(number(json_array_get(o, 1), "received_rps"), 0);
	assert_int_equal(number(json_array_get(o, 1), "backlog"), 0);
	json_decref(o);
	assert_int_equal(napier(rig, &p, "port --run-dir %s add mem:backlog", rig->base), 2);
	assert_non_null(strstr(p.err, "an engine CPU's backlog: give the port another name"));
	assert_int_equal(
		napier(rig, &p, "set --run-dir %s m rps_cpus=none rps_flow_cnt=0", rig->base), 0);
	assert_string_equal(p.out, "m/0 rps_cpus none, rps_flow_cnt 0\n");
	engine_stop(rig, &engine);
}

/* Exact words, exit status, and a running engine that does not mind. */
static void refuses_sets(void **state)
{
	static const struct {
		const char *arguments;
		int status;
		const char *says;
	} cases[] = {
		{"set p0 poller=napi", 2,
		 "unknown poller \"napi\": the pollers are softirq, thread, workqueue, busy-poll, "
		 "app, auto"},
		{"set p0 speed=9", 2,
		 "unknown key \"speed\": the keys are poller, weight, idle_suspend, cpu, cpus, "
		 "class, nice, priority, napi_defer_hard_irqs, gro, gro_flush_timeout, "
		 "irq_suspend_timeout, rps_cpus, "
		 "rps_flow_cnt"},
		{"set p0 netdev_budget=9", 2,
		 "netdev_budget is a key of engine, not of a port or queue"},
		{"port add mem:x tx_napi=yes", 2,
		 "tx_napi is an option in a port's text: add xdp:eth0,tx_napi=yes"},
		{"set p0 rps_cpus=0-", 2, "rps_cpus=0-: not a list of CPUs such as 0-3,8, or none"},
		{"set p0 rps_cpus=1000", 1, "rps_cpus: CPU 1000 is not an engine CPU; those are 0"},
		{"set p0 rps_flow_cnt=3", 2,
		 "rps_flow_cnt=3: must be a power of two, 1 to 1048576, or 0 for none"},
		{"set backlog cpu=0", 1,
		 "backlog: queue N is the backlog of engine CPU N, and is neither moved nor "
		 "steered: set rps_cpus for a port"},
		{"set engine flow_limit=3", 2,
		 "flow_limit=3: must be a power of two, 2 to 65536, or 0 for none"},
		{"set engine symmetric_hash=yes", 2, "symmetric_hash=yes: it is on or off"},
		{"set p0 poller", 2,
		 "\"poller\" is not KEY=VALUE: the keys are poller, weight, idle_suspend, cpu, "
		 "cpus, class, nice, priority, napi_defer_hard_irqs, gro, gro_flush_timeout, "
		 "irq_suspend_timeout, rps_cpus, "
		 "rps_flow_cnt"},
		{"set p0 gro_flush_timeout=2000000000", 2,
		 "gro_flush_timeout=2000000000: out of range 0..1000000000"},
		{"set p0 napi_defer_hard_irqs=-1", 2,
		 "napi_defer_hard_irqs=-1: out of range 0..1000000"},
		{"set p0", 2,
		 "set: give PORT[/QUEUE], default, engine, cpu/N or a thread, then KEY=VALUE…"},
		{"set cpu deferral=never", 2,
		 "\"cpu\": an engine CPU is written cpu/N, N being 0..1023, and all of them "
		 "engine"},
		{"set cpu/1024 deferral=never", 2,
		 "\"cpu/1024\": an engine CPU is written cpu/N, N being 0..1023, and all of them "
		 "engine"},
		{"set cpu/1000 deferral=never", 1, "cpu/1000: not an engine CPU; those are 0"},
		{"set engine netdev_budget=9 deferral=sometimes", 2,
		 "unknown deferral \"sometimes\": the policies are never, "
		 "restart-limit, looped:TICKS, ksoftirqd-running"},
		{"set engine", 2,
		 "set: give PORT[/QUEUE], default, engine, cpu/N or a thread, then KEY=VALUE…"},
		{"set p0 idle_suspend=10ms", 2,
		 "idle_suspend=10ms: not a number of us; it is 0..3600000000"},
		{"set p0 gro_flush_timeout=20us", 2,
		 "gro_flush_timeout=20us: not a number of ns; it is 0..1000000000"},
		{"set p0 weight=65", 2, "weight=65: out of range 1..64"},
		{"set p0 class=fifo", 2, "class=fifo needs priority=1..99"},
		{"set p0/64 weight=1", 2, "p0/64: queues are 0..63"},
		{"set p0/x weight=1", 2,
		 "\"p0/x\" is no port: a queue is written PORT/N, N being 0..63"},
		{"set p0 poller=thread weight=1 poller=softirq", 2,
		 "poller is there twice: give it one value"},
		{"set p0 weight=1 weight=1", 2, "weight is there twice: give it one value"},
		{"set engine netdev_budget=9 netdev_budget=8", 2,
		 "netdev_budget is there twice: give it one value"},
		{"set p0 nice=3 priority=3", 2,
		 "class=fair goes with nice, class=fifo with priority: they cannot be asked "
		 "together"},
		{"set p0 cpus=", 2, "cpus=: not a list of CPUs such as 0-3,8, or any"},
		{"set p0 cpus=0-1024", 2, "cpus=0-1024: out of range 0..1023"},
		{"port add mem:x weight=1 weight=2", 2, "weight is there twice: give it one value"},
		{"set p0 cpu=1000", 1, "cpu 1000: not an engine CPU; those are 0"},
		{"set p0 cpus=1000", 1,
		 "cpus: CPU 1000 cannot be used: this process may run on CPUs 0"},
		{"set default weight=1", 1, "the default has one key: poller"},
		{"show p7", 1, "no port or queue p7: the ports are p0"},
		{"show p0/7", 1, "no port or queue p0/7: the ports are p0"},
		{"show p0 p1", 2, "show: one PORT or PORT/QUEUE at a time"},
		{"show --softnet p0", 2, "show: --softnet is of the whole engine: leave p0 out"},
		{"show --fdb p0", 2, "show: --fdb is of the whole engine: leave p0 out"},
		{"show --fdb --softnet", 2, "show: --fdb, --names and --softnet: one at a time"},
		{"show -j --names", 2, "show: --names is lines, not JSON: leave --json out"},
		{"show --colour", 2, "unknown option --colour: see napier show --help"},
		{"show -xj", 2, "unknown option -x: see napier show --help"},
		{"show --name", 2, "--name needs a value: see napier show --help"},
		{"show --name other", 1,
		 "no engine named other is running (run directory %s/other); --name says which of "
		 "these: default"},
		{"stop --name ../x", 2, "name \"../x\": 1 to 31 letters, digits, '_', '-' or '.'"},
		{"port remove p7", 1, "no port p7: napier show lists them"},
		{"port", 2, "port: what to do: add KIND:TARGET or remove PORT"},
		{"port add", 2, "port add: KIND:TARGET, such as xdp:eth0, is missing"},
		{"port add packet:in0,name=p0", 1,
		 "port p0 is there already: give this one name=… after a comma"},
		{"port add mem:x pvid=1", 1, "port x: VLANs need vlan_filtering = true in handler"},
		{"start", 2,
		 "unknown command \"start\": the commands are run, show, set, rebalance, port, "
		 "stop, demo"},
	};
	struct command_rig *rig = *state;
	struct process engine, p;

	engine_start(rig, &engine, "run --cpus 0 --run-dir %s %s", rig->base, rig->spec[0]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *rest = strchrnul(cases[i].arguments, ' ');
		int command = (int)(rest - cases[i].arguments);
		char says[512], expected[600];

		snprintf(says, sizeof(says), cases[i].says, rig->base);
		snprintf(expected, sizeof(expected), "napier: %s", says);
		napier(rig, &p, "%.*s --run-dir %s%s", command, cases[i].arguments, rig->base,
		       rest);
		/* A list of CPUs may go on. */
		if (strncmp(p.err, expected, strlen(expected)))
			assert_string_equal(p.err, expected);
		assert_int_equal(p.status, cases[i].status);
		assert_string_equal(p.out, "");
		assert_ptr_equal(strchr(p.err, '\n'), p.err + strlen(p.err) - 1);
	}
	engine_stop(rig, &engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		command_test(chooses_pollers), command_test(places_runners),
		command_test(sets_keep),       command_test(sets_engine),
		command_test(merges),	       command_test(steers),
		command_test(refuses_sets),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

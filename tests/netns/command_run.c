/* SPDX-License-Identifier: BSD-2-Clause */
/* napier run: what it starts on, refuses and waits for, and how it ends. */
#include "command_rig.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void ignores_hangup_under_nohup(void **state)
{
	struct command_rig *rig = *state;
	struct process engine;

	signal(SIGHUP, SIG_IGN);
	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	signal(SIGHUP, SIG_DFL);
	kill(engine.pid, SIGHUP);
	assert_false(notified(rig, "STOPPING=1", 500));
	engine_stop(rig, &engine);

	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	engine_signal(rig, &engine, SIGHUP);
	assert_int_equal(engine.status, 0);
}

/* Does not start: one line, a status, and nothing left (command_rig_close looks). */
static void refuses_to_run(void **state)
{
	struct command_rig *rig = *state;
	const char *ns = rig->links.lab->namespace[rig->links.inner[0]].name;
	char file[64], truncated[64], empty[64], conf[64];
	struct {
		const char *arguments;
		int status;
		const char *says;
	} cases[] = {
		{"", 2, "no ports: name at least one, such as xdp:eth0"},
		{"eth0", 2, "port 'eth0': must be KIND:TARGET, such as xdp:eth0; kinds are "},
		{"dpdk:eth0", 2, "port 'dpdk:eth0': no kind 'dpdk'; kinds are "},
		{"--poller x packet:in0", 2,
		 "unknown poller \"x\": the pollers are softirq, thread, workqueue, busy-poll, "
		 "app, auto"},
		{"--handler hub packet:in0", 2,
		 "unknown handler \"hub\": the handlers are bridge, drop"},
		{"--frames 3 packet:in0", 2, "frames=3: out of range 64..4194304"},
		{"--cpus x packet:in0", 2, "cpus=x: not a list of CPUs such as 0-3,8, or any"},
		{"--cpus 1000 packet:in0", 1, "CPU 1000 cannot be used: this process may run on"},
		{"mem:a mem:a", 2, "port a is there twice: give one of them name=…"},
		{"packet:in0 -c /nowhere", 1, "/nowhere: No such file or directory"},
		{"packet:nope%d,netns=", 1, "interface 'nope%d' is not there (see: ip link"},
		{"xdp:nope%d,netns=", 1, NULL},
		{"packet:in0,netns=nowhere%d", 1, "network namespace 'nowhere%d': "},
		{"packet:in0,colour=red,netns=", 1, "packet:in0: unknown option 'colour=red'"},
		{"xdp:in0,ring=1000,netns=", 1, "xdp:in0: ring=1000: must be a power of two"},
		{"xdp:in0,queues=9,netns=", 1,
		 "xdp:in0: queues=9, but the interface has 1 receive"},
		{"pcap:/nowhere.pcap", 1, NULL},
		{"pcap:%s", 1, NULL}, /* filled in below */
	};
	static const char header[] =
		"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\1\0\0";
	struct process p;

	for (size_t i = 0; i + 1 < sizeof(cases) / sizeof(*cases); i++) {
		char arguments[512], says[512], netns[64] = "";

		snprintf(arguments, sizeof(arguments), cases[i].arguments, (int)getpid());
		if (strlen(arguments) > 6 && !strcmp(arguments + strlen(arguments) - 6, "netns="))
			snprintf(netns, sizeof(netns), "%s", ns);
		napier(rig, &p, "run --run-dir %s%s%s%s", rig->base, *arguments ? " " : "",
		       arguments, netns);
		assert_string_equal(p.out, "");
		assert_int_equal(p.status, cases[i].status);
		if (!*p.err || strchr(p.err, '\n') != p.err + strlen(p.err) - 1)
			fail_msg("run %s: not one line: %s", arguments, p.err);
		if (!cases[i].says)
			continue;
		snprintf(says, sizeof(says), cases[i].says, (int)getpid());
		if (!strstr(p.err, says))
			fail_msg("run %s: %s, not: %s", arguments, p.err, says);
	}

	/* Files that are not what they should be. */
	file_make(rig, "not-a-pcap", "hello, world, this is text\n", 27, file);
	file_make(rig, "empty", "", 0, empty);
	file_make(rig, "truncated", header, 10, truncated);
	file_make(rig, "conf", "ports = (\n{ prt = 1; } );\n", 26, conf);
	for (int i = 0; i < 3; i++) {
		const char *path = (const char *[]){file, empty, truncated}[i];

		assert_int_equal(napier(rig, &p, "run --run-dir %s pcap:%s", rig->base, path), 1);
		assert_non_null(strstr(p.err, path));
		assert_ptr_equal(strchr(p.err, '\n'), p.err + strlen(p.err) - 1);
	}
	assert_int_equal(napier(rig, &p, "run --run-dir %s -c %s", rig->base, conf), 1);
	assert_non_null(strstr(p.err, ":2: unknown key \"prt\": the keys are port, "));
	unlink(file);
	unlink(empty);
	unlink(truncated);
	unlink(conf);
}

/* What only the machine can say of it: still with its line. */
static void refuses_configured(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"engine = { cpus = \"0\";\ncpu = (\n{ cpu = 999; deferral = \"never\"; } ); };\n"
		 "ports = ( { port = \"mem:a\"; } );\n",
		 ":3: cpu/999: not an engine CPU; those are 0\n"},
		{"ports = (\n{ port = \"mem:a\"; },\n{ port = \"pcap:/nowhere.pcap\"; } );\n",
		 ":3: cannot read /nowhere.pcap: "},
		{"ports = (\n{ port = \"mem:a\"; rps_cpus = 999; } );\n",
		 ":2: rps_cpus: CPU 999 is not an engine CPU; those are "},
		/* A file's mistake is no misuse, whoever finds it. */
		{"ports = (\n{ port = \"mem:a\"; },\n{ port = \"mem:a\"; } );\n",
		 ":3: port a is there twice"},
	};
	struct command_rig *rig = *state;
	struct process p;
	char conf[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		file_make(rig, "conf", cases[i].text, strlen(cases[i].text), conf);
		assert_int_equal(napier(rig, &p, "run --run-dir %s -c %s", rig->base, conf), 1);
		if (!strstr(p.err, cases[i].says))
			fail_msg("%s: %s, not: %s", cases[i].text, p.err, cases[i].says);
		assert_ptr_equal(strchr(p.err, '\n'), p.err + strlen(p.err) - 1);
		unlink(conf);
	}
}

/* A second engine of the same name, and one of another name on the same interface. */
static void refuses_second(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	char says[256];

	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, "xdp", "", rig->spec[i]);
	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(napier(rig, &p, "run --run-dir %s mem:x", rig->base), 1);
	snprintf(says, sizeof(says),
		 "napier: an engine named default is running (pid %d): stop it (napier stop --name "
		 "default), or give this one another --name\n",
		 (int)engine.pid);
	assert_string_equal(p.err, says);
	assert_int_equal(napier(rig, &p, "run --run-dir %s --name two %s", rig->base, rig->spec[0]),
			 1);
	assert_non_null(strstr(p.err, "xdp:in0: the interface has an XDP program already"));
	assert_int_equal(netns_cross(&rig->links, 0, 1000, 60), 1000);
	engine_stop(rig, &engine);
}

/* After kill -9 the interfaces and the run directory are free for the next. */
static void survives_kill(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;

	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, "xdp", "", rig->spec[i]);
	for (int round = 0; round < 2; round++) {
		engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0],
			     rig->spec[1]);
		assert_int_equal(netns_cross(&rig->links, round, 1000, 60), 1000);
		engine_signal(rig, &engine, SIGKILL);
		assert_int_equal(napier(rig, &p, "show --run-dir %s", rig->base), 1);
		assert_memory_equal(p.err, "napier: no engine named default is running", 42);
		assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 1);
		assert_memory_equal(p.err, "napier: no engine named default is running", 42);
	}
	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(netns_cross(&rig->links, 0, 1000, 60), 1000);
	engine_stop(rig, &engine);
}

static void follows_links(void **state)
{
	struct command_rig *rig = *state;
	struct netlab *lab = rig->links.lab;
	unsigned ns = rig->links.inner[1];
	struct process engine, p;
	struct error err = {0};
	json_t *view;

	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 poller=thread", rig->base), 0);
	netlab_link_up(lab, ns, "in1", false, &err);
	state_wait(rig, "p1", "down");
	netlab_link_up(lab, ns, "in1", true, &err);
	state_wait(rig, "p1", "up");
	assert_int_equal(netlab_link_delete(lab, ns, "in1", &err), 0);
	state_wait(rig, "p1", "gone");
	assert_int_equal(netlab_veth_add(lab, rig->links.outer[1], "out1", ns, "in1", &err), 0);
	netlab_link_up(lab, rig->links.outer[1], "out1", true, &err);
	netlab_link_up(lab, ns, "in1", true, &err);
	state_wait(rig, "p1", "up");
	/* What was set before holds again. */
	view = show_json(rig, " p1/0");
	assert_string_equal(text(find(view, "napis", "port", "p1"), "poller"), "thread");
	json_decref(view);
	assert_int_equal(napier(rig, &p, "port remove --run-dir %s p1", rig->base), 0);
	engine_stop(rig, &engine);
	assert_non_null(strstr(engine.err, "port p1: in1 is back, opened again\n"));
}

/*
 * A port is removed as soon as anybody is heard, while the engine may still be telling of its
 * start: a thread sanitizer sees whether the two are apart.
 */
static void serves_at_once(void **state)
{
	struct timespec pause = {.tv_nsec = 1000000};
	struct command_rig *rig = *state;
	struct process engine, p;
	char arguments[1024];

	snprintf(arguments, sizeof(arguments), "run --run-dir %s %s %s", rig->base, rig->spec[0],
		 rig->spec[1]);
	process_start(rig, &engine, arguments);
	rig->engine = engine.pid;
	for (int i = 0; i < 10000; i++) {
		if (!napier(rig, &p, "port remove --run-dir %s p1", rig->base))
			break;
		if (!strstr(p.err, "is just starting or ending: try again\n"))
			assert_memory_equal(p.err, "napier: no engine", 17);
		nanosleep(&pause, NULL);
	}
	assert_true(notified(rig, "READY=1", READY_MS));
	engine_signal(rig, &engine, SIGTERM);
	if (engine.status)
		fail_msg("%s", engine.err);
	assert_non_null(strstr(engine.err, "port p1: packet:in1"));
}

/* A port whose device is not there yet. */
static void waits_for_links(void **state)
{
	struct command_rig *rig = *state;
	struct netlab *lab = rig->links.lab;
	unsigned ns = rig->links.inner[0];
	struct process engine;
	struct error err = {0};

	engine_start(rig, &engine, "run --run-dir %s %s packet:late0,name=late,wait=yes,netns=%s",
		     rig->base, rig->spec[0], lab->namespace[ns].name);
	state_wait(rig, "late", "gone");
	assert_int_equal(netlab_veth_add(lab, ns, "late1", ns, "late0", &err), 0);
	netlab_link_up(lab, ns, "late0", true, &err);
	netlab_link_up(lab, ns, "late1", true, &err);
	state_wait(rig, "late", "up");
	engine_stop(rig, &engine);
}

/* VLANs, pollers and the handler as a file says; and a port of another VLAN that comes later. */
static void obeys_the_file(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;
	char conf[2048];
	json_t *view, *o;

	snprintf(conf, sizeof(conf),
		 "engine = { name = \"lab\"; poller = \"thread\"; dev_weight = 20; };\n"
		 "handler = { vlan_filtering = true; };\n"
		 "ports = ( { port = \"%s\"; pvid = 10;\n"
		 "            queues = ( { queue = 0; poller = \"softirq\"; } ); },\n"
		 "          { port = \"%s\"; untagged = \"20\"; pvid = 20; } );\n",
		 rig->spec[0], rig->spec[1]);
	engine_start_file(rig, &engine, conf);
	netns_flood(&rig->links, 0, 100, 60);
	packets_wait(rig, " --name lab", "p0", "rx_packets", 100);
	view = show_json(rig, " --name lab");
	o = find(view, "napis", "port", "p0");
	assert_string_equal(text(o, "poller"), "softirq");
	assert_int_equal(number(o, "weight"), 20);
	assert_string_equal(text(find(view, "napis", "port", "p1"), "poller"), "thread");
	/* Nothing of VLAN 10 goes to VLAN 20. */
	assert_int_equal(number(find(view, "ports", "name", "p1"), "tx_packets"), 0);
	json_decref(view);

	/* Now both are in 10. */
	assert_int_equal(napier(rig, &p, "port remove --name lab --run-dir %s p1", rig->base), 0);
	assert_int_equal(napier(rig, &p, "port add --name lab --run-dir %s %s pvid=10", rig->base,
				rig->spec[1]),
			 0);
	assert_int_equal(netns_cross(&rig->links, 0, 100, 60), 100);
	engine_stop(rig, &engine);
}

/* The parent ends when all is open, and with what went wrong. */
static void goes_into_the_background(void **state)
{
	struct command_rig *rig = *state;
	struct process p;
	json_t *view;
	long long pid;

	assert_int_equal(napier(rig, &p, "run -d --run-dir %s %s", rig->base, rig->spec[0]), 0);
	view = show_json(rig, "");
	pid = number(json_object_get(view, "engine"), "pid");
	json_decref(view);
	assert_int_not_equal(pid, p.pid);
	assert_int_equal(napier(rig, &p, "run -d --run-dir %s mem:x", rig->base), 1);
	assert_memory_equal(p.err, "napier: an engine named default is running", 42);
	assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 0);
	assert_int_equal(napier(rig, &p, "run -d --run-dir %s xdp:nope", rig->base), 1);
	assert_non_null(strstr(p.err, "nope"));
	while (notified(rig, "", 0))
		;
}

/* Files only: it ends by itself, with all sent. */
static void ends_with_its_input(void **state)
{
	static const unsigned char head[24] = {0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0,
					       0,    0,	   0,	 0,    0, 0, 4, 0, 1, 0, 0, 0};
	unsigned char record[16 + 60] = {0};
	struct command_rig *rig = *state;
	char in[64], out[64];
	struct process p;
	struct stat st;
	int fd = file_new(rig, "in.pcap", in);

	record[8] = record[12] = 60;
	memcpy(record + 16, "\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5", 14);
	assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
	for (int i = 0; i < 1000; i++)
		assert_int_equal(write(fd, record, sizeof(record)), sizeof(record));
	close(fd);
	snprintf(out, sizeof(out), "%s/out.pcap", rig->base);
	if (napier(rig, &p, "run --run-dir %s pcap:%s,name=a pcap:,%s,name=b", rig->base, in, out))
		fail_msg("%s", p.err);
	assert_non_null(strstr(
		p.out, "received 1000 + cloned 0 = transmitted 1000 + delivered 0 + steered 0 + "
		       "merged 0 + dropped 0\n"));
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_size, 24 + 1000 * 76);
	unlink(in);
	unlink(out);
}

/* With the standard streams closed, what is opened next would get their numbers, and their text. */
static void bears_closed_streams(void **state)
{
	struct command_rig *rig = *state;
	struct process p;

	assert_int_equal(shell("exec " NAPIER " run -d --run-dir %s %s %s <&- >&- 2>&-", rig->base,
			       rig->spec[0], rig->spec[1]),
			 0);
	assert_int_equal(netns_cross(&rig->links, 0, 100, 60), 100);
	assert_int_equal(shell("exec " NAPIER " stop --run-dir %s >&-", rig->base), 0);
	assert_int_equal(napier(rig, &p, "stop --run-dir %s", rig->base), 1);
	while (notified(rig, "", 0))
		;
}

/* A limit for ordinary programs is raised; where it cannot be, the error has the cure. */
static void raises_the_limit_of_files(void **state)
{
	struct command_rig *rig = *state;
	char why[64];

	assert_int_equal(shell("ulimit -Sn 20; exec " NAPIER " run -d --run-dir %s %s", rig->base,
			       rig->spec[0]),
			 0);
	assert_int_equal(shell("exec " NAPIER " stop --run-dir %s", rig->base), 0);
	snprintf(why, sizeof(why), "%s/why", rig->base);
	/* How many it needs depends on the CPUs, and on what was open before. */
	for (int limit = 12; shell("ulimit -n %d; exec " NAPIER " run -d --run-dir %s %s %s 2>%s",
				   limit, rig->base, rig->spec[0], rig->spec[1], why);
	     limit++) {
		assert_int_equal(shell("grep -q 'files: raise the limit of open files' %s", why),
				 0);
		assert_true(limit < 1000);
	}
	unlink(why);
	assert_int_equal(shell("exec " NAPIER " stop --run-dir %s", rig->base), 0);
	while (notified(rig, "", 0))
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		command_test(ignores_hangup_under_nohup),
		command_test(refuses_to_run),
		command_test(refuses_configured),
		command_test(refuses_second),
		command_test(survives_kill),
		command_test(follows_links),
		command_test(waits_for_links),
		command_test(obeys_the_file),
		command_test(goes_into_the_background),
		command_test(ends_with_its_input),
		command_test(bears_closed_streams),
		command_test(raises_the_limit_of_files),
		command_test(serves_at_once),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

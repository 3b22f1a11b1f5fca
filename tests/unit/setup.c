/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file: what it says, and what is said of a wrong one. */
#include "test.h"

#include <unistd.h>

#include <control/setup.h>

/* The engine's part of a setup, and every default that the file must not touch. */
static void reads(void **state)
{
	static const char text[] =
		"engine = {\n"
		"  name = \"left\"; cpus = \"0,2-3\"; poller = \"thread\";\n"
		"  frames = 4096; frame_size = 4096; ports_max = 8;\n"
		"  queues_max = 16; dev_weight = 32; netdev_budget = 100;\n"
		"  netdev_budget_usecs = 500; deferral = \"looped:3\"; hz = 1000; "
		"cpu = ( { cpu = 2; deferral = \"looped\"; }, "
		"{ cpu = 3; deferral = \"never\"; } ); restarts = "
		"3; restart_usecs = 99;\n"
		"  gro_normal_batch = 8; netdev_max_backlog = 50; flow_limit = 8; "
		"rps_sock_flow_entries = 64;\n"
		"  symmetric_hash = true; backlog = { poller = \"thread\"; cpus = \"2\"; };\n"
		"  netdev_rss_key = "
		"\"00:01:02:03:04:05:06:07:08:09:0a:0b:0c:0d:0e:0f:10:11:12:13:14:15:"
		"16:17:18:19:1a:1b:1c:1d:1e:1f:20:21:22:23:24:25:26:fF\";\n"
		"  interrupt = { class = \"fifo\"; priority = 7; };\n"
		"  ksoftirqd = { nice = 5; };\n"
		"};\n"
		"handler = { kind = \"bridge\"; entries = 1024; ageing = 10;\n"
		"  vlan_filtering = true; };\n";
	struct setup setup;
	struct error err = {0};
	char cpus[32];

	(void)state;
	setup_init(&setup);
	if (setup_text_read(&setup, "x", text, &err))
		fail_msg("%s", err.text);
	assert_string_equal(setup.engine.name, "left");
	cpuset_format(&setup.engine.cpus, cpus, sizeof(cpus));
	assert_string_equal(cpus, "0,2-3");
	assert_int_equal(setup.engine.poller, POLLER_THREAD);
	assert_int_equal(setup.engine.frames, 4096);
	assert_int_equal(setup.engine.frame_size, 4096);
	assert_int_equal(setup.engine.ports_max, 8);
	assert_int_equal(setup.engine.queues_max, 16);
	assert_int_equal(setup.engine.weight, 32);
	assert_int_equal(setup.engine.budget, 100);
	assert_int_equal(setup.engine.budget_usecs, 500);
	assert_int_equal(setup.engine.deferral, DEFERRAL_LOOPED);
	assert_int_equal(setup.engine.looped_ticks, 3);
	assert_int_equal(setup.engine.hz, 1000);
	assert_int_equal(setup.cpus_n, 2);
	assert_int_equal(setup.cpus[0].cpu, 2);
	assert_int_equal(setup.cpus[0].settings.deferral, DEFERRAL_LOOPED);
	assert_int_equal(setup.cpus[0].settings.looped_ticks, 2);
	assert_int_equal(setup.cpus[1].settings.deferral, DEFERRAL_NEVER);
	assert_int_equal(setup.engine.restarts, 3);
	assert_int_equal(setup.engine.restart_usecs, 99);
	assert_int_equal(setup.engine.gro_normal_batch, 8);
	assert_int_equal(setup.engine.max_backlog, 50);
	assert_int_equal(setup.engine.flow_limit, 8);
	assert_int_equal(setup.engine.sock_flow_entries, 64);
	assert_true(setup.engine.symmetric_hash && setup.engine.rss_key_set);
	assert_int_equal(setup.engine.rss_key[10], 10);
	assert_int_equal(setup.engine.rss_key[39], 255);
	assert_int_equal(setup.backlog.poller, POLLER_THREAD);
	assert_true(cpuset_has(&setup.backlog.cpus, 2));
	assert_true(setup.interrupt_set);
	assert_int_equal(setup.engine.interrupt.class, RUNNER_FIFO);
	assert_int_equal(setup.engine.interrupt.level, 7);
	assert_int_equal(setup.engine.ksoftirqd.class, RUNNER_FAIR);
	assert_int_equal(setup.engine.ksoftirqd.level, 5);
	assert_int_equal(setup.handler, SETUP_BRIDGE);
	assert_int_equal(setup.bridge.entries, 1024);
	assert_int_equal(setup.bridge.ageing_seconds, 10);
	assert_true(setup.bridge.vlan_filtering);
	assert_int_equal(setup.ports_n, 0);
	setup_free(&setup);
}

static bool has(const uint64_t *bits, unsigned vid)
{
	return bits[vid / 64] >> (vid % 64) & 1;
}

static void reads_ports(void **state)
{
	static const char text[] =
		"handler = { vlan_filtering = true; };\n"
		"ports = (\n"
		"  { port = \"mem:a,name=left,queues=2,wait=yes\"; pvid = 30;\n"
		"    tagged = [10, 20]; untagged = \"30,100-130\"; nice = 3;\n"
		"    queues = ( { queue = 1; poller = \"thread\"; weight = 8;\n"
		"      cpu = 1; cpus = \"1\"; class = \"fifo\"; priority = 9; } );\n"
		"  },\n"
		"  { port = \"mem:b,tx_napi=yes\"; tagged = 7;\n"
		"    rps_cpus = \"0-2\"; queues = ( { queue = 0; rps_flow_cnt = 16; } );\n"
		"    gro = \"on\"; gro_flush_timeout = 9; tx = { poller = \"workqueue\"; cpu = 1; "
		"}; }\n"
		");\n";
	struct setup setup;
	struct setup_port *port;
	struct error err = {0};
	struct wish *wish;

	(void)state;
	setup_init(&setup);
	if (setup_text_read(&setup, "x", text, &err) || setup_check(&setup, &err))
		fail_msg("%s", err.text);
	assert_int_equal(setup.ports_n, 2);
	port = setup.ports[0];
	assert_string_equal(port->config.kind, "mem");
	assert_string_equal(port->config.target, "a");
	assert_string_equal(port->config.name, "left");
	assert_int_equal(port->config.queues, 2);
	assert_string_equal(port->config.options, "");
	assert_true(port->wait);
	assert_int_equal(port->pvid, 30);
	assert_true(has(port->tagged, 10) && has(port->tagged, 20) && !has(port->tagged, 30));
	assert_true(has(port->untagged, 30) && has(port->untagged, 100) &&
		    has(port->untagged, 130) && !has(port->untagged, 131));
	assert_int_equal(port->queues_n, 2);
	wish = setup_port_wish(port, -1);
	assert_true(wish->level_set && wish->class_set && !wish->poller_set);
	assert_int_equal(wish->level, 3);
	wish = setup_port_wish(port, 1);
	assert_true(wish->poller_set && wish->weight_set && wish->cpu_set && wish->cpus_set);
	assert_int_equal(wish->poller, POLLER_THREAD);
	assert_int_equal(wish->weight, 8);
	assert_int_equal(wish->cpu, 1);
	assert_int_equal(wish->class, RUNNER_FIFO);
	assert_int_equal(wish->level, 9);
	assert_string_equal(setup.ports[1]->config.name, "b");
	assert_true(has(setup.ports[1]->tagged, 7));
	assert_true(setup.ports[1]->config.tx_napi);
	assert_int_equal(setup.ports[1]->tx.poller, POLLER_WORKQUEUE);
	assert_int_equal(setup.ports[1]->tx.cpu, 1);
	assert_int_equal(setup_port_wish(setup.ports[1], -1)->gro_flush_timeout, 9);
	assert_true(setup_port_wish(setup.ports[1], -1)->gro_set);
	assert_int_equal(setup_port_wish(setup.ports[1], -1)->gro, GRO_ON);
	assert_int_equal(cpuset_count(&setup_port_wish(setup.ports[1], -1)->rps_cpus), 3);
	assert_int_equal(setup_port_wish(setup.ports[1], 0)->rps_flow_cnt, 16);
	setup_free(&setup);
}

/* The example that is installed is right, and shows the defaults that it says it does. */
static void reads_example(void **state)
{
	struct setup setup;
	struct error err = {0};

	(void)state;
	setup_init(&setup);
	if (setup_file_read(&setup, BRIDGE_CONF, &err) || setup_check(&setup, &err))
		fail_msg("%s", err.text);
	assert_int_equal(setup.ports_n, 3);
	assert_string_equal(setup.ports[2]->config.name, "guest0");
	setup_free(&setup);
}

#define ENGINE_KEYS                                                                                \
	"name, cpus, poller, frames, frame_size, ports_max, queues_max, dev_weight, "              \
	"netdev_budget, netdev_budget_usecs, busy_poll, busy_read, gro_normal_batch, "             \
	"netdev_max_backlog, "                                                                     \
	"flow_limit, "                                                                             \
	"rps_sock_flow_entries, symmetric_hash, netdev_rss_key, backlog, deferral, cpu, hz, "      \
	"restarts, restart_usecs, "                                                                \
	"idle_suspend, "                                                                           \
	"workers, interrupt, ksoftirqd, worker"
#define PORT_KEYS                                                                                  \
	"port, poller, weight, cpu, cpus, class, nice, priority, idle_suspend, "                   \
	"napi_defer_hard_irqs, gro, gro_flush_timeout, irq_suspend_timeout, rps_cpus, "            \
	"rps_flow_cnt, "                                                                           \
	"pvid, tagged, "                                                                           \
	"untagged, queues, tx, host"

static const struct {
	const char *text, *says;
} wrong[] = {
	{"engine = {\n frames = ;\n};",
	 "f.conf:2: syntax error (texts are in quotes, and ';' ends a key)"},
	{"engine = { frames = 1; frames = 2; };", "f.conf:1: duplicate setting name"},
	{"\n\n  @include \"/etc/passwd\"\n", "f.conf:3: @include is not supported: write it here"},
	{"engine = {\n flow_limit = 7; };",
	 "f.conf:2: flow_limit = 7: must be a power of two, 2 to 65536, or 0 for none"},
	{"engine = { rps_sock_flow_entries = 3; };",
	 "f.conf:1: rps_sock_flow_entries = 3: must be a power of two, 1 to 4194304, or 0 for "
	 "none"},
	{"engine = { netdev_max_backlog = 0; };",
	 "f.conf:1: netdev_max_backlog = 0: out of range 1..1048576"},
	{"engine = { netdev_rss_key = \"6d:5a:5\"; };",
	 "f.conf:1: netdev_rss_key: byte 2 is wrong: it is 40 bytes in hexadecimal, 6d:5a:…"},
	{"ports = ( { port = \"mem:a\"; rps_cpus = \"\"; } );",
	 "f.conf:1: rps_cpus=: not a list of CPUs such as 0-3,8, or none"},
	{"ports = ( { port = \"mem:a\"; gro = \"yes\"; } );",
	 "f.conf:1: gro=yes: must be auto, on or off"},
	{"engine = { gro_normal_batch = 65; };",
	 "f.conf:1: gro_normal_batch = 65: out of range 1..64"},
	{"ports = ( { port = \"mem:a\"; rps_flow_cnt = 12; } );",
	 "f.conf:1: rps_flow_cnt=12: must be a power of two, 1 to 1048576, or 0 for none"},
	{"engin = { };", "f.conf:1: unknown key \"engin\": the keys are engine, handler, ports"},
	{"engine = {\n frame = 1;\n};",
	 "f.conf:2: unknown key \"frame\": the keys are " ENGINE_KEYS},
	{"engine = 1;", "f.conf:1: engine has the wrong type; it is written { key = value; … }"},
	{"engine = {\n\n frames = \"many\"; };",
	 "f.conf:3: frames has the wrong type; it is a number 64..4194304"},
	{"engine = { frames = 5000000; };", "f.conf:1: frames = 5000000: out of range 64..4194304"},
	{"engine = { frames = 5000000000L; };",
	 "f.conf:1: frames = 5000000000: out of range 64..4194304"},
	{"engine = {\n netdev_max_backlog = 99999999999; };",
	 "f.conf:2: 99999999999: out of range; a number this long is written with an L behind it"},
	{"engine = { /* \n */ rps_sock_flow_entries = 4294967296; };",
	 "f.conf:2: 4294967296: out of range; a number this long is written with an L behind it"},
	{"engine = { frames = -2147483649; };",
	 "f.conf:1: -2147483649: out of range; a number this long is written with an L behind it"},
	{"engine = { frames = 0x100000000; };",
	 "f.conf:1: 0x100000000: out of range; a number this long is written with an L behind it"},
	{"engine = { cpu = ( { cpu = 0; deferral = \"never\"; },\n { cpu = 0; } ); };",
	 "f.conf:2: cpu = 0 is there twice"},
	{"ports = ( { port = \"mem:a\"; queues = ( { queue = 1; weight = 8; },\n"
	 " { queue = 1; poller = \"thread\"; } ); } );",
	 "f.conf:2: queue = 1 is there twice"},
	{"engine = { frame_size = 3000; };", "f.conf:1: frame_size = 3000: it is 2048 or 4096"},
	{"engine = { dev_weight = 65; };", "f.conf:1: dev_weight = 65: out of range 1..64"},
	{"engine = { deferral = \"always\"; };",
	 "f.conf:1: unknown deferral \"always\": the policies are never, "
	 "restart-limit, looped:TICKS, ksoftirqd-running"},
	{"engine = { deferral = 1; };",
	 "f.conf:1: deferral has the wrong type; it is written \"text\""},
	{"engine = { deferral = \"looped:0\"; };",
	 "f.conf:1: deferral=looped:0: the window is 1..1000000 ticks"},
	{"engine = { hz = 0; };", "f.conf:1: hz = 0: out of range 1..10000"},
	{"engine = { cpu = (\n { deferral = \"never\"; } ); };",
	 "f.conf:2: this engine CPU has no number: cpu = 0;"},
	{"engine = { cpu = (\n { cpu = 1024; } ); };",
	 "f.conf:2: cpu = 1024: out of range 0..1023"},
	{"engine = { cpu = (\n { cpu = 0; poller = \"thread\"; } ); };",
	 "f.conf:2: unknown key \"poller\": the keys are cpu, deferral"},
	{"engine = { cpu = (\n { cpu = 0; deferral = \"looped:x\"; } ); };",
	 "f.conf:2: unknown deferral \"looped:x\": the policies are never, restart-limit, "
	 "looped:TICKS, ksoftirqd-running"},
	{"engine = { name = \"../x\"; };",
	 "f.conf:1: name \"../x\": 1 to 31 letters, digits, '_', '-' or '.'"},
	{"engine = { poller = \"napi\"; };", "f.conf:1: unknown poller \"napi\": the pollers are "
					     "softirq, thread, workqueue, busy-poll, app, auto"},
	{"engine = { cpus = \"3-1\"; };",
	 "f.conf:1: cpus=3-1: not a list of CPUs such as 0-3,8, or any"},
	{"engine = { cpus = true; };",
	 "f.conf:1: cpus has the wrong type; it is written as a number or a text"},
	{"engine = { interrupt = { class = \"fifo\"; }; };",
	 "f.conf:1: class=fifo needs priority=1..99"},
	{"engine = { interrupt = { class = \"rt\"; }; };",
	 "f.conf:1: unknown class \"rt\": the classes are fair, fifo"},
	{"engine = { ksoftirqd = { cpus = 1; }; };",
	 "f.conf:1: unknown key \"cpus\": the keys are class, nice, priority"},
	{"handler = { kind = \"hub\"; };",
	 "f.conf:1: unknown handler \"hub\": the handlers are bridge, drop"},
	{"handler = { entries = 1000; };", "f.conf:1: entries = 1000: it is a power of two"},
	{"handler = { vlan_filtering = 1; };",
	 "f.conf:1: vlan_filtering has the wrong type; it is written true or false"},
	{"ports = { };", "f.conf:1: ports has the wrong type; it is written ( { … }, { … } )"},
	{"ports = (\n 1 );", "f.conf:1: ports has the wrong type; it is written ( { … }, { … } )"},
	{"ports = (\n {\n poller = \"thread\"; } );",
	 "f.conf:2: this port has no device: port = \"xdp:eth0\";"},
	{"ports = (\n {\n prot = \"xdp:eth0\"; } );",
	 "f.conf:3: unknown key \"prot\": the keys are " PORT_KEYS},
	{"engine = { cpu = ( {\n cup = 1; deferral = \"never\"; } ); };",
	 "f.conf:2: unknown key \"cup\": the keys are cpu, deferral"},
	{"ports = ( {\n port = 1; } );",
	 "f.conf:2: port has the wrong type; it is written \"text\""},
	{"ports = ( { port = \"mem:a,wait=maybe\"; } );",
	 "f.conf:1: a: wait=maybe: it is yes or no"},
	{"ports = ( { port = \"mem:a\";\n pollr = 1; } );",
	 "f.conf:2: unknown key \"pollr\": the keys are " PORT_KEYS},
	{"ports = ( { port = \"mem:a\";\n poller = \"x\"; } );",
	 "f.conf:2: unknown poller \"x\": the pollers are softirq, thread, workqueue, busy-poll, "
	 "app, auto"},
	{"ports = ( { port = \"mem:a\";\n weight = 0; } );",
	 "f.conf:2: weight=0: out of range 1..64"},
	{"ports = ( { port = \"mem:a\";\n nice = 1; class = \"fifo\"; } );",
	 "f.conf:2: class=fair goes with nice, class=fifo with priority: they cannot be asked "
	 "together"},
	{"ports = ( { port = \"mem:a\";\n pvid = 4095; } );",
	 "f.conf:2: pvid=4095: out of range 1..4094"},
	{"ports = ( { port = \"mem:a\";\n tagged = [ 1, 4095 ]; } );",
	 "f.conf:2: tagged=4095: VLANs are 1..4094"},
	{"ports = ( { port = \"mem:a\";\n tagged = \"10-\"; } );",
	 "f.conf:2: tagged=10-: not a list of VLANs such as 10,20-29"},
	{"ports = ( { port = \"mem:a\";\n tagged = [ \"x\" ]; } );",
	 "f.conf:2: tagged has the wrong type; it is written [ 10, 20 ] or \"10,20-29\""},
	{"ports = ( { port = \"mem:a\";\n tx = { poller = \"thread\"; }; } );",
	 "f.conf:2: tx goes with tx_napi=yes in the port's text"},
	{"ports = ( { port = \"xdp:a\";\n host = { poller = \"thread\"; }; } );",
	 "f.conf:2: host goes with host=yes in the port's text"},
	{"ports = ( { port = \"xdp:a,host=yes\";\n host = { tx = 1; }; } );",
	 "f.conf:2: unknown key \"tx\": the keys are poller, weight, cpu, cpus, class, nice, "
	 "priority, idle_suspend, rps_cpus, rps_flow_cnt, gro"},
	{"ports = ( { port = \"packet:a,host=yes\"; } );",
	 "f.conf:1: packet:a: host: a packet port leaves all frames to the kernel's stack on a as "
	 "well, which would get each twice: use xdp:a"},
	{"ports = ( { port = \"tap:a,host=b\"; } );",
	 "f.conf:1: tap:a: host: this host's stack is behind an interface of its own: "
	 "xdp:INTERFACE"},
	{"ports = ( { port = \"xdp:a,host=0123456789abcdef\"; } );",
	 "f.conf:1: a: host=0123456789abcdef: it is yes, no, or a name for the TAP, of 1 to 15 "
	 "characters"},
	{"ports = ( { port = \"xdp:a,host=backlog\"; } );",
	 "f.conf:1: a: host=backlog: \"backlog\" means an engine CPU's backlog: give the TAP "
	 "another name"},
	{"ports = ( { port = \"mem:a\";\n queues = (\n { } ); } );",
	 "f.conf:3: this queue has no number: queue = 0;"},
	{"ports = ( { port = \"mem:a\";\n queues = (\n { queue = 64; } ); } );",
	 "f.conf:3: queue = 64: out of range 0..63"},
};

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct setup setup;
		struct error err = {0};

		setup_init(&setup);
		assert_true(setup_text_read(&setup, "f.conf", wrong[i].text, &err) < 0);
		assert_string_equal(err.text, wrong[i].says);
		assert_true(err.code < 0);
		setup_free(&setup);
	}
}

/* What is wrong only in sight of the whole. */
static void refuses_together(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "no ports: name at least one, such as xdp:eth0"},
		{"ports = ( { port = \"mem:a\"; },\n { port = \"mem:a\"; } );",
		 "f.conf:2: port a is there twice: give one of them name=…"},
		{"ports = ( { port = \"mem:a\"; pvid = 1; } );",
		 "f.conf:1: port a: VLANs need vlan_filtering = true in handler"},
		{"handler = { kind = \"drop\"; };\nports = ( { port = \"mem:a\"; pvid = 1; } );",
		 "f.conf:2: port a: VLANs go with the handler bridge only"},
		{"handler = { vlan_filtering = true; };\n"
		 "ports = ( { port = \"mem:a\"; tagged = 5; untagged = \"4-6\"; } );",
		 "f.conf:2: port a: VLAN 5 is both tagged and untagged"},
		{"ports = ( { port = \"mem:a\"; class = \"fifo\"; } );",
		 "f.conf:1: port a: class=fifo needs priority=1..99"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct setup setup;
		struct error err = {0};

		setup_init(&setup);
		assert_int_equal(setup_text_read(&setup, "f.conf", cases[i].text, &err), 0);
		assert_true(setup_check(&setup, &err) < 0);
		assert_string_equal(err.text, cases[i].says);
		setup_free(&setup);
	}
}

static void refuses_names(void **state)
{
	static const struct {
		const char *spec, *says;
	} wrong[] = {
		{"xdp:", "port xdp:: the target is missing, such as eth0 in xdp:eth0"},
		{"pcap:,out=a", "port pcap:: give the port a name of 1 to 31 bytes with name="},
		{"mem:/", "port mem:/: give the port a name of 1 to 31 bytes with name="},
		{"mem:a,name=engine", "port mem:a: \"engine\" means the engine itself: give the "
				      "port another name with name="},
		{"mem:a,name=cpu", "port mem:a: \"cpu\" means an engine CPU: give the port another "
				   "name with name="},
		{"mem:a,name=backlog",
		 "port mem:a: \"backlog\" means an engine CPU's backlog: give "
		 "the port another name with name="},
		{"mem:a,name=default", "port mem:a: \"default\" means NAPIs to come: give the port "
				       "another name with name="},
		{"mem:a,name=a/0", "port mem:…: a name has no '/' and no control characters: give "
				   "the port another one with name="},
		{"mem:a\tb", "port mem:…: a name has no '/' and no control characters: give the "
			     "port another one with name="},
	};
	struct setup_port *port;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct error err = {0};

		assert_int_equal(setup_port_create(wrong[i].spec, &port, &err), -EINVAL);
		assert_string_equal(err.text, wrong[i].says);
	}
	assert_int_equal(setup_port_create("mem:a,name=a b", &port, NULL), 0);
	setup_port_free(port);
}

/* The TAP's name: the interface's and an h, cut where there is no room for that, or as asked. */
static void names_hosts(void **state)
{
	static const struct {
		const char *spec, *host;
	} named[] = {
		{"xdp:eth0", ""},
		{"xdp:eth0,host=no", ""},
		{"xdp:eth0,host=yes", "eth0h"},
		{"xdp:eth0,host=lan,name=x", "lan"},
		{"xdp:enp0s31f6np0", ""},
		{"xdp:abcdefghijklmno,host=yes", "abcdefghijklmnh"},
	};
	struct setup_port *port;
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
		assert_int_equal(setup_port_create(named[i].spec, &port, &err), 0);
		assert_string_equal(port->host, named[i].host);
		setup_port_free(port);
	}
	assert_int_equal(setup_port_create("xdp:eth0", &port, &err), 0);
	assert_int_equal(setup_port_host(port, &err), 0);
	assert_string_equal(port->host, "eth0h");
	setup_port_free(port);
	assert_int_equal(setup_port_create("xdp:eth0,host=lan", &port, &err), 0);
	assert_int_equal(setup_port_host(port, &err), 0);
	assert_string_equal(port->host, "lan");
	setup_port_free(port);
}

static void bounds_ports(void **state)
{
	struct setup setup;
	struct setup_port *port;
	struct error err = {0};

	(void)state;
	setup_init(&setup);
	for (int i = 0; i < SETUP_PORTS_MAX; i++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "mem:a%d", i);
		assert_int_equal(setup_port_add(&setup, spec, &port, &err), 0);
	}
	assert_int_equal(setup_port_add(&setup, "mem:more", &port, &err), -ENOSPC);
	assert_string_equal(err.text, "port mem:more: more than 64 ports");
	setup_free(&setup);
}

static void refuses_files(void **state)
{
	char path[] = "/tmp/napier-setup-XXXXXX";
	struct setup setup;
	struct error err = {0};
	char says[256];
	int fd = mkstemp(path);

	(void)state;
	setup_init(&setup);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "a\0b", 3), 3);
	assert_int_equal(setup_file_read(&setup, path, &err), -EINVAL);
	snprintf(says, sizeof(says), "%s: not a text file", path);
	assert_string_equal(err.text, says);
	assert_int_equal(ftruncate(fd, SETUP_FILE_MAX + 1), 0);
	assert_int_equal(setup_file_read(&setup, path, &err), -EFBIG);
	close(fd);
	unlink(path);
	assert_int_equal(setup_file_read(&setup, path, &err), -ENOENT);
	snprintf(says, sizeof(says), "%s: No such file or directory", path);
	assert_string_equal(err.text, says);
	assert_int_equal(setup_file_read(&setup, "/tmp", &err), -EINVAL);
	assert_string_equal(err.text, "/tmp: not a file");
	setup_free(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads),
		cmocka_unit_test(reads_ports),
		cmocka_unit_test(reads_example),
		cmocka_unit_test(refuses),
		cmocka_unit_test(refuses_together),
		cmocka_unit_test(refuses_names),
		cmocka_unit_test(names_hosts),
		cmocka_unit_test(bounds_ports),
		cmocka_unit_test(refuses_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrong specifications: each is refused with its line, what is wrong, and what would be right. */
#include "test.h"

#include "spec_text.h"

static void wrong(const char *text, const char *begins, const char *has)
{
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	struct spec *spec;
	int rc = spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err);

	if (!rc)
		spec_free(spec);
	if (rc >= 0 || strncmp(err.text, begins, strlen(begins)) || !strstr(err.text, has) ||
	    strchr(err.text, '\n'))
		fail_msg("%d: \"%s\" is not \"%s…%s\", for:\n%s", rc, err.text, begins, has, text);
}

static void wrong_set(const char *text, const char *key, const char *value, const char *has)
{
	const struct spec_setting set[] = {{"title", "a title"}, {key, value}};
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	char begins[160];
	struct spec *spec;
	int rc = spec_parse("x.conf", text, &cpus, set, 2, &spec, &err);

	if (!rc)
		spec_free(spec);
	snprintf(begins, sizeof(begins), "--set %s=%s: ", key, value);
	if (rc >= 0 || strncmp(err.text, begins, strlen(begins)) || !strstr(err.text, has))
		fail_msg("%d: \"%s\" is not \"%s…%s\"", rc, err.text, begins, has);
}

static void right(const char *text)
{
	struct cpuset cpus = cpus_make("0-3");
	struct error err = {0};
	struct spec *spec;

	if (spec_parse("x.conf", text, &cpus, NULL, 0, &spec, &err))
		fail_msg("%s", err.text);
	spec_free(spec);
}

static void wrong_counts(void **state)
{
	(void)state;
	wrong("workloads = { a = { kind = \"rr\"; flows = 5000; }; };\n" SYSTEMS,
	      "x.conf:1: ", "flows = 5000: out of range 1..4096");
	wrong("workloads = { a = { kind = \"rr\"; flows = \"cpus*\"; }; };\n" SYSTEMS,
	      "x.conf:1: ", "\"10*cpus\"");
	wrong("workloads = { a = { kind = \"rr\"; flows = \"cpus/0\"; }; };\n" SYSTEMS,
	      "x.conf:1: ", "\"cpus/2\"");
}

static void wrong_root(void **state)
{
	(void)state;
	wrong("", "x.conf: ", "it has no workloads");
	wrong(WORKLOADS, "x.conf: ", "it has no systems");
	wrong(WORKLOADS SYSTEMS "sytems = 1;\n", "x.conf:3: unknown key \"sytems\"", "title");
	wrong("a = ;", "x.conf:1: syntax error", "';' ends a key");
	wrong("\n@include \"/\"\n", "x.conf:2: ", "@include is not supported");
	wrong("\n\nquick = { repeats = 99999999999; };", "x.conf:3: ", "written with an L");
	wrong(WORKLOADS SYSTEMS "quick = 5;", "x.conf:3: quick has the wrong type",
	      "{ key = value");
	wrong(WORKLOADS SYSTEMS "quick = { repeats = 17; };", "x.conf:3: ", "out of range 1..16");
	wrong(WORKLOADS SYSTEMS "quick = { duration = 500; };",
	      "x.conf:3: ", "with its unit: \"500ms\"");
	wrong(WORKLOADS SYSTEMS "quick = { duration = \"500\"; };",
	      "x.conf:3: ", "ns, us, ms or s");
	wrong(WORKLOADS SYSTEMS "quick = { duration = \"nan s\"; };",
	      "x.conf:3: ", "ns, us, ms or s");
	wrong(WORKLOADS SYSTEMS "quick = { duration = \"1ms\"; };",
	      "x.conf:3: ", "out of range 0.01s");
	wrong(WORKLOADS SYSTEMS "title = \"caf\xe9\";", "x.conf:3: not UTF-8", "");
	wrong(WORKLOADS SYSTEMS "title = \"two\nlines\";", "x.conf:", "no control characters");
	wrong(WORKLOADS SYSTEMS "topology = \"a\nb\";", "x.conf:", "\"a?b\"");
	wrong(WORKLOADS SYSTEMS "topology = \"ring\";", "x.conf:3: ", "one of ends, middle");
	wrong(WORKLOADS SYSTEMS "title = 5;", "x.conf:3: title has the wrong type", "\"text\"");
	wrong("systems = { k = { }; k = { }; };\n" WORKLOADS, "x.conf:1: duplicate setting name",
	      "");
	wrong(WORKLOADS "systems = ( { } );", "x.conf:2: systems has the wrong type", "NAME = {");
	wrong(WORKLOADS "systems = { };", "x.conf:2: ", "one at least");
	wrong(SYSTEMS "workloads = { };", "x.conf:2: ", "one at least");
	wrong(WORKLOADS SYSTEMS "defaults = { sistem = { }; };",
	      "x.conf:3: ", "keys are system, workload");
}

static void wrong_given(void **state)
{
#define END(name) " = { interface = \"" name "\"; address = \"10.0.0.1/24\"; };"
	(void)state;
	wrong(WORKLOADS SYSTEMS "given = { client = { }; };", "x.conf:3: ", "interface = \"eth1\"");
	wrong(WORKLOADS SYSTEMS
	      "given = { client = { interface = \"a\"; address = \"10.0.0.1\"; }; };",
	      "x.conf:3: ", "length of the prefix");
	wrong(WORKLOADS SYSTEMS "given = { server" END("s") " };",
	      "x.conf:3: ", "client's is missing");
	wrong(WORKLOADS SYSTEMS "given = { client" END("a") " server" END("b") " };",
	      "x.conf:3: ", "in one network namespace");
	wrong(WORKLOADS SYSTEMS "given = { client" END("a") " middle = ( { interface = \"x\"; }, "
							    "{ interface = \"y\"; } ); };",
	      "x.conf:3: ", "middle goes with topology");
	wrong(WORKLOADS "systems = { b = { handler = \"bridge\"; }; }; topology = \"middle\";\n"
			"given = { client" END("a") " };",
	      "x.conf:3: ", "needs the two interfaces");
	wrong(WORKLOADS SYSTEMS "given = { middle = ( { interface = \"x\"; } ); };",
	      "x.conf:3: ", "interface = \"eth3\"");
	wrong(WORKLOADS SYSTEMS "given = { client = { interface = \"sixteen-letters-\"; }; };",
	      "x.conf:3: ", "15 bytes at most");
#undef END
}

static void wrong_system(void **state)
{
#define SYSTEM(text) WORKLOADS "systems = {\n a = { " text " }; };"
	(void)state;
	wrong(SYSTEM("dut = \"vpp\";"), "x.conf:3: ", "one of kernel, napier, command");
	wrong(SYSTEM("handlr = \"socket\";"), "x.conf:3: unknown key \"handlr\"", "handler");
	wrong(SYSTEM("handler = \"bridge\";"), "x.conf:3: a: ", "needs topology = \"middle\"");
	wrong(SYSTEM("handler = \"host\";"), "x.conf:3: a: ", "handler host is napier's");
	wrong("topology = \"middle\";" SYSTEM("handler = \"socket\";"), "x.conf:3: a: ",
	      "needs topology = \"ends\" (with \"middle\" it is bridge or router)");
	wrong("topology = \"middle\";" SYSTEM("dut = \"napier\"; handler = \"router\";"),
	      "x.conf:3: a: ", "napier has no router yet");
	wrong(SYSTEM("poller = \"thread\";"), "x.conf:3: ", "one of softirq, threaded, ");
	wrong(SYSTEM("dut = \"napier\"; handler = \"host\"; poller = \"threaded\";"),
	      "x.conf:3: ", "napier's are softirq, thread, workqueue");
	wrong(SYSTEM("poller = \"socket-busy-poll\";"), "x.conf:3: a: ", "busy_poll_usecs = 50");
	wrong("topology = \"middle\";" SYSTEM(
		      "poller = \"socket-busy-poll\"; busy_poll_usecs = 9;"),
	      "x.conf:3: a: ", "for a server's sockets");
	wrong(SYSTEM("dut = \"napier\"; handler = \"host\"; poller = \"app\";"),
	      "x.conf:3: a: ", "poller app is an application's");
	wrong(SYSTEM("dut = \"napier\"; poller = \"app\";"),
	      "x.conf:3: a: ", "cannot run the workload a");
	wrong(SYSTEM("dut = \"command\";"), "x.conf:3: a: ", "which command?");
	wrong(SYSTEM("command = \"true\";"), "x.conf:3: a: ", "goes with dut = \"command\"");
	wrong(SYSTEM("dut = \"command\"; command = \"x\"; poller = \"softirq\";"),
	      "x.conf:3: ", "polls as it likes");
	wrong(SYSTEM("engine = { hz = 100; };"),
	      "x.conf:3: a: ", "engine goes with dut = \"napier\"");
	wrong(SYSTEM("queues = 0;"), "x.conf:3: ", "queues = 0: out of range 1..64");
	wrong(SYSTEM("only = [ \"a\", \"b\" ];"), "x.conf:3: ", "no workload \"b\": they are a");
	wrong(SYSTEM("only = [ ];"), "x.conf:3: ", "[ \"WORKLOAD\"");
	wrong(SYSTEM("like = \"b\";"), "x.conf:3: ", "no system \"b\" above it");
	wrong(SYSTEM("like = \"a\";"), "x.conf:3: ", "no system \"a\" above it");
	wrong(SYSTEM("base = 1;"), "x.conf:3: ", "true or false");
	wrong(SYSTEM("base = true; };\n b = { base = true;"), "x.conf:4: b: a is the base",
	      "already");
	wrong("workloads = { a = { kind = \"rr\"; };\n b = { kind = \"rr\"; }; };\n"
	      "systems = { k = { only = \"a\"; }; };",
	      "x.conf:2: ", "no system runs the workload b");
	wrong("defaults = {\n system = { poler = \"x\"; }; };\n" WORKLOADS SYSTEMS,
	      "x.conf:2: ", "unknown key \"poler\"");
	wrong("defaults = {\n system = { base = true; }; };\n" WORKLOADS SYSTEMS,
	      "x.conf:2: ", "base is each system's own");
	/* Of the defaults, at their line. */
	wrong("defaults = {\n system = { poller = \"thread\"; }; };\n" WORKLOADS SYSTEMS,
	      "x.conf:2: ", "one of softirq, threaded");
}

static void wrong_settings(void **state)
{
#define NAPIER(text) SYSTEM("dut = \"napier\"; handler = \"host\";\n " text)
	(void)state;
	wrong(NAPIER("engine = { hz = 0; };"), "x.conf:4: engine: hz = 0: out of range", "");
	wrong(NAPIER("engine = { deferral = \"loop\"; };"), "x.conf:4: engine: ", "loop");
	wrong(NAPIER("engine = { poller = \"thread\"; };"), "x.conf:4: ", "a key of the system");
	wrong(NAPIER("engine = { cpus = \"0\"; };"), "x.conf:4: ", "place = { poller");
	wrong(NAPIER("engine = { backlog = { cpus = \"x\"; }; };"), "x.conf:4: ", "CPUs are");
	wrong(SYSTEM("dut = \"napier\"; only = \"a\";\n ports = { weight = 5; };"),
	      "x.conf:4: a: ", "have no configuration of ports");
	wrong(NAPIER("engine = 5;"), "x.conf:4: engine has the wrong type", "");
	wrong(NAPIER("ports = { weight = 65; };"), "x.conf:4: ports: ", "65");
	wrong(NAPIER("ports = { cpu = \"0\"; };"), "x.conf:4: ", "as a number");
	/* A key that the port has by its options only. */
	wrong(NAPIER("ports = { tx = { poller = \"thread\"; }; };"),
	      "x.conf:4: ports: ", "tx goes with tx_napi=yes");
	right(NAPIER("port_options = \"tx_napi=yes\";"
		     "ports = { tx = { poller = \"thread\"; }; };"));
	wrong(NAPIER("port_options = \"netns=x\";"), "x.conf:4: ", "no option \"netns\" here");
	wrong(NAPIER("port_options = \"tx_napi=maybe\";"), "x.conf:4: port_options: ", "");
	wrong(NAPIER("port_options = \"a\\\"; x=\";"), "x.conf:4: ", "no quotes");
	wrong(NAPIER("port = \"tap\";"), "x.conf:4: a: unknown port \"tap\"", "xdp or packet");
	wrong(NAPIER("port = \"packet\";"), "x.conf:4: a: ", "handler host takes port xdp");
#undef NAPIER
}

static void wrong_places_and_knobs(void **state)
{
	(void)state;
	wrong(SYSTEM("place = { sever = 1; };"), "x.conf:3: unknown key \"sever\"", "server");
	wrong(SYSTEM("place = { server = \"1-\"; };"), "x.conf:3: ", "\"lower\"");
	wrong(SYSTEM("place = { server = \"\"; };"), "x.conf:3: ", "\"lower\"");
	wrong(SYSTEM("place = { server = 5000; };"), "x.conf:3: ", "below 1024");
	wrong(SYSTEM("place = { server = [ 1 ]; };"), "x.conf:3: ", "nice = 5");
	wrong(SYSTEM("place = { server = { class = \"fifo\"; }; };"),
	      "x.conf:3: ", "priority=1..99");
	wrong(SYSTEM("place = { server = { nice = 20; }; };"), "x.conf:3: ", "20");
	wrong(SYSTEM("place = { server = { nice = 1; priority = 1; }; };"),
	      "x.conf:3: ", "class=fair goes with nice");
	wrong(SYSTEM("knobs = { threded = 1; };"), "x.conf:3: there is no knob 'threded'",
	      "threaded");
	wrong(SYSTEM("knobs = { threaded = \"yes\"; };"), "x.conf:3: threaded: ", "off, on");
	wrong(SYSTEM("knobs = { busy_poll = -1; };"), "x.conf:3: busy_poll: ", "number");
	wrong(SYSTEM("knobs = { irq_cpus = \"none\"; };"), "x.conf:3: irq_cpus: ", "not a list");
	wrong(SYSTEM("place = { interrupt = 0; };\n knobs = { rps_cpus = 1; };"),
	      "x.conf:4: a: ", "one setting of a veth");
	right(SYSTEM("place = { interrupt = \"any\"; }; knobs = { rps_cpus = 1; };"));
	wrong(SYSTEM("knobs = 1;"), "x.conf:3: knobs has the wrong type", "");
	wrong(SYSTEM("knobs = { rps_cpus = \"a\"; };"), "x.conf:3: ", "CPUs are");
	wrong(SYSTEM("knobs = { threaded = ( 1 ); };"), "x.conf:3: ", "a number or a text");
#undef SYSTEM
}

static void wrong_workload(void **state)
{
#define LOAD(text) SYSTEMS "workloads = {\n a = { " text " }; };"
	(void)state;
	wrong(LOAD(""), "x.conf:3: ", "this workload has no kind");
	wrong(LOAD("kind = \"bulk\";"), "x.conf:3: unknown kind \"bulk\"",
	      "one of rr, stream, rrul");
	wrong(LOAD("\n kidn = \"rr\";"), "x.conf:4: unknown key \"kidn\"", "keys are name, kind, ");
	wrong(LOAD("kind = \"rr\"; sizes = [ 1 ];"), "x.conf:3: ", "kind rr has no sizes");
	wrong(LOAD("kind = \"rrul\"; protocol = \"udp\";"),
	      "x.conf:3: ", "kind rrul has no protocol");
	wrong(LOAD("kind = \"stream\"; request_size = 5;"),
	      "x.conf:3: ", "kind stream has no request_size");
	wrong(LOAD("kind = \"rr\"; request_size = 0;"), "x.conf:3: ", "out of range 1..1048576");
	wrong(LOAD("kind = \"rr\"; rate = -1;"), "x.conf:3: ", "rate = -1: out of range");
	wrong(LOAD("kind = \"rr\"; rate = \"fast\";"), "x.conf:3: ", "as a number: 10000");
	wrong(LOAD("kind = \"rr\"; arrivals = \"bursts\";"), "x.conf:3: ", "constant, poisson");
	wrong(LOAD("kind = \"stream\"; sizes = [ ];"), "x.conf:3: ", "1 to 16");
	wrong(LOAD("kind = \"stream\"; sizes = [ 0 ];"), "x.conf:3: ", "sizes = 0: out of range");
	wrong(LOAD("kind = \"stream\"; sizes = 5;"), "x.conf:3: ", "[ 18, 82, 1472 ]");
	wrong(LOAD("kind = \"stream\"; direction = \"left\";"), "x.conf:3: ", "up, down, both");
	wrong(LOAD("kind = \"rr\"; work = 5;"), "x.conf:3: ", "with its unit");
	/* What the load says, at the key that it names. */
	wrong(LOAD("kind = \"rr\"; protocol = \"udp\";\n connect = true;"), "x.conf:4: connect",
	      "TCP");
	wrong(LOAD("kind = \"rr\";\n outstanding = 5;"), "x.conf:4: outstanding", "rate");
	wrong(LOAD("kind = \"rr\";\n stall = \"1s\"; stall_every = \"500ms\";"), "x.conf:4: stall",
	      "less than stall_every");
	wrong(LOAD("kind = \"rr\"; original = { size = 1; };"),
	      "x.conf:3: ", "unknown key \"size\"");
	wrong(SYSTEMS "workloads = {\n a = 5; };", "x.conf:3: a has the wrong type", "kind");
	wrong("defaults = {\n workload = { flows = 0; }; };\n" SYSTEMS WORKLOADS,
	      "x.conf:2: ", "flows = 0");
#undef LOAD
#define ANTAGONIST(text) WORKLOADS SYSTEMS "antagonists = { h = { " text " }; };"
	wrong(ANTAGONIST(""), "x.conf:3: ", "kind = \"hog\", \"background\" or \"awake\"");
	wrong(ANTAGONIST("kind = \"hogg\";"), "x.conf:3: unknown kind \"hogg\"",
	      "one of hog, background, awake");
	wrong(ANTAGONIST("\n kidn = \"hog\";"), "x.conf:4: unknown key \"kidn\"",
	      "keys are kind, threads, cpus, nice, load");
	wrong(ANTAGONIST("kind = \"background\";\n lode = { };"), "x.conf:4: unknown key \"lode\"",
	      "keys are kind, cpus, load");
	wrong(ANTAGONIST("kind = \"background\"; load = {\n knd = \"rr\"; };"),
	      "x.conf:4: unknown key \"knd\"", "keys are name, kind, ");
	wrong(ANTAGONIST("kind = \"hog\"; nice = 30;"), "x.conf:3: ", "nice = 30: out of range");
	wrong(ANTAGONIST("kind = \"hog\"; load = { };"), "x.conf:3: ", "unknown key \"load\"");
	wrong(ANTAGONIST("kind = \"background\";"), "x.conf:3: ", "what does it send?");
	wrong(ANTAGONIST("kind = \"background\"; load = { kind = \"rr\"; idle = \"1s\"; };"),
	      "x.conf:3: ", "kind rr has no idle");
#undef ANTAGONIST
}

/* One more than there is room for, of each. */
static void too_many(void **state)
{
	static const char *const knobs[SPEC_KNOBS_MAX + 1] = {
		"threaded",
		"napi_defer_hard_irqs",
		"gro_flush_timeout",
		"irq_suspend_timeout",
		"rps_cpus",
		"rps_flow_cnt",
		"irq_cpus",
		"gro",
		"gso",
		"tso",
		"tx_csum",
		"rx_csum",
		"rx_usecs",
		"rx_frames",
		"tx_usecs",
		"adaptive_rx",
		"busy_poll",
	};
	char text[8192];
	int n = snprintf(text, sizeof(text), WORKLOADS "systems = {\n");

	(void)state;
	for (int i = 0; i <= SPEC_SYSTEMS_MAX; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "s%d = { };\n", i);
	snprintf(text + n, sizeof(text) - (size_t)n, "};");
	wrong(text, "x.conf:35: more than 32 systems", "");
	n = snprintf(text, sizeof(text), SYSTEMS "workloads = {\n");
	for (int i = 0; i <= SPEC_WORKLOADS_MAX; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "w%d = { kind = \"rr\"; };\n", i);
	snprintf(text + n, sizeof(text) - (size_t)n, "};");
	wrong(text, "x.conf:19: more than 16 workloads", "");
	n = snprintf(text, sizeof(text), WORKLOADS "systems = { k = { knobs = {\n");
	for (int i = 0; i <= SPEC_KNOBS_MAX; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s = 1;\n", knobs[i]);
	snprintf(text + n, sizeof(text) - (size_t)n, "}; }; };");
	wrong(text, "x.conf:19: more than 16 knobs", "");
	n = snprintf(text, sizeof(text), WORKLOADS SYSTEMS "antagonists = {\n");
	for (int i = 0; i <= SPEC_ANTAGONISTS_MAX; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "a%d = { kind = \"hog\"; };\n",
			      i);
	snprintf(text + n, sizeof(text) - (size_t)n, "};");
	wrong(text, "x.conf:8: more than 4 antagonists", "");
	n = snprintf(text, sizeof(text), WORKLOADS SYSTEMS "title = \"");
	memset(text + n, 'x', SPEC_TEXT_MAX);
	snprintf(text + n + SPEC_TEXT_MAX, sizeof(text) - (size_t)n - SPEC_TEXT_MAX, "\";");
	wrong(text, "x.conf:3: title is too long: 1023 bytes at most", "");
}

static void wrong_settings_by_path(void **state)
{
	(void)state;
	wrong_set(EVERYTHING, "systems.z.queues", "2", "there is no \"z\" in systems: n, k, c");
	wrong_set(EVERYTHING, "systems.[3].queues", "2", "there is no [3] in systems");
	wrong_set(EVERYTHING, "systems.[x].queues", "2", "[0] is the first");
	wrong_set(EVERYTHING, "systems.n.queus", "2", "unknown key \"queus\": the keys are name, ");
	wrong_set(EVERYTHING, "systems.n.queues", "many", "it is a number");
	wrong_set(EVERYTHING, "title", "caf\xe9", "not UTF-8");
	wrong_set(EVERYTHING, "title.x", "1", "title has no members");
	wrong_set(EVERYTHING, "quick..x", "1", "\"\" is no name");
	wrong_set(EVERYTHING, "", "1", "a key is a path");
	wrong_set(EVERYTHING, "workloads.s.sizes.[0]", "x", "set the whole list");
	wrong_set(EVERYTHING, "workloads.s.sizes.[9]", "1", "there is no [9] in sizes");
	wrong_set(EVERYTHING, "workloads.r.sizes", "[ 50 ]",
		  ": a workload of kind rr has no sizes");
	wrong_set(EVERYTHING, "workloads.s.sizes", "[ 5 ]", "[ 5 ]: sizes: datagrams of 5 B");
	/* What it makes wrong elsewhere is said with its line. */
	wrong_set(EVERYTHING, "topology", "middle", "x.conf:8: n: this handler needs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_counts),
		cmocka_unit_test(wrong_root),
		cmocka_unit_test(wrong_given),
		cmocka_unit_test(wrong_system),
		cmocka_unit_test(wrong_settings),
		cmocka_unit_test(wrong_places_and_knobs),
		cmocka_unit_test(wrong_workload),
		cmocka_unit_test(too_many),
		cmocka_unit_test(wrong_settings_by_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

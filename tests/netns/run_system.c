/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies and systems of a specification: packets pass when they are said to, what was asked is
 * observed, and nothing is left of them.
 */
#include "netns.h"
#include "test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/cputime.h>
#include <lab/inside.h>
#include <lab/run/record.h>
#include <lab/run/system.h>

#define PORT 4711
/* Tries of 20 ms each: many for what has to pass, a few for what must not. */
#define PATIENT 3000
#define BRIEF 50
#define END "workloads = { w = { kind = \"rr\"; protocol = \"udp\"; }; };\n"

static char rundir[] = "/tmp/napier-run-XXXXXX";

static void must(int rc, const struct error *err)
{
	if (rc < 0)
		fail_msg("%s (%d)", err->text, rc);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(rundir) ? 0 : -1;
}

/* Fails when a record or an engine's directory is left. */
static int cleanup(void **state)
{
	(void)state;
	return rmdir(rundir);
}

struct rig {
	struct spec *spec;
	struct topology topology;
	struct system system;
	struct load_config load;
	struct load_place server;
	int sockets[2];
};

static void rig_open(struct rig *rig, const char *text)
{
	struct cpuset cpus = {0};
	struct error err = {0};

	memset(rig, 0, sizeof(*rig));
	cpuset_add(&cpus, 0);
	cpuset_add(&cpus, 1);
	must(spec_parse("inline.conf", text, &cpus, NULL, 0, &rig->spec, &err), &err);
	must(topology_open(rig->spec, NULL, rundir, &rig->topology, &err), &err);
}

static void rig_close(struct rig *rig)
{
	topology_close(&rig->topology);
	spec_free(rig->spec);
}

static int started(struct rig *rig, unsigned system, struct error *err)
{
	const struct system_site site = {
		.topology = &rig->topology, .napier = NAPIER, .rundir = rundir};

	rig->load = rig->spec->workload[0].load;
	rig->server = (struct load_place){.netns = rig->topology.server.netns, .port = PORT};
	return system_start(&site, &rig->spec->system[system], &rig->system, &rig->load,
			    &rig->server, err);
}

static void start(struct rig *rig, unsigned system)
{
	struct error err = {0};

	must(started(rig, system, &err), &err);
}

static void stop(struct rig *rig)
{
	struct error err = {0};

	must(system_stop(&rig->system, &err), &err);
	system_forget(&rig->system);
}

/* In its namespace. */
static int socket_open(void *arg)
{
	const struct topology *t = arg;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct timeval patience = {.tv_usec = 20000};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!t)
		return bind(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : fd;
	inet_pton(AF_INET, t->server.address, &at.sin_addr);
	return connect(fd, (struct sockaddr *)&at, sizeof(at)) ? -errno : fd;
}

/* A datagram from the client to the server, at some tries: until neighbours know each other. */
static bool passes_within(struct rig *rig, int tries)
{
	struct topology *t = &rig->topology;
	struct error err = {0};
	int server = inside_run(t->server.netns, socket_open, NULL, &err);
	int client = inside_run(t->client.netns, socket_open, t, &err);
	bool got = false;
	char byte;

	assert_true(server >= 0 && client >= 0);
	for (int i = 0; i < tries && !got; i++)
		got = send(client, "x", 1, 0) == 1 && recv(server, &byte, 1, 0) == 1;
	close(server);
	close(client);
	return got;
}

static bool passes(struct rig *rig)
{
	return passes_within(rig, PATIENT);
}

static const char *observed(const struct rig *rig, const char *key)
{
	const char *text = NULL;

	json_unpack(rig->system.settings, "{s:{s:s}}", key, "observed", &text);
	assert_non_null(text);
	return text;
}

static const char *placed_by(const struct rig *rig, const char *who)
{
	const json_t *o;
	size_t i;

	json_array_foreach(rig->system.placement, i,
			   o) if (!strcmp(json_string_value(json_object_get(o, "who")),
					  who)) return json_string_value(json_object_get(o, "by"));
	return NULL;
}

static unsigned napi_threads(const char *interface, pid_t tids[8])
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "napi/%s-", interface);
	return cputime_threads_find(prefix, tids, 8);
}

/* They end with what made them, but the kernel says so a moment before they are gone. */
static bool napi_threads_gone(const char *interface)
{
	pid_t tids[8];

	for (int i = 0; i < 60000 && napi_threads(interface, tids); i++)
		clock_sleep(NSEC_PER_MSEC);
	return !napi_threads(interface, tids);
}

static const char kernel_ends[] =
	"topology = \"ends\";\n" END "systems = {\n"
	"plain = { dut = \"kernel\"; place = { interrupt = 1; client = 0; }; };\n"
	"threaded = { dut = \"kernel\"; poller = \"threaded\"; place = { poller = 1; };\n"
	"  knobs = { gro_flush_timeout = 20000; }; };\n"
	"spinning = { dut = \"kernel\"; poller = \"threaded-busy-poll\"; };\n"
	"two = { dut = \"kernel\"; poller = \"threaded\"; queues = 2; };\n"
	"busy = { dut = \"kernel\"; poller = \"socket-busy-poll\"; busy_poll_usecs = 50;\n"
	"  prefer_busy_poll = true; };\n};\n";

static void kernel_sockets(void **state)
{
	struct error err = {0};
	struct rig rig;
	pid_t tids[8];
	cpu_set_t set;

	(void)state;
	rig_open(&rig, kernel_ends);
	start(&rig, 0);
	assert_true(passes(&rig));
	assert_string_equal(placed_by(&rig, "interrupt"), "rps");
	assert_true(json_array_size(rig.system.commands) > 0);
	stop(&rig);

	start(&rig, 1);
	assert_true(passes(&rig));
	assert_int_equal(napi_threads(rig.topology.server.interface, tids), 1);
	assert_int_equal(sched_getaffinity(tids[0], sizeof(set), &set), 0);
	assert_true(CPU_COUNT(&set) == 1 && CPU_ISSET(1, &set));
	assert_string_equal(observed(&rig, "gro_flush_timeout"), "20000");
	stop(&rig);
	assert_true(napi_threads_gone(rig.topology.server.interface));

	/* Kernels from 6.19 on have it; the others say so. */
	if (!started(&rig, 2, &err))
		assert_int_equal(system_stop(&rig.system, &err), 0);
	else
		assert_true(err.code == -EOPNOTSUPP && strstr(err.text, "6.19"));
	system_forget(&rig.system);

	start(&rig, 3);
	assert_true(passes(&rig));
	assert_int_equal(napi_threads(rig.topology.server.interface, tids), 2);
	stop(&rig);

	start(&rig, 4);
	assert_true(rig.load.prefer_busy_poll && rig.load.busy_poll_usecs == 50);
	assert_true(passes(&rig));
	stop(&rig);
	rig_close(&rig);
}

static const char napier_ends[] =
	"topology = \"ends\";\n" END "systems = {\n"
	"host = { dut = \"napier\"; handler = \"host\"; poller = \"thread\";\n"
	"  place = { poller = { cpus = 1; nice = 3; }; interrupt = 0; };\n"
	"  engine = { netdev_budget = 200; }; ports = { weight = 32; }; };\n"
	"socket = { dut = \"napier\"; poller = \"app\"; place = { poller = 1; };\n"
	"  engine = { netdev_budget = 200; }; };\n"
	"kernel = { dut = \"kernel\"; };\n};\n";

static void napier_host(void **state)
{
	struct error err = {0};
	struct rig rig;

	(void)state;
	rig_open(&rig, napier_ends);
	start(&rig, 0);
	assert_true(passes(&rig));
	assert_string_equal(observed(&rig, "poller"), "thread");
	assert_true(rig.system.engine.child.pid > 0);
	assert_non_null(placed_by(&rig, "poller"));
	stop(&rig);

	/* One that was killed has the host's addresses: they are put back. */
	start(&rig, 0);
	kill(rig.system.engine.child.pid, SIGKILL);
	assert_true(system_stop(&rig.system, &err) < 0);
	system_forget(&rig.system);
	start(&rig, 2);
	assert_true(passes(&rig));
	stop(&rig);

	start(&rig, 1);
	assert_true(rig.server.engine.used && rig.server.engine.poller == POLLER_APP);
	assert_true(cpuset_has(&rig.server.engine.cpus, 1));
	assert_string_equal(rig.server.engine.address, "10.78.0.2/24");
	assert_non_null(strstr(rig.server.engine.settings, "netdev_budget"));
	stop(&rig);

	/* What an engine had is as the kernel's systems want it again. */
	start(&rig, 2);
	assert_true(passes(&rig));
	stop(&rig);
	rig_close(&rig);
}

static const char middle[] =
	"topology = \"middle\";\n" END "systems = {\n"
	"bridge = { dut = \"kernel\"; handler = \"bridge\"; };\n"
	"router = { dut = \"kernel\"; handler = \"router\"; poller = \"threaded\"; };\n"
	"napier = { dut = \"napier\"; handler = \"bridge\"; poller = \"busy-poll\"; };\n"
	"again = { dut = \"kernel\"; handler = \"bridge\"; queues = 2; };\n};\n";

static void in_the_middle(void **state)
{
	struct rig rig;

	(void)state;
	rig_open(&rig, middle);
	for (unsigned i = 0; i < 4; i++) {
		start(&rig, i);
		assert_string_equal(rig.topology.server.address,
				    i == 1 ? "10.78.1.2" : "10.78.0.2");
		assert_true(passes(&rig));
		stop(&rig);
		assert_false(i != 1 && passes_within(&rig, BRIEF));
	}
	rig_close(&rig);
}

static const char commands[] =
	"topology = \"middle\";\n" END "systems = {\n"
	"bridge = { dut = \"command\"; command = \"ip link add br0 type bridge && ip link set br0 "
	"up "
	"&& "
	"ip link set $NAPIER_IF_A master br0 && ip link set $NAPIER_IF_B master br0 && echo ready; "
	"sleep 100; true\"; };\n"
	"fails = { dut = \"command\"; command = \"echo so it is >&2; exit 3\"; };\n};\n";

/* What system_tend says when it has ended, which is waited for. */
static int command_end(struct rig *rig, struct error *err)
{
	int ended = 0;

	for (int i = 0; i < 60000 && !ended; i++) {
		ended = system_tend(&rig->system, err);
		clock_sleep(NSEC_PER_MSEC);
	}
	return ended;
}

/* Its shell, and what that started. */
static void command(void **state)
{
	struct error err = {0}, ignored;
	struct rig rig;
	pid_t tids[8], group;
	unsigned n = 0;
	int ended;

	(void)state;
	rig_open(&rig, commands);
	start(&rig, 0);
	assert_true(passes(&rig));
	group = rig.system.command.pid;
	/* It said that it is ready before it started the second. */
	for (int i = 0; i < 60000 && n != 2; i++) {
		n = system_command_threads(&rig.system, tids, 8);
		clock_sleep(NSEC_PER_MSEC);
	}
	assert_int_equal(n, 2);
	assert_int_equal(system_tend(&rig.system, &err), 0);
	stop(&rig);
	/* All have ended; who has them now, in the shell's place, has still to take note of it. */
	for (int i = 0; i < 60000 && !kill(-group, 0); i++)
		clock_sleep(NSEC_PER_MSEC);
	assert_true(kill(-group, 0) && errno == ESRCH);

	/* One of which nothing is heard for a second, as on a busy machine, is taken to be ready.
	 */
	ended = started(&rig, 1, &err);
	if (!ended) {
		ended = command_end(&rig, &err);
		system_stop(&rig.system, &ignored);
	}
	assert_int_equal(ended, -ECHILD);
	assert_non_null(strstr(err.text, "so it is"));
	assert_int_equal(rig.system.command.pid, 0);
	system_forget(&rig.system);

	/* One that ends too early, while it is measured. */
	start(&rig, 0);
	kill(-rig.system.command.pid, SIGKILL);
	assert_int_equal(command_end(&rig, &err), -ECHILD);
	assert_non_null(strstr(err.text, "killed by signal 9"));
	/* It is told once. */
	assert_int_equal(system_tend(&rig.system, &err), 0);
	system_stop(&rig.system, &err);
	system_forget(&rig.system);
	rig_close(&rig);
}

static unsigned files_in(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += *entry->d_name != '.';
	closedir(dir);
	return n;
}

/* It has the mark by which it is found: it executes its program, with the environment of that. */
static bool is_marked(pid_t pid)
{
	static char text[1 << 17];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && memmem(text, (size_t)n, RECORD_MARK "=", strlen(RECORD_MARK "="));
}

/* After kill -9 of who had started a command, the next start ends what it left. */
static void killed(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		char mark[32];
		struct error err;
		pid_t left;

		snprintf(mark, sizeof(mark), RECORD_MARK "=%d", getpid());
		putenv(mark);
		if (record_add(rundir, "command", &err))
			_exit(1);
		left = fork();
		if (!left) {
			execlp("sleep", "sleep", "100", NULL);
			_exit(1);
		}
		for (int i = 0; i < 60000 && !is_marked(left); i++)
			clock_sleep(NSEC_PER_MSEC);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(files_in(rundir), 1);
	assert_int_equal(record_recover(rundir), 1);
	assert_int_equal(files_in(rundir), 0);
	assert_int_equal(record_recover(rundir), 0);
}

/* The same for a bridge in a namespace that was given, which nothing else would take away. */
static void killed_with_a_bridge(void **state)
{
	char text[128], bridge[16];
	struct netlab *lab;
	struct error err = {0};
	pid_t child;
	int status;

	(void)state;
	must(netlab_open(rundir, &lab, &err), &err);
	must(netlab_namespace_add(lab, "g", &err), &err);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		snprintf(text, sizeof(text), "bridge %s np%dbr", lab->namespace[0].name, getpid());
		/* Ours, and one that we could not have made. */
		if (record_add(rundir, text, &err) || record_add(rundir, "bridge - eth0", &err))
			_exit(1);
		raise(SIGKILL);
	}
	snprintf(bridge, sizeof(bridge), "np%dbr", child);
	must(netlab_bridge_add(lab, 0, bridge, &err), &err);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(record_recover(rundir), 1);
	assert_true(netlab_link_delete(lab, 0, bridge, &err) < 0);
	netlab_close(lab);
}

/* A lab's own namespaces as given ones. */
static struct netlab *given_open(char text[1024], const char *server_address)
{
	struct netlab *lab;
	struct error err = {0};
	char c[16], s[16];

	must(netlab_open(rundir, &lab, &err), &err);
	must(netlab_namespace_add(lab, "c", &err), &err);
	must(netlab_namespace_add(lab, "s", &err), &err);
	netlab_name(lab, "gc", c);
	netlab_name(lab, "gs", s);
	must(netlab_veth_add(lab, 0, c, 1, s, &err), &err);
	must(netlab_address_add(lab, 0, c, "10.7.0.1", 24, &err), &err);
	must(netlab_address_add(lab, 1, s, "10.7.0.2", 24, &err), &err);
	must(netlab_link_up(lab, 0, c, true, &err), &err);
	must(netlab_link_up(lab, 1, s, true, &err), &err);
	must(netlab_offload_set(lab, 1, s, NETLAB_GRO, true, &err), &err);
	snprintf(text, 1024,
		 "topology = \"ends\";\n"
		 "given = { client = { interface = \"%s\"; netns = \"%s\"; address = "
		 "\"10.7.0.1/24\"; };\n"
		 "server = { interface = \"%s\"; netns = \"%s\"; address = \"%s\"; }; };\n" END
		 "systems = { t = { poller = \"threaded\"; }; n = { dut = \"napier\"; "
		 "handler = \"host\"; }; q = { queues = 2; }; };\n",
		 c, lab->namespace[0].name, s, lab->namespace[1].name, server_address);
	return lab;
}

static void given(void **state)
{
	char text[1024];
	struct netlab *lab = given_open(text, "10.7.0.2/24");
	struct error err = {0};
	struct rig rig;
	pid_t tids[8];

	(void)state;
	rig_open(&rig, text);
	assert_null(rig.topology.lab);
	assert_string_equal(rig.topology.server.address, "10.7.0.2");
	assert_string_equal(rig.topology.client.address, "10.7.0.1");
	start(&rig, 0);
	assert_true(passes(&rig));
	assert_int_equal(napi_threads(rig.topology.server.interface, tids), 1);
	stop(&rig);
	assert_true(napi_threads_gone(rig.topology.server.interface));
	start(&rig, 1);
	assert_true(passes(&rig));
	stop(&rig);
	assert_int_equal(started(&rig, 2, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "ethtool -L"));
	system_forget(&rig.system);
	rig_close(&rig);
	netlab_close(lab);
}

/* Each names the thing. */
static void refused(void **state)
{
	static const struct {
		const char *client, *client_ns, *client_address, *server, *server_ns,
			*server_address, *says;
	} cases[] = {
		{"lo", "", "10.0.0.1/24", "%2$s", "none", "10.7.0.2/24", "none"},
		{"none0", "", "10.0.0.1/24", "%2$s", "%1$s", "10.7.0.2/24", "none0"},
		{"none0", "", "10.0.0.1/24", "%2$s", "%1$s", "10.9.9.9/24",
		 "has no address 10.9.9.9"},
		{"lo", "/proc/self/ns/net", "127.0.0.1/8", "lo", "", "127.0.0.1/8",
		 "one network namespace"},
		{"lo", "", "127.0.0.1/8", "%3$s", "%1$s", "10.7.0.2/24", "is down"},
	};
	char made[1024];
	struct netlab *lab = given_open(made, "10.7.0.2/24");
	struct cpuset cpus = {0};
	char s[16], down[16];
	struct error made_err = {0};

	(void)state;
	cpuset_add(&cpus, 0);
	netlab_name(lab, "gs", s);
	netlab_name(lab, "gd", down);
	must(netlab_veth_add(lab, 1, down, 0, "peer", &made_err), &made_err);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char form[512], text[1024];
		struct topology topology;
		struct error err = {0};
		struct spec *spec;

		snprintf(form, sizeof(form),
			 "topology = \"ends\"; given = { client = { interface = \"%s\"; netns = "
			 "\"%s\"; "
			 "address = \"%s\"; }; server = { interface = \"%s\"; netns = \"%s\"; "
			 "address = \"%s\"; }; };\n" END "systems = { k = { }; };\n",
			 cases[i].client, cases[i].client_ns, cases[i].client_address,
			 cases[i].server, cases[i].server_ns, cases[i].server_address);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), form, lab->namespace[1].name, s, down);
#pragma GCC diagnostic pop
		must(spec_parse("inline.conf", text, &cpus, NULL, 0, &spec, &err), &err);
		assert_true(topology_open(spec, NULL, rundir, &topology, &err) < 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%zu: %s", i, err.text);
		spec_free(spec);
	}
	netlab_close(lab);
}

/* Another host's: there is a way to it, and its interface is not ours to set. */
static void remote(void **state)
{
	struct cpuset cpus = {0};
	struct topology topology;
	struct system system;
	struct load_config load;
	struct load_place server = {0};
	struct error err = {0};
	struct spec *spec;
	json_t *o;

	(void)state;
	cpuset_add(&cpus, 0);
	must(spec_parse("inline.conf", kernel_ends, &cpus, NULL, 0, &spec, &err), &err);
	must(topology_open(spec, "127.0.0.1", rundir, &topology, &err), &err);
	assert_true(topology.remote && !topology.duts);
	assert_string_equal(topology.server.address, "127.0.0.1");
	assert_string_equal(topology.client.interface, "lo");
	o = topology_json(&topology);
	assert_true(json_is_true(json_object_get(o, "remote")));
	json_decref(o);
	load = spec->workload[0].load;
	assert_int_equal(system_start(&(struct system_site){&topology, NAPIER, rundir},
				      &spec->system[1], &system, &load, &server, &err),
			 -EOPNOTSUPP);
	system_forget(&system);
	topology_close(&topology);
	assert_true(topology_open(spec, "no such host", rundir, &topology, &err) < 0);
	assert_non_null(strstr(err.text, "no such host"));
	spec_free(spec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_sockets), cmocka_unit_test(napier_host),
		cmocka_unit_test(in_the_middle),  cmocka_unit_test(command),
		cmocka_unit_test(killed),	  cmocka_unit_test(killed_with_a_bridge),
		cmocka_unit_test(given),	  cmocka_unit_test(refused),
		cmocka_unit_test(remote),
	};

	netns_require();
	return cmocka_run_group_tests(tests, setup, cleanup);
}

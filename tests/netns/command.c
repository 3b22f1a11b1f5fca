/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command as people run it: the real program, on real links, in another process.
 *
 * Every engine runs under a run directory of this test's own, and tells by NOTIFY_SOCKET when it is
 * ready, as it tells a service manager.
 */
#include "test.h"

#include "netns.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#define TEXT_MAX 65536
#define READY_MS 120000 /* only against hanging */

struct rig {
	struct netns_links links;
	char base[32];	   /* --run-dir */
	char spec[2][256]; /* "packet:in0,netns=…,name=p0" */
	int notify;
	pid_t engine; /* 0: none runs */
};

/* One run of the program. */
struct process {
	pid_t pid;
	char out_path[64], err_path[64];
	char out[TEXT_MAX], err[TEXT_MAX];
	int status; /* exit status; -1: killed by a signal, or too slow */
};

static void file_read(const char *path, char *text)
{
	int fd = open(path, O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, TEXT_MAX - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

static int file_new(const struct rig *rig, const char *kind, char path[64])
{
	static unsigned count;

	snprintf(path, 64, "%s/%s-%u", rig->base, kind, count++);
	return open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
}

/* Starts "napier ARGUMENTS", which are split at blanks. */
static void process_start(struct rig *rig, struct process *p, const char *arguments)
{
	char copy[2048], *argv[64] = {NAPIER}, *rest = copy;
	int argc = 1, out, err;

	snprintf(copy, sizeof(copy), "%s", arguments);
	while ((argv[argc] = strsep(&rest, " ")))
		argc++;
	out = file_new(rig, "out", p->out_path);
	err = file_new(rig, "err", p->err_path);
	assert_true(out >= 0 && err >= 0);
	fflush(NULL);
	p->pid = fork();
	assert_true(p->pid >= 0);
	if (!p->pid) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		execv(NAPIER, argv);
		_exit(126);
	}
	close(out);
	close(err);
}

static void process_end(struct process *p)
{
	p->status = netns_wait(p->pid, 60);
	file_read(p->out_path, p->out);
	file_read(p->err_path, p->err);
	unlink(p->out_path);
	unlink(p->err_path);
}

/*
 * Runs it to its end; returns its status. A switch that a busy machine does not get done in its
 * second fails with everything as it was, and is asked for again.
 */
__attribute__((format(printf, 3, 4))) static int napier(struct rig *rig, struct process *p,
							const char *format, ...)
{
	char arguments[2048];
	va_list list;

	va_start(list, format);
	vsnprintf(arguments, sizeof(arguments), format, list);
	va_end(list);
	for (int i = 0; i < 30; i++) {
		process_start(rig, p, arguments);
		process_end(p);
		if (!p->status || !strstr(p->err, "its poll did not end in time"))
			break;
	}
	return p->status;
}

static bool notified(const struct rig *rig, const char *state, int ms)
{
	struct pollfd wait = {.fd = rig->notify, .events = POLLIN};
	char text[64];

	while (poll(&wait, 1, ms) == 1) {
		ssize_t n = recv(rig->notify, text, sizeof(text) - 1, 0);

		text[n > 0 ? n : 0] = '\0';
		if (!strcmp(text, state))
			return true;
	}
	return false;
}

/* A running engine on both links. */
__attribute__((format(printf, 3, 4))) static void engine_start(struct rig *rig, struct process *p,
							       const char *format, ...)
{
	char arguments[2048];
	va_list list;

	va_start(list, format);
	vsnprintf(arguments, sizeof(arguments), format, list);
	va_end(list);
	process_start(rig, p, arguments);
	rig->engine = p->pid;
	if (notified(rig, "READY=1", READY_MS))
		return;
	rig->engine = 0;
	kill(p->pid, SIGKILL);
	process_end(p);
	fail_msg("napier %s: %s", arguments, p->err);
}

static void engine_signal(struct rig *rig, struct process *p, int number)
{
	kill(p->pid, number);
	process_end(p);
	rig->engine = 0;
	if (number != SIGKILL)
		assert_true(notified(rig, "STOPPING=1", 0));
}

static int rig_open(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct rig *rig = calloc(1, sizeof(*rig));

	netns_links_open(&rig->links, false);
	strcpy(rig->base, "/tmp/napier-command-XXXXXX");
	assert_non_null(mkdtemp(rig->base));
	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, "packet", "", rig->spec[i]);
	rig->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", rig->base);
	assert_int_equal(bind(rig->notify, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("NOTIFY_SOCKET", address.sun_path, 1);
	*state = rig;
	return 0;
}

static int rig_close(void **state)
{
	struct rig *rig = *state;
	char path[64], clear[64];
	bool left;

	if (rig->engine) { /* the test failed while it ran */
		kill(rig->engine, SIGKILL);
		netns_wait(rig->engine, 10);
	}
	snprintf(path, sizeof(path), "%s/notify", rig->base);
	unlink(path);
	close(rig->notify);
	/* Nothing but that may be in it. */
	left = rmdir(rig->base) && !rig->engine;
	snprintf(clear, sizeof(clear), "rm -rf %s", rig->base);
	assert_int_equal(netns_run(&rig->links, rig->links.inner[0], "%s", clear), 0);
	netns_links_close(&rig->links);
	free(rig);
	assert_false(left);
	return 0;
}

static json_t *show_json(struct rig *rig, const char *arguments)
{
	struct process p;
	json_t *view;

	if (napier(rig, &p, "show -j --run-dir %s%s", rig->base, arguments))
		fail_msg("%s", p.err);
	view = json_loads(p.out, 0, NULL);
	assert_non_null(view);
	return view;
}

/* The object in an array of the view whose member has this text; borrowed. NULL: none. */
static json_t *find(const json_t *view, const char *array, const char *member, const char *text)
{
	size_t i;
	json_t *o;

	json_array_foreach(json_object_get(view, array), i, o)
	{
		const char *value = json_string_value(json_object_get(o, member));

		if (value && !strcmp(value, text))
			return o;
	}
	return NULL;
}

static long long number(const json_t *o, const char *member)
{
	assert_true(json_is_integer(json_object_get(o, member)));
	return json_integer_value(json_object_get(o, member));
}

static const char *text(const json_t *o, const char *member)
{
	assert_true(json_is_string(json_object_get(o, member)));
	return json_string_value(json_object_get(o, member));
}

/* Waits, bounded, until a port is in this state. */
static void state_wait(struct rig *rig, const char *port, const char *wanted)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	for (int i = 0; i < 200; i++) {
		json_t *view = show_json(rig, "");
		json_t *o = find(view, "ports", "name", port);
		bool there = o && !strcmp(text(o, "state"), wanted);

		json_decref(view);
		if (there)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("port %s does not become %s", port, wanted);
}

/* "a/0 poller thread (was softirq), 41 us\n", whatever the time. */
static void assert_switched(const char *line, const char *before)
{
	char *end;

	assert_memory_equal(line, before, strlen(before));
	strtod(line + strlen(before), &end);
	assert_true(end > line + strlen(before));
	assert_true(!strcmp(end, " us\n") || !strcmp(end, " ms\n") || !strcmp(end, " ns\n"));
}

/* Bridges two links, moves its polling while it does, and ends by Ctrl-C. */
static void bridge_moves(struct rig *rig, const char *kind)
{
	struct process engine, p;
	json_t *view, *o;

	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, kind, "", rig->spec[i]);
	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(netns_cross(&rig->links, 0, 2000, 60), 2000);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 poller=thread", rig->base), 0);
	assert_switched(p.out, "p0/0 poller thread (was softirq), ");
	assert_int_equal(netns_cross(&rig->links, 0, 2000, 60), 2000);
	assert_int_equal(netns_cross(&rig->links, 1, 500, 1514), 500);
	assert_int_equal(napier(rig, &p, "show --fdb --run-dir %s", rig->base), 0);
	assert_memory_equal(p.out, "ADDRESS            VLAN  PORT  AGE\n", 35);
	assert_non_null(strstr(p.out, "02:00:00:00:00:0a     -  p0    "));
	assert_non_null(strstr(p.out, "02:00:00:00:00:0b     -  p1    "));
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0/0 poller=thread", rig->base), 0);
	assert_string_equal(p.out, "p0/0 poller thread\n");

	view = show_json(rig, "");
	assert_string_equal(text(json_object_get(view, "engine"), "name"), "default");
	assert_int_equal(number(json_object_get(view, "engine"), "pid"), engine.pid);
	o = find(view, "ports", "name", "p0");
	assert_int_equal(number(o, "rx_packets"), 4000);
	assert_int_equal(number(o, "tx_packets"), 500);
	assert_string_equal(text(o, "state"), "up");
	o = find(view, "napis", "port", "p0");
	assert_string_equal(text(o, "poller"), "thread");
	assert_string_equal(text(json_object_get(o, "thread"), "name"), "napi/p0-0");
	json_decref(view);

	engine_signal(rig, &engine, SIGINT);
	assert_int_equal(engine.status, 0);
	assert_non_null(strstr(engine.out, "received 4500 + cloned "));
	assert_null(strstr(engine.err, "error"));
}

static void ignores_hangup_under_nohup(void **state)
{
	struct rig *rig = *state;
	struct process engine;

	signal(SIGHUP, SIG_IGN);
	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	signal(SIGHUP, SIG_DFL);
	kill(engine.pid, SIGHUP);
	assert_false(notified(rig, "STOPPING=1", 500));
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);

	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	engine_signal(rig, &engine, SIGHUP);
	assert_int_equal(engine.status, 0);
}

static void bridge_moves_packet(void **state)
{
	bridge_moves(*state, "packet");
}

static void bridge_moves_xdp(void **state)
{
	bridge_moves(*state, "xdp");
}

/* What others do to a thread is shown, and not fought (case 26). */
static void shows_outside_changes(void **state)
{
	struct rig *rig = *state;
	struct sched_param fifo = {.sched_priority = 3};
	struct process engine, p;
	json_t *view, *o, *thread;
	cpu_set_t first;
	pid_t tid;

	engine_start(rig, &engine, "run --poller thread --run-dir %s %s", rig->base, rig->spec[0]);
	view = show_json(rig, " p0/0");
	thread = json_object_get(json_array_get(json_object_get(view, "napis"), 0), "thread");
	tid = (pid_t)number(thread, "tid");
	assert_string_equal(text(thread, "class"), "fair");
	json_decref(view);

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	assert_int_equal(sched_setaffinity(tid, sizeof(first), &first), 0);
	assert_int_equal(sched_setscheduler(tid, SCHED_FIFO, &fifo), 0);
	view = show_json(rig, "");
	o = find(view, "napis", "port", "p0");
	thread = json_object_get(o, "thread");
	assert_string_equal(text(thread, "cpus"), "0");
	assert_string_equal(text(thread, "class"), "fifo");
	assert_int_equal(number(thread, "priority"), 3);
	assert_string_equal(text(json_object_get(o, "thread_asked"), "class"), "fair");
	o = find(view, "runners", "name", "napi/p0-0");
	assert_string_equal(text(o, "napi"), "p0/0");
	assert_string_equal(text(o, "class"), "fifo");
	assert_string_equal(text(json_object_get(o, "asked"), "class"), "fair");
	json_decref(view);

	/* One key changes one thing: the affinity stays as others made it. */
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 nice=5", rig->base), 0);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)tid), 5);
	assert_int_equal(sched_getaffinity(tid, sizeof(first), &first), 0);
	assert_int_equal(CPU_COUNT(&first), 1);
	assert_non_null(strstr(p.out, "p0/0 class fair nice 5, thread "));
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

static void sets_keep(void **state)
{
	struct rig *rig = *state;
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
	struct rig *rig = *state;
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* Asked for at the start, live, as the default; shown with what it chose; ended by another. */
static void chooses_pollers(void **state)
{
	struct rig *rig = *state;
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* Traffic both ways, from a process of its own, until that is killed. */
static pid_t traffic_start(struct rig *rig)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		netns_cross(&rig->links, 0, 1000, 60);
		netns_cross(&rig->links, 1, 1000, 60);
	}
}

/* What a person put on one CPU stays there, and goes elsewhere with --force, when it is loaded. */
static void rebalances(void **state)
{
	struct rig *rig = *state;
	struct process engine, p;
	long long cpus = 0;
	pid_t child;

	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(napier(rig, &p, "rebalance --dry-run -i 0.1 --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "nothing to gain"));
	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 cpu=0", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 cpu=0", rig->base), 0);
	child = traffic_start(rig);
	assert_int_equal(napier(rig, &p, "rebalance -i 0.2 --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "nothing to gain"));
	for (int i = 0; i < 50 && !cpus && sysconf(_SC_NPROCESSORS_ONLN) > 1; i++) {
		json_t *o, *view;

		assert_int_equal(
			napier(rig, &p, "rebalance -j --force -i 0.2 --run-dir %s", rig->base), 0);
		o = json_loads(p.out, 0, NULL);
		assert_non_null(o);
		view = show_json(rig, "");
		cpus = number(find(view, "napis", "port", "p0"), "cpu") +
		       number(find(view, "napis", "port", "p1"), "cpu");
		assert_int_equal(json_array_size(json_object_get(o, "moves")), cpus);
		assert_int_equal(json_is_true(json_object_get(o, "made")), cpus != 0);
		json_decref(view);
		json_decref(o);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(cpus || sysconf(_SC_NPROCESSORS_ONLN) == 1);
	assert_int_equal(napier(rig, &p, "rebalance x --run-dir %s", rig->base), 2);
	assert_string_equal(p.err, "napier: rebalance: too many arguments\n");
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* Every thread that can poll, with what was asked of it; also what others changed (case 26). */
static void shows_runners(void **state)
{
	struct sched_param fifo = {.sched_priority = 7};
	struct rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;

	engine_start(rig, &engine, "run --cpus 0 --run-dir %s %s %s", rig->base, rig->spec[0],
		     rig->spec[1]);
	assert_int_equal(
		napier(rig, &p, "set --run-dir %s p0 poller=busy-poll idle_suspend=100", rig->base),
		0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 poller=workqueue", rig->base), 0);
	assert_int_equal(netns_cross(&rig->links, 0, 500, 60), 500);
	view = show_json(rig, "");
	o = find(view, "runners", "name", "busy/0");
	assert_non_null(o);
	assert_int_equal(sched_setscheduler((pid_t)number(o, "tid"), SCHED_FIFO, &fifo), 0);
	assert_non_null(find(view, "runners", "name", "irq/0"));
	assert_non_null(find(view, "runners", "name", "ksoftirqd/0"));
	assert_non_null(find(view, "runners", "name", "kworker/1"));
	assert_string_equal(
		text(json_object_get(find(view, "runners", "name", "kworker/1"), "asked"), "cpus"),
		"0");
	assert_true(number(find(view, "napis", "port", "p0"), "wakes") > 0);
	assert_true(number(find(view, "napis", "port", "p0"), "wake_p99_ns") > 0);
	json_decref(view);

	view = show_json(rig, " --interval 0.1");
	o = find(view, "runners", "name", "busy/0");
	assert_string_equal(text(o, "class"), "fifo");
	assert_int_equal(number(o, "priority"), 7);
	assert_string_equal(text(json_object_get(o, "asked"), "class"), "fair");
	assert_in_range(number(json_object_get(view, "load"), "interval_ns"), 100000000,
			60000000000);
	assert_int_equal(number(find(view, "napis", "port", "p0"), "rate"), 0);
	json_decref(view);
	assert_int_equal(napier(rig, &p, "show --run-dir %s --interval x", rig->base), 2);
	assert_string_equal(p.err, "napier: --interval x: a time in seconds, 0.01 to 3600\n");

	assert_int_equal(napier(rig, &p, "set --run-dir %s p0 poller=softirq", rig->base), 0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 poller=softirq", rig->base), 0);
	view = show_json(rig, "");
	assert_null(find(view, "runners", "name", "busy/0"));
	assert_null(find(view, "runners", "name", "kworker/0"));
	json_decref(view);
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* Of the engine and of its CPUs: from the file, then live, and each time what show says of it. */
static void sets_engine(void **state)
{
	static const char file[] = "engine = { cpus = \"0-1\"; netdev_budget = 200;"
				   " deferral = \"looped:3\";"
				   " cpu = ( { cpu = 1; deferral = \"never\"; } ); };\n"
				   "ports = ( { port = \"mem:m\"; } );\n";
	struct rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/engine.conf", rig->base);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(file, out);
	fclose(out);
	engine_start(rig, &engine, "run --run-dir %s -c %s", rig->base, path);
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
	unlink(path);
}

/* Steering: from the file and live, the backlogs as NAPIs, and what each CPU did. */
static void steers(void **state)
{
	static const char file[] =
		"engine = { cpus = \"0-1\"; rps_sock_flow_entries = 256;"
		" symmetric_hash = true; backlog = { poller = \"thread\"; }; };\n"
		"ports = ( { port = \"mem:m,name=m,peer=n\"; rps_cpus = \"0-1\"; },"
		" { port = \"mem:n,name=n\"; } );\n";
	struct rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/steer.conf", rig->base);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(file, out);
	fclose(out);
	engine_start(rig, &engine, "run --run-dir %s -c %s", rig->base, path);
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
	unlink(path);
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
		 "auto"},
		{"set p0 speed=9", 2,
		 "unknown key \"speed\": the keys are poller, weight, idle_suspend, cpu, cpus, "
		 "class, nice, priority, napi_defer_hard_irqs, gro_flush_timeout, rps_cpus, "
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
		 "cpus, class, nice, priority, napi_defer_hard_irqs, gro_flush_timeout, rps_cpus, "
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
		{"show --colour", 2, "unknown option --colour: see napier show --help"},
		{"show -xj", 2, "unknown option -x: see napier show --help"},
		{"show --name", 2, "--name needs a value: see napier show --help"},
		{"show --name other", 1,
		 "no engine named other is running (run directory %s/other)"},
		{"stop --name ../x", 2, "name \"../x\": 1 to 31 letters, digits, '_', '-' or '.'"},
		{"port remove p7", 1, "no port p7: napier show lists them"},
		{"port", 2, "port: what to do: add SPEC or remove PORT"},
		{"port add", 2, "port add: SPEC, such as xdp:eth0, is missing"},
		{"port add packet:in0,name=p0", 1,
		 "port p0 is there already: give this one name=… after a comma"},
		{"port add mem:x pvid=1", 1, "port x: VLANs need vlan_filtering = true in handler"},
		{"start", 2,
		 "unknown command \"start\": the commands are run, show, set, rebalance, port, "
		 "stop, demo"},
	};
	struct rig *rig = *state;
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* Does not start: one line, a status, and nothing left (rig_close looks). */
static void refuses_to_run(void **state)
{
	struct rig *rig = *state;
	const char *ns = rig->links.lab->namespace[rig->links.inner[0]].name;
	char file[64], truncated[64], empty[64], conf[64];
	struct {
		const char *arguments;
		int status;
		const char *says;
	} cases[] = {
		{"", 2, "no ports: name at least one, such as xdp:eth0"},
		{"eth0", 2, "port 'eth0': must be KIND:TARGET; kinds are "},
		{"dpdk:eth0", 2, "port 'dpdk:eth0': no kind 'dpdk'; kinds are "},
		{"--poller x packet:in0", 2,
		 "unknown poller \"x\": the pollers are softirq, thread, workqueue, busy-poll, "
		 "auto"},
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
	int fd;

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
	fd = file_new(rig, "not-a-pcap", file);
	assert_int_equal(write(fd, "hello, world, this is text\n", 27), 27);
	close(fd);
	fd = file_new(rig, "empty", empty);
	close(fd);
	fd = file_new(rig, "truncated", truncated);
	assert_int_equal(write(fd, header, 10), 10);
	close(fd);
	fd = file_new(rig, "conf", conf);
	assert_int_equal(write(fd, "ports = (\n{ prt = 1; } );\n", 26), 26);
	close(fd);
	for (int i = 0; i < 3; i++) {
		const char *path = (const char *[]){file, empty, truncated}[i];

		assert_int_equal(napier(rig, &p, "run --run-dir %s pcap:%s", rig->base, path), 1);
		assert_non_null(strstr(p.err, path));
		assert_ptr_equal(strchr(p.err, '\n'), p.err + strlen(p.err) - 1);
	}
	assert_int_equal(napier(rig, &p, "run --run-dir %s -c %s", rig->base, conf), 1);
	assert_non_null(strstr(p.err, ":2: this port has no device"));
	unlink(file);
	unlink(empty);
	unlink(truncated);
	unlink(conf);
}

/* A second engine of the same name, and one of another name on the same interface. */
static void refuses_second(void **state)
{
	struct rig *rig = *state;
	struct process engine, p;
	char says[256];

	for (int i = 0; i < 2; i++)
		netns_spec(&rig->links, i, "xdp", "", rig->spec[i]);
	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(napier(rig, &p, "run --run-dir %s mem:x", rig->base), 1);
	snprintf(says, sizeof(says),
		 "napier: an engine named default is running (pid %d): napier stop it, or give "
		 "this one another --name\n",
		 (int)engine.pid);
	assert_string_equal(p.err, says);
	assert_int_equal(napier(rig, &p, "run --run-dir %s --name two %s", rig->base, rig->spec[0]),
			 1);
	assert_non_null(strstr(p.err, "xdp:in0: the interface has an XDP program already"));
	assert_int_equal(netns_cross(&rig->links, 0, 1000, 60), 1000);
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* After kill -9 the interfaces and the run directory are free for the next. */
static void survives_kill(void **state)
{
	struct rig *rig = *state;
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* show reads the counters, and asks nobody. */
static void shows_while_stuck(void **state)
{
	struct rig *rig = *state;
	struct process engine, p;

	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	kill(engine.pid, SIGSTOP);
	assert_int_equal(napier(rig, &p, "show --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "engine default: pid "));
	assert_non_null(strstr(p.out, "packet:in0"));
	assert_int_equal(napier(rig, &p, "show --names --run-dir %s", rig->base), 0);
	assert_string_equal(p.out, "p0\np0/0\n");
	kill(engine.pid, SIGCONT);
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

static void follows_links(void **state)
{
	struct rig *rig = *state;
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
	assert_non_null(strstr(engine.err, "port p1: in1 is back, opened again\n"));
}

/*
 * A port is removed as soon as anybody is heard, while the engine may still be telling of its
 * start: a thread sanitizer sees whether the two are apart.
 */
static void serves_at_once(void **state)
{
	struct timespec pause = {.tv_nsec = 1000000};
	struct rig *rig = *state;
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
	struct rig *rig = *state;
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* Waits, bounded, until a port has received so many. */
static void received_wait(struct rig *rig, const char *arguments, const char *port, long long n)
{
	const struct timespec pause = {.tv_nsec = 50000000};

	for (int i = 0; i < 200; i++) {
		json_t *view = show_json(rig, arguments);
		long long now = number(find(view, "ports", "name", port), "rx_packets");

		json_decref(view);
		if (now >= n)
			return;
		nanosleep(&pause, NULL);
	}
	fail_msg("port %s does not receive %lld packets", port, n);
}

/* VLANs, pollers and the handler as a file says; and a port of another VLAN that comes later. */
static void obeys_the_file(void **state)
{
	struct rig *rig = *state;
	struct process engine, p;
	char path[64], conf[2048];
	int fd = file_new(rig, "conf", path);
	json_t *view, *o;

	snprintf(conf, sizeof(conf),
		 "engine = { name = \"lab\"; poller = \"thread\"; dev_weight = 20; };\n"
		 "handler = { vlan_filtering = true; };\n"
		 "ports = ( { port = \"%s\"; pvid = 10;\n"
		 "            queues = ( { queue = 0; poller = \"softirq\"; } ); },\n"
		 "          { port = \"%s\"; untagged = \"20\"; pvid = 20; } );\n",
		 rig->spec[0], rig->spec[1]);
	assert_int_equal(write(fd, conf, strlen(conf)), (ssize_t)strlen(conf));
	close(fd);
	engine_start(rig, &engine, "run --run-dir %s -c %s", rig->base, path);
	unlink(path);
	netns_flood(&rig->links, 0, 100, 60);
	received_wait(rig, " --name lab", "p0", 100);
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
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* What a terminal shows of `napier show`. */
static void terminal_read(struct rig *rig, char *out)
{
	size_t n = 0;
	ssize_t got;
	int fd;
	pid_t child = forkpty(&fd, NULL, NULL, NULL);

	assert_true(child >= 0);
	if (!child) {
		execl(NAPIER, NAPIER, "show", "--run-dir", rig->base, NULL);
		_exit(126);
	}
	while (n < TEXT_MAX - 1 && (got = read(fd, out + n, TEXT_MAX - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	close(fd);
	assert_int_equal(netns_wait(child, 10), 0);
}

static void colours_terminals_only(void **state)
{
	struct rig *rig = *state;
	static char out[TEXT_MAX];
	struct process engine, p;

	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	terminal_read(rig, out);
	assert_non_null(strstr(out, "\033[1mNAPI"));
	setenv("NO_COLOR", "1", 1);
	terminal_read(rig, out);
	assert_non_null(strstr(out, "NAPI"));
	assert_null(strchr(out, '\033'));
	unsetenv("NO_COLOR");
	assert_int_equal(napier(rig, &p, "show --run-dir %s", rig->base), 0);
	assert_null(strchr(p.out, '\033'));
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
}

/* The parent ends when all is open, and with what went wrong. */
static void goes_into_the_background(void **state)
{
	struct rig *rig = *state;
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

static void assert_state(struct rig *rig, const char *port, const char *state)
{
	json_t *view = show_json(rig, "");

	assert_string_equal(text(find(view, "ports", "name", port), "state"), state);
	json_decref(view);
}

/* No program is at their other end, so they are up in pairs only, and the others say so. */
static void pairs_inner_ports(void **state)
{
	struct rig *rig = *state;
	struct process engine, p;

	engine_start(rig, &engine, "run --run-dir %s --handler drop mem:a mem:b,peer=a mem:c",
		     rig->base);
	assert_state(rig, "a", "up");
	assert_state(rig, "b", "up");
	assert_state(rig, "c", "down");
	assert_int_equal(napier(rig, &p, "port --run-dir %s remove b", rig->base), 0);
	assert_state(rig, "a", "down");
	assert_int_equal(napier(rig, &p, "port --run-dir %s add mem:d,peer=c", rig->base), 0);
	assert_state(rig, "c", "up");
	assert_int_equal(napier(rig, &p, "port --run-dir %s add mem:e,peer=c", rig->base), 1);
	assert_string_equal(p.err, "napier: mem port e: peer=c: that has a peer already\n");
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);
	assert_null(strstr(engine.err, "port a: nobody"));
	assert_non_null(strstr(engine.err, "port c: nobody is at its other end"));
}

/* Files only: it ends by itself, with all sent. */
static void ends_with_its_input(void **state)
{
	static const unsigned char head[24] = {0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0,
					       0,    0,	   0,	 0,    0, 0, 4, 0, 1, 0, 0, 0};
	unsigned char record[16 + 60] = {0};
	struct rig *rig = *state;
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

static void tells_about_itself(void **state)
{
	static const char *const commands[] = {"run", "show", "set", "rebalance", "port", "stop"};
	struct rig *rig = *state;
	struct process p;

	assert_int_equal(napier(rig, &p, "--version"), 0);
	assert_string_equal(p.out, "napier " VERSION "\n");
	assert_int_equal(napier(rig, &p, "--help"), 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		char begin[64];

		assert_non_null(strstr(p.out, commands[i]));
		snprintf(begin, sizeof(begin), "Usage: napier %s ", commands[i]);
		assert_int_equal(napier(rig, &p, "%s --help", commands[i]), 0);
		assert_memory_equal(p.out, begin, strlen(begin));
		assert_null(strchr(p.out, '\033')); /* no colour into a file */
		assert_int_equal(napier(rig, &p, "--help"), 0);
	}
}

/* Runs it by a shell, for what a shell does to its files; returns its status. */
static int shell(const char *format, ...)
{
	char line[2048];
	va_list list;
	int status;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* With the standard streams closed, what is opened next would get their numbers, and their text. */
static void bears_closed_streams(void **state)
{
	struct rig *rig = *state;
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

/* Output that is lost is a failure, but not with a reader that has seen enough. */
static void tells_of_lost_output(void **state)
{
	struct rig *rig = *state;
	struct process engine;
	int ends[2];
	pid_t pid;

	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	assert_int_equal(shell(NAPIER " show -j --run-dir %s 2>/dev/null >/dev/full", rig->base),
			 1);
	assert_int_equal(shell(NAPIER
			       " show --run-dir %s 2>&1 >/dev/full | grep -q 'No space left'",
			       rig->base),
			 0);
	engine_signal(rig, &engine, SIGTERM);
	assert_int_equal(engine.status, 0);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		execl(NAPIER, NAPIER, "run", "--run-dir", rig->base, rig->spec[0], NULL);
		_exit(126);
	}
	close(ends[0]);
	close(ends[1]);
	assert_true(notified(rig, "READY=1", READY_MS));
	kill(pid, SIGTERM);
	assert_int_equal(netns_wait(pid, 60), 0);
}

/* Connections to the control socket, not yet accepted ones too, and the socket itself. */
static int connections(const struct rig *rig)
{
	char line[512], path[64];
	FILE *file = fopen("/proc/net/unix", "re");
	int n = 0;

	assert_non_null(file);
	snprintf(path, sizeof(path), "%s/default/control", rig->base);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, path) != NULL;
	fclose(file);
	return n;
}

/* Two that stop the same engine both see it end: the second is there before the first is heard. */
static void stops_once_for_all(void **state)
{
	struct timespec pause = {.tv_nsec = 5000000};
	struct process engine, p[2];
	struct rig *rig = *state;

	engine_start(rig, &engine, "run --run-dir %s %s %s", rig->base, rig->spec[0], rig->spec[1]);
	kill(engine.pid, SIGSTOP);
	for (int i = 0; i < 2; i++) {
		char arguments[64];

		snprintf(arguments, sizeof(arguments), "stop --run-dir %s", rig->base);
		process_start(rig, &p[i], arguments);
	}
	for (int i = 0; i < 4000 && connections(rig) < 3; i++)
		nanosleep(&pause, NULL);
	kill(engine.pid, SIGCONT);
	for (int i = 0; i < 2; i++) {
		process_end(&p[i]);
		assert_string_equal(p[i].err, "");
		assert_int_equal(p[i].status, 0);
	}
	rig->engine = 0;
	process_end(&engine);
	assert_int_equal(engine.status, 0);
}

/* A limit for ordinary programs is raised; where it cannot be, the error has the cure. */
static void raises_the_limit_of_files(void **state)
{
	struct rig *rig = *state;
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
#define in_rig(test) cmocka_unit_test_setup_teardown(test, rig_open, rig_close)
	const struct CMUnitTest tests[] = {
		in_rig(tells_about_itself),
		in_rig(bridge_moves_packet),
		in_rig(bridge_moves_xdp),
		in_rig(ignores_hangup_under_nohup),
		in_rig(shows_outside_changes),
		in_rig(shows_runners),
		in_rig(chooses_pollers),
		in_rig(places_runners),
		in_rig(rebalances),
		in_rig(sets_keep),
		in_rig(sets_engine),
		in_rig(steers),
		in_rig(refuses_sets),
		in_rig(refuses_to_run),
		in_rig(refuses_second),
		in_rig(survives_kill),
		in_rig(shows_while_stuck),
		in_rig(follows_links),
		in_rig(waits_for_links),
		in_rig(obeys_the_file),
		in_rig(colours_terminals_only),
		in_rig(goes_into_the_background),
		in_rig(ends_with_its_input),
		in_rig(pairs_inner_ports),
		in_rig(bears_closed_streams),
		in_rig(tells_of_lost_output),
		in_rig(raises_the_limit_of_files),
		in_rig(stops_once_for_all),
		in_rig(serves_at_once),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

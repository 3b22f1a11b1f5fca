/* SPDX-License-Identifier: BSD-2-Clause */
/* napier show: what it says of a running engine, and to whom. */
#include "command_rig.h"

#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* What others do to a thread is shown, and not fought (case 26). */
static void shows_outside_changes(void **state)
{
	struct command_rig *rig = *state;
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
	engine_stop(rig, &engine);
}

/*
 * Sends until a wake-up of p0 is counted, and returns how much that took: its busy-poller may have
 * had no CPU since it was started, and then it has not come to rest yet.
 */
static uint32_t wakes(struct command_rig *rig)
{
	uint32_t crossed = 0;
	long long p99 = 0;

	for (int i = 0; i < NETNS_SECONDS && !p99; i++) {
		json_t *view;

		assert_int_equal(netns_cross(&rig->links, 0, 500, 60), 500);
		crossed += 500;
		view = show_json(rig, "");
		p99 = number(find(view, "napis", "port", "p0"), "wake_p99_ns");
		json_decref(view);
	}
	assert_true(p99 > 0);
	return crossed;
}

/* Every thread that can poll, with what was asked of it; also what others changed (case 26). */
static void shows_runners(void **state)
{
	struct sched_param fifo = {.sched_priority = 7};
	struct command_rig *rig = *state;
	struct process engine, p;
	json_t *view, *o;
	uint32_t crossed;

	engine_start(rig, &engine, "run --cpus 0 --run-dir %s %s %s", rig->base, rig->spec[0],
		     rig->spec[1]);
	assert_int_equal(
		napier(rig, &p, "set --run-dir %s p0 poller=busy-poll idle_suspend=100", rig->base),
		0);
	assert_int_equal(napier(rig, &p, "set --run-dir %s p1 poller=workqueue", rig->base), 0);
	crossed = wakes(rig);
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
	json_decref(view);

	/* All is counted, so that nothing is in between. */
	packets_wait(rig, "", "p0", "rx_packets", crossed);
	view = show_json(rig, " --interval 0.1");
	o = find(view, "runners", "name", "busy/0");
	assert_string_equal(text(o, "class"), "fifo");
	assert_int_equal(number(o, "priority"), 7);
	assert_string_equal(text(json_object_get(o, "asked"), "class"), "fair");
	assert_true(number(json_object_get(view, "load"), "interval_ns") >= 100000000);
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
	engine_stop(rig, &engine);
}

/* show reads the counters, and asks nobody. */
static void shows_while_stuck(void **state)
{
	struct command_rig *rig = *state;
	struct process engine, p;

	engine_start(rig, &engine, "run --run-dir %s %s", rig->base, rig->spec[0]);
	engine_freeze(&engine);
	assert_int_equal(napier(rig, &p, "show --run-dir %s", rig->base), 0);
	assert_non_null(strstr(p.out, "engine default: pid "));
	assert_non_null(strstr(p.out, "packet:in0"));
	assert_int_equal(napier(rig, &p, "show --names --run-dir %s", rig->base), 0);
	assert_string_equal(p.out, "p0\np0/0\n");
	kill(engine.pid, SIGCONT);
	engine_stop(rig, &engine);
}

/* What a terminal shows of `napier show`. */
static void terminal_read(struct command_rig *rig, char *out)
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
	assert_int_equal(netns_wait(child, NETNS_SECONDS), 0);
}

static void colours_terminals_only(void **state)
{
	struct command_rig *rig = *state;
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
	engine_stop(rig, &engine);
}

/* Output that is lost is a failure, but not with a reader that has seen enough. */
static void tells_of_lost_output(void **state)
{
	struct command_rig *rig = *state;
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
	engine_stop(rig, &engine);

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		command_test(shows_outside_changes), command_test(shows_runners),
		command_test(shows_while_stuck),     command_test(colours_terminals_only),
		command_test(tells_of_lost_output),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPU time of threads and processes whose own clocks say what they used. What needs the kernel's
 * tracepoints is in tests/netns/usage.c; here total_s may be null, and gross_s is looked at.
 */
#include "test.h"

#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/cputime.h>
#include <lab/load/load.h>
#include <lab/measure/counters.h>
#include <lab/measure/task.h>
#include <lab/measure/usage.h>

#define MS INT64_C(1000000)
#define NOBODY (1 << 25) /* more than the kernel gives */

/* Another process's clock is as of its last tick or switch: 10 ms at HZ=100, at each end. */
#define LAG (25 * MS)

struct worker {
	pthread_t thread;
	_Atomic pid_t tid;
	bool spins;
	_Atomic int64_t used; /* when it has ended */
	_Atomic bool stop;
};

static void *worker_run(void *arg)
{
	struct worker *w = arg;

	atomic_store(&w->tid, (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&w->stop)) {
		if (!w->spins)
			clock_sleep(MS);
	}
	atomic_store(&w->used, clock_read(CLOCK_THREAD_CPUTIME_ID));
	return NULL;
}

static void worker_start(struct worker *w)
{
	assert_int_equal(pthread_create(&w->thread, NULL, worker_run, w), 0);
	while (!atomic_load(&w->tid))
		clock_sleep(MS);
}

static void worker_stop(struct worker *w)
{
	atomic_store(&w->stop, true);
	pthread_join(w->thread, NULL);
}

static pid_t process_fork(bool spins)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			if (!spins)
				clock_sleep(MS);
	}
	return pid;
}

static void process_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void thread_burns(pid_t tid, int64_t ns)
{
	int64_t until = cputime_thread(tid) + ns;

	while (cputime_thread(tid) < until) {
		assert_true(cputime_thread(tid) > 0); /* it lives */
		clock_sleep(MS);
	}
}

static void process_burns(pid_t pid, int64_t ns)
{
	int64_t until = cputime_process(pid) + ns;

	while (cputime_process(pid) < until)
		clock_sleep(MS);
}

/* Until it has waited so many times more. */
static void task_waits(pid_t process, pid_t tid, long more)
{
	struct task before, now;

	assert_true(task_read(process, tid, &before));
	do {
		clock_sleep(MS);
		assert_true(task_read(process, tid, &now));
	} while (now.voluntary < before.voluntary + more);
}

static struct usage *usage_make(const struct usage_config *config)
{
	struct usage *usage = NULL;
	struct error err = {0};

	assert_int_equal(usage_open(config, &usage, &err), 0);
	return usage;
}

static double number(const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static const json_t *party(const json_t *cpu, const char *name)
{
	const json_t *p = json_object_get(json_object_get(cpu, "parties"), name);

	assert_true(json_is_object(p));
	return p;
}

static int64_t gross(const json_t *cpu, const char *name)
{
	return (int64_t)llround(number(party(cpu, name), "gross_s") * 1e9);
}

static bool has_note(const json_t *cpu, const char *part)
{
	const json_t *note;
	size_t i;

	json_array_foreach(json_object_get(cpu, "notes"), i, note)
	{
		if (strstr(json_string_value(note), part))
			return true;
	}
	return false;
}

/* No number is negative or not one, wherever it is. */
static void assert_sane(const json_t *o)
{
	const json_t *value;
	const char *key;
	size_t i;

	if (json_is_number(o)) {
		assert_true(isfinite(json_number_value(o)));
		assert_true(json_number_value(o) >= 0);
	}
	json_object_foreach((json_t *)o, key, value) assert_sane(value);
	json_array_foreach(o, i, value) assert_sane(value);
}

static double threads_sum(const json_t *cpu, const char *name, const char *key)
{
	const json_t *thread;
	double sum = 0;
	size_t i;

	json_array_foreach(json_object_get(cpu, "threads"), i, thread)
	{
		if (!strcmp(json_string_value(json_object_get(thread, "party")), name))
			sum += number(thread, key);
	}
	return sum;
}

static void who_works_is_charged(void **state)
{
	struct worker spinner = {.spins = true}, sleeper = {.spins = false};
	pid_t spinning = process_fork(true), sleeping = process_fork(false);
	struct usage_config config = {.parties = 4};
	int64_t before[2], after[2], burnt;
	struct usage *usage;
	json_t *cpu;
	double wall, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);

	(void)state;
	worker_start(&spinner);
	worker_start(&sleeper);
	config.party[0] = (struct usage_party){"client", 0, 1, {spinner.tid}};
	config.party[1] = (struct usage_party){"antagonist", 0, 1, {sleeper.tid}};
	config.party[2] = (struct usage_party){"server", .pid = spinning};
	config.party[3] = (struct usage_party){"napier", .pid = sleeping};
	usage = usage_make(&config);

	before[0] = cputime_thread(spinner.tid);
	usage_begin(usage);
	before[1] = cputime_thread(spinner.tid);
	burnt = cputime_process(spinning);
	process_burns(spinning, 200 * MS);
	thread_burns(spinner.tid, 200 * MS);
	/* However seldom they have had a CPU meanwhile. */
	task_waits(getpid(), sleeper.tid, 20);
	task_waits(sleeping, sleeping, 20);
	burnt = cputime_process(spinning) - burnt;
	after[0] = cputime_thread(spinner.tid);
	usage_stop(usage);
	after[1] = cputime_thread(spinner.tid);
	cpu = usage_end(usage, 1000);
	usage_close(usage);
	worker_stop(&spinner);
	worker_stop(&sleeper);
	process_kill(spinning);
	process_kill(sleeping);

	assert_sane(cpu);
	/* A thread's clock is exact: between what is read just outside and just inside. */
	assert_true(gross(cpu, "client") >= after[0] - before[1]);
	assert_true(gross(cpu, "client") <= after[1] - before[0]);
	assert_true(gross(cpu, "antagonist") < gross(cpu, "client"));
	assert_true(gross(cpu, "server") >= burnt - LAG);
	assert_true(gross(cpu, "napier") < gross(cpu, "server"));
	/* Threads add up to their party. */
	assert_true(fabs(threads_sum(cpu, "client", "gross_s") * 1e9 -
			 (double)gross(cpu, "client")) < 10);
	assert_true(fabs(threads_sum(cpu, "server", "gross_s") * 1e9 -
			 (double)gross(cpu, "server")) < 10);
	/* No bit twice: all together is not more than there was, but for ticks. */
	wall = number(cpu, "wall_s");
	assert_true((double)(gross(cpu, "client") + gross(cpu, "server")) / 1e9 <=
		    wall * cpus + (double)LAG / 1e9);
	assert_true((double)(gross(cpu, "client") + gross(cpu, "server")) / 1e9 +
			    number(cpu, "others_s") + number(cpu, "idle_s") <=
		    wall * cpus * 1.25 + 0.1);
	/* Sleepers are woken, and wait by themselves. */
	assert_true(number(party(cpu, "antagonist"), "voluntary") >= 10);
	assert_true(number(party(cpu, "antagonist"), "wakeups") >= 10);
	assert_true(number(party(cpu, "napier"), "voluntary") >= 10);
	/* Two of those that work keep at least one CPU busy, and no more than there are. */
	assert_true(json_is_null(json_object_get(cpu, "cores_busy")) ||
		    (number(cpu, "cores_busy") >= 1 && number(cpu, "cores_busy") <= cpus));
	/* Without softirq on their backs where that is known; then user and system are that. */
	if (json_is_number(json_object_get(party(cpu, "client"), "total_s"))) {
		const json_t *client = party(cpu, "client");

		assert_true(number(client, "total_s") <= number(client, "gross_s"));
		assert_true(fabs(number(client, "user_s") + number(client, "system_s") -
				 number(client, "total_s")) < 1e-8);
		assert_true(number(client, "user_s") > number(client, "system_s"));
		assert_true(fabs(number(json_object_get(cpu, "ns_per_operation"), "client") -
				 number(client, "total_s") * 1e6) < 1e-3);
		/* Antagonists are no part of the total. */
		assert_true(fabs(number(client, "total_s") +
				 number(party(cpu, "server"), "total_s") +
				 number(party(cpu, "napier"), "total_s") +
				 number(party(cpu, "softirq"), "total_s") +
				 number(party(cpu, "kernel threads"), "total_s") -
				 number(cpu, "total_s")) < 1e-8);
	} else {
		assert_true(has_note(cpu, "Softirq is not known"));
	}
	assert_true(number(cpu, "cores_used") > 0 && number(cpu, "cores_used") <= cpus + 0.2);
	json_decref(cpu);
}

/* Of a process: one that came and went in the window is in its sum. */
static void what_ended_is_not_lost(void **state)
{
	struct worker first = {.spins = true}, second = {.spins = true};
	struct usage_config config = {.parties = 1};
	struct usage *usage;
	json_t *cpu;

	(void)state;
	config.party[0] = (struct usage_party){"client", .pid = getpid()};
	worker_start(&first);
	usage = usage_make(&config);
	thread_burns(first.tid, 5 * MS);
	usage_begin(usage);
	worker_start(&second);
	thread_burns(first.tid, 30 * MS);
	thread_burns(second.tid, 60 * MS);
	worker_stop(&first);
	worker_stop(&second);
	cpu = usage_end(usage, 0);
	usage_close(usage);
	assert_sane(cpu);
	assert_true(gross(cpu, "client") >= 30 * MS + second.used - 2 * LAG);
	/* They had no more than that, and this thread has slept in between. */
	assert_true(threads_sum(cpu, "client", "gross_s") * 1e9 >=
		    (double)(30 * MS + second.used - 2 * LAG));
	assert_true(fabs(threads_sum(cpu, "client", "gross_s") * 1e9 -
			 (double)gross(cpu, "client")) < 10);
	assert_true(json_is_null(json_object_get(cpu, "ns_per_operation")));
	json_decref(cpu);
}

/* By name: the process's clock says what they had, as long as they were one party's. */
static void named_ones_that_ended(void **state)
{
	struct worker first = {.spins = true}, second = first, quiet = {0};
	struct usage_config config = {.parties = 2};
	struct usage *usage;
	int64_t before, ours;
	json_t *cpu;

	(void)state;
	worker_start(&first);
	worker_start(&quiet);
	config.party[0] = (struct usage_party){"client", 0, 1, {first.tid}};
	config.party[1] = (struct usage_party){"antagonist", 0, 1, {quiet.tid}};
	usage = usage_make(&config);
	usage_begin(usage);
	before = cputime_thread(first.tid);
	ours = -clock_read(CLOCK_THREAD_CPUTIME_ID) - cputime_thread(quiet.tid);
	thread_burns(first.tid, 100 * MS);
	worker_stop(&first);
	cpu = usage_end(usage, 0);
	ours += clock_read(CLOCK_THREAD_CPUTIME_ID) + cputime_thread(quiet.tid);
	assert_sane(cpu);
	assert_true(gross(cpu, "client") >= first.used - before - LAG);
	/* With what the others of this process have had while it was waited for, at most. */
	assert_true(gross(cpu, "client") <= first.used + ours + LAG);
	json_decref(cpu);
	usage_close(usage);

	/* Of two parties: who had what is not known, and that is said. */
	worker_start(&second);
	config.party[0].tid[0] = second.tid;
	usage = usage_make(&config);
	usage_begin(usage);
	worker_stop(&second);
	worker_stop(&quiet);
	cpu = usage_end(usage, 0);
	assert_sane(cpu);
	assert_true(json_is_null(json_object_get(party(cpu, "client"), "total_s")));
	assert_true(json_is_null(json_object_get(party(cpu, "antagonist"), "total_s")));
	assert_true(has_note(cpu, "\"client\" ended meanwhile"));
	json_decref(cpu);
	usage_close(usage);
}

static void process_that_died(void **state)
{
	pid_t child = process_fork(true);
	struct usage_config config = {.parties = 1};
	struct usage *usage;
	json_t *cpu;

	(void)state;
	config.party[0] = (struct usage_party){"server", .pid = child};
	usage = usage_make(&config);
	usage_begin(usage);
	process_kill(child);
	cpu = usage_end(usage, 10);
	usage_close(usage);
	assert_sane(cpu);
	assert_true(json_is_null(json_object_get(party(cpu, "server"), "total_s")));
	assert_true(has_note(cpu, "\"server\" ended meanwhile"));
	/* What is not known is not 0 when it is divided, either. */
	assert_true(
		json_is_null(json_object_get(json_object_get(cpu, "ns_per_operation"), "server")));
	usage_operations(cpu, 5);
	assert_true(number(cpu, "operations") == 5);
	assert_true(
		json_is_null(json_object_get(json_object_get(cpu, "ns_per_operation"), "server")));
	usage_operations(cpu, 0);
	assert_true(json_is_null(json_object_get(cpu, "ns_per_operation")));
	json_decref(cpu);
}

/* A command of the user's may be a shell that has started the one that works. */
static void descendants_are_the_partys(void **state)
{
	struct usage_config config = {.parties = 1};
	struct usage *usage;
	pid_t parent, child;
	int pipes[2];
	json_t *cpu;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (!parent) {
		child = process_fork(true);
		if (write(pipes[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &child, sizeof(child)), sizeof(child));
	config.party[0] = (struct usage_party){"command", .pid = parent};
	usage = usage_make(&config);
	usage_begin(usage);
	process_burns(child, 60 * MS);
	cpu = usage_end(usage, 0);
	usage_close(usage);
	kill(parent, SIGKILL); /* its child dies with it */
	waitpid(parent, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	assert_sane(cpu);
	assert_true(gross(cpu, "command") >= 60 * MS - LAG);
	json_decref(cpu);
}

static void windows_are_apart(void **state)
{
	struct worker spinner = {.spins = true};
	struct usage_config config = {.parties = 1};
	struct usage *usage;
	int64_t begin, sum = 0;
	json_t *cpu;

	(void)state;
	worker_start(&spinner);
	config.party[0] = (struct usage_party){"client", 0, 1, {spinner.tid}};
	usage = usage_make(&config);
	assert_null(usage_end(usage, 1)); /* it never began */
	begin = cputime_thread(spinner.tid);
	for (int i = 0; i < 2; i++) {
		usage_begin(usage);
		thread_burns(spinner.tid, 20 * MS);
		cpu = usage_end(usage, 0);
		assert_sane(cpu);
		assert_true(gross(cpu, "client") >= 20 * MS);
		sum += gross(cpu, "client");
		json_decref(cpu);
	}
	assert_true(sum <= cputime_thread(spinner.tid) - begin);
	usage_close(usage);
	worker_stop(&spinner);
}

/* One that had ended before is no party's silence. */
static void threads_that_are_not_there(void **state)
{
	struct usage_config config = {.parties = 1};
	struct usage *usage;
	json_t *cpu;

	(void)state;
	config.party[0] = (struct usage_party){"client", 0, 2, {NOBODY, getpid()}};
	usage = usage_make(&config);
	usage_begin(usage);
	cpu = usage_end(usage, 0);
	usage_close(usage);
	assert_sane(cpu);
	assert_true(has_note(cpu, "1 of 2 threads of \"client\" were not there."));
	json_decref(cpu);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct usage_config config = {.parties = USAGE_PARTIES_MAX + 1};
	struct usage *usage;
	struct error err;

	(void)state;
	assert_int_equal(usage_open(&config, &usage, &err), -EINVAL);
	config = (struct usage_config){.parties = 1};
	config.party[0] = (struct usage_party){"client", .tids = USAGE_TIDS_MAX + 1};
	assert_int_equal(usage_open(&config, &usage, &err), -EINVAL);
	assert_non_null(strstr(err.text, "client"));
}

/* By a list in which a child comes before its parent, as its number may have come around. */
static void family_is_found(void)
{
	static struct task_process all[4096];
	static const struct task_process made[] = {{.process = 5, .parent = 9},
						   {.process = 7, .parent = 1},
						   {.process = 9, .parent = 3}};
	unsigned n = task_processes(all, 4096);
	bool us = false, kernel = false;
	pid_t family[4] = {3};

	for (unsigned i = 0; i < n; i++) {
		us |= all[i].process == getpid() && all[i].parent == getppid() && !all[i].kernel;
		kernel |= all[i].kernel && !strncmp(all[i].name, "ksoftirqd/", 10);
	}
	assert_true(us || n == 4096);
	/* In a container there are none to be seen. */
	assert_int_equal(kernel, task_is_kernel(2));
	assert_int_equal(task_descendants(made, 3, family, 1, 4), 3);
	assert_int_equal(family[1] + family[2], 5 + 9);
	assert_int_equal(task_descendants(made, 3, family, 1, 2), 2);
	family[0] = 4;
	assert_int_equal(task_descendants(made, 3, family, 1, 4), 1);
}

static void tasks_are_read(void **state)
{
	pid_t self = getpid(), tid = (pid_t)syscall(SYS_gettid), listed[64];
	struct task task;
	int64_t exact;
	unsigned n;

	(void)state;
	prctl(PR_SET_NAME, "a) b (c");
	assert_true(task_read(self, tid, &task));
	assert_string_equal(task.name, "a) b (c");
	assert_true(task.start > 0);
	assert_true(task.cpu >= 0 && task.cpu < sysconf(_SC_NPROCESSORS_CONF));
	assert_true(task.voluntary >= 0 && task.involuntary >= 0);
	assert_int_equal(task_process(tid), self);
	exact = task_time(self, tid, false);
	assert_true(exact > 0 && exact <= cputime_thread(tid));
	assert_true(task_time(self, tid, true) <= cputime_thread(tid));
	n = task_list(self, listed, 64);
	assert_int_equal(n, 1);
	assert_int_equal(listed[0], tid);
	assert_int_equal(task_list(self, listed, 0), 1);
	assert_false(task_is_kernel(self));
	family_is_found();

	assert_false(task_read(self, NOBODY, &task));
	assert_int_equal(task.voluntary, -1);
	assert_int_equal(task_time(self, NOBODY, false), -1);
	assert_int_equal(task_process(NOBODY), 0);
	assert_int_equal(task_list(NOBODY, listed, 64), 0);
}

/* By software's counters, which every machine has: CPU time, of a thread and of those it starts. */
static void counters_count(void **state)
{
	static const struct counters_event clock[] = {
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}};
	static const struct counters_event none[] = {{PERF_TYPE_SOFTWARE, 9999}};
	struct worker spinner = {.spins = true};
	struct counters *counters;
	int64_t inside[2], wall;
	double value;
	int ret;

	(void)state;
	assert_true(counters_open(none, 1, &counters) < 0);
	ret = counters_open(clock, 1, &counters);
	if (ret == -EACCES || ret == -EPERM)
		skip();
	assert_int_equal(ret, 0);
	worker_start(&spinner);
	assert_int_equal(counters_add(counters, spinner.tid, 3), 0);
	assert_int_equal(counters_add(counters, NOBODY, 3), 0);
	wall = clock_now();
	counters_start(counters);
	inside[0] = cputime_thread(spinner.tid);
	thread_burns(spinner.tid, 20 * MS);
	inside[1] = cputime_thread(spinner.tid);
	counters_stop(counters);
	wall = clock_now() - wall;
	worker_stop(&spinner);
	assert_true(counters_sum(counters, 3, 0, &value));
	/* Another clock, which may have what a hypervisor took away. */
	assert_true(value >= (double)(inside[1] - inside[0]) * 0.9);
	assert_true(value <= (double)wall * 1.1);
	assert_true(counters_sum(counters, 2, 0, &value));
	assert_true(value == 0);
	counters_clear(counters);
	assert_true(counters_sum(counters, 3, 0, &value));
	assert_true(value == 0);
	counters_close(counters);
}

static void engines_polls(void **state)
{
	struct engine_child_counts from = {10, 100, 5}, to = {20, 180, 65};
	json_t *cpu = json_object();
	const json_t *napier;

	(void)state;
	usage_engine_add(cpu, &from, &to);
	napier = json_object_get(cpu, "napier");
	assert_true(number(napier, "polls") == 10);
	assert_true(number(napier, "packets") == 80);
	assert_true(number(napier, "packets_per_poll") == 8);
	assert_true(number(napier, "gro_ratio") == 4);
	usage_engine_add(cpu, &to, &to);
	napier = json_object_get(cpu, "napier");
	assert_true(json_is_null(json_object_get(napier, "packets_per_poll")));
	assert_true(json_is_null(json_object_get(napier, "gro_ratio")));
	json_decref(cpu);
}

/* Bytes that were sent and came are the same ones; probes are no work to speak of. */
static void operations_of_loads(void **state)
{
	struct load_config config = {.kind = LOAD_RR};
	json_t *counts = json_pack("{s:i, s:i, s:i, s:i, s:i}", "transactions", 90, "completed",
				   100, "received", 7, "bytes_sent", 5000, "bytes_received", 4000);

	(void)state;
	assert_true(load_operations(&config, counts) == 90);
	config.kind = LOAD_STREAM;
	assert_true(load_operations(&config, counts) == 4);
	config.protocol = LOAD_UDP;
	assert_true(load_operations(&config, counts) == 7);
	config.kind = LOAD_RRUL;
	assert_true(load_operations(&config, counts) == 4);
	json_object_set_new(counts, "bytes_received", json_null());
	assert_true(load_operations(&config, counts) == 0);
	assert_true(load_operations(&config, NULL) == 0);
	json_decref(counts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_are_read),
		cmocka_unit_test(counters_count),
		cmocka_unit_test(who_works_is_charged),
		cmocka_unit_test(what_ended_is_not_lost),
		cmocka_unit_test(named_ones_that_ended),
		cmocka_unit_test(process_that_died),
		cmocka_unit_test(descendants_are_the_partys),
		cmocka_unit_test(windows_are_apart),
		cmocka_unit_test(threads_that_are_not_there),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(engines_polls),
		cmocka_unit_test(operations_of_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A runner's thread on the host machine: its name, signals, CPUs and class. */
#include "machine_host_rig.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void blocks_signals(void **state)
{
	struct state s = {.verdict = STEP(STEP_WAIT)};
	struct runner *r = start("signals", step_state, &s);
	struct runner_observation seen;
	char path[64], line[128];
	unsigned long long blocked = 0;
	sigset_t mine;
	FILE *file;

	(void)state;
	runner_observe(r, &seen);
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", seen.tid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "SigBlk: %llx", &blocked);
	fclose(file);
	assert_true(blocked >> (SIGTERM - 1) & 1);
	assert_true(blocked >> (SIGINT - 1) & 1);
	assert_true(blocked >> (SIGCHLD - 1) & 1);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_false(sigismember(&mine, SIGTERM));
	runner_stop(r);
}

static void thread_has_its_name(void **state)
{
	struct state s = {.verdict = STEP(STEP_WAIT)};
	struct runner *r = start("napi/eth0-1", step_state, &s);
	struct runner_observation seen;
	char path[64], name[32] = "";
	FILE *file;

	(void)state;
	assert_string_equal(r->name, "napi/eth0-1");
	runner_observe(r, &seen);
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", seen.tid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(name, sizeof(name), file));
	fclose(file);
	assert_string_equal(name, "napi/eth0-1\n");
	runner_stop(r);
}

/* Without privileges: affinity, and a nice that is worse. */
static void places(void **state)
{
	struct state s = {.verdict = STEP(STEP_WAIT)};
	struct runner *r = start("places", step_state, &s);
	struct placement placement = {.class = RUNNER_FAIR};
	struct runner_observation seen;
	struct cpuset all;
	unsigned first;
	int level;

	(void)state;
	machine_cpus(machine, &all);
	assert_true(cpuset_count(&all) > 0);
	runner_observe(r, &seen);
	assert_true(seen.tid > 0);
	assert_memory_equal(&seen.placement.cpus, &all, sizeof(all));
	assert_int_equal(seen.placement.class, RUNNER_FAIR);
	/* 0, unless all of this runs under nice(1). */
	placement.level = seen.placement.level < 15 ? seen.placement.level + 4 : 19;
	level = placement.level;
	first = cpuset_next(&all, 0);
	cpuset_add(&placement.cpus, first);
	assert_int_equal(runner_place(r, &placement), 0);
	runner_wake(r);
	await_seen(seen_waiting, r);
	runner_observe(r, &seen);
	assert_memory_equal(&seen.placement, &placement, sizeof(placement));
	assert_true(cpuset_has(&all, seen.cpu));
	assert_true(seen.cpu_time > 0);

	/* Refused, and nothing has changed. */
	placement.level = 20;
	assert_int_equal(runner_place(r, &placement), -EINVAL);
	placement.level = level;
	cpuset_add(&placement.cpus, CPU_MAX - 1);
	assert_int_equal(runner_place(r, &placement), -EINVAL);
	runner_observe(r, &seen);
	assert_int_equal(cpuset_count(&seen.placement.cpus), 1);
	assert_int_equal(seen.placement.level, level);

	/* "Any" again. */
	placement.cpus = (struct cpuset){0};
	assert_int_equal(runner_place(r, &placement), 0);
	runner_observe(r, &seen);
	assert_memory_equal(&seen.placement.cpus, &all, sizeof(all));
	cpuset_add(&placement.cpus, first);
	cpuset_add(&placement.cpus, CPU_MAX - 1);
	assert_int_equal(runner_place(r, &placement), -EINVAL);
	runner_observe(r, &seen);
	assert_memory_equal(&seen.placement.cpus, &all, sizeof(all));
	runner_stop(r);
}

static void refuses_to_start(void **state)
{
	struct state s = {.verdict = STEP(STEP_WAIT)};
	struct runner_config config = {.name = "irq/0", .step = step_state, .arg = &s};
	struct error err = {0};
	struct runner *r;

	(void)state;
	cpuset_add(&config.placement.cpus, CPU_MAX - 1);
	assert_int_equal(runner_start(machine, &config, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "irq/0: CPU 1023 is"));
	config.placement.cpus = (struct cpuset){0};
	config.placement.class = RUNNER_FIFO;
	config.placement.level = 100;
	assert_int_equal(runner_start(machine, &config, &r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not in 1..99"));
	assert_int_equal(s.stepped, 0);
}

/* In a child, so that the right is given up there only. */
static void names_the_missing_right(void **state)
{
	static const struct rlimit none;
	struct state s = {.verdict = STEP(STEP_WAIT)};
	struct runner_config config = {
		.name = "irq/0",
		.step = step_state,
		.arg = &s,
		.placement = {.class = RUNNER_FIFO, .level = 50},
	};
	struct runner_observation seen;
	struct error err = {0};
	struct runner *r;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		setrlimit(RLIMIT_RTPRIO, &none);
		setrlimit(RLIMIT_NICE, &none);
		if (!geteuid() && (syscall(SYS_setresgid, 65534, 65534, 65534) ||
				   syscall(SYS_setresuid, 65534, 65534, 65534)))
			_exit(1);
		if (runner_start(machine, &config, &r, &err) != -EPERM ||
		    !strstr(err.text, "irq/0: SCHED_FIFO needs CAP_SYS_NICE"))
			_exit(2);
		config.placement = (struct placement){.level = -20};
		if (runner_start(machine, &config, &r, &err) != -EPERM ||
		    !strstr(err.text, "irq/0: nice -20 needs CAP_SYS_NICE"))
			_exit(3);
		/* The default is taken even under nice(1). */
		if (setpriority(PRIO_PROCESS, 0, 10))
			_exit(4);
		config.placement.level = 0;
		if (runner_start(machine, &config, &r, &err))
			_exit(5);
		runner_observe(r, &seen);
		if (seen.placement.level < 10 || runner_place(r, &config.placement) != -EPERM)
			_exit(6);
		config.placement = (struct placement){.class = RUNNER_FIFO, .level = 1};
		if (runner_place(r, &config.placement) != -EPERM)
			_exit(7);
		runner_stop(r);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* With the right to it: FIFO and back. */
static void places_fifo(void **state)
{
	struct state s = {.verdict = STEP(STEP_WAIT)};
	struct runner *r = start("fifo", step_state, &s);
	struct placement fifo = {.class = RUNNER_FIFO, .level = 7};
	struct placement fair = {.class = RUNNER_FAIR, .level = -3};
	struct runner_observation seen;
	int rc = runner_place(r, &fifo);

	(void)state;
	if (rc == -EPERM) {
		runner_stop(r);
		print_message("no right to SCHED_FIFO here\n");
		skip();
	}
	assert_int_equal(rc, 0);
	runner_observe(r, &seen);
	assert_int_equal(seen.placement.class, RUNNER_FIFO);
	assert_int_equal(seen.placement.level, 7);
	assert_int_equal(runner_place(r, &fair), 0);
	runner_observe(r, &seen);
	assert_int_equal(seen.placement.class, RUNNER_FAIR);
	assert_int_equal(seen.placement.level, -3);
	runner_stop(r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine_open, machine_close)
	const struct CMUnitTest tests[] = {
		TEST(blocks_signals),	TEST(thread_has_its_name),     TEST(places),
		TEST(refuses_to_start), TEST(names_the_missing_right), TEST(places_fifo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

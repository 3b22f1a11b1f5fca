/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual machine's calls: time, waiting, the life of a runner, what is refused. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker.h"

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static bool stepped_twice(void *arg)
{
	const struct worker *w = arg;

	return w->steps >= 2;
}

static void time_of_a_step(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_AGAIN), .charge = 2 * USEC};

	(void)state;
	worker_start(&w, m, "w", fair(0));
	assert_int_equal(machine_now(m), 0);
	assert_int_equal(machine_wait(m, stepped_twice, &w, TIME_NEVER), 0);
	/* A switch of 1 us, then a step of 500 ns and what it charged. */
	assert_int_equal(w.began, 3500);
	assert_int_equal(machine_now(m), 3500);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void charge_twice(struct worker *w)
{
	int64_t began = machine_now(w->machine);

	machine_charge(w->machine, 300);
	assert_int_equal(machine_now(w->machine), began + 300);
	machine_charge(w->machine, 200);
	assert_int_equal(machine_now(w->machine), began + 500);
}

static void charge(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT), .act = charge_twice};

	(void)state;
	machine_charge(m, 1000); /* nobody's: no effect */
	assert_int_equal(machine_now(m), 0);
	worker_start(&w, m, "w", fair(0));
	assert_int_equal(machine_virtual_run(m, TIME_NEVER), 0);
	assert_int_equal(machine_now(m), 2000); /* switch, step, charged */
	assert_int_equal(worker_observe(&w).cpu_time, 2000);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void wait_ends(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT)};

	(void)state;
	/* Nothing at all to do: time jumps. */
	assert_int_equal(machine_wait(m, never, NULL, 5000), -ETIMEDOUT);
	assert_int_equal(machine_now(m), 5000);
	assert_int_equal(machine_wait(m, never, NULL, TIME_NEVER), -EDEADLK);
	assert_int_equal(machine_now(m), 5000);
	/* A deadline that has passed: nothing runs. */
	worker_start(&w, m, "w", fair(0));
	assert_int_equal(machine_wait(m, never, NULL, 4000), -ETIMEDOUT);
	assert_int_equal(machine_now(m), 5000);
	assert_int_equal(w.steps, 0);
	/* Nobody will ever do anything more. */
	assert_int_equal(machine_wait(m, never, NULL, TIME_NEVER), -EDEADLK);
	assert_int_equal(w.steps, 1);
	assert_true(worker_observe(&w).waiting);
	/* A hog does not keep the deadline away. */
	w.says = STEP(STEP_AGAIN);
	runner_wake(w.runner);
	assert_int_equal(machine_wait(m, never, NULL, 1 * MSEC), -ETIMEDOUT);
	assert_int_equal(machine_now(m), 1 * MSEC);
	assert_true(w.steps > 1000);
	/* done() is looked at first, and once more at the deadline. */
	assert_int_equal(machine_wait(m, stepped_twice, &w, 0), 0);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void waits_until(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w = {.says = STEP_UNTIL(70 * USEC)};

	(void)state;
	worker_start(&w, m, "w", fair(0));
	machine_virtual_run(m, 60 * USEC);
	assert_int_equal(w.steps, 1);
	assert_true(worker_observe(&w).waiting);
	w.says = STEP(STEP_WAIT);
	machine_virtual_run(m, TIME_NEVER);
	assert_int_equal(w.steps, 2);
	assert_int_equal(w.began, 71 * USEC);

	/* A wake-up comes first: the deadline is forgotten. */
	w.says = STEP_UNTIL(200 * USEC);
	runner_wake(w.runner);
	machine_virtual_run(m, 100 * USEC);
	w.says = STEP(STEP_WAIT);
	runner_wake(w.runner);
	machine_virtual_run(m, 1 * MSEC);
	assert_int_equal(w.steps, 4);

	/* One that has passed when the step's cost is used up does not wait. */
	w.says = STEP_UNTIL(1 * MSEC + 1200);
	runner_wake(w.runner);
	machine_virtual_run(m, 1 * MSEC + 1100);
	w.says = STEP(STEP_WAIT);
	machine_virtual_run(m, 2 * MSEC);
	assert_int_equal(w.began, 1 * MSEC + 1500);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void wake_itself(struct worker *w)
{
	if (w->steps == 1)
		runner_wake(w->runner);
}

static void wake_before_wait(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w = {.says = STEP(STEP_WAIT), .act = wake_itself};

	(void)state;
	worker_start(&w, m, "w", fair(0));
	machine_virtual_run(m, 100 * USEC);
	assert_int_equal(w.steps, 2);

	/* While the cost of the step that waits is being used up: 101.0 to 101.5 us. */
	runner_wake(w.runner);
	machine_virtual_call_at(m, 101 * USEC + 200, worker_wake, &w);
	machine_virtual_run(m, 200 * USEC);
	assert_int_equal(w.steps, 4);
	assert_int_equal(w.began, 101 * USEC + 500);

	/* Two wake-ups before the step are one. */
	runner_wake(w.runner);
	runner_wake(w.runner);
	machine_virtual_run(m, 300 * USEC);
	assert_int_equal(w.steps, 5);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void exit_and_stop(void **state)
{
	struct machine *m = machine_of(1);
	struct worker ends = {.says = STEP(STEP_EXIT)}, hog = {.says = STEP(STEP_AGAIN)},
		      queued = hog, waits = {.says = STEP_UNTIL(1000 * MSEC)}, fresh = hog;

	(void)state;
	worker_start(&ends, m, "ends", fair(0));
	worker_start(&waits, m, "waits", fair(0));
	machine_virtual_run(m, 1 * MSEC);
	runner_wake(ends.runner);
	machine_virtual_run(m, 2 * MSEC);
	assert_int_equal(ends.steps, 1);
	worker_start(&hog, m, "hog", fifo(1));
	worker_start(&queued, m, "queued", fair(0));
	machine_virtual_run(m, 3 * MSEC);
	assert_int_equal(queued.steps, 0);
	worker_start(&fresh, m, "fresh", fair(0));
	runner_stop(fresh.runner);
	runner_stop(queued.runner);
	runner_stop(hog.runner);
	runner_stop(ends.runner);
	runner_stop(waits.runner);
	assert_int_equal(machine_wait(m, never, NULL, TIME_NEVER), -EDEADLK);
	assert_int_equal(machine_now(m), 3 * MSEC);
	machine_destroy(m);
}

static int calls;

static void call_again(void *arg)
{
	calls++;
	machine_virtual_call_at(arg, 0, call_again, arg);
}

static void livelock(void **state)
{
	struct machine *m = machine_make((struct virtual_config){.seed = 77});
	struct worker w = {.says = STEP(STEP_WAIT)};
	char text[256];

	(void)state;
	worker_start(&w, m, "napi/a-0", fair(0));
	machine_virtual_run(m, 1 * MSEC);
	machine_virtual_describe(m, text, sizeof(text));
	assert_null(strstr(text, "does not go on"));
	machine_virtual_call_at(m, 2 * MSEC, call_again, m);
	assert_int_equal(machine_wait(m, never, NULL, 3 * MSEC), -ELOOP);
	assert_int_equal(machine_now(m), 2 * MSEC);
	assert_in_range(calls, 10000000, 10000001);
	machine_virtual_describe(m, text, sizeof(text));
	assert_non_null(strstr(text, "seed 77, 2000.000us"));
	assert_non_null(strstr(text, "napi/a-0"));
	assert_non_null(strstr(text, "does not go on"));
	runner_stop(w.runner);
	machine_destroy(m); /* frees the call that is left */
}

static char order[16];

static void order_a(void *arg)
{
	(void)arg;
	strcat(order, "a");
}

static void order_b(void *arg)
{
	(void)arg;
	strcat(order, "b");
}

static void order_c(void *arg)
{
	strcat(order, "c");
	machine_virtual_call_at(arg, machine_now(arg), order_a, NULL);
}

static void equal_times_in_order(void **state)
{
	struct machine *m = machine_of(1);

	(void)state;
	machine_virtual_call_at(m, 20, order_b, m);
	machine_virtual_call_at(m, 10, order_c, m);
	machine_virtual_call_at(m, 20, order_a, m);
	machine_virtual_call_at(m, 10, order_b, m);
	machine_virtual_run(m, TIME_NEVER);
	assert_string_equal(order, "cbaba");
	assert_int_equal(machine_now(m), 20);
	machine_destroy(m);
}

static void refuses(void **state)
{
	static const struct virtual_config wrong[] = {
		{.cpus = CPU_MAX + 1}, {.step_ns = -1}, {.irq_ns = -1},
		{.switch_ns = -1},     {.tick_ns = -1}, {.jitter_percent = 1001},
	};
	struct machine *m;
	struct worker w = {.says = STEP(STEP_WAIT)};
	struct placement places[] = {
		on(2, fair(0)), on(2, on(0, fair(0))), fair(20), fair(-21), fifo(0), fifo(100)};
	struct runner_config config = {.name = "w", .step = worker_step, .arg = &w};
	struct irq irq = IRQ_INIT(0, NULL);
	struct runner_observation seen;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(machine_virtual_create(&wrong[i], &m), -EINVAL);
	m = machine_of(2);
	worker_start(&w, m, "w", on(1, fair(3)));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		struct runner *r = NULL;
		struct error err = {0};

		config.placement = places[i];
		assert_int_equal(runner_start(m, &config, &r, &err), -EINVAL);
		assert_int_equal(err.code, -EINVAL);
		assert_true(strlen(err.text) > 10);
		assert_null(r);
		assert_int_equal(runner_place(w.runner, &places[i]), -EINVAL);
	}
	seen = worker_observe(&w);
	assert_int_equal(seen.placement.level, 3);
	assert_true(cpuset_has(&seen.placement.cpus, 1));
	assert_int_equal(irq_attach(&irq, w.runner), -ENOTSUP);
	assert_null(irq.runner);
	runner_stop(w.runner);
	machine_destroy(m);
}

static void wait_inside(struct worker *w)
{
	machine_wait(w->machine, never, NULL, 0);
}

static void stop_inside(struct worker *w)
{
	runner_stop(w->runner);
}

static void aborts(void (*act)(struct worker *w))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		struct machine *m = machine_of(1);
		struct worker w = {.says = STEP(STEP_WAIT), .act = act};

		signal(SIGABRT, SIG_DFL);
		fclose(stderr);
		worker_start(&w, m, "w", fair(0));
		machine_virtual_run(m, 1 * MSEC);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void programming_errors(void **state)
{
	(void)state;
	aborts(wait_inside);
	aborts(stop_inside);
}

/* One that runs on another CPU, one that waits for this one's CPU, one that sleeps. */
static struct runner *others[3];

static void stop_others(struct worker *w)
{
	machine_quiesce(w->machine);
	for (int i = 0; i < 3; i++) {
		if (others[i])
			runner_stop(others[i]);
		others[i] = NULL;
	}
}

static void stops_others_from_a_step(void **state)
{
	struct worker w = {.says = STEP(STEP_WAIT), .act = stop_others};
	struct worker busy[2] = {{.says = STEP(STEP_YIELD)}, {.says = STEP(STEP_YIELD)}};
	struct worker asleep = {.says = STEP(STEP_WAIT)};
	struct machine *m = machine_of(2);

	(void)state;
	worker_start(&busy[0], m, "b0", on(0, fair(0)));
	worker_start(&busy[1], m, "b1", on(1, fair(0)));
	worker_start(&asleep, m, "s", fair(0));
	machine_virtual_run(m, MSEC);
	others[0] = busy[0].runner;
	others[1] = busy[1].runner;
	others[2] = asleep.runner;
	worker_start(&w, m, "w", on(0, fair(0)));
	machine_virtual_run(m, 100 * MSEC);
	assert_null(others[0]);
	runner_stop(w.runner);
	machine_destroy(m); /* which no runner may survive */
}

/* What they had of CPUs, and CPUs of them. */
static void tells_usage(void **state)
{
	struct worker busy[2] = {{.says = STEP(STEP_YIELD)}, {.says = STEP(STEP_YIELD)}};
	struct machine *m = machine_of(2);
	struct runner_usage usage[2];
	int64_t idle[3];

	(void)state;
	worker_start(&busy[0], m, "b0", on(0, fair(0)));
	worker_start(&busy[1], m, "b1", on(0, fair(0)));
	machine_virtual_run(m, 1000 * MSEC);
	for (int i = 0; i < 2; i++) {
		runner_usage(busy[i].runner, &usage[i]);
		assert_in_range(usage[i].cpu_time, 400 * MSEC, 600 * MSEC);
		assert_in_range(usage[i].cpu_time + usage[i].ready_time, 999 * MSEC, 1000 * MSEC);
	}
	machine_idle_times(m, idle, 3);
	assert_int_equal(idle[0], 0);
	assert_int_equal(idle[1], 1000 * MSEC);
	assert_int_equal(idle[2], 0);
	runner_stop(busy[0].runner);
	runner_stop(busy[1].runner);
	machine_destroy(m);
}

static void no_operations(void **state)
{
	struct machine *m = machine_of(1);
	struct cpuset cpus;

	(void)state;
	machine_notify(m);
	machine_quiesce(m);
	assert_null(runner_current());
	assert_string_equal(m->ops->name, "virtual");
	machine_cpus(m, &cpus);
	assert_int_equal(cpuset_count(&cpus), 1);
	machine_destroy(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_of_a_step),
		cmocka_unit_test(charge),
		cmocka_unit_test(wait_ends),
		cmocka_unit_test(waits_until),
		cmocka_unit_test(wake_before_wait),
		cmocka_unit_test(exit_and_stop),
		cmocka_unit_test(livelock),
		cmocka_unit_test(equal_times_in_order),
		cmocka_unit_test(refuses),
		cmocka_unit_test(programming_errors),
		cmocka_unit_test(stops_others_from_a_step),
		cmocka_unit_test(tells_usage),
		cmocka_unit_test(no_operations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

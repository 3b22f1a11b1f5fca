/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual machine's scheduler: classes, shares, placement, balance. No jitter: exact values. */
#include "worker.h"

static void stop_all(struct worker *w, size_t count, struct machine *m)
{
	for (size_t i = 0; i < count; i++)
		runner_stop(w[i].runner);
	machine_destroy(m);
}

static void fifo_preempts_fair(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {
		{.says = STEP(STEP_AGAIN), .charge = 9500},
		{.says = STEP(STEP_WAIT)},
	};
	struct virtual_stats stats;

	(void)state;
	worker_start(&w[1], m, "fifo", fifo(50));
	worker_start(&w[0], m, "fair", fair(-20));
	/* fifo: switch to 1.0, step to 1.5. fair: switch to 2.5, step of 10 us to 12.5. */
	machine_virtual_call_at(m, 5 * USEC, worker_wake, &w[1]);
	machine_virtual_run(m, 14900);
	assert_int_equal(w[1].steps, 2);
	assert_int_equal(w[1].began, 6 * USEC);
	/* fifo's step ends at 6.5, the fair one is back at 7.5 and has 7.5 of its 10 us left. */
	assert_int_equal(w[0].steps, 1);
	assert_int_equal(worker_observe(&w[0]).cpu_time, 1000 + 2500 + 1000 + 7400);
	machine_virtual_run(m, 15 * USEC);
	assert_int_equal(w[0].steps, 2);
	assert_int_equal(w[0].began, 15 * USEC);
	machine_virtual_stats(m, &stats);
	assert_int_equal(stats.preemptions, 1);
	assert_int_equal(stats.switches, 4);
	stop_all(w, 2, m);
}

/* One preempted again and again in the middle of the switch to it owes nothing for that later. */
static void switch_cut_short(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {
		{.says = STEP(STEP_AGAIN), .charge = 9500},
		{.says = STEP(STEP_WAIT)},
	};

	(void)state;
	worker_start(&w[1], m, "fifo", fifo(50));
	machine_virtual_run(m, 10 * USEC);
	worker_start(&w[0], m, "fair", fair(0)); /* steps at 11, 21, 31 */
	/* fifo has 1.5 us of each two, so the fair one comes to half of a switch. */
	for (int i = 0; i < 1000; i++)
		machine_virtual_call_at(m, 34 * USEC + i * 2 * USEC, worker_wake, &w[1]);
	machine_virtual_run(m, 2033 * USEC);
	assert_int_equal(w[1].steps, 1001);
	assert_int_equal(w[0].steps, 3);
	assert_int_equal(w[0].began, 31 * USEC);
	/* fifo is done at 2033.5: a whole switch, and the 7 us that were left of its step. */
	machine_virtual_run(m, 2042 * USEC);
	assert_int_equal(w[0].steps, 4);
	assert_int_equal(w[0].began, 2041500);
	stop_all(w, 2, m);
}

/* The same before its first step, and with a switch that goes on on another CPU: it is whole. */
static void switch_cut_short_at_first(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[3] = {
		{.says = STEP(STEP_WAIT)},
		{.says = STEP(STEP_WAIT)},
		{.says = STEP(STEP_WAIT), .charge = 5500},
	};

	(void)state;
	worker_start(&w[1], m, "fifo", on(0, fifo(50)));
	worker_start(&w[2], m, "beside", on(1, fair(0)));
	machine_virtual_run(m, 10 * USEC);
	worker_wake(&w[2]); /* until 17 */
	worker_start(&w[0], m, "fair", fair(0));
	machine_virtual_call_at(m, 10 * USEC + 400, worker_wake, &w[1]);
	machine_virtual_call_at(m, 12 * USEC + 400, worker_wake, &w[1]);
	machine_virtual_call_at(m, 14 * USEC + 400, worker_wake, &w[1]);
	machine_virtual_call_at(m, 16 * USEC + 400, worker_wake, &w[1]);
	machine_virtual_run(m, 30 * USEC);
	/* Pulled by CPU 1 at 17, where it needs a switch. */
	assert_int_equal(worker_observe(&w[0]).cpu, 1);
	assert_int_equal(w[0].steps, 1);
	assert_int_equal(w[0].began, 18 * USEC);
	stop_all(w, 3, m);
}

static void fifo_levels(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[3] = {
		{.says = STEP(STEP_AGAIN), .charge = 9500},
		{.says = STEP(STEP_WAIT)},
		{.says = STEP(STEP_WAIT)},
	};

	(void)state;
	worker_start(&w[1], m, "higher", fifo(11));
	worker_start(&w[2], m, "equal", fifo(10));
	machine_virtual_run(m, 10 * USEC);
	worker_start(&w[0], m, "hog", fifo(10)); /* steps at 11, 21, ... */
	machine_virtual_call_at(m, 15 * USEC, worker_wake, &w[2]);
	machine_virtual_call_at(m, 16 * USEC, worker_wake, &w[1]);
	machine_virtual_run(m, 20 * MSEC);
	/* The higher level at once; an equal not before the hog lets it, preempted or not. */
	assert_int_equal(w[1].began, 17 * USEC);
	assert_int_equal(w[2].steps, 1);
	w[0].says = STEP(STEP_YIELD);
	machine_virtual_run(m, 21 * MSEC);
	assert_int_equal(w[2].steps, 2);
	stop_all(w, 3, m);
}

static void equal_hogs_share(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {{.says = STEP(STEP_AGAIN)}, {.says = STEP(STEP_AGAIN)}};

	(void)state;
	worker_start(&w[0], m, "a", fair(0));
	worker_start(&w[1], m, "b", fair(0));
	for (int ms = 20; ms <= 1000; ms += 20) {
		int64_t a, b;

		machine_virtual_run(m, ms * MSEC);
		a = worker_observe(&w[0]).cpu_time;
		b = worker_observe(&w[1]).cpu_time;
		assert_int_equal(a + b, ms * MSEC);
		assert_true(llabs(a - b) <= 4 * MSEC + 10 * USEC);
	}
	stop_all(w, 2, m);
}

static void nice_weights(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[3] = {
		{.says = STEP(STEP_AGAIN), .charge = 5 * USEC},
		{.says = STEP(STEP_AGAIN), .charge = 5 * USEC},
		{.says = STEP(STEP_AGAIN), .charge = 5 * USEC},
	};
	int64_t total = 20000 * MSEC;
	double unit;

	(void)state;
	worker_start(&w[0], m, "nice 0", fair(0));
	worker_start(&w[1], m, "nice 5", fair(5));
	worker_start(&w[2], m, "nice -3", fair(-3));
	machine_virtual_run(m, total);
	unit = (double)total / (1 + 0.32768 + 1.953125);
	assert_float_equal((double)worker_observe(&w[0]).cpu_time / unit, 1.0, 0.01);
	assert_float_equal((double)worker_observe(&w[1]).cpu_time / unit, 0.32768, 0.01);
	assert_float_equal((double)worker_observe(&w[2]).cpu_time / unit, 1.953125, 0.01);
	stop_all(w, 3, m);
}

/* A sleeper gets the CPU from a hog when it wakes, but has not saved up the time it slept. */
static void sleeper(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {{.says = STEP(STEP_AGAIN)}, {.says = STEP(STEP_WAIT)}};
	int64_t before;

	(void)state;
	worker_start(&w[1], m, "sleeper", fair(0));
	worker_start(&w[0], m, "hog", fair(0));
	machine_virtual_run(m, 100 * MSEC);
	machine_virtual_call_at(m, 101 * MSEC, worker_wake, &w[1]);
	machine_virtual_run(m, 102 * MSEC);
	assert_int_equal(w[1].began, 101 * MSEC + 1000);
	w[1].says = STEP(STEP_AGAIN);
	runner_wake(w[1].runner);
	before = worker_observe(&w[1]).cpu_time;
	machine_virtual_run(m, 122 * MSEC);
	assert_in_range(worker_observe(&w[1]).cpu_time - before, 8 * MSEC, 14 * MSEC);
	stop_all(w, 2, m);
}

static char turns[64];

static void turn(struct worker *w)
{
	if (strlen(turns) + 1 < sizeof(turns))
		strcat(turns, w->arg);
}

static void yield_lets_equals_run(void **state)
{
	(void)state;
	for (int class = RUNNER_FAIR; class <= RUNNER_FIFO; class ++) {
		struct machine *m = machine_of(1);
		struct placement p = class == RUNNER_FIFO ? fifo(7) : fair(0);
		struct worker w[2] = {
			{.says = STEP(STEP_YIELD), .act = turn, .arg = "a"},
			{.says = STEP(STEP_YIELD), .act = turn, .arg = "b"},
		};
		struct virtual_stats stats;

		*turns = '\0';
		worker_start(&w[0], m, "a", p);
		worker_start(&w[1], m, "b", p);
		machine_virtual_run(m, 20 * USEC);
		assert_true(strlen(turns) >= 8);
		for (size_t i = 1; turns[i]; i++)
			assert_int_not_equal(turns[i], turns[i - 1]);
		machine_virtual_stats(m, &stats);
		assert_int_equal(stats.preemptions, 0);
		stop_all(w, 2, m);
	}
}

/* A runner that yields all the time keeps its share beside one that does not. */
static void yield_keeps_share(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {{.says = STEP(STEP_YIELD)}, {.says = STEP(STEP_AGAIN)}};

	(void)state;
	worker_start(&w[0], m, "yields", fair(0));
	worker_start(&w[1], m, "hog", fair(0));
	machine_virtual_run(m, 1000 * MSEC);
	assert_in_range(worker_observe(&w[0]).cpu_time, 490 * MSEC, 510 * MSEC);
	stop_all(w, 2, m);
}

/* AGAIN goes on without a switch, until the turn is over. */
static void again_goes_on(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {
		{.says = STEP(STEP_AGAIN), .act = turn, .arg = "a", .charge = 500 * USEC},
		{.says = STEP(STEP_AGAIN), .act = turn, .arg = "b", .charge = 500 * USEC},
	};

	(void)state;
	*turns = '\0';
	worker_start(&w[0], m, "a", fair(0));
	worker_start(&w[1], m, "b", fair(0));
	machine_virtual_run(m, 24 * MSEC);
	assert_true(strstr(turns, "aaaaaaa") && strstr(turns, "bbbbbbb"));
	assert_null(strstr(turns, "aaaaaaaaa"));
	assert_null(strstr(turns, "bbbbbbbbb"));
	stop_all(w, 2, m);
}

static void wakes_on_an_idle_cpu(void **state)
{
	struct machine *m = machine_of(4);
	struct worker w[4] = {
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_WAIT)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_WAIT)},
	};
	unsigned home;

	(void)state;
	worker_start(&w[1], m, "w", fair(0));
	machine_virtual_run(m, 10 * USEC);
	home = worker_observe(&w[1]).cpu;
	/* The previous CPU, each time. */
	for (int i = 2; i < 10; i++) {
		runner_wake(w[1].runner);
		machine_virtual_run(m, 10 * i * USEC);
		assert_int_equal(worker_observe(&w[1]).cpu, home);
	}
	/* Another one when that is taken. */
	worker_start(&w[0], m, "hog", on(home, fair(0)));
	machine_virtual_run(m, 200 * USEC);
	runner_wake(w[1].runner);
	machine_virtual_run(m, 300 * USEC);
	assert_int_not_equal(worker_observe(&w[1]).cpu, home);
	assert_int_equal(w[1].began, 201 * USEC);
	/* Only inside of its set. */
	worker_start(&w[3], m, "set", on((home + 1) % 4, on((home + 2) % 4, fair(0))));
	worker_start(&w[2], m, "hog2", on((home + 1) % 4, fair(0)));
	machine_virtual_run(m, 400 * USEC);
	runner_wake(w[3].runner);
	machine_virtual_run(m, 500 * USEC);
	assert_int_equal(w[3].began, 401 * USEC);
	assert_int_equal(worker_observe(&w[3]).cpu, (home + 2) % 4);
	stop_all(w, 4, m);
}

static void affinity_holds(void **state)
{
	struct machine *m = machine_of(3);
	struct worker w[4] = {
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_YIELD)},
	};

	(void)state;
	worker_start(&w[0], m, "a", on(1, fair(0)));
	worker_start(&w[1], m, "b", on(1, fair(0)));
	worker_start(&w[2], m, "c", on(1, fair(0)));
	worker_start(&w[3], m, "d", on(1, on(2, fair(0))));
	for (int ms = 1; ms < 300; ms++) {
		machine_virtual_run(m, ms * MSEC);
		for (int i = 0; i < 3; i++)
			assert_int_equal(worker_observe(&w[i]).cpu, 1);
	}
	assert_int_equal(worker_observe(&w[3]).cpu, 2);
	for (int i = 0; i < 3; i++)
		assert_in_range(worker_observe(&w[i]).cpu_time, 95 * MSEC, 105 * MSEC);
	stop_all(w, 4, m);
}

/* Four hogs end up two and two, though they began three and one. */
static void tick_balances(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[4];
	struct virtual_stats stats;

	(void)state;
	for (int i = 0; i < 4; i++) {
		w[i] = (struct worker){.says = STEP(STEP_AGAIN)};
		worker_start(&w[i], m, "hog", on(i == 3, fair(0)));
	}
	machine_virtual_run(m, 100 * MSEC);
	machine_virtual_stats(m, &stats);
	assert_int_equal(stats.migrations, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(runner_place(w[i].runner, &(struct placement){0}), 0);
	machine_virtual_run(m, 1100 * MSEC);
	for (int i = 0; i < 3; i++)
		assert_in_range(worker_observe(&w[i]).cpu_time, 500 * MSEC, 560 * MSEC);
	machine_virtual_stats(m, &stats);
	assert_int_equal(stats.migrations, 1);
	stop_all(w, 4, m);
}

/* A hog that a pinned FIFO runner has driven off its CPU gets to an idle one by the next tick. */
static void tick_frees_the_preempted(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[2] = {
		{.says = STEP(STEP_AGAIN), .charge = 100 * USEC},
		{.says = STEP(STEP_AGAIN)},
	};

	(void)state;
	worker_start(&w[0], m, "hog", on(0, fair(0)));
	machine_virtual_run(m, 1 * MSEC);
	runner_place(w[0].runner, &(struct placement){0});
	worker_start(&w[1], m, "fifo", on(0, fifo(1)));
	machine_virtual_run(m, 10 * MSEC);
	assert_int_equal(worker_observe(&w[0]).cpu, 1);
	assert_in_range(worker_observe(&w[0]).cpu_time, 6 * MSEC, 10 * MSEC);
	stop_all(w, 2, m);
}

/* A fair runner does not starve below a FIFO hog if another CPU has only a fair one. */
static void tick_counts_fifo(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[3] = {
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
	};
	struct virtual_stats stats;

	(void)state;
	worker_start(&w[0], m, "fifo", on(0, fifo(1)));
	worker_start(&w[1], m, "other", on(1, fair(0)));
	worker_start(&w[2], m, "fair", on(0, fair(0)));
	machine_virtual_run(m, 10 * MSEC);
	assert_int_equal(w[2].steps, 0);
	runner_place(w[2].runner, &(struct placement){0});
	machine_virtual_run(m, 210 * MSEC);
	assert_in_range(worker_observe(&w[2]).cpu_time, 95 * MSEC, 105 * MSEC);
	machine_virtual_stats(m, &stats);
	assert_int_equal(stats.migrations, 1);
	stop_all(w, 3, m);
}

/* What an idle CPU is just about to run is not taken from it. */
static void idle_does_not_rob(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[2] = {{.says = STEP(STEP_WAIT)}, {.says = STEP(STEP_WAIT)}};

	(void)state;
	worker_start(&w[0], m, "w", on(1, fair(0)));
	machine_virtual_run(m, 10 * USEC);
	runner_place(w[0].runner, &(struct placement){0});
	/* CPU 0 runs out of work at 11.5 us, just after that wakes. */
	machine_virtual_call_at(m, 11500, worker_wake, &w[0]);
	worker_start(&w[1], m, "other", on(0, fair(0)));
	machine_virtual_run(m, 20 * USEC);
	assert_int_equal(w[0].steps, 2);
	assert_int_equal(worker_observe(&w[0]).cpu, 1);
	stop_all(w, 2, m);
}

/* One that becomes fair while it runs has saved up nothing from its time as FIFO. */
static void class_change_is_fair(void **state)
{
	struct machine *m = machine_of(1);
	struct worker w[2] = {{.says = STEP(STEP_AGAIN)}, {.says = STEP(STEP_WAIT)}};
	int64_t before;

	(void)state;
	worker_start(&w[0], m, "hog", fair(0));
	worker_start(&w[1], m, "fifo", fifo(1));
	machine_virtual_run(m, 1000 * MSEC);
	w[1].says = STEP(STEP_AGAIN);
	runner_wake(w[1].runner);
	machine_virtual_run(m, 1001 * MSEC);
	before = worker_observe(&w[0]).cpu_time;
	runner_place(w[1].runner, &(struct placement){0});
	machine_virtual_run(m, 1041 * MSEC);
	assert_in_range(worker_observe(&w[0]).cpu_time - before, 16 * MSEC, 24 * MSEC);
	stop_all(w, 2, m);
}

/* A CPU that has nothing left to do takes a runner from another one at once. */
static void idle_pulls(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[3] = {
		{.says = STEP(STEP_AGAIN), .charge = 100 * USEC},
		{.says = STEP(STEP_AGAIN), .charge = 100 * USEC},
		{.says = STEP(STEP_AGAIN), .charge = 100 * USEC},
	};

	(void)state;
	worker_start(&w[0], m, "busy", on(1, fair(0)));
	worker_start(&w[1], m, "a", fair(0));
	machine_virtual_run(m, 50 * USEC);
	worker_start(&w[2], m, "b", on(0, fair(0)));
	runner_place(w[2].runner, &(struct placement){0});
	machine_virtual_run(m, 1 * MSEC);
	assert_int_equal(w[2].steps + w[1].steps, 10);
	w[0].says = STEP(STEP_WAIT);
	machine_virtual_run(m, 2 * MSEC);
	assert_in_range(w[2].steps + w[1].steps, 28, 29);
	stop_all(w, 3, m);
}

/* A FIFO runner goes to the CPU where it can run; one that was driven off goes on elsewhere. */
static void fifo_spreads(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[4] = {
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
	};

	(void)state;
	worker_start(&w[0], m, "fair", on(0, fair(0)));
	worker_start(&w[1], m, "high", on(1, fifo(20)));
	machine_virtual_run(m, 100 * USEC);
	worker_start(&w[2], m, "mid", fifo(10));
	machine_virtual_run(m, 200 * USEC);
	assert_int_equal(worker_observe(&w[2]).cpu, 0);
	assert_true(w[2].steps > 100);
	/* The pinned one that wakes drives mid off CPU 0; high on CPU 1 is above it. */
	worker_start(&w[3], m, "top", on(0, fifo(30)));
	machine_virtual_run(m, 300 * USEC);
	assert_in_range(worker_observe(&w[2]).cpu_time, 100 * USEC, 101 * USEC);
	/* As soon as high is below it, it goes there. */
	assert_int_equal(runner_place(w[1].runner, &(struct placement){.level = 5}), 0);
	machine_virtual_run(m, 400 * USEC);
	assert_int_equal(worker_observe(&w[2]).cpu, 1);
	assert_in_range(worker_observe(&w[2]).cpu_time, 199 * USEC, 201 * USEC);
	stop_all(w, 4, m);
}

/* A FIFO runner that is driven off its CPU goes on at once where only a fair one runs. */
static void fifo_is_pushed(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[3] = {
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
		{.says = STEP(STEP_AGAIN)},
	};

	(void)state;
	worker_start(&w[0], m, "fair", on(1, fair(0)));
	worker_start(&w[1], m, "mid", fifo(10));
	machine_virtual_run(m, 100 * USEC);
	assert_int_equal(worker_observe(&w[1]).cpu, 0);
	worker_start(&w[2], m, "top", on(0, fifo(30)));
	machine_virtual_run(m, 200 * USEC);
	assert_int_equal(worker_observe(&w[1]).cpu, 1);
	assert_int_equal(worker_observe(&w[1]).cpu_time, 200 * USEC);
	stop_all(w, 3, m);
}

/*
 * At one instant: b wakes on CPU 0, which idles; CPU 1 runs out of work, and leaves b to CPU 0; x
 * wakes on CPU 0, above b. Nobody looks for b any more, but the tick.
 */
static void tick_pushes_fifo(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[3] = {
		{.says = STEP(STEP_WAIT), .charge = 8500},
		{.says = STEP(STEP_WAIT)},
		{.says = STEP(STEP_WAIT)},
	};
	int64_t then = 1 * MSEC + 10 * USEC;

	(void)state;
	worker_start(&w[0], m, "c", on(1, fifo(60)));
	worker_start(&w[1], m, "b", on(0, fifo(40)));
	worker_start(&w[2], m, "x", on(0, fifo(50)));
	machine_virtual_run(m, 1 * MSEC);
	runner_place(w[1].runner, &(struct placement){.class = RUNNER_FIFO, .level = 40});
	w[2].says = STEP(STEP_AGAIN);
	machine_virtual_call_at(m, then, worker_wake, &w[1]);
	runner_wake(w[0].runner); /* until `then` */
	machine_virtual_run(m, then - 1);
	machine_virtual_call_at(m, then, worker_wake, &w[2]);
	machine_virtual_run(m, then + 10 * USEC);
	assert_int_equal(w[1].steps, 1);
	machine_virtual_run(m, then + 4 * MSEC + 10 * USEC);
	assert_int_equal(w[1].steps, 2);
	assert_int_equal(worker_observe(&w[1]).cpu, 1);
	stop_all(w, 3, m);
}

static void place_moves_a_running_one(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w[2] = {
		{.says = STEP(STEP_AGAIN), .charge = 9500},
		{.says = STEP(STEP_AGAIN), .charge = 9500},
	};
	struct placement to = on(1, fair(0));

	(void)state;
	worker_start(&w[0], m, "w", on(0, fair(0)));
	machine_virtual_run(m, 5 * USEC);
	assert_int_equal(w[0].steps, 1);
	assert_int_equal(runner_place(w[0].runner, &to), 0);
	/* 6 us are left of the step, and a switch on the other CPU comes first. */
	machine_virtual_run(m, 12 * USEC);
	assert_int_equal(worker_observe(&w[0]).cpu, 1);
	assert_int_equal(w[0].steps, 2);
	assert_int_equal(w[0].began, 12 * USEC);
	/* By class: it drives a fair one away as soon as it is FIFO. */
	worker_start(&w[1], m, "w2", on(1, fair(0)));
	machine_virtual_run(m, 20 * MSEC);
	assert_true(w[1].steps > 100);
	to = on(1, fifo(1));
	runner_place(w[1].runner, &to);
	machine_virtual_run(m, 21 * MSEC);
	w[0].steps = 0;
	machine_virtual_run(m, 100 * MSEC);
	assert_int_equal(w[0].steps, 0);
	/* And back, on the CPU that idles. */
	runner_place(w[0].runner, &(struct placement){0});
	machine_virtual_run(m, 101 * MSEC);
	assert_true(w[0].steps > 90);
	assert_int_equal(worker_observe(&w[0]).cpu, 0);
	stop_all(w, 2, m);
}

static void observes(void **state)
{
	struct machine *m = machine_of(2);
	struct worker w = {.says = STEP(STEP_AGAIN)};
	struct runner_observation seen;

	(void)state;
	worker_start(&w, m, "w", on(1, fair(4)));
	machine_virtual_run(m, 1234 * USEC);
	seen = worker_observe(&w);
	assert_int_equal(seen.tid, 0);
	assert_int_equal(seen.cpu, 1);
	assert_int_equal(seen.cpu_time, 1234 * USEC);
	assert_false(seen.waiting);
	assert_int_equal(seen.placement.level, 4);
	assert_int_equal(seen.placement.class, RUNNER_FAIR);
	assert_int_equal(cpuset_count(&seen.placement.cpus), 1);
	w.says = STEP(STEP_WAIT);
	machine_virtual_run(m, 2 * MSEC);
	seen = worker_observe(&w);
	assert_true(seen.waiting);
	assert_in_range(seen.cpu_time, 1234 * USEC, 1236 * USEC);
	stop_all(&w, 1, m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifo_preempts_fair),
		cmocka_unit_test(switch_cut_short),
		cmocka_unit_test(switch_cut_short_at_first),
		cmocka_unit_test(fifo_levels),
		cmocka_unit_test(equal_hogs_share),
		cmocka_unit_test(nice_weights),
		cmocka_unit_test(sleeper),
		cmocka_unit_test(yield_lets_equals_run),
		cmocka_unit_test(yield_keeps_share),
		cmocka_unit_test(again_goes_on),
		cmocka_unit_test(wakes_on_an_idle_cpu),
		cmocka_unit_test(affinity_holds),
		cmocka_unit_test(tick_balances),
		cmocka_unit_test(tick_frees_the_preempted),
		cmocka_unit_test(tick_counts_fifo),
		cmocka_unit_test(idle_pulls),
		cmocka_unit_test(idle_does_not_rob),
		cmocka_unit_test(class_change_is_fair),
		cmocka_unit_test(fifo_spreads),
		cmocka_unit_test(fifo_is_pushed),
		cmocka_unit_test(tick_pushes_fifo),
		cmocka_unit_test(place_moves_a_running_one),
		cmocka_unit_test(observes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

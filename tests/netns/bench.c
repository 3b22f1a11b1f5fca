/* SPDX-License-Identifier: BSD-2-Clause */
/* napier bench pollers, quick: every part measures something of everybody, and leaves nothing. */
#include "bench_rig.h"

#include <napier/napi.h>

static void cost(void **state)
{
	json_t *whole, *part = bench_part_run("pollers", "cost", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, POLLER_RUNNER_MAX, "ns_per_event"),
			 POLLER_RUNNER_MAX);
	assert_true(bench_value(part, POLLER_SOFTIRQ, "ratio_to_softirq") == 1);
	/*
	 * All are counted from rest to rest, and are 100 or more on 8 NAPIs. A thread takes its
	 * interrupts itself, between polls, so each event is scheduled, polled and completed once;
	 * but where the end comes before the last of a NAPI. Of ksoftirqd's polls the next event
	 * may come before the end, and then one completes for several.
	 */
	assert_true(bench_value(part, POLLER_THREAD, "completes_per_event") >= 0.92);
	for (unsigned i = 0; i < POLLER_RUNNER_MAX; i++) {
		double completes = bench_value(part, i, "completes_per_event");

		assert_true(i == POLLER_BUSY_POLL ? completes == 0
						  : completes > 0 && completes <= 1.08);
	}
	json_decref(whole);
}

static void wake(void **state)
{
	json_t *whole, *part = bench_part_run("pollers", "wake", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, 2 * POLLER_RUNNER_MAX, "events"),
			 2 * POLLER_RUNNER_MAX);
	json_decref(whole);
}

static void scale(void **state)
{
	json_t *whole, *part = bench_part_run("pollers", "scale", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, 2 * POLLER_RUNNER_MAX - 1, "1"),
			 2 * POLLER_RUNNER_MAX - 1);
	assert_int_equal(bench_rows_with(part, 2 * POLLER_RUNNER_MAX - 1, "1024"),
			 2 * POLLER_RUNNER_MAX - 1);
	json_decref(whole);
}

/*
 * Cases 22 and 25. A busy machine may let nothing happen in so short a time, but not to everybody.
 */
static void forward(void **state)
{
	json_t *whole, *part = bench_part_run("pollers", "forward", &whole);

	(void)state;
	assert_true(bench_rows_with(part, 4 + POLLER_RUNNER_MAX, "mframes_per_second") > 3);
	assert_true(bench_rows_with(part, 4 + POLLER_RUNNER_MAX, "packets_per_poll_saturated") > 2);
	assert_true(bench_rows_with(part, 4 + POLLER_RUNNER_MAX, "own_cpu_ns_per_frame") > 3);
	assert_true(bench_rows_with(part, 4 + POLLER_RUNNER_MAX, "ksoftirqd_cpu_ns_per_frame") > 3);
	assert_true(bench_rows_with(part, 4 + POLLER_RUNNER_MAX, "generator_cpu_ns_per_frame") > 3);
	json_decref(whole);
}

static void flood(void **state)
{
	json_t *whole, *part = bench_part_run("pollers", "flood", &whole);

	(void)state;
	assert_true(bench_rows_with(part, 6 + POLLER_RUNNER_MAX, "delivered_percent") > 3);
	json_decref(whole);
}

static void workers(void **state)
{
	json_t *whole, *part = bench_part_run("pollers", "workers", &whole);

	(void)state;
	assert_true(bench_rows_with(part, 5, "capacity_per_second") > 2);
	json_decref(whole);
}

static void interrupted(void **state)
{
	static const struct {
		const char *part;
		int after_ms;
	} cases[] = {{"wake", 100}, {"forward", 1000}, {"flood", 100}, {"flood", 2000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		bench_interrupt("pollers", cases[i].part, cases[i].after_ms);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost),	       cmocka_unit_test(wake),	cmocka_unit_test(scale),
		cmocka_unit_test(forward),     cmocka_unit_test(flood), cmocka_unit_test(workers),
		cmocka_unit_test(interrupted),
	};

	lab_run_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* napier bench pollers, quick: every part measures something of everybody, and leaves nothing. */
#include "lab_run.h"

#include <string.h>
#include <sys/wait.h>

#include <napier/napi.h>

static pid_t bench_start(const char *part, int *out)
{
	const char *const arguments[] = {"bench", "pollers", "--quick", "-j", "--only", part, NULL};

	return lab_run_start(arguments, false, out);
}

/* The part's object; the caller gives *whole back. */
static json_t *part_run(const char *part, json_t **whole)
{
	json_t *parts, *one;
	int out;
	pid_t pid = bench_start(part, &out);

	*whole = lab_run_answer(pid, out);
	parts = json_object_get(*whole, "parts");
	assert_int_equal(json_array_size(parts), 1);
	one = json_array_get(parts, 0);
	assert_string_equal(json_string_value(json_object_get(one, "part")), part);
	return one;
}

/* Rows, those that were left out or in which nothing happened included; how many have the key. */
static unsigned rows_with(const json_t *part, size_t rows, const char *key)
{
	const json_t *array = json_object_get(part, "rows");
	unsigned n = 0;

	assert_true(json_array_size(array) <= rows);
	assert_true(json_array_size(array) + json_array_size(json_object_get(part, "notes")) >=
		    rows);
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *figure = json_object_get(json_array_get(array, i), key);

		assert_non_null(figure);
		if (json_is_null(figure))
			continue;
		assert_true(json_is_real(json_object_get(figure, "value")));
		assert_int_equal(json_array_size(json_object_get(figure, "rounds")), 1);
		n++;
	}
	return n;
}

static double value_of(const json_t *part, size_t row, const char *key)
{
	const json_t *figure =
		json_object_get(json_array_get(json_object_get(part, "rows"), row), key);

	return json_real_value(json_object_get(figure, "value"));
}

static void cost(void **state)
{
	json_t *whole, *part = part_run("cost", &whole);

	(void)state;
	assert_int_equal(rows_with(part, POLLER_RUNNER_MAX, "ns_per_event"), POLLER_RUNNER_MAX);
	assert_true(value_of(part, POLLER_SOFTIRQ, "ratio_to_softirq") == 1);
	/* Each event of these is scheduled, polled and completed once; but for the last ones. */
	assert_true(value_of(part, POLLER_SOFTIRQ, "completes_per_event") > 0.9);
	assert_true(value_of(part, POLLER_THREAD, "completes_per_event") > 0.9);
	assert_true(value_of(part, POLLER_BUSY_POLL, "completes_per_event") == 0);
	json_decref(whole);
}

static void wake(void **state)
{
	json_t *whole, *part = part_run("wake", &whole);

	(void)state;
	assert_int_equal(rows_with(part, 2 * POLLER_RUNNER_MAX, "events"), 2 * POLLER_RUNNER_MAX);
	json_decref(whole);
}

static void scale(void **state)
{
	json_t *whole, *part = part_run("scale", &whole);

	(void)state;
	assert_int_equal(rows_with(part, 2 * POLLER_RUNNER_MAX - 1, "1"), 2 * POLLER_RUNNER_MAX - 1);
	assert_int_equal(rows_with(part, 2 * POLLER_RUNNER_MAX - 1, "1024"), 2 * POLLER_RUNNER_MAX - 1);
	json_decref(whole);
}

/*
 * Cases 22 and 25. A busy machine may let nothing happen in so short a time, but not to everybody.
 */
static void forward(void **state)
{
	json_t *whole, *part = part_run("forward", &whole);

	(void)state;
	assert_true(rows_with(part, 4 + POLLER_RUNNER_MAX, "mframes_per_second") > 3);
	assert_true(rows_with(part, 4 + POLLER_RUNNER_MAX, "packets_per_poll_saturated") > 2);
	assert_true(rows_with(part, 4 + POLLER_RUNNER_MAX, "own_cpu_ns_per_frame") > 3);
	assert_true(rows_with(part, 4 + POLLER_RUNNER_MAX, "ksoftirqd_cpu_ns_per_frame") > 3);
	assert_true(rows_with(part, 4 + POLLER_RUNNER_MAX, "generator_cpu_ns_per_frame") > 3);
	json_decref(whole);
}

static void flood(void **state)
{
	json_t *whole, *part = part_run("flood", &whole);

	(void)state;
	assert_true(rows_with(part, 6 + POLLER_RUNNER_MAX, "delivered_percent") > 3);
	json_decref(whole);
}

static void workers(void **state)
{
	json_t *whole, *part = part_run("workers", &whole);

	(void)state;
	assert_true(rows_with(part, 5, "capacity_per_second") > 2);
	json_decref(whole);
}

static void interrupted(void **state)
{
	static const struct {
		const char *part;
		int after_ms;
	} cases[] = {{"wake", 100}, {"forward", 1000}, {"flood", 100}, {"flood", 2000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int out, status;
		pid_t pid = bench_start(cases[i].part, &out);

		status = lab_run_interrupt(pid, out, cases[i].after_ms);
		assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
	}
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

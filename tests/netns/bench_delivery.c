/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napier bench delivery, quick: every part measures something of everybody, charges all CPU time
 * once, and leaves nothing. A busy machine may let nothing happen in so short a time, but not to
 * everybody.
 */
#include "bench_rig.h"

#include <string.h>
#include <unistd.h>

enum { STREAM_ROWS = 15, RR_RUNS = 16, RATE_ROWS = 8 };

/* Parts make the whole, and none is negative: what was charged was charged once. */
static void parts_check(const json_t *part, const char *whole, const char *const *parts)
{
	const json_t *rows = json_object_get(part, "rows");

	for (size_t i = 0; i < json_array_size(rows); i++) {
		double all = bench_value(part, i, whole), sum = 0;

		if (all < 0)
			continue;
		for (unsigned k = 0; parts[k]; k++) {
			assert_true(bench_value(part, i, parts[k]) >= 0);
			sum += bench_value(part, i, parts[k]);
		}
		assert_true(sum > all * 0.999 && sum < all * 1.001);
	}
}

/* Cases 22 and 25. */
static void stream(void **state)
{
	static const char *const parts[] = {
		"sender_cpu_ns_per_byte",
		"receiver_cpu_ns_per_byte",
		"engine_cpu_ns_per_byte",
		"kernel_cpu_ns_per_byte",
		NULL,
	};
	json_t *whole, *part = bench_part_run("delivery", "stream", &whole);

	(void)state;
	assert_true(bench_rows_with(part, STREAM_ROWS, "gbit_per_second") > 3);
	assert_true(bench_rows_with(part, STREAM_ROWS, "packets_per_poll") > 2);
	assert_true(bench_rows_with(part, STREAM_ROWS, "gro_ratio") > 3);
	for (unsigned i = 0; parts[i]; i++)
		assert_true(bench_rows_with(part, STREAM_ROWS, parts[i]) > 3);
	parts_check(part, "cpu_ns_per_byte", parts);
	for (size_t i = 0; i < json_array_size(json_object_get(part, "rows")); i++) {
		double all = bench_value(part, i, "cpu_ns_per_byte");
		double cpus = all * bench_value(part, i, "gbit_per_second") / 8;

		/* No more CPU than there is; a little is used while the figures are read. */
		assert_true(cpus < 1.1 * (double)sysconf(_SC_NPROCESSORS_ONLN));
		/*
		 * The near end's is a part of it. Each is read at a moment of its own, and what one
		 * softirq took is in one before it is in the other: so of rows that used a quarter
		 * of a CPU, which in the 60 ms is 15 ms, and 3 ms may be missing.
		 */
		if (cpus > 0.25)
			assert_true(bench_value(part, i, "near_cpu_ns_per_byte") <= 1.2 * all);
	}
	json_decref(whole);
}

static void rr(void **state)
{
	static const char *const parts[] = {
		"program_cpu_us_per_transaction",
		"engine_cpu_us_per_transaction",
		"kernel_cpu_us_per_transaction",
		NULL,
	};
	json_t *whole, *part = bench_part_run("delivery", "rr", &whole);

	(void)state;
	assert_true(bench_rows_with(part, RR_RUNS, "transactions_per_second") > 3);
	assert_true(bench_rows_with(part, RR_RUNS, "lost") > 3);
	assert_true(bench_rows_with(part, RR_RUNS, "p50_us") > 1);
	bench_rows_with(part, RR_RUNS, "p99_us");
	assert_true(bench_rows_with(part, RR_RUNS, "packets_per_poll") > 1);
	parts_check(part, "cpu_us_per_transaction", parts);
	json_decref(whole);
}

static void rate(void **state)
{
	static const char *const parts[] = {
		"program_cpu_ns_per_frame",
		"engine_cpu_ns_per_frame",
		"kernel_cpu_ns_per_frame",
		NULL,
	};
	json_t *whole, *part = bench_part_run("delivery", "rate", &whole);
	const json_t *rows = json_object_get(part, "rows");
	double best = 0;

	(void)state;
	assert_true(bench_rows_with(part, RATE_ROWS, "mframes_per_second") > 1);
	assert_true(bench_rows_with(part, RATE_ROWS, "packets_per_poll") > 1);
	assert_true(bench_rows_with(part, RATE_ROWS, "lost_percent") > 1);
	assert_true(bench_rows_with(part, RATE_ROWS, "ratio_to_kernel") > 1);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		double each = bench_value(part, i, "mframes_per_cpu_second"), sum = 0;
		const char *name =
			json_string_value(json_object_get(json_array_get(rows, i), "socket"));

		if (each < 0)
			continue;
		for (unsigned k = 0; parts[k]; k++)
			sum += bench_value(part, i, parts[k]);
		assert_true(sum * each > 999 && sum * each < 1001);
		if (!strncmp(name, "kernel", 6) && bench_value(part, i, "ratio_to_kernel") > best)
			best = bench_value(part, i, "ratio_to_kernel");
	}
	/* The best of the kernel's is what all are told against. */
	assert_true(best == 1);
	json_decref(whole);
}

static void interrupted(void **state)
{
	static const struct {
		const char *part;
		int after_ms;
	} cases[] = {{"stream", 500}, {"stream", 2500}, {"rr", 400}, {"rate", 600}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		bench_interrupt("delivery", cases[i].part, cases[i].after_ms);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream),
		cmocka_unit_test(rr),
		cmocka_unit_test(rate),
		cmocka_unit_test(interrupted),
	};

	lab_run_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

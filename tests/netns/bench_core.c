/* SPDX-License-Identifier: BSD-2-Clause */
/* napier bench core and peers, quick: every part measures something of everybody. */
#include "bench_rig.h"

#include <napier/napi.h>

enum { GRO_ROWS = 26, PACKET_ROWS = 16, PEERS_ROWS = 10 };

static void event(void **state)
{
	json_t *whole, *part = bench_part_run("core", "event", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, POLLER_RUNNER_MAX, "ns_per_event"),
			 POLLER_RUNNER_MAX);
	/*
	 * Each is scheduled and completed once, unless it has come again before. Both are counted
	 * since the begin, and at rest.
	 */
	assert_true(bench_value(part, POLLER_SOFTIRQ, "completes_per_event") > 0);
	assert_true(bench_value(part, POLLER_SOFTIRQ, "completes_per_event") <= 1);
	assert_true(bench_value(part, POLLER_BUSY_POLL, "completes_per_event") == 0);
	json_decref(whole);
}

static void packet(void **state)
{
	json_t *whole, *part = bench_part_run("core", "packet", &whole);
	double full, one;

	(void)state;
	assert_int_equal(bench_rows_with(part, PACKET_ROWS, "ns_per_packet"), PACKET_ROWS);
	/* The weight is what a vector holds. */
	full = bench_value(part, 0, "packets_per_poll");
	one = bench_value(part, 1, "packets_per_poll");
	assert_true(full > 1 && full <= 64);
	assert_true(one == 1);
	json_decref(whole);
}

static void hash(void **state)
{
	json_t *whole, *part = bench_part_run("core", "hash", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, 2, "ns_per_packet"), 2);
	json_decref(whole);
}

/* What is merged does not depend on time. */
static void gro(void **state)
{
	json_t *whole, *part = bench_part_run("core", "gro", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, GRO_ROWS, "ns_per_packet"), GRO_ROWS);
	assert_true(bench_value(part, 0, "merged_to_one") > 16); /* one flow */
	assert_true(bench_value(part, 1, "merged_to_one") == 1); /* 64 in turn */
	assert_true(bench_value(part, 3, "merged_to_one") > 8);	 /* runs of 16 */
	json_decref(whole);
}

static void udp(void **state)
{
	json_t *whole, *part = bench_part_run("core", "udp", &whole);

	(void)state;
	assert_int_equal(bench_rows_with(part, 4, "ns_per_packet"), 4);
	json_decref(whole);
}

static void peers(void **state)
{
	json_t *whole, *part = bench_part_run("peers", "peers", &whole);

	(void)state;
	assert_true(bench_rows_with(part, PEERS_ROWS, "mframes_per_second") > 5);
	assert_true(bench_rows_with(part, PEERS_ROWS, "ratio_to_best_peer") > 4);
	assert_true(bench_rows_with(part, PEERS_ROWS, "loss_percent") > 5);
	json_decref(whole);
}

static void interrupted(void **state)
{
	(void)state;
	bench_interrupt("peers", "peers", 1200);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event),       cmocka_unit_test(packet), cmocka_unit_test(hash),
		cmocka_unit_test(gro),	       cmocka_unit_test(udp),	 cmocka_unit_test(peers),
		cmocka_unit_test(interrupted),
	};

	lab_run_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

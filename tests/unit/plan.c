/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <control/plan.h>
#include <machine/random.h>

#define NAPI(on, has)                                                                              \
	{                                                                                          \
		.cpu = (on), .load = (has), .movable = true                                        \
	}

static void evens_out(void **state)
{
	struct plan_napi napis[] = {NAPI(0, 0.4), NAPI(0, 0.4), NAPI(1, 0.1)};
	double load[] = {0.8, 0.1};

	(void)state;
	assert_int_equal(plan_moves(napis, 3, load, 2), 1);
	assert_int_equal(napis[0].to + napis[1].to, 1);
	assert_int_equal(napis[2].to, 1);
	assert_true(load[0] > 0.39 && load[0] < 0.41);
	assert_true(load[1] > 0.49 && load[1] < 0.51);
}

static void moves_nothing_for_nothing(void **state)
{
	struct plan_napi even[] = {NAPI(0, 0.5), NAPI(1, 0.47)};
	struct plan_napi one[] = {NAPI(0, 0.9)};
	struct plan_napi small[] = {NAPI(0, 0.30), NAPI(0, 0.04)};
	struct plan_napi fixed[] = {{.cpu = 0, .load = 0.4}, {.cpu = 0, .load = 0.4}};
	double loads[][2] = {{0.5, 0.47}, {0.9, 0}, {0.34, 0.30}, {0.8, 0}};

	(void)state;
	assert_int_equal(plan_moves(even, 2, loads[0], 2), 0);
	assert_int_equal(plan_moves(one, 1, loads[1], 2), 0); /* it would only be elsewhere */
	assert_int_equal(plan_moves(small, 2, loads[2], 2), 0);
	assert_int_equal(plan_moves(fixed, 2, loads[3], 2), 0); /* a person put them there */
	assert_int_equal(plan_moves(NULL, 0, loads[0], 2), 0);
	assert_int_equal(plan_moves(one, 1, loads[1], 1), 0);
}

/* Beside what cannot move: the rest goes round it. */
static void goes_round_what_stays(void **state)
{
	struct plan_napi napis[] = {
		{.cpu = 0, .load = 0.7}, NAPI(0, 0.2), NAPI(1, 0.3), NAPI(2, 0.1)};
	double load[] = {0.9, 0.3, 0.1};

	(void)state;
	assert_int_equal(plan_moves(napis, 4, load, 3), 1);
	assert_int_equal(napis[1].to, 2);
	assert_true(load[0] > 0.69 && load[0] < 0.71);
}

/* Whatever the loads: the most never grows, each step gained, and a second plan finds nothing. */
static void random_loads(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 2000; seed++) {
		struct random random = {.state = seed};
		struct plan_napi napis[32];
		double load[8] = {0}, before = 0, after = 0, sum = 0;
		uint32_t n = 1 + (uint32_t)random_below(&random, 32);
		uint32_t cpus = 1 + (uint32_t)random_below(&random, 8), moves;

		for (uint32_t i = 0; i < n; i++) {
			napis[i] = (struct plan_napi){
				.cpu = (uint32_t)random_below(&random, cpus),
				.load = (double)random_below(&random, 1000) / 1000 / n,
				.movable = random_below(&random, 4),
			};
			load[napis[i].cpu] += napis[i].load;
			sum += napis[i].load;
		}
		for (uint32_t i = 0; i < cpus; i++)
			before = load[i] > before ? load[i] : before;
		moves = plan_moves(napis, n, load, cpus);
		assert_true(moves <= n);
		for (uint32_t i = 0; i < cpus; i++) {
			after = load[i] > after ? load[i] : after;
			sum -= load[i];
		}
		assert_true(sum < 1e-9 && sum > -1e-9);
		assert_true(after <= before + 1e-9);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(napis[i].movable || napis[i].to == napis[i].cpu);
			napis[i].cpu = napis[i].to;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evens_out),
		cmocka_unit_test(moves_nothing_for_nothing),
		cmocka_unit_test(goes_round_what_stays),
		cmocka_unit_test(random_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <lab/histogram.h>

static struct histogram h, other;

static void buckets_cover_everything(void **state)
{
	uint64_t bottom = 0;

	(void)state;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t top = histogram_bucket_top(i);

		assert_true(top >= bottom);
		assert_int_equal(histogram_bucket(bottom), i);
		assert_int_equal(histogram_bucket(top), i);
		/* The error of saying "top" for any value of the bucket. */
		assert_true((top - bottom) * 128 <= bottom);
		bottom = top + 1;
	}
	assert_int_equal(bottom, UINT64_C(1) << HISTOGRAM_VALUE_BITS);
	assert_int_equal(histogram_bucket(bottom), HISTOGRAM_BUCKETS - 1);
	assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

static void small_values_are_exact(void **state)
{
	uint64_t value;

	(void)state;
	histogram_reset(&h);
	for (uint64_t v = 1; v <= 200; v++)
		histogram_record(&h, v);
	assert_int_equal(h.n, 200);
	assert_int_equal(h.min, 1);
	assert_int_equal(h.max, 200);
	assert_true(histogram_mean(&h) == 100.5);
	assert_true(histogram_percentile(&h, 500000, &value));
	assert_int_equal(value, 100);
	assert_true(histogram_percentile(&h, 0, &value));
	assert_int_equal(value, 1);
	assert_true(histogram_percentile(&h, 950000, &value));
	assert_int_equal(value, 190);
}

static void too_few_above_is_not_available(void **state)
{
	uint64_t value = 77;

	(void)state;
	histogram_reset(&h);
	assert_false(histogram_percentile(&h, 500000, &value));
	for (uint64_t v = 0; v < 9999; v++)
		histogram_record(&h, v % 250);
	/* p99.9 of 9999 is rank 9990: nine above. */
	assert_false(histogram_percentile(&h, 999000, &value));
	assert_int_equal(value, 77);
	histogram_record(&h, 0);
	assert_true(histogram_percentile(&h, 999000, &value));
	assert_int_equal(value, 249);
	assert_true(histogram_percentile(&h, 990000, &value));
	assert_false(histogram_percentile(&h, 1000000, &value));
	assert_false(histogram_percentile(&h, 1000001, &value));
}

static void error_is_bounded(void **state)
{
	static const uint64_t scales[] = {1000, 99999, 1234567, 987654321};

	(void)state;
	for (size_t s = 0; s < sizeof(scales) / sizeof(*scales); s++) {
		histogram_reset(&h);
		for (uint64_t i = 1; i <= 1000; i++)
			histogram_record(&h, i * scales[s]);
		for (uint32_t m = 10000; m <= 980000; m += 10000) {
			uint64_t truth = m / 1000 * scales[s], value;

			assert_true(histogram_percentile(&h, m, &value));
			assert_true(value >= truth);
			assert_true((value - truth) * 128 <= truth);
		}
	}
}

static void merge_is_as_if_recorded_in_one(void **state)
{
	static struct histogram whole;

	(void)state;
	histogram_reset(&h);
	histogram_reset(&other);
	histogram_reset(&whole);
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t v = i * i * 7 + 3;

		histogram_record(i % 3 ? &h : &other, v);
		histogram_record(&whole, v);
	}
	histogram_merge(&h, &other);
	assert_memory_equal(&h, &whole, sizeof(h));
	histogram_reset(&other);
	histogram_merge(&h, &other);
	assert_memory_equal(&h, &whole, sizeof(h));
}

static void beyond_the_last_bucket_the_maximum_holds(void **state)
{
	uint64_t value;

	(void)state;
	histogram_reset(&h);
	for (int i = 0; i < 100; i++)
		histogram_record(&h, UINT64_MAX / 1000);
	assert_true(histogram_percentile(&h, 500000, &value));
	assert_int_equal(value, UINT64_MAX / 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_cover_everything),
		cmocka_unit_test(small_values_are_exact),
		cmocka_unit_test(too_few_above_is_not_available),
		cmocka_unit_test(error_is_bounded),
		cmocka_unit_test(merge_is_as_if_recorded_in_one),
		cmocka_unit_test(beyond_the_last_bucket_the_maximum_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

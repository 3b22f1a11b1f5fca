/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <napier/counters.h>

static void sorts_into_buckets(void **state)
{
	(void)state;
	assert_int_equal(wake_bucket(0), 0);
	assert_int_equal(wake_bucket(255), 0);
	assert_int_equal(wake_bucket(256), 1);
	assert_int_equal(wake_bucket(511), 1);
	assert_int_equal(wake_bucket(512), 2);
	assert_int_equal(wake_bucket(1000), 2);
	assert_int_equal(wake_bucket((INT64_C(256) << 22) - 1), 22);
	assert_int_equal(wake_bucket(INT64_C(256) << 22), WAKE_BUCKETS - 1);
	assert_int_equal(wake_bucket(INT64_MAX), WAKE_BUCKETS - 1);
}

static void tells_percentiles(void **state)
{
	uint64_t buckets[WAKE_BUCKETS] = {0};

	(void)state;
	assert_int_equal(wake_percentile(buckets, 99), 0);
	buckets[3] = 99;
	buckets[10] = 1;
	assert_int_equal(wake_percentile(buckets, 99), 256 << 3);
	assert_int_equal(wake_percentile(buckets, 100), 256 << 10);
	buckets[10] = 2;
	assert_int_equal(wake_percentile(buckets, 99), 256 << 10);
	assert_int_equal(wake_percentile(buckets, 50), 256 << 3);
	buckets[WAKE_BUCKETS - 1] = 5;
	assert_int_equal(wake_percentile(buckets, 99), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_into_buckets),
		cmocka_unit_test(tells_percentiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

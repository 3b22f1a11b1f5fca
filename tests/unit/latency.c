/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <errno.h>

#include <lab/measure/latency.h>

static struct histogram h, back;

static json_int_t number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static void none_is_null(void **state)
{
	static const char *const keys[] = {"min", "mean",  "max",    "p50",    "p90",
					   "p99", "p99.9", "p99.99", "buckets"};
	json_t *o;

	(void)state;
	histogram_reset(&h);
	o = latency_json(&h, 0);
	assert_int_equal(number(o, "n"), 0);
	assert_int_equal(number(o, "lost"), 0);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_true(json_is_null(json_object_get(o, keys[i])));
	assert_int_equal(latency_read(o, &back), 0);
	assert_memory_equal(&h, &back, sizeof(h));
	json_decref(o);
}

static void percentiles_need_samples(void **state)
{
	json_t *o;

	(void)state;
	histogram_reset(&h);
	for (uint64_t v = 1; v <= 100; v++)
		histogram_record(&h, v);
	o = latency_json(&h, 0);
	assert_int_equal(number(o, "p50"), 50);
	assert_int_equal(number(o, "p90"), 90);
	assert_true(json_is_null(json_object_get(o, "p99")));
	assert_true(json_is_null(json_object_get(o, "p99.99")));
	assert_true(json_real_value(json_object_get(o, "mean")) == 50.5);
	assert_int_equal(number(o, "min"), 1);
	assert_int_equal(number(o, "max"), 100);
	json_decref(o);
}

/* Those that never came weigh in percentiles: 15 of 1000 are more than one in a hundred. */
static void losses_are_in_it(void **state)
{
	const uint64_t timeout = 1000000000;
	json_t *o;

	(void)state;
	histogram_reset(&h);
	for (unsigned i = 0; i < 985; i++)
		histogram_record(&h, 100);
	for (unsigned i = 0; i < 15; i++)
		histogram_record(&h, timeout);
	o = latency_json(&h, 15);
	assert_int_equal(number(o, "n"), 1000);
	assert_int_equal(number(o, "lost"), 15);
	assert_int_equal(number(o, "p90"), 100);
	assert_int_equal(number(o, "p99"), timeout);
	assert_int_equal(json_array_size(json_object_get(o, "buckets")), 2);
	json_decref(o);
}

static void comes_back_as_it_was(void **state)
{
	json_t *o, *parsed;
	char *text;

	(void)state;
	histogram_reset(&h);
	for (uint64_t i = 0; i < 100000; i++)
		histogram_record(&h, i * i * 7 + 3);
	histogram_record(&h, UINT64_C(1) << 50); /* beyond the last bucket */
	o = latency_json(&h, 0);
	text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
	json_decref(o);
	parsed = json_loads(text, 0, NULL);
	assert_non_null(parsed);
	assert_int_equal(latency_read(parsed, &back), 0);
	assert_true(back.sum - h.sum + 1000 < 2000);
	back.sum = h.sum;
	assert_memory_equal(&h, &back, sizeof(h));
	json_decref(parsed);
	free(text);
}

static void what_is_none_is_refused(void **state)
{
	static const char *const wrong[] = {
		"{}",
		"{\"n\": 0}",
		"{\"n\": 1, \"buckets\": null}",
		"{\"n\": -1, \"buckets\": []}",
		"{\"n\": 2, \"min\": 5, \"mean\": 5, \"max\": 5, \"buckets\": [[5, 1]]}",
		"{\"n\": 1, \"min\": 5, \"mean\": 5, \"max\": 9, \"buckets\": [[5, 1]]}",
		"{\"n\": 1, \"min\": 9, \"mean\": 5, \"max\": 5, \"buckets\": [[5, 1]]}",
		"{\"n\": 1, \"min\": 5, \"mean\": null, \"max\": 5, \"buckets\": [[5, 1]]}",
		"{\"n\": 1, \"min\": 5, \"mean\": 5, \"max\": 5, \"buckets\": [[5, 1, 1]]}",
		"{\"n\": 1, \"min\": 5, \"mean\": 5, \"max\": 5, \"buckets\": [[5, -1], [6, 2]]}",
		"{\"n\": 2, \"min\": 5, \"mean\": 5, \"max\": 5, \"buckets\": [[5, 1], [5, 1]]}",
		"{\"n\": 1, \"min\": 256, \"mean\": 256, \"max\": 256, \"buckets\": [[256, 1]]}",
		"{\"n\": 1, \"min\": 5, \"mean\": 5, \"max\": 5, \"buckets\": [5, 1]}",
	};
	json_t *o;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		o = json_loads(wrong[i], 0, NULL);
		assert_non_null(o);
		assert_int_equal(latency_read(o, &back), -EINVAL);
		json_decref(o);
	}
	o = json_loads("{\"n\": 1, \"min\": 5, \"mean\": 5, \"max\": 5, \"buckets\": [[5, 1]]}", 0,
		       NULL);
	assert_int_equal(latency_read(o, &back), 0);
	assert_int_equal(back.n, 1);
	assert_int_equal(back.sum, 5);
	json_decref(o);
	assert_int_equal(latency_read(NULL, &back), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_null),
		cmocka_unit_test(percentiles_need_samples),
		cmocka_unit_test(losses_are_in_it),
		cmocka_unit_test(comes_back_as_it_was),
		cmocka_unit_test(what_is_none_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

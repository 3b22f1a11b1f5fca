/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <string.h>

#include "lab/report/report.h"
#include "lab/report/results.h"
#include "lab/report/summary.h"

#include "results_fixture.h"

static json_t *some(unsigned systems, double faster, unsigned seed)
{
	json_t *results = results_fixture(&(struct fixture){.systems = systems,
							    .workloads = 1,
							    .repeats = 8,
							    .samples = 4000,
							    .faster = faster,
							    .seed = seed});
	struct error err;

	assert_int_equal(summary_add(results, &err), 0);
	return results;
}

static json_t *fixture(double faster, unsigned seed)
{
	return some(3, faster, seed);
}

static json_t *compare(const json_t *a, const json_t *b)
{
	json_t *comparison = NULL;
	struct error err = {0};

	if (report_compare(a, b, &comparison, &err))
		fail_msg("%s", err.text);
	return comparison;
}

static const json_t *metric_of(const json_t *comparison, const char *system, const char *path)
{
	const json_t *metric;
	size_t i;

	json_array_foreach(json_object_get(comparison, "metrics"), i, metric)
	{
		if (!strcmp(text_of(metric, "system"), system) &&
		    !strcmp(text_of(metric, "workload"), "rr-1") &&
		    !strcmp(text_of(metric, "metric"), path))
			return metric;
	}
	fail_msg("no %s of %s", path, system);
	return NULL;
}

static void assert_verdict(const json_t *comparison, const char *path, const char *verdict)
{
	const json_t *metric = metric_of(comparison, "system-1", path);

	assert_string_equal(text_of(metric, "verdict"), verdict);
}

static bool warned(const json_t *comparison, const char *words)
{
	const json_t *warning;
	size_t i;

	json_array_foreach(json_object_get(comparison, "warnings"), i, warning)
	{
		if (strstr(json_string_value(warning), words))
			return true;
	}
	return false;
}

static void a_faster_one_is_better(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1.3, 2), *comparison = compare(a, b);
	double ratio = 0;

	(void)state;
	assert_verdict(comparison, "latency.service.p50", "better");
	assert_verdict(comparison, "rates.transactions", "better");
	path_number(metric_of(comparison, "system-1", "latency.service.p50"), "ratio", &ratio);
	assert_true(ratio > 0.7 && ratio < 0.84);
	assert_int_equal(json_array_size(json_object_get(comparison, "warnings")), 0);
	json_decref(comparison);

	comparison = compare(b, a);
	assert_verdict(comparison, "latency.service.p50", "worse");
	assert_verdict(comparison, "rates.transactions", "worse");
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
}

/* The same distribution, other samples. Cores do not depend on how fast it is. */
static void chance_is_no_difference(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1, 2), *comparison = compare(a, b);

	(void)state;
	assert_verdict(comparison, "rates.transactions", "none");
	assert_verdict(comparison, "cpu.cores_used", "none");
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
}

static void other_parameters_are_warned_of(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1, 2), *comparison;
	json_t *workload = json_array_get(json_object_get(b, "workloads"), 0);
	json_t *system = json_array_get(json_object_get(b, "systems"), 1);

	(void)state;
	json_object_set_new(json_object_get(workload, "parameters"), "flows", json_integer(7));
	json_object_set_new(b, "name", json_string("another"));
	json_object_set_new(b, "partial", json_true());
	json_object_set_new(system, "poller", json_string("thread"));
	json_object_set_new(json_object_get(b, "environment"), "time", json_string("now"));
	json_object_set_new(json_object_get(b, "environment"), "hypervisor", json_null());
	comparison = compare(a, b);
	assert_true(warned(comparison, "flows is 1 in A, and 7 in B"));
	assert_true(warned(comparison, "different specifications: A \"example\", B \"another\""));
	assert_true(warned(comparison, "B was stopped"));
	assert_int_equal(json_array_size(json_object_get(comparison, "environment")), 1);
	assert_true(warned(comparison, "poller is \"socket busy-poll\" in A, and \"thread\" in B"));
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
}

static void what_one_lacks_is_listed(void **state)
{
	json_t *a = fixture(1, 1), *b = some(2, 1, 2), *comparison = compare(a, b);

	(void)state;
	assert_int_equal(json_array_size(json_object_get(comparison, "only_a")), 1);
	assert_int_equal(json_array_size(json_object_get(comparison, "only_b")), 0);
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
}

static void nothing_in_common_is_said(void **state)
{
	json_t *a = fixture(1, 1), *comparison = NULL;
	json_t *b =
		json_pack("{s:[], s:[], s:[], s:[]}", "systems", "workloads", "runs", "summary");
	struct error err = {0};

	(void)state;
	assert_int_equal(report_compare(a, b, &comparison, &err), -ENODATA);
	assert_non_null(strstr(err.text, "nothing is in both"));
	assert_null(comparison);
	json_decref(a);
	json_decref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_faster_one_is_better),
		cmocka_unit_test(chance_is_no_difference),
		cmocka_unit_test(other_parameters_are_warned_of),
		cmocka_unit_test(what_one_lacks_is_listed),
		cmocka_unit_test(nothing_in_common_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

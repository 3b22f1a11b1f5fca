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

/* Two of one version are told apart; one that has not written its build down is unknown. */
static void another_build_is_warned_of(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1, 2), *comparison;

	(void)state;
	json_object_set_new(json_object_get(a, "environment"), "versions",
			    json_pack("{s:s}", "build", "0123456789ab"));
	comparison = compare(a, b);
	assert_true(warned(comparison, "different builds of napier: A 0123456789ab, B unknown."));
	assert_string_equal(text_of(json_object_get(comparison, "a"), "build"), "0123456789ab");
	assert_string_equal(text_of(json_object_get(comparison, "b"), "build"), "unknown");
	json_decref(comparison);
	json_object_set_new(json_object_get(b, "environment"), "versions",
			    json_pack("{s:s}", "build", "0123456789ab"));
	comparison = compare(a, b);
	assert_false(warned(comparison, "builds"));
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
}

/* The topology of the fixture is one of interfaces that were there. */
static void another_machine_is_warned_of(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1, 2), *comparison;
	json_t *environment = json_object_get(b, "environment");

	(void)state;
	json_object_set_new(json_object_get(environment, "kernel"), "release",
			    json_string("6.18.5"));
	json_object_set_new(json_object_get(environment, "cpu"), "model", json_string("Another"));
	json_object_set_new(json_object_get(a, "environment"), "allowed", json_string("0-1"));
	json_object_set_new(environment, "allowed", json_string("0-7"));
	json_object_set_new(b, "specification", json_string("another text"));
	json_object_set_new(json_object_get(b, "topology"), "kind", json_string("middle"));
	json_object_set_new(a, "peer_environment",
			    json_pack("{s:{s:s}}", "kernel", "release", "6.1"));
	json_object_set_new(b, "peer_environment",
			    json_pack("{s:{s:s}}", "kernel", "release", "6.2"));
	comparison = compare(a, b);
	assert_true(warned(comparison, "Another kernel: A \"6.12.9-amd64\", B \"6.18.5\"."));
	assert_true(
		warned(comparison, "Another CPU: A \"AMD EPYC 7R13 Processor\", B \"Another\"."));
	assert_true(warned(comparison, "Other CPUs that may be used: A \"0-1\", B \"0-7\"."));
	assert_true(
		warned(comparison, "Another kernel of the server's host: A \"6.1\", B \"6.2\"."));
	assert_true(warned(comparison, "The specification's text is not the same."));
	assert_true(warned(comparison, "Client and server were connected differently."));
	assert_int_equal(json_array_size(json_object_get(comparison, "warnings")), 6);
	/* Those, and all else that differs, by its key. */
	assert_int_equal(json_array_size(json_object_get(comparison, "environment")), 4);
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
}

/* Of one system under one workload, as much CPU time more in each run. */
static void cores_scale(json_t *results, const char *system, double factor)
{
	struct error err;
	json_t *run;
	size_t i;

	json_array_foreach(json_object_get(results, "runs"), i, run)
	{
		json_t *cpu = json_object_get(run, "cpu");
		double used = json_number_value(json_object_get(cpu, "cores_used"));

		if (!strcmp(text_of(run, "system"), system))
			json_object_set_new(cpu, "cores_used", json_real(used * factor));
	}
	assert_int_equal(summary_add(results, &err), 0);
}

static void unequal_cores_are_listed(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1, 2), *comparison = compare(a, b);
	const json_t *unequal = json_object_get(comparison, "unequal"), *o;
	double of_a, of_b;

	(void)state;
	assert_true(json_is_array(unequal));
	assert_int_equal(json_array_size(unequal), 0);
	json_decref(comparison);
	cores_scale(b, "system-1", 1.5);
	comparison = compare(a, b);
	unequal = json_object_get(comparison, "unequal");
	assert_int_equal(json_array_size(unequal), 1);
	o = json_array_get(unequal, 0);
	assert_string_equal(text_of(o, "system"), "system-1");
	assert_string_equal(text_of(o, "workload"), "rr-1");
	assert_true(path_number(o, "a", &of_a) && path_number(o, "b", &of_b));
	assert_true(of_b > 1.4 * of_a && of_b < 1.6 * of_a);
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

static void lost_set(json_t *results, int lost)
{
	struct error err;
	json_t *run;
	size_t i;

	json_array_foreach(json_object_get(results, "runs"), i, run) json_object_set_new(
		json_object_get(run, "counts"), "lost", json_integer(lost ? lost + (int)i : 0));
	assert_int_equal(summary_add(results, &err), 0);
}

/* There is no ratio, and yet it is known. */
static void losses_beside_none(void **state)
{
	json_t *a = fixture(1, 1), *b = fixture(1, 2), *comparison;

	(void)state;
	lost_set(a, 0);
	lost_set(b, 500);
	comparison = compare(a, b);
	assert_verdict(comparison, "counts.lost", "worse");
	assert_true(json_is_null(
		json_object_get(metric_of(comparison, "system-1", "counts.lost"), "ratio")));
	json_decref(comparison);
	comparison = compare(b, a);
	assert_verdict(comparison, "counts.lost", "better");
	json_decref(comparison);
	lost_set(b, 0);
	comparison = compare(a, b);
	assert_verdict(comparison, "counts.lost", "none");
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
	json_object_set_new(b, "name", json_string("another"));
	assert_int_equal(report_compare(a, b, &comparison, &err), -ENODATA);
	assert_non_null(
		strstr(err.text, "(A is of the specification \"example\", B of \"another\")"));
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
		cmocka_unit_test(another_build_is_warned_of),
		cmocka_unit_test(another_machine_is_warned_of),
		cmocka_unit_test(unequal_cores_are_listed),
		cmocka_unit_test(what_one_lacks_is_listed),
		cmocka_unit_test(losses_beside_none),
		cmocka_unit_test(nothing_in_common_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lab/report/report.h>
#include <lab/report/summary.h>

#include <cmd/bench_table.h>

#include "results_fixture.h"

static char *table_text(const json_t *results, const char *columns)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	setenv("COLUMNS", columns, 1);
	report_table(results, out);
	fclose(out);
	return text;
}

static unsigned widest(const char *text)
{
	unsigned width = 0, most = 0;

	for (; *text; text++) {
		if (*text == '\n') {
			most = width > most ? width : most;
			width = 0;
		} else {
			width += (*text & 0xc0) != 0x80;
		}
	}
	return most;
}

/* Made once: a summary takes a while. Each gets a copy of its own. */
static json_t *made;

static int fixture_make(void **state)
{
	struct error err;

	(void)state;
	made = results_fixture(&(struct fixture){.systems = 10,
						 .workloads = 3,
						 .repeats = 3,
						 .samples = 2000,
						 .faster = 1,
						 .faults = true});
	return summary_add(made, &err);
}

static int fixture_free(void **state)
{
	(void)state;
	json_decref(made);
	return 0;
}

static json_t *fixture(void)
{
	return json_deep_copy(made);
}

static void everything_is_in_the_table(void **state)
{
	static const char *const said[] = {
		"kernel, softirq",
		"napier, busy-poll",
		"x better",
		"x worse",
		"x none",
		"x unknown",
		"a: one core",
		"response time in us",
		"Skipped: kernel, threaded busy-poll",
		"since Linux 6.19",
		"is invalid: the client was late: 431",
		"failed: server: it ended by signal 9",
		"Scaled: CPU 3",
		"Note: No hardware counters",
		"GRO",
		"p/poll",
	};
	json_t *results = fixture();
	char *text = table_text(results, "120");

	(void)state;
	for (unsigned i = 0; i < sizeof(said) / sizeof(*said); i++) {
		if (!strstr(text, said[i]))
			fail_msg("\"%s\" is missing in:\n%s", said[i], text);
	}
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf"));
	assert_null(strstr(text, "max"));
	assert_true(widest(text) <= 120);
	free(text);
	text = table_text(results, "170");
	assert_non_null(strstr(text, "max"));
	assert_true(widest(text) <= 170);
	free(text);
	json_decref(results);
}

/* As of a stream over TCP. */
static void what_is_not_counted_is_not_none(void **state)
{
	json_t *results = results_fixture(&(struct fixture){
		.systems = 3, .workloads = 1, .repeats = 3, .samples = 100, .faster = 1});
	char *text = table_text(results, "120");
	json_t *run;
	size_t i;

	(void)state;
	assert_non_null(strstr(text, "none lost"));
	free(text);
	json_array_foreach(json_object_get(results, "runs"), i, run)
		json_object_del(json_object_get(run, "counts"), "lost");
	text = table_text(results, "120");
	assert_null(strstr(text, "lost"));
	free(text);
	json_decref(results);
}

static void long_names_are_cut(void **state)
{
	json_t *results = fixture();
	char *text;

	(void)state;
	json_object_set_new(
		json_array_get(json_object_get(results, "systems"), 5), "name",
		json_string("ein Name mit Größe und noch viel mehr, das nicht Platz hat"));
	text = table_text(results, "120");
	assert_true(widest(text) <= 120);
	assert_non_null(strstr(text, "ein Name mit Gr"));
	assert_non_null(strstr(text, "…"));
	free(text);
	json_decref(results);
}

static void nothing_measured_is_said(void **state)
{
	json_t *results = json_pack("{s:[], s:[], s:[]}", "systems", "workloads", "runs");
	char *text = table_text(results, "120");

	(void)state;
	assert_non_null(strstr(text, "No run is valid"));
	free(text);
	json_decref(results);
}

static char *compared(const json_t *a, const json_t *b)
{
	json_t *comparison = NULL;
	struct error err = {0};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	setenv("COLUMNS", "120", 1);
	assert_int_equal(report_compare(a, b, &comparison, &err), 0);
	report_compare_table(comparison, out);
	fclose(out);
	json_decref(comparison);
	return text;
}

static void cores_double(json_t *results)
{
	json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(results, "summary"), i, entry)
	{
		double cores = json_number_value(json_object_get(entry, "median"));

		if (!strcmp(json_string_value(json_object_get(entry, "metric")), "cpu.cores_used"))
			json_object_set_new(entry, "median", json_real(2 * cores));
	}
}

static void what_differs_is_in_the_comparison(void **state)
{
	json_t *a = fixture(), *b = fixture();
	json_t *environment = json_object_get(b, "environment");
	char *text;

	(void)state;
	json_object_set_new(b, "specification", json_string("other"));
	json_object_set_new(json_object_get(environment, "kernel"), "release", json_string("6.18"));
	cores_double(b);
	text = compared(a, b);
	assert_non_null(strstr(text, "With 2 repeats an interval covers less than 95%."));
	assert_non_null(strstr(text, "Not equal cores: kernel, softirq ("));
	assert_non_null(strstr(text, "No comparison of equals."));
	assert_non_null(strstr(text, "did not use as many cores in B as in A"));
	assert_non_null(strstr(text, "WARNING: Another kernel: A \"6.12.9-amd64\", B \"6.18\"."));
	assert_non_null(strstr(text, "WARNING: The specification's text is not the same"));
	assert_non_null(strstr(text, "kernel.release: A \"6.12.9-amd64\", B \"6.18\""));
	assert_non_null(strstr(text, "1.00x"));
	assert_null(strstr(text, "better\n"));
	assert_null(strstr(text, "worse\n"));
	assert_true(widest(text) <= 120);
	free(text);
	json_decref(a);
	json_decref(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_in_the_table),
		cmocka_unit_test(what_is_not_counted_is_not_none),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(nothing_measured_is_said),
		cmocka_unit_test(what_differs_is_in_the_comparison),
	};

	return cmocka_run_group_tests(tests, fixture_make, fixture_free);
}

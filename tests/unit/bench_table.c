/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void comparison_add(json_t *results, const char *system, const char *metric, double ratio,
			   const char *verdict)
{
	json_array_append_new(json_object_get(results, "comparisons"),
			      json_pack("{s:s, s:s, s:s, s:f, s:s}", "system", system, "workload",
					"rr-1", "metric", metric, "ratio", ratio, "verdict",
					verdict));
}

static json_t *fixture(void)
{
	json_t *results = results_fixture(&(struct fixture){.systems = 10,
							    .workloads = 4,
							    .repeats = 2,
							    .samples = 2000,
							    .faster = 1,
							    .faults = true});

	json_object_set_new(results, "comparisons", json_array());
	comparison_add(results, "system-1", "rates.transactions", 2.37, "better");
	comparison_add(results, "system-4", "rates.transactions", 0.74, "worse");
	comparison_add(results, "system-4", "latency.service.p99", 0.94, "none");
	return results;
}

static void everything_is_in_the_table(void **state)
{
	static const char *const said[] = {
		"kernel, softirq",
		"napier, busy-poll",
		"2.37x better",
		"0.74x worse",
		"0.94x none",
		"a: one core",
		"response time in us",
		"Skipped: kernel, threaded busy-poll",
		"since Linux 6.19",
		"Invalid: system-5 under rr-open",
		"Failed: system-3 under rr-1: server",
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_in_the_table),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(nothing_measured_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "lab/report/results.h"
#include "lab/report/summary.h"
#include "lab/report/words.h"

#include "results_fixture.h"

static json_t *parse(const char *text)
{
	json_error_t wrong;
	json_t *o = json_loads(text, 0, &wrong);

	if (!o)
		fail_msg("%d: %s", wrong.line, wrong.text);
	return o;
}

static void paths_find_keys_with_dots(void **state)
{
	json_t *o =
		parse("{\"latency\": {\"service\": {\"p99\": 1, \"p99.9\": 2, \"p99.99\": null}},"
		      " \"steps\": [{\"name\": \"18\", \"rates\": {\"mbit\": 3}},"
		      " {\"name\": \"1.5\", \"rates\": {\"mbit\": 4}}]}");
	double value = 0;

	(void)state;
	assert_true(path_number(o, "latency.service.p99", &value));
	assert_true(value == 1);
	assert_true(path_number(o, "latency.service.p99.9", &value));
	assert_true(value == 2);
	assert_false(path_number(o, "latency.service.p99.99", &value));
	assert_true(path_number(o, "steps.18.rates.mbit", &value));
	assert_true(value == 3);
	assert_true(path_number(o, "steps.1.5.rates.mbit", &value));
	assert_true(value == 4);
	assert_null(path_get(o, "steps.19.rates.mbit"));
	assert_null(path_get(o, "latency.service.p99.9.more"));
	assert_null(path_get(NULL, "latency"));
	json_decref(o);
}

static void figures_have_three_digits(void **state)
{
	char text[WORDS_MAX];
	struct metric m = {.median = 100, .low = 97, .high = 103, .n = 4};

	(void)state;
	assert_string_equal(count_text(0, text), "0");
	assert_string_equal(count_text(17, text), "17");
	assert_string_equal(count_text(0.5, text), "0.50");
	assert_string_equal(count_text(999, text), "999");
	assert_string_equal(count_text(999.6, text), "1.00k");
	assert_string_equal(count_text(24119, text), "24.1k");
	assert_string_equal(count_text(2190000, text), "2.19M");
	assert_string_equal(latency_text(850, text), "850 ns");
	assert_string_equal(latency_text(41234, text), "41.2 us");
	assert_string_equal(latency_text(200183000, text), "200 ms");
	assert_string_equal(latency_text(1e9, text), "1.00 s");
	assert_string_equal(ratio_text(0.752, text), "0.75x");
	assert_string_equal(ratio_text(162.3, text), "162x");
	assert_string_equal(spread_text(&m, text), " ±3%");
	m.n = 1;
	assert_string_equal(spread_text(&m, text), "");
	assert_string_equal(metric_text("rates.received_mbit", 957.17, text), "957 Mbit/s");
	assert_string_equal(metric_text("latency.icmp.p99", 54740000, text), "54.7 ms");
	assert_string_equal(metric_name("latency.response.p99.9", text), "p99.9");
	assert_string_equal(metric_name("latency.udp_be.p99", text), "p99 of udp_be");
}

/* Three runs that count, one that does not; what is compared is given. */
static const char small[] =
	"{\"systems\": [{\"key\": \"a\", \"name\": \"A\", \"base\": true, \"dut\": \"kernel\"},"
	" {\"key\": \"b\", \"name\": \"B\", \"dut\": \"napier\"}, {\"key\": \"c\", \"skipped\": "
	"\"no\"}],"
	" \"workloads\": [{\"key\": \"w\", \"name\": \"W\"}], \"runs\": ["
	"{\"system\": \"a\", \"workload\": \"w\", \"valid\": true, \"error\": null,"
	" \"counts\": {\"started\": 1000, \"lost\": 1}, \"rates\": {\"transactions\": 10},"
	" \"latency\": {\"service\": {\"n\": 1000, \"p99\": 5000}}, \"cpu\": {\"cores_used\": "
	"1.0}},"
	"{\"system\": \"a\", \"workload\": \"w\", \"valid\": true,"
	" \"counts\": {\"started\": 1000, \"lost\": 2}, \"rates\": {\"transactions\": 20},"
	" \"latency\": {\"service\": {\"n\": 1000, \"p99\": 7000}}, \"cpu\": {\"cores_used\": "
	"1.0}},"
	"{\"system\": \"a\", \"workload\": \"w\", \"valid\": false, \"invalid\": \"late\","
	" \"rates\": {\"transactions\": 900}},"
	"{\"system\": \"b\", \"workload\": \"w\", \"valid\": true, \"rates\": {\"transactions\": "
	"30},"
	" \"latency\": {\"service\": {\"n\": 5, \"p99\": null}},"
	" \"cpu\": {\"cores_used\": 1.5, \"napier\": {\"packets_per_poll\": 3, \"gro_ratio\": 2}}},"
	"{\"system\": \"b\", \"workload\": \"w\", \"valid\": false, \"error\": \"dead\"}],"
	" \"comparisons\": [{\"workload\": \"w\", \"metric\": \"rates.transactions\", \"base\": "
	"\"a\","
	" \"system\": \"b\", \"ratio\": 2, \"low\": 1.5, \"high\": 2.5, \"verdict\": \"better\"},"
	" {\"workload\": \"w\", \"metric\": \"latency.service.p99\", \"base\": \"a\", \"system\": "
	"\"b\","
	" \"ratio\": 1.5, \"low\": 1.2, \"high\": 1.7, \"verdict\": \"worse\"}]}";

static void rows_have_valid_runs_alone(void **state)
{
	json_t *o = parse(small);
	struct results results;
	struct row row;

	(void)state;
	assert_int_equal(results_open(o, &results), 0);
	assert_int_equal(results.groups, 1);
	assert_int_equal(results.group[0].systems, 2);
	assert_string_equal(results.group[0].rate, "rates.transactions");
	assert_string_equal(results.group[0].latency, "latency.service");
	assert_string_equal(text_of(results.group[0].base, "key"), "a");
	results_row(&results, &results.group[0], results.group[0].system[0], &row);
	assert_int_equal(row.valid, 2);
	assert_int_equal(row.invalid, 1);
	assert_int_equal(row.failed, 0);
	assert_true(row.rate.median == 15 && row.rate.low == 10 && row.rate.high == 20);
	assert_true(row.lost == 3 && row.of == 2000);
	assert_true(row.p99.median == 6000 && row.p99.n == 2);
	assert_int_equal(row.polled.n, 0);
	results_row(&results, &results.group[0], results.group[0].system[1], &row);
	assert_int_equal(row.valid, 1);
	assert_int_equal(row.failed, 1);
	assert_int_equal(row.p99.n, 0);
	assert_true(row.polled.median == 3 && row.gro.median == 2);
	results_close(&results);
	json_decref(o);
}

static void assert_said(const json_t *sentences, const char *words)
{
	const json_t *sentence;
	size_t i;

	json_array_foreach(sentences, i, sentence)
	{
		if (strstr(json_string_value(sentence), words))
			return;
	}
	fail_msg("nobody says \"%s\"", words);
}

static void sentences_say_better_and_worse(void **state)
{
	json_t *o = parse(small), *sentences;
	struct results results;

	(void)state;
	assert_int_equal(results_open(o, &results), 0);
	sentences = group_sentences(&results, &results.group[0]);
	assert_said(sentences, "p99 against A's 6.00 us. Worse with B (1.50x, 1.20x to 1.70x).");
	assert_said(sentences, "transactions/s against A's 15/s. Better with B (2.00x");
	assert_said(sentences, "Not equal cores: B (1.50); against A (1.00)");
	json_decref(sentences);
	sentences = results_trust(&results);
	assert_said(sentences, "2 systems under 1 workload: 5 runs");
	assert_said(sentences, "1 invalid");
	assert_said(sentences, "1 failed");
	assert_said(sentences, "1 system could not be had");
	json_decref(sentences);
	sentences = results_findings(&results);
	assert_said(sentences, "Of 2 comparisons");
	json_decref(sentences);
	results_close(&results);
	json_decref(o);
}

/* "a" has an invalid run as well: what others did in it is no reason to doubt the figures. */
static void trust_is_of_valid_runs(void **state)
{
	json_t *o = parse(small), *run, *sentences;
	struct results results;
	size_t i;

	(void)state;
	json_array_foreach(json_object_get(o, "runs"), i, run) json_object_set_new(
		run, "cpu",
		json_pack("{s:f, s:f}", "wall_s", 1.0, "others_s", run_valid(run) ? 0.25 : 7.0));
	assert_int_equal(results_open(o, &results), 0);
	sentences = results_trust(&results);
	assert_said(sentences, "Other programs used up to 0.25 CPUs");
	json_decref(sentences);
	results_close(&results);
	json_decref(o);
}

static void what_is_missing_breaks_nothing(void **state)
{
	static const char *const texts[] = {
		"{}", "{\"systems\": 1, \"workloads\": null, \"runs\": {}}",
		"{\"systems\": [null, 1, {}], \"workloads\": [{}, 2], \"runs\": [null, [], {}]}"};
	struct results results;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		json_t *o = parse(texts[i]), *sentences;

		assert_int_equal(results_open(o, &results), 0);
		for (unsigned g = 0; g < results.groups; g++)
			json_decref(group_sentences(&results, &results.group[g]));
		sentences = results_trust(&results);
		assert_said(sentences, "No run is valid");
		json_decref(sentences);
		results_close(&results);
		json_decref(o);
	}
}

/* A median of the longest could be less than the p99.9 of all repeats, which stands beside it. */
static void the_longest_is_of_all_repeats(void **state)
{
	const struct fixture f = {
		.systems = 2, .workloads = 1, .repeats = 3, .samples = 4000, .faster = 1};
	json_t *o = results_fixture(&f), *run;
	struct results results;
	double longest = 0, max;
	struct error err;
	struct row row;
	size_t i;

	(void)state;
	assert_int_equal(summary_add(o, &err), 0);
	json_array_foreach(json_object_get(o, "runs"), i, run)
	{
		if (strcmp(text_of(run, "system"), "system-1") ||
		    !path_number(run, "latency.service.max", &max))
			continue;
		longest = max > longest ? max : longest;
	}
	assert_int_equal(results_open(o, &results), 0);
	results_row(&results, &results.group[0], results.group[0].system[1], &row);
	assert_true(row.max.median == longest && row.max.n == 3);
	assert_true(row.p999.n && row.p999.median <= row.max.median);
	results_close(&results);
	json_decref(o);
}

static void repeats_are_pooled(void **state)
{
	const struct fixture f = {
		.systems = 3, .workloads = 1, .repeats = 3, .samples = 1000, .faster = 1};
	json_t *o = results_fixture(&f);
	struct histogram *h = malloc(sizeof(*h));
	struct results results;

	(void)state;
	assert_int_equal(results_open(o, &results), 0);
	assert_true(results_latency(&results, "system-0", "rr-1", "latency.service", h));
	assert_int_equal(h->n, 3000);
	assert_false(results_latency(&results, "system-0", "rr-1", "latency.response", h));
	assert_non_null(results_typical(&results, "system-0", &results.group[0]));
	results_close(&results);
	json_decref(o);
	free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_find_keys_with_dots),
		cmocka_unit_test(figures_have_three_digits),
		cmocka_unit_test(rows_have_valid_runs_alone),
		cmocka_unit_test(sentences_say_better_and_worse),
		cmocka_unit_test(trust_is_of_valid_runs),
		cmocka_unit_test(what_is_missing_breaks_nothing),
		cmocka_unit_test(the_longest_is_of_all_repeats),
		cmocka_unit_test(repeats_are_pooled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

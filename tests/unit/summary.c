/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <math.h>

#include <lab/measure/latency.h>
#include <lab/report/summary.h>

/* ---- statistics ---- */

static struct interval of(const double *value, unsigned n)
{
	struct interval i = {0};

	assert_true(interval_median(value, n, &i));
	assert_int_equal(i.n, n);
	return i;
}

static void assert_interval(struct interval i, double median, double low, double high)
{
	assert_true(i.median == median);
	assert_true(i.low == low);
	assert_true(i.high == high);
}

/*
 * Known by counting: the median of a sample of three is the least of them in 7 of 27 cases, of five
 * in 5.8%, of nine in 0.1%, and one of its two least in 3%. Outside are 2.5%.
 */
static void intervals_are_exact(void **state)
{
	static const double three[] = {3, 1, 2}, five[] = {5, 1, 4, 2, 3},
			    nine[] = {9, 1, 8, 2, 7, 3, 6, 4, 5}, four[] = {4, 1, 3, 2};

	(void)state;
	assert_interval(of(three, 3), 2, 1, 3);
	assert_interval(of(five, 5), 3, 1, 5);
	assert_interval(of(nine, 9), 5, 2, 8);
	/* Of an even number it is the mean of the middle ones. */
	assert_interval(of(four, 4), 2.5, 1, 4);
	assert_interval(of(three, 1), 3, 3, 3);
}

static void constants_have_no_spread(void **state)
{
	static const double same[] = {7, 7, 7, 7, 7, 7};

	(void)state;
	assert_interval(of(same, 6), 7, 7, 7);
}

/* One in five may be the median of a sample; one in nine is not. */
static void outliers_weigh_little(void **state)
{
	static const double five[] = {10, 10, 1000, 10, 10},
			    nine[] = {10, 10, 10, 10, 1000, 10, 10, 10, 10};

	(void)state;
	assert_interval(of(five, 5), 10, 10, 1000);
	assert_interval(of(nine, 9), 10, 10, 10);
}

static void nothing_has_none(void **state)
{
	static const double wrong[] = {1, NAN, 3}, endless[] = {1, INFINITY}, many[64] = {0};
	struct interval i;

	(void)state;
	assert_false(interval_median(wrong, 0, &i));
	assert_false(interval_median(wrong, 3, &i));
	assert_false(interval_median(endless, 2, &i));
	assert_false(interval_median(many, INTERVAL_VALUES_MAX + 1, &i));
	assert_false(interval_ratio(wrong, wrong, 1, 0, &i));
}

static void ratios(void **state)
{
	/* Rounds differ by a factor of ten; in each, twice as much. */
	static const double base[] = {10, 100, 1, 30, 5, 70}, twice[] = {20, 200, 2, 60, 10, 140},
			    zero[] = {0, 0, 0}, fewer[] = {20, 22, 21};
	struct interval i;

	(void)state;
	assert_true(interval_ratio(twice, base, 6, 6, &i));
	assert_interval(i, 2, 2, 2);
	/* Not paired, nobody could say so. */
	assert_true(interval_ratio_apart(twice, base, 6, 6, &i));
	assert_true(i.median == 2 && i.low < 1 && i.high > 2);
	assert_true(interval_ratio(base, base, 6, 6, &i));
	assert_interval(i, 1, 1, 1);
	assert_true(interval_ratio(fewer, base, 3, 6, &i));
	assert_int_equal(i.n, 3);
	assert_true(i.low <= i.median && i.median <= i.high);
	assert_true(interval_ratio(twice, base, 1, 1, &i));
	assert_interval(i, 2, 2, 2);
	assert_false(interval_ratio(fewer, zero, 3, 3, &i));
	/* The same seed, the same interval. */
	{
		struct interval again;

		assert_true(interval_ratio_apart(twice, base, 6, 6, &i));
		assert_true(interval_ratio_apart(twice, base, 6, 6, &again));
		assert_memory_equal(&i, &again, sizeof(i));
	}
}

/* ---- results ---- */

enum { REPEATS = 6 };

static json_t *results_make(void)
{
	return json_pack("{s:s, s:i, s:[{s:s, s:s, s:s, s:b}, {s:s, s:s, s:s, s:b}, {s:s, s:s, "
			 "s:s, s:b}], s:[{s:s, s:s}], s:[], s:[]}",
			 "schema", "napier-results", "version", 1, "systems", "key", "a", "name",
			 "A", "scenario", "one", "base", 1, "key", "b", "name", "B", "scenario",
			 "one", "base", 0, "key", "c", "name", "C", "scenario", "two", "base", 1,
			 "workloads", "key", "w", "name", "W", "runs", "notes");
}

/* n samples of about so many ns, as one run's. */
static json_t *latency_of(uint64_t ns, unsigned n)
{
	struct histogram *h = malloc(sizeof(*h));
	json_t *o;

	histogram_reset(h);
	for (unsigned i = 0; i < n; i++)
		histogram_record(h, ns + i % 100);
	o = latency_json(h, 0);
	free(h);
	return o;
}

static json_t *run_add(json_t *results, const char *system, int repeat, double rate, uint64_t ns,
		       unsigned samples, double cores)
{
	json_t *run = json_pack(
		"{s:s, s:s, s:i, s:b, s:n, s:n, s:{s:f, s:f}, s:{s:o}, s:{s:i, s:i}, "
		"s:{s:f, s:f, s:{s:f}, s:{s:{s:f, s:n}}}, s:[{s:s, s:{s:f, s:n}, s:{}}]}",
		"system", system, "workload", "w", "repeat", repeat, "valid", 1, "invalid", "error",
		"rates", "transactions", rate, "offered", 1000.0, "latency", "service",
		latency_of(ns, samples), "counts", "lost", 0, "completed", 4711, "cpu", "total_s",
		cores * 2, "cores_used", cores, "ns_per_operation", "total", 5000.0, "parties",
		"client", "total_s", 0.5, "user_s", "steps", "name", "18", "rates", "received_mbit",
		rate / 10, "sent_mbit", "latency");

	assert_non_null(run);
	json_array_append_new(json_object_get(results, "runs"), run);
	return run;
}

static const json_t *find(const json_t *results, const char *where, const char *system,
			  const char *metric)
{
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(results, where), i, o)
	{
		if (!strcmp(json_string_value(json_object_get(o, "system")), system) &&
		    !strcmp(json_string_value(json_object_get(o, "metric")), metric))
			return o;
	}
	return NULL;
}

static double number(const json_t *o, const char *key)
{
	assert_true(json_is_number(json_object_get(o, key)));
	return json_number_value(json_object_get(o, key));
}

static const char *string(const json_t *o, const char *key)
{
	assert_true(json_is_string(json_object_get(o, key)));
	return json_string_value(json_object_get(o, key));
}

static unsigned notes_with(const json_t *results, const char *part)
{
	const json_t *note;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(results, "notes"), i, note) n +=
		strstr(json_string_value(note), part) != NULL;
	return n;
}

static void add(json_t *results)
{
	struct error err = {0};

	assert_int_equal(summary_add(results, &err), 0);
}

static void medians_and_verdicts(void **state)
{
	json_t *results = results_make();
	const json_t *o;

	(void)state;
	for (int i = 0; i < REPEATS; i++) {
		run_add(results, "a", i, 100 + i, 10000, 2000, 1.0);
		run_add(results, "b", i, 200 + 2 * i, 20000, 2000, 1.9);
		run_add(results, "c", i, 100, 10000, 2000, 1.0);
	}
	add(results);

	o = find(results, "summary", "a", "rates.transactions");
	assert_non_null(o);
	assert_true(number(o, "median") == 102.5);
	assert_true(number(o, "low") <= 102 && number(o, "high") >= 103);
	assert_true(number(o, "n") == REPEATS);
	assert_int_equal(json_array_size(json_object_get(o, "values")), REPEATS);
	assert_string_equal(string(o, "better"), "higher");
	assert_string_equal(string(o, "unit"), "1/s");
	o = find(results, "summary", "a", "latency.service.p99");
	assert_string_equal(string(o, "better"), "lower");
	assert_string_equal(string(o, "unit"), "ns");
	assert_null(json_object_get(o, "pooled"));
	assert_true(number(find(results, "summary", "b", "steps.18.rates.received_mbit"),
			   "median") == 20.5);
	assert_string_equal(
		string(find(results, "summary", "b", "steps.18.rates.received_mbit"), "unit"),
		"Mbit/s");
	assert_non_null(find(results, "summary", "a", "cpu.ns_per_operation.total"));
	assert_non_null(find(results, "summary", "a", "cpu.parties.client.total_s"));
	/* Not measured, or no merit. */
	assert_null(find(results, "summary", "a", "steps.18.rates.sent_mbit"));
	assert_null(find(results, "summary", "a", "rates.offered"));
	assert_null(find(results, "summary", "a", "counts.completed"));

	/* Twice the rate in each round, twice the latency, the same cost. */
	o = find(results, "comparisons", "b", "rates.transactions");
	assert_string_equal(string(o, "verdict"), "better");
	assert_string_equal(string(o, "base"), "a");
	assert_string_equal(string(o, "scenario"), "one");
	assert_true(number(o, "ratio") == 2 && number(o, "low") == 2 && number(o, "high") == 2);
	assert_true(number(o, "cores_base") == 1 && number(o, "cores") == 1.9);
	assert_string_equal(string(o, "note"),
			    "B uses 1.90 cores where its base A uses 1.00: not equals.");
	assert_string_equal(
		string(find(results, "comparisons", "b", "latency.service.p50"), "verdict"),
		"worse");
	o = find(results, "comparisons", "b", "cpu.ns_per_operation.total");
	assert_string_equal(string(o, "verdict"), "none");
	assert_true(number(o, "ratio") == 1);
	/* Neither has lost any. */
	assert_string_equal(string(find(results, "comparisons", "b", "counts.lost"), "verdict"),
			    "none");
	/* The base is not compared with itself, nor with what is of another scenario. */
	assert_null(find(results, "comparisons", "a", "rates.transactions"));
	assert_null(find(results, "comparisons", "c", "rates.transactions"));
	assert_int_equal(notes_with(results, ""), 0);
	json_decref(results);
}

static void inside_the_interval_is_none(void **state)
{
	static const double noise[REPEATS] = {100, 90, 110, 95, 105, 101},
			    other[REPEATS] = {95, 108, 91, 112, 100, 99};
	json_t *results = results_make();

	(void)state;
	for (int i = 0; i < REPEATS; i++) {
		run_add(results, "a", i, noise[i], 10000, 2000, 1.0);
		run_add(results, "b", i, other[i], 10000, 2000, 1.05);
	}
	add(results);
	assert_string_equal(
		string(find(results, "comparisons", "b", "rates.transactions"), "verdict"), "none");
	assert_true(json_is_null(
		json_object_get(find(results, "comparisons", "b", "rates.transactions"), "note")));
	json_decref(results);
}

/* Three rounds that go one way are no proof, six are, though the values overlap in both. */
static void few_rounds_have_to_be_apart(void **state)
{
	(void)state;
	for (int n = 3; n <= 6; n += 3) {
		json_t *results = results_make();

		for (int i = 0; i < n; i++) {
			run_add(results, "a", i, 100 + 10 * i, 10000, 2000, 1.0);
			run_add(results, "b", i, 105 + 10 * i, 10000, 2000, 1.0);
		}
		add(results);
		assert_string_equal(
			string(find(results, "comparisons", "b", "rates.transactions"), "verdict"),
			n == 3 ? "none" : "better");
		json_decref(results);
	}
}

/* Two and two are apart by chance in one case of three. */
static void two_rounds_have_to_be_far_apart(void **state)
{
	static const double near[] = {112, 120}, far[] = {121, 130};

	(void)state;
	for (int i = 0; i < 2; i++) {
		json_t *results = results_make();

		for (int n = 0; n < 2; n++) {
			run_add(results, "a", n, 100 + 10 * n, 10000, 2000, 1.0);
			run_add(results, "b", n, i ? far[n] : near[n], 10000, 2000, 1.0);
		}
		add(results);
		assert_string_equal(
			string(find(results, "comparisons", "b", "rates.transactions"), "verdict"),
			i ? "better" : "none");
		json_decref(results);
	}
}

static void one_repeat_says_little(void **state)
{
	json_t *results = results_make();
	const json_t *o;

	(void)state;
	run_add(results, "a", 0, 100, 10000, 2000, 1.0);
	run_add(results, "b", 0, 300, 10000, 2000, 1.0);
	add(results);
	o = find(results, "comparisons", "b", "rates.transactions");
	assert_string_equal(string(o, "verdict"), "unknown");
	assert_true(number(o, "ratio") == 3);
	assert_true(json_is_null(json_object_get(o, "low")));
	assert_true(json_is_null(json_object_get(o, "high")));
	o = find(results, "summary", "b", "rates.transactions");
	assert_true(number(o, "low") == 300 && number(o, "high") == 300 && number(o, "n") == 1);
	assert_int_equal(notes_with(results, "With one repeat"), 1);
	json_decref(results);
}

static void alike_troubles_are_one_sentence(void **state)
{
	json_t *results = results_make(), *run;

	(void)state;
	for (int i = 0; i < 2; i++) {
		run = run_add(results, "a", i, 100, 10000, 2000, 1.0);
		json_object_set_new(run, "valid", json_false());
		json_object_set_new(run, "invalid", json_string("late: 12% of its requests"));
	}
	run = run_add(results, "b", 0, 100, 10000, 2000, 1.0);
	json_object_set_new(run, "valid", json_false());
	json_object_set_new(run, "invalid", json_string("late: 99% of its requests"));
	run = run_add(results, "c", 0, 100, 10000, 2000, 1.0);
	json_object_set_new(run, "valid", json_false());
	json_object_set_new(run, "invalid", json_string("nothing was answered"));
	add(results);
	assert_int_equal(notes_with(results,
				    "3 of 3 runs of A and B under W are invalid: late: 12% "
				    "of its requests (the first of several such reasons)"),
			 1);
	assert_int_equal(notes_with(results, "99%"), 0);
	assert_int_equal(
		notes_with(results, "1 of 1 runs of C under W is invalid: nothing was answered"),
		1);
	json_decref(results);
}

static void bad_runs_are_left_out(void **state)
{
	json_t *results = results_make(), *run;

	(void)state;
	for (int i = 0; i < 3; i++) {
		run_add(results, "a", i, 100, 10000, 2000, 1.0);
		run = run_add(results, "b", i, i ? 1e9 : 200, 10000, 2000, 1.0);
		if (i == 1) {
			json_object_set_new(run, "valid", json_false());
			json_object_set_new(run, "invalid", json_string("generator was late"));
		} else if (i == 2) {
			json_object_set_new(run, "valid", json_false());
			json_object_set_new(run, "error", json_string("no route"));
		}
	}
	run = run_add(results, "c", 0, 5, 10, 10, 1.0);
	json_object_set_new(run, "valid", json_false());
	add(results);
	assert_true(number(find(results, "summary", "b", "rates.transactions"), "median") == 200);
	assert_true(number(find(results, "summary", "b", "rates.transactions"), "n") == 1);
	assert_int_equal(notes_with(results, "1 of 3 runs of B under W is invalid: "
					     "generator was late"),
			 1);
	assert_int_equal(notes_with(results, "1 of 3 runs of B under W failed: no route"), 1);
	assert_null(find(results, "summary", "c", "rates.transactions"));
	/* Again: the same, and no sentence twice. */
	add(results);
	assert_int_equal(notes_with(results, "generator was late"), 1);
	assert_int_equal(notes_with(results, "Where there is one valid repeat"), 1);
	json_decref(results);
}

/* 300 samples have no p99 and 6 x 300 have: by all of them, and without an interval. */
static void percentiles_are_pooled(void **state)
{
	json_t *results = results_make();
	const json_t *o;

	(void)state;
	for (int i = 0; i < REPEATS; i++) {
		run_add(results, "a", i, 100, 100000, 300, 1.0);
		run_add(results, "b", i, 100, 1000000, 300, 1.0);
	}
	add(results);
	o = find(results, "summary", "a", "latency.service.p99");
	assert_true(json_is_true(json_object_get(o, "pooled")));
	assert_true(fabs(number(o, "median") - 100000) < 1000);
	assert_true(json_is_null(json_object_get(o, "low")));
	assert_true(json_is_null(json_object_get(o, "high")));
	assert_true(number(o, "n") == REPEATS);
	o = find(results, "comparisons", "b", "latency.service.p99");
	assert_string_equal(string(o, "verdict"), "unknown");
	assert_true(fabs(number(o, "ratio") - 10) < 0.2);
	assert_true(json_is_null(json_object_get(o, "low")));
	/* Too few even so: not there. */
	assert_null(find(results, "summary", "a", "latency.service.p99.9"));
	assert_null(find(results, "comparisons", "b", "latency.service.p99.9"));
	/* Those that each repeat has are as ever. */
	assert_true(json_is_number(
		json_object_get(find(results, "summary", "a", "latency.service.p50"), "low")));
	json_decref(results);
}

/* None at the base, so there is no ratio, but a verdict. */
static void losses_beside_none(void **state)
{
	json_t *results = results_make(), *run;
	const json_t *o;

	(void)state;
	for (int i = 0; i < REPEATS; i++) {
		run_add(results, "a", i, 100, 10000, 2000, 1.0);
		run = run_add(results, "b", i, 100, 10000, 2000, 1.0);
		json_object_set_new(json_object_get(run, "counts"), "lost", json_integer(50 + i));
	}
	add(results);
	o = find(results, "comparisons", "b", "counts.lost");
	assert_string_equal(string(o, "verdict"), "worse");
	assert_true(json_is_null(json_object_get(o, "ratio")));
	json_decref(results);
}

/* As many values, and of other rounds: they are no pairs. */
static void other_rounds_are_not_paired(void **state)
{
	json_t *results = results_make();

	(void)state;
	for (int i = 0; i < REPEATS; i++) {
		run_add(results, "a", i, 100 * (i + 1), 10000, 2000, 1.0);
		run_add(results, "b", i + 1, 110 * (i + 1), 10000, 2000, 1.0);
	}
	add(results);
	assert_string_equal(
		string(find(results, "comparisons", "b", "rates.transactions"), "verdict"), "none");
	json_decref(results);
}

static void few_repeats_are_said(void **state)
{
	json_t *results = results_make();

	(void)state;
	for (int i = 0; i < 3; i++)
		run_add(results, "a", i, 100, 10000, 2000, 1.0);
	add(results);
	assert_int_equal(notes_with(results, "With 3 repeats an interval has the median in it in "
					     "75%"),
			 1);
	json_decref(results);
}

/* That one has a single valid repeat takes nothing from what is to be said of the others. */
static void a_single_repeat_among_others(void **state)
{
	json_t *results = results_make();

	(void)state;
	for (int i = 0; i < 3; i++)
		run_add(results, "a", i, 100, 10000, 2000, 1.0);
	run_add(results, "b", 0, 100, 10000, 2000, 1.0);
	add(results);
	assert_int_equal(notes_with(results, "With 3 repeats"), 1);
	assert_int_equal(notes_with(results, "With one repeat"), 0);
	assert_int_equal(notes_with(results, "Where there is one valid repeat"), 1);
	json_decref(results);
}

static void what_are_no_results(void **state)
{
	static const char *const wrong[] = {"{}", "[]",
					    "{\"systems\": [], \"workloads\": [], \"runs\": 5}",
					    "{\"systems\": 5, \"workloads\": [], \"runs\": []}"};
	/* Anything may be missing in what is there. */
	static const char *const poor[] = {
		"{\"systems\": [], \"workloads\": [], \"runs\": []}",
		"{\"systems\": [5, {}], \"workloads\": [null, {}], \"runs\": [1, {}, {\"valid\": "
		"true}, {\"valid\": true, \"rates\": 5, \"latency\": {\"x\": 7}, \"cpu\": [], "
		"\"steps\": [{\"name\": 1}]}]}"};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		json_t *o = json_loads(wrong[i], 0, NULL);

		assert_int_equal(summary_add(o, &err), -EINVAL);
		json_decref(o);
	}
	for (size_t i = 0; i < sizeof(poor) / sizeof(*poor); i++) {
		json_t *o = json_loads(poor[i], 0, NULL);

		assert_int_equal(summary_add(o, &err), 0);
		assert_int_equal(json_array_size(json_object_get(o, "summary")), 0);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_are_exact),
		cmocka_unit_test(constants_have_no_spread),
		cmocka_unit_test(outliers_weigh_little),
		cmocka_unit_test(nothing_has_none),
		cmocka_unit_test(ratios),
		cmocka_unit_test(medians_and_verdicts),
		cmocka_unit_test(inside_the_interval_is_none),
		cmocka_unit_test(few_rounds_have_to_be_apart),
		cmocka_unit_test(two_rounds_have_to_be_far_apart),
		cmocka_unit_test(one_repeat_says_little),
		cmocka_unit_test(bad_runs_are_left_out),
		cmocka_unit_test(alike_troubles_are_one_sentence),
		cmocka_unit_test(percentiles_are_pooled),
		cmocka_unit_test(losses_beside_none),
		cmocka_unit_test(other_rounds_are_not_paired),
		cmocka_unit_test(few_repeats_are_said),
		cmocka_unit_test(a_single_repeat_among_others),
		cmocka_unit_test(what_are_no_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

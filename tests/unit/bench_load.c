/* SPDX-License-Identifier: BSD-2-Clause */
/* A run's figures as lines and as tables. */
#include "test.h"

#include <lab/measure/latency.h>

#include <cmd/bench_load.h>

static struct load_percentiles percentiles;

static void percentiles_are_read(void **state)
{
	static const char *const wrong[] = {"",	     "50,",    "0",  "100",    "x",
					    "50 90", "50,,90", "-1", "0.00001"};
	char many[256] = "1";

	(void)state;
	assert_true(load_percentiles_parse("50,99.9,99.99", &percentiles));
	assert_int_equal(percentiles.n, 3);
	assert_int_equal(percentiles.at[0].millionths, 500000);
	assert_int_equal(percentiles.at[1].millionths, 999000);
	assert_int_equal(percentiles.at[2].millionths, 999900);
	assert_string_equal(percentiles.at[2].name, "99.99");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_false(load_percentiles_parse(wrong[i], &percentiles));
	for (int i = 1; i < LOAD_PERCENTILES_MAX; i++)
		strcat(many, ",1");
	assert_true(load_percentiles_parse(many, &percentiles));
	strcat(many, ",1");
	assert_false(load_percentiles_parse(many, &percentiles));
}

static void words_tell_what_runs(void **state)
{
	struct load_config config = {
		.kind = LOAD_RR, .flows = 1, .threads = 2, .request_size = 3, .response_size = 4};
	char text[256];

	(void)state;
	load_words(&config, text, sizeof(text));
	assert_string_equal(
		text, "rr: TCP, 1 flow, 2 threads, requests of 3 B, responses of 4 B, closed loop");
	config.protocol = LOAD_UDP;
	config.rate = 1500;
	config.arrivals = LOAD_POISSON;
	load_words(&config, text, sizeof(text));
	assert_string_equal(text, "rr: UDP, 1 flow, 2 threads, requests of 3 B, responses of 4 B, "
				  "1500/s at random");
	config = (struct load_config){
		.kind = LOAD_STREAM, .flows = 2, .threads = 1, .direction = LOAD_BOTH};
	load_words(&config, text, sizeof(text));
	assert_string_equal(text, "stream: TCP both ways, 2 flows, 1 thread");
}

/* 1 to 1000 us, and nothing that was not measured. */
static json_t *run_make(void)
{
	static struct histogram h;

	histogram_reset(&h);
	for (uint64_t us = 1; us <= 1000; us++)
		histogram_record(&h, us * 1000);
	return json_pack("{s:b, s:n, s:f, s:{s:i, s:i}, s:{s:f, s:n}, s:{s:o, s:o}, s:[{s:s, s:f, "
			 "s:{s:f}, s:{s:i}}, {s:s, s:f, s:{s:n}, s:{s:i}}], s:{s:f, s:{s:{s:f}}, "
			 "s:{s:f, s:n}}}",
			 "valid", 1, "invalid", "duration_s", 2.5, "counts", "completed", 1000,
			 "lost", 0, "rates", "transactions", 400.0, "offered", "latency", "service",
			 latency_json(&h, 0), "response", latency_json(&h, 3), "steps", "name",
			 "18", "duration_s", 1.0, "rates", "received_mbit", 1.5, "counts", "lost",
			 7, "name", "1472", "duration_s", 1.5, "rates", "received_mbit", "counts",
			 "lost", 8, "cpu", "wall_s", 2.5, "parties", "kernel threads", "total_s",
			 1.25, "ns_per_operation", "client", 250.0, "server");
}

static char *shown;
static size_t length;

static void assert_shown(const char *part)
{
	if (!strstr(shown, part))
		fail_msg("\"%s\" is not in\n%s", part, shown);
}

static void lines_have_what_was_measured(void **state)
{
	static const struct load_config config = {.kind = LOAD_RR, .flows = 3, .threads = 2};
	static const char *const lines[] = {
		"valid=1\n",
		"\ntotal_run_time=2.500000\n",
		"\nnum_flows=3\n",
		"\nnum_threads=2\n",
		"\nthroughput=400.00\n",
		"\nthroughput_units=transactions/s\n",
		"\nnum_completed=1000\n",
		"\nnum_lost=0\n",
		"\nlatency_n=1000\n",
		"\nlatency_min=0.000001000\n",
		"\nlatency_max=0.001000000\n",
		"\nlatency_response_n=1000\n",
		"\nstep_18_received_mbit=1.5\n",
		"\nstep_1472_lost=8\n",
		"\ncpu_kernel_threads_s=1.25\n",
		"\ncpu_client_ns_per_operation=250\n",
	};
	json_t *run = run_make();
	FILE *out = open_memstream(&shown, &length);

	(void)state;
	assert_non_null(run);
	assert_true(load_percentiles_parse("50,99.9", &percentiles));
	load_keys(run, &config, &percentiles, out);
	fclose(out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_shown(lines[i]);
	/* 501 us at most: buckets are less than 1% wide. */
	assert_shown("\nlatency_p50=0.00050");
	/* One sample above it is too few; what is null has no line. */
	assert_null(strstr(shown, "p99.9"));
	assert_null(strstr(shown, "offered"));
	assert_null(strstr(shown, "step_1472_received"));
	assert_null(strstr(shown, "cpu_server"));
	assert_null(strstr(shown, "nan"));
	free(shown);
	json_decref(run);
}

static void tables_have_dashes_for_the_rest(void **state)
{
	static const struct load_config config = {
		.kind = LOAD_RR, .flows = 3, .threads = 2, .request_size = 1, .response_size = 1};
	json_t *run = run_make();
	FILE *out = open_memstream(&shown, &length);

	(void)state;
	assert_true(load_percentiles_parse("50,99.9", &percentiles));
	load_table(run, &config, &percentiles, out);
	fclose(out);
	assert_shown("rr: TCP, 3 flows, 2 threads");
	assert_shown("; 2.50 s\n");
	assert_shown("transactions/s   400\n");
	assert_shown("offered/s          -\n");
	assert_shown("p50  p99.9      max\n");
	assert_shown("      -  1.00 ms\n");
	assert_shown("received Mbit/s  lost\n");
	assert_shown("1472  1.50                -     8\n");
	assert_shown("kernel threads  0.50");
	free(shown);
	json_decref(run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_read),
		cmocka_unit_test(words_tell_what_runs),
		cmocka_unit_test(lines_have_what_was_measured),
		cmocka_unit_test(tables_have_dashes_for_the_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

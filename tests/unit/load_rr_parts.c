/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of rr that need no traffic: schedules, figures, what is asked and refused. */
#include "test.h"

#include <lab/load/rr.h>
#include <lab/load/rr_arrivals.h>
#include <lab/load/rr_client.h>
#include <lab/load/rr_stats.h>
#include <lab/load/side.h>

static void constant_arrivals_interleave(void **state)
{
	const struct load_config config = {.rate = 1000, .arrivals = LOAD_CONSTANT};
	struct rr_arrivals a[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		rr_arrivals_start(&a[i], &config, i, 4, 5000);
	for (unsigned n = 0; n < 100; n++) {
		assert_int_equal(rr_arrivals_next(&a[n % 4]), 5000 + n * 1000000);
		rr_arrivals_step(&a[n % 4]);
	}
}

static void poisson_arrivals_follow_the_seed(void **state)
{
	enum { N = 100000 };
	struct load_config config = {.rate = 1e6, .arrivals = LOAD_POISSON, .seed = 7};
	struct rr_arrivals a, b, other;
	double squares = 0;
	int64_t last;
	unsigned differs = 0;

	(void)state;
	rr_arrivals_start(&a, &config, 1, 2, 0);
	rr_arrivals_start(&b, &config, 1, 2, 0);
	config.seed = 8;
	rr_arrivals_start(&other, &config, 1, 2, 0);
	last = 0;
	for (unsigned i = 0; i < N; i++) {
		double gap = (double)(rr_arrivals_next(&a) - last);

		squares += gap * gap;
		assert_true(gap >= 0);
		last = rr_arrivals_next(&a);
		assert_int_equal(rr_arrivals_next(&b), last);
		differs += rr_arrivals_next(&other) != last;
		rr_arrivals_step(&a);
		rr_arrivals_step(&b);
		rr_arrivals_step(&other);
	}
	assert_true(differs > N - 10);
	/* Half of 10^6 a second each: 2000 ns. Exponential: the mean square is twice the mean's. */
	assert_true((double)last / N > 1980 && (double)last / N < 2020);
	assert_true(squares / N > 2 * 1950.0 * 1950 && squares / N < 2 * 2050.0 * 2050);
}

static void intervals_have_percentiles(void **state)
{
	static struct rr_interval interval;
	uint64_t value;

	(void)state;
	assert_false(rr_interval_percentile(&interval, 500000, &value));
	for (unsigned i = 1; i <= 2000; i++)
		rr_interval_record(&interval, i * 1000);
	assert_true(rr_interval_percentile(&interval, 500000, &value));
	assert_in_range(value, 1000000 * 0.93, 1000000 * 1.07);
	assert_true(rr_interval_percentile(&interval, 990000, &value));
	assert_in_range(value, 1980000 * 0.93, 1980000 * 1.07);
	/* 2 samples lie above it. */
	assert_false(rr_interval_percentile(&interval, 999000, &value));
	memset(&interval, 0, sizeof(interval));
	for (unsigned i = 0; i < 20; i++)
		rr_interval_record(&interval, UINT64_MAX);
	assert_true(rr_interval_percentile(&interval, 500000, &value));
	for (uint64_t v = 0; v < (UINT64_C(1) << 40); v = v * 9 / 8 + 1)
		assert_in_range(rr_coarse_bucket(v), 0, RR_COARSE_BUCKETS - 1);
}

static void stats_add_up(void **state)
{
	struct rr_stats *a = rr_stats_create(), *b = rr_stats_create();
	const struct rr_run run = {
		.open_loop = true, .duration = 2000000000, .interval = 1000000000, .intervals = 2};
	json_t *o, *series;

	(void)state;
	a->interval = calloc(2, sizeof(*a->interval));
	b->interval = calloc(2, sizeof(*b->interval));
	a->started = 3;
	a->completed = 2;
	a->lost = a->timeouts = 1;
	a->transactions = 2;
	b->started = b->completed = 7;
	b->transactions = 6;
	for (unsigned i = 0; i < 6; i++)
		rr_interval_record(&b->interval[1], 5);
	rr_interval_record(&a->interval[0], 5);
	rr_interval_record(&a->interval[1], 5);
	rr_stats_add(a, b, 2);
	o = rr_stats_json(a, &run);
	assert_true(json_is_true(json_object_get(o, "valid")));
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(o, "counts"), "started")), 10);
	assert_true(json_number_value(
			    json_object_get(json_object_get(o, "rates"), "transactions")) == 4);
	assert_true(json_number_value(json_object_get(json_object_get(o, "rates"), "offered")) ==
		    5);
	series = json_object_get(json_object_get(o, "series"), "transactions");
	assert_int_equal(json_integer_value(json_array_get(series, 0)), 1);
	assert_int_equal(json_integer_value(json_array_get(series, 1)), 7);
	json_decref(o);
	/* 10 that were late of less than 1000. */
	a->started = 999;
	a->late = 10;
	o = rr_stats_json(a, &run);
	assert_non_null(strstr(json_string_value(json_object_get(o, "invalid")), "late"));
	json_decref(o);
	a->started = 1000;
	o = rr_stats_json(a, &run);
	assert_true(json_is_true(json_object_get(o, "valid")));
	json_decref(o);
	free(b->interval);
	b->interval = NULL;
	rr_stats_add(a, b, 2);
	assert_null(a->interval);
	free(a);
	free(b);
}

static void what_is_not_possible_is_named(void **state)
{
	static const struct {
		struct load_config config;
		const char *key;
	} cases[] = {
		{{.request_size = LOAD_SIZE_MAX + 1}, "request_size"},
		{{.protocol = LOAD_UDP, .response_size = 65508}, "response_size"},
		{{.flows = LOAD_FLOWS_MAX + 1}, "flows"},
		{{.flows = 100, .threads = LOAD_THREADS_MAX + 1}, "threads"},
		{{.flows = 1, .threads = 2}, "threads"},
		{{.server_threads = LOAD_THREADS_MAX + 1}, "server_threads"},
		{{.rate = -1}, "rate"},
		{{.outstanding = 5}, "outstanding"},
		{{.rate = 5, .outstanding = LOAD_OUTSTANDING_MAX + 1}, "outstanding"},
		{{.flows = 4, .threads = 4, .rate = 5, .outstanding = 3}, "outstanding"},
		{{.protocol = LOAD_UDP, .connect = true}, "connect"},
		{{.stall = 5, .stall_every = 5}, "stall"},
		{{.timeout = -1}, "timeout"},
		{{.work = NSEC_PER_SEC}, "work"},
	};
	struct load_config config = {.rate = 5}, twice;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		config = cases[i].config;
		assert_int_equal(load_rr.check(&config, &err), -EINVAL);
		assert_non_null(strstr(err.text, cases[i].key));
	}
	config = (struct load_config){.rate = 5, .threads = 2, .flows = 2};
	assert_int_equal(load_rr.check(&config, &err), 0);
	assert_int_equal(config.server_threads, 2);
	assert_int_equal(config.request_size, 1);
	assert_int_equal(config.timeout, NSEC_PER_SEC);
	assert_int_equal(config.outstanding, LOAD_OUTSTANDING_MAX);
	twice = config;
	assert_int_equal(load_rr.check(&twice, &err), 0);
	assert_memory_equal(&twice, &config, sizeof(config));
}

static void every_parameter_is_compared(void **state)
{
	struct load_config ours = {.flows = 1}, theirs;
	struct load_place place = {.netns = -1, .address = "::1", .port = 5};
	struct rr_hello asked, answer;
	struct error err;

	(void)state;
	assert_int_equal(load_rr.check(&ours, &err), 0);
	for (unsigned i = 0; i < RR_PARAMETERS; i++) {
		rr_hello_make(&ours, RR_ASKS, &asked);
		assert_int_equal(rr_hello_answer(&ours, &asked, &answer), RR_ACCEPTS);
		assert_int_equal(rr_hello_check(&ours, &place, &answer, sizeof(answer), &err), 0);
		((uint8_t *)&asked.value[i])[7] ^= 1;
		assert_int_equal(rr_hello_answer(&ours, &asked, &answer), RR_REFUSES);
		((uint8_t *)&answer.value[i])[7] ^= 1;
		assert_int_equal(rr_hello_check(&ours, &place, &answer, sizeof(answer), &err),
				 -EPROTO);
	}
	theirs = ours;
	theirs.rate = 1234.5;
	rr_hello_make(&ours, RR_ASKS, &asked);
	assert_int_equal(rr_hello_answer(&theirs, &asked, &answer), RR_REFUSES);
	assert_int_equal(rr_hello_check(&ours, &place, &answer, sizeof(answer), &err), -EPROTO);
	assert_string_equal(err.text,
			    "the server at ::1 port 5 has rate = 1234.5, not 0: give both "
			    "sides the same");
}

/* Control was off its CPU while it chose the time: what was due meanwhile is of the run. */
static void *due_while_it_begins(void *arg)
{
	return rr_within(arg, 1000) ? arg : NULL;
}

static void what_is_due_while_it_begins_counts(void **state)
{
	struct rr_client client = {.begin = RR_BEGINNING};
	pthread_t thread;
	void *counts;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, due_while_it_begins, &client), 0);
	/* So that it has asked before, mostly: it has to be right either way. */
	clock_sleep(20 * NSEC_PER_MSEC);
	client.end = 2000;
	client.begin = 900;
	pthread_join(thread, &counts);
	assert_ptr_equal(counts, &client);
}

static void *nothing(void *arg)
{
	return arg;
}

static void places_have_addresses(void **state)
{
	struct load_place place = {.netns = -1, .address = "::1", .port = 5};
	struct sockaddr_storage a;
	struct error err;
	socklen_t length;
	pthread_t thread;

	(void)state;
	assert_int_equal(side_address(&place, 1, &a, &length, &err), 0);
	assert_int_equal(a.ss_family, AF_INET6);
	strcpy(place.address, "10.0.0.1");
	assert_int_equal(side_address(&place, 1, &a, &length, &err), 0);
	assert_int_equal(a.ss_family, AF_INET);
	place.address[0] = 0;
	assert_int_equal(side_address(&place, 1, &a, &length, &err), 0);
	strcpy(place.address, "nowhere");
	assert_int_equal(side_address(&place, 1, &a, &length, &err), -EINVAL);
	assert_non_null(strstr(err.text, "nowhere"));
	cpuset_add(&place.cpus, CPU_MAX - 1);
	assert_int_equal(side_thread_start(&place, 0, "none", &thread, nothing, NULL, &err),
			 -EINVAL);
	assert_non_null(strstr(err.text, "it is not there"));
	assert_int_equal(side_files_want(1, &err), 0);
	assert_int_equal(side_files_want(2000000000, &err), -EMFILE);
	assert_ptr_equal(load_ops(LOAD_RR), &load_rr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constant_arrivals_interleave),
		cmocka_unit_test(poisson_arrivals_follow_the_seed),
		cmocka_unit_test(intervals_have_percentiles),
		cmocka_unit_test(stats_add_up),
		cmocka_unit_test(what_is_not_possible_is_named),
		cmocka_unit_test(every_parameter_is_compared),
		cmocka_unit_test(what_is_due_while_it_begins_counts),
		cmocka_unit_test(places_have_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

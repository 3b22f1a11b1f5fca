/* SPDX-License-Identifier: BSD-2-Clause */
/* rr over the loopback: every request is accounted for, in each mode. */
#include "test.h"

#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/rr.h>

#define MSEC NSEC_PER_MSEC

static struct load_place place = {.netns = -1, .address = "127.0.0.1"};
static json_t *result, *served;
static struct error err;

/* Of this process, so that two runs of the test do not meet; several, as some stay in use a while.
 */
static void port_next(void)
{
	static unsigned n;

	place.port = (uint16_t)(10000 + (unsigned)getpid() % 1000 * 10 + 2 * (n++ % 5));
}

static void drop(void)
{
	json_decref(result);
	json_decref(served);
	result = served = NULL;
}

static json_int_t count(const char *name)
{
	json_t *n = json_object_get(json_object_get(result, "counts"), name);

	assert_true(json_is_integer(n));
	return json_integer_value(n);
}

static json_int_t served_count(const char *name)
{
	return json_integer_value(json_object_get(json_object_get(served, "counts"), name));
}

static json_t *latency(const char *name)
{
	return json_object_get(json_object_get(result, "latency"), name);
}

static json_int_t samples(const char *name)
{
	return json_integer_value(json_object_get(latency(name), "n"));
}

/* What holds of any result. */
static void result_check(const struct load_config *config, double duration)
{
	json_t *series = json_object_get(result, "series"), *n;
	json_int_t sum = 0;
	size_t i;

	assert_int_equal(count("started"), count("completed") + count("lost"));
	assert_true(count("timeouts") <= count("lost"));
	assert_int_equal(samples("service"), count("started"));
	assert_int_equal(json_integer_value(json_object_get(latency("service"), "lost")),
			 count("lost"));
	if (config->rate > 0)
		assert_int_equal(samples("response"), count("started"));
	else
		assert_null(latency("response"));
	json_array_foreach(json_object_get(series, "transactions"), i, n) sum +=
		json_integer_value(n);
	assert_int_equal(sum, count("transactions"));
	assert_int_equal(json_array_size(json_object_get(series, "p50_ns")), i);
	assert_int_equal(json_array_size(json_object_get(series, "p99_ns")), i);
	assert_true(json_number_value(json_object_get(result, "duration_s")) == duration);
	assert_int_equal(json_is_null(json_object_get(result, "invalid")),
			 json_is_true(json_object_get(result, "valid")));
}

static void run(const struct load_config *config, int64_t warm, int64_t duration)
{
	struct load_config patient = *config;
	void *server, *client;

	drop();
	port_next();
	memset(&err, 0, sizeof(err));
	/* Nothing gets lost, however busy the machine is. */
	patient.timeout = 60 * NSEC_PER_SEC;
	load_rr.server_start(&patient, &place, &server, &err);
	assert_string_equal(err.text, "");
	load_rr.client_start(&patient, &place, &client, &err);
	assert_string_equal(err.text, "");
	clock_sleep(warm);
	load_rr.client_measure(client, duration);
	clock_sleep(duration + MSEC);
	load_rr.client_stop(client, &result, &err);
	assert_string_equal(err.text, "");
	load_rr.server_stop(server, &served);
	result_check(config, (double)duration / 1e9);
}

static void closed_loop_counts(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP, .flows = 1, .request_size = 200, .response_size = 400},
		{.protocol = LOAD_TCP, .flows = 50, .threads = 2, .server_threads = 3},
		{.protocol = LOAD_TCP,
		 .flows = 7,
		 .threads = 3,
		 .request_size = 8,
		 .response_size = 3},
		{.protocol = LOAD_TCP, .flows = 3, .request_size = 300000, .response_size = 10},
		{.protocol = LOAD_TCP,
		 .flows = 3,
		 .request_size = 10,
		 .response_size = LOAD_SIZE_MAX},
		{.protocol = LOAD_TCP, .flows = 4, .threads = 2, .connect = true},
		{.protocol = LOAD_TCP, .flows = 2, .client_spins = true, .server_spins = true},
		{.protocol = LOAD_UDP, .flows = 1, .request_size = 200, .response_size = 400},
		{.protocol = LOAD_UDP, .flows = 1, .client_spins = true, .server_spins = true},
		{.protocol = LOAD_UDP, .flows = 3, .threads = 3, .work = 1000},
		{.protocol = LOAD_UDP, .flows = 50, .threads = 2},
		{.protocol = LOAD_UDP, .flows = 2, .request_size = 60000, .response_size = 8},
		{.protocol = LOAD_UDP, .flows = 2, .request_size = 4, .response_size = 20000},
		{.protocol = LOAD_UDP, .flows = 2, .client_spins = true, .server_spins = true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct load_config *c = &cases[i];

		/* On a busy machine nothing may be done in so short a time, which says nothing. */
		for (int64_t longer = 1; longer <= 64; longer *= 2) {
			run(c, 10 * MSEC, longer * 50 * MSEC);
			if (count("transactions"))
				break;
		}
		assert_true(json_is_true(json_object_get(result, "valid")));
		assert_int_equal(count("lost"), 0);
		assert_true(count("transactions") > 0);
		/* The server has also had those before and after. */
		assert_true(served_count("transactions") >= count("completed"));
		assert_int_equal(count("bytes_received"),
				 count("transactions") * (c->response_size ? c->response_size : 1));
		assert_int_equal(served_count("refused"), 0);
		if (c->protocol == LOAD_UDP)
			assert_int_equal(served_count("connections"), 1);
		else if (!c->connect)
			assert_int_equal(served_count("connections"), c->flows);
	}
}

static void open_loop_counts(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP, .flows = 1, .rate = 2000},
		{.protocol = LOAD_TCP,
		 .flows = 9,
		 .threads = 2,
		 .rate = 5000,
		 .arrivals = LOAD_POISSON},
		{.protocol = LOAD_TCP, .flows = 4, .rate = 400, .connect = true},
		{.protocol = LOAD_TCP,
		 .flows = 1,
		 .rate = 200,
		 .request_size = 300000,
		 .response_size = 300000,
		 .outstanding = 4},
		{.protocol = LOAD_UDP, .flows = 1, .rate = 2000, .request_size = 64},
		{.protocol = LOAD_UDP,
		 .flows = 9,
		 .threads = 2,
		 .rate = 5000,
		 .request_size = 64,
		 .response_size = 64,
		 .arrivals = LOAD_POISSON},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct load_config *c = &cases[i];
		double expected = c->rate * 0.1;

		run(c, 10 * MSEC, 100 * MSEC);
		/* All that were due have been started, exactly: the schedule is known. */
		if (c->arrivals == LOAD_CONSTANT)
			assert_true(count("started") >= (json_int_t)expected - 1 &&
				    count("started") <= (json_int_t)expected + 1);
		assert_int_equal(count("lost"), 0);
	}
}

static void over_ipv6(void **state)
{
	struct load_config config = {.protocol = LOAD_TCP, .flows = 2};
	void *server;

	(void)state;
	strcpy(place.address, "::1");
	port_next();
	if (load_rr.server_start(&config, &place, &server, &err)) {
		strcpy(place.address, "127.0.0.1");
		skip();
	}
	load_rr.server_stop(server, NULL);
	drop();
	for (int64_t longer = 1; longer <= 64 && !(result && count("transactions")); longer *= 2)
		run(&config, 10 * MSEC, longer * 50 * MSEC);
	assert_true(count("transactions") > 0);
	config.protocol = LOAD_UDP;
	config.rate = 1000;
	run(&config, 10 * MSEC, 100 * MSEC);
	assert_in_range(count("started"), 99, 101);
	assert_int_equal(count("lost"), 0);
	strcpy(place.address, "127.0.0.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_loop_counts),
		cmocka_unit_test(open_loop_counts),
		cmocka_unit_test(over_ipv6),
	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	drop();
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* rr over the loopback: every request is accounted for, in each mode. */
#include "test.h"

#include <errno.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/rr.h>

#include "loopback.h"

#define MSEC NSEC_PER_MSEC

static struct load_place place = {.netns = -1};
static json_t *result, *served;
static struct error err;

/* Several, as some stay in use a while. Those of ::1 are all processes'. */
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

static uint64_t drops; /* the kernel's, of datagrams, in the last run */

static void *server_start(const struct load_config *config)
{
	void *server;
	int ret, tries = 5;

	do {
		port_next();
		memset(&err, 0, sizeof(err));
		ret = load_rr.server_start(config, &place, &server, &err);
	} while (ret == -EADDRINUSE && --tries);
	assert_string_equal(err.text, "");
	return server;
}

static void run(const struct load_config *config, int64_t warm, int64_t duration)
{
	struct load_config patient = *config;
	void *server, *client;

	drop();
	drops = loopback_drops();
	/* Nothing gets lost, however busy the machine is. */
	patient.timeout = 60 * NSEC_PER_SEC;
	server = server_start(&patient);
	load_rr.client_start(&patient, &place, &client, &err);
	assert_string_equal(err.text, "");
	clock_sleep(warm);
	load_rr.client_measure(client, duration);
	clock_sleep(duration + MSEC);
	load_rr.client_stop(client, &result, &err);
	assert_string_equal(err.text, "");
	load_rr.server_stop(server, &served);
	drops = loopback_drops() - drops;
	/* Of UDP what the kernel has dropped, and TCP sends that again. */
	assert_in_range(count("lost"), 0, config->protocol == LOAD_UDP ? drops : 0);
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
		assert_true(count("transactions") > 0);
		/* The server has also had those before and after. */
		assert_true(served_count("transactions") >= count("completed"));
		assert_int_equal(count("bytes_received"),
				 count("transactions") * (c->response_size ? c->response_size : 1));
		assert_int_equal(served_count("refused"), 0);
		/* Of UDP it is the hello, which comes again while its answer does not. */
		if (c->protocol == LOAD_UDP)
			assert_true(served_count("connections") >= 1);
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
		/* No more under way than fit into a socket, however long its reader is put off. */
		{.protocol = LOAD_UDP,
		 .flows = 1,
		 .rate = 2000,
		 .request_size = 64,
		 .outstanding = 64},
		{.protocol = LOAD_UDP,
		 .flows = 9,
		 .threads = 2,
		 .rate = 5000,
		 .request_size = 64,
		 .response_size = 64,
		 .outstanding = 64,
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
	}
}

static void over_ipv6(void **state)
{
	struct load_config config = {.protocol = LOAD_TCP, .flows = 2};
	void *server;
	int ret;

	(void)state;
	strcpy(place.address, "::1");
	port_next();
	ret = load_rr.server_start(&config, &place, &server, &err);
	if (ret && ret != -EADDRINUSE) {
		loopback_address(place.address, sizeof(place.address));
		skip();
	}
	if (!ret)
		load_rr.server_stop(server, NULL);
	drop();
	for (int64_t longer = 1; longer <= 64 && !(result && count("transactions")); longer *= 2)
		run(&config, 10 * MSEC, longer * 50 * MSEC);
	assert_true(count("transactions") > 0);
	config.protocol = LOAD_UDP;
	config.rate = 1000;
	config.outstanding = 64;
	run(&config, 10 * MSEC, 100 * MSEC);
	assert_in_range(count("started"), 99, 101);
	loopback_address(place.address, sizeof(place.address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closed_loop_counts),
		cmocka_unit_test(open_loop_counts),
		cmocka_unit_test(over_ipv6),
	};
	int ret;

	loopback_address(place.address, sizeof(place.address));
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	drop();
	return ret;
}

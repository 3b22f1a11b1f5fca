/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams and rrul from one namespace to another over a link, also while that is down. */
#include "test.h"

#include <sched.h>
#include <unistd.h>

#include <napier/machine.h>

#include <lab/clock.h>
#include <lab/load/load.h>
#include <lab/netlab.h>

#define MS NSEC_PER_MSEC
#define LONGEST (10 * NSEC_PER_SEC)

static char rundir[] = "/tmp/napier-load-XXXXXX";
static struct netlab *lab;
static struct load_place server_place = {.address = "10.99.0.2", .port = 7001};
static struct load_place client_place = {.address = "10.99.0.2", .port = 7001};
static void *server, *client;
static json_t *result;

static int setup(void **state)
{
	static const char *const names[] = {"a", "b"}, *const addresses[] = {"10.99.0.1",
									     "10.99.0.2"};
	struct error err = {0};
	int ret = 0;

	(void)state;
	if (!mkdtemp(rundir))
		return -1;
	ret = netlab_open(rundir, &lab, &err);
	for (unsigned i = 0; i < 2 && ret >= 0; i++)
		ret = netlab_namespace_add(lab, names[i], &err);
	if (ret >= 0)
		ret = netlab_veth_add(lab, 0, "e0", 1, "e0", &err);
	for (unsigned i = 0; i < 2 && !ret; i++) {
		ret = netlab_address_add(lab, i, "e0", addresses[i], 24, &err);
		if (!ret)
			ret = netlab_link_up(lab, i, "e0", true, &err);
	}
	if (ret < 0) {
		printf("%s\n", err.text);
		return -1;
	}
	client_place.netns = lab->namespace[0].fd;
	server_place.netns = lab->namespace[1].fd;
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	netlab_close(lab);
	return rmdir(rundir);
}

static int run_stop(void **state)
{
	enum load_kind kind = (enum load_kind)(uintptr_t)*state;
	const struct load_ops *ops = load_ops(kind);

	if (client)
		ops->client_stop(client, NULL, NULL);
	if (server)
		ops->server_stop(server, NULL);
	client = server = NULL;
	json_decref(result);
	result = NULL;
	return 0;
}

static void both_start(const struct load_ops *ops, struct load_config *config)
{
	struct error err = {0};

	if (ops->check(config, &err) || ops->server_start(config, &server_place, &server, &err) ||
	    ops->client_start(config, &client_place, &client, &err))
		fail_msg("%s", err.text);
}

static void client_stop(const struct load_ops *ops)
{
	struct error err = {0};
	int ret = ops->client_stop(client, &result, &err);

	client = NULL;
	if (ret)
		fail_msg("%s", err.text);
}

static uint64_t count(const char *key)
{
	const json_t *value = json_object_get(json_object_get(result, "counts"), key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

/* One that nothing happens to. */
static void run(const struct load_ops *ops, struct load_config *config, int64_t duration)
{
	both_start(ops, config);
	ops->client_measure(client, duration);
	clock_sleep(duration);
	client_stop(ops);
	assert_int_equal(count("sent"), count("received") + count("lost"));
}

/* Of a run that is done again for longer. */
static void run_again(const struct load_ops *ops)
{
	ops->server_stop(server, NULL);
	server = NULL;
	json_decref(result);
	result = NULL;
}

/* What becomes of datagrams while the link is down for a quarter of the run. */
static void down_run(struct load_config *config, int64_t quarter)
{
	struct error err = {0};

	both_start(&load_stream, config);
	load_stream.client_measure(client, 4 * quarter);
	clock_sleep(quarter);
	assert_int_equal(netlab_link_up(lab, 1, "e0", false, &err), 0);
	clock_sleep(quarter);
	assert_int_equal(netlab_link_up(lab, 1, "e0", true, &err), 0);
	clock_sleep(2 * quarter);
	client_stop(&load_stream);
	assert_int_equal(count("sent"), count("received") + count("lost"));
}

/*
 * What is sent while the link is down is lost; all else has come, and the run ends in time. On a
 * busy machine neither side may run in so short a time, so it is longer each time.
 */
static void what_a_link_loses_is_counted(void **state)
{
	struct load_config config = {.kind = LOAD_STREAM,
				     .protocol = LOAD_UDP,
				     .direction = LOAD_UP,
				     .flows = 4,
				     .rate = 2000,
				     .timeout = 500 * MS,
				     .sizes = 1,
				     .size = {200}};

	*state = (void *)(uintptr_t)LOAD_STREAM;
	for (int64_t quarter = 150 * MS; 4 * quarter <= LONGEST; quarter *= 2) {
		down_run(&config, quarter);
		/* Refused by the system, or gone. */
		if (count("received") > 0 && count("lost") + count("send_errors") > 0)
			return;
		run_again(&load_stream);
	}
	fail();
}

/* For longer each time, until something was received. */
static void a_flood_crosses_a_link_both_ways(void **state)
{
	struct load_config config = {.kind = LOAD_STREAM,
				     .protocol = LOAD_UDP,
				     .direction = LOAD_BOTH,
				     .flows = 8,
				     .threads = 2,
				     .timeout = 400 * MS,
				     .sizes = 2,
				     .size = {18, 1472}};

	*state = (void *)(uintptr_t)LOAD_STREAM;
	for (int64_t duration = 300 * MS; duration <= LONGEST; duration *= 2) {
		run(&load_stream, &config, duration);
		assert_int_equal(count("duplicated"), 0);
		/* Behind a flood the server may hear late that it is measured. */
		if (count("received") > 0) {
			assert_true(json_is_true(json_object_get(result, "valid")) ||
				    json_is_true(json_object_get(result, "late")));
			return;
		}
		run_again(&load_stream);
	}
	fail();
}

static bool bytes_crossed(void)
{
	const json_t *rates = json_object_get(result, "rates");

	return json_number_value(json_object_get(rates, "up_mbit")) > 0 &&
	       json_number_value(json_object_get(rates, "down_mbit")) > 0;
}

static bool pings_came(void)
{
	const json_t *icmp = json_object_get(json_object_get(result, "latency"), "icmp");

	return json_integer_value(json_object_get(icmp, "n")) >
	       json_integer_value(json_object_get(icmp, "lost"));
}

/* With ICMP, which here is always allowed. For longer each time, until all has crossed. */
static void rrul_crosses_a_link(void **state)
{
	struct load_config config = {.kind = LOAD_RRUL, .probe_rate = 200, .timeout = 500 * MS};

	*state = (void *)(uintptr_t)LOAD_RRUL;
	for (int64_t duration = 400 * MS; duration <= LONGEST; duration *= 2) {
		run(&load_rrul, &config, duration);
		if (bytes_crossed() && pings_came())
			return;
		run_again(&load_rrul);
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_a_link_loses_is_counted, run_stop),
		cmocka_unit_test_teardown(a_flood_crosses_a_link_both_ways, run_stop),
		cmocka_unit_test_teardown(rrul_crosses_a_link, run_stop),
	};

	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, cleanup);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* rr over the loopback of a namespace of its own: every transaction is accounted for. */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/netlab.h>
#include <lab/rr.h>

static char rundir[] = "/tmp/napier-rr-XXXXXX";
static struct netlab *lab;
static struct rr_result result;

static int setup(void **state)
{
	struct error err = {0};

	(void)state;
	if (!mkdtemp(rundir) || netlab_open(rundir, &lab, &err) ||
	    netlab_namespace_add(lab, "rr", &err) < 0) {
		printf("%s\n", err.text);
		return -1;
	}
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	netlab_close(lab);
	return rmdir(rundir);
}

static struct rr_config config_of(unsigned flows, unsigned threads, uint32_t request,
				  uint32_t response)
{
	return (struct rr_config){
		.netns = lab->namespace[0].fd,
		.address = "127.0.0.1",
		.port = 7001,
		.threads = threads,
		.flows = flows,
		.request_size = request,
		.response_size = response,
		.timeout = 20 * NSEC_PER_SEC,
		.interval = 10 * NSEC_PER_MSEC,
	};
}

struct counted {
	unsigned flows, threads, server_threads;
	uint32_t request, response;
};

/* False: on a busy machine nothing was done in so short a time, so it says nothing. */
static bool counts_are_exact_in(const struct counted *counted, int64_t warm_up, int64_t time)
{
	struct rr_config client_config =
		config_of(counted->flows, counted->threads, counted->request, counted->response);
	struct rr_config server_config = client_config;
	struct rr_server_result served;
	struct error err = {0};
	struct rr_server *server;
	struct rr_client *client;
	uint64_t sum = 0;

	server_config.threads = counted->server_threads;
	demo_server_start(&server_config, &server, &err);
	assert_string_equal(err.text, "");
	demo_client_start(&client_config, &client, &err);
	assert_string_equal(err.text, "");
	clock_sleep(warm_up);
	demo_client_measure(client);
	clock_sleep(time);
	assert_true(demo_client_cpu(client) > 0);
	assert_true(demo_server_cpu(server) > 0);
	demo_client_stop(client, &result);
	demo_server_stop(server, &served);
	assert_int_equal(result.lost, 0);
	assert_int_equal(result.started, result.completed);
	assert_int_equal(served.transactions, result.completed);
	assert_int_equal(served.connections, counted->flows);
	assert_int_equal(served.refused, 0);
	assert_int_equal(result.reconnects, 0);
	assert_int_equal(result.latency.n, result.transactions);
	assert_true(result.duration >= time);
	assert_true(result.intervals >= 15);
	for (unsigned k = 0; k < RR_INTERVALS; k++) {
		sum += result.interval[k];
		assert_true(k < result.intervals || !result.interval[k]);
	}
	assert_int_equal(sum, result.transactions);
	assert_true(result.completed >= result.transactions);
	return result.transactions && result.completed > result.transactions;
}

static void counts_are_exact(void **state)
{
	static const struct counted cases[] = {
		{1, 1, 1, 200, 400}, {7, 3, 2, 200, 400},     {50, 2, 2, 1, 1},
		{2, 4, 1, 7, 9},     {3, 2, 2, 300000, 10},   {3, 2, 2, 10, 300000},
		{2, 1, 1, 8, 8},     {2, 1, 1, 65536, 65536},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int64_t longer = 1;

		while (!counts_are_exact_in(&cases[i], longer * 30 * NSEC_PER_MSEC,
					    longer * 150 * NSEC_PER_MSEC)) {
			longer *= 2;
			assert_true(longer <= 16);
		}
	}
}

static void other_sizes_are_refused(void **state)
{
	struct rr_config config = config_of(2, 1, 200, 400);
	struct rr_server_result served;
	struct error err = {0};
	struct rr_server *server;
	struct rr_client *client;

	(void)state;
	assert_int_equal(demo_server_start(&config, &server, &err), 0);
	config.response_size = 401;
	assert_int_equal(demo_client_start(&config, &client, &err), -EPROTO);
	assert_string_equal(err.text, "the server at 127.0.0.1 port 7001 answers 200 B with 400 B, "
				      "not 200 B with 401 B as asked: give both sides the same "
				      "sizes");
	demo_server_stop(server, &served);
	assert_in_range(served.refused, 1, 2);
	assert_int_equal(served.transactions, 0);
}

static void wrong_settings_are_named(void **state)
{
	struct rr_config config = config_of(1, 1, 0, 400);
	struct error err = {0};
	struct rr_server *server, *second;
	struct rr_client *client;

	(void)state;
	assert_int_equal(demo_client_start(&config, &client, &err), -EINVAL);
	config = config_of(1, 0, 1, 1);
	assert_int_equal(demo_server_start(&config, &server, &err), -EINVAL);
	config = config_of(1, 1, 1, 1);
	strcpy(config.address, "localhost");
	assert_int_equal(demo_client_start(&config, &client, &err), -EINVAL);
	assert_non_null(strstr(err.text, "localhost"));
	config = config_of(1, 1, 1, 1);
	assert_int_equal(demo_server_start(&config, &server, &err), 0);
	assert_int_equal(demo_server_start(&config, &second, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "127.0.0.1 port 7001"));
	demo_server_stop(server, NULL);
}

static void a_server_that_ends_loses_what_was_under_way(void **state)
{
	struct rr_config config = config_of(5, 2, 100, 100);
	struct rr_server_result served;
	struct error err = {0};
	struct rr_server *server;
	struct rr_client *client;

	(void)state;
	assert_int_equal(demo_server_start(&config, &server, &err), 0);
	assert_int_equal(demo_client_start(&config, &client, &err), 0);
	demo_client_measure(client);
	clock_sleep(50 * NSEC_PER_MSEC);
	demo_server_stop(server, &served);
	clock_sleep(50 * NSEC_PER_MSEC);
	demo_client_stop(client, &result);
	assert_int_equal(result.started, result.completed + result.lost);
	/* Closed loop: each flow had exactly one under way. */
	assert_int_equal(result.lost, 5);
	/* A response may have been on its way when its connection was closed. */
	assert_in_range(served.transactions, result.completed, result.completed + 5);
}

/* A server by hand: greets well, and then answers with `answer`, or not at all. */
static const char *answer;
static _Atomic bool fake_ready;

static void *fake_server(void *arg)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7001)};
	struct error err;
	int fd, one = 1;

	(void)arg;
	netlab_enter(lab, 0, &err);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	bind(fd, (void *)&address, sizeof(address));
	listen(fd, 8);
	fake_ready = true;
	for (int i = 0; i < 3; i++) {
		int connection = accept(fd, NULL, NULL);
		char data[64];

		while (recv(connection, data, 16, 0) == 16) {
			const void *out = answer && data[0] != 'n' ? answer : data;

			if ((data[0] == 'n' || answer) &&
			    send(connection, out, 16, MSG_NOSIGNAL) != 16)
				break;
		}
		close(connection);
	}
	close(fd);
	return NULL;
}

static void fake_run(int64_t timeout, int64_t duration)
{
	struct rr_config config = config_of(1, 1, 16, 16);
	struct error err = {0};
	struct rr_client *client;
	pthread_t thread;

	config.timeout = timeout;
	fake_ready = false;
	assert_int_equal(pthread_create(&thread, NULL, fake_server, NULL), 0);
	while (!fake_ready)
		clock_sleep(NSEC_PER_MSEC);
	demo_client_start(&config, &client, &err);
	assert_string_equal(err.text, "");
	demo_client_measure(client);
	clock_sleep(duration);
	demo_client_stop(client, &result);
	for (uint64_t i = result.lost; i < 3; i++) { /* the fake waits for three connections */
		struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7001)};
		int fd;

		assert_int_equal(netlab_enter(lab, 0, &err), 0);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (void *)&address, sizeof(address)))
			i = 3;
		close(fd);
	}
	pthread_join(thread, NULL);
}

static void no_answer_in_time_is_a_loss(void **state)
{
	(void)state;
	answer = NULL;
	fake_run(100 * NSEC_PER_MSEC, 150 * NSEC_PER_MSEC);
	assert_int_equal(result.completed, 0);
	assert_int_equal(result.started, result.lost);
	assert_true(result.lost >= 1);
	assert_int_equal(result.latency.n, 0);
}

static void a_response_to_something_else_is_a_loss(void **state)
{
	(void)state;
	answer = "sixteen letters.";
	fake_run(20 * NSEC_PER_SEC, 30 * NSEC_PER_MSEC);
	assert_int_equal(result.completed, 0);
	assert_int_equal(result.started, result.lost);
	assert_true(result.lost >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_exact),
		cmocka_unit_test(other_sizes_are_refused),
		cmocka_unit_test(wrong_settings_are_named),
		cmocka_unit_test(a_server_that_ends_loses_what_was_under_way),
		cmocka_unit_test(no_answer_in_time_is_a_loss),
		cmocka_unit_test(a_response_to_something_else_is_a_loss),
	};

	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, cleanup);
}

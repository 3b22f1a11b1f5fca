/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rr over a veth between two namespaces: the kernel's sockets with their busy-poll options, and
 * napier's UDP sockets in the server's place.
 */
#include "test.h"

#include <sched.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/rr.h>
#include <lab/netlab.h>

#define MSEC NSEC_PER_MSEC

static char rundir[] = "/tmp/napier-load-rr-XXXXXX";
static struct netlab *lab;
static char near[16];
static struct load_place server_at, client_at;
static json_t *result, *served;
static struct error err;

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(rundir) || netlab_open(rundir, &lab, &err) ||
	    netlab_namespace_add(lab, "near", &err) < 0 ||
	    netlab_namespace_add(lab, "far", &err) < 0) {
		printf("%s\n", err.text);
		return -1;
	}
	netlab_name(lab, "n", near);
	if (netlab_veth_add(lab, 0, near, 1, "far0", &err) ||
	    netlab_address_add(lab, 1, "far0", "10.79.0.1", 24, &err) ||
	    /* Sums that are left to the device would be left to nobody. */
	    netlab_offload_set(lab, 1, "far0", NETLAB_TX_CSUM, false, &err) ||
	    netlab_link_up(lab, 0, near, true, &err) ||
	    netlab_link_up(lab, 1, "far0", true, &err)) {
		printf("%s\n", err.text);
		return -1;
	}
	server_at = client_at = (struct load_place){
		.netns = lab->namespace[0].fd, .address = "10.79.0.2", .port = 7100};
	client_at.netns = lab->namespace[1].fd;
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	json_decref(result);
	json_decref(served);
	netlab_close(lab);
	return rmdir(rundir);
}

static json_int_t count_of(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(json_object_get(o, "counts"), name));
}

/*
 * What an engine of a moment ago had may not be free yet on a busy machine, whose kernel gives it
 * back by and by.
 */
static void *server_start(const struct load_config *config)
{
	void *server = NULL;
	int rc = -EBUSY;

	for (int i = 0; i < 30 && rc == -EBUSY; i++) {
		err = (struct error){0};
		rc = load_rr.server_start(config, &server_at, &server, &err);
	}
	assert_string_equal(err.text, "");
	return server;
}

static void run(const struct load_config *config, int64_t duration)
{
	const struct load_ops *rr = load_ops(LOAD_RR);
	void *server, *client;
	pid_t tids[LOAD_TIDS_MAX];

	json_decref(result);
	json_decref(served);
	result = served = NULL;
	server = server_start(config);
	rr->client_start(config, &client_at, &client, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(rr->server_threads(server, tids), config->server_threads);
	assert_true(tids[0] > 0);
	assert_int_equal(rr->client_threads(client, tids), config->threads);
	assert_true(tids[0] > 0);
	rr->client_measure(client, duration);
	clock_sleep(duration);
	rr->client_stop(client, &result, &err);
	assert_string_equal(err.text, "");
	rr->server_stop(server, &served);
	assert_int_equal(count_of(result, "started"),
			 count_of(result, "completed") + count_of(result, "lost"));
	assert_true(count_of(served, "transactions") >= count_of(result, "completed"));
}

/* On a busy machine nothing may be done in so short a time, which says nothing. */
static void done_run(const struct load_config *config)
{
	for (int64_t longer = 1; longer <= 32; longer *= 2) {
		run(config, longer * 100 * MSEC);
		if (count_of(result, "completed"))
			return;
	}
	fail();
}

static void napiers_sockets_answer(void **state)
{
	static const struct {
		enum poller poller;
		struct load_config config;
		const char *settings;
	} cases[] = {
		{POLLER_APP, {.request_size = 14, .response_size = 14, .flows = 1}, ""},
		{POLLER_THREAD, {.request_size = 200, .response_size = 1000, .flows = 20}, ""},
		{POLLER_SOFTIRQ,
		 {.request_size = 64,
		  .response_size = 64,
		  .flows = 2,
		  .rate = 1000,
		  .arrivals = LOAD_POISSON},
		 "netdev_budget = 64; busy_read = 20;"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct load_config config = cases[i].config;
		struct load_engine *engine = &server_at.engine;

		config.protocol = LOAD_UDP;
		config.threads = config.server_threads = 1;
		*engine = (struct load_engine){
			.used = true, .address = "10.79.0.2/24", .poller = cases[i].poller};
		snprintf(engine->port, sizeof(engine->port), "xdp:%s", near);
		snprintf(engine->settings, sizeof(engine->settings), "%s", cases[i].settings);
		done_run(&config);
		assert_true(count_of(served, "polls") > 0);
		assert_true(count_of(served, "packets") >= count_of(result, "completed"));
		assert_int_equal(count_of(served, "refused"), 0);
	}
}

static void what_napiers_sockets_cannot_is_refused(void **state)
{
	struct load_config config = {.protocol = LOAD_TCP};
	void *server;

	(void)state;
	server_at.engine = (struct load_engine){.used = true, .address = "10.79.0.2/24"};
	snprintf(server_at.engine.port, sizeof(server_at.engine.port), "xdp:%s", near);
	assert_int_equal(load_rr.server_start(&config, &server_at, &server, &err), -EINVAL);
	assert_non_null(strstr(err.text, "UDP"));
	config.protocol = LOAD_UDP;
	config.server_threads = 2;
	assert_int_equal(load_rr.server_start(&config, &server_at, &server, &err), -EINVAL);
	assert_non_null(strstr(err.text, "server_threads = 2"));
	config.server_threads = 1;
	snprintf(server_at.engine.settings, sizeof(server_at.engine.settings), "no_such_key = 1;");
	assert_int_equal(load_rr.server_start(&config, &server_at, &server, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no_such_key"));
	snprintf(server_at.engine.settings, sizeof(server_at.engine.settings), "%s", "");
	snprintf(server_at.engine.port, sizeof(server_at.engine.port), "xdp:none0");
	assert_true(load_rr.server_start(&config, &server_at, &server, &err) < 0);
	assert_non_null(strstr(err.text, "none0"));
	memset(&err, 0, sizeof(err));
}

static void busy_poll_options_are_taken(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP,
		 .flows = 2,
		 .busy_poll_usecs = 50,
		 .prefer_busy_poll = true,
		 .busy_poll_budget = 64},
		{.protocol = LOAD_UDP, .flows = 2, .busy_poll_usecs = 50, .client_spins = true},
	};

	(void)state;
	server_at.engine.used = false;
	assert_int_equal(netlab_address_add(lab, 0, near, "10.79.0.2", 24, &err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct load_config config = cases[i];

		config.threads = config.server_threads = 1;
		config.timeout = 60 * NSEC_PER_SEC; /* however late: it is not lost */
		done_run(&config);
		assert_int_equal(count_of(result, "lost"), 0);
	}
}

static void more_await(void *client, uint64_t more)
{
	int64_t deadline = clock_now() + 60 * NSEC_PER_SEC;
	struct load_progress from, now;

	load_rr.client_progress(client, &from);
	do {
		clock_sleep(MSEC);
		load_rr.client_progress(client, &now);
	} while (now.done < from.done + more && clock_now() < deadline);
	assert_true(now.done >= from.done + more);
}

/* The link is away for so long, with requests before and afterwards. */
static void away_run(const struct load_config *config, int64_t away)
{
	void *server = server_start(config), *client;

	load_rr.client_start(config, &client_at, &client, &err);
	assert_string_equal(err.text, "");
	load_rr.client_measure(client, 600 * NSEC_PER_SEC);
	more_await(client, 100);
	assert_int_equal(netlab_link_up(lab, 0, near, false, &err), 0);
	clock_sleep(away);
	assert_int_equal(netlab_link_up(lab, 0, near, true, &err), 0);
	more_await(client, 100);
	json_decref(result);
	json_decref(served);
	result = served = NULL;
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	load_rr.server_stop(server, &served);
	assert_int_equal(count_of(result, "started"),
			 count_of(result, "completed") + count_of(result, "lost"));
	assert_true(json_is_true(json_object_get(result, "valid")));
}

/*
 * TCP repairs it, and says so; UDP's requests are lost. All flows go on afterwards. Nobody may have
 * run while it was away, who then has lost nothing: it is away for longer each time.
 */
static void what_the_network_loses(void **state)
{
	static const struct {
		struct load_config config;
		bool repaired;
	} cases[] = {
		{{.protocol = LOAD_UDP, .flows = 4, .timeout = 20 * MSEC}, false},
		{{.protocol = LOAD_TCP, .flows = 4, .timeout = 60 * NSEC_PER_SEC}, true},
		{{.protocol = LOAD_TCP, .flows = 4, .timeout = 30 * MSEC}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool seen = false;

		for (int64_t away = 100 * MSEC; away <= 4 * NSEC_PER_SEC && !seen; away *= 2) {
			away_run(&cases[i].config, away);
			seen = cases[i].repaired ? count_of(result, "retransmits") +
								   count_of(served, "retransmits") >
							   0
						 : count_of(result, "lost") >= 1;
		}
		assert_true(seen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(napiers_sockets_answer),
		cmocka_unit_test(what_napiers_sockets_cannot_is_refused),
		cmocka_unit_test(busy_poll_options_are_taken),
		cmocka_unit_test(what_the_network_loses),
	};

	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, cleanup);
}

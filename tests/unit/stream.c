/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams over the loopback: every datagram and byte is accounted for. */
#include "test.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/load.h>

#include "loopback.h"

#define MS NSEC_PER_MSEC

static struct load_place place = {.netns = -1};
static void *server, *client;
static json_t *result;

static struct load_config config_of(enum load_protocol protocol, enum load_direction direction)
{
	return (struct load_config){
		.kind = LOAD_STREAM,
		.protocol = protocol,
		.direction = direction,
		.flows = 4,
		.threads = 2,
		.server_threads = 1,
		.timeout = 40 * NSEC_PER_SEC, /* a quarter of it may be silent */
		.interval = 20 * MS,
		.rate = protocol == LOAD_UDP ? 1000 : 0,
		.sizes = 2,
		.size = {100, 700},
	};
}

static void server_start(struct load_config *config)
{
	struct error err = {0};
	int ret;

	assert_int_equal(load_stream.check(config, &err), 0);
	/* Another test may have the port. */
	for (int i = 0; i < 100; i++) {
		ret = load_stream.server_start(config, &place, &server, &err);
		if (ret != -EADDRINUSE)
			break;
		place.port += 8;
	}
	if (ret)
		fail_msg("%s", err.text);
}

static void both_start(struct load_config *config)
{
	struct error err = {0};

	server_start(config);
	if (load_stream.client_start(config, &place, &client, &err))
		fail_msg("%s", err.text);
}

static int run_stop(void **state)
{
	(void)state;
	if (client)
		load_stream.client_stop(client, NULL, NULL);
	if (server)
		load_stream.server_stop(server, NULL);
	client = server = NULL;
	json_decref(result);
	result = NULL;
	return 0;
}

static int client_stop(struct error *err)
{
	int ret = load_stream.client_stop(client, &result, err);

	client = NULL;
	assert_non_null(result);
	return ret;
}

static void measure(int64_t duration)
{
	struct error err = {0};

	load_stream.client_measure(client, duration);
	clock_sleep(duration);
	if (client_stop(&err))
		fail_msg("%s", err.text);
}

static const json_t *at(const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	if (!value)
		fail_msg("no key %s", key);
	return value;
}

static uint64_t count(const json_t *o, const char *key)
{
	const json_t *value = at(at(o, "counts"), key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static double rate(const json_t *o, const char *key)
{
	const json_t *value = at(at(o, "rates"), key);

	assert_true(json_is_number(value) && isfinite(json_number_value(value)));
	return json_number_value(value);
}

/* A rate that a side has not counted for is null. */
static bool is_known(void)
{
	const json_t *value;
	const char *key;
	size_t i;

	json_object_foreach((json_t *)at(result, "rates"), key, value)
	{
		if (!json_is_number(value))
			return false;
	}
	json_array_foreach((json_t *)at(result, "steps"), i, value)
	{
		if (!count(value, "bytes_sent") || !count(value, "bytes_received"))
			return false;
	}
	return true;
}

/*
 * On a busy machine a thread may not run in so short a time, or hear of it too late, which says
 * nothing: then again, for twice as long. How long it was.
 */
static int64_t measure_known(struct load_config *config, int64_t duration)
{
	struct error err = {0};

	for (int i = 0; i < 6; i++, duration *= 2) {
		if (!client && load_stream.client_start(config, &place, &client, &err))
			fail_msg("%s", err.text);
		json_decref(result);
		result = NULL;
		measure(duration);
		if (is_known())
			return duration;
	}
	fail_msg("nothing was measured, though it had seconds");
	return 0;
}

static double series_sum(const char *key)
{
	const json_t *array = at(at(result, "series"), key), *value;
	double sum = 0;
	size_t i;

	json_array_foreach((json_t *)array, i, value) sum += json_number_value(value);
	return sum;
}

static double bits_of(const char *series)
{
	return series_sum(series) * 1e6 * json_number_value(at(at(result, "series"), "interval_s"));
}

static void assert_valid(void)
{
	if (!json_is_true(at(result, "valid")) &&
	    /* A busy machine makes the sender late, or the server: that is all that may be wrong.
	     */
	    !strstr(json_string_value(at(result, "invalid")), "r was late: "))
		fail_msg("%s", json_string_value(at(result, "invalid")));
}

/* Of datagrams no more is lost than the kernel says. */
static void assert_lost(uint64_t drops)
{
	assert_in_range(count(result, "lost"), 0, drops);
	assert_int_equal(count(result, "received"), count(result, "sent") - count(result, "lost"));
}

static void assert_steps_add_up(const char *key)
{
	uint64_t sum = 0;
	const json_t *step;
	size_t i;

	json_array_foreach((json_t *)at(result, "steps"), i, step) sum += count(step, key);
	assert_int_equal(sum, count(result, key));
}

static void datagrams_are_accounted_for(void **state)
{
	static const enum load_direction directions[] = {LOAD_UP, LOAD_DOWN, LOAD_BOTH};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct load_config config = config_of(LOAD_UDP, directions[i]);
		unsigned ways = directions[i] == LOAD_BOTH ? 2 : 1;
		uint64_t sent, drops = loopback_drops();
		json_t *served = NULL;
		double seconds;

		both_start(&config);
		clock_sleep(20 * MS);
		seconds = (double)measure_known(&config, 200 * MS) / 1e9;
		drops = loopback_drops() - drops;
		assert_valid();
		sent = count(result, "sent");
		assert_true(sent >= ways);
		assert_lost(drops);
		/* Each flow's sender has one CPU, whose backlog is a queue. */
		assert_int_equal(count(result, "reordered"), 0);
		assert_int_equal(count(result, "duplicated"), 0);
		assert_int_equal(count(result, "send_errors"), 0);
		assert_steps_add_up("sent");
		assert_steps_add_up("received");
		assert_steps_add_up("bytes_sent");
		assert_steps_add_up("bytes_received");
		assert_int_equal(series_sum("lost"), count(result, "lost"));
		assert_true(fabs(bits_of("sent_mbit") - 8.0 * (double)count(result, "bytes_sent")) <
			    1);
		/* What came after the end is in no interval. */
		assert_true(bits_of("received_mbit") <
			    8.0 * (double)count(result, "bytes_received") + 1);
		if (!count(result, "late"))
			assert_true(fabs(bits_of("received_mbit") -
					 8.0 * (double)count(result, "bytes_received")) < 1);
		/* A side that heard late of the beginning has counted for less time. */
		assert_true(rate(result, "sent_datagrams") * seconds > (double)sent - 0.01);
		load_stream.server_stop(server, &served);
		server = NULL;
		/* With those of the warm-up. */
		if (directions[i] != LOAD_DOWN)
			assert_true(count(served, "received") > 0);
		if (directions[i] != LOAD_UP)
			assert_true(count(served, "sent") > 0);
		json_decref(served);
		run_stop(NULL);
	}
}

/* Each step has its size, and its share of the time. */
static void steps_have_their_sizes(void **state)
{
	struct load_config config = config_of(LOAD_UDP, LOAD_UP);
	const json_t *steps;
	double seconds;

	(void)state;
	both_start(&config);
	seconds = (double)measure_known(&config, 2000 * MS) / 1e9;
	steps = at(result, "steps");
	assert_int_equal(json_array_size(steps), 2);
	for (unsigned i = 0; i < 2; i++) {
		const json_t *step = json_array_get(steps, i);
		uint64_t size = config.size[i];
		char name[16];

		snprintf(name, sizeof(name), "%u", config.size[i]);
		assert_string_equal(json_string_value(at(step, "name")), name);
		assert_true(fabs(json_number_value(at(step, "from_s")) - seconds / 2 * i) < 1e-9);
		assert_true(fabs(json_number_value(at(step, "duration_s")) - seconds / 2) < 1e-9);
		assert_true(count(step, "sent") > 0);
		assert_int_equal(count(step, "bytes_sent"), size * count(step, "sent"));
		assert_int_equal(count(step, "bytes_received"), size * count(step, "received"));
	}
}

/* As fast as it goes, with and without batches: more than fits may be sent. */
static void a_flood_is_accounted_for(void **state)
{
	static const unsigned batches[] = {0, 64};
	static const unsigned flows[] = {1, 100};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct load_config config = config_of(LOAD_UDP, i % 2 ? LOAD_BOTH : LOAD_UP);

		config.rate = 0;
		config.timeout = 400 * MS;
		config.batch = batches[i / 2];
		config.flows = flows[i % 2];
		config.size[0] = 16;
		both_start(&config);
		measure_known(&config, 300 * MS);
		assert_valid();
		assert_true(count(result, "sent") > 0);
		assert_int_equal(count(result, "sent"),
				 count(result, "received") + count(result, "lost"));
		assert_int_equal(count(result, "duplicated"), 0);
		assert_int_equal(series_sum("lost"), count(result, "lost"));
		assert_steps_add_up("lost");
		assert_true(rate(result, "received_mbit") <= rate(result, "sent_mbit"));
		run_stop(NULL);
	}
}

static void tcp_is_accounted_for(void **state)
{
	static const enum load_direction directions[] = {LOAD_UP, LOAD_DOWN, LOAD_BOTH};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct load_config config = config_of(LOAD_TCP, directions[i / 2]);
		uint64_t sent, received;

		if (i % 2)
			config.flows = config.threads = 1;
		both_start(&config);
		clock_sleep(10 * MS);
		measure_known(&config, 300 * MS);
		assert_valid();
		assert_int_equal(count(result, "bytes_lost"), 0);
		assert_int_equal(count(result, "broken"), 0);
		sent = count(result, "bytes_sent");
		received = count(result, "bytes_received");
		assert_true(sent > 0 && received > 0);
		assert_steps_add_up("bytes_sent");
		assert_steps_add_up("bytes_received");
		assert_true(fabs(bits_of("sent_mbit") - 8.0 * (double)sent) < 1);
		assert_true(fabs(bits_of("received_mbit") - 8.0 * (double)received) < 1);
		assert_true(json_is_integer(at(at(result, "counts"), "retransmits")));
		run_stop(NULL);
	}
}

static void other_parameters_are_refused(void **state)
{
	struct load_config config = config_of(LOAD_UDP, LOAD_UP);
	struct error err = {0};

	(void)state;
	server_start(&config);
	config.flows = 5;
	assert_int_equal(load_stream.client_start(&config, &place, &client, &err), -EPROTO);
	client = NULL;
	assert_non_null(strstr(err.text, "flows"));
	assert_non_null(strstr(err.text, "5"));
	assert_non_null(strstr(err.text, "4"));
	/* It goes on serving those that agree. */
	config.flows = 4;
	assert_int_equal(load_stream.client_start(&config, &place, &client, &err), 0);
}

static void one_client_after_another(void **state)
{
	struct load_config config = config_of(LOAD_UDP, LOAD_BOTH);
	struct error err = {0};
	uint64_t drops;
	void *second;

	(void)state;
	both_start(&config);
	assert_int_equal(load_stream.client_start(&config, &place, &second, &err), -EBUSY);
	measure(200 * MS);
	drops = loopback_drops();
	measure_known(&config, 200 * MS);
	assert_valid();
	assert_lost(loopback_drops() - drops);
	/* One that leaves without a word. */
	assert_int_equal(load_stream.client_start(&config, &place, &client, &err), 0);
	load_stream.client_stop(client, NULL, NULL);
	client = NULL;
	measure_known(&config, 200 * MS);
	assert_valid();
}

static void nothing_measured_is_null(void **state)
{
	static const enum load_protocol protocols[] = {LOAD_TCP, LOAD_UDP};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct load_config config = config_of(protocols[i], LOAD_BOTH);
		struct error err = {0};

		both_start(&config);
		assert_int_equal(client_stop(&err), 0);
		assert_true(json_is_false(at(result, "valid")));
		assert_string_equal(json_string_value(at(result, "invalid")),
				    "nothing was measured");
		assert_int_equal(count(result, "bytes_sent"), 0);
		assert_true(json_is_null(at(at(result, "rates"), "sent_mbit")));
		assert_true(json_is_null(at(at(result, "rates"), "received_mbit")));
		assert_int_equal(json_array_size(at(at(result, "series"), "sent_mbit")), 0);
		run_stop(NULL);
	}
}

static uint64_t server_received(void)
{
	json_t *read = load_stream.server_read(server);
	uint64_t received = count(read, "received");

	json_decref(read);
	return received;
}

/* Ctrl-C: what was measured until then is there. */
static void an_early_stop_keeps_what_there_is(void **state)
{
	struct load_config config = config_of(LOAD_UDP, LOAD_BOTH);
	struct error err = {0};
	uint64_t before;
	double duration;

	(void)state;
	both_start(&config);
	load_stream.client_measure(client, 3600 * NSEC_PER_SEC);
	clock_sleep(100 * MS);
	/* More than sockets may have had of what was sent before it began. */
	before = server_received();
	for (int i = 0; i < 60000 && server_received() < before + 2000; i++)
		clock_sleep(MS);
	assert_int_equal(client_stop(&err), 0);
	assert_true(json_is_false(at(result, "valid")));
	assert_non_null(strstr(json_string_value(at(result, "invalid")), "stopped after"));
	duration = json_number_value(at(result, "duration_s"));
	assert_true(duration > 0.05 && duration < 3600);
	assert_true(count(result, "sent") > 0);
	assert_int_equal(count(result, "sent"), count(result, "received") + count(result, "lost"));
	/* The second step never began. */
	assert_true(
		json_is_null(at(at(json_array_get(at(result, "steps"), 1), "rates"), "sent_mbit")));
}

/* A server in a process of its own, to be killed. */
static pid_t server_fork(struct load_config *config)
{
	int up[2];
	pid_t pid;
	uint16_t port;

	assert_int_equal(pipe(up), 0);
	pid = fork();
	if (!pid) {
		server_start(config);
		if (write(up[1], &place.port, sizeof(place.port)) == sizeof(place.port))
			pause();
		_exit(1);
	}
	assert_int_equal(read(up[0], &port, sizeof(port)), sizeof(port));
	place.port = port;
	close(up[0]);
	close(up[1]);
	return pid;
}

static void a_killed_server_ends_the_run(void **state)
{
	static const enum load_protocol protocols[] = {LOAD_TCP, LOAD_UDP};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct load_config config =
			config_of(protocols[i / 2], i % 2 ? LOAD_UP : LOAD_BOTH);
		struct error err = {0};
		const json_t *counts;
		pid_t pid;
		int ret;

		assert_int_equal(load_stream.check(&config, &err), 0);
		config.rate *= 10;
		pid = server_fork(&config);
		assert_int_equal(load_stream.client_start(&config, &place, &client, &err), 0);
		load_stream.client_measure(client, 100 * MS);
		clock_sleep(50 * MS);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		clock_sleep(50 * MS);
		ret = client_stop(&err);
		assert_int_equal(ret, -ECONNRESET);
		assert_non_null(strstr(err.text, place.address));
		assert_true(json_is_false(at(result, "valid")));
		assert_non_null(strstr(json_string_value(at(result, "invalid")), "server"));
		counts = at(result, "counts");
		/* What only the server knew is not known. */
		if (config.direction == LOAD_UP) {
			assert_true(json_is_integer(at(counts, "sent")));
			assert_true(json_is_null(at(counts, "bytes_received")));
		}
		assert_true(json_is_null(
			at(counts, protocols[i / 2] == LOAD_UDP ? "lost" : "bytes_lost")));
		run_stop(NULL);
	}
}

static void nobody_there_is_said(void **state)
{
	struct load_config config = config_of(LOAD_UDP, LOAD_UP);
	struct error err = {0};

	(void)state;
	server_start(&config);
	load_stream.server_stop(server, NULL);
	server = NULL;
	assert_int_equal(load_stream.client_start(&config, &place, &client, &err), -ECONNREFUSED);
	client = NULL;
	assert_non_null(strstr(err.text, place.address));
}

static int loopback(int type, bool listens)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(place.port)};
	int fd = socket(AF_INET, type, 0), one = 1;

	inet_pton(AF_INET, place.address, &to.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (listens)
		assert_int_equal(bind(fd, (void *)&to, sizeof(to)) || listen(fd, 8), 0);
	else
		assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
	return fd;
}

static void strangers_are_no_matter(void **state)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n",
					    "{\"napier\": \"stream\"}\n",
					    "{}\n",
					    "{\"version\": 1, \"config\": 7}\n",
					    "x",
					    "npst12345678",
					    "{ for ever"};
	struct load_config config = config_of(LOAD_UDP, LOAD_UP);
	struct error err = {0};
	uint64_t drops;
	int fd[16];
	unsigned n = 0;

	(void)state;
	server_start(&config);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		for (unsigned k = 0; k < 2; k++) {
			fd[n] = loopback(k ? SOCK_DGRAM : SOCK_STREAM, false);
			assert_true(send(fd[n++], texts[i], strlen(texts[i]), MSG_NOSIGNAL) > 0);
		}
	}
	/* They wait for an answer, while others are served. */
	if (load_stream.client_start(&config, &place, &client, &err))
		fail_msg("%s", err.text);
	drops = loopback_drops();
	measure_known(&config, 200 * MS);
	assert_valid();
	assert_lost(loopback_drops() - drops);
	while (n)
		close(fd[--n]);
}

static const char *says;

static void *stranger(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);
	char text[64];

	assert_true(recv(fd, text, sizeof(text), 0) > 0);
	assert_int_equal(send(fd, says, strlen(says), MSG_NOSIGNAL), strlen(says));
	close(fd);
	return NULL;
}

static void another_kind_of_server_is_said(void **state)
{
	static const struct {
		const char *says, *text;
		int error;
	} cases[] = {
		{"SSH-2.0-OpenSSH\r\n", "answers with something else", -EPROTO},
		{"{\"version\": 99}\n", "version 99", -EPROTO},
		{"{\"version\": 1}\n", "parameters", -EINVAL},
		{"", "closed the connection", -ECONNRESET},
	};
	struct load_config config = config_of(LOAD_UDP, LOAD_UP);
	struct error err = {0};

	(void)state;
	/* A port that is free. */
	server_start(&config);
	load_stream.server_stop(server, NULL);
	server = NULL;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int listener = loopback(SOCK_STREAM, true);
		pthread_t thread;

		says = cases[i].says;
		pthread_create(&thread, NULL, stranger, &listener);
		assert_int_equal(load_stream.client_start(&config, &place, &client, &err),
				 cases[i].error);
		client = NULL;
		if (!strstr(err.text, cases[i].text))
			fail_msg("%s", err.text);
		pthread_join(thread, NULL);
		close(listener);
	}
}

static void threads_are_told(void **state)
{
	struct load_config config = config_of(LOAD_UDP, LOAD_BOTH);
	pid_t tids[LOAD_TIDS_MAX];
	struct load_progress progress;
	bool all = false;

	(void)state;
	both_start(&config);
	assert_int_equal(load_stream.client_threads(client, tids), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(kill(tids[i], 0), 0);
	assert_int_equal(load_stream.server_threads(server, tids), 2);
	for (int i = 0; i < 6000 && !all; i++) {
		json_t *read;

		clock_sleep(10 * MS);
		load_stream.client_progress(client, &progress);
		read = load_stream.server_read(server);
		all = progress.done && count(read, "sent") && count(read, "received");
		json_decref(read);
	}
	assert_true(all);
	assert_true(progress.done > 0);
	assert_string_equal(progress.unit, "datagrams received");
}

static void what_cannot_be_is_named(void **state)
{
	struct error err = {0};
	struct load_config config = config_of(LOAD_UDP, LOAD_UP);

	(void)state;
	config.size[1] = 15;
	assert_int_equal(load_stream.check(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "sizes: datagrams of 15 B"));
	config.size[1] = 65508;
	assert_int_equal(load_stream.check(&config, &err), -EINVAL);
	config.size[1] = config.size[0];
	assert_int_equal(load_stream.check(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "twice"));
	config = config_of(LOAD_UDP, LOAD_UP);
	config.batch = 65;
	assert_int_equal(load_stream.check(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "batch"));
	config = config_of(LOAD_TCP, LOAD_UP);
	config.rate = 10;
	assert_int_equal(load_stream.check(&config, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rate"));
	config.rate = 0;
	config.size[0] = 0;
	assert_int_equal(load_stream.check(&config, &err), -EINVAL);
	config = (struct load_config){.kind = LOAD_STREAM, .protocol = LOAD_UDP};
	assert_int_equal(load_stream.check(&config, &err), 0);
	assert_int_equal(config.sizes, 1);
	assert_int_equal(config.size[0], 1472);
	assert_int_equal(config.threads, 1);
	assert_int_equal(config.server_threads, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_killed_server_ends_the_run, run_stop),
		cmocka_unit_test_teardown(datagrams_are_accounted_for, run_stop),
		cmocka_unit_test_teardown(steps_have_their_sizes, run_stop),
		cmocka_unit_test_teardown(a_flood_is_accounted_for, run_stop),
		cmocka_unit_test_teardown(tcp_is_accounted_for, run_stop),
		cmocka_unit_test_teardown(other_parameters_are_refused, run_stop),
		cmocka_unit_test_teardown(one_client_after_another, run_stop),
		cmocka_unit_test_teardown(nothing_measured_is_null, run_stop),
		cmocka_unit_test_teardown(an_early_stop_keeps_what_there_is, run_stop),
		cmocka_unit_test_teardown(nobody_there_is_said, run_stop),
		cmocka_unit_test_teardown(strangers_are_no_matter, run_stop),
		cmocka_unit_test_teardown(another_kind_of_server_is_said, run_stop),
		cmocka_unit_test_teardown(threads_are_told, run_stop),
		cmocka_unit_test_teardown(what_cannot_be_is_named, run_stop),
	};

	loopback_address(place.address, sizeof(place.address));
	loopback_pin(&place);
	place.port = (uint16_t)(20000 + getpid() % 10000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* rr when something is wrong: servers that stall, lose, end, or want something else. */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/rr.h>

#include "loopback.h"

#define MSEC NSEC_PER_MSEC

static struct load_place place = {.netns = -1};
static void *server, *client;
static json_t *result;
static struct error err;

static void port_next(void)
{
	static unsigned n;

	place.port = (uint16_t)(20000 + (unsigned)getpid() % 1000 * 10 + 2 * (n++ % 5));
}

static int setup(void **state)
{
	(void)state;
	port_next();
	memset(&err, 0, sizeof(err));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	json_decref(result);
	result = NULL;
	return 0;
}

/*
 * A claim about real time: it holds unless one of the two was off its CPU just then. So it has to
 * hold once of so many times.
 */
enum { TIMES = 5 };

static void start(const struct load_config *config)
{
	load_rr.server_start(config, &place, &server, &err);
	assert_string_equal(err.text, "");
	load_rr.client_start(config, &place, &client, &err);
	assert_string_equal(err.text, "");
}

static json_int_t count(const char *name)
{
	json_t *n = json_object_get(json_object_get(result, "counts"), name);

	assert_true(json_is_integer(n));
	return json_integer_value(n);
}

static json_t *latency(const char *name, const char *what)
{
	return json_object_get(json_object_get(json_object_get(result, "latency"), name), what);
}

static const char *invalid(void)
{
	const char *why = json_string_value(json_object_get(result, "invalid"));

	assert_int_equal(!why, json_is_true(json_object_get(result, "valid")));
	return why ? why : "";
}

/* Nothing is NaN (jansson would not have it in its text), and all is accounted for. */
static void result_check(void)
{
	char *text = json_dumps(result, 0);

	assert_non_null(text);
	assert_null(strstr(text, "nan"));
	free(text);
	assert_int_equal(count("started"), count("completed") + count("lost"));
	assert_int_equal(json_integer_value(latency("service", "n")), count("started"));
	assert_int_equal(json_integer_value(latency("service", "lost")), count("lost"));
}

/*
 * 200 ms once a second, of which the time that is measured has one. On a slow machine all of it
 * takes longer, but no less than that.
 */
static void stall_run(const struct load_config *config)
{
	uint64_t drops = loopback_drops();

	json_decref(result);
	result = NULL;
	port_next();
	start(config);
	clock_sleep(500 * MSEC);
	load_rr.client_measure(client, 1000 * MSEC);
	clock_sleep(1000 * MSEC);
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	load_rr.server_stop(server, NULL);
	result_check();
	assert_in_range(count("lost"), 0,
			config->protocol == LOAD_UDP ? loopback_drops() - drops : 0);
}

static void a_stall_is_in_the_response_time(void **state)
{
	const struct load_config config = {
		.protocol = LOAD_TCP,
		.flows = 2,
		.rate = 2000,
		.arrivals = LOAD_POISSON,
		.stall = 200 * MSEC,
		.stall_every = 1000 * MSEC,
		.timeout = 60 * NSEC_PER_SEC,
	};

	(void)state;
	stall_run(&config);
	assert_true(json_integer_value(latency("response", "p99")) > 100 * MSEC);
}

/* Of a closed loop one request of each flow waits for the end of it. */
static void a_stall_holds_what_is_under_way(void **state)
{
	static const enum load_protocol protocols[] = {LOAD_TCP, LOAD_UDP};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		const struct load_config config = {
			.protocol = protocols[i],
			.flows = 1,
			.stall = 200 * MSEC,
			.stall_every = 1000 * MSEC,
			.timeout = 60 * NSEC_PER_SEC,
		};

		/* A client that is off its CPU all the while has nothing under way. */
		for (unsigned k = 0; k < TIMES; k++) {
			stall_run(&config);
			if (json_integer_value(latency("service", "max")) > 100 * MSEC)
				break;
		}
		assert_true(json_integer_value(latency("service", "max")) > 100 * MSEC);
	}
}

static bool held_is_seen(void)
{
	/* Of 400 that were due then only those near its end waited less than RR_LATE. */
	return count("bounded") > 300 &&
	       /* Only those that were sent by then waited for the server. */
	       json_integer_value(latency("service", "p99")) <
		       json_integer_value(latency("response", "p99"));
}

/* Few outstanding: what is due meanwhile is held, and by the server's fault, not the generator's.
 */
static void held_requests_keep_their_time(void **state)
{
	const struct load_config config = {
		.protocol = LOAD_UDP,
		.flows = 2,
		.rate = 2000,
		.outstanding = 4,
		.request_size = 8,
		.response_size = 8,
		.stall = 200 * MSEC,
		.stall_every = 1000 * MSEC,
		.timeout = 60 * NSEC_PER_SEC,
	};

	(void)state;
	for (unsigned k = 0; k < TIMES; k++) {
		stall_run(&config);
		assert_true(json_integer_value(latency("response", "p99")) > 100 * MSEC);
		assert_in_range(count("started"), 1999, 2001);
		/* A generator that is off its CPU all the while holds nothing: it is late. */
		if (held_is_seen())
			break;
	}
	assert_true(held_is_seen());
}

/* Waits until so many more have been done, and lost, than there were. */
static void progress_await(const struct load_progress *before, uint64_t done, uint64_t lost)
{
	int64_t deadline = clock_now() + 60 * NSEC_PER_SEC;
	struct load_progress now;

	do {
		clock_sleep(MSEC);
		load_rr.client_progress(client, &now);
	} while ((now.done < before->done + done || now.lost < before->lost + lost) &&
		 clock_now() < deadline);
	assert_true(now.done >= before->done + done);
	assert_true(now.lost >= before->lost + lost);
	assert_string_equal(now.unit, "transactions");
}

static void a_server_that_ends_makes_the_run_invalid(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP, .flows = 5, .threads = 2},
		{.protocol = LOAD_TCP, .flows = 5, .rate = 1000, .timeout = 100 * MSEC},
		{.protocol = LOAD_TCP, .flows = 5, .connect = true},
		{.protocol = LOAD_UDP, .flows = 5, .timeout = 20 * MSEC},
		{.protocol = LOAD_UDP,
		 .flows = 1,
		 .request_size = 4,
		 .response_size = 4,
		 .rate = 1000,
		 .outstanding = 8,
		 .timeout = 20 * MSEC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct load_config *c = &cases[i];
		struct load_progress before;
		uint64_t lost;
		int ret;

		port_next();
		memset(&err, 0, sizeof(err));
		start(&cases[i]);
		load_rr.client_measure(client, 3600 * NSEC_PER_SEC);
		load_rr.client_progress(client, &before);
		progress_await(&before, 3 * cases[i].flows, 0);
		load_rr.client_progress(client, &before);
		load_rr.server_stop(server, NULL);
		/*
		 * Every flow has seen it, with what was under way. With a rate that may have been
		 * nothing, and what is held is lost in the end; over UDP more than can have been
		 * under way, so one was sent after it.
		 */
		lost = c->rate > 0 ? 0 : c->flows;
		if (c->outstanding)
			lost = c->outstanding + 1;
		progress_await(&before, 0, lost);
		/* And has been told of it, a tick or a time-out later. */
		clock_sleep(500 * MSEC);
		ret = load_rr.client_stop(client, &result, &err);
		assert_true(ret == -ECONNRESET || ret == -ECONNREFUSED || ret == -EPIPE);
		assert_int_equal(ret, err.code);
		assert_non_null(strstr(err.text, "went away in mid-run"));
		assert_non_null(strstr(invalid(), "went away"));
		result_check();
		assert_true(count("lost") >= 1);
		json_decref(result);
		result = NULL;
	}
}

/* What was asked of it has gone, and comes back: the flows go on. */
static void a_server_that_comes_back_is_used_again(void **state)
{
	const struct load_config config = {
		.protocol = LOAD_TCP, .flows = 3, .timeout = 60 * NSEC_PER_SEC};
	struct load_progress before;

	(void)state;
	start(&config);
	load_rr.client_measure(client, 3600 * NSEC_PER_SEC);
	load_rr.client_progress(client, &before);
	progress_await(&before, 100, 0);
	load_rr.server_stop(server, NULL);
	load_rr.server_start(&config, &place, &server, &err);
	assert_string_equal(err.text, "");
	load_rr.client_progress(client, &before);
	progress_await(&before, 100, 0);
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	load_rr.server_stop(server, NULL);
	result_check();
	assert_string_equal(invalid(), "");
	assert_in_range(count("reconnects"), 1, 3);
	assert_in_range(count("lost"), 1, 3);
	assert_true(json_real_value(json_object_get(result, "duration_s")) < 3600);
}

/* Servers by hand: they greet well; what they answer then, `answer` says. */
static struct load_config fake_config;
static int fake_fd;
static _Atomic bool fake_stop;
/* The n-th request, into which it may write; false: it is lost. */
static bool (*answer)(unsigned n, uint8_t *data);
enum { LATE_ONE = 8 };
static bool floods;    /* UDP: what is no response comes without end */
static bool late_ones; /* UDP: each eighth response comes with the next request's */

static void fake_udp(int fd)
{
	struct timeval look = {.tv_usec = 10000};
	struct rr_hello late = {0};
	unsigned n = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
	while (!fake_stop) {
		struct sockaddr_in peer;
		socklen_t length = sizeof(peer);
		struct rr_hello hello, out;
		ssize_t got = recvfrom(fd, &hello, sizeof(hello), 0, (void *)&peer, &length);
		struct iovec data[] = {{&late, (size_t)got}, {&hello, (size_t)got}};
		struct mmsghdr both[] = {{.msg_hdr = {&peer, length, &data[0], 1}},
					 {.msg_hdr = {&peer, length, &data[1], 1}}};

		if (got < 0)
			continue;
		if (hello.head.magic == htonl(RR_MAGIC)) {
			rr_hello_answer(&fake_config, &hello, &out);
			sendto(fd, &out, (size_t)got, 0, (void *)&peer, length);
		} else if (floods) {
			hello.head.magic ^= 1;
			while (!fake_stop)
				sendto(fd, &hello, (size_t)got, 0, (void *)&peer, length);
		} else if (late_ones && n % LATE_ONE == 0) {
			late = hello;
			n++;
		} else if (late_ones && n % LATE_ONE == 1) {
			n++;
			/* So fast one after the other that they are found together. */
			sendmmsg(fd, both, 2, 0);
		} else if (answer(n++, (uint8_t *)&hello)) {
			sendto(fd, &hello, (size_t)got, 0, (void *)&peer, length);
		}
	}
}

static void fake_tcp(int listener)
{
	struct timeval look = {.tv_usec = 10000}, patient = {0};
	unsigned n = 0;

	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
	while (!fake_stop) {
		int fd = accept(listener, NULL, NULL);
		struct rr_hello hello, out;
		uint8_t data[16];

		if (fd < 0)
			continue;
		/* Whoever connects sends it, and closes when it ends; it may take its time. */
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patient, sizeof(patient));
		if (recv(fd, &hello, sizeof(hello), MSG_WAITALL) == (ssize_t)sizeof(hello)) {
			rr_hello_answer(&fake_config, &hello, &out);
			send(fd, &out, sizeof(out), MSG_NOSIGNAL);
		}
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look));
		while (!fake_stop) {
			ssize_t got = recv(fd, data, sizeof(data), 0);

			if (got < 0 && errno == EAGAIN)
				continue;
			if (got <= 0)
				break;
			if (answer(n++, data) && send(fd, data, sizeof(data), MSG_NOSIGNAL) < 0)
				break;
		}
		close(fd);
	}
}

static void *fake_run(void *arg)
{
	if (fake_config.protocol == LOAD_UDP)
		fake_udp(fake_fd);
	else
		fake_tcp(fake_fd);
	return arg;
}

/*
 * Measures for so long; 0: until so many more have been done, and lost, twice: what ends first may
 * have begun before.
 */
static void fake_measure(const struct load_config *config, bool (*how)(unsigned n, uint8_t *data),
			 int64_t duration, uint64_t done, uint64_t lost)
{
	struct load_progress before;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(place.port)};
	int type = config->protocol == LOAD_UDP ? SOCK_DGRAM : SOCK_STREAM, one = 1;
	pthread_t thread;

	fake_config = *config;
	assert_int_equal(load_rr.check(&fake_config, &err), 0);
	answer = how;
	fake_stop = false;
	inet_pton(AF_INET, place.address, &at.sin_addr);
	fake_fd = socket(AF_INET, type, 0);
	setsockopt(fake_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(fake_fd, (void *)&at, sizeof(at)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fake_fd, 8), 0);
	assert_int_equal(pthread_create(&thread, NULL, fake_run, NULL), 0);
	load_rr.client_start(config, &place, &client, &err);
	assert_string_equal(err.text, "");
	load_rr.client_measure(client, duration ? duration : 3600 * NSEC_PER_SEC);
	for (int i = 0; i < 2 && !duration; i++) {
		load_rr.client_progress(client, &before);
		progress_await(&before, done, lost);
	}
	clock_sleep(duration);
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	fake_stop = true;
	pthread_join(thread, NULL);
	close(fake_fd);
	result_check();
}

static bool every_third_is_lost(unsigned n, uint8_t *data)
{
	(void)data;
	return n % 3;
}

static bool none(unsigned n, uint8_t *data)
{
	(void)n;
	(void)data;
	return false;
}

static bool another(unsigned n, uint8_t *data)
{
	(void)n;
	data[0] ^= 1;
	return true;
}

static void losses_hold_no_flow(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_UDP, .flows = 4, .timeout = 10 * MSEC},
		{.protocol = LOAD_UDP,
		 .flows = 4,
		 .request_size = 16,
		 .response_size = 16,
		 .timeout = 10 * MSEC},
		{.protocol = LOAD_UDP,
		 .flows = 2,
		 .request_size = 16,
		 .response_size = 16,
		 .rate = 2000,
		 .timeout = 3000 * MSEC},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		port_next();
		fake_measure(&cases[i], every_third_is_lost, cases[i].rate > 0 ? 300 * MSEC : 0, 1,
			     4 * cases[i].flows);
		assert_true(count("completed") > 0);
		/* More than once each: none has parked. */
		assert_true(count("lost") > cases[i].flows);
		assert_int_equal(count("lost"), count("timeouts"));
		if (cases[i].rate > 0)
			assert_in_range(count("started"), 599, 601);
		/* The losses are in the distribution, at their time-out. */
		assert_true(json_integer_value(latency("service", "max")) >= cases[i].timeout);
		json_decref(result);
		result = NULL;
	}
}

static bool all(unsigned n, uint8_t *data)
{
	(void)n;
	(void)data;
	return true;
}

/* It is passed over, and what is behind it is seen at once: no flow stays one behind. */
static void a_response_that_is_too_late(void **state)
{
	struct load_config config = {
		.protocol = LOAD_UDP,
		.flows = 64,
		.request_size = 16,
		.response_size = 16,
		.timeout = 100 * MSEC,
	};

	(void)state;
	late_ones = true;
	/*
	 * So many for each that one that stayed behind would have lost more than it had before. A
	 * server that is off its CPU for a time-out loses all of them, too: then with a longer one.
	 */
	for (unsigned i = 0; i < TIMES; i++, config.timeout *= 2) {
		json_decref(result);
		result = NULL;
		port_next();
		fake_measure(&config, all, 0, 1, 6 * config.flows);
		assert_true(count("lost") > 0);
		if (count("completed") > count("lost"))
			break;
	}
	late_ones = false;
	/* Some are lost. A flow that stayed behind would lose all. */
	assert_true(count("completed") > count("lost"));
}

static void no_answer_in_time_is_a_loss(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP,
		 .flows = 1,
		 .request_size = 16,
		 .response_size = 16,
		 .timeout = 30 * MSEC},
		{.protocol = LOAD_UDP,
		 .flows = 1,
		 .request_size = 16,
		 .response_size = 16,
		 .timeout = 30 * MSEC},
		{.protocol = LOAD_TCP,
		 .flows = 1,
		 .request_size = 16,
		 .response_size = 16,
		 .timeout = 30 * MSEC,
		 .rate = 100},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		port_next();
		fake_measure(&cases[i], none, 0, 0, 3);
		assert_int_equal(count("completed"), 0);
		assert_true(count("lost") >= 1);
		assert_true(count("timeouts") >= 1);
		/* One that was late at so few says that first. */
		if (!(cases[i].rate > 0 && strstr(invalid(), "the generator was late")))
			assert_non_null(strstr(invalid(), "no request was answered"));
		assert_true(json_is_null(latency("service", "p99")));
		json_decref(result);
		result = NULL;
	}
}

static void a_response_to_something_else_is_a_loss(void **state)
{
	const struct load_config tcp = {.protocol = LOAD_TCP,
					.flows = 1,
					.request_size = 16,
					.response_size = 16,
					.timeout = 60 * NSEC_PER_SEC};
	const struct load_config udp = {.protocol = LOAD_UDP,
					.flows = 1,
					.request_size = 16,
					.response_size = 16,
					.timeout = 10 * MSEC};

	(void)state;
	fake_measure(&tcp, another, 0, 0, 3);
	assert_int_equal(count("completed"), 0);
	assert_true(count("lost") >= 1);
	assert_int_equal(count("timeouts"), 0);
	json_decref(result);
	port_next();
	fake_measure(&udp, another, 0, 0, 3);
	assert_int_equal(count("completed"), 0);
	assert_int_equal(count("timeouts"), count("lost"));
}

/* Time-outs are seen, and the end, whatever comes meanwhile. */
static void a_flood_of_something_else_is_a_loss(void **state)
{
	(void)state;
	floods = true;
	for (unsigned flows = 1; flows <= 2; flows++) {
		const struct load_config config = {.protocol = LOAD_UDP,
						   .flows = flows,
						   .request_size = 16,
						   .response_size = 16,
						   .timeout = 30 * MSEC};

		port_next();
		fake_measure(&config, none, 0, 0, 3 * flows);
		assert_int_equal(count("completed"), 0);
		assert_true(count("lost") >= 1);
		json_decref(result);
		result = NULL;
	}
	floods = false;
}

static void zero_samples_are_null(void **state)
{
	const struct load_config config = {.protocol = LOAD_TCP, .flows = 1, .rate = 0.001};
	json_t *service;

	(void)state;
	start(&config);
	/* It was due at once, before this; and then not for a long time. */
	load_rr.client_measure(client, 20 * MSEC);
	clock_sleep(20 * MSEC);
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	load_rr.server_stop(server, NULL);
	result_check();
	assert_int_equal(count("started"), 0);
	assert_non_null(strstr(invalid(), "no request was answered, of 0"));
	service = json_object_get(json_object_get(result, "latency"), "service");
	assert_true(json_is_null(json_object_get(service, "p50")));
	assert_true(json_is_null(json_object_get(service, "mean")));
}

static void what_was_not_measured_says_so(void **state)
{
	const struct load_config config = {.protocol = LOAD_TCP, .flows = 1};

	(void)state;
	start(&config);
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	result_check();
	assert_non_null(strstr(invalid(), "nothing was measured"));
	load_rr.client_start(&config, &place, &client, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(load_rr.client_stop(client, NULL, &err), 0);
	load_rr.server_stop(server, NULL);
}

static void a_late_generator_is_invalid(void **state)
{
	/* No generator keeps this up in one thread. */
	const struct load_config config = {
		.protocol = LOAD_UDP,
		.flows = 1,
		.request_size = 4,
		.response_size = 4,
		.rate = 1e8,
		.timeout = 20 * MSEC,
	};

	(void)state;
	start(&config);
	load_rr.client_measure(client, 10 * MSEC);
	clock_sleep(10 * MSEC);
	assert_int_equal(load_rr.client_stop(client, &result, &err), 0);
	load_rr.server_stop(server, NULL);
	result_check();
	/* All of them were due, whether they could be sent or not. */
	assert_in_range(count("started"), 999999, 1000001);
	assert_non_null(strstr(invalid(), "the generator was late"));
}

static void other_parameters_are_refused(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP, .flows = 2, .response_size = 400},
		{.protocol = LOAD_TCP, .flows = 2, .response_size = 400, .connect = true},
		{.protocol = LOAD_UDP, .flows = 2, .response_size = 400},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct load_config other = cases[i];
		char expected[200];

		port_next();
		assert_int_equal(load_rr.server_start(&cases[i], &place, &server, &err), 0);
		other.response_size = 401;
		other.flows = 3;
		assert_int_equal(load_rr.client_start(&other, &place, &client, &err), -EPROTO);
		snprintf(expected, sizeof(expected),
			 "the server at %s port %u has response_size = 400, not 401: give both "
			 "sides the same",
			 place.address, place.port);
		assert_string_equal(err.text, expected);
		load_rr.server_stop(server, &result);
		/* Over UDP a hello is sent again while there is no answer. */
		assert_true(json_integer_value(json_object_get(json_object_get(result, "counts"),
							       "refused")) > 0);
		json_decref(result);
		result = NULL;
	}
}

static void another_version_is_told(void **state)
{
	struct load_config config = {.protocol = LOAD_TCP, .flows = 1};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(place.port)};
	struct rr_hello hello, got;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	(void)state;
	assert_int_equal(load_rr.server_start(&config, &place, &server, &err), 0);
	assert_int_equal(load_rr.check(&config, &err), 0);
	inet_pton(AF_INET, place.address, &at.sin_addr);
	rr_hello_make(&config, RR_ASKS, &hello);
	hello.head.version = htons(7);
	assert_int_equal(connect(fd, (void *)&at, sizeof(at)), 0);
	/* Whatever a hello of that version has behind its head. */
	assert_int_equal(send(fd, &hello, 50, 0), 50);
	assert_int_equal(recv(fd, &got, sizeof(got), 0), sizeof(got.head));
	assert_int_equal(ntohs(got.head.status), RR_OTHER_VERSION);
	close(fd);
	load_rr.server_stop(server, NULL);
	got.head.version = htons(7);
	assert_int_equal(rr_hello_check(&config, &place, &got, sizeof(got.head), &err), -EPROTO);
	assert_non_null(strstr(err.text, "speaks version 7 of rr, this is version 1"));
	got.head.magic = 0;
	assert_int_equal(rr_hello_check(&config, &place, &got, sizeof(got.head), &err), -EPROTO);
	assert_non_null(strstr(err.text, "is not a server of rr"));
}

static void nobody_there_is_told_at_once(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP, .flows = 2},
		{.protocol = LOAD_TCP, .flows = 2, .connect = true},
		{.protocol = LOAD_UDP, .flows = 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(load_rr.client_start(&cases[i], &place, &client, &err),
				 -ECONNREFUSED);
		assert_non_null(strstr(err.text, "start the server first"));
	}
}

static void an_address_in_use_is_named(void **state)
{
	static const struct load_config cases[] = {
		{.protocol = LOAD_TCP, .flows = 2},
		{.protocol = LOAD_UDP, .flows = 2},
	};
	void *second;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		port_next();
		assert_int_equal(load_rr.server_start(&cases[i], &place, &server, &err), 0);
		assert_int_equal(load_rr.server_start(&cases[i], &place, &second, &err),
				 -EADDRINUSE);
		assert_non_null(strstr(err.text, "Address already in use"));
		load_rr.server_stop(server, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stall_is_in_the_response_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stall_holds_what_is_under_way, setup, teardown),
		cmocka_unit_test_setup_teardown(held_requests_keep_their_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_server_that_ends_makes_the_run_invalid, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_server_that_comes_back_is_used_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(losses_hold_no_flow, setup, teardown),
		cmocka_unit_test_setup_teardown(a_response_that_is_too_late, setup, teardown),
		cmocka_unit_test_setup_teardown(no_answer_in_time_is_a_loss, setup, teardown),
		cmocka_unit_test_setup_teardown(a_response_to_something_else_is_a_loss, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_flood_of_something_else_is_a_loss, setup,
						teardown),
		cmocka_unit_test_setup_teardown(zero_samples_are_null, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_not_measured_says_so, setup, teardown),
		cmocka_unit_test_setup_teardown(a_late_generator_is_invalid, setup, teardown),
		cmocka_unit_test_setup_teardown(other_parameters_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(another_version_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_there_is_told_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(an_address_in_use_is_named, setup, teardown),
	};

	loopback_address(place.address, sizeof(place.address));
	return cmocka_run_group_tests(tests, NULL, NULL);
}

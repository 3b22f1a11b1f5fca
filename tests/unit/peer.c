/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends of a workload: their protocol, and what each makes of an end that is none. */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <napier/napier.h>

#include <lab/clock.h>
#include <lab/load/peer.h>
#include <lab/load/peer_line.h>

#include "loopback.h"

/* A workload that does nothing but tell. */
static struct {
	_Atomic int starts, stops;
	struct load_config config;
	struct load_place place;
} counted;

static int counted_check(struct load_config *config, struct error *err)
{
	if (!config->threads)
		config->threads = 1;
	return config->request_size == 666 ? error_set(err, -EINVAL, "request_size: not that one")
					   : 0;
}

static int counted_start(const struct load_config *config, const struct load_place *place,
			 void **server, struct error *err)
{
	if (config->flows == 13)
		return error_set(err, -EADDRINUSE, "port %u is in use", place->port);
	counted.config = *config;
	counted.place = *place;
	counted.starts++;
	*server = &counted;
	return 0;
}

static unsigned counted_threads(const void *server, pid_t tids[LOAD_TIDS_MAX])
{
	assert_ptr_equal(server, &counted);
	tids[0] = 71;
	tids[1] = 72;
	return 2;
}

static json_t *counted_read(const void *server)
{
	assert_ptr_equal(server, &counted);
	return json_pack("{s:{s:i}}", "counts", "served", 5);
}

static void counted_stop(void *server, json_t **result)
{
	assert_ptr_equal(server, &counted);
	counted.stops++;
	if (result)
		*result = json_pack("{s:{s:i}}", "counts", "served", 9);
}

static const struct load_ops counted_ops = {
	.name = "counted",
	.check = counted_check,
	.server_start = counted_start,
	.server_threads = counted_threads,
	.server_read = counted_read,
	.server_stop = counted_stop,
};

static const struct load_ops *counted_find(enum load_kind kind)
{
	(void)kind;
	return &counted_ops;
}

/* The server under test, in a thread of its own. */
static struct {
	struct peer_server_config config;
	struct error err;
	volatile int stop;
	pthread_t thread;
	int slack;	  /* s; 0: the usual */
	_Atomic int port; /* that it listens on */
	pthread_mutex_t lock;
	char said[64][160];
	unsigned lines;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void server_say(void *arg, const char *line)
{
	int port;

	(void)arg;
	pthread_mutex_lock(&server.lock);
	if (server.lines < 64)
		snprintf(server.said[server.lines++], sizeof(server.said[0]), "%s", line);
	pthread_mutex_unlock(&server.lock);
	if (sscanf(line, "listening on 127.0.0.1 port %d", &port) == 1)
		server.port = port;
}

static bool server_has_said(const char *line)
{
	bool found = false;

	pthread_mutex_lock(&server.lock);
	for (unsigned i = 0; i < server.lines && !found; i++)
		found = !strcmp(server.said[i], line);
	pthread_mutex_unlock(&server.lock);
	return found;
}

/* Bounded, and true at last. */
#define EVENTUALLY(condition)                                                                      \
	do {                                                                                       \
		bool so = false;                                                                   \
		for (int tries = 0; tries < 60000 && !(so = (condition)); tries++)                 \
			clock_sleep(NSEC_PER_MSEC);                                                \
		assert_true(so);                                                                   \
	} while (0)

static void *server_main(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)peer_serve(&server.config, &server.err);
}

static void server_begin(const json_t *fixed)
{
	server.config = (struct peer_server_config){.fd = -1,
						    .address = "127.0.0.1",
						    .fixed = fixed,
						    .ops = counted_find,
						    .stop = &server.stop,
						    .slack = server.slack,
						    .say = server_say};
	server.stop = 0;
	server.port = 0;
	server.lines = 0;
	counted.starts = counted.stops = 0;
	assert_int_equal(pthread_create(&server.thread, NULL, server_main, NULL), 0);
	EVENTUALLY(server.port);
}

static void server_end(void)
{
	void *ret;

	__atomic_store_n(&server.stop, 1, __ATOMIC_RELAXED);
	pthread_join(server.thread, &ret);
	assert_null(ret);
	assert_int_equal(counted.starts, counted.stops);
}

static struct peer *peer_open(void)
{
	struct error err = {0};
	struct peer *peer = NULL;

	if (peer_open_host("127.0.0.1", (uint16_t)server.port, &peer, &err))
		fail_msg("%s", err.text);
	return peer;
}

static const struct load_config some = {.kind = LOAD_RR, .protocol = LOAD_UDP, .flows = 4};

static void a_run_is_started_read_and_stopped(void **state)
{
	struct load_place place = {.netns = 77, .port = 4711};
	struct peer_started started;
	struct error err;
	struct peer *peer;
	json_t *result;

	(void)state;
	server_begin(NULL);
	peer = peer_open();
	assert_string_equal(peer_address(peer), "127.0.0.1");
	assert_int_equal(peer_pid(peer), 0);
	assert_true(json_is_object(peer_environment(peer)));
	cpuset_add(&place.cpus, 3);
	assert_int_equal(peer_read(peer, &result, &err), -EINVAL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_SEC, &started, &err), 0);
		assert_int_equal(started.threads, 2);
		assert_int_equal(started.tid[1], 72);
		assert_int_equal(counted.config.flows, 4);
		assert_int_equal(counted.config.protocol, LOAD_UDP);
		assert_int_equal(counted.place.port, 4711);
		assert_int_equal(counted.place.netns, -1);
		assert_string_equal(counted.place.address, "127.0.0.1");
		assert_true(cpuset_has(&counted.place.cpus, 3));
		assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_SEC, &started, &err),
				 -EBUSY);
		assert_int_equal(peer_read(peer, &result, &err), 0);
		assert_int_equal(json_integer_value(json_object_get(
					 json_object_get(result, "counts"), "served")),
				 5);
		json_decref(result);
		assert_int_equal(peer_check(peer, &err), 0);
		assert_int_equal(peer_stop(peer, &result, &err), 0);
		assert_int_equal(json_integer_value(json_object_get(
					 json_object_get(result, "counts"), "served")),
				 9);
		json_decref(result);
	}
	peer_close(peer);
	server_end();
	assert_true(server_has_said("127.0.0.1: rr, UDP, 4 flows"));
	assert_int_equal(counted.starts, 2);
}

static void what_cannot_be_started_is_told(void **state)
{
	struct load_place place = {.port = 4711};
	struct load_config bad = some;
	struct peer_started started;
	struct error err;
	struct peer *peer;
	char text[96];

	(void)state;
	server_begin(NULL);
	peer = peer_open();
	bad.flows = 13;
	assert_int_equal(peer_start(peer, &bad, &place, NSEC_PER_SEC, &started, &err), -EADDRINUSE);
	snprintf(text, sizeof(text), "127.0.0.1 port %d: port 4711 is in use", server.port);
	assert_string_equal(err.text, text);
	bad = some;
	bad.request_size = 666;
	assert_int_equal(peer_start(peer, &bad, &place, NSEC_PER_SEC, &started, &err), -EINVAL);
	place.engine = (struct load_engine){.used = true, .port = "xdp:lo"};
	assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_SEC, &started, &err), -EPERM);
	assert_int_equal(counted.starts, 0);
	place.engine.used = false;
	assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_SEC, &started, &err), 0);
	/* Gone without a stop: the run ends all the same. */
	peer_close(peer);
	EVENTUALLY(counted.stops == 1);
	server_end();
	assert_true(server_has_said("127.0.0.1: refused: port 4711 is in use"));
	assert_true(server_has_said("127.0.0.1: is gone in mid-run, which has ended"));
}

static void both_ends_tell_how_they_differ(void **state)
{
	json_t *fixed = json_pack("{s:i, s:s}", "flows", 4, "protocol", "udp");
	struct load_place place = {.port = 4711};
	struct load_config other = some;
	struct peer_started started;
	struct error err;
	struct peer *peer;

	(void)state;
	server_begin(fixed);
	peer = peer_open();
	other.flows = 8;
	assert_int_equal(peer_start(peer, &other, &place, NSEC_PER_SEC, &started, &err), -EPROTO);
	assert_non_null(strstr(err.text, ": flows is 4 on the server, and 8 on the client"));
	other = some;
	other.protocol = LOAD_TCP;
	assert_int_equal(peer_start(peer, &other, &place, NSEC_PER_SEC, &started, &err), -EPROTO);
	assert_non_null(strstr(err.text, ": protocol is udp on the server, and tcp on the client"));
	assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_SEC, &started, &err), 0);
	peer_close(peer);
	server_end();
	json_decref(fixed);
	assert_true(server_has_said(
		"127.0.0.1: refused: flows is 4 on the server, and 8 on the client"));
}

static void one_client_at_a_time(void **state)
{
	struct peer *peer, *second = NULL;
	struct error err;

	(void)state;
	server_begin(NULL);
	peer = peer_open();
	assert_int_equal(peer_open_host("127.0.0.1", (uint16_t)server.port, &second, &err), -EBUSY);
	assert_non_null(strstr(err.text, "busy with another client, 127.0.0.1"));
	peer_close(peer);
	/* As soon as the server has seen that. */
	EVENTUALLY(!peer_open_host("127.0.0.1", (uint16_t)server.port, &second, &err));
	peer_close(second);
	server_end();
}

static int raw_open(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)server.port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Sends, says that this was all, and reads to the end. */
static void raw_talk(const char *bytes, size_t n, char *answer, size_t size)
{
	int fd = raw_open();
	size_t have = 0, sent = 0;
	ssize_t got;

	while (sent < n && (got = send(fd, bytes + sent, n - sent, MSG_NOSIGNAL)) > 0)
		sent += (size_t)got;
	shutdown(fd, SHUT_WR);
	while (have < size - 1 && (got = read(fd, answer + have, size - 1 - have)) > 0)
		have += (size_t)got;
	answer[have] = '\0';
	close(fd);
}

#define HELLO "{\"do\": \"hello\", \"protocol\": 2, \"napier\": \"x\"}\n"

static void nonsense_gets_an_answer(void **state)
{
	static const struct {
		const char *sends, *gets;
	} cases[] = {
		{"GET / HTTP/1.1\r\n", "\\\"GET / HTTP/1.1.\\\" is no line of the protocol"},
		{"[1]\n", "is no line of the protocol"},
		{"{}\n", "\\\"do\\\" is missing"},
		{"{\"do\": 7}\n", "\\\"do\\\" is missing"},
		{"{\"do\": \"start\"}\n", "hello comes first"},
		{HELLO "{\"do\": \"dance\"}\n",
		 "\\\"dance\\\": it is hello, environment, start, read or stop"},
		{HELLO "{\"do\": \"stop\"}\n", "nothing has been started"},
		{HELLO "{\"do\": \"start\"}\n", "parameters: they are an object"},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}}\n", "place: "},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}, \"place\": 5}\n",
		 "place: "},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}, \"place\": "
		       "{\"address\": \"\", \"port\": 70000, \"cpus\": \"\"}}\n",
		 "place: port is 0..65535"},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}, \"place\": "
		       "{\"address\": \"\", \"port\": 7, \"cpus\": \"1-\"}}\n",
		 "place: cpus is a text"},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}, \"place\": "
		       "{\"address\": \"\", \"port\": 7, \"cpus\": \"\", \"engine\": 3}}\n",
		 "place: port is a text"},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}, \"place\": "
		       "{\"address\": \"\", \"port\": 7, \"cpus\": \"\"}}\n",
		 "lasts_ns is a whole number"},
		{HELLO "{\"do\": \"start\", \"config\": {\"kind\": \"rr\"}, \"lasts_ns\": -1, "
		       "\"place\": {\"address\": \"\", \"port\": 7, \"cpus\": \"\"}}\n",
		 "lasts_ns is a whole number"},
		{"{\"do\": \"hello\", \"protocol\": 99, \"napier\": \"9.9\"}\n",
		 "the client speaks version 99 of the protocol (napier 9.9), the server version 2"},
	};
	static char answer[65536];

	(void)state;
	server_begin(NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		raw_talk(cases[i].sends, strlen(cases[i].sends), answer, sizeof(answer));
		if (!strstr(answer, cases[i].gets))
			fail_msg("%s gets %s", cases[i].sends, answer);
	}
	server_end();
	assert_int_equal(counted.starts, 0);
}

static unsigned lines_said(const char *part)
{
	unsigned n = 0;

	pthread_mutex_lock(&server.lock);
	for (unsigned i = 0; i < server.lines; i++)
		n += strstr(server.said[i], part) != NULL;
	pthread_mutex_unlock(&server.lock);
	return n;
}

static void nonsense_is_said_within_bounds(void **state)
{
	enum { CLIENTS = 3 * PEER_LINES };
	static const char nonsense[] = "GET / HTTP/1.1\r\n";
	int64_t began = clock_now(), windows;
	unsigned said, more = 0;
	char answer[512];

	(void)state;
	server_begin(NULL);
	for (int i = 0; i < CLIENTS; i++)
		raw_talk(nonsense, strlen(nonsense), answer, sizeof(answer));
	server_end();
	said = lines_said("127.0.0.1: refused: \"GET / HTTP/1.1.\" is no line of the protocol");
	windows = 1 + (clock_now() - began) / (PEER_LINES_SECONDS * NSEC_PER_SEC);
	assert_in_range(said, PEER_LINES, PEER_LINES * windows);
	/* Each was either said or counted. */
	for (unsigned i = 0; i < server.lines; i++) {
		if (strstr(server.said[i], " more such lines were left out"))
			more += (unsigned)atoi(server.said[i]);
	}
	assert_int_equal(said + more, CLIENTS);
}

/* As one that somebody has stopped: it is there, and does not go on. */
static void a_silent_client_makes_room(void **state)
{
	struct load_place place = {.port = 4711};
	struct peer_started started;
	struct error err;
	struct peer *peer;
	json_t *result;

	(void)state;
	server.slack = 1;
	server_begin(NULL);
	server.slack = 0;
	peer = peer_open();
	assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_MSEC, &started, &err), 0);
	EVENTUALLY(counted.stops == 1);
	EVENTUALLY(lines_said("127.0.0.1: has been silent for ") == 1);
	assert_int_equal(lines_said(" s, longer than its run was to last, and is closed"), 1);
	peer_close(peer_open());
	/* When it goes on it is told. */
	assert_int_equal(peer_read(peer, &result, &err), -ECONNRESET);
	peer_close(peer);
	server_end();
}

static void a_line_without_end_is_refused(void **state)
{
	static char line[4 * PEER_REQUEST_MAX];
	char answer[512];

	(void)state;
	server_begin(NULL);
	memset(line, 'x', sizeof(line));
	/* Whether its answer comes through is TCP's: bytes that nobody read reset the connection.
	 */
	raw_talk(line, sizeof(line), answer, sizeof(answer));
	EVENTUALLY(server_has_said("127.0.0.1: refused: a line of more than 65536 bytes"));
	peer_close(peer_open());
	server_end();
}

/* As raw_talk, of a child's server: no thread and no host to measure, so it is quick. */
static void child_talk(const char *bytes, size_t n, char *answer, size_t size)
{
	struct peer_server_config config = {.ops = counted_find, .stop = &server.stop};
	size_t have = 0;
	struct error err;
	ssize_t got;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[0], bytes, n, 0), (ssize_t)n);
	shutdown(pair[0], SHUT_WR);
	config.fd = pair[1];
	assert_int_equal(peer_serve(&config, &err), 0);
	while (have < size - 1 && (got = read(pair[0], answer + have, size - 1 - have)) > 0)
		have += (size_t)got;
	answer[have] = '\0';
	close(pair[0]);
}

/* Lines as a client sends them, a few bytes of each changed: nothing falls over. */
static void changed_lines_do_no_harm(void **state)
{
	static const char lines[] = HELLO
		"{\"do\": \"start\", \"config\": {\"kind\": \"rr\", \"flows\": 4, \"rate\": "
		"1.5, \"sizes\": [1, 2]}, \"place\": {\"address\": \"127.0.0.1\", \"port\": 7, "
		"\"cpus\": \"0-3\", \"engine\": {\"port\": \"a\", \"address\": \"b\", "
		"\"settings\": \"\", \"cpus\": \"1\", \"poller\": \"app\"}}, "
		"\"lasts_ns\": 7}\n"
		"{\"do\": \"read\"}\n{\"do\": \"stop\"}\n";
	static char answer[65536];
	uint64_t random = 88172645463325252;

	(void)state;
	server.stop = 0;
	counted.starts = counted.stops = 0;
	for (int i = 0; i < 20000; i++) {
		char changed[sizeof(lines)];

		memcpy(changed, lines, sizeof(lines));
		for (int k = 0; k < i % 4; k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			changed[random % (sizeof(lines) - 1)] = (char)(random >> 32);
		}
		child_talk(changed, sizeof(lines) - 1, answer, sizeof(answer));
		assert_non_null(strstr(answer, "\"protocol\":2"));
	}
	/* What was not changed was understood, and what was started has ended. */
	assert_true(counted.starts >= 5000);
	assert_int_equal(counted.starts, counted.stops);
}

/* A server that is none: it sends what it is told to whoever comes, and goes on listening. */
struct fake {
	const char *sends;
	int listener;
	pthread_t thread;
	char address[INET_ADDRSTRLEN];
	uint16_t port;
	char heard[4096];
};

static void *fake_main(void *arg)
{
	struct fake *fake = arg;
	int fd = accept(fake->listener, NULL, NULL);
	ssize_t n, have = 0;

	send(fd, fake->sends, strlen(fake->sends), MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while (have < (ssize_t)sizeof(fake->heard) - 1 &&
	       (n = read(fd, fake->heard + have, sizeof(fake->heard) - 1 - (size_t)have)) > 0)
		have += n;
	close(fd);
	return NULL;
}

static void fake_begin(struct fake *fake, const char *sends)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t length = sizeof(at);

	*fake = (struct fake){.sends = sends};
	loopback_address(fake->address, sizeof(fake->address));
	inet_pton(AF_INET, fake->address, &at.sin_addr);
	fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fake->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fake->listener, 1), 0);
	assert_int_equal(getsockname(fake->listener, (struct sockaddr *)&at, &length), 0);
	fake->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&fake->thread, NULL, fake_main, fake), 0);
}

static void other_servers_are_recognised(void **state)
{
	static const struct {
		const char *sends, *says;
		int code;
	} cases[] = {
		{"SSH-2.0-x\r\n", "is no napier bench server: \"SSH-2.0-x.\" is no line", -EPROTO},
		{"{\"napier\": 1}\n", "is no napier bench server", -EPROTO},
		{"{\"error\": 3}\n", "an answer that means nothing", -EPROTO},
		{"", "the server has gone", -ECONNRESET},
		{"{\"napier\": \"9.9\", \"protocol\": 2}\n", "the server has gone", -ECONNRESET},
		{"{\"napier\": \"9.9\", \"protocol\": 2}\n{\"ok\": false}\n",
		 "an answer that means nothing", -EPROTO},
		{"{\"napier\": \"9.9\", \"protocol\": 3}\n",
		 "the server speaks version 3 of the protocol (napier 9.9), this is version 2",
		 -EPROTONOSUPPORT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fake fake;
		struct peer *peer;
		struct error err = {0};
		int ret;

		fake_begin(&fake, cases[i].sends);
		ret = peer_open_host(fake.address, fake.port, &peer, &err);
		pthread_join(fake.thread, NULL);
		close(fake.listener);
		assert_int_equal(ret, cases[i].code);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" gives %s", cases[i].sends, err.text);
		/* A server of another version learns which this one is. */
		if (ret == -EPROTONOSUPPORT)
			assert_non_null(strstr(fake.heard, napier_version()));
	}
}

/* Answers that are of the protocol, and of no use. */
static void empty_answers_are_errors(void **state)
{
	struct load_place place = {.port = 1};
	struct peer_started started;
	struct fake fake;
	struct peer *peer;
	struct error err;
	json_t *result = NULL;

	(void)state;
	fake_begin(&fake,
		   "{\"napier\": \"9.9\", \"protocol\": 2}\n{\"ok\": true}\n"
		   "{\"ok\": true}\n{\"ok\": true, \"threads\": [1, \"x\", {}]}\n{\"ok\": true}\n");
	assert_int_equal(peer_open_host(fake.address, fake.port, &peer, &err), 0);
	assert_int_equal(peer_start(peer, &some, &place, NSEC_PER_SEC, &started, &err), 0);
	assert_int_equal(started.threads, 3);
	assert_int_equal(peer_read(peer, &result, &err), -EPROTO);
	assert_null(result);
	/* And then it is gone. */
	EVENTUALLY(peer_check(peer, &err) == -ECONNRESET);
	assert_int_equal(peer_stop(peer, &result, &err), -ECONNRESET);
	peer_close(peer);
	pthread_join(fake.thread, NULL);
	close(fake.listener);
}

static void nobody_there_is_told(void **state)
{
	struct peer *peer;
	struct error err;
	struct fake fake;

	(void)state;
	/* A port that somebody had, and has no more. */
	fake_begin(&fake, "");
	peer_open_host(fake.address, fake.port, &peer, &err);
	pthread_join(fake.thread, NULL);
	close(fake.listener);
	assert_int_equal(peer_open_host(fake.address, fake.port, &peer, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.text, "start napier bench server"));
	assert_int_equal(peer_open_host("no such host", 1, &peer, &err), -EADDRNOTAVAIL);
	assert_int_equal(strncmp(err.text, "no such host: ", 14), 0);
}

static void a_port_or_address_that_cannot_be_is_named(void **state)
{
	struct peer_server_config config;
	struct error err;
	volatile int stop = 0;

	(void)state;
	server_begin(NULL);
	config = server.config;
	config.stop = &stop;
	config.say = NULL;
	config.port = (uint16_t)server.port;
	assert_int_equal(peer_serve(&config, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "is in use"));
	strcpy(config.address, "192.0.2.1");
	assert_int_equal(peer_serve(&config, &err), -EADDRNOTAVAIL);
	assert_string_equal(err.text, "192.0.2.1 is no address of this host");
	server_end();
}

/* As over a child's descriptor: one client, and the end with it. */
static void a_socket_pair_has_one_client(void **state)
{
	struct peer_server_config config = {.ops = counted_find, .stop = &server.stop};
	struct peer_line line;
	struct error err;
	json_t *o;
	int pair[2];

	(void)state;
	server.stop = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[0], HELLO, strlen(HELLO), 0), (ssize_t)strlen(HELLO));
	shutdown(pair[0], SHUT_WR);
	config.fd = pair[1];
	assert_int_equal(peer_serve(&config, &err), 0);
	peer_line_init(&line, pair[0], PEER_ANSWER_MAX);
	assert_int_equal(peer_line_wait(&line, clock_now(), &o, &err), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "protocol")), PEER_VERSION);
	json_decref(o);
	assert_int_equal(peer_line_wait(&line, clock_now(), &o, &err), 0);
	assert_true(json_is_true(json_object_get(o, "ok")));
	json_decref(o);
	assert_int_equal(peer_line_wait(&line, clock_now(), &o, &err), -ECONNRESET);
	peer_line_free(&line);
	close(pair[0]);
}

static void places_are_read_as_written(void **state)
{
	struct load_place place = {.netns = 5, .address = "fe80::1", .port = 65535};
	struct load_place back;
	struct error err;
	json_t *o;

	(void)state;
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu += 2)
		cpuset_add(&place.cpus, cpu);
	place.engine = (struct load_engine){.used = true,
					    .port = "xdp:eth0",
					    .address = "10.78.0.2/24",
					    .poller = POLLER_WORKQUEUE,
					    .settings = "weight = 3;"};
	o = load_place_json(&place);
	assert_int_equal(load_place_read(o, &back, &err), 0);
	json_decref(o);
	assert_int_equal(back.netns, -1);
	assert_string_equal(back.address, place.address);
	assert_int_equal(back.port, 65535);
	assert_memory_equal(&back.cpus, &place.cpus, sizeof(place.cpus));
	assert_true(back.engine.used);
	assert_string_equal(back.engine.port, place.engine.port);
	assert_string_equal(back.engine.address, place.engine.address);
	assert_string_equal(back.engine.settings, place.engine.settings);
	assert_int_equal(back.engine.poller, POLLER_WORKQUEUE);
	assert_true(cpuset_empty(&back.engine.cpus));
}

static void codes_have_names(void **state)
{
	(void)state;
	assert_string_equal(peer_code_name(-EPROTO), "EPROTO");
	assert_string_equal(peer_code_name(-EXDEV), "EIO");
	assert_int_equal(peer_code_parse("EADDRINUSE"), -EADDRINUSE);
	assert_int_equal(peer_code_parse("E"), -EIO);
	assert_int_equal(peer_code_parse(NULL), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_started_read_and_stopped),
		cmocka_unit_test(what_cannot_be_started_is_told),
		cmocka_unit_test(both_ends_tell_how_they_differ),
		cmocka_unit_test(one_client_at_a_time),
		cmocka_unit_test(nonsense_gets_an_answer),
		cmocka_unit_test(nonsense_is_said_within_bounds),
		cmocka_unit_test(a_silent_client_makes_room),
		cmocka_unit_test(a_line_without_end_is_refused),
		cmocka_unit_test(changed_lines_do_no_harm),
		cmocka_unit_test(other_servers_are_recognised),
		cmocka_unit_test(empty_answers_are_errors),
		cmocka_unit_test(nobody_there_is_told),
		cmocka_unit_test(a_port_or_address_that_cannot_be_is_named),
		cmocka_unit_test(a_socket_pair_has_one_client),
		cmocka_unit_test(places_are_read_as_written),
		cmocka_unit_test(codes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

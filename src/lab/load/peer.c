/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <napier/napier.h>

#include "lab/clock.h"
#include "lab/load/peer.h"
#include "lab/load/peer_line.h"

#define CONNECT_TIMEOUT (5 * NSEC_PER_SEC)
#define ANSWER_TIMEOUT (10 * NSEC_PER_SEC)
/* A process whose socket has ended ends, too; on a busy machine a good deal later. */
#define END_TIMEOUT (10 * NSEC_PER_SEC)

struct peer {
	struct child child;
	int fd;
	struct peer_line in;
	bool lost; /* it has died, or it answers to something that was asked before */
	char name[96];
	char address[LOAD_ADDRESS_MAX];
	json_t *environment;
};

/* err says what ended it, or what was seen of that: `code`. */
static int peer_died(struct peer *peer, int code, struct error *err)
{
	int64_t deadline = clock_now() + END_TIMEOUT;
	struct error how;

	peer->lost = true;
	while (code == -ECONNRESET && peer->child.pid) {
		if (child_ended(&peer->child, &how))
			return error_set(err, -ECONNRESET, "the server has died: %s", how.text);
		if (clock_now() > deadline)
			break;
		clock_sleep(NSEC_PER_MSEC);
	}
	if (code == -ECONNRESET)
		return error_set(err, code, "%s: the server has gone", peer->name);
	if (code == -ETIMEDOUT)
		return error_set(err, code, "%s: the server does not answer", peer->name);
	return error_set(err, code, "%s: %s", peer->name, strerror(-code));
}

static bool answer_good(const json_t *answer)
{
	return json_is_true(json_object_get(answer, "ok"));
}

/* What the other end said was wrong. */
static int answer_refused(const struct peer *peer, const json_t *answer, struct error *err)
{
	const char *text = json_string_value(json_object_get(answer, "error"));
	int code = peer_code_parse(json_string_value(json_object_get(answer, "code")));

	if (!text)
		return error_set(err, -EPROTO, "%s: an answer that means nothing", peer->name);
	return error_set(err, code, "%s: %s", peer->name, text);
}

static int line_receive(struct peer *peer, json_t **out, struct error *err)
{
	struct error what;
	int ret = peer_line_wait(&peer->in, clock_now() + ANSWER_TIMEOUT, out, &what);

	if (ret == -EINVAL || ret == -EMSGSIZE) {
		peer->lost = true;
		return error_set(err, -EPROTO, "%s is no napier bench server: %s", peer->name,
				 what.text);
	}
	return ret ? peer_died(peer, ret, err) : 0;
}

/* Owns request. *out is an answer that is good. */
static int ask(struct peer *peer, json_t *request, json_t **out, struct error *err)
{
	int ret = request ? 0 : -ENOMEM;

	if (ret)
		return error_set(err, ret, "no memory for a request");
	if (peer->lost)
		ret = error_set(err, -ECONNRESET, "%s: the server was lost before", peer->name);
	if (!ret) {
		ret = peer_line_send(peer->fd, request, clock_now() + ANSWER_TIMEOUT);
		if (ret)
			ret = peer_died(peer, ret, err);
	}
	json_decref(request);
	if (!ret)
		ret = line_receive(peer, out, err);
	if (!ret && !answer_good(*out)) {
		ret = answer_refused(peer, *out, err);
		json_decref(*out);
		*out = NULL;
	}
	return ret;
}

static json_t *hello_json(void)
{
	return json_pack("{s:s, s:s, s:i}", "do", "hello", "napier", napier_version(), "protocol",
			 PEER_VERSION);
}

/* What the server says first. */
static int greeting_judge(struct peer *peer, const json_t *greeting, struct error *err)
{
	const json_t *protocol = json_object_get(greeting, "protocol");
	const char *version = json_string_value(json_object_get(greeting, "napier"));
	json_t *hello;

	if (json_object_get(greeting, "error"))
		return answer_refused(peer, greeting, err);
	if (!version || !json_is_integer(protocol))
		return error_set(err, -EPROTO, "%s is no napier bench server", peer->name);
	if (json_integer_value(protocol) == PEER_VERSION)
		return 0;
	/* The people there shall know, too. */
	hello = hello_json();
	if (hello)
		peer_line_send(peer->fd, hello, 0);
	json_decref(hello);
	return error_set(err, -EPROTONOSUPPORT,
			 "%s: the server speaks version %lld of the protocol (napier %.20s), this "
			 "is version %d (napier %s): use the same napier on both",
			 peer->name, (long long)json_integer_value(protocol), version, PEER_VERSION,
			 napier_version());
}

static int greet(struct peer *peer, struct error *err)
{
	json_t *answer = NULL;
	int ret;

	peer_line_init(&peer->in, peer->fd, PEER_ANSWER_MAX);
	ret = line_receive(peer, &answer, err);
	if (ret)
		return ret;
	ret = greeting_judge(peer, answer, err);
	json_decref(answer);
	if (!ret)
		ret = ask(peer, hello_json(), &answer, err);
	if (!ret)
		json_decref(answer);
	return ret;
}

static int environment_ask(struct peer *peer, struct error *err)
{
	json_t *answer;
	int ret = ask(peer, json_pack("{s:s}", "do", "environment"), &answer, err);

	if (ret)
		return ret;
	peer->environment = json_incref(json_object_get(answer, "environment"));
	json_decref(answer);
	return 0;
}

static struct peer *peer_alloc(struct error *err)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer) {
		error_set(err, -ENOMEM, "no memory for a server's end");
		return NULL;
	}
	peer->child = CHILD_NONE;
	peer->fd = -1;
	return peer;
}

static int peer_opened(struct peer *peer, struct peer **out, struct error *err)
{
	int ret = greet(peer, err);

	if (!ret && !peer->child.pid)
		ret = environment_ask(peer, err);
	if (ret)
		peer_close(peer);
	else
		*out = peer;
	return ret;
}

int peer_open_child(const char *napier, int netns, const struct cpuset *cpus, struct peer **out,
		    struct error *err)
{
	struct peer *peer = peer_alloc(err);
	char number[16];
	const char *const argv[] = {napier, "bench", "server", "--fd", number, NULL};
	int pair[2], ret;

	if (!peer)
		return -ENOMEM;
	snprintf(peer->name, sizeof(peer->name), "the server side");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		ret = error_set(err, -errno, "%s: a socket: %s", peer->name, strerror(errno));
		peer_close(peer);
		return ret;
	}
	peer->fd = pair[0];
	snprintf(number, sizeof(number), "%d", pair[1]);
	fcntl(pair[1], F_SETFD, 0); /* the child keeps it */
	ret = child_start(&peer->child, argv, cpus, netns, err);
	close(pair[1]);
	if (ret) {
		peer_close(peer);
		return ret;
	}
	return peer_opened(peer, out, err);
}

/* 0, or a negative errno. */
static int connect_wait(int fd, const struct addrinfo *a, int64_t deadline)
{
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	int code = 0, n;
	socklen_t length = sizeof(code);

	if (!connect(fd, a->ai_addr, a->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	do {
		int64_t left = deadline - clock_now();

		n = left > 0 ? poll(&wait, 1, (int)(left / NSEC_PER_MSEC) + 1) : 0;
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
	return -code;
}

static int host_try(struct peer *peer, const struct addrinfo *a, int64_t deadline)
{
	int ret;

	peer->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (peer->fd < 0)
		return -errno;
	ret = connect_wait(peer->fd, a, deadline);
	if (ret) {
		close(peer->fd);
		peer->fd = -1;
		return ret;
	}
	getnameinfo(a->ai_addr, a->ai_addrlen, peer->address, sizeof(peer->address), NULL, 0,
		    NI_NUMERICHOST);
	return 0;
}

static int host_connect(struct peer *peer, const char *host, uint16_t port, struct error *err)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int64_t deadline;
	char text[8];
	int ret;

	snprintf(text, sizeof(text), "%u", port);
	ret = getaddrinfo(host, text, &hints, &found);
	if (ret)
		return error_set(err, -EADDRNOTAVAIL, "%s: %s", host, gai_strerror(ret));
	deadline = clock_now() + CONNECT_TIMEOUT;
	ret = -EADDRNOTAVAIL;
	for (const struct addrinfo *a = found; a && ret; a = a->ai_next)
		ret = host_try(peer, a, deadline);
	freeaddrinfo(found);
	if (ret == -ECONNREFUSED)
		return error_set(err, ret, "%s: nobody listens there: start napier bench server",
				 peer->name);
	if (ret == -ETIMEDOUT)
		return error_set(err, ret, "%s: it does not answer within %d s", peer->name,
				 (int)(CONNECT_TIMEOUT / NSEC_PER_SEC));
	return ret ? error_set(err, ret, "%s: %s", peer->name, strerror(-ret)) : 0;
}

int peer_open_host(const char *host, uint16_t port, struct peer **out, struct error *err)
{
	struct peer *peer = peer_alloc(err);
	int ret;

	if (!peer)
		return -ENOMEM;
	snprintf(peer->name, sizeof(peer->name), "%.64s port %u", host, port);
	ret = host_connect(peer, host, port, err);
	if (ret) {
		peer_close(peer);
		return ret;
	}
	return peer_opened(peer, out, err);
}

void peer_close(struct peer *peer)
{
	/* To a child this is the end already; SIGTERM is for one that does not see it. */
	if (peer->fd >= 0)
		close(peer->fd);
	child_stop(&peer->child, NULL);
	peer_line_free(&peer->in);
	json_decref(peer->environment);
	free(peer);
}

pid_t peer_pid(const struct peer *peer)
{
	return peer->child.pid;
}

const json_t *peer_environment(const struct peer *peer)
{
	return peer->environment;
}

const char *peer_address(const struct peer *peer)
{
	return peer->address;
}

int peer_check(struct peer *peer, struct error *err)
{
	char byte;
	ssize_t n;

	if (peer->lost)
		return error_set(err, -ECONNRESET, "%s: the server was lost before", peer->name);
	n = recv(peer->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	return peer_died(peer, -ECONNRESET, err);
}

static void threads_read(const json_t *threads, struct peer_started *out)
{
	size_t n = json_array_size(threads);

	for (size_t i = 0; i < n && i < LOAD_TIDS_MAX; i++)
		out->tid[out->threads++] = (pid_t)json_integer_value(json_array_get(threads, i));
}

int peer_start(struct peer *peer, const struct load_config *config, const struct load_place *place,
	       int64_t lasts, struct peer_started *out, struct error *err)
{
	json_t *answer;
	int ret = ask(peer,
		      json_pack("{s:s, s:o, s:o, s:I}", "do", "start", "config",
				load_config_json(config), "place", load_place_json(place),
				"lasts_ns", (json_int_t)lasts),
		      &answer, err);

	*out = (struct peer_started){0};
	if (ret)
		return ret;
	threads_read(json_object_get(answer, "threads"), out);
	json_decref(answer);
	return 0;
}

static int result_ask(struct peer *peer, const char *what, json_t **out, struct error *err)
{
	json_t *answer;
	int ret = ask(peer, json_pack("{s:s}", "do", what), &answer, err);

	if (ret)
		return ret;
	*out = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	if (json_is_object(*out))
		return 0;
	json_decref(*out);
	*out = NULL;
	return error_set(err, -EPROTO, "%s: an answer without a result", peer->name);
}

int peer_read(struct peer *peer, json_t **out, struct error *err)
{
	return result_ask(peer, "read", out, err);
}

int peer_stop(struct peer *peer, json_t **out, struct error *err)
{
	return result_ask(peer, "stop", out, err);
}

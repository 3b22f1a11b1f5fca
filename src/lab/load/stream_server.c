/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/side.h"
#include "lab/load/stream_end.h"
#include "lab/load/stream_hello.h"
#include "lab/load/stream_line.h"
#include "lab/load/stream_server.h"
#include "lab/load/stream_socket.h"

#define HELLO_PATIENCE (NSEC_PER_SEC / 2)

enum { BACKLOG = 4096, DEFER_SECONDS = 5, HELLO_LOOK_MS = 200, SILENT_SECONDS = 10 };

struct stream_server {
	struct load_config config;
	struct load_place place;
	struct stream_plan plan;
	struct stream_address address;
	struct stream_end *end;
	int listener, greeter, wake;
	pthread_t thread;
	bool started;
	_Atomic bool stop;
	/* The client's. */
	struct stream_line line;
	uint32_t session;
	bool runs;
};

/* ---- meeting ---- */

static void client_leave(struct stream_server *s)
{
	stream_end_reset(s->end);
	stream_line_close(&s->line);
	s->runs = false;
}

static void greet(struct stream_server *s, struct stream_line *line)
{
	json_t *hello = NULL, *config = NULL;
	struct load_config theirs;
	struct error err = {0};

	if (stream_line_receive(line, HELLO_PATIENCE, &hello)) {
		stream_line_close(line);
		return;
	}
	config = json_object_get(hello, "config");
	if (json_integer_value(json_object_get(hello, "version")) != STREAM_VERSION)
		error_set(&err, -EPROTO, "another version");
	else if (!load_config_read(config, &theirs, &err))
		load_config_compare(&s->config, &theirs, &err);
	if (!err.code && stream_line_is_open(&s->line) && !stream_line_is_dead(&s->line))
		error_set(&err, -EBUSY, "it serves another client");
	json_decref(hello);
	if (!err.code && stream_line_is_open(&s->line))
		client_leave(s);
	hello = json_pack("{si so sI ss*}", "version", STREAM_VERSION, "config",
			  load_config_json(&s->config), "session", (json_int_t)++s->session,
			  "refused", err.code ? err.text : NULL);
	if (stream_line_send(line, hello) || err.code) {
		stream_line_close(line);
		return;
	}
	s->line = *line;
}

static int socket_prepare(struct stream_server *s, int fd, unsigned flow)
{
	int ret = stream_socket_options(fd, &s->config, true);

	if (!ret)
		ret = stream_socket_look(fd);
	if (!ret)
		ret = stream_socket_class(fd, s->address.at.ss_family,
					  stream_plan_tos(&s->plan, flow));
	return ret;
}

static bool hello_is_ours(const struct stream_server *s, const struct stream_hello *hello,
			  unsigned *flow)
{
	*flow = ntohl(hello->flow);
	return ntohl(hello->magic) == STREAM_HELLO && stream_line_is_open(&s->line) && !s->runs &&
	       ntohl(hello->session) == s->session && *flow < s->plan.flows;
}

static void flow_accept(struct stream_server *s, int fd)
{
	struct stream_hello hello;
	unsigned flow;

	/* The first bytes are there, or it is nobody who knows us. */
	if (recv(fd, &hello, sizeof(hello), MSG_DONTWAIT) != sizeof(hello) ||
	    !hello_is_ours(s, &hello, &flow) || socket_prepare(s, fd, flow)) {
		close(fd);
		return;
	}
	stream_end_flow_add(s->end, flow, fd);
}

static void connection_accept(struct stream_server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC), one = 1;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int silent = SILENT_SECONDS * 1000;
	struct stream_line line;
	char first;

	if (fd < 0)
		return;
	if (poll(&p, 1, HELLO_LOOK_MS) != 1 || recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1) {
		close(fd);
		return;
	}
	if (first != '{') {
		flow_accept(s, fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
	stream_line_open(&line, fd);
	greet(s, &line);
}

/*
 * Each flow has a socket of its own, connected, so that it has its own buffer, as that of a program
 * with one peer; the hello came to the one that is connected to nobody.
 */
static void datagram_greet(struct stream_server *s)
{
	struct stream_hello hello;
	struct stream_address from = {.length = sizeof(from.at)};
	unsigned flow;
	int fd, one = 1;

	if (recvfrom(s->greeter, &hello, sizeof(hello), MSG_DONTWAIT | MSG_TRUNC, (void *)&from.at,
		     &from.length) != sizeof(hello) ||
	    !hello_is_ours(s, &hello, &flow))
		return;
	fd = stream_socket(&s->place, s->address.at.ss_family, SOCK_DGRAM, 0);
	if (fd < 0)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&s->address.at, s->address.length) ||
	    connect(fd, (void *)&from.at, from.length) || socket_prepare(s, fd, flow)) {
		close(fd);
		return;
	}
	stream_end_flow_add(s->end, flow, fd);
}

/* ---- the client's lines ---- */

static bool is_gone(void *arg)
{
	struct stream_server *s = arg;

	return s->stop || stream_line_is_dead(&s->line);
}

static int line_answer(struct stream_server *s, const json_t *o)
{
	const json_t *start = json_object_get(o, "measure"), *drain = json_object_get(o, "drain");

	if (json_object_get(o, "clock"))
		return stream_line_send(&s->line,
					json_pack("{sI}", "clock", (json_int_t)clock_now()));
	if (!s->runs)
		return -EPROTO;
	if (json_object_get(o, "stop"))
		return stream_line_send(
			&s->line,
			json_pack("{sI}", "stopped", (json_int_t)stream_end_send_stop(s->end)));
	if (json_is_integer(start)) {
		int64_t duration = json_integer_value(json_object_get(o, "duration"));

		if (duration <= 0)
			return -EPROTO;
		stream_end_measure(s->end, json_integer_value(start), duration);
		return 0;
	}
	if (!json_is_integer(drain))
		return -EPROTO;
	stream_end_send_stop(s->end);
	stream_end_receive_stop(s->end, (uint64_t)json_integer_value(drain), is_gone, s);
	return stream_line_send(&s->line, json_pack("{so}", "report", stream_end_report(s->end)));
}

static void line_read(struct stream_server *s)
{
	json_t *o = NULL;
	int ret;

	do {
		ret = stream_line_receive(&s->line, 0, &o);
		if (!ret)
			ret = line_answer(s, o);
		json_decref(o);
		o = NULL;
	} while (!ret && !s->stop);
	if (ret != -ETIMEDOUT)
		client_leave(s);
}

static void gather(struct stream_server *s)
{
	if (!stream_line_is_open(&s->line) || s->runs || !stream_end_complete(s->end))
		return;
	s->runs = true;
	stream_end_run(s->end);
	if (stream_line_send(&s->line, json_pack("{sb}", "ready", 1)))
		client_leave(s);
}

static void *server_run(void *arg)
{
	struct stream_server *s = arg;

	while (!s->stop) {
		struct pollfd p[] = {
			{.fd = s->wake, .events = POLLIN},
			{.fd = s->line.peer.fd, .events = POLLIN},
			{.fd = s->listener, .events = POLLIN},
			{.fd = s->greeter, .events = POLLIN},
		};

		if (poll(p, sizeof(p) / sizeof(*p), -1) < 0)
			continue;
		if (p[1].revents)
			line_read(s);
		if (p[2].revents)
			connection_accept(s);
		if (p[3].revents)
			datagram_greet(s);
		gather(s);
	}
	return NULL;
}

/* ---- start and stop ---- */

static int listen_at(struct stream_server *s, int type, int *out, struct error *err)
{
	int one = 1, defer = DEFER_SECONDS, ret = 0;
	int fd = stream_socket(&s->place, s->address.at.ss_family, type | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return error_set(err, fd, "opening a socket: %s", strerror(-fd));
	*out = fd;
	/* What no flow could have either: better said now than by flows that never come. */
	ret = stream_socket_options(fd, &s->config, true);
	if (ret)
		return error_set(err, ret, "busy_poll_usecs: %s%s", strerror(-ret),
				 ret == -EPERM ? ": it takes CAP_NET_ADMIN" : "");
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&s->address.at, s->address.length))
		ret = -errno;
	if (!ret && type == SOCK_STREAM &&
	    (setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer, sizeof(defer)) ||
	     listen(fd, BACKLOG)))
		ret = -errno;
	if (ret)
		error_set(err, ret, "listening on %s port %u: %s", s->place.address, s->place.port,
			  strerror(-ret));
	return ret;
}

static int server_prepare(struct stream_server *s, struct error *err)
{
	int ret = side_address(&s->place, 0, &s->address.at, &s->address.length, err);

	s->wake = eventfd(0, EFD_CLOEXEC);
	if (!ret)
		ret = side_files_want(s->plan.flows, err);
	if (!ret && s->wake < 0)
		ret = error_set(err, -errno, "eventfd: %s", strerror(errno));
	if (!ret)
		ret = listen_at(s, SOCK_STREAM, &s->listener, err);
	if (!ret && s->plan.protocol == LOAD_UDP)
		ret = listen_at(s, SOCK_DGRAM, &s->greeter, err);
	if (!ret)
		ret = stream_end_create(&s->plan, true,
					s->config.kind == LOAD_RRUL ? "rrul" : "stream", &s->place,
					&s->end, err);
	if (ret)
		return ret;
	ret = pthread_create(&s->thread, NULL, server_run, s);
	if (ret)
		return error_set(err, -ret, "starting a thread: %s", strerror(ret));
	s->started = true;
	pthread_setname_np(s->thread, "stream-control");
	return 0;
}

int stream_server_start(const struct load_config *config, const struct load_place *place,
			struct stream_server **out, struct error *err)
{
	struct stream_server *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return error_set(err, -ENOMEM, "no memory for a server");
	s->config = *config;
	s->place = *place;
	s->listener = s->greeter = s->wake = -1;
	/* One that went does not leave a number that the next one could take for its own. */
	s->session = (uint32_t)clock_now();
	stream_line_open(&s->line, -1);
	stream_plan_make(&s->config, &s->plan);
	ret = server_prepare(s, err);
	if (ret)
		stream_server_stop(s);
	else
		*out = s;
	return ret;
}

unsigned stream_server_threads(const struct stream_server *s, pid_t tids[LOAD_TIDS_MAX])
{
	return stream_end_threads(s->end, tids);
}

json_t *stream_server_read(const struct stream_server *s)
{
	struct stream_totals t;

	stream_end_totals(s->end, &t);
	return json_pack("{s{sI sI sI sI}}", "counts", "sent", (json_int_t)t.sent, "received",
			 (json_int_t)t.received, "bytes_sent", (json_int_t)t.bytes_sent,
			 "bytes_received", (json_int_t)t.bytes_received);
}

void stream_server_stop(struct stream_server *s)
{
	uint64_t one = 1;

	s->stop = true;
	/* It stays readable. */
	if (s->wake >= 0 && write(s->wake, &one, sizeof(one)) != sizeof(one))
		(void)!errno;
	if (s->started)
		pthread_join(s->thread, NULL);
	if (s->end)
		stream_end_destroy(s->end);
	stream_line_close(&s->line);
	if (s->listener >= 0)
		close(s->listener);
	if (s->greeter >= 0)
		close(s->greeter);
	if (s->wake >= 0)
		close(s->wake);
	free(s);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/side.h"
#include "lab/load/stream_client.h"
#include "lab/load/stream_hello.h"
#include "lab/load/stream_line.h"
#include "lab/load/stream_socket.h"

#define PATIENCE (5 * NSEC_PER_SEC)
#define ANSWER_PATIENCE (10 * NSEC_PER_SEC)
/* Hello of a flow again, while the server has not seen all. */
#define AGAIN (20 * NSEC_PER_MSEC)
#define LEAD (10 * NSEC_PER_MSEC)

enum { CLOCK_LOOKS = 7, SILENT_SECONDS = 10 };

struct stream_client {
	struct load_config config;
	struct load_place place;
	struct stream_plan plan;
	struct stream_address server;
	struct stream_end *end;
	struct stream_line line;
	uint32_t session;
	int64_t ahead; /* the server's clock, of ours */
	int64_t start, duration;
	int failed; /* the line, in mid-run */
};

/* ---- meeting ---- */

static int server_error(const struct stream_client *c, int ret, const char *what, struct error *err)
{
	const char *text = ret == -ETIMEDOUT	? "does not answer"
			   : ret == -ECONNRESET ? "has closed the connection"
			   : ret == -EPROTO	? "answers with something else"
						: strerror(-ret);

	return error_set(err, ret, "the server at %s port %u: %s: %s", c->place.address,
			 c->place.port, what, text);
}

static int connect_within(int fd, const struct stream_address *to, int64_t patience)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int flags = fcntl(fd, F_GETFL), failed = 0;
	socklen_t length = sizeof(failed);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	if (connect(fd, (const void *)&to->at, to->length)) {
		if (errno != EINPROGRESS)
			return -errno;
		if (poll(&p, 1, (int)(patience / NSEC_PER_MSEC)) != 1)
			return -ETIMEDOUT;
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length))
			return -errno;
		if (failed)
			return -failed;
	}
	fcntl(fd, F_SETFL, flags);
	return 0;
}

static int line_connect(struct stream_client *c, struct error *err)
{
	int fd = stream_socket(&c->place, c->server.at.ss_family, SOCK_STREAM, 0), ret, one = 1;
	int silent = SILENT_SECONDS * 1000;

	if (fd < 0)
		return error_set(err, fd, "opening a socket: %s", strerror(-fd));
	stream_line_open(&c->line, fd);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
	ret = connect_within(fd, &c->server, PATIENCE);
	return ret ? server_error(c, ret, "connecting", err) : 0;
}

static int answer_check(struct stream_client *c, const json_t *answer, struct error *err)
{
	const char *refused = json_string_value(json_object_get(answer, "refused"));
	json_int_t version = json_integer_value(json_object_get(answer, "version"));
	struct load_config theirs;
	int ret;

	if (version != STREAM_VERSION)
		return error_set(
			err, -EPROTO,
			"the server at %s port %u has version %lld of streams, this is %d: "
			"run the same napier on both sides",
			c->place.address, c->place.port, (long long)version, STREAM_VERSION);
	ret = load_config_read(json_object_get(answer, "config"), &theirs, err);
	if (!ret)
		ret = load_config_compare(&c->config, &theirs, err);
	if (ret)
		return ret;
	if (refused)
		return error_set(err, -EBUSY, "the server at %s port %u refuses: %s",
				 c->place.address, c->place.port, refused);
	c->session = (uint32_t)json_integer_value(json_object_get(answer, "session"));
	return 0;
}

static int greet(struct stream_client *c, struct error *err)
{
	json_t *answer = NULL;
	int ret = stream_line_send(&c->line, json_pack("{ss si so}", "napier", "stream", "version",
						       STREAM_VERSION, "config",
						       load_config_json(&c->config)));

	if (!ret)
		ret = stream_line_receive(&c->line, PATIENCE, &answer);
	ret = ret ? server_error(c, ret, "greeting it", err) : answer_check(c, answer, err);
	json_decref(answer);
	return ret;
}

/* By the exchange that took the least time, which is off by half of that at most. */
static int clocks_compare(struct stream_client *c, struct error *err)
{
	int64_t least = INT64_MAX;

	for (unsigned i = 0; i < CLOCK_LOOKS; i++) {
		int64_t sent = clock_now(), took;
		json_t *answer = NULL;
		int ret = stream_line_send(&c->line, json_pack("{si}", "clock", 0));

		if (!ret)
			ret = stream_line_receive(&c->line, PATIENCE, &answer);
		if (ret)
			return server_error(c, ret, "comparing clocks", err);
		took = clock_now() - sent;
		if (took < least) {
			least = took;
			c->ahead = json_integer_value(json_object_get(answer, "clock")) -
				   (sent + took / 2);
		}
		json_decref(answer);
	}
	return 0;
}

static struct stream_hello hello_of(const struct stream_client *c, unsigned flow)
{
	return (struct stream_hello){htonl(STREAM_HELLO), htonl(c->session), htonl(flow)};
}

static int flow_open(struct stream_client *c, unsigned flow, int *out)
{
	bool udp = c->plan.protocol == LOAD_UDP;
	int family = c->server.at.ss_family, ret;
	int fd = stream_socket(&c->place, family, udp ? SOCK_DGRAM : SOCK_STREAM, 0);
	struct stream_hello hello = hello_of(c, flow);

	if (fd < 0)
		return fd;
	ret = stream_socket_class(fd, family, stream_plan_tos(&c->plan, flow));
	if (!ret)
		ret = connect_within(fd, &c->server, PATIENCE);
	if (!ret)
		ret = stream_socket_options(fd, &c->config, false);
	if (!ret)
		ret = stream_socket_look(fd);
	if (!ret && !udp && send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		ret = -errno;
	if (ret)
		close(fd);
	else
		*out = fd;
	return ret;
}

static int flows_open(struct stream_client *c, int fd[], struct error *err)
{
	for (unsigned i = 0; i < c->plan.flows; i++) {
		int ret = flow_open(c, i, &fd[i]);

		if (ret)
			return server_error(c, ret, "connecting a flow", err);
		stream_end_flow_add(c->end, i, fd[i]);
	}
	return 0;
}

static int ready_await(struct stream_client *c, const int fd[], struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;
	json_t *answer = NULL;
	bool ready;
	int ret;

	do {
		for (unsigned i = 0; i < c->plan.flows && c->plan.protocol == LOAD_UDP; i++) {
			struct stream_hello hello = hello_of(c, i);

			/* Whatever becomes of it: the server says when it has them all. */
			if (send(fd[i], &hello, sizeof(hello), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				(void)!errno;
		}
		ret = stream_line_receive(&c->line, AGAIN, &answer);
	} while (ret == -ETIMEDOUT && clock_now() < deadline);
	ready = !ret && json_object_get(answer, "ready");
	json_decref(answer);
	if (!ret && !ready)
		ret = -EPROTO;
	if (ret == -ETIMEDOUT)
		return error_set(err, ret,
				 "the server at %s port %u: not all of %u flows came to it within "
				 "5 s: does something between the two filter %s?",
				 c->place.address, c->place.port, c->plan.flows,
				 c->plan.protocol == LOAD_UDP ? "UDP" : "them");
	return ret ? server_error(c, ret, "awaiting its flows", err) : 0;
}

static int client_meet(struct stream_client *c, struct error *err)
{
	int *fd = calloc(c->plan.flows, sizeof(*fd)), ret;

	if (!fd)
		return error_set(err, -ENOMEM, "no memory for %u flows", c->plan.flows);
	ret = side_address(&c->place, 0, &c->server.at, &c->server.length, err);
	if (!ret)
		ret = side_files_want(c->plan.flows, err);
	if (!ret)
		ret = line_connect(c, err);
	if (!ret)
		ret = greet(c, err);
	if (!ret)
		ret = clocks_compare(c, err);
	if (!ret)
		ret = stream_end_create(&c->plan, false,
					c->config.kind == LOAD_RRUL ? "rrul" : "stream", &c->place,
					&c->end, err);
	if (!ret)
		ret = flows_open(c, fd, err);
	if (!ret)
		ret = ready_await(c, fd, err);
	free(fd);
	return ret;
}

int stream_client_start(const struct load_config *config, const struct load_place *place,
			struct stream_client **out, struct error *err)
{
	struct stream_client *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return error_set(err, -ENOMEM, "no memory for a client");
	c->config = *config;
	c->place = *place;
	stream_line_open(&c->line, -1);
	stream_plan_make(&c->config, &c->plan);
	ret = client_meet(c, err);
	if (ret) {
		stream_client_free(c);
		return ret;
	}
	stream_end_run(c->end);
	*out = c;
	return 0;
}

/* ---- run ---- */

unsigned stream_client_threads(const struct stream_client *c, pid_t tids[LOAD_TIDS_MAX])
{
	return stream_end_threads(c->end, tids);
}

const struct stream_plan *stream_client_plan(const struct stream_client *c)
{
	return &c->plan;
}

void stream_client_totals(const struct stream_client *c, struct stream_totals *out)
{
	stream_end_totals(c->end, out);
}

int64_t stream_client_measure(struct stream_client *c, int64_t duration)
{
	c->start = clock_now() + LEAD;
	c->duration = duration;
	stream_end_measure(c->end, c->start, duration);
	c->failed = stream_line_send(&c->line, json_pack("{sI sI}", "measure",
							 (json_int_t)(c->start + c->ahead),
							 "duration", (json_int_t)duration));
	return c->start;
}

static int ask(struct stream_client *c, const char *key, uint64_t value)
{
	return stream_line_send(&c->line, json_pack("{sI}", key, (json_int_t)value));
}

/* value for json_decref. */
static int answer_get(struct stream_client *c, const char *key, int64_t patience, json_t **value)
{
	json_t *answer = NULL;
	int ret = stream_line_receive(&c->line, patience, &answer);

	if (ret)
		return ret;
	*value = json_incref(json_object_get(answer, key));
	json_decref(answer);
	return *value ? 0 : -EPROTO;
}

void stream_client_await(const struct stream_client *c)
{
	int64_t left = c->start + c->duration - clock_now();

	if (c->start && left > 0 && left <= LEAD)
		clock_sleep(left);
}

static int reports_get(struct stream_client *c, json_t **ours, json_t **theirs, struct error *err)
{
	json_t *stopped = NULL;
	uint64_t sent, expected = UINT64_MAX;
	int ret = c->failed;

	*theirs = NULL;
	stream_client_await(c);
	sent = stream_end_send_stop(c->end);
	if (!ret)
		ret = ask(c, "stop", 0);
	if (!ret)
		ret = answer_get(c, "stopped", ANSWER_PATIENCE, &stopped);
	if (!ret) {
		expected = (uint64_t)json_integer_value(stopped);
		ret = ask(c, "drain", sent);
	}
	json_decref(stopped);
	stream_end_receive_stop(c->end, ret ? 0 : expected, NULL, NULL);
	if (!ret)
		ret = answer_get(c, "report", c->plan.timeout + ANSWER_PATIENCE, theirs);
	*ours = stream_end_report(c->end);
	return ret ? server_error(c, ret, "reading its counts", err) : 0;
}

int stream_client_stop(struct stream_client *c, stream_maker *make, void *arg, json_t **result,
		       struct error *err)
{
	json_t *ours, *theirs;
	struct error died;
	int ret = reports_get(c, &ours, &theirs, &died);

	*result = make(arg, ours, theirs, ret ? died.text : NULL);
	json_decref(ours);
	json_decref(theirs);
	return ret ? error_set(err, ret, "%s", died.text) : 0;
}

void stream_client_free(struct stream_client *c)
{
	if (c->end)
		stream_end_destroy(c->end);
	stream_line_close(&c->line);
	free(c);
}

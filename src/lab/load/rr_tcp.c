/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"

static int watch(struct rr_worker *w, struct rr_flow *f)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.ptr = f};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, f->fd, &event) ? -errno : 0;
}

/* Before there was traffic that is a mistake of who started it; later the server may come back. */
static void unconnected(struct rr_worker *w, struct rr_flow *f, int why)
{
	const struct load_place *place = &w->client->place;

	if (w->phase == RR_CONNECT && why == -ECONNREFUSED)
		rr_client_fail(w->client, why,
			       "nobody listens at %s port %u: start the server first",
			       place->address, place->port);
	else if (w->phase == RR_CONNECT && why != -ETIMEDOUT && why != -ECONNRESET)
		rr_client_fail(w->client, why, "connecting to %s port %u: %s", place->address,
			       place->port, strerror(-why));
	rr_flow_down(w, f, why);
}

void rr_tcp_connect(struct rr_worker *w, struct rr_flow *f, int64_t now)
{
	const struct rr_client *client = w->client;
	int ret;

	f->since = now;
	f->fd = rr_flow_socket(w, SOCK_STREAM);
	if (f->fd < 0) {
		ret = f->fd;
		rr_client_fail(w->client, ret, "a socket: %s", strerror(-ret));
		rr_flow_down(w, f, ret);
		return;
	}
	w->connecting++;
	f->state = RR_FLOW_CONNECTING;
	ret = connect(f->fd, (void *)&client->address, client->length) ? -errno : 0;
	if (!ret || ret == -EINPROGRESS)
		ret = watch(w, f);
	if (ret)
		unconnected(w, f, ret);
}

void rr_tcp_push(struct rr_worker *w, struct rr_flow *f)
{
	uint32_t size = w->client->config.request_size;
	uint32_t tag = rr_request_tag(w, &w->request[f->last]);

	while (f->unsent) {
		ssize_t n;

		/* The buffer is all flows': zeros, but for the tag. */
		if (size - f->unsent < w->tag)
			memcpy(w->out, &tag, w->tag);
		n = send(f->fd, w->out + size - f->unsent, f->unsent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			/* Of the edge that tells of room again the event has both. */
			if (errno != EAGAIN)
				rr_flow_down(w, f, -errno);
			return;
		}
		f->unsent -= (uint32_t)n;
	}
}

/* With `connect` a connection has had its one response. */
static void connection_end(struct rr_worker *w, struct rr_flow *f)
{
	struct linger reset = {.l_onoff = 1};

	setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	rr_flow_close(w, f);
}

/* False: the flow has gone, or has no connection now. */
static bool responses_take(struct rr_worker *w, struct rr_flow *f, uint32_t n, int64_t now)
{
	uint32_t size = w->client->config.response_size;

	for (uint32_t at = 0; at < n;) {
		struct rr_request *r;
		uint32_t tag, take;

		/* Data that nobody asked for is as bad as the end. */
		if (f->first == RR_NONE || (f->unsent && f->first == f->last)) {
			rr_flow_down(w, f, -EPROTO);
			return false;
		}
		r = &w->request[f->first];
		tag = rr_request_tag(w, r);
		take = size - f->got < n - at ? size - f->got : n - at;
		for (uint32_t i = 0; i < take && f->got + i < w->tag; i++) {
			if (((uint8_t *)&tag)[f->got + i] != w->in[at + i]) {
				rr_flow_down(w, f, -EPROTO);
				return false;
			}
		}
		at += take;
		f->got += take;
		if (f->got < size)
			break;
		f->got = 0;
		rr_request_end(w, f, r, now);
		if (w->client->config.connect) {
			connection_end(w, f);
			return false;
		}
	}
	return true;
}

void rr_tcp_read(struct rr_worker *w, struct rr_flow *f, int flags, bool ending)
{
	for (;;) {
		ssize_t n = recv(f->fd, w->in, RR_CHUNK, flags);
		int64_t now;

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rr_flow_down(w, f, n ? -errno : -ECONNRESET);
			return;
		}
		w->now = now = clock_now();
		if (!responses_take(w, f, (uint32_t)n, now)) {
			rr_flow_next(w, f, now);
			return;
		}
		/* What has ended with this is answered at once, before anything else is looked at.
		 */
		rr_flow_next(w, f, now);
		if (f->state != RR_FLOW_UP || (n < RR_CHUNK && !ending))
			return;
	}
}

static void hello_read(struct rr_worker *w, struct rr_flow *f)
{
	struct rr_client *client = w->client;
	struct error err;
	ssize_t n;
	int ret;

	while (f->got < sizeof(*f->hello)) {
		n = recv(f->fd, (uint8_t *)f->hello + f->got, sizeof(*f->hello) - f->got,
			 MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			rr_flow_down(w, f, -errno);
			return;
		}
		if (n == 0)
			break;
		f->got += (uint32_t)n;
		if (f->got >= sizeof(f->hello->head) &&
		    (f->hello->head.magic != htonl(RR_MAGIC) ||
		     f->hello->head.version != htons(RR_VERSION)))
			break;
	}
	/* A server that is about to end may close before it has greeted. */
	if (f->was_up && !f->got) {
		rr_flow_down(w, f, -ECONNRESET);
		return;
	}
	ret = rr_hello_check(&client->config, &client->place, f->hello, f->got, &err);
	if (ret) {
		rr_client_fail(client, ret, "%s", err.text);
		rr_flow_down(w, f, ret);
		return;
	}
	free(f->hello);
	f->hello = NULL;
	rr_flow_up(w, f);
	rr_flow_next(w, f, clock_now());
}

/* Connected, or not. */
static void connected(struct rr_worker *w, struct rr_flow *f)
{
	const struct load_config *config = &w->client->config;
	struct rr_hello hello;
	socklen_t length = sizeof(int);
	int error = 0;

	getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error) {
		unconnected(w, f, -error);
		return;
	}
	if (config->connect) {
		w->connecting--;
		f->state = RR_FLOW_UP;
		f->unsent = config->request_size;
		rr_tcp_push(w, f);
		return;
	}
	f->state = RR_FLOW_GREETING;
	f->got = 0;
	f->hello = calloc(1, sizeof(*f->hello));
	rr_hello_make(config, RR_ASKS, &hello);
	/* Into an empty send buffer: it goes whole. */
	if (!f->hello || send(f->fd, &hello, sizeof(hello), MSG_NOSIGNAL) != (ssize_t)sizeof(hello))
		rr_flow_down(w, f, -ECONNRESET);
}

void rr_tcp_event(struct rr_worker *w, struct rr_flow *f, uint32_t events)
{
	if (f->fd < 0)
		return;
	if (f->state == RR_FLOW_CONNECTING) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			connected(w, f);
		return;
	}
	if (f->state == RR_FLOW_GREETING) {
		hello_read(w, f);
		return;
	}
	if (f->unsent) {
		rr_tcp_push(w, f);
		if (f->state != RR_FLOW_UP)
			return;
	}
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		rr_tcp_read(w, f, MSG_DONTWAIT, events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
}

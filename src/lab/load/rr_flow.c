/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"
#include "lab/load/side.h"

bool rr_flow_room(const struct rr_worker *w, const struct rr_flow *f)
{
	return f->state == RR_FLOW_UP && !f->unsent && !f->choked &&
	       (w->client->many || !f->under_way);
}

void rr_flow_close(struct rr_worker *w, struct rr_flow *f)
{
	if (f->fd < 0)
		return;
	if (w->client->config.protocol == LOAD_TCP && !w->client->config.connect)
		w->retransmits += side_retransmits(f->fd) - f->retransmitted;
	f->retransmitted = 0;
	/* close() alone does not end the events while a fork()ed child has the descriptor, too. */
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, f->fd, NULL);
	close(f->fd);
	if (w->apart == f->fd)
		w->apart = -1;
	f->fd = -1;
}

void rr_flow_down(struct rr_worker *w, struct rr_flow *f, int why)
{
	int64_t now = clock_now();
	bool timeout = why == -ETIMEDOUT;

	while (f->first != RR_NONE) {
		rr_request_lose(w, f, &w->request[f->first], now, timeout);
		/* Those behind it would have had time left. */
		timeout = false;
	}
	rr_flow_close(w, f);
	free(f->hello);
	f->hello = NULL;
	w->connecting -= f->state == RR_FLOW_CONNECTING || f->state == RR_FLOW_GREETING;
	f->state = RR_FLOW_DOWN;
	f->away = why;
	f->unsent = f->got = 0;
	f->choked = false;
}

void rr_flow_up(struct rr_worker *w, struct rr_flow *f)
{
	w->connecting -= f->state == RR_FLOW_CONNECTING || f->state == RR_FLOW_GREETING;
	f->state = RR_FLOW_UP;
	f->got = f->unsent = 0;
	if (!f->was_up)
		counter_add(&w->connected, 1);
	f->was_up = true;
	/* With `connect` it has only rested. */
	if (w->client->config.connect)
		return;
	w->stats->reconnects += f->away && rr_begin(w->client);
	f->away = 0;
}

int rr_flow_socket(struct rr_worker *w, int type)
{
	const struct rr_client *client = w->client;
	int one = 1, ret = 0;
	int fd = socket(client->address.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (client->config.client_spins)
		ret = side_socket_busy_poll(fd, &client->config);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

bool rr_flow_send(struct rr_worker *w, struct rr_flow *f, int64_t due, int64_t now)
{
	const struct load_config *config = &w->client->config;
	struct rr_request *r = rr_request_begin(w, f, due, now);

	if (config->protocol == LOAD_UDP)
		return rr_udp_send(w, f, r);
	if (config->connect) {
		rr_tcp_connect(w, f, now);
		return true;
	}
	f->unsent = config->request_size;
	rr_tcp_push(w, f);
	return true;
}

void rr_flow_next(struct rr_worker *w, struct rr_flow *f, int64_t now)
{
	if (w->client->open || w->phase != RR_RUN || !rr_flow_room(w, f))
		return;
	rr_flow_send(w, f, 0, now);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"
#include "lab/load/side.h"

enum {
	QUEUE = 1 << 22, /* bytes that a socket may hold, where the system lets it */
	READS = 1024,	 /* of one flow, before what else there is to do has its turn */
};

struct rr_vector {
	struct mmsghdr message[RR_CLIENT_VECTOR];
	struct iovec to[RR_CLIENT_VECTOR];
	size_t slot;
	uint8_t data[];
};

int rr_udp_prepare(struct rr_worker *w)
{
	/* One byte more than a response has tells a longer one from it. */
	size_t slot = ((size_t)w->client->config.response_size + 64) / 64 * 64;

	w->vector = calloc(1, sizeof(*w->vector) + slot * RR_CLIENT_VECTOR);
	if (!w->vector)
		return -ENOMEM;
	w->vector->slot = slot;
	for (unsigned i = 0; i < RR_CLIENT_VECTOR; i++) {
		w->vector->to[i] = (struct iovec){w->vector->data + i * slot, slot};
		w->vector->message[i].msg_hdr = (struct msghdr){
			.msg_iov = &w->vector->to[i],
			.msg_iovlen = 1,
		};
	}
	return 0;
}

/* Room in the send buffer is asked for only when there is none: UDP tells it after each datagram.
 */
static int watch(struct rr_worker *w, struct rr_flow *f, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET | (f->choked ? EPOLLOUT : 0),
				    .data.ptr = f};

	return epoll_ctl(w->epoll, operation, f->fd, &event) ? -errno : 0;
}

void rr_udp_open(struct rr_worker *w, struct rr_flow *f, int64_t now)
{
	struct rr_client *client = w->client;
	int queue = QUEUE, ret;

	f->since = now;
	f->fd = rr_flow_socket(w, SOCK_DGRAM);
	ret = f->fd < 0 ? f->fd : 0;
	if (!ret && connect(f->fd, (void *)&client->address, client->length))
		ret = -errno;
	if (!ret)
		ret = watch(w, f, EPOLL_CTL_ADD);
	if (ret) {
		rr_client_fail(client, ret, "a UDP socket to %s: %s", client->place.address,
			       strerror(-ret));
		rr_flow_down(w, f, ret);
		return;
	}
	/* Of one flow all responses under way may come at once. */
	if (client->open)
		setsockopt(f->fd, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
	rr_flow_up(w, f);
}

bool rr_udp_send(struct rr_worker *w, struct rr_flow *f, struct rr_request *r)
{
	uint32_t tag = rr_request_tag(w, r);

	memcpy(w->out, &tag, w->tag);
	/* An error may be of an earlier one, which ICMP told of; this one is then sent now. */
	for (int i = 0; i < 2; i++) {
		if (send(f->fd, w->out, w->client->config.request_size, MSG_DONTWAIT) >= 0)
			return true;
		if (errno == EAGAIN) {
			f->choked = true;
			rr_request_undo(w, f, r);
			watch(w, f, EPOLL_CTL_MOD);
			return false;
		}
		if (errno == ECONNREFUSED)
			f->away = -ECONNREFUSED;
	}
	/* What cannot be sent at all is lost, at its time-out: no faster than what can. */
	return true;
}

static struct rr_request *request_of(struct rr_worker *w, const struct rr_flow *f,
				     const uint8_t *data, size_t n)
{
	struct rr_request *r;
	uint32_t tag = 0, first;

	if (n != w->client->config.response_size)
		return NULL;
	memcpy(&tag, data, w->tag);
	if (w->tag == RR_TAG_MAX) {
		if (tag >> 16 >= w->requests)
			return NULL;
		r = &w->request[tag >> 16];
		return r->flow == f - w->flow && r->sequence == (uint16_t)tag ? r : NULL;
	}
	if (f->first == RR_NONE)
		return NULL;
	r = &w->request[f->first];
	first = rr_request_tag(w, r);
	return memcmp(&first, &tag, w->tag) ? NULL : r;
}

static bool response_take(struct rr_worker *w, struct rr_flow *f, const uint8_t *data, size_t n,
			  int64_t now)
{
	struct rr_request *r = request_of(w, f, data, n);

	/* One that is too late was counted as lost. */
	if (r)
		rr_request_end(w, f, r, now);
	return r;
}

/* What there is, in vectors; with one request under way: until it is answered. */
void rr_udp_read(struct rr_worker *w, struct rr_flow *f, int flags)
{
	unsigned most = w->client->many ? RR_CLIENT_VECTOR : 1;
	struct rr_vector *v = w->vector;

	/* Who floods it with what is no answer does not keep it from its time-outs, and its end. */
	for (unsigned i = 0; i < READS && f->under_way; i++) {
		bool ours = false;
		int64_t now;
		int n = 1;

		if (most == 1) {
			ssize_t got = recv(f->fd, v->data, v->slot, flags);

			n = got < 0 ? -1 : 1;
			v->message[0].msg_len = (unsigned)got;
		} else {
			n = recvmmsg(f->fd, v->message, most, flags, NULL);
		}
		if (n < 0 && errno == ECONNREFUSED)
			f->away = -ECONNREFUSED;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			continue;
		w->now = now = clock_now();
		for (int k = 0; k < n; k++)
			ours = response_take(w, f, v->data + (size_t)k * v->slot,
					     v->message[k].msg_len, now);
		rr_flow_next(w, f, now);
		/*
		 * Behind one that was too late there may be ours, and of that no edge tells again.
		 * Behind ours is only what is too late: it is read when the next one comes.
		 */
		if (most > 1 ? n < (int)most : ours)
			return;
	}
}

void rr_udp_event(struct rr_worker *w, struct rr_flow *f, uint32_t events)
{
	if (f->fd < 0)
		return;
	if (f->choked && events & EPOLLOUT) {
		f->choked = false;
		watch(w, f, EPOLL_CTL_MOD);
		rr_flow_next(w, f, clock_now());
	}
	rr_udp_read(w, f, MSG_DONTWAIT);
}

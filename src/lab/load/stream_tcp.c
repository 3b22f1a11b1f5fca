/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/load/side.h"
#include "lab/load/stream_socket.h"
#include "lab/load/stream_worker.h"

enum {
	EVENTS = 64,
	/* On a flow that takes them, before the next one has its turn. */
	MESSAGES_A_TURN = 16,
	RTT_FLOWS_MAX = 64,
};

/* ---- sending ---- */

struct sender {
	struct stream_worker *w;
	int epoll; /* -1: one flow, whose call waits itself */
	int64_t look;
};

/* Once an interval, from the first step on in which there is something to send. */
static void look_at_tcp(struct sender *s, const struct stream_moment *m)
{
	struct stream_worker *w = s->w;

	if (m->step == STREAM_WARM)
		return;
	for (unsigned i = 0; !s->look && i < w->flows; i++)
		w->out[i]->retransmits = side_retransmits(w->out[i]->fd);
	if (m->now < s->look)
		return;
	for (unsigned i = 0; s->look && i < w->flows && i < RTT_FLOWS_MAX; i++) {
		struct tcp_info info = {0};
		socklen_t length = sizeof(info);

		if (!getsockopt(w->out[i]->fd, IPPROTO_TCP, TCP_INFO, &info, &length) &&
		    info.tcpi_rtt)
			histogram_record(w->rtt, info.tcpi_rtt * UINT64_C(1000));
	}
	s->look = m->now + w->end->plan->interval;
}

/* False: the flow takes no more now. */
static bool message_send(struct sender *s, struct stream_out *out, const struct stream_moment *m)
{
	struct stream_worker *w = s->w;
	uint32_t size = out->unsent ? out->unsent : stream_size(w->end, m->step);
	ssize_t n =
		send(out->fd, w->buffer, size, MSG_NOSIGNAL | (s->epoll < 0 ? 0 : MSG_DONTWAIT));

	if (n < 0) {
		out->broken = errno != EAGAIN && errno != EINTR;
		return false;
	}
	out->unsent = size - (uint32_t)n;
	counter_add(&w->total, !out->unsent);
	counter_add(&w->total_bytes, (uint64_t)n);
	counter_add(&w->measured, (uint64_t)n);
	if (m->step != STREAM_WARM) {
		struct stream_counts *c = &out->tally->step[m->step];

		c->messages += !out->unsent;
		c->bytes += (uint64_t)n;
		stream_series_add(&out->tally->bytes, m->time, (uint64_t)n);
	}
	return !out->unsent;
}

static void flow_break(struct sender *s, struct stream_out *out)
{
	if (s->epoll >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, out->fd, NULL);
	counter_add(&s->w->ended, 1);
}

static void send_some(struct sender *s, const struct stream_moment *m)
{
	struct stream_worker *w = s->w;
	struct epoll_event event[EVENTS];
	int n;

	if (s->epoll < 0) {
		message_send(s, w->out[0], m);
		if (w->out[0]->broken)
			counter_add(&w->ended, 1);
		return;
	}
	n = epoll_wait(s->epoll, event, EVENTS, STREAM_LOOK_MS);
	for (int i = 0; i < n; i++) {
		struct stream_out *out = event[i].data.ptr;
		struct stream_moment at;

		stream_moment(w->end, &at);
		for (unsigned k = 0; k < MESSAGES_A_TURN && !at.over; k++) {
			if (!message_send(s, out, &at))
				break;
			stream_moment(w->end, &at);
		}
		if (out->broken)
			flow_break(s, out);
	}
}

static int flows_watch(struct sender *s)
{
	struct stream_worker *w = s->w;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return -errno;
	for (unsigned i = 0; i < w->flows; i++) {
		struct epoll_event event = {.events = EPOLLOUT, .data.ptr = w->out[i]};

		if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, w->out[i]->fd, &event))
			return -errno;
	}
	return 0;
}

void stream_tcp_send(struct stream_worker *w)
{
	struct sender s = {.w = w, .epoll = -1};
	struct stream_moment m;

	if (w->flows > 1)
		w->failed = flows_watch(&s);
	while (!w->failed && stream_phase(w->end) == STREAM_RUN &&
	       counter_read(&w->ended) < w->flows) {
		stream_moment(w->end, &m);
		if (m.over) {
			stream_rest(m.now + NSEC_PER_SEC);
		} else if (!stream_size(w->end, m.step)) {
			stream_rest(m.step == STREAM_WARM ? m.now + NSEC_PER_MSEC
							  : m.now - m.time + w->end->ends[m.step]);
		} else {
			look_at_tcp(&s, &m);
			send_some(&s, &m);
		}
	}
	for (unsigned i = 0; i < w->flows; i++) {
		uint32_t before = w->out[i]->retransmits;

		w->out[i]->retransmits = side_retransmits(w->out[i]->fd) - before;
		shutdown(w->out[i]->fd, SHUT_WR);
	}
	if (s.epoll >= 0)
		close(s.epoll);
}

/* ---- receiving ---- */

struct receiver {
	struct stream_worker *w;
	int epoll; /* -1: one flow, whose call waits itself */
	bool spins;
};

static void flow_receive(struct receiver *r, struct stream_in *in, int flags)
{
	struct stream_worker *w = r->w;
	ssize_t n = recv(in->fd, w->buffer, w->end->room, flags);
	struct stream_moment m;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	counter_add(&w->arrivals, 1);
	if (n <= 0) {
		in->ended = true;
		counter_add(&w->ended, 1);
		if (r->epoll >= 0)
			epoll_ctl(r->epoll, EPOLL_CTL_DEL, in->fd, NULL);
		return;
	}
	counter_add(&w->total_bytes, (uint64_t)n);
	counter_add(&w->measured, (uint64_t)n);
	stream_moment(w->end, &m);
	if (m.step == STREAM_WARM || m.over)
		return;
	in->tally->step[m.step].bytes += (uint64_t)n;
	stream_series_add(&in->tally->bytes, m.time, (uint64_t)n);
}

static void receive_some(struct receiver *r)
{
	struct epoll_event event[EVENTS];
	int n;

	if (r->epoll < 0) {
		flow_receive(r, r->w->in[0], r->spins ? MSG_DONTWAIT : 0);
		return;
	}
	n = epoll_wait(r->epoll, event, EVENTS, r->spins ? 0 : STREAM_LOOK_MS);
	for (int i = 0; i < n; i++)
		flow_receive(r, event[i].data.ptr, MSG_DONTWAIT);
}

void stream_tcp_receive(struct stream_worker *w)
{
	const struct load_config *config = w->end->plan->config;
	struct receiver r = {
		.w = w,
		.epoll = -1,
		.spins = w->end->server ? config->server_spins : config->client_spins,
	};

	if (w->flows > 1)
		w->failed = stream_receive_watch(w, &r.epoll);
	while (!w->failed && stream_phase(w->end) < STREAM_END &&
	       counter_read(&w->ended) < w->flows)
		receive_some(&r);
	if (r.epoll >= 0)
		close(r.epoll);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lab/load/stream_socket.h"
#include "lab/load/stream_worker.h"

enum {
	EVENTS = 64,
	/* What the received messages of one call are written into should stay in the cache. */
	RECEIVE_BYTES = 256 << 10,
};

/* ---- sending ---- */

/* When datagrams are due; all zero but began: as fast as it goes. */
struct pace {
	double rate; /* a second, of this thread */
	int64_t began;
	uint64_t sent;
};

struct sender {
	struct stream_worker *w;
	struct pace pace;
	unsigned batch; /* messages a call, at most */
	unsigned next;	/* flow */
	struct stream_datagram head[STREAM_BATCH_MAX];
	struct iovec iov[STREAM_BATCH_MAX][2];
	struct mmsghdr message[STREAM_BATCH_MAX];
};

static double scheduled(const struct pace *pace, int64_t when)
{
	return (double)(when - pace->began) * pace->rate / (double)NSEC_PER_SEC;
}

/* How many of those not yet sent should have been by then. */
static uint64_t pace_due(const struct pace *pace, int64_t when)
{
	double n = scheduled(pace, when) - (double)pace->sent;

	return n >= 1 ? (uint64_t)n : 0;
}

static void pace_wait(const struct sender *s)
{
	const struct pace *pace = &s->pace;
	const struct stream_plan *plan = s->w->end->plan;
	bool spins = s->w->end->server ? plan->config->server_spins : plan->config->client_spins;

	if (!spins)
		stream_rest(pace->began + (int64_t)((double)(pace->sent + 1) *
						    (double)NSEC_PER_SEC / pace->rate));
}

static void head_fill(struct sender *s, unsigned i, const struct stream_out *out,
		      const struct stream_moment *m)
{
	s->head[i] = (struct stream_datagram){
		.magic = STREAM_MAGIC,
		.step = m->step,
		.flow = htobe16(out->flow),
		.sequence = htobe32(out->sequence + i),
		.time = (int64_t)htobe64((uint64_t)m->time),
	};
}

/* How many went; 0 or a negative errno. */
static int messages_send(struct sender *s, struct stream_out *out, unsigned n,
			 const struct stream_moment *m)
{
	uint32_t size = stream_size(s->w->end, m->step);
	int ret;

	if (n == 1) {
		head_fill(s, 0, out, m);
		memcpy(s->w->buffer, &s->head[0], sizeof(s->head[0]));
		return send(out->fd, s->w->buffer, size, MSG_NOSIGNAL) < 0 ? -errno : 1;
	}
	for (unsigned i = 0; i < n; i++) {
		head_fill(s, i, out, m);
		s->iov[i][1].iov_len = size - sizeof(s->head[0]);
	}
	ret = sendmmsg(out->fd, s->message, n, MSG_NOSIGNAL);
	return ret < 0 ? -errno : ret;
}

static void sent_count(struct sender *s, const struct stream_out *out, unsigned n, uint64_t late,
		       const struct stream_moment *m)
{
	struct stream_worker *w = s->w;
	uint64_t bytes = (uint64_t)n * stream_size(w->end, m->step);
	struct stream_counts *c;

	counter_add(&w->total, n);
	counter_add(&w->total_bytes, bytes);
	if (m->step == STREAM_WARM)
		return;
	c = &out->tally->step[m->step];
	c->messages += n;
	c->bytes += bytes;
	c->late_sends += late < n ? late : n;
	counter_add(&w->measured, n);
	stream_series_add(&out->tally->bytes, m->time, bytes);
	stream_series_add(&out->tally->messages, m->time, n);
}

static void send_some(struct sender *s, const struct stream_moment *m)
{
	struct stream_worker *w = s->w;
	struct stream_out *out = w->out[s->next];
	uint64_t due = s->batch, late = 0, n;
	int sent;

	if (s->pace.rate > 0) {
		due = pace_due(&s->pace, m->now);
		if (!due) {
			pace_wait(s);
			return;
		}
		late = pace_due(&s->pace, m->now - STREAM_LATE);
		/* Each flow gets its share of what is due. */
		due = due / w->flows ? due / w->flows : 1;
	}
	n = due < s->batch ? due : s->batch;
	s->next = s->next + 1 < w->flows ? s->next + 1 : 0;
	if (out->step != m->step) {
		out->step = m->step;
		out->sequence = 0;
	}
	sent = messages_send(s, out, (unsigned)n, m);
	if (sent > 0) {
		out->sequence += (uint32_t)sent;
		s->pace.sent += (uint64_t)sent;
		sent_count(s, out, (unsigned)sent, late, m);
		return;
	}
	if (sent == -EAGAIN || sent == -EINTR)
		return;
	/* Nobody listens, a filter forbids it, there is no route: it may be otherwise soon. */
	if (m->step != STREAM_WARM)
		out->tally->step[m->step].errors++;
	stream_rest(m->now + NSEC_PER_MSEC);
}

static void sender_prepare(struct sender *s, struct stream_worker *w)
{
	const struct stream_plan *plan = w->end->plan;
	const struct load_config *config = plan->config;

	s->w = w;
	s->batch = config->batch ? config->batch : config->rate > 0 ? STREAM_BATCH_MAX : 1;
	s->pace =
		(struct pace){.rate = config->rate * w->flows / plan->flows, .began = clock_now()};
	for (unsigned i = 0; i < STREAM_BATCH_MAX; i++) {
		s->iov[i][0] = (struct iovec){&s->head[i], sizeof(s->head[i])};
		s->iov[i][1] = (struct iovec){w->buffer, 0};
		s->message[i].msg_hdr.msg_iov = s->iov[i];
		s->message[i].msg_hdr.msg_iovlen = 2;
	}
	/* A timer that comes 50 us late would make every datagram late. */
	prctl(PR_SET_TIMERSLACK, 1);
}

void stream_udp_send(struct stream_worker *w)
{
	struct sender *s = calloc(1, sizeof(*s));
	struct stream_moment m;

	if (!s) {
		w->failed = -ENOMEM;
		return;
	}
	sender_prepare(s, w);
	while (stream_phase(w->end) == STREAM_RUN) {
		stream_moment(w->end, &m);
		if (m.over)
			stream_rest(m.now + NSEC_PER_SEC);
		else
			send_some(s, &m);
	}
	free(s);
}

/* ---- receiving ---- */

struct receiver {
	struct stream_worker *w;
	unsigned batch;
	int epoll; /* -1: one flow, whose call waits itself */
	bool spins;
	struct iovec iov[STREAM_BATCH_MAX];
	struct mmsghdr message[STREAM_BATCH_MAX];
};

static bool is_late(const struct stream_end *end, const struct stream_moment *m, uint8_t step,
		    int64_t sent)
{
	return m->time > end->ends[step] || m->time - sent > end->plan->timeout;
}

static void datagram_take(struct receiver *r, struct stream_in *in, const void *data, uint32_t size,
			  const struct stream_moment *m)
{
	struct stream_worker *w = r->w;
	struct stream_datagram head;
	struct stream_counts *c;
	enum stream_arrival arrival;
	int64_t sent;

	if (size < sizeof(head)) {
		w->foreign++;
		return;
	}
	memcpy(&head, data, sizeof(head));
	if (head.magic != STREAM_MAGIC || be16toh(head.flow) != in->flow ||
	    (head.step != STREAM_WARM && head.step >= w->end->plan->steps) ||
	    size != stream_size(w->end, head.step)) {
		w->foreign++;
		return;
	}
	counter_add(&w->total, 1);
	counter_add(&w->total_bytes, size);
	if (head.step == STREAM_WARM)
		return;
	c = &in->tally->step[head.step];
	arrival = stream_track_add(&in->track[head.step], be32toh(head.sequence));
	if (arrival == STREAM_DUPLICATE) {
		c->duplicated++;
		return;
	}
	sent = (int64_t)be64toh((uint64_t)head.time);
	c->messages++;
	c->bytes += size;
	c->reordered += arrival == STREAM_REORDERED;
	counter_add(&w->measured, 1);
	stream_series_add(&in->tally->messages, sent, 1);
	/* Before this side has heard that the steps began. */
	if (m->time < 0) {
		stream_series_add(&in->tally->bytes, sent, size);
		return;
	}
	stream_series_add(&in->tally->bytes, m->time, size);
	if (is_late(w->end, m, head.step, sent)) {
		c->late++;
		c->late_bytes += size;
	}
}

/* How many came. */
static unsigned flow_receive(struct receiver *r, struct stream_in *in, int flags)
{
	int n = recvmmsg(in->fd, r->message, r->batch, flags, NULL);
	struct stream_moment m;

	if (n <= 0)
		return 0;
	stream_moment(r->w->end, &m);
	counter_add(&r->w->arrivals, (uint64_t)n);
	for (int i = 0; i < n; i++)
		datagram_take(r, in, r->iov[i].iov_base, r->message[i].msg_len, &m);
	return (unsigned)n;
}

/* A refused one fails one call, and again only when there was another. */
static void receive_some(struct receiver *r)
{
	struct epoll_event event[EVENTS];
	int n;

	if (r->epoll < 0) {
		flow_receive(r, r->w->in[0], r->spins ? MSG_DONTWAIT : MSG_WAITFORONE);
		return;
	}
	n = epoll_wait(r->epoll, event, EVENTS, r->spins ? 0 : STREAM_LOOK_MS);
	for (int i = 0; i < n; i++)
		flow_receive(r, event[i].data.ptr, MSG_DONTWAIT);
}

static unsigned batch_of(uint32_t size)
{
	unsigned n = RECEIVE_BYTES / size;

	return n < 1 ? 1 : n < STREAM_BATCH_MAX ? n : STREAM_BATCH_MAX;
}

void stream_udp_receive(struct stream_worker *w)
{
	const struct load_config *config = w->end->plan->config;
	struct receiver *r = calloc(1, sizeof(*r));
	uint32_t room = w->end->size_max + 1; /* a longer one is seen to be so */

	if (!r) {
		w->failed = -ENOMEM;
		return;
	}
	r->w = w;
	r->epoll = -1;
	r->spins = w->end->server ? config->server_spins : config->client_spins;
	r->batch = batch_of(room);
	for (unsigned i = 0; i < r->batch; i++) {
		r->iov[i] = (struct iovec){w->buffer + (size_t)i * room, room};
		r->message[i].msg_hdr.msg_iov = &r->iov[i];
		r->message[i].msg_hdr.msg_iovlen = 1;
	}
	if (w->flows > 1)
		w->failed = stream_receive_watch(w, &r->epoll);
	while (!w->failed && stream_phase(w->end) < STREAM_END)
		receive_some(r);
	if (r->epoll >= 0)
		close(r->epoll);
	free(r);
}

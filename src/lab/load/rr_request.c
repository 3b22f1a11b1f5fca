/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/load/rr_client.h"

static uint32_t index_of(const struct rr_worker *w, const struct rr_request *r)
{
	return (uint32_t)(r - w->request);
}

uint32_t rr_request_tag(const struct rr_worker *w, const struct rr_request *r)
{
	return index_of(w, r) << 16 | r->sequence;
}

static void append(struct rr_worker *w, struct rr_flow *f, struct rr_request *r)
{
	uint32_t i = index_of(w, r);

	r->next = RR_NONE;
	r->previous = f->last;
	if (f->last == RR_NONE)
		f->first = i;
	else
		w->request[f->last].next = i;
	f->last = i;
	f->under_way++;
	w->under_way++;
}

static void take(struct rr_worker *w, struct rr_flow *f, struct rr_request *r)
{
	if (r->previous == RR_NONE)
		f->first = r->next;
	else
		w->request[r->previous].next = r->next;
	if (r->next == RR_NONE)
		f->last = r->previous;
	else
		w->request[r->next].previous = r->previous;
	f->under_way--;
	w->under_way--;
	r->next = w->idle;
	r->flow = UINT16_MAX;
	w->idle = index_of(w, r);
}

/* How long it has waited, and by whose fault. */
static void lateness(struct rr_worker *w, const struct rr_request *r)
{
	if (!r->counted || r->sent - r->due <= RR_LATE)
		return;
	if (r->due < w->room_since || r->sent < w->catch_until)
		w->stats->bounded++;
	else
		w->stats->late++;
}

struct rr_request *rr_request_begin(struct rr_worker *w, struct rr_flow *f, int64_t due,
				    int64_t now)
{
	struct rr_request *r = &w->request[w->idle];

	w->idle = r->next;
	r->sent = now;
	r->due = due ? due : now;
	r->flow = (uint16_t)(f - w->flow);
	r->sequence = ++f->sequence;
	r->counted = rr_within(w->client, r->due);
	append(w, f, r);
	if (r->counted)
		w->stats->started++;
	if (due)
		lateness(w, r);
	return r;
}

void rr_request_undo(struct rr_worker *w, struct rr_flow *f, struct rr_request *r)
{
	if (r->counted)
		w->stats->started--;
	take(w, f, r);
}

static void record(struct rr_worker *w, uint64_t service, uint64_t response)
{
	histogram_record(&w->stats->service, service);
	if (w->client->open)
		histogram_record(&w->stats->response, response);
}

void rr_request_end(struct rr_worker *w, struct rr_flow *f, struct rr_request *r, int64_t now)
{
	const struct rr_client *client = w->client;
	struct rr_stats *s = w->stats;

	if (r->counted) {
		s->completed++;
		record(w, (uint64_t)(now - r->sent), (uint64_t)(now - r->due));
	}
	if (rr_within(client, now)) {
		uint64_t i = (uint64_t)(now - client->begin) / (uint64_t)client->interval;

		s->transactions++;
		if (i < client->intervals && s->interval)
			rr_interval_record(&s->interval[i], (uint64_t)(now - r->due));
		s->sent += client->config.request_size;
		s->received += client->config.response_size;
	}
	counter_add(&w->done, 1);
	f->away = 0;
	take(w, f, r);
}

static void lose(struct rr_worker *w, int64_t due, int64_t now, bool timeout)
{
	int64_t least = w->client->config.timeout;

	w->stats->lost++;
	w->stats->timeouts += timeout;
	record(w, (uint64_t)least, (uint64_t)(now - due > least ? now - due : least));
}

void rr_request_lose(struct rr_worker *w, struct rr_flow *f, struct rr_request *r, int64_t now,
		     bool timeout)
{
	if (r->counted)
		lose(w, r->due, now, timeout);
	counter_add(&w->lost, 1);
	take(w, f, r);
}

void rr_request_skip(struct rr_worker *w, int64_t due, int64_t now)
{
	if (!rr_within(w->client, due))
		return;
	w->stats->started++;
	if (w->held)
		w->stats->bounded++;
	else
		w->stats->late++;
	lose(w, due, now, true);
	counter_add(&w->lost, 1);
}

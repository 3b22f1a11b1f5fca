/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "lab/load/rr.h"
#include "lab/load/rr_stats.h"
#include "lab/measure/latency.h"

struct rr_stats *rr_stats_create(void)
{
	struct rr_stats *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	histogram_reset(&s->service);
	histogram_reset(&s->response);
	return s;
}

void rr_stats_add(struct rr_stats *to, const struct rr_stats *from, unsigned intervals)
{
	to->started += from->started;
	to->completed += from->completed;
	to->lost += from->lost;
	to->timeouts += from->timeouts;
	to->late += from->late;
	to->bounded += from->bounded;
	to->transactions += from->transactions;
	to->reconnects += from->reconnects;
	to->sent += from->sent;
	to->received += from->received;
	histogram_merge(&to->service, &from->service);
	histogram_merge(&to->response, &from->response);
	if (!to->interval || !from->interval) {
		/* A part of it would be told for all. */
		free(to->interval);
		to->interval = NULL;
		return;
	}
	for (unsigned i = 0; i < intervals; i++) {
		to->interval[i].n += from->interval[i].n;
		for (unsigned b = 0; b < RR_COARSE_BUCKETS; b++)
			to->interval[i].count[b] += from->interval[i].count[b];
	}
}

static uint64_t bucket_middle(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < 2 * RR_COARSE)
		return bucket;
	shift = bucket / RR_COARSE - 1;
	return ((uint64_t)(bucket % RR_COARSE + RR_COARSE) << shift) +
	       (((uint64_t)1 << shift) >> 1);
}

bool rr_interval_percentile(const struct rr_interval *i, uint32_t millionths, uint64_t *value)
{
	uint64_t rank = ((uint64_t)i->n * millionths + 999999) / 1000000, seen = 0;
	uint32_t b;

	if (i->n - rank < HISTOGRAM_ABOVE_MIN)
		return false;
	rank = rank ? rank : 1;
	for (b = 0; b < RR_COARSE_BUCKETS - 1; b++) {
		seen += i->count[b];
		if (seen >= rank)
			break;
	}
	*value = bucket_middle(b);
	return true;
}

static json_t *percentile_json(const struct rr_interval *i, uint32_t millionths)
{
	uint64_t value;

	return rr_interval_percentile(i, millionths, &value) ? json_integer((json_int_t)value)
							     : json_null();
}

static json_t *series_json(const struct rr_stats *s, const struct rr_run *run)
{
	json_t *transactions = json_array(), *p50 = json_array(), *p99 = json_array();

	for (unsigned i = 0; s->interval && i < run->intervals; i++) {
		json_array_append_new(transactions, json_integer(s->interval[i].n));
		json_array_append_new(p50, percentile_json(&s->interval[i], 500000));
		json_array_append_new(p99, percentile_json(&s->interval[i], 990000));
	}
	return json_pack("{s:f, s:o, s:o, s:o}", "interval_s", (double)run->interval / 1e9,
			 "transactions", transactions, "p50_ns", p50, "p99_ns", p99);
}

static json_t *counts_json(const struct rr_stats *s, const struct rr_run *run)
{
	json_t *o = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "started",
			      (json_int_t)s->started, "completed", (json_int_t)s->completed, "lost",
			      (json_int_t)s->lost, "timeouts", (json_int_t)s->timeouts,
			      "transactions", (json_int_t)s->transactions, "bytes_sent",
			      (json_int_t)s->sent, "bytes_received", (json_int_t)s->received);

	if (!run->udp && !run->connect) {
		json_object_set_new(o, "reconnects", json_integer((json_int_t)s->reconnects));
		json_object_set_new(o, "retransmits", json_integer((json_int_t)run->retransmits));
	}
	if (run->open_loop) {
		json_object_set_new(o, "late_sends", json_integer((json_int_t)s->late));
		json_object_set_new(o, "bounded", json_integer((json_int_t)s->bounded));
	}
	return o;
}

static json_t *rate_json(uint64_t n, int64_t duration)
{
	return duration > 0 ? json_real((double)n * 1e9 / (double)duration) : json_null();
}

static bool is_late(const struct rr_stats *s)
{
	return s->late >= HISTOGRAM_ABOVE_MIN && s->late * RR_LATE_SHARE > s->started;
}

static json_t *invalid_json(const struct rr_stats *s, const struct rr_run *run)
{
	if (run->why)
		return json_sprintf("the server went away: %s", run->why);
	if (run->duration <= 0)
		return json_string("nothing was measured: it was stopped before");
	if (is_late(s))
		return json_sprintf("the generator was late: %.1f%% of its requests left more than "
				    "%d us after they were due, though they could be sent; give it "
				    "more threads or CPUs, client_spins, or a lower rate",
				    100.0 * (double)s->late / (double)s->started,
				    (int)(RR_LATE / 1000));
	if (!s->completed)
		return json_sprintf("no request was answered, of %ju", (uintmax_t)s->started);
	return json_null();
}

json_t *rr_stats_json(const struct rr_stats *s, const struct rr_run *run)
{
	json_t *invalid = invalid_json(s, run);
	json_t *rates = json_object(), *latency = json_object();

	json_object_set_new(rates, "transactions", rate_json(s->transactions, run->duration));
	json_object_set_new(latency, "service", latency_json(&s->service, s->lost));
	if (run->open_loop) {
		/* All that were due in its time were started, or counted as lost. */
		json_object_set_new(rates, "offered", rate_json(s->started, run->duration));
		json_object_set_new(latency, "response", latency_json(&s->response, s->lost));
	}
	return json_pack("{s:b, s:o, s:b, s:f, s:o, s:o, s:o, s:o, s:[]}", "valid",
			 json_is_null(invalid), "invalid", invalid, "late", is_late(s),
			 "duration_s", (double)run->duration / 1e9, "counts", counts_json(s, run),
			 "rates", rates, "latency", latency, "series", series_json(s, run),
			 "steps");
}

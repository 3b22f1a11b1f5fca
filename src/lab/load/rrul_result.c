/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/load/rrul_result.h"
#include "lab/load/stream_result.h"
#include "lab/measure/latency.h"

/*
 * More than one in so many late probes, and what they say is of their sender; from one in so many
 * it is told. On one machine they cannot all be in time: the kernel's softirq, which is under test,
 * runs for ms where their sender would.
 */
enum { LATE_SHARE = 10, LATE_TOLD_SHARE = 100, MEDIAN = 500000 };

static const char *const step_names[RRUL_STEPS] = {"idle", "load"};
static const char *const directions[] = {"up", "down"};

#define MBIT(bytes) ((double)(bytes)*8 / 1e6)

struct rrul {
	const struct stream_plan *plan;
	const struct rrul_probe *probe;
	struct stream_way way[2]; /* up, down */
	int64_t until, end[LOAD_SIZES_MAX];
};

static json_t *count(bool known, uint64_t n)
{
	return known ? json_integer((json_int_t)n) : json_null();
}

static unsigned flows_of(const struct rrul *r)
{
	return r->plan->config->tcp_flows;
}

/* Its name, by its number in its direction. */
static const char *class_of(unsigned flow)
{
	return stream_classes[flow % STREAM_CLASSES].name;
}

/* A direction's flows are first, or second, of all; class -1: all of them. */
static void flows_add(const struct rrul *r, unsigned direction, int class, unsigned step,
		      struct stream_both *to)
{
	double sent_s = 0, received_s = 0;

	for (unsigned f = 0; f < flows_of(r); f++) {
		struct stream_both one = {0};

		if (class >= 0 && f % STREAM_CLASSES != (unsigned)class)
			continue;
		stream_both_add(r->plan, &r->way[direction], direction * flows_of(r) + f, step,
				&one);
		to->sent.bytes += one.sent.bytes;
		to->received.bytes += one.received.bytes;
		to->sent_known = one.sent_known;
		to->received_known = one.received_known;
		sent_s = one.sent_s;
		received_s = one.received_s;
	}
	to->sent_s = sent_s;
	to->received_s = received_s;
}

static void rate_set(json_t *o, const struct stream_both *b, const char *format, const char *a,
		     const char *c)
{
	char name[64];

	snprintf(name, sizeof(name), format, a, c);
	json_object_set_new(o, name,
			    b->received_known ? stream_rate(MBIT(b->received.bytes), b->received_s)
					      : json_null());
}

/* What was received under load: each class, each direction, all. */
static json_t *rates_json(const struct rrul *r)
{
	json_t *o = json_object(), *total;
	double sum = 0;
	bool known = true;

	for (unsigned d = 0; d < 2; d++) {
		struct stream_both all = {0};
		json_t *rate;
		char name[64];

		for (unsigned c = 0; c < STREAM_CLASSES && c < flows_of(r); c++) {
			struct stream_both b = {0};

			flows_add(r, d, (int)c, RRUL_LOAD, &b);
			rate_set(o, &b, "%s_%s_mbit", directions[d], stream_classes[c].name);
		}
		flows_add(r, d, -1, RRUL_LOAD, &all);
		rate_set(o, &all, "%s_mbit%s", directions[d], "");
		snprintf(name, sizeof(name), "%s_mbit", directions[d]);
		rate = json_object_get(o, name);
		known = known && json_is_number(rate);
		sum += json_number_value(rate);
	}
	total = known ? json_real(sum) : json_null();
	json_object_set_new(o, "received_mbit", total);
	return o;
}

static void bytes_add(const struct rrul *r, unsigned from, unsigned to, json_t *counts)
{
	uint64_t sent = 0, received = 0;
	bool sent_known = true, received_known = true;

	for (unsigned d = 0; d < 2; d++) {
		for (unsigned step = from; step < to; step++) {
			struct stream_both b = {0};

			flows_add(r, d, -1, step, &b);
			sent += b.sent.bytes;
			received += b.received.bytes;
			sent_known = sent_known && b.sent_known;
			received_known = received_known && b.received_known;
		}
	}
	json_object_set_new(counts, "bytes_sent", count(sent_known, sent));
	json_object_set_new(counts, "bytes_received", count(received_known, received));
}

/* Of the probes of all kinds, and of TCP, in the steps from `from` up to, without, `to`. */
static json_t *counts_json(const struct rrul *r, unsigned from, unsigned to)
{
	struct rrul_tally sum = {0};
	json_t *o;

	for (unsigned k = 0; k < RRUL_PROBES; k++) {
		for (unsigned step = from; step < to; step++) {
			const struct rrul_tally *t = rrul_probe_tally(r->probe, k, step);

			sum.sent += t->sent;
			sum.received += t->received;
			sum.lost += t->lost;
			sum.late_sends += t->late_sends;
			sum.errors += t->errors;
		}
	}
	o = json_pack("{so so so so so}", "sent", count(true, sum.sent), "received",
		      count(true, sum.received), "lost", count(true, sum.lost), "late_sends",
		      count(true, sum.late_sends), "send_errors", count(true, sum.errors));
	bytes_add(r, from, to, o);
	return o;
}

static json_t *latency_of(const struct rrul *r, unsigned kind, unsigned step)
{
	const struct rrul_tally *t = rrul_probe_tally(r->probe, kind, step);
	json_t *o = latency_json(&t->latency, t->lost);

	return o ? o : json_null();
}

static bool is_measured(const struct rrul *r, unsigned kind)
{
	return rrul_probe_measures(r->probe, kind);
}

static json_t *latencies_json(const struct rrul *r)
{
	json_t *o = json_object();
	char name[32];

	for (unsigned k = 0; k < RRUL_PROBES; k++) {
		if (!is_measured(r, k))
			continue;
		json_object_set_new(o, rrul_probe_names[k], latency_of(r, k, RRUL_LOAD));
		snprintf(name, sizeof(name), "idle_%s", rrul_probe_names[k]);
		json_object_set_new(o, name, latency_of(r, k, RRUL_IDLE));
	}
	for (unsigned d = 0; d < 2; d++) {
		json_t *rtt = json_object_get(r->way[d].sender, "rtt");

		snprintf(name, sizeof(name), "%s_tcp_rtt", directions[d]);
		if (json_is_object(rtt))
			json_object_set(o, name, rtt);
	}
	return o;
}

/* By how much the load has raised each kind's median; null when one of them is not known. */
static json_t *increase_json(const struct rrul *r)
{
	json_t *o = json_object();

	for (unsigned k = 0; k < RRUL_PROBES; k++) {
		uint64_t idle, load;
		bool known =
			histogram_percentile(&rrul_probe_tally(r->probe, k, RRUL_IDLE)->latency,
					     MEDIAN, &idle) &&
			histogram_percentile(&rrul_probe_tally(r->probe, k, RRUL_LOAD)->latency,
					     MEDIAN, &load);

		if (is_measured(r, k))
			json_object_set_new(o, rrul_probe_names[k],
					    known ? json_integer((json_int_t)(load - idle))
						  : json_null());
	}
	return o;
}

static json_t *step_json(const struct rrul *r, unsigned step)
{
	int64_t from = step ? r->end[step - 1] : 0;
	int64_t to = r->end[step] < r->until ? r->end[step] : r->until;
	json_t *latency = json_object(), *o;

	for (unsigned k = 0; k < RRUL_PROBES; k++) {
		if (is_measured(r, k))
			json_object_set_new(latency, rrul_probe_names[k], latency_of(r, k, step));
	}
	o = json_pack("{ss sf sf so so so}", "name", step_names[step], "from_s", (double)from / 1e9,
		      "duration_s", to > from ? (double)(to - from) / 1e9 : 0.0, "counts",
		      counts_json(r, step, step + 1), "rates",
		      step == RRUL_LOAD ? rates_json(r) : json_object(), "latency", latency);
	if (step == RRUL_LOAD)
		json_object_set_new(o, "increase", increase_json(r));
	return o;
}

/* ---- by time ---- */

/* flow -1: all of the class. False: it is not known. */
static bool flows_gather(const struct rrul *r, unsigned d, unsigned class, int flow,
			 struct stream_series *out)
{
	bool known = true;

	stream_series_reset(out, r->plan->interval);
	for (unsigned f = 0; f < flows_of(r); f++) {
		if (flow >= 0 ? f != (unsigned)flow : f % STREAM_CLASSES != class)
			continue;
		known = stream_series_gather(&r->way[d], false, d * flows_of(r) + f, "bytes",
					     out) &&
			known;
	}
	return known;
}

static void tcp_series_add(const struct rrul *r, json_t *o, int64_t interval,
			   struct stream_series *s)
{
	char name[64];

	for (unsigned d = 0; d < 2; d++) {
		for (unsigned c = 0; c < STREAM_CLASSES && c < flows_of(r); c++) {
			if (!flows_gather(r, d, c, -1, s))
				continue;
			stream_series_widen(s, interval);
			snprintf(name, sizeof(name), "%s_%s_mbit", directions[d],
				 stream_classes[c].name);
			json_object_set_new(o, name, stream_series_rates(s, r->until, MBIT(1)));
		}
		/* With one of each class these are the same. */
		for (unsigned f = 0; f < flows_of(r) && flows_of(r) > STREAM_CLASSES; f++) {
			if (!flows_gather(r, d, 0, (int)f, s))
				continue;
			stream_series_widen(s, interval);
			snprintf(name, sizeof(name), "%s_%u_%s_mbit", directions[d], f,
				 class_of(f));
			json_object_set_new(o, name, stream_series_rates(s, r->until, MBIT(1)));
		}
	}
}

static json_t *means_json(const struct stream_series *sum, const struct stream_series *number,
			  unsigned n)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < n; i++) {
		bool some = i < number->n && number->sum[i];

		json_array_append_new(array,
				      some ? json_real((double)sum->sum[i] / (double)number->sum[i])
					   : json_null());
	}
	return array;
}

static void probe_series_add(const struct rrul *r, json_t *o, int64_t interval, unsigned n,
			     struct stream_series s[2])
{
	char name[64];

	for (unsigned k = 0; k < RRUL_PROBES; k++) {
		if (!is_measured(r, k))
			continue;
		for (unsigned i = 0; i < 2; i++) {
			s[i] = *rrul_probe_series(r->probe, k, i);
			s[i].current = s[i].sum;
			stream_series_widen(&s[i], interval);
		}
		snprintf(name, sizeof(name), "%s_ns", rrul_probe_names[k]);
		json_object_set_new(o, name, means_json(&s[0], &s[1], n));
	}
}

/* All have one interval, so that of the one with the longest. */
static int64_t interval_of(const struct rrul *r)
{
	int64_t interval = r->plan->interval;

	while (r->until > interval * STREAM_INTERVALS)
		interval *= 2;
	return interval;
}

static json_t *series_json(const struct rrul *r)
{
	struct stream_series *s = calloc(2, sizeof(*s));
	int64_t interval = interval_of(r);
	unsigned n = (unsigned)((r->until + interval - 1) / interval);
	json_t *o = json_pack("{sf}", "interval_s", (double)interval / 1e9);

	if (!s)
		return o;
	tcp_series_add(r, o, interval, s);
	probe_series_add(r, o, interval, n, s);
	free(s);
	return o;
}

/* ---- the whole ---- */

static void tcp_counts_add(const struct rrul *r, json_t *counts)
{
	uint64_t again = 0, sent = 0, received = 0;
	bool known = true;

	for (unsigned d = 0; d < 2; d++) {
		again += stream_way_sum(&r->way[d], true, "retransmits");
		sent += stream_way_sum(&r->way[d], true, "measured");
		received += stream_way_sum(&r->way[d], false, "measured");
		known = known && r->way[d].sender && r->way[d].receiver;
	}
	json_object_set_new(counts, "retransmits", count(known, again));
	json_object_set_new(counts, "bytes_lost",
			    count(known, sent > received ? sent - received : 0));
}

static bool is_late(const json_t *counts)
{
	return json_integer_value(json_object_get(counts, "late_sends")) * LATE_SHARE >
	       json_integer_value(json_object_get(counts, "sent"));
}

static const char *why_invalid(const struct rrul *r, const json_t *client, const json_t *server,
			       const json_t *counts, const char *died, char *text, size_t size)
{
	uint64_t sent = (uint64_t)json_integer_value(json_object_get(counts, "sent"));
	uint64_t late = (uint64_t)json_integer_value(json_object_get(counts, "late_sends"));
	const char *why = died ? died : stream_invalid(client, server, text, size);

	if (why)
		return why;
	if (!sent)
		return "no probe was sent: probe_rate is too low for the duration";
	if (r->end[RRUL_IDLE] == r->end[RRUL_LOAD])
		return "there was no load: idle is as long as the whole duration";
	if (!is_late(counts))
		return NULL;
	snprintf(text, size,
		 "the sender was late: %.1f%% of the probes left more than %.0f us after they were "
		 "due",
		 100.0 * (double)late / (double)sent, (double)RRUL_LATE / 1e3);
	return text;
}

static json_t *notes_json(const struct rrul *r, const json_t *counts)
{
	json_int_t sent = json_integer_value(json_object_get(counts, "sent"));
	json_int_t late = json_integer_value(json_object_get(counts, "late_sends"));
	json_t *notes = json_array();
	char text[160];

	for (unsigned i = 0; rrul_probe_note(r->probe, i); i++)
		json_array_append_new(notes, json_string(rrul_probe_note(r->probe, i)));
	if (late * LATE_TOLD_SHARE > sent) {
		snprintf(
			text, sizeof(text),
			"%.1f%% of the probes left more than %.0f us after they were due, which is "
			"in their latencies",
			100.0 * (double)late / (double)sent, (double)RRUL_LATE / 1e3);
		json_array_append_new(notes, json_string(text));
	}
	return notes;
}

json_t *rrul_result(const struct stream_plan *plan, const struct rrul_probe *probe,
		    const json_t *client, const json_t *server, const char *died)
{
	struct rrul r = {
		.plan = plan,
		.probe = probe,
		.way = {{client, server}, {server, client}},
		.until = json_integer_value(json_object_get(client, "until_ns")),
	};
	json_t *counts, *steps = json_array(), *o;
	char text[256];
	const char *why;

	stream_plan_ends(plan, json_integer_value(json_object_get(client, "duration_ns")), r.end);
	counts = counts_json(&r, 0, RRUL_STEPS);
	tcp_counts_add(&r, counts);
	for (unsigned step = 0; step < RRUL_STEPS; step++)
		json_array_append_new(steps, step_json(&r, step));
	why = why_invalid(&r, client, server, counts, died, text, sizeof(text));
	o = json_pack("{sb ss? sb sf so so so so so so}", "valid", !why, "invalid", why, "late",
		      is_late(counts), "duration_s", (double)r.until / 1e9, "counts", counts,
		      "rates", rates_json(&r), "latency", latencies_json(&r), "series",
		      series_json(&r), "steps", steps, "notes", notes_json(&r, counts));
	return o;
}

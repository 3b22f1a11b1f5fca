/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/load/stream_result.h"

/* More than one in so many late sends, and the datagrams were not sent as asked. */
enum { LATE_SHARE = 100 };

/* Of more than one in so many parts of the time the server did not know that it was measured. */
enum { HEARD_SHARE = 10 };

#define MBIT(bytes) ((double)(bytes)*8 / 1e6)

/* Up, and down; those that there are. */
struct ways {
	unsigned n;
	struct stream_way way[2];
	const char *prefix[2]; /* of its rates and series beside the sums; "" when it is alone */
};

static void ways_make(const struct stream_plan *plan, const json_t *client, const json_t *server,
		      struct ways *out)
{
	bool both = plan->up && plan->down;

	out->n = 0;
	if (plan->up) {
		out->prefix[out->n] = both ? "up_" : "";
		out->way[out->n++] = (struct stream_way){client, server};
	}
	if (plan->down) {
		out->prefix[out->n] = both ? "down_" : "";
		out->way[out->n++] = (struct stream_way){server, client};
	}
}

static json_t *count(bool known, uint64_t n)
{
	return known ? json_integer((json_int_t)n) : json_null();
}

static uint64_t lost_of(const struct stream_both *b)
{
	return b->sent.messages > b->received.messages ? b->sent.messages - b->received.messages
						       : 0;
}

static json_t *counts_json(const struct stream_plan *plan, const struct stream_both *b)
{
	bool sent = b->sent_known, received = b->received_known;
	json_t *o = json_pack("{so so so}", "sent", count(sent, b->sent.messages), "bytes_sent",
			      count(sent, b->sent.bytes), "bytes_received",
			      count(received, b->received.bytes));

	if (plan->protocol == LOAD_TCP)
		return o;
	json_object_set_new(o, "received", count(received, b->received.messages));
	json_object_set_new(o, "lost", count(sent && received, lost_of(b)));
	json_object_set_new(o, "late", count(received, b->received.late));
	json_object_set_new(o, "reordered", count(received, b->received.reordered));
	json_object_set_new(o, "duplicated", count(received, b->received.duplicated));
	json_object_set_new(o, "late_sends", count(sent, b->sent.late_sends));
	json_object_set_new(o, "send_errors", count(sent, b->sent.errors));
	return o;
}

static void rate_set(json_t *o, const char *prefix, const char *key, bool known, double value,
		     double seconds)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", prefix, key);
	json_object_set_new(o, name, known ? stream_rate(value, seconds) : json_null());
}

static void rates_add(json_t *o, const struct stream_plan *plan, const char *prefix,
		      const struct stream_both *b)
{
	const struct stream_counts *r = &b->received;

	rate_set(o, prefix, "sent_mbit", b->sent_known, MBIT(b->sent.bytes), b->sent_s);
	rate_set(o, prefix, "received_mbit", b->received_known, MBIT(r->bytes - r->late_bytes),
		 b->received_s);
	if (plan->protocol == LOAD_TCP)
		return;
	rate_set(o, prefix, "sent_datagrams", b->sent_known, (double)b->sent.messages, b->sent_s);
	rate_set(o, prefix, "received_datagrams", b->received_known,
		 (double)(r->messages - r->late), b->received_s);
}

/*
 * Of both ways. Each rate is of the time in which its side has counted, which is shorter where it
 * heard late that it began: so rates are added, and not what was counted.
 */
static void rates_sum(json_t *o)
{
	static const char *const keys[] = {"sent_mbit", "received_mbit", "sent_datagrams",
					   "received_datagrams"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		char name[64];
		const json_t *up, *down;

		snprintf(name, sizeof(name), "up_%s", keys[i]);
		up = json_object_get(o, name);
		snprintf(name, sizeof(name), "down_%s", keys[i]);
		down = json_object_get(o, name);
		if (!up || !down)
			continue;
		json_object_set_new(
			o, keys[i],
			json_is_number(up) && json_is_number(down)
				? json_real(json_number_value(up) + json_number_value(down))
				: json_null());
	}
}

static void both_sum(struct stream_both *to, const struct stream_both *b, bool first)
{
	uint64_t *sum = (uint64_t *)&to->sent;
	const uint64_t *more = (const uint64_t *)&b->sent;

	if (first) {
		*to = *b;
		return;
	}
	for (size_t i = 0; i < sizeof(to->sent) / sizeof(*sum); i++) {
		sum[i] += more[i];
		((uint64_t *)&to->received)[i] += ((const uint64_t *)&b->received)[i];
	}
	to->sent_known = to->sent_known && b->sent_known;
	to->received_known = to->received_known && b->received_known;
}

/* Counts and rates of the steps from `from` up to, without, `to`. */
static void part_json(const struct stream_plan *plan, const struct ways *ways, unsigned from,
		      unsigned to, json_t **counts, json_t **rates, struct stream_both *all)
{
	*rates = json_object();
	for (unsigned i = 0; i < ways->n; i++) {
		struct stream_both b = {0};

		for (unsigned step = from; step < to; step++)
			stream_both_add(plan, &ways->way[i], 0, step, &b);
		if (ways->n > 1)
			rates_add(*rates, plan, ways->prefix[i], &b);
		both_sum(all, &b, i == 0);
	}
	if (ways->n > 1)
		rates_sum(*rates);
	else
		rates_add(*rates, plan, "", all);
	*counts = counts_json(plan, all);
}

static json_t *steps_json(const struct stream_plan *plan, const struct ways *ways,
			  const json_t *client)
{
	int64_t until = json_integer_value(json_object_get(client, "until_ns"));
	int64_t end[LOAD_SIZES_MAX], from = 0;
	json_t *steps = json_array();

	stream_plan_ends(plan, json_integer_value(json_object_get(client, "duration_ns")), end);
	for (unsigned i = 0; i < plan->steps; i++) {
		int64_t to = end[i] < until ? end[i] : until;
		json_t *counts, *rates;
		struct stream_both all;
		char name[16];

		snprintf(name, sizeof(name), "%u", plan->size[i]);
		part_json(plan, ways, i, i + 1, &counts, &rates, &all);
		json_array_append_new(steps,
				      json_pack("{ss sf sf so so s{}}", "name", name, "from_s",
						(double)from / 1e9, "duration_s",
						to > from ? (double)(to - from) / 1e9 : 0.0,
						"counts", counts, "rates", rates, "latency"));
		from = end[i];
	}
	return steps;
}

/* ---- by time ---- */

struct three {
	struct stream_series sent_bytes, received_bytes, sent, received;
	bool sent_known, received_known;
};

static void three_gather(const struct stream_plan *plan, const struct ways *ways, struct three *out)
{
	stream_series_reset(&out->sent_bytes, plan->interval);
	stream_series_reset(&out->received_bytes, plan->interval);
	stream_series_reset(&out->sent, plan->interval);
	stream_series_reset(&out->received, plan->interval);
	out->sent_known = out->received_known = true;
	for (unsigned i = 0; i < ways->n; i++) {
		const struct stream_way *way = &ways->way[i];

		out->sent_known &= stream_series_gather(way, true, 0, "bytes", &out->sent_bytes);
		out->received_known &=
			stream_series_gather(way, false, 0, "bytes", &out->received_bytes);
		stream_series_gather(way, true, 0, "messages", &out->sent);
		stream_series_gather(way, false, 0, "messages", &out->received);
	}
}

static void series_add(json_t *o, const char *prefix, const char *key, bool known,
		       const struct stream_series *s, int64_t until)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%s", prefix, key);
	if (known)
		json_object_set_new(o, name, stream_series_rates(s, until, MBIT(1)));
}

static json_t *lost_json(const struct three *t, unsigned n)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < n; i++) {
		uint64_t sent = i < t->sent.n ? t->sent.sum[i] : 0;
		uint64_t received = i < t->received.n ? t->received.sum[i] : 0;

		json_array_append_new(
			array, json_integer(sent > received ? (json_int_t)(sent - received) : 0));
	}
	return array;
}

static int64_t widest(const struct three *t, int64_t interval)
{
	const struct stream_series *s[] = {&t->sent_bytes, &t->received_bytes, &t->sent,
					   &t->received};

	for (unsigned i = 0; i < 4; i++)
		interval = s[i]->interval > interval ? s[i]->interval : interval;
	return interval;
}

static void all_widen(struct three *t, int64_t interval)
{
	stream_series_widen(&t->sent_bytes, interval);
	stream_series_widen(&t->received_bytes, interval);
	stream_series_widen(&t->sent, interval);
	stream_series_widen(&t->received, interval);
}

static json_t *series_json(const struct stream_plan *plan, const struct ways *ways,
			   const json_t *client)
{
	struct three *t = calloc(3, sizeof(*t)); /* the sums, and each way */
	json_t *o = json_object();
	int64_t until = json_integer_value(json_object_get(client, "until_ns"));
	int64_t interval = plan->interval;

	if (!t)
		return o;
	three_gather(plan, ways, &t[0]);
	for (unsigned i = 0; i < ways->n && ways->n > 1; i++) {
		struct ways one = {1, {ways->way[i]}, {""}};

		three_gather(plan, &one, &t[i + 1]);
	}
	for (unsigned i = 0; i < (ways->n > 1 ? 3 : 1); i++)
		interval = widest(&t[i], interval);
	json_object_set_new(o, "interval_s", json_real((double)interval / 1e9));
	for (unsigned i = 0; i < (ways->n > 1 ? 3 : 1); i++) {
		const char *prefix = i ? ways->prefix[i - 1] : "";

		all_widen(&t[i], interval);
		series_add(o, prefix, "sent_mbit", t[i].sent_known, &t[i].sent_bytes, until);
		series_add(o, prefix, "received_mbit", t[i].received_known, &t[i].received_bytes,
			   until);
	}
	if (plan->protocol == LOAD_UDP && t[0].sent_known && t[0].received_known)
		json_object_set_new(
			o, "lost", lost_json(&t[0], (unsigned)((until + interval - 1) / interval)));
	free(t);
	return o;
}

/* ---- the whole ---- */

static void tcp_counts_add(json_t *counts, const struct ways *ways)
{
	uint64_t again = 0, sent = 0, received = 0, broken = 0;
	bool known = true;

	for (unsigned i = 0; i < ways->n; i++) {
		again += stream_way_sum(&ways->way[i], true, "retransmits");
		broken += stream_way_sum(&ways->way[i], true, "broken");
		sent += stream_way_sum(&ways->way[i], true, "measured");
		received += stream_way_sum(&ways->way[i], false, "measured");
		known = known && ways->way[i].sender && ways->way[i].receiver;
	}
	json_object_set_new(counts, "retransmits", count(known, again));
	json_object_set_new(counts, "broken", count(known, broken));
	/* Since the connections began: what never came out of them. */
	json_object_set_new(counts, "bytes_lost",
			    count(known, sent > received ? sent - received : 0));
}

static json_t *latency_gather(const struct ways *ways)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < ways->n; i++) {
		json_t *rtt = json_object_get(ways->way[i].sender, "rtt");
		char name[32];

		snprintf(name, sizeof(name), "%stcp_rtt", ways->prefix[i]);
		if (json_is_object(rtt))
			json_object_set(o, name, rtt);
	}
	return o;
}

static bool sender_is_late(const struct stream_plan *plan, const struct stream_both *all)
{
	return plan->protocol == LOAD_UDP && all->sent.late_sends * LATE_SHARE > all->sent.messages;
}

/*
 * Its word comes over the same link, behind all that is sent. Until then TCP's bytes are not
 * counted at the server, and nothing of a step is sent from it.
 */
static bool server_is_late(const struct stream_plan *plan, const json_t *server)
{
	int64_t heard = json_integer_value(json_object_get(server, "from_ns"));
	int64_t duration = json_integer_value(json_object_get(server, "duration_ns"));

	return (plan->protocol == LOAD_TCP || plan->down) && heard > duration / HEARD_SHARE;
}

static const char *why_invalid(const struct stream_plan *plan, const struct stream_both *all,
			       const json_t *client, const json_t *server, const char *died,
			       char *text, size_t size)
{
	const char *why = died ? died : stream_invalid(client, server, text, size);

	if (why)
		return why;
	if (!all->sent.bytes)
		return "nothing was sent";
	if (server_is_late(plan, server)) {
		snprintf(text, size,
			 "the server was late: it heard after %.3f s of %.3f s that it is measured",
			 (double)json_integer_value(json_object_get(server, "from_ns")) / 1e9,
			 (double)json_integer_value(json_object_get(server, "duration_ns")) / 1e9);
		return text;
	}
	if (!sender_is_late(plan, all))
		return NULL;
	snprintf(text, size,
		 "the sender was late: %.1f%% of its datagrams left more than %.0f us after they "
		 "were "
		 "due",
		 100.0 * (double)all->sent.late_sends / (double)all->sent.messages,
		 (double)STREAM_LATE / 1e3);
	return text;
}

json_t *stream_result(const struct stream_plan *plan, const json_t *client, const json_t *server,
		      const char *died)
{
	json_t *counts, *rates, *o;
	struct stream_both all = {0};
	struct ways ways;
	char text[256];
	const char *why;

	ways_make(plan, client, server, &ways);
	part_json(plan, &ways, 0, plan->steps, &counts, &rates, &all);
	if (plan->protocol == LOAD_TCP)
		tcp_counts_add(counts, &ways);
	if (plan->config->rate > 0)
		json_object_set_new(rates, "offered", json_real(plan->config->rate * ways.n));
	why = why_invalid(plan, &all, client, server, died, text, sizeof(text));
	o = json_pack("{sb ss? sb sf so so so so so}", "valid", !why, "invalid", why, "late",
		      sender_is_late(plan, &all) || server_is_late(plan, server), "duration_s",
		      (double)json_integer_value(json_object_get(client, "until_ns")) / 1e9,
		      "counts", counts, "rates", rates, "latency", latency_gather(&ways), "series",
		      series_json(plan, &ways, client), "steps", steps_json(plan, &ways, client));
	return o;
}

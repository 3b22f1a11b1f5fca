/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums over what the two sides have reported. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/load/stream_result.h"

static uint64_t number_of(const json_t *o, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(o, key));

	return n > 0 ? (uint64_t)n : 0;
}

static const json_t *group_of(const json_t *report, const char *direction, unsigned group)
{
	const json_t *groups = json_object_get(json_object_get(report, direction), "groups");

	return json_array_get(groups, group);
}

static void counts_add(const json_t *o, struct stream_counts *to)
{
	to->messages += number_of(o, "messages");
	to->bytes += number_of(o, "bytes");
	to->late += number_of(o, "late");
	to->late_bytes += number_of(o, "late_bytes");
	to->reordered += number_of(o, "reordered");
	to->duplicated += number_of(o, "duplicated");
	to->late_sends += number_of(o, "late_sends");
	to->errors += number_of(o, "errors");
}

/* How long this side has counted in that step, having begun then. */
static double step_seconds(const struct stream_plan *plan, const json_t *report, int64_t begun,
			   unsigned step)
{
	int64_t end[LOAD_SIZES_MAX], from, to;
	int64_t until = (int64_t)number_of(report, "until_ns");

	stream_plan_ends(plan, (int64_t)number_of(report, "duration_ns"), end);
	from = step ? end[step - 1] : 0;
	to = end[step];
	if (from < begun)
		from = begun;
	if (to > until)
		to = until;
	return from < to ? (double)(to - from) / (double)NSEC_PER_SEC : 0;
}

void stream_both_add(const struct stream_plan *plan, const struct stream_way *way, unsigned group,
		     unsigned step, struct stream_both *to)
{
	const json_t *sent = group_of(way->sender, "tx", group);
	const json_t *received = group_of(way->receiver, "rx", group);
	int64_t begun = (int64_t)number_of(way->receiver, "from_ns");

	/* Datagrams say themselves of which step they are: all are counted. */
	if (plan->protocol == LOAD_UDP)
		begun = 0;
	if (sent) {
		to->sent_known = true;
		to->sent_s += step_seconds(plan, way->sender,
					   (int64_t)number_of(way->sender, "from_ns"), step);
		counts_add(json_array_get(json_object_get(sent, "steps"), step), &to->sent);
	}
	if (received) {
		to->received_known = true;
		to->received_s += step_seconds(plan, way->receiver, begun, step);
		counts_add(json_array_get(json_object_get(received, "steps"), step), &to->received);
	}
}

bool stream_series_gather(const struct stream_way *way, bool sender, unsigned group,
			  const char *key, struct stream_series *to)
{
	static _Thread_local struct stream_series one;
	const json_t *o =
		sender ? group_of(way->sender, "tx", group) : group_of(way->receiver, "rx", group);

	if (!o || stream_series_read(json_object_get(o, key), &one))
		return false;
	stream_series_merge(to, &one);
	return true;
}

json_t *stream_series_rates(const struct stream_series *s, int64_t until, double of)
{
	json_t *array = json_array();

	for (int64_t i = 0; i * s->interval < until; i++) {
		int64_t left = until - i * s->interval;
		double length = (double)(left < s->interval ? left : s->interval);
		double sum = i < s->n ? (double)s->sum[i] * of : 0;

		json_array_append_new(array, left < s->interval / 10
						     ? json_null()
						     : json_real(sum / (length / NSEC_PER_SEC)));
	}
	return array;
}

json_t *stream_rate(double value, double seconds)
{
	double rate = value / seconds;

	return seconds > 0 && isfinite(rate) ? json_real(rate) : json_null();
}

uint64_t stream_way_sum(const struct stream_way *way, bool sender, const char *key)
{
	return number_of(sender ? json_object_get(way->sender, "tx")
				: json_object_get(way->receiver, "rx"),
			 key);
}

static int failure_of(const json_t *report)
{
	static const char *const directions[] = {"tx", "rx"};

	for (unsigned i = 0; i < 2; i++) {
		json_int_t n = json_integer_value(
			json_object_get(json_object_get(report, directions[i]), "failed"));

		if (n)
			return (int)n;
	}
	return 0;
}

const char *stream_invalid(const json_t *client, const json_t *server, char *text, size_t size)
{
	uint64_t until = number_of(client, "until_ns"), whole = number_of(client, "duration_ns");
	int failed = failure_of(client) ? failure_of(client) : failure_of(server);

	if (!whole)
		return "nothing was measured";
	if (failed)
		snprintf(text, size, "a thread could not do its work: %s", strerror(-failed));
	else if (until < whole)
		snprintf(text, size, "stopped after %.3f s of %.3f s", (double)until / 1e9,
			 (double)whole / 1e9);
	else
		return NULL;
	return text;
}

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

/* How long this side has counted in that step. */
static double step_seconds(const struct stream_plan *plan, const json_t *report, unsigned step)
{
	int64_t end[LOAD_SIZES_MAX], from, to;
	int64_t begun = (int64_t)number_of(report, "from_ns");
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

	if (sent) {
		to->sent_known = true;
		to->sent_s += step_seconds(plan, way->sender, step);
		counts_add(json_array_get(json_object_get(sent, "steps"), step), &to->sent);
	}
	if (received) {
		to->received_known = true;
		to->received_s += step_seconds(plan, way->receiver, step);
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

json_t *stream_series_scaled(const struct stream_series *s, unsigned n, double factor)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(array, json_real(i < s->n ? (double)s->sum[i] * factor : 0));
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

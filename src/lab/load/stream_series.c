/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "lab/load/stream_series.h"

void stream_series_reset(struct stream_series *s, int64_t interval)
{
	memset(s, 0, sizeof(*s));
	s->interval = interval;
	s->current = s->sum;
}

static void forget_current(struct stream_series *s)
{
	s->from = s->to = 0;
}

static void twice_as_long(struct stream_series *s)
{
	unsigned half = (s->n + 1) / 2;

	for (unsigned i = 0; i < half; i++)
		s->sum[i] = s->sum[2 * i] + (2 * i + 1 < s->n ? s->sum[2 * i + 1] : 0);
	memset(s->sum + half, 0, (STREAM_INTERVALS - half) * sizeof(s->sum[0]));
	s->n = half;
	s->interval *= 2;
	forget_current(s);
}

void stream_series_widen(struct stream_series *s, int64_t interval)
{
	while (s->interval < interval)
		twice_as_long(s);
}

void stream_series_find(struct stream_series *s, int64_t at)
{
	unsigned i;

	while (at / s->interval >= STREAM_INTERVALS)
		twice_as_long(s);
	i = (unsigned)(at / s->interval);
	s->from = i * s->interval;
	s->to = s->from + s->interval;
	s->current = &s->sum[i];
	if (i >= s->n)
		s->n = i + 1;
}

void stream_series_merge(struct stream_series *into, const struct stream_series *from)
{
	unsigned times;

	stream_series_widen(into, from->interval);
	times = (unsigned)(into->interval / from->interval);
	for (unsigned i = 0; i < from->n; i++)
		into->sum[i / times] += from->sum[i];
	if ((from->n + times - 1) / times > into->n)
		into->n = (from->n + times - 1) / times;
	forget_current(into);
}

json_t *stream_series_json(const struct stream_series *s)
{
	json_t *sum = json_array();

	for (unsigned i = 0; i < s->n; i++)
		json_array_append_new(sum, json_integer((json_int_t)s->sum[i]));
	return json_pack("{sI so}", "interval_ns", (json_int_t)s->interval, "sum", sum);
}

int stream_series_read(const json_t *o, struct stream_series *out)
{
	json_t *interval = json_object_get(o, "interval_ns"), *sum = json_object_get(o, "sum");

	stream_series_reset(out, json_integer_value(interval));
	if (out->interval <= 0 || !json_is_array(sum) || json_array_size(sum) > STREAM_INTERVALS)
		return -EINVAL;
	out->n = (unsigned)json_array_size(sum);
	for (unsigned i = 0; i < out->n; i++)
		out->sum[i] = (uint64_t)json_integer_value(json_array_get(sum, i));
	return 0;
}

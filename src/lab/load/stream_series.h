/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_series: sums by interval of time, in fixed memory. When a time lies beyond the last
 * interval all intervals become twice as long, as often as needed. One writer.
 */
#ifndef LAB_LOAD_STREAM_SERIES_H
#define LAB_LOAD_STREAM_SERIES_H

#include <stdint.h>

#include <jansson.h>

enum { STREAM_INTERVALS = 2048 };

struct stream_series {
	int64_t interval;  /* ns */
	int64_t from, to;  /* of the interval that the last value went into */
	uint64_t *current; /* and its sum */
	unsigned n;	   /* intervals up to the last one with a value */
	uint64_t sum[STREAM_INTERVALS];
};

void stream_series_reset(struct stream_series *s, int64_t interval);
void stream_series_find(struct stream_series *s, int64_t at);
/* into's interval and from's are those of two resets with the same one. */
void stream_series_merge(struct stream_series *into, const struct stream_series *from);
/* Intervals become at least this long. */
void stream_series_widen(struct stream_series *s, int64_t interval);

/* at: ns since the beginning; before it: no effect. */
static inline void stream_series_add(struct stream_series *s, int64_t at, uint64_t value)
{
	if (at < 0)
		return;
	if (at < s->from || at >= s->to)
		stream_series_find(s, at);
	*s->current += value;
}

/* {"interval_ns", "sum": […]}, for json_decref; and back: -EINVAL: it is none. */
json_t *stream_series_json(const struct stream_series *s);
int stream_series_read(const json_t *o, struct stream_series *out);

#endif

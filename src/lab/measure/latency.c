/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "lab/measure/latency.h"

const struct latency_percentile latency_percentiles[LATENCY_PERCENTILES] = {
	{"p50", 500000}, {"p90", 900000}, {"p99", 990000}, {"p99.9", 999000}, {"p99.99", 999900},
};

/* JSON's whole numbers here are signed. */
static json_t *whole(uint64_t value)
{
	return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

static json_t *percentile(const struct histogram *h, uint32_t millionths)
{
	uint64_t value;

	return histogram_percentile(h, millionths, &value) ? whole(value) : json_null();
}

static json_t *buckets_json(const struct histogram *h)
{
	json_t *all = json_array();

	for (uint32_t i = 0; all && i < HISTOGRAM_BUCKETS; i++) {
		if (h->count[i])
			json_array_append_new(all,
					      json_pack("[o, o]", whole(histogram_bucket_top(i)),
							whole(h->count[i])));
	}
	return all;
}

json_t *latency_json(const struct histogram *h, uint64_t lost)
{
	json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "unit", "ns", "n", whole(h->n),
			      "lost", whole(lost), "min", h->n ? whole(h->min) : json_null(),
			      "mean", h->n ? json_real(histogram_mean(h)) : json_null(), "max",
			      h->n ? whole(h->max) : json_null());

	if (!o)
		return NULL;
	for (unsigned i = 0; i < LATENCY_PERCENTILES; i++)
		json_object_set_new(o, latency_percentiles[i].key,
				    percentile(h, latency_percentiles[i].millionths));
	json_object_set_new(o, "buckets", h->n ? buckets_json(h) : json_null());
	return o;
}

static bool whole_read(const json_t *value, uint64_t *out)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*out = (uint64_t)json_integer_value(value);
	return true;
}

/* Tops ascend, so that none is there twice. */
static int bucket_read(const json_t *pair, struct histogram *out, uint32_t *next)
{
	uint64_t top, count;
	uint32_t bucket;

	if (json_array_size(pair) != 2 || !whole_read(json_array_get(pair, 0), &top) ||
	    !whole_read(json_array_get(pair, 1), &count) || !count)
		return -EINVAL;
	bucket = histogram_bucket(top);
	if (bucket < *next || histogram_bucket_top(bucket) != top || count > UINT64_MAX - out->n)
		return -EINVAL;
	out->count[bucket] = count;
	out->n += count;
	*next = bucket + 1;
	return 0;
}

int latency_read(const json_t *o, struct histogram *out)
{
	const json_t *buckets = json_object_get(o, "buckets"), *pair, *mean;
	uint32_t next = 0;
	uint64_t n;
	size_t i;

	histogram_reset(out);
	if (!whole_read(json_object_get(o, "n"), &n))
		return -EINVAL;
	if (!n)
		return json_is_null(buckets) ||
				       (json_is_array(buckets) && !json_array_size(buckets))
			       ? 0
			       : -EINVAL;
	if (!json_is_array(buckets))
		return -EINVAL;
	json_array_foreach(buckets, i, pair)
	{
		if (bucket_read(pair, out, &next))
			return -EINVAL;
	}
	mean = json_object_get(o, "mean");
	if (out->n != n || !whole_read(json_object_get(o, "min"), &out->min) ||
	    !whole_read(json_object_get(o, "max"), &out->max) || out->min > out->max ||
	    histogram_bucket(out->max) != next - 1 || !json_is_number(mean))
		return -EINVAL;
	/* Beyond 2^64 it would not have been a sum, either. */
	out->sum = (uint64_t)fmin(fmax(json_number_value(mean), 0) * (double)n, 1.8e19);
	return 0;
}

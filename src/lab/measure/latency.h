/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * latency: a histogram as results have it.
 *
 * {"unit": "ns", "n", "lost", "min", "mean", "max", "p50", "p90", "p99", "p99.9", "p99.99",
 *  "buckets": [[top, count], …]}
 *
 * Percentiles follow histogram_percentile: null with fewer than 10 samples above. All but n and
 * lost are null when there are no samples. `lost` of them never came: their recorder has recorded
 * them, at their time-out, so they are in n and in the last bucket, and percentiles know of them.
 */
#ifndef LAB_MEASURE_LATENCY_H
#define LAB_MEASURE_LATENCY_H

#include <jansson.h>

#include "lab/histogram.h"

/* For json_decref. NULL: no memory. */
json_t *latency_json(const struct histogram *h, uint64_t lost);
/*
 * Back, so that histograms of several runs can be merged: buckets, min and max exactly, the sum as
 * the mean has it. -EINVAL: not such an object; *out is then undefined.
 */
int latency_read(const json_t *o, struct histogram *out);

/* The keys of percentiles, ascending, and what histogram_percentile calls them. */
enum { LATENCY_PERCENTILES = 5 };
struct latency_percentile {
	const char *key;
	uint32_t millionths;
};
extern const struct latency_percentile latency_percentiles[LATENCY_PERCENTILES];

#endif

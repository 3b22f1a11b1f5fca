/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * latency: a histogram as results have it.
 *
 * {"unit": "ns", "n", "lost", "min", "mean", "max", "p50", "p90", "p99", "p99.9", "p99.99",
 *  "buckets": [[top, count], …]}
 *
 * Percentiles follow histogram_percentile: null with fewer than 10 samples above. All but n are
 * null when there are no samples. `lost` of them never came: they are in n, in the last bucket
 * (their time-out), so percentiles know of them.
 */
#ifndef LAB_MEASURE_LATENCY_H
#define LAB_MEASURE_LATENCY_H

#include <jansson.h>

#include "lab/histogram.h"

/* For json_decref. */
json_t *latency_json(const struct histogram *h, uint64_t lost);
/* Back; buckets only. -EINVAL: not such an object. */
int latency_read(const json_t *o, struct histogram *out);

#endif

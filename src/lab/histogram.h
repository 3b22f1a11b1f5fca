/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram: latencies in fixed memory.
 *
 * Log-linear: values below 256 are kept exactly, above that each octave has 128 buckets, so a
 * percentile is at most 1/128 (0.79%) above the true value and never below it. Values are
 * nanoseconds, but nothing here depends on the unit.
 *
 * One writer per histogram; merge and read when it has stopped.
 */
#ifndef LAB_HISTOGRAM_H
#define LAB_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
	HISTOGRAM_SUB_BITS = 7,
	HISTOGRAM_SUB = 1 << HISTOGRAM_SUB_BITS,
	HISTOGRAM_VALUE_BITS = 40, /* larger values (18 minutes) share the last bucket */
	HISTOGRAM_BUCKETS = (HISTOGRAM_VALUE_BITS - HISTOGRAM_SUB_BITS + 1) * HISTOGRAM_SUB,
	/* Fewer samples than this above a percentile, and it is not available. */
	HISTOGRAM_ABOVE_MIN = 10,
};

struct histogram {
	uint64_t n;
	uint64_t sum;
	uint64_t min; /* UINT64_MAX while empty */
	uint64_t max; /* exact, also beyond the last bucket */
	uint64_t count[HISTOGRAM_BUCKETS];
};

void histogram_reset(struct histogram *h);

static inline uint32_t histogram_bucket(uint64_t value)
{
	uint32_t shift;

	if (value < 2 * HISTOGRAM_SUB)
		return (uint32_t)value;
	if (value >> HISTOGRAM_VALUE_BITS)
		return HISTOGRAM_BUCKETS - 1;
	shift = 63 - (uint32_t)__builtin_clzll(value) - HISTOGRAM_SUB_BITS;
	return shift * HISTOGRAM_SUB + (uint32_t)(value >> shift);
}

static inline void histogram_record(struct histogram *h, uint64_t value)
{
	h->n++;
	h->sum += value;
	if (value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count[histogram_bucket(value)]++;
}

/* The highest value that falls into the bucket. */
uint64_t histogram_bucket_top(uint32_t bucket);

void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * The value that `millionths` of the samples do not exceed: 500000 is the median, 999000 is
 * p99.9. Whole numbers, since 0.999 has no exact binary form and the rank must be exact. False
 * when fewer than HISTOGRAM_ABOVE_MIN samples lie above it: one more run could then give quite
 * another value.
 */
bool histogram_percentile(const struct histogram *h, uint32_t millionths, uint64_t *value);

/* 0 while empty. */
double histogram_mean(const struct histogram *h);

#endif

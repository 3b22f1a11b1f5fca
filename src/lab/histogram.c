/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lab/histogram.h"

#define MILLION 1000000u

void histogram_reset(struct histogram *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

uint64_t histogram_bucket_top(uint32_t bucket)
{
	uint32_t shift;

	if (bucket < 2 * HISTOGRAM_SUB)
		return bucket;
	shift = bucket / HISTOGRAM_SUB - 1;
	return (((uint64_t)(bucket % HISTOGRAM_SUB) + HISTOGRAM_SUB + 1) << shift) - 1;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	into->n += from->n;
	into->sum += from->sum;
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->count[i] += from->count[i];
}

/* ceil(n * millionths / 10^6) without overflow for any n. */
static uint64_t rank_of(uint64_t n, uint32_t millionths)
{
	uint64_t rest = n % MILLION * millionths;

	return n / MILLION * millionths + (rest + MILLION - 1) / MILLION;
}

bool histogram_percentile(const struct histogram *h, uint32_t millionths, uint64_t *value)
{
	uint64_t rank, seen = 0;
	uint32_t i;

	if (millionths > MILLION)
		return false;
	rank = rank_of(h->n, millionths);
	if (h->n - rank < HISTOGRAM_ABOVE_MIN)
		return false;
	if (rank == 0)
		rank = 1;
	for (i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += h->count[i];
		if (seen >= rank)
			break;
	}
	*value = histogram_bucket_top(i);
	/* The last bucket has no top, and no value is above the largest seen. */
	if (i == HISTOGRAM_BUCKETS - 1 || *value > h->max)
		*value = h->max;
	return true;
}

double histogram_mean(const struct histogram *h)
{
	return h->n ? (double)h->sum / (double)h->n : 0;
}

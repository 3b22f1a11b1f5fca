/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client thread of rr has seen: counts, histograms and a coarse histogram for each interval.
 * The thread's own while it runs.
 */
#ifndef LAB_LOAD_RR_STATS_H
#define LAB_LOAD_RR_STATS_H

#include <jansson.h>

#include "lab/histogram.h"

enum {
	RR_INTERVALS_MAX = 1024, /* a run that has more has longer ones */
	/* Of an interval: as in histogram.h, but 16 buckets an octave (an error under 6.3%). */
	RR_COARSE_BITS = 4,
	RR_COARSE = 1 << RR_COARSE_BITS,
	RR_COARSE_BUCKETS = (HISTOGRAM_VALUE_BITS - RR_COARSE_BITS + 1) * RR_COARSE,
};

struct rr_interval {
	uint32_t n;
	uint32_t count[RR_COARSE_BUCKETS];
};

struct rr_stats {
	/* Of requests that belong to the run, see rr.h. */
	uint64_t started, completed, lost, timeouts, late, bounded;
	uint64_t transactions;	 /* that ended in its time */
	uint64_t reconnects;	 /* in its time, and until the end */
	uint64_t sent, received; /* bytes in its time */
	struct histogram service, response;
	struct rr_interval *interval; /* of its time, by the end of transactions */
};

/* All of them, and how long; for the JSON. */
struct rr_run {
	bool open_loop, connect, udp;
	const char *why;	    /* the server went away; NULL: it did not */
	int64_t duration, interval; /* ns */
	unsigned intervals;
	uint64_t retransmits;
};

static inline uint32_t rr_coarse_bucket(uint64_t value)
{
	uint32_t shift;

	if (value < 2 * RR_COARSE)
		return (uint32_t)value;
	if (value >> HISTOGRAM_VALUE_BITS)
		return RR_COARSE_BUCKETS - 1;
	shift = 63 - (uint32_t)__builtin_clzll(value) - RR_COARSE_BITS;
	return shift * RR_COARSE + (uint32_t)(value >> shift);
}

static inline void rr_interval_record(struct rr_interval *i, uint64_t value)
{
	i->n++;
	i->count[rr_coarse_bucket(value)]++;
}

/* False: fewer than HISTOGRAM_ABOVE_MIN samples above it. The middle of the bucket. */
bool rr_interval_percentile(const struct rr_interval *i, uint32_t millionths, uint64_t *value);

/* For free() of interval; NULL: no memory. */
struct rr_stats *rr_stats_create(void);
void rr_stats_add(struct rr_stats *to, const struct rr_stats *from, unsigned intervals);

/* A run's "valid", "invalid", "duration_s", "counts", "rates", "latency", "series", "steps". */
json_t *rr_stats_json(const struct rr_stats *s, const struct rr_run *run);

#endif

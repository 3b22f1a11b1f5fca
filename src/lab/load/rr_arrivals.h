/* SPDX-License-Identifier: BSD-2-Clause */
/* When the requests of an open loop are due: one thread's part of them. */
#ifndef LAB_LOAD_RR_ARRIVALS_H
#define LAB_LOAD_RR_ARRIVALS_H

#include "lab/load/load.h"

struct rr_arrivals {
	int64_t start; /* ns of the clock */
	double at;     /* ns after that: the next one */
	double gap;    /* mean */
	bool poisson;
	uint64_t random;
};

/*
 * Thread i of n, from now on. Constant: the threads' arrivals interleave evenly. Poisson: those of
 * all threads together are Poisson, too. The same seed, the same times.
 */
void rr_arrivals_start(struct rr_arrivals *a, const struct load_config *config, unsigned i,
		       unsigned n, int64_t now);

static inline int64_t rr_arrivals_next(const struct rr_arrivals *a)
{
	return a->start + (int64_t)a->at;
}

void rr_arrivals_step(struct rr_arrivals *a);

#endif

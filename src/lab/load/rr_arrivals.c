/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "lab/load/rr_arrivals.h"

/* splitmix64 */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Exponential: of (0, 1], so that its logarithm is finite. */
static double gap_draw(struct rr_arrivals *a)
{
	double u = (double)((random_next(&a->random) >> 11) + 1) * 0x1p-53;

	return -log(u) * a->gap;
}

void rr_arrivals_start(struct rr_arrivals *a, const struct load_config *config, unsigned i,
		       unsigned n, int64_t now)
{
	uint64_t seed = config->seed + i;

	*a = (struct rr_arrivals){
		.start = now,
		.gap = 1e9 * n / config->rate,
		.poisson = config->arrivals == LOAD_POISSON,
		.random = random_next(&seed),
	};
	a->at = a->poisson ? gap_draw(a) : a->gap * i / n;
}

void rr_arrivals_step(struct rr_arrivals *a)
{
	a->at += a->poisson ? gap_draw(a) : a->gap;
}

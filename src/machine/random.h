/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Repeatable draws: SplitMix64. One word of state, every seed is good (also 0 and neighbours), and
 * the same sequence on every platform. Not for secrets.
 */
#ifndef MACHINE_RANDOM_H
#define MACHINE_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state; /* the seed */
};

/* Spreads every bit of x over the whole word; a bijection. */
static inline uint64_t random_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline uint64_t random_next(struct random *r)
{
	r->state += UINT64_C(0x9e3779b97f4a7c15);
	return random_mix(r->state);
}

/* 0..n-1, n > 0. The bias is below n / 2^64. */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)random_next(r) * n) >> 64);
}

#endif

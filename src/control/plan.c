/* SPDX-License-Identifier: BSD-2-Clause */
#include <control/plan.h>

/* Which CPU has the most (sign 1) or the least (sign -1); the first of equals. */
static uint32_t extreme(const double *load, uint32_t cpus, int sign)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < cpus; i++) {
		if (sign * load[i] > sign * load[found])
			found = i;
	}
	return found;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The NAPI of `from` whose move leaves the two of them the most even; n: none gains enough. */
static uint32_t best_move(const struct plan_napi *napis, uint32_t n, const double *load,
			  uint32_t from, uint32_t to)
{
	double least = load[from] - PLAN_GAIN;
	uint32_t found = n;

	for (uint32_t i = 0; i < n; i++) {
		double after;

		/* Each moves once, so that this ends. */
		if (!napis[i].movable || napis[i].cpu != from || napis[i].to != from)
			continue;
		after = larger(load[from] - napis[i].load, load[to] + napis[i].load);
		if (after <= least) {
			least = after;
			found = i;
		}
	}
	return found;
}

uint32_t plan_moves(struct plan_napi *napis, uint32_t n, double *load, uint32_t cpus)
{
	uint32_t moves = 0;

	for (uint32_t i = 0; i < n; i++)
		napis[i].to = napis[i].cpu;
	while (cpus > 1) {
		uint32_t from = extreme(load, cpus, 1), to = extreme(load, cpus, -1);
		uint32_t i = best_move(napis, n, load, from, to);

		if (i == n)
			break;
		napis[i].to = to;
		load[from] -= napis[i].load;
		load[to] += napis[i].load;
		moves++;
	}
	return moves;
}

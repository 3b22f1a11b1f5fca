/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which NAPIs to move to which engine CPUs, so that the CPU with the most has less. A pure
 * function: loads in, moves out.
 */
#ifndef CONTROL_PLAN_H
#define CONTROL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* A move that gains less than this, as a share of one CPU, is not worth it. */
#define PLAN_GAIN 0.05

struct plan_napi {
	uint32_t cpu; /* index of its CPU */
	double load;  /* share of one CPU, 0..1 */
	bool movable;
	uint32_t to; /* result; as `cpu`: it stays */
};

/*
 * load[i] is all that CPU i carries, these NAPIs included; it is what is expected after the moves
 * when this returns. Returns how many NAPIs move, each once. What a NAPI has is taken to go along
 * with it; one that wanted more than its CPU had will take more.
 */
uint32_t plan_moves(struct plan_napi *napis, uint32_t n, double *load, uint32_t cpus);

#endif

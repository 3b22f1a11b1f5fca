/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: a benchmark is a list of parts, and each part fills one table. Rounds go over all rows
 * forth and then back (ABBA), so that drift of the machine falls on all alike; ratios are taken
 * within a round.
 */
#ifndef LAB_PARTS_BENCH_H
#define LAB_PARTS_BENCH_H

#include <napier/error.h>
#include <napier/machine.h>

#include "lab/parts/figures.h"

struct bench_plan {
	bool quick;	 /* shows that it works, not how well */
	unsigned rounds; /* an even number is fair; at most SERIES_MAX */
	/* Chosen by bench_cpus. */
	int cpu;   /* what is measured polls here */
	int apart; /* who makes the events; -1: there is no other CPU, so it is the same one */
	int spare; /* for who polls without end beside the others; -1: there is no third CPU */
	const char *napier; /* path of the program */
	const char *rundir;
	/* Called before each measurement; done of total. NULL: not. */
	void (*progress)(void *arg, const char *what, unsigned done, unsigned total);
	void *arg;
};

struct bench_part {
	const char *key;     /* "cost" */
	const char *summary; /* a few words, for --help */
	const struct figures_form *form;
	/* 0 or a negative errno. What cannot be measured here is a note in the figures instead. */
	int (*run)(const struct bench_plan *plan, struct figures *f, struct error *err);
};

/* The first CPU that this process may use makes the events, the second polls, the third is spare.
 */
void bench_cpus(struct bench_plan *plan);

/* What parts share. */

/* Where what makes the events runs. */
static inline int bench_apart(const struct bench_plan *plan)
{
	return plan->apart < 0 ? plan->cpu : plan->apart;
}

/* The i-th of n in this round, forth or back. */
static inline unsigned bench_turn(unsigned round, unsigned i, unsigned n)
{
	return round % 2 ? n - 1 - i : i;
}

/*
 * Waits until the count is more than that: on a busy machine nothing may happen for a while. False:
 * it was not within BENCH_PATIENCE.
 */
#define BENCH_PATIENCE (10 * NSEC_PER_SEC)
bool bench_await(uint64_t (*count)(void *of), void *of, uint64_t more_than);

__attribute__((format(printf, 4, 5))) void bench_progress(const struct bench_plan *plan,
							  unsigned done, unsigned total,
							  const char *format, ...);

#endif

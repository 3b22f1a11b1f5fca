/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pollers: the benchmark of the pollers, part by part. Rounds go over all pollers forth and then
 * back (ABBA), so that drift of the machine falls on all alike; ratios are taken within a round.
 */
#ifndef LAB_POLLERS_H
#define LAB_POLLERS_H

#include <napier/error.h>
#include <napier/engine.h>

#include "lab/events.h"
#include "lab/figures.h"

struct pollers_plan {
	bool quick;	 /* shows that it works, not how well */
	unsigned rounds; /* an even number is fair; at most SERIES_MAX */
	/* Chosen by pollers_cpus. */
	int cpu;   /* what is measured polls here */
	int apart; /* who makes the events; -1: there is no other CPU, so it is the same one */
	const char *napier; /* path of the program */
	const char *rundir;
	/* Called before each measurement; done of total. NULL: not. */
	void (*progress)(void *arg, const char *what, unsigned done, unsigned total);
	void *arg;
};

struct pollers_part {
	const char *key;     /* "cost" */
	const char *summary; /* a few words, for --help */
	const struct figures_form *form;
	/* 0 or a negative errno. What cannot be measured here is a note in the figures instead. */
	int (*run)(const struct pollers_plan *plan, struct figures *f, struct error *err);
};

/* In order; NULL after the last. */
extern const struct pollers_part *const pollers_parts[];
extern const struct pollers_part pollers_cost, pollers_flood, pollers_forward, pollers_scale,
	pollers_wake, pollers_workers;

/* The first CPU that this process may use makes the events, the second polls. */
void pollers_cpus(struct pollers_plan *plan);

/* What parts share. */

/* The i-th of n in this round, forth or back. */
static inline unsigned pollers_turn(unsigned round, unsigned i, unsigned n)
{
	return round % 2 ? n - 1 - i : i;
}

__attribute__((format(printf, 4, 5))) void pollers_progress(const struct pollers_plan *plan,
							    unsigned done, unsigned total,
							    const char *format, ...);
/* An engine on the polling CPU, whose warnings become notes of the figures. */
struct events_config pollers_events(const struct pollers_plan *plan, struct figures *f,
				    enum poller poller, unsigned napis);

#endif

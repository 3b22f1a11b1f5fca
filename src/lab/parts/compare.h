/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compare: the same request/response traffic through several forwarders, and through one whose
 * poller moves meanwhile. This is what `napier demo` shows.
 *
 *      client ns            switch ns             server ns
 *      eth0 10.77.0.1 ─── a [forwarder] b ─── eth0 10.77.0.2
 *      cable0 10.77.1.1 ───────────────────── cable0 10.77.1.2
 *
 * Forwarders take turns, in one order and then in the reverse (ABBA), so that drift of the machine
 * falls on all alike.
 */
#ifndef LAB_PARTS_COMPARE_H
#define LAB_PARTS_COMPARE_H

#include "lab/cputime.h"
#include "lab/parts/forwarder.h"
#include "lab/histogram.h"
#include "lab/series.h"

enum {
	COMPARE_LOADS = 2,
	COMPARE_KINDS = FORWARDER_NAPIER_THREAD + 1, /* of forwarders, from the first on */
};

struct compare_plan {
	const char *napier; /* path of the program */
	const char *port;   /* kind of napier's ports */
	const char *rundir;
	uint32_t request_size, response_size;
	unsigned flows[COMPARE_LOADS];
	unsigned rounds;       /* an even number is fair; at most SERIES_MAX */
	int64_t warm, measure; /* of each run, ns */
	unsigned switches;     /* of the poller, during one run of the last load */
	int64_t gap;	       /* between two switches, ns */
	/* Called before each run; done of total. NULL: not. */
	void (*progress)(void *arg, const char *what, unsigned done, unsigned total);
	void *arg;
};

/* One forwarder under one load. */
struct compare_cell {
	struct series rate;	    /* transactions a second */
	struct series cpu;	    /* us of CPU a transaction: cputime.h's cost */
	struct series own;	    /* us of CPU a transaction in the forwarder's own threads */
	struct histogram latency;   /* ns, all rounds together */
	uint64_t lost, retransmits; /* over all rounds, warm-up included */
	double others;		    /* most CPU that other programs used in a round, in CPUs */
};

struct compare_switching {
	unsigned done;	       /* switches, each observed */
	int64_t longest, mean; /* ns from asking to observing */
	char port[16];	       /* kind of napier's ports as opened, after any fallback */
	uint64_t counted;      /* by the engine's own counters */
	uint64_t dropped;      /* packets, by the same */
	uint64_t missed;       /* packets that the kernel had no room to give to the engine */
	uint64_t transactions, lost, retransmits;
	int64_t duration; /* ns */
	struct histogram latency;
};

struct compare_result {
	struct compare_cell cell[COMPARE_KINDS][COMPARE_LOADS];
	char skipped[COMPARE_KINDS][ERROR_TEXT_MAX]; /* why there is no such row; empty: there is */
	struct compare_switching switching;
	int64_t duration; /* ns, of everything */
};

/* *out is for free(). At most one at a time in a process; netlab_open's signal rules hold. */
int compare_run(const struct compare_plan *plan, struct compare_result **out, struct error *err);

#endif

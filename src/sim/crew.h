/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many seeds over several processes: a seed that crashes or does not end is a failing seed like any
 * other, and takes nothing with it.
 */
#ifndef SIM_CREW_H
#define SIM_CREW_H

#include <napier/error.h>

#include <sim/run.h>

#define CREW_FAILURES_MAX 32 /* then it stops */
#define CREW_JOBS_MAX 256
#define CREW_TWICE 100 /* one seed in so many runs twice, and has to have one hash */
/*
 * For one seed, which takes milliseconds, some of them seconds; more is a hang. CPU time, as a busy
 * machine says nothing of a seed; of time on the wall ten times as much, for one that sleeps.
 */
#define CREW_SEED_SECONDS 120

struct crew_totals {
	uint64_t seeds, twice;
	uint64_t events, steps, polls, arrived, out, operations, switches;
	uint64_t faults[SIM_FAULTS];
	int64_t virtual_ns;
};

struct crew_failure {
	uint64_t seed;
	char text[256];
};

struct crew_config {
	uint64_t first, count; /* seeds first, first + 1, …; they may wrap */
	unsigned jobs;	       /* processes; 0: one per CPU that this process may use */
	uint32_t failures_max; /* it stops at so many failing seeds; 0: CREW_FAILURES_MAX */
	struct sim_options sim;
	/* NULL, or called several times a second; true: stop. */
	bool (*watch)(void *arg, uint64_t done);
	void *watch_arg;
};

struct crew_result {
	struct crew_totals totals;
	uint32_t failures;
	struct crew_failure failure[CREW_FAILURES_MAX]; /* in the order of seeds */
	bool stopped;					/* before all seeds were run */
	int64_t wall_ns, cpu_ns;
};

/*
 * Returns when all is done or stopped; no process is left. The caller has no threads. -ENOMEM,
 * -EAGAIN and what fork says.
 */
int crew_run(const struct crew_config *config, struct crew_result *result, struct error *err);

#endif

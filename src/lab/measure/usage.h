/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: who used CPU time between two moments, each bit charged once (charge.h tells why), and how
 * they were scheduled; polls and packets; cycles and instructions where the machine counts them.
 *
 * How exact: threads of this process have clocks of their own; another process's are known as of
 * their last tick or switch (some ms at each end of the window); softirq that runs at a moment is
 * on nobody's back yet (some ms again); /proc/stat has hundredths of a second. User and system are
 * told apart by sampling, as the kernel does it.
 */
#ifndef LAB_MEASURE_USAGE_H
#define LAB_MEASURE_USAGE_H

#include <sys/types.h>

#include <jansson.h>

#include <napier/error.h>

#include "lab/engine_child.h"

enum { USAGE_PARTIES_MAX = 8, USAGE_TIDS_MAX = 128, USAGE_INTERFACES_MAX = 4 };

/* One who works for the traffic: some threads, or a whole process. */
struct usage_party {
	char name[24]; /* "client", "server", "napier", "command", "antagonist" */
	pid_t pid;     /* all threads but those named by other parties, of that process and (when it
			* is another than this one) of its descendants; 0: */
	unsigned tids; /* only these, of any process; they exist */
	pid_t tid[USAGE_TIDS_MAX];
};

struct usage_config {
	unsigned parties;
	struct usage_party party[USAGE_PARTIES_MAX];
	unsigned interfaces; /* under test: their polls, and their kernel NAPI threads */
	char interface[USAGE_INTERFACES_MAX][16];
};

struct usage;

/*
 * Kernel's parties are added: "softirq" (wherever it ran; taken out of the threads that it ran on
 * the back of), "kernel threads" (threaded NAPIs; ksoftirqd's own overhead). What cannot be had
 * here (tracepoints, hardware counters) is left out, and a note of it is in the JSON. Antagonists
 * (names that begin so) are no part of the totals. The config is copied.
 */
int usage_open(const struct usage_config *config, struct usage **out, struct error *err);
void usage_begin(struct usage *usage);
/*
 * The end of the window. Best called while its threads still live: what ended ones had is known
 * only by their process, and charged to the party whose threads they were when that is clear.
 */
void usage_stop(struct usage *usage);
/*
 * The "cpu" object of a run (docs/results.md); per-operation figures when operations > 0. Stops,
 * when that was not done. NULL: no memory, or never begun.
 */
json_t *usage_end(struct usage *usage, double operations);
void usage_close(struct usage *usage);

/* Per-operation figures of such an object, where the number is known only later. */
void usage_operations(json_t *cpu, double operations);

/* "napier" of such an object: polls and packets of an engine between two readings. */
void usage_engine_add(json_t *cpu, const struct engine_child_counts *from,
		      const struct engine_child_counts *to);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: who used CPU time between two moments, each bit charged once (charge.h tells why), and how
 * they were scheduled; polls and packets; cycles and instructions where the machine counts them.
 */
#ifndef LAB_MEASURE_USAGE_H
#define LAB_MEASURE_USAGE_H

#include <sys/types.h>

#include <jansson.h>

#include <napier/error.h>

enum { USAGE_PARTIES_MAX = 8, USAGE_TIDS_MAX = 128, USAGE_INTERFACES_MAX = 4 };

/* One who works for the traffic: some threads, or a whole process. */
struct usage_party {
	char name[24]; /* "client", "server", "napier", "command", "antagonist" */
	pid_t pid;     /* all threads of that process but those named by other parties; 0: */
	unsigned tids; /* only these */
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
 * here (tracepoints, hardware counters) is left out, and *note of it is in the JSON.
 */
int usage_open(const struct usage_config *config, struct usage **out, struct error *err);
void usage_begin(struct usage *usage);
/* The "cpu" object of a run (docs/results.md); per-operation figures when operations > 0. */
json_t *usage_end(struct usage *usage, double operations);
void usage_close(struct usage *usage);

#endif

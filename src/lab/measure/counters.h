/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters: the processor's, of some threads and of those that they start, the kernel's part and
 * softirq on their backs included. Many machines, most virtual ones, have none.
 */
#ifndef LAB_MEASURE_COUNTERS_H
#define LAB_MEASURE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct counters;

enum { COUNTERS_EVENTS_MAX = 4 };

struct counters_event {
	uint32_t type; /* PERF_TYPE_… */
	uint64_t config;
};

/* -ENOENT, -EOPNOTSUPP, -EACCES …: the machine has none, or lets nobody see them. */
int counters_open(const struct counters_event *event, unsigned events, struct counters **out);
void counters_close(struct counters *counters);

/* One thread more. One that has ended meanwhile is left out. Else as counters_open. */
int counters_add(struct counters *counters, pid_t thread, unsigned party);
/* None, again. */
void counters_clear(struct counters *counters);
void counters_start(struct counters *counters);
void counters_stop(struct counters *counters);

/*
 * Since the start, of a party's threads. False: one of them was not counted. Where several share
 * the processor's counters they are scaled to the whole time.
 */
bool counters_sum(const struct counters *counters, unsigned party, unsigned event, double *out);

#endif

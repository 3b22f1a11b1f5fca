/* SPDX-License-Identifier: BSD-2-Clause */
/* measured: what valid runs of one system under one workload have measured, metric by metric. */
#ifndef LAB_REPORT_MEASURED_H
#define LAB_REPORT_MEASURED_H

#include "lab/report/results.h"
#include "lab/report/summary.h"

enum { MEASURED_PATH_MAX = RESULTS_PATH_MAX };

struct measured_metric {
	char path[MEASURED_PATH_MAX];
	const char *unit; /* "" : a count */
	bool higher;	  /* is better */
	bool percentile;  /* of a latency whose buckets are beside it */
	bool compared;	  /* with another system's */
	unsigned n;	  /* runs that have it; */
	unsigned missing; /* runs in which it is null */
	double value[INTERVAL_VALUES_MAX];
	json_int_t repeat[INTERVAL_VALUES_MAX];
};

struct measured {
	unsigned metrics, room;
	struct measured_metric *metric; /* in the order in which runs have them */
	bool failed;			/* no memory */
};

/* Adds what a valid run has. Beyond INTERVAL_VALUES_MAX runs: no effect. */
void measured_add(struct measured *measured, const json_t *run);
void measured_free(struct measured *measured);
/* NULL: none has it. */
const struct measured_metric *measured_find(const struct measured *measured, const char *path);

/* A latency of several runs together; kept from one percentile to the next. */
struct measured_pool {
	char latency[MEASURED_PATH_MAX]; /* "": none yet */
	struct histogram all, one;
};

/* Of one percentile's path: from the buckets of all these runs. False: too few, still. */
bool measured_pooled(struct measured_pool *pool, const json_t *runs, const char *path, double *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * results: what a report asks of results (docs/results.md). Anything may be missing, null or of
 * another type: it is then not measured, and nothing here fails.
 */
#ifndef LAB_REPORT_RESULTS_H
#define LAB_REPORT_RESULTS_H

#include <stdbool.h>

#include <jansson.h>

#include "lab/histogram.h"

enum { RESULTS_SYSTEMS_MAX = 64, RESULTS_PATH_MAX = 160 };

/* One metric of one system under one workload, over its valid repeats. */
struct metric {
	double median, low, high;
	unsigned n;   /* repeats; 0: not measured, and the rest says nothing */
	bool pooled;  /* of all repeats together: it has no interval */
	bool lowered; /* lower is better */
};

/* Systems of one scenario under one workload: a table. */
struct group {
	const json_t *workload;
	const char *scenario; /* "" without */
	unsigned systems;
	const json_t *system[RESULTS_SYSTEMS_MAX]; /* that have runs; in the results' order */
	const json_t *base;			   /* one of them, or NULL */
	char rate[RESULTS_PATH_MAX];		   /* "rates.transactions"; "": it has none */
	char latency[RESULTS_PATH_MAX];		   /* "latency.response"; "": it has none */
};

/* One row of such a table. */
struct row {
	struct metric rate, p50, p90, p99, p999, max, cores, cost, polled, gro;
	unsigned valid, invalid, failed; /* runs */
	bool counted;			 /* losses are, as a stream's over TCP are not */
	double lost, of;		 /* over all valid runs */
};

struct results {
	const json_t *json;		      /* the caller's */
	json_t *summary, *comparisons, *runs; /* by key */
	unsigned groups;
	struct group *group;
};

/* 0, or -ENOMEM. The JSON has to outlive it. */
int results_open(const json_t *json, struct results *out);
void results_close(struct results *results);

/* "" when it is no text. */
const char *text_of(const json_t *o, const char *key);
/* Of the program that measured; "unknown" where it was not written down. */
const char *results_build(const json_t *results);
/*
 * By path: "latency.response.p99.9", "steps.18.rates.received_mbit" (an element of an array by its
 * "name" or "key"). NULL: not there, or null.
 */
const json_t *path_get(const json_t *o, const char *path);
bool path_number(const json_t *o, const char *path, double *out);

/*
 * From the summary, or else the median of the runs themselves; of a latency's "max" the longest of
 * all valid runs. False: not measured.
 */
bool results_metric(const struct results *results, const char *system, const char *workload,
		    const char *path, struct metric *out);
/* Its entry of the summary; NULL: there is none. */
const json_t *results_summary(const struct results *results, const char *system,
			      const char *workload, const char *path);
/* With its base; NULL: not compared. */
const json_t *results_comparison(const struct results *results, const char *system,
				 const char *workload, const char *path);
/* Of a system under a workload, an array of runs; may be NULL. */
const json_t *results_runs(const struct results *results, const char *system, const char *workload);
/* The run whose rate is nearest to the median of all. NULL: none is valid. */
const json_t *results_typical(const struct results *results, const char *system,
			      const struct group *group);
/* Of all valid repeats together; false: none has buckets there. */
bool results_latency(const struct results *results, const char *system, const char *workload,
		     const char *path, struct histogram *out);

void results_row(const struct results *results, const struct group *group, const json_t *system,
		 struct row *out);

/* Numbers of cores that two used: so far apart that a comparison is not one of equals. */
bool cores_differ(double a, double b);

bool run_valid(const json_t *run);
/* Seconds between the two moments that its CPU time is of. */
bool run_wall(const json_t *run, double *out);

#endif

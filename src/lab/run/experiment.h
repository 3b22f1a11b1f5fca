/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * experiment: runs a specification: every system under every workload, in rounds forth and back
 * (ABBA), and gathers the results (docs/results.md). A run whose generator was late is taken again,
 * up to twice.
 */
#ifndef LAB_RUN_EXPERIMENT_H
#define LAB_RUN_EXPERIMENT_H

#include "lab/spec/spec.h"

struct experiment_progress {
	unsigned done, total; /* runs */
	const char *system, *workload;
	const char *phase; /* "warm-up", "measures" */
	double left_s;	   /* expected, of all */
	struct load_progress load;
};

struct experiment_plan {
	bool quick;
	const char *napier; /* path of the program */
	const char *rundir;
	const char *host; /* NULL: both sides here */
	uint16_t host_port;
	const json_t *command; /* its arguments, for the results */
	const json_t *set;     /* --set, likewise */
	void (*progress)(void *arg, const struct experiment_progress *progress); /* NULL: not */
	void *arg;
	const volatile int
		*stop; /* Ctrl-C: ends early; what was measured is kept, marked partial */
};

/*
 * *results is for json_decref: whole, but for "summary" and "comparisons" (report/summary.h). One
 * system that cannot be had, or a run that fails, does not end it: it is in the results.
 * -ECANCELED: stopped; *results is there, partial. Everything is restored, however it ends.
 */
int experiment_run(const struct spec *spec, const struct experiment_plan *plan, json_t **results,
		   struct error *err);

/*
 * Undoes what killed runs left: processes, namespaces, settings of the kernel. experiment_run does
 * so first; whatever else measures should, too: those might be in the way, or in the figures.
 */
void experiment_recover(const char *rundir);

#endif

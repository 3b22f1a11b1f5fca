/* SPDX-License-Identifier: BSD-2-Clause */
/* results: gathers what docs/results.md describes, run by run. experiment.c's own. */
#ifndef LAB_RUN_RESULTS_H
#define LAB_RUN_RESULTS_H

#include "lab/run/experiment.h"
#include "lab/run/topology.h"

json_t *results_begin(const struct spec *spec, const struct experiment_plan *plan,
		      const struct topology *topology);
/* What a system told of itself when it ran; the first time, and when it tells more. */
void results_system_fill(json_t *results, unsigned system, const json_t *told);
/*
 * The system cannot run these workloads (bits). True: it can run none, and is said to be skipped;
 * false: it can run others.
 */
bool results_system_skip(json_t *results, const struct spec *spec, unsigned system, uint32_t cannot,
			 const char *why);
/* `run` gets what it has not: who and when, and null for what was not measured. */
void results_run_add(json_t *results, const char *system, const char *workload, unsigned repeat,
		     double started, json_t *run);
__attribute__((format(printf, 2, 3))) void results_note(json_t *results, const char *format, ...);
/* Both sides of it by hand, napier's and, where there are, other tools'. */
json_t *workload_commands(const struct load_config *load, const struct topology *topology,
			  int64_t duration);
void results_end(json_t *results, double duration, bool partial);

#endif

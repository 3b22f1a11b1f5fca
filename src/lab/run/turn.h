/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turn: one run of an experiment: a system is set up, a workload measured over it, all taken down.
 * experiment.c's own.
 */
#ifndef LAB_RUN_TURN_H
#define LAB_RUN_TURN_H

#include "lab/run/experiment.h"
#include "lab/run/system.h"

/* Of the server's side; the background's are above those of the measured load. */
enum { TURN_PORT = 12880, TURN_PORTS = 10 };

struct turn_plan {
	const struct spec *spec;
	const struct experiment_plan *experiment;
	const struct spec_length *length;
	struct topology *topology;
	/* Between two looks at what goes on; load may be NULL. -ECANCELED: ends the turn. */
	int (*look)(void *arg, const char *phase, const struct load_progress *load);
	void *arg;
};

struct turn_result {
	json_t *run;	/* what was measured, without who and when; of one that failed, its error */
	json_t *system; /* settings, commands, placement, as far as it came; for json_decref */
	json_t *peer_environment; /* NULL: not another host; for json_decref */
};

/*
 * -EOPNOTSUPP: the system or workload is not to be had here; -ECANCELED; err says why. All other
 * failures are the run's, and 0 is returned. Whatever it returns, `out` is to be freed.
 */
int turn_run(const struct turn_plan *plan, const struct spec_system *system,
	     const struct spec_workload *workload, struct turn_result *out, struct error *err);
void turn_free(struct turn_result *result);

#endif

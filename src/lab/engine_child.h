/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_child: napier run as a process of the lab's. One at a time, under the lab's engine name.
 */
#ifndef LAB_ENGINE_CHILD_H
#define LAB_ENGINE_CHILD_H

#include "lab/child.h"

#include <control/rundir.h>

struct engine_child {
	struct child child;
	struct rundir dir; /* for control/client.h */
};

#define ENGINE_CHILD_NONE ((struct engine_child){.child = CHILD_NONE})

struct engine_child_config {
	const char *napier;	      /* path of the program */
	const char *rundir;	      /* its run directory is made there */
	struct cpuset cpus;	      /* of all its threads; empty: any */
	int netns;		      /* descriptor of the namespace it runs in; -1: the caller's */
	const char *const *arguments; /* after `napier run`; NULL after the last */
};

/*
 * Returns when its ports are open. -ECHILD: it has ended, and err says with what. Nothing is left
 * when it fails, but *out can be stopped all the same.
 */
int engine_child_start(const struct engine_child_config *config, struct engine_child *out,
		       struct error *err);
/* 0 when it ended well: it failed, or lost packets. err may be NULL. None: no effect. */
int engine_child_stop(struct engine_child *engine, struct error *err);

/* Sets keys of a port's: "poller", "thread". */
int engine_child_set(const struct engine_child *engine, const char *port, const char *key,
		     const char *value, struct error *err);

struct engine_child_counts {
	uint64_t polls; /* that found something */
	uint64_t received;
	uint64_t merged;
};

/* Sums over the NAPIs of one port, or of all (NULL). 0 or a negative errno. */
int engine_child_counts(const struct engine_child *engine, const char *port,
			struct engine_child_counts *out);

#endif

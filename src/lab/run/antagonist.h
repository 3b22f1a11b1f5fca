/* SPDX-License-Identifier: BSD-2-Clause */
/* antagonist: what else runs while a system is measured. */
#ifndef LAB_RUN_ANTAGONIST_H
#define LAB_RUN_ANTAGONIST_H

#include "lab/load/load.h"
#include "lab/spec/spec.h"

struct antagonist;

/*
 * server and client: where a background load's two sides are (its port is other than the measured
 * one's). Works when it returns.
 */
int antagonist_start(const struct spec_antagonist *spec, const struct load_place *server,
		     const struct load_place *client, struct antagonist **out, struct error *err);
unsigned antagonist_threads(const struct antagonist *antagonist, pid_t tids[LOAD_TIDS_MAX]);
/* What it did: CPU seconds of a hog, a background load's counts. */
void antagonist_stop(struct antagonist *antagonist, json_t **result);

#endif

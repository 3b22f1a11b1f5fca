/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record: what a run has started or made that would outlive its kill -9, and is not the knobs' or
 * the namespaces' (those have records of their own): processes of a command, and bridges in
 * namespaces that were given. A file run.<pid> in the run directory, locked while its owner lives.
 *
 * One thread uses it. Functions return 0 or a negative errno and fill err.
 */
#ifndef LAB_RUN_RECORD_H
#define LAB_RUN_RECORD_H

#include <napier/error.h>

/* In the environment of a command's processes, with our process id. */
#define RECORD_MARK "NAPIER_RUN"

/* "command", or "bridge NETNS NAME"; before it is made. */
int record_add(const char *rundir, const char *line, struct error *err);
/* It is gone. The last one takes the file along. */
void record_remove(const char *line);
/* Ends and removes what killed ones left; how many things that were. */
int record_recover(const char *rundir);

#endif

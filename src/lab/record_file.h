/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record_file: what a process has made or changed that would outlive its kill -9, written down
 * before it does so: a file PREFIX.… in the run directory, locked while its owner lives. Whoever
 * starts next finds those of dead ones, and undoes what they say. Who writes what into it, and how
 * that is undone, is netlab's, knobs' and run/record's.
 */
#ifndef LAB_RECORD_FILE_H
#define LAB_RECORD_FILE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <napier/error.h>

/*
 * Makes RUNDIR/NAME, empty and locked, and the directory when it is missing; `path` (size bytes)
 * becomes its whole name. Returns a descriptor, which holds the lock until it is closed, or a
 * negative errno. Removing the file is the caller's.
 */
int record_file_open(const char *rundir, const char *name, char *path, size_t size,
		     struct error *err);

/*
 * Calls undo for each record of a dead owner's whose name begins with the prefix, and removes it;
 * `rest` is its name behind that. Only ours are looked at: others may be able to write to the
 * directory. Returns the sum of what undo returned; without a directory 0.
 */
int record_files_undo(const char *rundir, const char *prefix,
		      int (*undo)(void *arg, FILE *record, const char *rest), void *arg);

/*
 * Of a record whose owner lives, and is not this process; 0: there is none. The name goes on with
 * the owner's process id behind the prefix.
 */
pid_t record_files_other(const char *rundir, const char *prefix);

#endif

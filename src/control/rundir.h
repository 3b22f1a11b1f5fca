/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run directory of an engine: BASE/NAME with
 *     pid       locked by the engine while it runs; its process id as text
 *     control   the socket for requests
 *     counters  struct counters_file
 *     absent    ports whose device is away, one a line: name, spec, why
 *     restore   what the engine has changed outside, and puts back: see port/restore.h
 *     hosted-*  addresses and routes that have to go back, by port: see control/hosted_restore.c
 * The lock (of the open file, F_OFD_SETLK) ends with the process, however that ends, so what lies
 * there without one is stale.
 */
#ifndef CONTROL_RUNDIR_H
#define CONTROL_RUNDIR_H

#include <stdbool.h>
#include <sys/types.h>

#include <napier/error.h>

/* Together with a name in it, short enough for a socket's address (108 bytes). */
#define RUNDIR_PATH_MAX 98

struct rundir {
	char base[RUNDIR_PATH_MAX];
	char path[RUNDIR_PATH_MAX];
	bool base_made;
	int lock; /* -1: closed */
};

/*
 * Fills base and path and touches nothing. base NULL: /run/napier for root, else
 * $XDG_RUNTIME_DIR/napier. -ENOENT without that variable, -ENAMETOOLONG.
 */
int rundir_find(struct rundir *dir, const char *base, const char *name, struct error *err);

/* The engine's name. */
const char *rundir_name(const struct rundir *dir);

/* path/file; `file` is one of the names above. */
void rundir_file(const struct rundir *dir, const char *file, char out[RUNDIR_PATH_MAX + 10]);

/*
 * Makes the directory, locks it, and clears what an engine that was killed left there, but for
 * `restore` and `hosted-*`, which are to be read (engine_restore, hosted_restore).
 * -EADDRINUSE: an engine of that name runs. -EACCES and what mkdir says.
 */
int rundir_lock(struct rundir *dir, struct error *err);

/* Removes what an engine puts there, and gives the lock back. One that is closed: no effect. */
void rundir_close(struct rundir *dir);

/* The process that holds the lock, 0: nobody, or a negative errno. */
pid_t rundir_owner(const struct rundir *dir);

/*
 * Opens the lock of the engine that runs there, to be closed; a negative errno when there is none.
 * rundir_ended() is about that engine then, whoever comes after it: it has given the lock back,
 * which is the last that it does, after its files and directories are gone.
 */
int rundir_watch(const struct rundir *dir);
bool rundir_ended(int watch);

/* Names of the engines that run in the same base, "a, b"; as many as there is room for. */
void rundir_running(const struct rundir *dir, char *text, size_t size);

#endif

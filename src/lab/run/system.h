/* SPDX-License-Identifier: BSD-2-Clause */
/* system: a device under test, set up as a specification's system says, and taken down. */
#ifndef LAB_RUN_SYSTEM_H
#define LAB_RUN_SYSTEM_H

#include "lab/engine_child.h"
#include "lab/load/peer.h"
#include "lab/run/knobs.h"
#include "lab/run/topology.h"

struct system {
	const struct spec_system *spec;
	struct topology *topology;
	const char *napier, *rundir;
	struct knobs *knobs;
	struct engine_child engine; /* napier's, but for handler socket */
	struct child command;
	pid_t group;	   /* of the command's processes; 0: none was started */
	bool bridged;	   /* by a bridge of the kernel's that was made for it */
	json_t *settings;  /* {"key": {"asked", "observed"}} */
	json_t *commands;  /* what was run, or would do the same by hand, in order */
	json_t *placement; /* [{"who", "asked", "by"}] */
};

struct system_site {
	struct topology *topology;
	const char *napier, *rundir;
};

/*
 * Packets pass when it returns, and everything but client and server is placed. Also fills what of
 * `load` and `server` is the system's: options of sockets, the engine's sockets. -EOPNOTSUPP: not
 * to be had here, and err says why: such a system is skipped. Nothing is left when it fails, but
 * what `out` tells of it (settings, commands, placement), which system_forget frees.
 */
int system_start(const struct system_site *site, const struct spec_system *spec, struct system *out,
		 struct load_config *load, struct load_place *server, struct error *err);
/*
 * While it is measured, some times a second: takes what a command prints. -ECHILD: the engine or
 * the command has ended, and err says with what.
 */
int system_tend(struct system *system, struct error *err);
/* An error is of the device's end: it failed, or lost packets. All is as before. */
int system_stop(struct system *system, struct error *err);
void system_forget(struct system *system);

/* What a specification says of `who`; NULL: nothing. */
const struct spec_placement *system_place(const struct spec_system *spec, const char *who);
/* Of the command's processes, all that are there; returns how many. */
unsigned system_command_threads(const struct system *system, pid_t *tids, unsigned max);

/* Of system's own files. */
int system_kernel_start(struct system *system, struct error *err);
void system_kernel_stop(struct system *system);
int system_napier_start(struct system *system, struct load_place *server, struct error *err);
int system_napier_stop(struct system *system, struct error *err);
int system_command_start(struct system *system, struct error *err);
int system_command_stop(struct system *system, struct error *err);
/* A knob of every interface under test, or of the system; told in settings and commands. */
int system_knob(struct system *system, const char *key, const char *value, struct error *err);
void system_set(struct system *system, const char *key, const char *asked, const char *observed);
__attribute__((format(printf, 2, 3))) void system_say(struct system *system, const char *format,
						      ...);
void system_say_knob(struct system *system, const struct topology_end *end, const char *key,
		     const char *value);
void system_say_load(struct system *system, const struct load_config *load);
void system_placed(struct system *system, const struct spec_placement *place, const char *by);

#endif

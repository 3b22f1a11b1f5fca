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
	struct knobs *knobs;
	struct engine_child engine; /* napier's, but for handler socket */
	struct child command;
	json_t *settings; /* {"key": {"asked", "observed"}} */
	json_t *commands; /* what was run, or would do the same by hand, in order */
};

struct system_site {
	struct topology *topology;
	const char *napier, *rundir;
};

/*
 * Packets pass when it returns, and everything but client and server is placed. Also fills what of
 * `place` is the system's: the engine's sockets. -EOPNOTSUPP: not to be had here, and err says why:
 * such a system is skipped. Nothing is left when it fails.
 */
int system_start(const struct system_site *site, const struct spec_system *spec,
		 struct system *out, struct load_config *load, struct load_place *server,
		 struct error *err);
/* An error is of the device's end: it failed, or lost packets. All is as before. */
int system_stop(struct system *system, struct error *err);

#endif

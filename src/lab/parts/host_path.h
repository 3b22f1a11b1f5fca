/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host_path: how the near host's packets come to its network stack, and leave it: the kernel's own
 * way, or through napier's host handler (`napier run --host`).
 */
#ifndef LAB_PARTS_HOST_PATH_H
#define LAB_PARTS_HOST_PATH_H

#include "lab/ends.h"
#include "lab/engine_child.h"

#include <napier/napi.h>

enum host_path_kind { HOST_PATH_KERNEL, HOST_PATH_NAPIER };

struct host_path_config {
	enum host_path_kind kind;
	bool gro;
	bool threaded;	    /* the kernel's: threaded NAPI, which needs GRO on a veth */
	bool uncut;	    /* the kernel's: super-packets cross the cable whole */
	enum poller poller; /* napier's */
};

struct host_path_site {
	struct ends *ends;
	const char *napier, *rundir;
	int cpu; /* of the engine's threads, or of the kernel's NAPI threads */
};

struct host_path {
	const struct host_path_site *site;
	struct host_path_config config;
	struct engine_child engine;
};

/* "napier, thread, GRO" */
void host_path_name(const struct host_path_config *config, char *name, size_t size);
/* Returns when packets pass. -EOPNOTSUPP: it is not to be had here, and err says why. */
int host_path_start(const struct host_path_site *site, const struct host_path_config *config,
		    struct host_path *out, struct error *err);
/* An error is of napier's end: it failed, or lost packets. Then the ends are as before. */
int host_path_stop(struct host_path *path, struct error *err);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interface by which this host is reached: a wire port of the service's, and the TAP that stands
 * for it in the kernel's stack, paired by the handler host.
 *
 * The TAP has the wire's MAC, MTU, carrier and per-interface settings, and, once both receive, its
 * addresses, routes and neighbours. They go back before the wire is closed. What has to be put back
 * is noted in the run directory before anything is changed, so that the next start does it for an
 * engine that was killed, at whatever step.
 *
 * When the wire goes away the TAP stays, without a carrier, until it is back. When somebody deletes
 * the TAP, everything goes back to the wire and begins anew.
 *
 * Calls are the service's, which see: by the control runner, or while that does not run.
 */
#ifndef CONTROL_HOSTED_H
#define CONTROL_HOSTED_H

#include <napier/napier.h>

#include <control/monitor.h>
#include <control/setup.h>
#include <port/ifsysctl.h>
#include <port/netconf.h>
#include <port/netdev.h>

struct service;
struct rundir;

struct hosted {
	struct service *service;
	const struct setup_port *setup;
	struct port *tap;
	struct watch watch; /* of the TAP */
	struct netdev wire; /* closed: away */
	struct netdev tap_dev;
	struct netconf before; /* the wire's, as it was */
	struct netconf kept;   /* the TAP's, before it lost its carrier */
	bool moved;
	char note[192];			    /* the file; empty: not written */
	char addr_gen_mode[IFSYSCTL_VALUE]; /* the wire's; empty: unknown */
};

/* Before the wire is opened: what can be known to be wrong. */
int hosted_check(const struct setup_port *setup, struct error *err);

/*
 * The wire is open, and not yet polled: makes the TAP and pairs the two. With one that is there
 * already (the wire has been away): pairs them again.
 */
int hosted_open(struct service *service, const struct setup_port *setup, struct port *wire,
		struct hosted **hosted, struct error *err);
/* Both are polled: addresses and routes go to the TAP. What cannot be moved is logged. */
void hosted_move(struct hosted *hosted);
/* A link event of either; LINK_GONE of the TAP's is the caller's business. */
void hosted_follow(struct hosted *hosted);
/* The wire is gone, and its port removed. */
void hosted_wire_gone(struct hosted *hosted);
/* Addresses and routes go back to the wire, while both are still polled. */
void hosted_return(struct hosted *hosted);
/* Closes the TAP's port and frees. -ETIMEDOUT: a poll does not end; nothing is freed. */
int hosted_close(struct hosted *hosted);

#define HOSTED_NOTE "hosted-" /* before the port's name: a file of the run directory */

/* There is a note in this one. */
bool hosted_left(const struct rundir *dir);
/*
 * What killed engines have noted, in this run directory and in others beside it that have no owner,
 * is put back.
 */
void hosted_restore(const struct rundir *dir, int64_t now,
		    void (*log)(void *arg, enum log_level level, const char *line), void *arg);

#endif

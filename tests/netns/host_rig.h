/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of `napier run --host`: the kernel's stack of the inner namespace is the host,
 *
 *	10.9.8.1 fd09::1 out -- in0  napier  in0h 10.9.8.2 fd09::2
 */
#ifndef HOST_RIG_H
#define HOST_RIG_H

#include "command_rig.h"

#define PEER "10.9.8.1"
#define HOST "10.9.8.2"
#define HOST_LABELLED "10.9.8.20"
#define PEER6 "fd09::1"
#define HOST6 "fd09::2"

unsigned peer_ns(const struct command_rig *rig);
unsigned host_ns(const struct command_rig *rig);

/* A line for the shell in the host's namespace, which has to succeed; at once, or in some time. */
__attribute__((format(printf, 2, 3))) void host_run(const struct command_rig *rig,
						    const char *format, ...);
void host_eventually(struct command_rig *rig, const char *line);

/* Addresses of both, and at the host one of everything that moves. */
void configure(struct command_rig *rig);
/*
 * All of it as text, with this interface's name for in0, and times left out. To be freed; these two
 * have to be the same, or the test fails.
 */
char *dump(struct command_rig *rig, const char *interface);
void assert_same(const char *was, const char *is);

/* napier run --host, with in0 as port p0 and these options behind. */
void host_start(struct command_rig *rig, struct process *engine, const char *options);

#endif

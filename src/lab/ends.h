/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ends: two hosts with one cable between them. The near one is measured; the far one sends to it,
 * or takes what it sends, and is the kernel's own in every row.
 *
 *        far ns                      near ns
 *      10.78.0.1 far ─────────── near 10.78.0.2
 */
#ifndef LAB_ENDS_H
#define LAB_ENDS_H

#include "lab/netlab.h"

#define ENDS_FAR "10.78.0.1"
#define ENDS_NEAR "10.78.0.2"
#define ENDS_FAR_ADDRESS 0x0a4e0001u
#define ENDS_NEAR_ADDRESS 0x0a4e0002u
#define ENDS_PREFIX 24

/* Locally administered. */
extern const uint8_t ends_far_mac[6], ends_near_mac[6];

struct ends {
	struct netlab *lab;
	unsigned far_ns, near_ns;
	char far[16], near[16]; /* the interfaces, under names that nobody else has */
};

/*
 * Both ends up, with a NAPI of the kernel's each (a veth has one with GRO only), and frames of an
 * MTU's size between them, as on a wire. -EPERM: not without root; err says why.
 */
int ends_open(const char *rundir, struct ends *ends, struct error *err);
void ends_close(struct ends *ends);

/* The kernel's threads of the near interface's NAPIs; -EOPNOTSUPP: there are none. */
int ends_threads_place(const struct ends *ends, int cpu, struct error *err);

/* Descriptors of the namespaces. */
static inline int ends_far_fd(const struct ends *ends)
{
	return ends->lab->namespace[ends->far_ns].fd;
}

static inline int ends_near_fd(const struct ends *ends)
{
	return ends->lab->namespace[ends->near_ns].fd;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program run beside the lab: a forwarder that is measured. It ends with us, however we end, and
 * what it says on standard error is kept for when it fails.
 */
#ifndef LAB_CHILD_H
#define LAB_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include <napier/error.h>
#include <napier/machine.h>

struct child {
	pid_t pid; /* 0: none */
	int out;   /* its standard output */
	int said;  /* a file of its standard error */
	char name[32];
};

#define CHILD_NONE ((struct child){.out = -1, .said = -1})

/*
 * argv[0] is its path; cpus empty: it may run anywhere; netns is the descriptor of the network
 * namespace it runs in, -1: the caller's. Control by one thread, the main one.
 */
int child_start(struct child *child, const char *const argv[], const struct cpuset *cpus, int netns,
		struct error *err);
/* It has ended, and err says with what: its last line on standard error. */
bool child_ended(struct child *child, struct error *err);
/* Waits until it has printed a line. -ETIMEDOUT, or what it died of. */
int child_ready(struct child *child, int64_t timeout, struct error *err);
/*
 * SIGTERM, after 10 s SIGKILL. 0 when it ended well; err (may be NULL) says how it did not. None:
 * no effect.
 */
int child_stop(struct child *child, struct error *err);

#endif

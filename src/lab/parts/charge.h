/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * charge: who worked for the traffic between two moments, each bit of CPU time charged once.
 *
 * A thread's CPU time contains the softirq that ran on its back, whoever it was for: the sender's
 * contains most of what the receiver's interface costs. So softirq is taken out of all threads, and
 * is one sum with the kernel's other helpers: ksoftirqd (its softirq) and the threads of threaded
 * NAPIs. What other programs do is in none of the sums, unless they use the network, too.
 */
#ifndef LAB_PARTS_CHARGE_H
#define LAB_PARTS_CHARGE_H

#include <stdbool.h>
#include <stddef.h>

#include "lab/napi_watch.h"

enum charge_party {
	CHARGE_SENDER,
	CHARGE_RECEIVER, /* the program that gets the data */
	CHARGE_ENGINE,
	CHARGE_KERNEL, /* softirq, wherever it ran, and NAPI threads */
	CHARGE_PARTIES
};

enum { CHARGE_INTERFACES = 4 };

struct charge_config {
	const struct napi_watch *watch;
	pid_t sender, receiver; /* threads of this process; 0: none */
	/* The engine's process; this one: all of its threads but the two above and the caller. */
	pid_t engine;				  /* 0: none */
	const char *interface[CHARGE_INTERFACES]; /* "": the CPUs' backlogs */
	bool threaded; /* their NAPI threads are the kernel's part; looking for them takes some ms
			*/
	bool theirs;   /* of softirq only what worked for those: else all of it */
};

/*
 * Counts and clocks are read one after the other, and are of one moment only when nobody else runs
 * in between: so take() is called until it takes less than 0.1 ms, some times at most, and what it
 * has written when it was quickest is left in `moment` (of `size` bytes, CHARGE_MOMENT_MAX at
 * most).
 */
enum { CHARGE_MOMENT_MAX = 512 };
void charge_moment(void (*take)(void *arg, void *moment), void *arg, void *moment, size_t size);

/* CPU time so far, ns, by party. What it was earlier is subtracted by the caller. */
void charge_read(const struct charge_config *config, int64_t ns[CHARGE_PARTIES]);

/*
 * A softirq that runs while clocks are read is in its thread's already, and on nobody's back yet.
 * On a busy machine that may be more than the thread did in the window: then nobody knows who did
 * what, which is false here.
 */
bool charge_known(const int64_t from[CHARGE_PARTIES], const int64_t to[CHARGE_PARTIES]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napi_watch: what the kernel does for packets and where: how often it polls an interface's NAPIs,
 * what it finds, and how long that takes in softirq; and on whose back softirq ran, since its time
 * counts as that of the thread that it interrupted. By the tracepoints softirq_entry, softirq_exit
 * and napi_poll; exact, where /proc/stat has a sample every tick. Costs some 100 ns a poll and 200
 * ns a softirq while it is open.
 *
 * softirq here is what works for packets: NET_RX, NET_TX, and TASKLET, which TCP sends from.
 */
#ifndef LAB_NAPI_WATCH_H
#define LAB_NAPI_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include <napier/error.h>

struct napi_watch;

struct napi_watched {
	uint64_t polls;	  /* that found something, */
	uint64_t packets; /* and what they found */
	int64_t softirq;  /* ns in softirq of all polls; those of threads are not in it */
};

/*
 * Interfaces by name, in whatever namespace; "" is the CPUs' backlogs (what has no NAPI, and what
 * RPS steers). -EOPNOTSUPP: the kernel does not say what it would take.
 */
int napi_watch_open(const char *const *interfaces, unsigned n, struct napi_watch **out,
		    struct error *err);
/* One that was given at open. */
void napi_watch_read(const struct napi_watch *watch, const char *interface,
		     struct napi_watched *out);
/* ns of softirq so far, of all interfaces and CPUs. */
int64_t napi_watch_softirq(const struct napi_watch *watch);
/* Of that, what ran on this thread's back, of whatever process; ksoftirqd's are its own. */
int64_t napi_watch_back(const struct napi_watch *watch, pid_t thread);

struct napi_back {
	pid_t process, thread; /* ended ones, too; 0: CPUs that idle */
	int64_t softirq;       /* ns */
};

/*
 * All of them, in no order; *out is for free(), whatever is returned. -ENOSPC: more threads than
 * there is room for, so some backs are missing.
 */
int napi_watch_backs(const struct napi_watch *watch, struct napi_back **out, unsigned *n);
void napi_watch_close(struct napi_watch *watch);

#endif

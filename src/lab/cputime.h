/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cputime: what the CPUs did between two moments.
 *
 * Whoever forwards a packet, its work is done in many places: in threads of a process, in kernel
 * threads, in softirq on the back of whatever ran there, the sender included. A forwarder that runs
 * in softirq is charged to the client's and the server's threads, one that runs in a process to
 * that process. So neither "the forwarder's threads" nor "everything but the ends' threads"
 * compares fairly; what does is all that the machine did, ends included, against the same for
 * another forwarder, or for a cable without one. `cost` is that: time in which CPUs were not idle,
 * less what processes used that have nothing to do with the run.
 *
 * The parts (softirq, a process, kernel threads) are to explain, not to compare: softirq is
 * sampled by the tick, and counted in the threads that it interrupted as well.
 */
#ifndef LAB_CPUTIME_H
#define LAB_CPUTIME_H

#include <stdint.h>
#include <sys/types.h>

struct cputime {
	int64_t when; /* CLOCK_MONOTONIC, ns */
	unsigned cpus;
	int64_t idle;	 /* ns summed over CPUs, with iowait and time stolen by a hypervisor */
	int64_t softirq; /* ns, from ticks */
	int64_t others;	 /* CPU time of user processes but ours, and of their ended children */
};

struct cputime_span {
	int64_t duration;
	int64_t busy;	 /* ns of CPU; resolution 10 ms a CPU */
	int64_t softirq; /* of that, sampled */
	int64_t others;
	int64_t cost; /* busy - others, at least 0 */
};

/*
 * Processes in `ours` (n of them) and kernel threads are not others. 0 or a negative errno. Takes
 * a few milliseconds on a machine with many processes; begin samples the clock last, end first.
 */
int cputime_begin(struct cputime *c, const pid_t *ours, unsigned n);
int cputime_end(const struct cputime *begin, const pid_t *ours, unsigned n,
		struct cputime_span *out);

/* CPU time of a process with all its threads, ended ones too; 0 when it is not there. */
int64_t cputime_process(pid_t pid);
/* Of one thread of this process. */
int64_t cputime_thread(pid_t thread);
/* Processes and kernel threads whose name starts so; up to max. */
unsigned cputime_threads_find(const char *prefix, pid_t *pids, unsigned max);

#endif

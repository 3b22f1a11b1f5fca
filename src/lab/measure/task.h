/* SPDX-License-Identifier: BSD-2-Clause */
/* task: a thread, of whatever process, as /proc tells of it. */
#ifndef LAB_MEASURE_TASK_H
#define LAB_MEASURE_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The kernel has names of its own threads that are longer than 15. */
enum { TASK_NAME_MAX = 32 };

struct task {
	pid_t process, thread;
	char name[TASK_NAME_MAX];
	uint64_t start;	       /* clock ticks since boot: another thread may get its number */
	uint64_t user, system; /* clock ticks so far, sampled; softirq on its back is in system */
	int cpu;	       /* where it ran last */
	/* -1: not known here. */
	int64_t voluntary, involuntary; /* context switches */
	int64_t wakeups, migrations;
};

/* False: there is no such thread, and nothing of it is known; start is then 0. */
bool task_read(pid_t process, pid_t thread, struct task *out);

/* Its process; 0: there is no such thread. */
pid_t task_process(pid_t thread);

/*
 * CPU time so far, ns. Of this process exact; of another as of its last tick or context switch,
 * which is what `lagging` gives for all. -1: there is no such thread.
 */
int64_t task_time(pid_t process, pid_t thread, bool lagging);

/* Of a process; how many there are, which may be more than max. */
unsigned task_list(pid_t process, pid_t *out, unsigned max);

struct task_process {
	pid_t process, parent;
	bool kernel; /* a thread of the kernel's */
	char name[TASK_NAME_MAX];
};

/* All that there are, up to max. */
unsigned task_processes(struct task_process *out, unsigned max);
/* Appends those whose parent, or its parent, ... is one of the first n; up to max; the sum. */
unsigned task_descendants(const struct task_process *all, unsigned processes, pid_t *process,
			  unsigned n, unsigned max);

/* A process of the kernel's. */
bool task_is_kernel(pid_t process);

#endif

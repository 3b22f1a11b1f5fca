/* SPDX-License-Identifier: BSD-2-Clause */
/* moment: all that usage knows of one moment. What it was at an earlier one is subtracted there. */
#ifndef LAB_MEASURE_MOMENT_H
#define LAB_MEASURE_MOMENT_H

#include "lab/cputime.h"
#include "lab/measure/stack.h"
#include "lab/measure/task.h"
#include "lab/measure/usage.h"
#include "lab/napi_watch.h"

enum {
	MOMENT_TASKS_MAX = 4096,
	MOMENT_PROCESSES_MAX = 64,
	MOMENT_ALL_MAX = 16384,
	MOMENT_CPUS_MAX = 1024,
	/* Parties beside the configured ones. */
	PARTY_KERNEL = USAGE_PARTIES_MAX, /* its threads */
	PARTY_NONE,			  /* a thread of a party's process, but nobody's */
	PARTIES
};

struct moment_task {
	struct task task;
	unsigned party;
	int64_t ns;   /* CPU time */
	int64_t back; /* of that, softirq */
};

struct moment_process {
	pid_t process;
	unsigned party; /* of threads that are not named */
	/* CPU time of its ended threads, and by how much that may be wrong. -1: not known. */
	int64_t ended, slack;
};

struct moment {
	int64_t when;	 /* CLOCK_MONOTONIC */
	int64_t softirq; /* ns */
	unsigned tasks;	 /* ascending by thread */
	unsigned known;	 /* while it is taken: of those, that are in order already */
	struct moment_task *task;
	unsigned missed;	  /* threads that there was no room for */
	pid_t *listed;		  /* for a while; */
	struct task_process *all; /* of the machine, likewise */
	unsigned alls;
	unsigned processes;
	struct moment_process process[MOMENT_PROCESSES_MAX];
	struct cputime cputime;
	struct cputime_span span; /* of an end: since the begin */
	int64_t others_when;	  /* to read others takes a while, too */
	bool cputime_known;
	unsigned cpus;		       /* up to the highest that is online */
	int64_t idle[MOMENT_CPUS_MAX]; /* ns, of a CPU; -1: it is offline */
	struct napi_watched watched[USAGE_INTERFACES_MAX + 1]; /* the last: backlogs */
	struct stack_counts stack[USAGE_PARTIES_MAX]; /* of a party's first thread's namespace */
	struct napi_back *back;
	unsigned backs;
	bool backs_known;
};

struct moment_site {
	const struct usage_config *config;
	const struct napi_watch *watch;				/* NULL: there is none */
	pid_t party_process[USAGE_PARTIES_MAX][USAGE_TIDS_MAX]; /* of each named thread */
};

int moment_init(struct moment *moment);
void moment_free(struct moment *moment);

/*
 * What takes long to read is read first at the window's begin, and last at its end, so that nothing
 * of it is in the window.
 */
void moment_begin(const struct moment_site *site, struct moment *moment);
void moment_end(const struct moment_site *site, const struct moment *begin, struct moment *moment);

/* NULL: none with this number. */
const struct moment_task *moment_find(const struct moment *moment, pid_t thread);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* account: what was used between two moments, and by whom. */
#ifndef LAB_MEASURE_ACCOUNT_H
#define LAB_MEASURE_ACCOUNT_H

#include <jansson.h>

#include "lab/measure/moment.h"

/* Of a thread, or of a party's together. */
struct account_used {
	bool known;	       /* gross and back are, and net is no less than none */
	int64_t gross, back;   /* ns: by its clock; softirq in that */
	int64_t net;	       /* what it did itself */
	uint64_t user, system; /* clock ticks, of gross */
	int64_t voluntary, involuntary, wakeups, migrations; /* -1: not known */
};

struct account_thread {
	char name[TASK_NAME_MAX];
	pid_t thread; /* 0: of those that ended, together */
	unsigned party;
	int cpu; /* -1: not known */
	struct account_used used;
};

struct account {
	int64_t wall;
	unsigned threads;
	struct account_thread *thread;
	struct account_used party[PARTIES];
	int64_t softirq; /* -1: not known */
	int64_t others;	 /* processes that are nobody's here, and threads that are; -1 */
	int64_t busy;	 /* of all CPUs; -1 */
	int64_t idle;
	int cores_busy; /* CPUs that were so for more than a twentieth; -1 */
};

/* Sentences are added to notes. -ENOMEM. */
int account_make(const struct moment_site *site, const struct moment *begin,
		 const struct moment *end, struct account *out, json_t *notes);
void account_free(struct account *account);

/* Of what it did itself, ns. False: too little to tell. */
bool account_split(const struct account_used *used, int64_t *user, int64_t *system);

/* "client", "kernel threads" */
const char *account_party(const struct usage_config *config, unsigned party);
/* Not for the traffic that is measured. */
bool account_is_antagonist(const struct usage_config *config, unsigned party);

#endif

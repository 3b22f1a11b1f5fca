/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests of the host machine have in common: a machine for each of them, runners, sources that
 * count, and waits for what is to come, whose bound is only against hanging.
 */
#ifndef MACHINE_HOST_RIG_H
#define MACHINE_HOST_RIG_H

#include "test.h"

#include <stdatomic.h>

#include <napier/machine.h>

extern struct machine *machine;

int machine_open(void **state);
int machine_close(void **state);

struct runner *start(const char *name, struct step (*step)(void *arg), void *arg);

/* The time at which a wait has failed: longer than a thread may be kept from its CPU. */
int64_t limit(void);
bool is_set(void *flag);
void await(_Atomic int *flag);
bool seen_waiting(void *runner);
/* What nobody notifies of is looked at again every millisecond. */
void await_seen(bool (*seen)(void *runner), struct runner *r);

/* Steps. One that says what its `struct state` has; */
struct state {
	struct step verdict;
	_Atomic int stepped;
};
struct step step_state(void *state);
/* one of a runner that only takes interrupts, and counts (NULL: it does not); one that never waits.
 */
struct step idle_step(void *steps);
struct step busy_step(void *arg);

/* A source that counts. */
struct source {
	struct irq irq; /* first: the handler finds the rest */
	_Atomic int fired;
	int expected;
	struct runner *_Atomic at; /* who called the handler last */
	_Atomic int inside, overlaps;
};

struct source source_of(int fd);
/* Its handler. */
void count(struct irq *irq);
void await_fired(struct source *s, int expected);
/*
 * The runner has taken what had come before. Twice: the first raise may be seen just after a look
 * at epoll, the second cannot come before the next.
 */
void settle(struct runner *r);
void event_write(int fd);

#endif

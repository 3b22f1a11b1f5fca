/* SPDX-License-Identifier: BSD-2-Clause */
/* A runner for tests: it says what it is told to say, and keeps what it saw. */
#ifndef WORKER_H
#define WORKER_H

#include <napier/machine.h>
#include <napier/machine_virtual.h>

#include "../unit/test.h"

#define USEC NSEC_PER_USEC
#define MSEC NSEC_PER_MSEC

struct worker {
	struct machine *machine;
	struct runner *runner;
	struct step says;	       /* at the end of each step */
	int64_t charge;		       /* by each step */
	void (*act)(struct worker *w); /* NULL: nothing */
	void *arg;
	int steps;
	int64_t began; /* machine_now() at the beginning of the last step */
};

static inline struct step worker_step(void *arg)
{
	struct worker *w = arg;

	assert_ptr_equal(runner_current(), w->runner);
	w->steps++;
	w->began = machine_now(w->machine);
	if (w->act)
		w->act(w);
	machine_charge(w->machine, w->charge);
	return w->says;
}

static inline struct placement fair(int nice)
{
	return (struct placement){.class = RUNNER_FAIR, .level = nice};
}

static inline struct placement fifo(int priority)
{
	return (struct placement){.class = RUNNER_FIFO, .level = priority};
}

static inline struct placement on(unsigned cpu, struct placement p)
{
	cpuset_add(&p.cpus, cpu);
	return p;
}

static inline void worker_start(struct worker *w, struct machine *m, const char *name,
				struct placement placement)
{
	struct runner_config config = {.step = worker_step, .arg = w, .placement = placement};
	struct error err = {0};

	snprintf(config.name, sizeof(config.name), "%s", name);
	w->machine = m;
	assert_int_equal(runner_start(m, &config, &w->runner, &err), 0);
}

static inline struct runner_observation worker_observe(struct worker *w)
{
	struct runner_observation seen;

	runner_observe(w->runner, &seen);
	return seen;
}

static inline void worker_wake(void *arg)
{
	struct worker *w = arg;

	runner_wake(w->runner);
}

static inline struct machine *machine_make(struct virtual_config config)
{
	struct machine *m;

	assert_int_equal(machine_virtual_create(&config, &m), 0);
	return m;
}

static inline struct machine *machine_of(unsigned cpus)
{
	return machine_make((struct virtual_config){.cpus = cpus});
}

#endif

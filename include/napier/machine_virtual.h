/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The virtual machine: N CPUs in virtual time, one seed.
 *
 * Everything runs inside machine_wait(), in the caller's thread: the machine picks the next runner
 * (class, then virtual run time, then insertion number), calls its step, and lets the CPU's time go
 * on by what the step cost: a base cost plus what the step charged. Effects of a step happen at its
 * start; its time can be preempted by a higher class, and then goes on. Interrupt handlers run
 * between steps and cost irq_ns. The seed decides what is free: order among equals, wake-up
 * placement, jitter of costs. Two runs of one seed give the same trace hash.
 */
#ifndef NAPIER_MACHINE_VIRTUAL_H
#define NAPIER_MACHINE_VIRTUAL_H

#include <napier/machine.h>

#pragma GCC visibility push(default)

struct virtual_config {
	unsigned cpus; /* 1..CPU_MAX; 0: 2 */
	uint64_t seed;
	int64_t step_ns;	 /* base cost of a step; 0: 500 */
	int64_t irq_ns;		 /* cost of an interrupt; 0: 1000 */
	int64_t switch_ns;	 /* cost of a context switch; 0: 1000 */
	int64_t tick_ns;	 /* the scheduler's tick; 0: 4 ms */
	unsigned jitter_percent; /* of every cost, drawn from the seed; 0: none */
	/* NULL, or told of every event as one line of text. */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

struct virtual_stats {
	uint64_t events, steps, switches, preemptions, interrupts, migrations;
	uint64_t trace_hash;
};

int machine_virtual_create(const struct virtual_config *config, struct machine **out);
void machine_virtual_stats(struct machine *m, struct virtual_stats *out);

/* Runs until this virtual time. */
void machine_virtual_run(struct machine *m, int64_t until);

/* The next draw of the seed, below n: for scenarios that want to be decided by the same seed. */
uint64_t machine_virtual_draw(struct machine *m, uint64_t n);

/* Wakes a runner, or raises an irq, at a virtual time, without a runner of its own. */
int machine_virtual_call_at(struct machine *m, int64_t when, void (*call)(void *arg), void *arg);

#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The virtual machine: N CPUs in virtual time, one seed.
 *
 * Everything runs inside machine_wait() or machine_virtual_run(), in the caller's thread. Two runs
 * with one seed and the same calls give the same trace hash, on every computer.
 *
 * CPUs. A CPU runs FIFO runners before fair ones: FIFO by level, equals in the order they came;
 * fair ones by virtual run time, which goes on more slowly the lower their nice. A runner that
 * becomes runnable goes to the CPU it was on last if that idles, else to another idle one of its
 * set; a FIFO runner that finds none idle goes where it can run at once. It takes the CPU at once
 * from a lower class or level, and from a fair runner that is ahead of it by more than a quarter of
 * a tick. A tick (only on CPUs where somebody queues) ends the turn of a fair runner that is ahead
 * of another, and moves a runner to a CPU with less to do. A CPU that has nothing to run, or only
 * fair runners while FIFO ones queue elsewhere, takes over what may run on it.
 *
 * Steps. A step is called at the virtual time it begins, and all its effects are visible at once.
 * Then it costs step_ns, plus what it charged, plus jitter; that long its CPU is busy. A preempted
 * runner's cost goes on later, on any CPU. What the step said (wait, yield, ...) is done when its
 * cost has been used up: a wake-up that comes before counts. Inside a step machine_now() is its
 * beginning plus what was charged so far. So it never goes back for one runner; but what another
 * runner, called later, reads can be smaller by up to the cost of one step.
 *
 * Preemption. What is left of a cost goes on when its runner comes back, after another switch. What
 * is left of a switch does not: a runner owes nothing for switches to it that came to nothing.
 *
 * Interrupts. A raised source is called between steps of its runner and costs irq_ns, plus charge
 * and jitter, on that runner's CPU, in its class. A runner looks at its sources before a step,
 * unless the step before said STEP_AGAIN; sources raised while it calls those have to wait for the
 * next look, so handlers cannot keep steps away. There are no descriptors: irq_attach() of a source
 * with fd >= 0 fails with -ENOTSUP.
 *
 * Seed. It decides between idle CPUs, between fair runners of equal virtual run time, the phase of
 * the ticks, jitter, and machine_virtual_draw(). Events at one time happen in the order in which
 * they were asked for.
 *
 * Calls. Control context is: outside of machine_wait(), or inside a call made by
 * machine_virtual_call_at(). machine_wait() and machine_virtual_run() themselves may not be nested;
 * a runner may not be stopped from its own step or handler. These are programming errors and abort.
 * irq_raise(), runner_wake() and the others work from anywhere. The placement of a runner is
 * refused with -EINVAL if it names any CPU that the machine has not.
 */
#ifndef NAPIER_MACHINE_VIRTUAL_H
#define NAPIER_MACHINE_VIRTUAL_H

#include <napier/machine.h>

#pragma GCC visibility push(default)

struct virtual_config {
	unsigned cpus; /* 1..CPU_MAX; 0: 2 */
	uint64_t seed;
	int64_t step_ns;	 /* base cost of a step; 0: 500 */
	int64_t irq_ns;		 /* base cost of an interrupt handler; 0: 1000 */
	int64_t switch_ns;	 /* cost of a switch to another runner, or from idle; 0: 1000 */
	int64_t tick_ns;	 /* the scheduler's tick; 0: 4 ms */
	unsigned jitter_percent; /* every cost grows by 0 to this much, drawn; at most 1000 */
	/*
	 * NULL, or told of every event as one line of text without a newline. A step's line comes
	 * after those of what it did, since its cost is not known before.
	 */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
	/*
	 * NULL, or called after every event, outside of steps: for checks of what always holds. It
	 * asks nothing of the machine that would change it.
	 */
	void (*watch)(void *arg);
	void *watch_arg;
};

/*
 * Faults of the machine, off until machine_virtual_faults_set(). They are drawn from a seed of
 * their own, so a run without them is the same run as before they were there.
 *
 * An interrupt is hardware's when it is raised by a call of machine_virtual_call_at(); those that a
 * step raises (one CPU tells another) always arrive.
 */
enum virtual_fault {
	VIRTUAL_IRQ_LOST,    /* a hardware interrupt does not come; the next one does */
	VIRTUAL_IRQ_LATE,    /* it comes up to late_ns later */
	VIRTUAL_IRQ_TWICE,   /* it comes, and once more within late_ns */
	VIRTUAL_TIMER_LATE,  /* a deadline or an armed source comes up to late_ns later */
	VIRTUAL_START_FAILS, /* runner_start() fails with -EAGAIN */
	VIRTUAL_FAULTS
};

#define VIRTUAL_CHANCE_ONE 65536

struct virtual_faults {
	uint32_t chance[VIRTUAL_FAULTS]; /* of VIRTUAL_CHANCE_ONE, each time; not of START_FAILS */
	uint32_t start_fails;		 /* the so-many-th start from now fails, once; 0: none */
	int64_t late_ns;		 /* at least 1 where something may be late */
	uint64_t seed;
};

struct virtual_stats {
	uint64_t events, steps, switches, preemptions, interrupts, migrations;
	uint64_t trace_hash; /* of all events so far: time, kind, CPU, runner's name, arguments */
	uint64_t faults[VIRTUAL_FAULTS]; /* that were injected */
};

/* -EINVAL: a field out of range; -ENOMEM. Time starts at 0. */
int machine_virtual_create(const struct virtual_config *config, struct machine **out);

/* Any context. */
void machine_virtual_stats(struct machine *m, struct virtual_stats *out);

/*
 * One line for the report of a failed test: seed, time, trace hash, the runner of the last step.
 * Returns what snprintf would.
 */
int machine_virtual_describe(struct machine *m, char *text, size_t size);

/*
 * machine_wait() on this machine. Deadlines are virtual: nothing is later than `deadline` in time,
 * and after -ETIMEDOUT the time is `deadline`. Further errors:
 * -EDEADLK: no deadline, and nothing will ever happen any more.
 * -ELOOP: ten million events without time going on; describe tells of whom.
 */

/*
 * Runs until this virtual time, which it is then; or, with TIME_NEVER, until nothing is left to
 * happen. 0 or -ELOOP.
 */
int machine_virtual_run(struct machine *m, int64_t until);

/* The next draw of the seed, below n > 0: for scenarios to be decided by the same seed. */
uint64_t machine_virtual_draw(struct machine *m, uint64_t n);

/*
 * Any context. Makes this call at a virtual time (now, if that has passed), outside of any runner
 * and without cost: traffic, faults, settings. -ENOMEM.
 */
int machine_virtual_call_at(struct machine *m, int64_t when, void (*call)(void *arg), void *arg);

/*
 * Any context. From now on these faults and no others; NULL: none. What is late already still
 * comes, late. The seed's draws begin anew.
 */
void machine_virtual_faults_set(struct machine *m, const struct virtual_faults *faults);

/* "irq-lost" and so on. */
const char *machine_virtual_fault_name(enum virtual_fault fault);

#pragma GCC visibility pop

#endif

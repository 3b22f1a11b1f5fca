/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the virtual machine. Everything here runs in one thread.
 *
 *   virtual.c          the machine: create, the loop behind machine_wait, the calls of scenarios
 *   virtual_event.c    what happens when: a heap, equal times in the order of insertion
 *   virtual_cpu.c      a CPU: who has it, for how long, tick and preemption
 *   virtual_queue.c    a CPU's queue of runners: their order
 *   virtual_balance.c  which CPU a runner goes to
 *   virtual_runner.c   a runner: its steps and what their verdicts do
 *   virtual_irq.c      interrupt sources
 *   virtual_fault.c    what goes wrong on purpose
 *   virtual_trace.c    events as a hash and as text
 *
 * Two rules keep it free of recursion. Engine code (steps, handlers) is called from one place,
 * runner_begin; while it runs, `executing` is set, and whatever it asks for only changes queues and
 * events. And a CPU changes its runner only in its own event; others ask for that with
 * virtual_cpu_kick.
 */
#ifndef MACHINE_VIRTUAL_H
#define MACHINE_VIRTUAL_H

#include <napier/machine.h>
#include <napier/machine_virtual.h>

#include "machine/random.h"

#define VIRTUAL_SAME_TIME_MAX 10000000 /* events at one instant; more is a livelock */

struct virtual;
struct virtual_runner;

struct virtual_event {
	int64_t time;
	uint64_t order;
	uint32_t index; /* in the heap, from 1; 0: not in it */
	void (*fire)(struct virtual *v, struct virtual_event *e);
};

struct virtual_event_heap {
	struct virtual_event_slot {
		int64_t time;
		uint64_t order;
		struct virtual_event *event;
	} * slots; /* slots[0] is not used */
	uint32_t count, reserved, size;
	uint64_t order;
};

/* Runnable runners of one class on one CPU, the next one first. */
struct virtual_queue {
	struct virtual_runner *first, *last;
	uint32_t count;
};

struct virtual_cpu {
	unsigned index;
	struct virtual_runner *current;
	bool resched;  /* the current one may have to go: look at the next event */
	int64_t since; /* current's time is accounted up to here */
	int64_t vruntime_min;
	struct virtual_queue queue[2]; /* by enum runner_class */
	struct virtual_event event;    /* current's cost is used up, or a kick */
	struct virtual_event tick;     /* only while somebody is queued behind current */
	int64_t tick_phase;
	int64_t idle_time;
};

enum virtual_runner_state { RUNNER_WAITING, RUNNER_QUEUED, RUNNER_RUNNING, RUNNER_ENDED };

/* What a runner's remaining cost is for. */
enum virtual_piece { PIECE_SWITCH, PIECE_STEP, PIECE_IRQ };

struct virtual_runner {
	struct runner base;
	enum virtual_runner_state state;
	struct virtual_cpu *cpu;	    /* queued or running here, or was last; NULL at first */
	struct virtual_runner *next, *prev; /* in the queue */
	struct placement placement;
	uint64_t order; /* among equals in the queue */

	int64_t vruntime;
	int64_t weight;
	int64_t cpu_time;
	int64_t queued_at; /* while it is queued */
	int64_t ready_time;

	enum virtual_piece piece;
	int64_t remaining; /* ns of CPU until the piece is done */
	int64_t switching; /* of these, what the switch to it takes; 0: it is over */
	struct step said;  /* by the last step */
	bool woken;	   /* since the last step began */
	bool between;	   /* interrupts are to be looked at before the next step */

	struct irq *attached;
	struct irq *raised, *raised_last; /* fire when the runner next looks */
	struct irq *due, *due_last;	  /* it has looked: fire before the next step */

	struct virtual_event timer; /* the deadline of a wait */
	uint64_t name_hash;
	struct step (*step)(void *arg);
	void *arg;
};

struct virtual
{
	struct machine base;
	struct virtual_config config;
	struct random random;
	int64_t now;
	struct virtual_event_heap events;
	uint32_t same_time; /* events in a row without time going on */

	struct virtual_cpu *cpus;
	struct cpuset cpus_all, cpus_idle;
	uint32_t queued[2]; /* over all CPUs, by class */
	uint32_t runners;

	struct virtual_runner *executing; /* whose step or handler is being called */
	int64_t charged;		  /* by it; 0 while none is */
	bool looping;

	struct virtual_call *calls; /* not made yet */
	bool calling;		    /* one is being made: interrupts are hardware's */
	struct virtual_faults faults;
	struct random fault_random;
	uint64_t irq_count;
	uint64_t order;
	struct virtual_stats stats;
	char last[RUNNER_NAME_MAX]; /* the runner of the last step or handler */
};

/* A drawn number below n > 0. */
static inline uint64_t virtual_draw(struct virtual *v, uint64_t n)
{
	return random_below(&v->random, n);
}

/* A cost with its jitter; at least 1, so that time goes on. */
int64_t virtual_cost(struct virtual *v, int64_t ns);

/* virtual_event.c. reserve: room for one more event, -ENOMEM; after it, set cannot fail. */
int virtual_event_reserve(struct virtual *v);
void virtual_event_unreserve(struct virtual *v);
void virtual_event_set(struct virtual *v, struct virtual_event *e, int64_t time);
void virtual_event_cancel(struct virtual *v, struct virtual_event *e);
struct virtual_event *virtual_event_first(struct virtual *v); /* NULL: none */

/* virtual_queue.c */
int64_t virtual_weight(int nice);
/* behind: after its equals; otherwise before those that came later. */
void virtual_queue_add(struct virtual *v, struct virtual_cpu *c, struct virtual_runner *r,
		       bool behind);
/* It comes behind its equals when it is put back the next time. */
void virtual_queue_renew(struct virtual *v, struct virtual_runner *r);
void virtual_queue_remove(struct virtual *v, struct virtual_runner *r);
/* Whether a should have the CPU before b, which has it. */
bool virtual_queue_preempts(const struct virtual *v, const struct virtual_runner *a,
			    const struct virtual_runner *b);
/* Runners of the class, the running one included. */
unsigned virtual_queue_load(const struct virtual_cpu *c, enum runner_class class);

/* virtual_balance.c */
bool virtual_balance_allows(const struct virtual_runner *r, const struct virtual_cpu *c);
/* The CPU for a runner that becomes runnable. */
struct virtual_cpu *virtual_balance_select(struct virtual *v, struct virtual_runner *r);
/* c is about to pick: takes over from another CPU what should rather run here. */
void virtual_balance_pull(struct virtual *v, struct virtual_cpu *c);
/* c's tick: gives one runner away if another CPU has less to do. */
void virtual_balance_push(struct virtual *v, struct virtual_cpu *c);
/* Puts a queued runner into another CPU's queue. */
void virtual_balance_move(struct virtual *v, struct virtual_runner *r, struct virtual_cpu *to);

/* virtual_cpu.c */
void virtual_cpu_init(struct virtual *v, struct virtual_cpu *c);
/* Charges the current runner for the time up to now. */
void virtual_cpu_account(struct virtual *v, struct virtual_cpu *c);
/* c chooses its runner again, at this instant. */
void virtual_cpu_kick(struct virtual *v, struct virtual_cpu *c);
/* A runnable runner goes to c. */
void virtual_cpu_add(struct virtual *v, struct virtual_cpu *c, struct virtual_runner *r);
/* The runner leaves the CPU it has. */
void virtual_cpu_leave(struct virtual *v, struct virtual_cpu *c);

/* virtual_runner.c */
int virtual_runner_start(struct machine *m, const struct runner_config *config, struct runner **out,
			 struct error *err);
void virtual_runner_stop(struct runner *runner);
void virtual_runner_wake(struct runner *runner);
int virtual_runner_place(struct runner *runner, const struct placement *placement);
void virtual_runner_observe(struct runner *runner, struct runner_observation *out);
void virtual_runner_usage(struct runner *runner, struct runner_usage *out);
/* Its cost is used up: does what the step said. Returns whether it yields. */
bool virtual_runner_finish(struct virtual *v, struct virtual_runner *r);
/* Calls its next handler or step; its cost is `remaining` then. */
void virtual_runner_begin(struct virtual *v, struct virtual_runner *r);
/* A runner that waits becomes runnable. */
void virtual_runner_unblock(struct virtual *v, struct virtual_runner *r);

/* virtual_irq.c */
int virtual_irq_attach(struct irq *irq, struct runner *runner);
void virtual_irq_detach(struct irq *irq);
void virtual_irq_mask(struct irq *irq);
void virtual_irq_unmask(struct irq *irq);
void virtual_irq_raise(struct irq *irq);
void virtual_irq_arm(struct irq *irq, int64_t when);
/* The runner looks: what has been raised so far becomes due. */
void virtual_irq_look(struct virtual_runner *r);
/* Takes the next due one, or NULL. */
struct irq *virtual_irq_take(struct virtual_runner *r);
uint64_t virtual_irq_number(const struct irq *irq);
/* Raised and not called yet; perhaps masked. */
bool virtual_irq_pending(const struct irq *irq);

/* virtual_fault.c. Whether it happens now: then it is counted and traced. r may be NULL. */
bool virtual_fault(struct virtual *v, enum virtual_fault fault, const struct virtual_runner *r);
/* How late: 1 to late_ns. */
int64_t virtual_fault_late(struct virtual *v);
/* When a timer for this time comes. */
int64_t virtual_fault_timer(struct virtual *v, const struct virtual_runner *r, int64_t when);

/* virtual_trace.c. What a and b mean is said per kind there. c, r may be NULL. */
enum virtual_trace_kind {
	TRACE_START,
	TRACE_STOP,
	TRACE_PLACE,
	TRACE_WAKE,
	TRACE_TIMEOUT,
	TRACE_RAISE,
	TRACE_IRQ,
	TRACE_STEP,
	TRACE_WAIT,
	TRACE_END,
	TRACE_SWITCH,
	TRACE_PREEMPT,
	TRACE_MOVE,
	TRACE_IDLE,
	TRACE_TICK,
	TRACE_CALL,
	TRACE_FAULT,
	TRACE_KINDS,
};
uint64_t virtual_trace_name(const char *name);
void virtual_trace(struct virtual *v, enum virtual_trace_kind kind, const struct virtual_cpu *c,
		   const struct virtual_runner *r, int64_t a, int64_t b);

#endif

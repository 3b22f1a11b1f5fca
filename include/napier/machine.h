/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A machine runs runners: on what, and in what order.
 *
 * There are two. machine_host_create() gives POSIX threads, epoll and the monotonic clock;
 * machine_virtual_create() (machine_virtual.h) gives virtual CPUs in virtual time, decided by a
 * seed. The engine is the same code on both: nothing outside src/machine calls pthread, epoll or
 * a clock.
 *
 * A runner is a step function. Each call does one bounded piece of work and says what comes next.
 * These calls are made per wake-up or per poll, never per packet.
 *
 * Times are nanoseconds of the machine's monotonic clock.
 */
#ifndef NAPIER_MACHINE_H
#define NAPIER_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <napier/error.h>

#pragma GCC visibility push(default)

#define NSEC_PER_USEC INT64_C(1000)
#define NSEC_PER_MSEC INT64_C(1000000)
#define NSEC_PER_SEC INT64_C(1000000000)
#define TIME_NEVER INT64_MAX

#define CPU_MAX 1024
#define RUNNER_NAME_MAX 16 /* with the final NUL: what the kernel keeps of a thread's name */

struct machine;
struct runner;

struct cpuset {
	uint64_t bits[CPU_MAX / 64]; /* no bit set: any CPU */
};

bool cpuset_empty(const struct cpuset *s);
bool cpuset_has(const struct cpuset *s, unsigned cpu);
void cpuset_add(struct cpuset *s, unsigned cpu); /* cpu < CPU_MAX */
unsigned cpuset_count(const struct cpuset *s);
/* The smallest member that is >= cpu, or CPU_MAX. */
unsigned cpuset_next(const struct cpuset *s, unsigned cpu);
/* "0-3,8": -EINVAL for other text, -ERANGE for a CPU >= CPU_MAX. */
int cpuset_parse(const char *text, struct cpuset *s);
/* Writes the same form; returns what snprintf would. The empty set gives "". */
int cpuset_format(const struct cpuset *s, char *text, size_t size);

enum runner_class {
	RUNNER_FAIR, /* SCHED_OTHER: level is nice, -20..19 */
	RUNNER_FIFO, /* SCHED_FIFO: level is priority, 1..99 */
};

struct placement {
	struct cpuset cpus;
	enum runner_class class;
	int level;
};

/* What a runner's step says comes next. */
enum verdict {
	STEP_AGAIN, /* more work: call again at once (interrupts are not looked at in between) */
	STEP_YIELD, /* more work, but take interrupts and let equals run first */
	STEP_WAIT,  /* until a wake-up, an interrupt or the deadline */
	STEP_EXIT,  /* the runner ends; runner_stop still has to be called */
};

struct step {
	enum verdict verdict;
	int64_t deadline; /* with STEP_WAIT; TIME_NEVER for none */
};

#define STEP(v) ((struct step){.verdict = (v), .deadline = TIME_NEVER})
#define STEP_UNTIL(when) ((struct step){.verdict = STEP_WAIT, .deadline = (when)})

struct runner_config {
	char name[RUNNER_NAME_MAX];
	struct step (*step)(void *arg);
	void *arg;
	struct placement placement;
};

/* What can be seen of a runner from outside: asked and observed may differ (taskset, chrt). */
struct runner_observation {
	pid_t tid;    /* 0 on the virtual machine */
	unsigned cpu; /* the one it ran on last */
	struct placement placement;
	int64_t cpu_time; /* ns of CPU used since start */
	bool waiting;
};

/* The same, for those who look often. */
struct runner_usage {
	int64_t cpu_time;   /* as above */
	int64_t ready_time; /* ns that it could have run, but waited for a CPU; 0: not known */
};

/*
 * An interrupt source. It is attached to one runner; its handler is called there, between two
 * steps, never inside one. It fires
 *   - with fd >= 0: each time the descriptor becomes readable (edge-triggered: one call may stand
 *     for many edges, and data that was there at attach, move or unmask counts as an edge);
 *   - after irq_raise(), from any context;
 *   - when the time given to irq_arm() has come.
 * A masked source remembers one raise or timer and fires at unmask. The owner of the memory calls
 * irq_detach() before freeing it; after that returns, the handler is not running and is not
 * called again.
 */
struct irq {
	int fd; /* -1: raised and armed only. Set before irq_attach, constant while attached */
	void (*handler)(struct irq *irq);
	struct runner *_Atomic runner; /* attached here; NULL: detached. The machine writes it */
	/* The rest belongs to the machine. */
	_Atomic uint32_t state;
	_Atomic int64_t deadline;
	struct irq *next_raised;
	struct irq *next, *prev;
	void *machine_private;
};

#define IRQ_INIT(descriptor, function)                                                             \
	(struct irq)                                                                               \
	{                                                                                          \
		.fd = (descriptor), .handler = (function), .deadline = TIME_NEVER                  \
	}

struct machine_ops {
	const char *name;
	int64_t (*now)(struct machine *m);
	void (*cpus)(struct machine *m, struct cpuset *out);
	int (*runner_start)(struct machine *m, const struct runner_config *config,
			    struct runner **out, struct error *err);
	void (*runner_stop)(struct runner *r);
	void (*runner_wake)(struct runner *r);
	int (*runner_place)(struct runner *r, const struct placement *placement);
	void (*runner_observe)(struct runner *r, struct runner_observation *out);
	void (*runner_usage)(struct runner *r, struct runner_usage *out);
	void (*idle_times)(struct machine *m, int64_t *idle, unsigned n);
	int (*irq_attach)(struct irq *irq, struct runner *r);
	void (*irq_detach)(struct irq *irq);
	void (*irq_mask)(struct irq *irq);
	void (*irq_unmask)(struct irq *irq);
	void (*irq_raise)(struct irq *irq);
	void (*irq_arm)(struct irq *irq, int64_t when);
	int (*wait)(struct machine *m, bool (*done)(void *arg), void *arg, int64_t deadline);
	void (*notify)(struct machine *m);
	void (*quiesce)(struct machine *m);
	bool (*enter)(struct machine *m);
	void (*leave)(struct machine *m);
	void (*pass)(struct machine *m);
	pid_t (*tid)(struct machine *m);
	void (*charge)(struct machine *m, int64_t ns);
	int64_t (*epoch)(struct machine *m);
	void (*entropy)(struct machine *m, void *out, size_t size);
	void (*destroy)(struct machine *m);
};

struct machine {
	const struct machine_ops *ops;
};

/* Both parts of struct runner that others may read; the machine's own struct starts with it. */
struct runner {
	struct machine *machine;
	char name[RUNNER_NAME_MAX];
};

/* The runner whose step or interrupt handler is being executed by the caller, or NULL. */
struct runner *runner_current(void);

/* *out is destroyed with machine_destroy. -ENOMEM, or what epoll and eventfd say. */
int machine_host_create(struct machine **out, struct error *err);

/* All runners have been stopped. */
static inline void machine_destroy(struct machine *m)
{
	m->ops->destroy(m);
}

/* Any context. On the virtual machine the time inside a step includes what was charged so far. */
static inline int64_t machine_now(struct machine *m)
{
	return m->ops->now(m);
}

/* Control context. The CPUs that runners may be placed on (on the host: this process's affinity).
 */
static inline void machine_cpus(struct machine *m, struct cpuset *out)
{
	m->ops->cpus(m, out);
}

/*
 * Control context. Starts a runner; its first step comes by itself. A placement that the caller
 * has no right to (SCHED_FIFO, negative nice) or a CPU that is not there fails with -EPERM or
 * -EINVAL and a text in err; nothing is left running. Fair at level 0 is always granted: in a
 * process that itself runs at a worse nice, and may not better it, that one is kept.
 */
static inline int runner_start(struct machine *m, const struct runner_config *config,
			       struct runner **out, struct error *err)
{
	return m->ops->runner_start(m, config, out, err);
}

/*
 * Control context, or a step of another runner. Ends the runner after its current step and frees
 * it; sources still attached to it are detached.
 */
static inline void runner_stop(struct runner *r)
{
	r->machine->ops->runner_stop(r);
}

/*
 * Any context. The runner takes at least one step after this call. One that comes between a
 * step's decision to wait and the wait is not lost. What the caller wrote before is visible to
 * that step.
 */
static inline void runner_wake(struct runner *r)
{
	r->machine->ops->runner_wake(r);
}

/* Control context. -EPERM, -EINVAL (no such CPU); the old placement stays. */
static inline int runner_place(struct runner *r, const struct placement *placement)
{
	return r->machine->ops->runner_place(r, placement);
}

/* Control context. */
static inline void runner_observe(struct runner *r, struct runner_observation *out)
{
	r->machine->ops->runner_observe(r, out);
}

/* Control context, or a step of another runner. */
static inline void runner_usage(struct runner *r, struct runner_usage *out)
{
	r->machine->ops->runner_usage(r, out);
}

/*
 * Any context. How long each of the CPUs 0..n-1 has had nothing to run so far, ns, whoever runs
 * there; on the host in steps of 10 ms. 0 where that is not known.
 */
static inline void machine_idle_times(struct machine *m, int64_t *idle, unsigned n)
{
	m->ops->idle_times(m, idle, n);
}

/*
 * Any context, one caller at a time per source; a handler may move only sources of its own runner.
 * Attaches, or moves from the runner it is attached to, when that is not inside a handler (so the
 * caller holds no lock that a handler takes); masks and timers stay as they are. -ENOMEM, -ENOSPC
 * (epoll's limit), -EPERM (a descriptor that cannot be waited for); then it stays where it was.
 */
static inline int irq_attach(struct irq *irq, struct runner *r)
{
	return r->machine->ops->irq_attach(irq, r);
}

/*
 * Control context, or a step or handler of the runner it is attached to; the caller holds no lock
 * that a handler takes. One that is not attached: no effect.
 */
static inline void irq_detach(struct irq *irq)
{
	struct runner *r = irq->runner;

	if (r)
		r->machine->ops->irq_detach(irq);
}

/* Any context, one caller at a time per source. Masking does not wait for a running handler. */
static inline void irq_mask(struct irq *irq)
{
	struct runner *r = irq->runner;

	if (r)
		r->machine->ops->irq_mask(irq);
}

static inline void irq_unmask(struct irq *irq)
{
	struct runner *r = irq->runner;

	if (r)
		r->machine->ops->irq_unmask(irq);
}

/* Any context, any number of callers. One that is not attached: no effect. */
static inline void irq_raise(struct irq *irq)
{
	struct runner *r = irq->runner;

	if (r)
		r->machine->ops->irq_raise(irq);
}

/* As irq_mask. Fires once at `when` (or at once if that has passed); TIME_NEVER disarms. */
static inline void irq_arm(struct irq *irq, int64_t when)
{
	struct runner *r = irq->runner;

	if (r)
		r->machine->ops->irq_arm(irq, when);
}

/*
 * Control context. Returns 0 once done(arg) is true, or -ETIMEDOUT at the deadline, which is a time
 * of machine_now() or TIME_NEVER; done is not NULL. On the host the caller sleeps between looks: it
 * looks at once after a machine_notify(), and unasked after a millisecond and then less and less
 * often, at last four times a second. On the virtual machine this is what runs the runners; there
 * it can also fail with -EDEADLK and -ELOOP (machine_virtual.h).
 */
static inline int machine_wait(struct machine *m, bool (*done)(void *arg), void *arg,
			       int64_t deadline)
{
	return m->ops->wait(m, done, arg, deadline);
}

/* Any context: something that a machine_wait() may look at has changed. */
static inline void machine_notify(struct machine *m)
{
	m->ops->notify(m);
}

/*
 * Control context, or a runner's step, whose runner then counts as between two steps. Returns when
 * every runner, and every thread that has entered, has been between two steps at least once since
 * the call, so that what it could still have seen may be freed. A waiting runner counts as between
 * steps. This is RCU (quiescent states at step boundaries), under saturation too.
 */
static inline void machine_quiesce(struct machine *m)
{
	m->ops->quiesce(m);
}

/*
 * A thread that is no runner takes part in machine_quiesce() from enter to leave: it counts as
 * inside a step. False: it does so already, as a runner in its step does, and leave is not called.
 * It may end without more ado while it is outside.
 */
static inline bool machine_enter(struct machine *m)
{
	return m->ops->enter && m->ops->enter(m);
}

static inline void machine_leave(struct machine *m)
{
	m->ops->leave(m);
}

/* From a step, or between enter and leave: the caller counts as between two steps, now. */
static inline void machine_pass(struct machine *m)
{
	if (m->ops->pass)
		m->ops->pass(m);
}

/* The calling thread; 0 on the virtual machine. */
static inline pid_t machine_tid(struct machine *m)
{
	return m->ops->tid ? m->ops->tid(m) : 0;
}

/* From a step: this work takes ns of CPU. Only the virtual machine has to be told. */
static inline void machine_charge(struct machine *m, int64_t ns)
{
	if (m->ops->charge)
		m->ops->charge(m, ns);
}

/* Control context. Bytes that nobody can guess; on the virtual machine they follow from its seed.
 */
static inline void machine_entropy(struct machine *m, void *out, size_t size)
{
	m->ops->entropy(m, out, size);
}

/* Control context. From 1970 to the machine's time 0, ns: 0 on the virtual machine. */
static inline int64_t machine_epoch(struct machine *m)
{
	return m->ops->epoch ? m->ops->epoch(m) : 0;
}

#pragma GCC visibility pop

#endif

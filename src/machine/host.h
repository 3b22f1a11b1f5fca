/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host machine's own view: POSIX threads, epoll, eventfd, futex, the monotonic clock.
 *
 *	host.c		the machine and its table of operations
 *	host_runner.c	a runner's thread: start, loop, wake, sleep, stop
 *	host_irq.c	interrupt sources
 *	host_timer.c	their deadlines
 *	host_place.c	where and at what class a thread runs
 *	host_wait.c	control's waiting
 *
 * Lock order: host_runner.handlers, then host_runner.lock of one or two runners (by address),
 * then host.lock. All of them inherit priority.
 */
#ifndef MACHINE_HOST_H
#define MACHINE_HOST_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>

#include <napier/machine.h>

#include "machine/lock.h"

enum {
	HOST_EVENTS_MAX = 32, /* taken from epoll at a time */
	HOST_DUE_MAX = 128,   /* handlers called in a round; the rest in the next */
	HOST_GROUPS = 32,     /* of raised sources, 64 in each; then from the first again */
};

/* In epoll's data: a source's slot and generation, or the runner's own eventfd. */
#define HOST_EVENT_WAKE UINT64_MAX

struct host {
	struct machine base;
	struct cpuset cpus; /* the process's affinity when the machine was made */
	struct lock lock;   /* parked, running */
	struct host_runner *parked;
	unsigned running;
	_Atomic uint32_t sequence; /* eventcount of machine_wait */
	_Atomic uint32_t waiters;
	char grace; /* its address stands for the grace periods that TSan cannot see */
};

/*
 * What others have told a runner, and whether it sleeps, in one word. All who write it use atomic
 * read-modify-writes with sequential consistency, so between a waker's and the sleeper's there is
 * one order: either the runner sees the bit when it tries to set SLEEPING (and does not sleep), or
 * the waker sees SLEEPING (and writes the eventfd). No pair of variables, hence no fence to pair.
 * The same with DOZING, and there the kernel compares once more; a first descriptor comes with a
 * signal, so that who dozes goes over to epoll.
 * The waker's is also the release, and the runner's the acquire, by which the next step sees what
 * was written before the wake-up.
 */
enum host_signal {
	SIGNAL_WOKEN = 1 << 0,	  /* take a step */
	SIGNAL_TIMER = 1 << 1,	  /* a deadline came closer */
	SIGNAL_STOP = 1 << 2,	  /* stays set */
	SIGNAL_RAISED = 1 << 3,	  /* some attached source is pending, */
	SIGNAL_RAISED_SHIFT = 32, /* and from here on a bit for each group that has some */
	/* Set by the runner, gone once it has looked again: how others wake it. */
	SIGNAL_SLEEPING = 1 << 4, /* in epoll: by the eventfd */
	SIGNAL_DOZING = 1 << 5,	  /* on this word's lower half: no source has a descriptor */
};

/* In irq.state. */
enum host_irq_state {
	IRQ_PENDING = 1 << 0, /* has to fire when it is not masked */
	IRQ_MASKED = 1 << 1,
	IRQ_ARMED = 1 << 2, /* among the runner's armed ones; under its lock */
	IRQ_FLAGS = 7,
	IRQ_SLOT_SHIFT = 3, /* the rest: its slot in the runner it is attached to */
};

struct host_slot {
	struct irq *irq; /* NULL: free */
	uint32_t generation;
};

/*
 * A runner that was stopped is parked with its descriptors and locks, and used again: irq_raise()
 * reads irq.runner and signals it without a lock, so it can come late to a runner that the source
 * has left and that has ended. It then finds memory and descriptors of the same kind, and all it
 * does is wake somebody for nothing.
 */
struct host_runner {
	struct runner base;
	int epoll;
	int event; /* edge-triggered in epoll: written, never read */
	struct host_runner *next_parked;

	/* Others write here. */
	_Alignas(64) _Atomic uint64_t signal;
	_Alignas(64) _Atomic uint64_t raised[HOST_GROUPS]; /* a bit a slot: look there */

	/* Its own thread's. */
	_Alignas(64) uint64_t self; /* signals to itself: no atomic needed */
	bool dispatching;	    /* holds `handlers` */
	struct step (*step)(void *arg);
	void *arg;
	unsigned due_count;
	unsigned first_raised;	       /* the slot to start at */
	struct irq *due[HOST_DUE_MAX]; /* under `handlers` */
	struct epoll_event events[HOST_EVENTS_MAX];

	_Atomic bool fifo;	      /* class, as last placed */
	_Atomic unsigned descriptors; /* attached sources that have one */
	_Atomic int64_t earliest;     /* the first armed deadline; written under the lock */

	/*
	 * Held while handlers are called: who detaches a source or moves it away takes it first,
	 * and so waits for them.
	 */
	struct lock handlers;
	struct lock lock;	 /* the rest, and the machine's part of attached sources */
	struct host_slot *slots; /* the attached sources */
	unsigned slots_size, slots_used;
	unsigned slots_full; /* there is no free one before this */
	uint32_t generation;
	struct irq **armed; /* a heap, the first deadline first; as much room as there are slots */
	unsigned armed_count;

	pthread_t thread;
	_Atomic pid_t tid; /* 0: ended */
	_Atomic int64_t cpu_time;
	_Atomic unsigned cpu;	    /* at its end */
	struct placement placement; /* as last placed; control */
	struct host_start *start;
};

static inline struct host *host_of(struct machine *m)
{
	return (struct host *)m;
}

static inline struct host_runner *host_runner_of(struct runner *r)
{
	return (struct host_runner *)r;
}

/* host.c */
int64_t host_now(struct machine *m);
/*
 * A thread registered with QSBR that is about to block counts as between steps. Returns whether it
 * was online, for host_online.
 */
bool host_offline(struct host *h);
void host_online(struct host *h, bool was);
/* Between two steps. */
void host_quiescent(struct host *h);

/* host_runner.c */
int host_runner_start(struct machine *m, const struct runner_config *config, struct runner **out,
		      struct error *err);
void host_runner_stop(struct runner *runner);
void host_runner_wake(struct runner *runner);
void host_runner_signal(struct host_runner *r, uint64_t bits);
void host_runner_free(struct host_runner *r);

/* host_irq.c */
int host_irq_attach(struct irq *irq, struct runner *runner);
void host_irq_detach(struct irq *irq);
void host_irq_mask(struct irq *irq);
void host_irq_unmask(struct irq *irq);
void host_irq_raise(struct irq *irq);
void host_irq_arm(struct irq *irq, int64_t when);
/*
 * In the runner's thread: calls the handlers that are due, after `events` came from epoll and
 * `signals` from others. Returns how many.
 */
unsigned host_irq_dispatch(struct host_runner *r, int events, uint64_t signals);
/* Nothing else uses the runner any more. */
void host_irq_detach_all(struct host_runner *r);

/* host_timer.c: under the runner's lock. */
/* Sets the deadline; true if the runner may sleep too long now. The runner has a slot for it. */
bool host_timer_arm(struct host_runner *r, struct irq *irq, int64_t when);
/* One that is not armed: no effect. */
void host_timer_disarm(struct host_runner *r, struct irq *irq);

/* host_place.c */
int host_cpus_read(pid_t tid, struct cpuset *out);
void host_cpus(struct machine *m, struct cpuset *out);
/* Places the thread tid, or leaves it as it was and says why in err. */
int host_place(struct host_runner *r, pid_t tid, const struct placement *placement,
	       struct error *err);
int host_runner_place(struct runner *runner, const struct placement *placement);
void host_runner_observe(struct runner *runner, struct runner_observation *out);
void host_runner_usage(struct runner *runner, struct runner_usage *out);
void host_idle_times(struct machine *m, int64_t *idle, unsigned n);

/* host_wait.c */
int host_wait(struct machine *m, bool (*done)(void *arg), void *arg, int64_t deadline);
void host_notify(struct machine *m);

#endif

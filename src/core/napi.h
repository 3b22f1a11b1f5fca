/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a NAPI, for the core and the pollers. The protocol is in napier/napi.h.
 */
#ifndef CORE_NAPI_H
#define CORE_NAPI_H

#include <napier/napi.h>

#include <machine/lock.h>

struct poller_thread;
struct port;
struct softnet;
struct steer;

/* A switch that control has begun and not yet ended. Control only, engine lock held. */
struct napi_change {
	bool pending;
	bool prepared; /* there is something to retire, of the new one or the old one */
	enum poller before, wish;
	struct softnet *from, *to;
	int64_t start;
};

struct napi {
	_Atomic uint32_t state; /* enum napi_state */
	_Atomic uint32_t weight;
	struct engine *engine;
	struct queue_record *record;

	/* Polls up to budget packets; less than budget means: complete me. The token's holder. */
	uint32_t (*poll)(struct napi *napi, struct context *context, uint32_t budget);
	struct port_queue *queue;
	struct steer *steer;	/* NULL: what it receives is handled here. Set while disabled */
	struct cpuset rps_cpus; /* as `steer` says; control only */
	uint32_t rps_flow_cnt;
	bool paused;		    /* control: disabled for the time of one change */
	struct gro *gro;	    /* NULL: nothing is received here */
	_Atomic uint32_t gro_types; /* what it merges, enum gro_type; control sets it */
	bool merged;		    /* control: until lately, and may hold packets since */

	/* The token's holder only. */
	uint32_t cap; /* packets a poll while they are so slow that a round's time would not do; 0:
			 none */
	bool irq_masked;
	bool holds;		 /* GRO has packets, since the last poll */
	bool full;		 /* the last poll may have left packets */
	int64_t scheduled_at;	 /* its next poll is the first after that; 0: it is not */
	struct napi *next;	 /* in a softirq poll list or inbox */
	struct softnet *softnet; /* of its engine CPU: whose softirq polls it */

	/* Wake sources: core/wake_source.h. */
	struct irq timer;
	struct lock timer_lock;
	_Atomic int64_t timer_at;    /* a poll is wanted then; TIME_NEVER: not by the timer */
	_Atomic int64_t timer_armed; /* the source's deadline; written under the lock */
	uint32_t deferrals; /* the holder: polls by the timer until interrupts are on again */
	_Atomic uint32_t defer_hard_irqs;			/* napi_defer_hard_irqs */
	_Atomic int64_t gro_flush_timeout, irq_suspend_timeout; /* ns; 0: none */

	struct napi_change change;
	int switch_error; /* written by the holder before it clears SWITCH without switching */

	_Atomic int64_t idle_suspend; /* ns, busy-poll: may rest after so long; 0: never */

	struct automatic_napi *automatic; /* while poller auto is asked for; control only */
	struct poller_thread *thread;	  /* while its poller is or becomes `thread` */

	/* Watchdog's memory: control only. */
	uint64_t seen_polls;
	bool seen_scheduled;
	bool stuck;
};

/*
 * How a poller takes NAPIs. prepare and retire: control context, serialised. The others: holder of
 * the token, any context.
 */
struct poller_ops {
	const char *name;
	const char *owner; /* who polls, where that is not the runner below; else NULL */
	/* What prepare makes belongs to the softnet: it is made for a move to another one, too. */
	bool per_cpu;
	/* Makes what polling this NAPI there needs; nothing changes for it yet. */
	int (*prepare)(struct napi *napi, struct softnet *softnet, struct error *err);
	/* The runner that its interrupts go to. */
	struct runner *(*runner)(struct napi *napi);
	/* Takes the token. Must come after everything else: it may be polled before this returns.
	 */
	void (*dispatch)(struct napi *napi);
	/* It is another's now, or disabled for good: ends what prepare made. */
	void (*retire)(struct napi *napi, struct softnet *softnet);
};

extern const struct poller_ops softirq_poller, thread_poller, workqueue_poller, busy_poller;
extern const struct poller_ops app_poller;

const struct poller_ops *poller_ops(enum poller poller);

/* Any context. -EINVAL: no such poller. -EOPNOTSUPP: it cannot poll ports of this kind. */
int port_poller_check(const struct port *port, enum poller poller, struct error *err);

/* Control context. busy-poll rests after so long without a packet; 0: never. */
void napi_idle_suspend_set(struct napi *napi, uint32_t usecs);

/* Control context. The NAPI starts disabled, with its interrupts attached and masked. */
int napi_init(struct napi *napi, enum poller poller, struct error *err);
/* Control context; it is disabled. Detaches its interrupts and retires its poller. */
void napi_end(struct napi *napi);

/*
 * The one way in, for every poller. The caller holds the token. Polls once, sends the kicks,
 * counts; completes or gives the token away when it is due. Returns true while the caller still
 * holds the token and should poll again; after false the caller must not touch the NAPI.
 * context->now is the time after the poll.
 */
bool napi_poll(struct napi *napi, struct context *context, uint32_t *work);

/*
 * The holder does what control asks (switch, disable), if anything. What GRO holds goes on before
 * that. True: the token is gone and the caller must not touch the NAPI.
 */
bool napi_release(struct napi *napi, struct context *context);

/*
 * The holder, between polls: nothing more to do after one that found `work` packets. True: the
 * token is given back, interrupts are on again or deferred, and the caller must not touch the NAPI.
 * napi_poll does it by itself, but for a context that keeps tokens.
 */
bool napi_complete(struct napi *napi, uint32_t work);

/*
 * The holder, between polls: no more for now, whatever there is. True: the token is given back, and
 * the timer brings a poll at `when` should nobody come before. GRO holds nothing. False: control
 * asks for something, or `when` is over.
 */
bool napi_suspend(struct napi *napi, int64_t when);

/*
 * An application takes the token. 0; or -EAGAIN: another has it, and gives it back soon if
 * `prefer`; -EBUSY: it is disabled, or about to be; -EOPNOTSUPP: its poller is not app.
 */
int napi_take(struct napi *napi, bool prefer);
/* The holder: it has to be polled once more, by the poller of the state word. */
void napi_pass(struct napi *napi);

/*
 * Any thread, where napi_schedule may not be called: true when it is scheduled, and so is polled
 * once more; false: the caller raises the queue's irq. What was written before is seen by that
 * poll.
 */
bool napi_remind(struct napi *napi);

/*
 * The holder: interrupts of the queue would only disturb until it is complete, which unmasks. For
 * pollers other than the runner that takes the queue's interrupts.
 */
void napi_mask(struct napi *napi);

/*
 * The holder, or control while it is disabled. Interrupts and the timer go to the runner of this
 * poller from now on; what irq_attach says, and then they go where they went.
 */
int napi_attach(struct napi *napi, enum poller poller);

/*
 * The holder. The NAPI's one timer, for all that has to be looked at again without a packet: it is
 * scheduled at `when`, masked or not, in place of what was asked before. TIME_NEVER: not any more.
 * Whoever needs it says so again after each poll (wake_source_choose); whoever takes the token
 * takes that back. In core/wake_source.c.
 */
void napi_timer_arm(struct napi *napi, int64_t when);
/* The irq handler of the timer. */
void napi_timer_fired(struct irq *irq);

/*
 * Control context, engine lock held. As napi_poller_set, to this softnet; NULL: where it is when
 * what poller auto has begun is over, which before that only the holder knows.
 */
int napi_switch(struct napi *napi, enum poller poller, struct softnet *softnet, int64_t timeout,
		int64_t *took, struct error *err);
/*
 * The same in parts, for who cannot wait. begin: 0 also when there is nothing to do; what it says
 * then is final: nothing is pending. end: -EAGAIN: not over yet, and not withdrawn although asked
 * to; else how it ended. Every other call here that needs the switch to be over waits for it.
 */
int napi_switch_begin(struct napi *napi, enum poller poller, struct softnet *softnet,
		      struct error *err);
int napi_switch_end(struct napi *napi, bool withdraw, struct error *err);
/* Waits until what was begun is over, whichever way. */
void napi_settle(struct napi *napi);
int napi_disable_locked(struct napi *napi, int64_t timeout);
void napi_enable_locked(struct napi *napi);

static inline uint32_t napi_state_load(const struct napi *napi)
{
	return atomic_load_explicit((_Atomic uint32_t *)&napi->state, memory_order_acquire);
}

/* A request to switch: the bit (MOVING when claimed), the wished poller and its CPU. */
#define NAPI_REQUEST_SWITCH                                                                        \
	((uint32_t)(NAPI_SWITCH | NAPI_MOVING | NAPI_WISH_MASK) | UINT32_MAX << NAPI_WISH_CPU_SHIFT)

static inline enum poller napi_state_wish(uint32_t state)
{
	return (enum poller)((state & NAPI_WISH_MASK) >> NAPI_WISH_SHIFT);
}

static inline uint32_t napi_state_wish_cpu(uint32_t state)
{
	return state >> NAPI_WISH_CPU_SHIFT;
}

static inline enum poller napi_state_poller(uint32_t state)
{
	return (enum poller)((state & NAPI_POLLER_MASK) >> NAPI_POLLER_SHIFT);
}

#endif

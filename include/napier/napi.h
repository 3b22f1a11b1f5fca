/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NAPI: the poll context of one receive queue.
 *
 * All of the protocol between those who schedule, those who poll and those who switch is in one
 * atomic word. SCHED is a token: whoever sets it makes the NAPI somebody's to poll, by dispatching
 * it to the poller named in the same word; only the holder of the token polls, and only it gives
 * the token back. (The kernel's NAPI_STATE_SCHED, MISSED and DISABLE mean the same; that DISABLED
 * is a bit of its own, apart from SCHED, is ours.)
 *
 *  bit        | set by, in which context          | cleared by              | order
 *  -----------+-----------------------------------+-------------------------+------------------
 *  SCHED      | anyone, napi_schedule();          | the holder: complete,   | acquire to set,
 *             | control with its request, in one  | or release on disable   | release to clear
 *             | step: then it is the holder       |                         |
 *  MISSED     | anyone who schedules it while     | the holder: complete    | as SCHED
 *             | SCHED is set, DISABLING or not    | (and polls again)       |
 *  SWITCH,    | control, both in one step         | the holder, claiming:   | release to set,
 *  WISH       |                                   | SWITCH becomes MOVING;  | acquire to see
 *             |                                   | control, to withdraw    |
 *  MOVING     | the holder, for SWITCH; then it   | the holder, in the step | acquire to set,
 *             | moves the interrupts              | that sets POLLER        | release to clear
 *  DISABLING  | control                           | the holder, in the step | as SWITCH
 *             |                                   | that sets DISABLED;     |
 *             |                                   | control, to withdraw    |
 *  PREFER     | an application that would poll    | the holder, with SCHED  | as MISSED
 *             | it but finds SCHED set            |                         |
 *  DISABLED   | the holder, in the step that      | control: napi_enable(), | release to set,
 *             | clears SCHED                      | which then schedules    | acquire to see
 *  POLLER     | the holder, with MOVING set; control while DISABLED          | release
 *
 *  With poller app SCHED is also set by an application, in napi_busy_loop(): then it is the holder.
 *
 *  SCHED and DISABLED are never set together; MISSED, SWITCH, MOVING, DISABLING and PREFER only
 *  beside SCHED. What is claimed cannot be withdrawn: a withdrawn wish's poller is taken down at
 * once, and the holder would move interrupts to what is no more. A schedule during DISABLING is
 * remembered as MISSED, since the disable may yet be withdrawn. tests/model/napi.pml is this table
 * as a model; the same names are used there.
 *
 * Exactly one of these is so at any time: SCHED is set; DISABLED is set; the queue's interrupt is
 * on; it is masked and the NAPI's timer armed (core/wake_source.h). The holder chooses between the
 * last two before it clears SCHED, so that what fires in between leaves MISSED.
 *
 * So scheduling costs one atomic operation and one dispatch whatever the poller is; and a switch
 * stops nothing else: the holder of the moment notices the SWITCH bit after its poll and hands the
 * token to the new poller.
 */
#ifndef NAPIER_NAPI_H
#define NAPIER_NAPI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <napier/counters.h>
#include <napier/machine.h>
#include <napier/packet.h>

#pragma GCC visibility push(default)

#define NAPI_WEIGHT_DEFAULT 64 /* packets; the kernel's NAPI_POLL_WEIGHT */
#define NAPI_WEIGHT_MAX PACKET_VECTOR_MAX

enum poller {
	POLLER_SOFTIRQ,
	POLLER_THREAD,
	POLLER_WORKQUEUE,
	POLLER_BUSY_POLL,
	POLLER_APP, /* an application, by napi_busy_loop(); softirq while none comes */
	POLLER_MAX,
	/*
	 * Only to be asked for, never observed: the engine chooses among those above by what it
	 * measures, and goes on choosing. Another poller that is set ends it.
	 */
	POLLER_AUTO = 15,
};

/* Those below it poll with runners of their own, without an application. */
#define POLLER_RUNNER_MAX POLLER_APP

/* One that can be asked for, POLLER_AUTO included. */
static inline bool poller_valid(enum poller poller)
{
	return (unsigned)poller < POLLER_MAX || poller == POLLER_AUTO;
}

/* "softirq", "busy-poll", "auto"; and back: -EINVAL for another name. */
const char *poller_name(enum poller poller);
int poller_parse(const char *name, enum poller *out);
/* All of them for an error text: "softirq, thread, …". */
const char *poller_list(void);

enum napi_state {
	NAPI_SCHED = 1 << 0,
	NAPI_MISSED = 1 << 1,
	NAPI_SWITCH = 1 << 2,
	NAPI_DISABLING = 1 << 3,
	NAPI_DISABLED = 1 << 4,
	NAPI_MOVING = 1 << 5,
	NAPI_PREFER = 1 << 6,
	NAPI_POLLER_SHIFT = 8,
	NAPI_POLLER_MASK = 0xf << NAPI_POLLER_SHIFT,
	NAPI_WISH_SHIFT = 12,
	NAPI_WISH_MASK = 0xf << NAPI_WISH_SHIFT,
	NAPI_WISH_CPU_SHIFT = 16, /* its softnet: index of the engine CPU */
};

struct napi;
struct engine;
struct port_queue;

/*
 * What a running runner brings along to everything it calls on the packet path: its packet cache,
 * the NAPI it is polling, the transmit queues it has to kick. One per runner, never shared.
 */
#define CONTEXT_KICKS 64
struct context {
	struct pool_cache cache;
	struct engine *engine;
	struct napi *napi;		/* whose packets are being handled */
	struct napi_counters *counters; /* its counters; never NULL */
	int64_t now;			/* taken at the start of the poll */
	bool keeps;	 /* its runner keeps a NAPI that has no packets, and polls on */
	bool foreign;	 /* it is an application's thread, not a runner */
	bool entered;	 /* by context_enter, for machine_quiesce */
	uint32_t inside; /* context_enter so often more than context_leave */
	uint32_t budget; /* packets a poll, if less than the weight; 0: the weight */
	uint32_t index;	 /* small and dense, used again: spreads runners over transmit queues */
	uint32_t received_by; /* index of the queue by which the vector came in */
	uint64_t backlogs;    /* to be scheduled at the kick, a bit per engine CPU */
	uint32_t kicks;
	struct port_queue *kick[CONTEXT_KICKS];
	struct context *next, **at; /* in the engine's list */
	struct napi_counters own;   /* of what is done outside any NAPI's poll */
};

/*
 * Schedules the NAPI: from a runner, an interrupt handler above all, or in control context; other
 * threads raise the queue's irq. It is polled within the
 * bound of its poller. Returns false when it was scheduled already (then it is polled once more)
 * or is disabled (then napi_enable will schedule it).
 */
bool napi_schedule(struct napi *napi);

/*
 * Control context. These are serialised per engine. Each returns once what it asked is in force
 * (0), or -ETIMEDOUT within `timeout` ns with everything as it was before.
 *
 * napi_poller_set on a NAPI whose poller is the wished one already succeeds at once. *took, when
 * not NULL, is the time from asking to observing. -ENOMEM, -EPERM and what runner_start says, in
 * err.
 */
int napi_poller_set(struct napi *napi, enum poller poller, int64_t timeout, int64_t *took,
		    struct error *err);
int napi_disable(struct napi *napi, int64_t timeout);
int napi_enable(struct napi *napi);

/* The poller whose turn it is, from the state word; any context. */
enum poller napi_poller(const struct napi *napi);
bool napi_disabled(const struct napi *napi);
const struct napi_counters *napi_counters(const struct napi *napi);

/* 1..NAPI_WEIGHT_MAX; in force at the next poll. -ERANGE. */
int napi_weight_set(struct napi *napi, uint32_t weight);
uint32_t napi_weight(const struct napi *napi);

#pragma GCC visibility pop

#endif

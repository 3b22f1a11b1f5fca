/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softirq: each engine CPU has its softnet, with an interrupt runner irq/N and a ksoftirqd/N, both
 * pinned there.
 *
 * The interrupt runner takes interrupts and then polls the CPU's list, in rounds: budget packets
 * or budget_usecs, then unpolled before new before those to be polled again. What is scheduled
 * during a round that would else end with nothing left is polled in it. Rounds follow on each other
 * up to `restarts` times or restart_usecs; after that ksoftirqd, an ordinary runner, goes on, and
 * the interrupt runner polls again at the next interrupt. (Rules and defaults are those of the
 * kernel's net_rx_action and handle_softirqs, v6.6 and later; but a round that used up its budget
 * and left nothing is not counted as squeezed here, and limits of time are exact, not in ticks.)
 *
 * When work is left to ksoftirqd is the deferral policy's, enum deferral.
 *
 * `active` is what disabled bottom halves are in the kernel: whoever has set it works on the list,
 * the other leaves it alone. Anyone puts NAPIs into the inbox. Whoever clears `active` looks at the
 * inbox after that, so nothing stays there unseen.
 */
#ifndef POLLER_SOFTIRQ_H
#define POLLER_SOFTIRQ_H

#include <stdatomic.h>

#include <core/engine.h>
#include <core/napi.h>
#include <poller/list.h>

struct busy;

/* Policy and window in one word, so that they are seen together. */
#define DEFERRAL_WORD(policy, ticks) ((uint32_t)(policy) | (uint32_t)(ticks) << 4)
#define DEFERRAL_POLICY(word) ((enum deferral)((word)&0xf))
#define DEFERRAL_TICKS(word) ((word) >> 4)

struct softnet {
	struct engine *engine;
	unsigned cpu;
	bool away;	    /* the engine works without it; control only */
	struct runner *irq; /* NULL: it is away */
	struct runner *ksoftirqd;
	struct busy *busy; /* while a NAPI of this CPU is busy-polled */
	struct cpu_record *record;
	_Atomic uint32_t deferral; /* DEFERRAL_WORD; control sets it */
	/* Asked of them: class and level. */
	struct placement irq_asked, ksoftirqd_asked, busy_asked;
	bool placed; /* of this CPU in particular, not of all */

	/* Whoever is active. */
	struct context *context;
	struct napi_list list;
	int64_t looped_at; /* when a round was last restarted; -1: never */
	/*
	 * The interrupt runner has woken ksoftirqd so often; ksoftirqd had seen so many of them
	 * when it last went to sleep: equal, it sleeps.
	 */
	_Atomic uint32_t wakes;
	_Atomic uint32_t rested;

	_Alignas(64) _Atomic bool active;
	_Alignas(64) struct napi_inbox inbox;
};

/* Control context, once. With the engine's deferral policy. */
void softnet_init(struct softnet *softnet, struct engine *engine, unsigned cpu,
		  struct cpu_record *record);
/* Control context. Starts both runners; a class that is not permitted is replaced, and said. */
int softnet_start(struct softnet *softnet, struct error *err);
/*
 * Control context. One that goes away leaves nothing to its ksoftirqd any more, whatever its
 * policy: what that holds would wait for its turn, and moving its NAPIs for that.
 */
void softnet_away_set(struct softnet *softnet, bool away);
/* No NAPI is on it any more. It may be started again, and has what was set for it then. */
void softnet_stop(struct softnet *softnet);

/*
 * Control context. In force from the next decision on; `never` takes back what ksoftirqd holds, at
 * once or at the end of the step that it is in. looped_ticks is kept with every policy.
 */
void softnet_deferral_set(struct softnet *softnet, enum deferral deferral, uint32_t looped_ticks);
/* Control context. Writes what is asked of its runners into the CPU's record. */
void softnet_record_placement(struct softnet *softnet);

/* The two steps; arg is the softnet. */
struct step softirq_irq_step(void *arg);
struct step softirq_ksoftirqd_step(void *arg);

static inline unsigned softnet_cpu(const struct softnet *softnet)
{
	return softnet->cpu;
}

#endif

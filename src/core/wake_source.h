/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What brings the next poll of a NAPI whose token nobody holds: its queue's interrupt, or, while
 * that is masked, the NAPI's timer. One timer serves whatever has to happen by then: deferred
 * interrupts (napi_defer_hard_irqs, irq_suspend_timeout) and packets that GRO holds
 * (gro_flush_timeout); only for the latter is it armed beside an interrupt that is on.
 *
 *  call           | who
 *  ---------------+------------------------------------------------------------------------
 *  choose, defer  | the holder, just before it gives the token back
 *  taken          | who has just set SCHED, or keeps the token after all
 *
 * The source's own deadline may be earlier than what is asked for, never later: an application that
 * comes back every few microseconds moves the time each time, and to arm the source anew means a
 * lock and perhaps a wake-up of its runner. One that fires too early is armed again for the rest.
 */
#ifndef CORE_WAKE_SOURCE_H
#define CORE_WAKE_SOURCE_H

#include <core/napi.h>

/* Control context, once. -ENOMEM. */
int wake_source_init(struct napi *napi);
void wake_source_destroy(struct napi *napi);

/*
 * After a poll of `work` packets, by the rules of napi_defer_hard_irqs: masked and armed, or on.
 * What GRO holds it may not hold for longer than gro_flush_timeout.
 */
void wake_source_choose(struct napi *napi, uint32_t work);
/* The interrupt stays off until somebody comes, at the latest then. */
void wake_source_defer(struct napi *napi, int64_t when);

/* MISSED has been seen, and the timer that was armed for this is not any more: it has fired. */
static inline bool wake_source_spent(const struct napi *napi, int64_t when)
{
	return atomic_load((_Atomic int64_t *)&napi->timer_armed) > when;
}

static inline void wake_source_taken(struct napi *napi)
{
	if (atomic_load_explicit(&napi->timer_at, memory_order_relaxed) != TIME_NEVER)
		atomic_store(&napi->timer_at, TIME_NEVER);
}

#endif

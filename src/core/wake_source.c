/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include <napier/port.h>

#include <core/canary.h>
#include <core/engine.h>
#include <core/gro.h>
#include <core/wake_source.h>

/* Under the timer's lock. */
static void timer_arm(struct napi *napi, int64_t when)
{
	atomic_store(&napi->timer_armed, when);
	if (!CANARY(TIMER_FORGOTTEN))
		irq_arm(&napi->timer, when);
}

/*
 * Stores what is wanted, then looks at what is armed; napi_timer_fired does the two in the other
 * order: one of them sees the other.
 */
void napi_timer_arm(struct napi *napi, int64_t when)
{
	atomic_store(&napi->timer_at, when);
	if (when >= atomic_load(&napi->timer_armed))
		return;
	lock_acquire(&napi->timer_lock);
	timer_arm(napi, when);
	lock_release(&napi->timer_lock);
}

void napi_timer_fired(struct irq *irq)
{
	struct napi *napi = (struct napi *)((char *)irq - offsetof(struct napi, timer));
	int64_t now = machine_now(napi->engine->machine);
	int64_t when;

	lock_acquire(&napi->timer_lock);
	atomic_store(&napi->timer_armed, TIME_NEVER);
	when = atomic_load(&napi->timer_at);
	if (when > now && when != TIME_NEVER)
		timer_arm(napi, when);
	lock_release(&napi->timer_lock);
	if (when <= now)
		napi_schedule(napi);
}

int wake_source_init(struct napi *napi)
{
	napi->timer = IRQ_INIT(-1, napi_timer_fired);
	napi->timer_at = napi->timer_armed = TIME_NEVER;
	return lock_init(&napi->timer_lock);
}

void wake_source_destroy(struct napi *napi)
{
	lock_destroy(&napi->timer_lock);
}

void wake_source_defer(struct napi *napi, int64_t when)
{
	napi_mask(napi);
	napi_timer_arm(napi, when);
}

void wake_source_choose(struct napi *napi, uint32_t work)
{
	uint32_t defer = atomic_load_explicit(&napi->defer_hard_irqs, memory_order_relaxed);
	int64_t flush = atomic_load_explicit(&napi->gro_flush_timeout, memory_order_relaxed);
	/* Also when the timeout is 0 by now: what was held by another must not stay. */
	int64_t held = napi->holds ? gro_oldest(napi->gro) + flush : TIME_NEVER;

	if (work || napi->deferrals > defer)
		napi->deferrals = defer;
	if (flush && napi->deferrals) {
		int64_t when = machine_now(napi->engine->machine) + flush;

		napi->deferrals--;
		wake_source_defer(napi, held < when ? held : when);
		return;
	}
	if (napi->irq_masked) {
		napi->irq_masked = false;
		irq_unmask(&napi->queue->irq);
	}
	if (held != TIME_NEVER)
		napi_timer_arm(napi, held);
}

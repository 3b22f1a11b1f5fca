/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The deadlines of a runner's sources: a binary heap, so that neither arming one nor finding the
 * first grows with how many there are. A source knows its place in it (machine_private).
 */
#include "machine/host.h"

static int64_t deadline_of(const struct irq *irq)
{
	return atomic_load_explicit(&irq->deadline, memory_order_relaxed);
}

static void place(struct host_runner *r, unsigned at, struct irq *irq)
{
	r->armed[at] = irq;
	irq->machine_private = (void *)(uintptr_t)at;
}

static unsigned place_of(const struct irq *irq)
{
	return (unsigned)(uintptr_t)irq->machine_private;
}

/* From an empty place to where it belongs: towards the first, or else away from it. */
static void sift(struct host_runner *r, unsigned at, struct irq *irq)
{
	int64_t when = deadline_of(irq);

	for (; at && deadline_of(r->armed[(at - 1) / 2]) > when; at = (at - 1) / 2)
		place(r, at, r->armed[(at - 1) / 2]);
	for (;;) {
		unsigned child = 2 * at + 1;

		if (child + 1 < r->armed_count &&
		    deadline_of(r->armed[child + 1]) < deadline_of(r->armed[child]))
			child++;
		if (child >= r->armed_count || deadline_of(r->armed[child]) >= when)
			break;
		place(r, at, r->armed[child]);
		at = child;
	}
	place(r, at, irq);
}

static void earliest_update(struct host_runner *r)
{
	atomic_store(&r->earliest, r->armed_count ? deadline_of(r->armed[0]) : TIME_NEVER);
}

bool host_timer_arm(struct host_runner *r, struct irq *irq, int64_t when)
{
	int64_t before = atomic_load(&r->earliest);
	unsigned at;

	atomic_store(&irq->deadline, when);
	if (atomic_fetch_or(&irq->state, IRQ_ARMED) & IRQ_ARMED)
		at = place_of(irq);
	else
		at = r->armed_count++;
	place(r, at, irq);
	sift(r, at, irq);
	earliest_update(r);
	return when < before;
}

void host_timer_disarm(struct host_runner *r, struct irq *irq)
{
	struct irq *last;

	if (!(atomic_load(&irq->state) & IRQ_ARMED))
		return;
	atomic_fetch_and(&irq->state, ~(uint32_t)IRQ_ARMED);
	last = r->armed[--r->armed_count];
	if (last != irq)
		sift(r, place_of(irq), last);
	earliest_update(r);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt sources. A raised one is in one of two lists of its runner: `raised`, or `due` once the
 * runner has looked. A masked one is in neither, and only remembers.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "machine/virtual.h"

enum irq_state {
	IRQ_MASKED = 1 << 0,
	IRQ_RAISED = 1 << 1, /* to be called; listed unless masked */
};

/* What a source needs besides struct irq while it is attached. */
struct irq_private {
	struct virtual_event timer;
	struct virtual_event late; /* a raise that a fault made late, or repeats */
	struct irq *irq;
	uint64_t number; /* names it in the trace */
};

static struct virtual_runner *irq_runner(const struct irq *irq)
{
	return (struct virtual_runner *)atomic_load_explicit(&irq->runner, memory_order_relaxed);
}

static struct virtual *irq_machine(const struct irq *irq)
{
	return (struct virtual *)irq_runner(irq)->base.machine;
}

static bool irq_is(const struct irq *irq, uint32_t bit)
{
	return atomic_load_explicit(&irq->state, memory_order_relaxed) & bit;
}

static void irq_change(struct irq *irq, uint32_t set, uint32_t clear)
{
	uint32_t state = atomic_load_explicit(&irq->state, memory_order_relaxed);

	atomic_store_explicit(&irq->state, (state | set) & ~clear, memory_order_relaxed);
}

/* Appends it to what its runner will look at, and sees to it that the runner looks. */
static void raised_add(struct irq *irq)
{
	struct virtual_runner *r = irq_runner(irq);

	irq->next_raised = NULL;
	*(r->raised ? &r->raised_last->next_raised : &r->raised) = irq;
	r->raised_last = irq;
	if (r->state == RUNNER_WAITING)
		virtual_runner_unblock(irq_machine(irq), r);
}

static bool list_remove(struct irq **first, struct irq **last, struct irq *irq)
{
	struct irq *before = NULL;

	for (struct irq *at = *first; at; before = at, at = at->next_raised) {
		if (at != irq)
			continue;
		*(before ? &before->next_raised : first) = irq->next_raised;
		if (*last == irq)
			*last = before;
		return true;
	}
	return false;
}

/* It is not called for now. */
static void raised_remove(struct irq *irq)
{
	struct virtual_runner *r = irq_runner(irq);

	if (irq_is(irq, IRQ_RAISED) && !irq_is(irq, IRQ_MASKED))
		if (!list_remove(&r->raised, &r->raised_last, irq))
			list_remove(&r->due, &r->due_last, irq);
}

/* A raise or a timer. */
static void irq_trigger(struct irq *irq)
{
	if (irq_is(irq, IRQ_RAISED))
		return;
	virtual_trace(irq_machine(irq), TRACE_RAISE, NULL, irq_runner(irq),
		      (int64_t)virtual_irq_number(irq), irq_is(irq, IRQ_MASKED));
	irq_change(irq, IRQ_RAISED, 0);
	if (!irq_is(irq, IRQ_MASKED))
		raised_add(irq);
}

static void timer_fire(struct virtual *v, struct virtual_event *e)
{
	struct irq *irq =
		((struct irq_private *)((char *)e - offsetof(struct irq_private, timer)))->irq;

	(void)v;
	atomic_store_explicit(&irq->deadline, TIME_NEVER, memory_order_relaxed);
	irq_trigger(irq);
}

static void late_fire(struct virtual *v, struct virtual_event *e)
{
	(void)v;
	irq_trigger(((struct irq_private *)((char *)e - offsetof(struct irq_private, late)))->irq);
}

static void attached_add(struct irq *irq, struct virtual_runner *r)
{
	irq->prev = NULL;
	irq->next = r->attached;
	if (irq->next)
		irq->next->prev = irq;
	r->attached = irq;
	atomic_store_explicit(&irq->runner, &r->base, memory_order_relaxed);
}

static void attached_remove(struct irq *irq)
{
	if (irq->next)
		irq->next->prev = irq->prev;
	*(irq->prev ? &irq->prev->next : &irq_runner(irq)->attached) = irq->next;
	atomic_store_explicit(&irq->runner, NULL, memory_order_relaxed);
}

int virtual_irq_attach(struct irq *irq, struct runner *runner)
{
	struct virtual_runner *r = (struct virtual_runner *)runner;
	struct virtual *v = (struct virtual *)r->base.machine;
	struct irq_private *p = irq->machine_private;

	if (irq->fd >= 0)
		return -ENOTSUP;
	if (irq_runner(irq)) {
		assert(irq_machine(irq) == v);
		raised_remove(irq);
		attached_remove(irq);
	} else {
		p = calloc(1, sizeof(*p));
		if (!p || virtual_event_reserve(v)) {
			free(p);
			return -ENOMEM;
		}
		if (virtual_event_reserve(v)) {
			virtual_event_unreserve(v);
			free(p);
			return -ENOMEM;
		}
		p->timer.fire = timer_fire;
		p->late.fire = late_fire;
		p->irq = irq;
		p->number = ++v->irq_count;
		irq->machine_private = p;
	}
	attached_add(irq, r);
	if (irq_is(irq, IRQ_RAISED) && !irq_is(irq, IRQ_MASKED))
		raised_add(irq);
	return 0;
}

void virtual_irq_detach(struct irq *irq)
{
	struct virtual *v = irq_machine(irq);
	struct irq_private *p = irq->machine_private;

	raised_remove(irq);
	attached_remove(irq);
	virtual_event_cancel(v, &p->timer);
	virtual_event_cancel(v, &p->late);
	virtual_event_unreserve(v);
	virtual_event_unreserve(v);
	irq_change(irq, 0, IRQ_RAISED);
	atomic_store_explicit(&irq->deadline, TIME_NEVER, memory_order_relaxed);
	irq->machine_private = NULL;
	free(p);
}

void virtual_irq_mask(struct irq *irq)
{
	raised_remove(irq);
	irq_change(irq, IRQ_MASKED, 0);
}

void virtual_irq_unmask(struct irq *irq)
{
	if (!irq_is(irq, IRQ_MASKED))
		return;
	irq_change(irq, 0, IRQ_MASKED);
	if (irq_is(irq, IRQ_RAISED))
		raised_add(irq);
}

/* Hardware's interrupts can go wrong. */
void virtual_irq_raise(struct irq *irq)
{
	struct virtual *v = irq_machine(irq);
	const struct virtual_runner *r = irq_runner(irq);
	struct irq_private *p = irq->machine_private;

	if (v->calling && virtual_fault(v, VIRTUAL_IRQ_LOST, r))
		return;
	if (v->calling && virtual_fault(v, VIRTUAL_IRQ_LATE, r)) {
		virtual_event_set(v, &p->late, v->now + virtual_fault_late(v));
		return;
	}
	if (v->calling && virtual_fault(v, VIRTUAL_IRQ_TWICE, r))
		virtual_event_set(v, &p->late, v->now + virtual_fault_late(v));
	irq_trigger(irq);
}

void virtual_irq_arm(struct irq *irq, int64_t when)
{
	struct virtual *v = irq_machine(irq);
	struct irq_private *p = irq->machine_private;

	atomic_store_explicit(&irq->deadline, when, memory_order_relaxed);
	if (when == TIME_NEVER)
		virtual_event_cancel(v, &p->timer);
	else
		virtual_event_set(
			v, &p->timer,
			virtual_fault_timer(v, irq_runner(irq), when > v->now ? when : v->now));
}

void virtual_irq_look(struct virtual_runner *r)
{
	if (!r->raised)
		return;
	assert(!r->due);
	r->due = r->raised;
	r->due_last = r->raised_last;
	r->raised = r->raised_last = NULL;
}

struct irq *virtual_irq_take(struct virtual_runner *r)
{
	struct irq *irq = r->due;

	if (!irq)
		return NULL;
	r->due = irq->next_raised;
	if (!r->due)
		r->due_last = NULL;
	irq_change(irq, 0, IRQ_RAISED);
	return irq;
}

bool virtual_irq_pending(const struct irq *irq)
{
	return irq_is(irq, IRQ_RAISED);
}

uint64_t virtual_irq_number(const struct irq *irq)
{
	return ((const struct irq_private *)irq->machine_private)->number;
}

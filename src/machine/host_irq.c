/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupt sources.
 *
 * Three things can make one fire: its descriptor, a raise, its deadline. All of them set
 * IRQ_PENDING in irq.state; the runner collects the pending ones, and calls the handler of those
 * from which it can take the bit. A masked one keeps it. How the runner learns of it: epoll, or a
 * bit for the source's slot in host_runner.raised and one for that word in its signals, so that it
 * looks at what was raised and at no other.
 *
 * A raise needs no lock: it sets PENDING, by the same operation learns the slot, then reads
 * irq.runner and tells that. A move writes the slot, then irq.runner, then reads PENDING and tells
 * the new runner if it is set. In the one order of these sequentially consistent operations either
 * the raise sees the new slot and runner or the move sees the bit; a slot and a runner that do not
 * belong together are a look for nothing. The same pair works between a raise and unmask, on the
 * state word alone. A raise sets the bit of the slot before that of the word, and the runner takes
 * them in the reverse order.
 *
 *  call            | locks                              | beside, on the same source
 *  ----------------+------------------------------------+---------------------------
 *  attach (move)   | handlers of the old, lock of both  | raise, dispatch
 *  detach          | handlers and lock                  | raise, dispatch
 *  mask unmask arm | lock                               | raise, dispatch
 *  raise           | none                               | anything
 *  dispatch        | handlers; lock while it collects   | anything
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "machine/current.h"
#include "machine/host.h"

enum { SLOTS_FIRST = 8 };

static unsigned slot_of(const struct irq *irq)
{
	return atomic_load_explicit(&irq->state, memory_order_relaxed) >> IRQ_SLOT_SHIFT;
}

/* The runner looks at this slot. */
static void raised_tell(struct host_runner *r, unsigned slot)
{
	unsigned group = slot / 64 % HOST_GROUPS;

	atomic_fetch_or(&r->raised[group], UINT64_C(1) << slot % 64);
	host_runner_signal(r, UINT64_C(1) << (SIGNAL_RAISED_SHIFT + group) | SIGNAL_RAISED);
}

static bool in_handler_of(const struct host_runner *r)
{
	return runner_current() == &r->base && r->dispatching;
}

/*
 * Waits for the handlers of r, and keeps new ones from being called. False inside one of them: then
 * there is nothing to wait for. Two runners whose handlers waited for each other's would stand
 * still, so inside a handler only the sources of its own runner can be taken away.
 */
static bool handlers_acquire(struct host_runner *r)
{
	struct runner *current = runner_current();

	if (in_handler_of(r))
		return false;
	assert(!current || current->machine != r->base.machine ||
	       !host_runner_of(current)->dispatching);
	(void)current;
	lock_acquire(&r->handlers);
	return true;
}

/* Locks the runner that the source is attached to; NULL: to none. */
static struct host_runner *source_lock(struct irq *irq)
{
	struct runner *runner;

	while ((runner = atomic_load(&irq->runner))) {
		struct host_runner *r = host_runner_of(runner);

		lock_acquire(&r->lock);
		if (atomic_load(&irq->runner) == runner)
			return r;
		lock_release(&r->lock); /* it was moved meanwhile */
	}
	return NULL;
}

/* Tells epoll about a change of what is wanted. If there is data it is an edge again. */
static void source_listen(struct host_runner *r, struct irq *irq, bool listen)
{
	struct host_slot *slot = &r->slots[slot_of(irq)];
	struct epoll_event event = {
		.events = (listen ? EPOLLIN : 0) | EPOLLET,
		.data.u64 = (uint64_t)slot->generation << 32 | slot_of(irq),
	};

	/* It fails only when the owner has closed the descriptor, and then it is not there. */
	epoll_ctl(r->epoll, EPOLL_CTL_MOD, irq->fd, &event);
}

/* Room for twice as many. */
static int slots_grow(struct host_runner *r)
{
	unsigned size = r->slots_size ? 2 * r->slots_size : SLOTS_FIRST;
	struct host_slot *slots = realloc(r->slots, size * sizeof(*slots));
	struct irq **armed;

	if (!slots)
		return -ENOMEM;
	r->slots = slots;
	armed = realloc(r->armed, size * sizeof(*armed));
	if (!armed)
		return -ENOMEM;
	r->armed = armed;
	r->slots_size = size;
	return 0;
}

/* Finds a slot and tells epoll, without listening yet. The slot, or a negative errno. */
static int source_add(struct host_runner *r, struct irq *irq)
{
	unsigned i = r->slots_full;

	while (i < r->slots_used && r->slots[i].irq)
		i++;
	r->slots_full = i;
	if (i == r->slots_size && slots_grow(r))
		return -ENOMEM;
	r->slots[i].generation = ++r->generation;
	if (irq->fd >= 0) {
		struct epoll_event event = {
			.events = EPOLLET,
			.data.u64 = (uint64_t)r->generation << 32 | i,
		};

		if (epoll_ctl(r->epoll, EPOLL_CTL_ADD, irq->fd, &event))
			return -errno;
		if (!atomic_fetch_add(&r->descriptors, 1))
			host_runner_signal(r, SIGNAL_TIMER); /* it may doze */
	}
	r->slots[i].irq = irq;
	if (i == r->slots_used)
		r->slots_used++;
	return (int)i;
}

static void source_remove(struct host_runner *r, struct irq *irq)
{
	unsigned slot = slot_of(irq);

	r->slots[slot].irq = NULL;
	if (slot < r->slots_full)
		r->slots_full = slot;
	while (r->slots_used && !r->slots[r->slots_used - 1].irq)
		r->slots_used--;
	if (irq->fd >= 0) {
		epoll_ctl(r->epoll, EPOLL_CTL_DEL, irq->fd, NULL);
		atomic_fetch_sub_explicit(&r->descriptors, 1, memory_order_relaxed);
	}
	host_timer_disarm(r, irq);
	/* Only inside a handler of this very runner is there anything in `due`. */
	if (in_handler_of(r)) {
		for (unsigned i = 0; i < r->due_count; i++) {
			if (r->due[i] == irq)
				r->due[i] = NULL;
		}
	}
}

static void pair_lock(struct host_runner *a, struct host_runner *b)
{
	if (a && a > b)
		lock_acquire(&b->lock);
	if (a)
		lock_acquire(&a->lock);
	if (!a || a < b)
		lock_acquire(&b->lock);
}

static void pair_release(struct host_runner *a, struct host_runner *b)
{
	if (a && a != b)
		lock_release(&a->lock);
	lock_release(&b->lock);
}

/* Both are locked. */
static int source_move(struct irq *irq, struct host_runner *from, struct host_runner *to)
{
	int slot = source_add(to, irq);

	if (slot < 0)
		return slot;
	if (from) {
		bool armed = atomic_load(&irq->state) & IRQ_ARMED;

		source_remove(from, irq);
		if (armed && host_timer_arm(to, irq, atomic_load(&irq->deadline)))
			host_runner_signal(to, SIGNAL_TIMER);
	} else {
		atomic_fetch_and(&irq->state, IRQ_MASKED);
		atomic_store(&irq->deadline, TIME_NEVER);
	}
	/* In two steps: between them it says slot 0, which is a look for nothing. */
	atomic_fetch_and(&irq->state, IRQ_FLAGS);
	atomic_fetch_or(&irq->state, (uint32_t)slot << IRQ_SLOT_SHIFT);
	atomic_store(&irq->runner, &to->base);
	/* Listening only now: an edge that came before would have gone nowhere. */
	if (irq->fd >= 0 && !(atomic_load(&irq->state) & IRQ_MASKED))
		source_listen(to, irq, true);
	return 0;
}

int host_irq_attach(struct irq *irq, struct runner *runner)
{
	struct host_runner *to = host_runner_of(runner);
	struct host_runner *from;
	bool waited;
	int rc = 0;

	for (;;) {
		from = host_runner_of(atomic_load(&irq->runner));
		waited = from && from != to && handlers_acquire(from);
		pair_lock(from, to);
		if (atomic_load(&irq->runner) == (from ? &from->base : NULL))
			break;
		pair_release(from, to);
		if (waited)
			lock_release(&from->handlers);
	}
	if (from != to)
		rc = source_move(irq, from, to);
	else if (irq->fd >= 0 && !(atomic_load(&irq->state) & IRQ_MASKED))
		source_listen(to, irq, true);
	pair_release(from, to);
	if (waited)
		lock_release(&from->handlers);
	if (!rc && (atomic_load(&irq->state) & (IRQ_PENDING | IRQ_MASKED)) == IRQ_PENDING)
		raised_tell(to, slot_of(irq));
	return rc;
}

void host_irq_detach(struct irq *irq)
{
	struct runner *runner;

	while ((runner = atomic_load(&irq->runner))) {
		struct host_runner *r = host_runner_of(runner);
		bool waited = handlers_acquire(r);

		lock_acquire(&r->lock);
		if (atomic_load(&irq->runner) == runner) {
			atomic_store(&irq->runner, NULL);
			source_remove(r, irq);
			atomic_store(&irq->deadline, TIME_NEVER);
			atomic_fetch_and(&irq->state, IRQ_MASKED);
		}
		lock_release(&r->lock);
		if (waited)
			lock_release(&r->handlers);
	}
}

void host_irq_detach_all(struct host_runner *r)
{
	while (r->slots_used)
		host_irq_detach(r->slots[r->slots_used - 1].irq);
}

void host_irq_mask(struct irq *irq)
{
	struct host_runner *r = source_lock(irq);

	if (!r)
		return;
	if (!(atomic_fetch_or(&irq->state, IRQ_MASKED) & IRQ_MASKED) && irq->fd >= 0)
		source_listen(r, irq, false);
	lock_release(&r->lock);
}

void host_irq_unmask(struct irq *irq)
{
	struct host_runner *r = source_lock(irq);
	uint32_t before;

	if (!r)
		return;
	before = atomic_fetch_and(&irq->state, ~(uint32_t)IRQ_MASKED);
	if (before & IRQ_MASKED && irq->fd >= 0)
		source_listen(r, irq, true);
	lock_release(&r->lock);
	if (before & IRQ_PENDING)
		raised_tell(r, before >> IRQ_SLOT_SHIFT);
}

void host_irq_raise(struct irq *irq)
{
	uint32_t before = atomic_fetch_or(&irq->state, IRQ_PENDING);
	struct runner *runner = atomic_load(&irq->runner);

	/*
	 * Also when it was pending before: whoever set that may not have come to signal yet, and
	 * may be kept from it by the very runner that this one wants to reach.
	 */
	if (runner && !(before & IRQ_MASKED))
		raised_tell(host_runner_of(runner), before >> IRQ_SLOT_SHIFT);
}

void host_irq_arm(struct irq *irq, int64_t when)
{
	struct host_runner *r = source_lock(irq);
	bool sooner = false;

	if (!r)
		return;
	if (when == TIME_NEVER) {
		host_timer_disarm(r, irq);
		atomic_store(&irq->deadline, when);
	} else {
		sooner = host_timer_arm(r, irq, when);
	}
	lock_release(&r->lock);
	if (sooner)
		host_runner_signal(r, SIGNAL_TIMER);
}

static bool due_room(struct host_runner *r)
{
	return r->due_count < HOST_DUE_MAX;
}

static void collect_events(struct host_runner *r, int events)
{
	for (int i = 0; i < events; i++) {
		uint64_t data = r->events[i].data.u64;
		uint32_t slot = (uint32_t)data;
		struct irq *irq;

		if (data == HOST_EVENT_WAKE || slot >= r->slots_used ||
		    r->slots[slot].generation != data >> 32)
			continue;
		irq = r->slots[slot].irq;
		if (!irq)
			continue;
		atomic_fetch_or(&irq->state, IRQ_PENDING);
		r->due[r->due_count++] = irq;
	}
}

static void collect_timers(struct host_runner *r, int64_t now)
{
	while (atomic_load_explicit(&r->earliest, memory_order_relaxed) <= now && due_room(r)) {
		struct irq *irq = r->armed[0];

		host_timer_disarm(r, irq);
		atomic_store(&irq->deadline, TIME_NEVER);
		atomic_fetch_or(&irq->state, IRQ_PENDING);
		r->due[r->due_count++] = irq;
	}
}

/* All that stand for this bit; false: there was no room. */
static bool collect_slots(struct host_runner *r, unsigned slot)
{
	for (; slot < r->slots_used; slot += 64 * HOST_GROUPS) {
		struct irq *irq = r->slots[slot].irq;

		if (!irq || (atomic_load(&irq->state) & (IRQ_PENDING | IRQ_MASKED)) != IRQ_PENDING)
			continue;
		if (!due_room(r))
			return false;
		r->due[r->due_count++] = irq;
	}
	return true;
}

/* Those of the group that are in `mask`. */
static bool collect_group(struct host_runner *r, unsigned group, uint64_t mask)
{
	uint64_t bits = atomic_fetch_and(&r->raised[group], ~mask) & mask;

	for (; bits; bits &= bits - 1) {
		unsigned slot = 64 * group + (unsigned)__builtin_ctzll(bits);

		if (collect_slots(r, slot))
			continue;
		atomic_fetch_or(&r->raised[group], bits);
		r->first_raised = slot;
		return false;
	}
	return true;
}

/* Starts where the last round had no more room, so that those raised all the time starve none. */
static void collect_raised(struct host_runner *r, uint32_t groups)
{
	unsigned first = r->first_raised / 64;
	uint64_t later = UINT64_MAX << r->first_raised % 64;
	uint32_t order = groups >> first | groups << (HOST_GROUPS - first) % HOST_GROUPS;
	bool all = true;

	for (; order && all; order &= order - 1) {
		unsigned group = ((unsigned)__builtin_ctz(order) + first) % HOST_GROUPS;

		all = collect_group(r, group, group == first ? later : UINT64_MAX);
	}
	if (all && ~later && groups >> first & 1)
		all = collect_group(r, first, ~later);
	if (!all) /* the rest in the next round; a group that has nothing more is no harm */
		r->self |= (uint64_t)groups << SIGNAL_RAISED_SHIFT | SIGNAL_RAISED;
}

/* Takes the bit that says it has to fire, unless it is masked. */
static bool pending_take(struct irq *irq)
{
	uint32_t state = atomic_load(&irq->state);

	while ((state & (IRQ_PENDING | IRQ_MASKED)) == IRQ_PENDING) {
		uint32_t taken = state & ~(uint32_t)IRQ_PENDING;

		if (atomic_compare_exchange_weak(&irq->state, &state, taken))
			return true;
	}
	return false;
}

static bool timers_due(struct host_runner *r, int64_t *now)
{
	int64_t earliest = atomic_load_explicit(&r->earliest, memory_order_relaxed);

	if (earliest == TIME_NEVER)
		return false;
	*now = host_now(r->base.machine);
	return earliest <= *now;
}

unsigned host_irq_dispatch(struct host_runner *r, int events, uint64_t signals)
{
	uint32_t groups = (uint32_t)(signals >> SIGNAL_RAISED_SHIFT);
	unsigned handled = 0;
	int64_t now = 0;
	bool timers = timers_due(r, &now);

	if (!events && !timers && !groups)
		return 0;
	lock_acquire(&r->handlers);
	r->dispatching = true;
	lock_acquire(&r->lock);
	collect_events(r, events);
	if (timers)
		collect_timers(r, now);
	if (groups)
		collect_raised(r, groups);
	lock_release(&r->lock);
	for (unsigned i = 0; i < r->due_count; i++) {
		struct irq *irq = r->due[i];

		/* NULL: a handler before it has detached or moved it. */
		if (irq && pending_take(irq)) {
			handled++;
			irq->handler(irq); /* which may detach and free it */
		}
	}
	r->due_count = 0;
	r->dispatching = false;
	lock_release(&r->handlers);
	return handled;
}

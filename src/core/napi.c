/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data side of the state word: schedule, poll, complete, release. Control's side (switch,
 * disable, enable) is in napi_control.c. Table and rules: napier/napi.h.
 */
#include <errno.h>
#include <string.h>

#include <napier/port.h>

#include <core/canary.h>
#include <core/context.h>
#include <core/engine.h>
#include <core/napi.h>
#include <core/receive.h>
#include <core/wake_source.h>

static const struct poller_ops *const pollers[POLLER_MAX] = {
	[POLLER_SOFTIRQ] = &softirq_poller,
	[POLLER_THREAD] = &thread_poller,
	[POLLER_WORKQUEUE] = &workqueue_poller,
	[POLLER_BUSY_POLL] = &busy_poller,
	[POLLER_APP] = &app_poller,
};

const struct poller_ops *poller_ops(enum poller poller)
{
	return pollers[poller];
}

const char *poller_name(enum poller poller)
{
	if (poller == POLLER_AUTO)
		return "auto";
	return (unsigned)poller < POLLER_MAX ? pollers[poller]->name : "unknown";
}

int poller_parse(const char *name, enum poller *out)
{
	for (unsigned i = 0; i < POLLER_MAX; i++) {
		if (!strcmp(name, pollers[i]->name)) {
			*out = (enum poller)i;
			return 0;
		}
	}
	if (strcmp(name, "auto"))
		return -EINVAL;
	*out = POLLER_AUTO;
	return 0;
}

const char *poller_list(void)
{
	return "softirq, thread, workqueue, busy-poll, app, auto";
}

bool napi_schedule(struct napi *napi)
{
	uint32_t state = atomic_load_explicit(&napi->state, memory_order_relaxed);
	uint32_t wanted;

	do {
		if (state & NAPI_DISABLED)
			return false;
		wanted = state | (state & NAPI_SCHED ? NAPI_MISSED : NAPI_SCHED);
		/* Also with MISSED set already: what the caller wrote before must be seen
		 * (release). */
	} while (!atomic_compare_exchange_weak_explicit(
		&napi->state, &state, wanted, memory_order_acq_rel, memory_order_relaxed));
	if (state & NAPI_SCHED && !CANARY(TWO_POLLERS))
		return false;
	/* The token is here until it is dispatched. */
	wake_source_taken(napi);
	napi->scheduled_at = machine_now(napi->engine->machine);
	pollers[napi_state_poller(state)]->dispatch(napi);
	return true;
}

bool napi_remind(struct napi *napi)
{
	uint32_t state = atomic_load_explicit(&napi->state, memory_order_relaxed);

	while (state & NAPI_SCHED)
		if (atomic_compare_exchange_weak_explicit(&napi->state, &state, state | NAPI_MISSED,
							  memory_order_acq_rel,
							  memory_order_relaxed))
			return true;
	return false;
}

void napi_mask(struct napi *napi)
{
	if (napi->irq_masked)
		return;
	napi->irq_masked = true;
	irq_mask(&napi->queue->irq);
}

/*
 * Gives the token back when nothing was scheduled meanwhile. False: the caller keeps it, to poll
 * again or to release it. What wakes it is chosen before the token goes: an interrupt or a timer
 * that fires in between sets MISSED and is not lost.
 */
bool napi_complete(struct napi *napi, uint32_t work)
{
	struct napi_counters *counters = &napi->record->napi;
	uint32_t state = napi_state_load(napi);
	bool missed;
	uint32_t wanted;

	wake_source_choose(napi, work);
	/* Counted while the token is still here: after that the counters are another's. */
	counter_add(&counters->completes, 1);
	while (!(state & (NAPI_SWITCH | NAPI_DISABLING))) {
		missed = state & NAPI_MISSED;
		wanted = state & ~(uint32_t)(missed ? NAPI_MISSED : NAPI_SCHED | NAPI_PREFER);
		if (!atomic_compare_exchange_weak_explicit(&napi->state, &state, wanted,
							   memory_order_acq_rel,
							   memory_order_acquire))
			continue;
		if (!missed)
			return true;
		counter_add(&counters->missed, 1);
		break;
	}
	counter_add(&counters->completes, (uint64_t)-1);
	wake_source_taken(napi);
	return false;
}

/*
 * What was missed may be: the timer brings the poll that follows. Unless it is the timer itself
 * that was missed, since the holder was late: then nothing else would come.
 */
bool napi_suspend(struct napi *napi, int64_t when)
{
	struct napi_counters *counters = &napi->record->napi;
	uint32_t state = napi_state_load(napi);

	wake_source_defer(napi, when);
	counter_add(&counters->completes, 1);
	while (!(state & (NAPI_SWITCH | NAPI_DISABLING)) &&
	       !(state & NAPI_MISSED && wake_source_spent(napi, when)))
		if (atomic_compare_exchange_weak_explicit(
			    &napi->state, &state,
			    state & ~(uint32_t)(NAPI_SCHED | NAPI_MISSED | NAPI_PREFER),
			    memory_order_acq_rel, memory_order_acquire))
			return true;
	counter_add(&counters->completes, (uint64_t)-1);
	wake_source_taken(napi);
	return false;
}

int napi_take(struct napi *napi, bool prefer)
{
	uint32_t state = napi_state_load(napi);
	uint32_t wanted;

	do {
		if (state & (NAPI_DISABLED | NAPI_DISABLING))
			return -EBUSY;
		if (napi_state_poller(state) != POLLER_APP)
			return -EOPNOTSUPP;
		wanted = state | (state & NAPI_SCHED ? NAPI_PREFER : NAPI_SCHED);
		if (state & NAPI_SCHED && (!prefer || wanted == state))
			return -EAGAIN;
	} while (!atomic_compare_exchange_weak_explicit(
		&napi->state, &state, wanted, memory_order_acq_rel, memory_order_acquire));
	if (state & NAPI_SCHED && !CANARY(TWO_POLLERS))
		return -EAGAIN;
	wake_source_taken(napi);
	return 0;
}

void napi_pass(struct napi *napi)
{
	napi->scheduled_at = machine_now(napi->engine->machine);
	poller_ops(napi_poller(napi))->dispatch(napi);
}

/* The holder sees DISABLING. True when the token is gone. */
static bool release_disabled(struct napi *napi, uint32_t state)
{
	uint32_t wanted =
		state & ~(uint32_t)(NAPI_SCHED | NAPI_MISSED | NAPI_DISABLING | NAPI_PREFER);
	struct machine *machine = napi->engine->machine;

	napi_mask(napi);
	if (!atomic_compare_exchange_strong(&napi->state, &state, wanted | NAPI_DISABLED))
		return false;
	if (CANARY(LEAK)) {
		struct packet *p;

		packet_alloc(&napi->engine->context->cache, &p, 1);
	}
	/* The NAPI may be gone: who waits for this looks now and then without being told. */
	machine_notify(machine);
	return true;
}

int napi_attach(struct napi *napi, enum poller poller)
{
	struct runner *runner = pollers[poller]->runner(napi);
	struct runner *before = napi->queue->irq.runner;
	int rc = irq_attach(&napi->queue->irq, runner);

	if (rc)
		return rc;
	rc = irq_attach(&napi->timer, runner);
	if (!rc)
		return 0;
	if (!before || irq_attach(&napi->queue->irq, before))
		irq_detach(&napi->queue->irq);
	return rc;
}

/* Interrupts go to the runner of this poller from now on, unmasked. */
static int irq_move(struct napi *napi, enum poller poller)
{
	int rc = napi_attach(napi, poller);

	napi->deferrals = 0;
	if (!rc && napi->irq_masked) {
		napi->irq_masked = false;
		irq_unmask(&napi->queue->irq);
	}
	return rc;
}

/*
 * The holder sees SWITCH. True when the token is gone: the new poller has it. MOVING claims the
 * request: from then on it cannot be withdrawn, so the wished poller stays while the interrupts
 * move.
 */
static bool release_switched(struct napi *napi, uint32_t state)
{
	uint32_t claimed = (state & ~(uint32_t)NAPI_SWITCH) | NAPI_MOVING;
	struct softnet *softnet = napi->softnet;
	enum poller poller = napi_state_wish(state);
	uint32_t wanted;
	int rc;

	if (!atomic_compare_exchange_strong(&napi->state, &state, claimed))
		return false;
	napi->softnet = engine_softnet_at(napi->engine, napi_state_wish_cpu(claimed));
	rc = irq_move(napi, poller);
	if (rc) {
		napi->softnet = softnet;
		napi->switch_error = rc;
		atomic_fetch_and(&napi->state, ~(uint32_t)NAPI_REQUEST_SWITCH);
		machine_notify(napi->engine->machine);
		return false;
	}
	state = claimed;
	do {
		wanted = state & ~(uint32_t)(NAPI_REQUEST_SWITCH | NAPI_MISSED | NAPI_PREFER |
					     NAPI_POLLER_MASK);
		wanted |= (uint32_t)poller << NAPI_POLLER_SHIFT;
	} while (!atomic_compare_exchange_weak(&napi->state, &state, wanted));
	counter_add(&napi->record->napi.switches, 1); /* the token is still here */
	machine_notify(napi->engine->machine);
	pollers[poller]->dispatch(napi);
	return true;
}

/*
 * Does what control asks of the token's holder. True: the token is gone. Ends because control
 * asks one thing at a time and withdraws it at most once.
 */
bool napi_release(struct napi *napi, struct context *context)
{
	uint32_t state;

	while ((state = napi_state_load(napi)) & (NAPI_SWITCH | NAPI_DISABLING)) {
		queue_flush(napi, context);
		if (state & NAPI_DISABLING ? release_disabled(napi, state)
					   : release_switched(napi, state))
			return true;
	}
	return false;
}

/*
 * A poll cannot be cut short once the handler has the vector. Where handling is so slow that one
 * took longer than a whole round may, the next ones get fewer packets, so that the bound of a
 * round, and of control's calls, is one of time too.
 */
static void cap_adjust(struct napi *napi, uint32_t n, int64_t took)
{
	int64_t limit = engine_budget_ns(napi->engine);

	if (n && took > limit / 2) {
		int64_t fits = n * limit / took;

		napi->cap = fits ? (uint32_t)fits : 1;
	} else if (napi->cap) {
		napi->cap = napi->cap < NAPI_WEIGHT_MAX ? napi->cap * 2 : 0;
	}
}

/*
 * The first poll since it was scheduled begins at `start`, which the runner may have read just
 * before that.
 */
static void wake_count(struct napi *napi, int64_t start)
{
	struct napi_counters *counters = &napi->record->napi;
	int64_t ns = start > napi->scheduled_at ? start - napi->scheduled_at : 0;

	napi->scheduled_at = 0;
	counter_add(&counters->wakes, 1);
	counter_add(&counters->wake_ns, (uint64_t)ns);
	counter_add(&counters->wake[wake_bucket(ns)], 1);
	if ((uint64_t)ns > counter_read(&counters->wake_max_ns))
		atomic_store_explicit(&counters->wake_max_ns, (uint64_t)ns, memory_order_relaxed);
}

static void empty_count(struct napi_counters *counters, int64_t took)
{
	counter_add(&counters->empty_polls, 1);
	counter_add(&counters->empty_ns, (uint64_t)took);
}

/*
 * An application has asked for what its fallback is polling. True: it can take it now. It has just
 * looked, so it is there, or it is a matter of a round until the fallback goes on: longer than GRO
 * may hold a packet.
 */
static bool preferred_give(struct napi *napi, struct context *context)
{
	if (!(napi_state_load(napi) & NAPI_PREFER))
		return false;
	queue_flush(napi, context);
	return napi_suspend(napi, context->now + engine_budget_ns(napi->engine));
}

bool napi_poll(struct napi *napi, struct context *context, uint32_t *work)
{
	struct napi_counters *counters = &napi->record->napi;
	uint32_t weight = atomic_load_explicit(&napi->weight, memory_order_relaxed);
	struct machine *machine = napi->engine->machine;
	int64_t start = context->now;
	uint32_t n;

	if (napi->scheduled_at)
		wake_count(napi, start);
	if (napi->cap && napi->cap < weight)
		weight = napi->cap;
	if (context->budget && context->budget < weight)
		weight = context->budget;
	context->napi = napi;
	context->counters = counters;
	context->received_by = napi->queue->index;
	n = napi->poll(napi, context, weight);
	if (!CANARY(MISSED_FLUSH) || n >= weight)
		context_kick(context);
	context->napi = NULL;
	context->counters = &context->own;

	machine_charge(machine, napi->engine->poll_ns + napi->engine->packet_ns * (int64_t)n);
	context->now = machine_now(machine);
	cap_adjust(napi, n, context->now - start);
	counter_add(&counters->poll_ns, (uint64_t)(context->now - start));
	counter_add(&counters->polls, 1);
	napi->full = n >= weight;
	if (n >= weight)
		counter_add(&counters->full_polls, 1);
	else if (!n)
		empty_count(counters, context->now - start);
	*work = n;

	if (n < weight && !context->keeps && napi_complete(napi, n))
		return false;
	if (napi_release(napi, context))
		return false;
	return context->keeps || !preferred_give(napi, context);
}

enum poller napi_poller(const struct napi *napi)
{
	return napi_state_poller(napi_state_load(napi));
}

bool napi_disabled(const struct napi *napi)
{
	return napi_state_load(napi) & NAPI_DISABLED;
}

const struct napi_counters *napi_counters(const struct napi *napi)
{
	return &napi->record->napi;
}

int napi_weight_set(struct napi *napi, uint32_t weight)
{
	if (!weight || weight > NAPI_WEIGHT_MAX)
		return -ERANGE;
	atomic_store_explicit(&napi->weight, weight, memory_order_relaxed);
	atomic_store_explicit(&napi->record->weight, weight, memory_order_relaxed);
	return 0;
}

void napi_idle_suspend_set(struct napi *napi, uint32_t usecs)
{
	atomic_store_explicit(&napi->idle_suspend, usecs * NSEC_PER_USEC, memory_order_relaxed);
	atomic_store_explicit(&napi->record->idle_suspend, usecs, memory_order_relaxed);
}

uint32_t napi_weight(const struct napi *napi)
{
	return atomic_load_explicit(&napi->weight, memory_order_relaxed);
}

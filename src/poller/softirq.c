/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <napier/port.h>

#include <core/canary.h>
#include <core/context.h>
#include <poller/softirq.h>

static void softirq_dispatch(struct napi *napi)
{
	struct softnet *softnet = napi->softnet;

	inbox_put(&softnet->inbox, napi); /* pairs with the look at the inbox in active_leave */
	/* A wake-up by the runner itself, from its interrupt handler, is only a flag. */
	if (!atomic_load(&softnet->active))
		runner_wake(softnet->irq);
}

/* Whoever enters has the list and the context. */
static bool active_enter(struct softnet *softnet)
{
	return !atomic_load(&softnet->active) && !atomic_exchange(&softnet->active, true);
}

/*
 * True when the inbox is empty after leaving, or somebody else has entered. Stores `active`, then
 * loads the inbox; dispatch stores the inbox, then loads `active`: one of them sees the other.
 */
static bool active_leave(struct softnet *softnet)
{
	atomic_store(&softnet->active, false);
	return inbox_empty(&softnet->inbox) || atomic_load(&softnet->active);
}

static void squeeze_count(struct softnet *softnet, struct napi_list *list, enum squeeze cause)
{
	counter_add(&softnet->record->counters.time_squeeze[cause], 1);
	for (struct napi *napi = list->first; napi; napi = napi->next)
		counter_add(&napi->record->napi.squeezed[cause], 1);
}

/* One round over the list (the kernel's net_rx_action). True when work is left. */
static bool softirq_round(struct softnet *softnet)
{
	struct engine *engine = softnet->engine;
	struct context *context = softnet->context;
	int64_t limit = context->now + engine_budget_ns(engine);
	int64_t budget = atomic_load_explicit(&engine->budget, memory_order_relaxed);
	struct napi_list unpolled, repoll;

	counter_add(&softnet->record->counters.rounds, 1);
	list_init(&unpolled);
	list_init(&repoll);
	inbox_take(&softnet->inbox, &softnet->list);
	list_join(&unpolled, &softnet->list);
	for (;;) {
		struct napi *napi;
		uint32_t work;

		if (!unpolled.first && !repoll.first)
			inbox_take(&softnet->inbox, &unpolled);
		if (!unpolled.first)
			break;
		napi = list_take(&unpolled);
		if (napi_poll(napi, context, &work))
			list_append(&repoll, napi);
		budget -= work;
		if (CANARY(OVERRUN) && unpolled.first)
			continue;
		if (CANARY(BUDGET_OFF_BY_ONE) && !budget && context->now < limit)
			continue;
		if (budget > 0 && context->now < limit)
			continue;
		if (unpolled.first || repoll.first) {
			enum squeeze cause = budget > 0 ? SQUEEZE_TIME : SQUEEZE_BUDGET;

			squeeze_count(softnet, &unpolled, cause);
			for (struct napi *n = repoll.first; n; n = n->next)
				counter_add(&n->record->napi.squeezed[cause], 1);
		}
		break;
	}
	inbox_take(&softnet->inbox, &softnet->list);
	list_join(&unpolled, &softnet->list);
	list_join(&unpolled, &repoll);
	softnet->list = unpolled;
	if (!softnet->list.first)
		list_init(&softnet->list);
	return softnet->list.first;
}

/* Rounds until there is no work, or a limit is reached: which one, or PUNT_MAX. */
static enum punt softirq_run(struct softnet *softnet)
{
	const struct engine_config *config = &softnet->engine->config;
	struct context *context = softnet->context;
	int64_t limit = context->now + config->restart_usecs * NSEC_PER_USEC;
	uint32_t restarts = config->restarts;

	while (softirq_round(softnet)) {
		if (context->now >= limit)
			return PUNT_TIME;
		if (!--restarts)
			return PUNT_RESTARTS;
		softnet->looped_at = context->now;
		counter_add(&softnet->record->counters.restarts, 1);
	}
	return PUNT_MAX;
}

static bool looped_within(const struct softnet *softnet, uint32_t ticks)
{
	int64_t tick = NSEC_PER_SEC / softnet->engine->config.hz;

	return softnet->looped_at >= 0 && softnet->context->now / tick - softnet->looped_at / tick <
						  ticks + CANARY(OFF_BY_ONE);
}

/* Counted before the wake-up: it takes a step after this, and by then knows of it. */
static void ksoftirqd_wake(struct softnet *softnet)
{
	atomic_fetch_add(&softnet->wakes, 1);
	runner_wake(softnet->ksoftirqd);
}

static bool ksoftirqd_running(struct softnet *softnet)
{
	return atomic_load(&softnet->wakes) != atomic_load(&softnet->rested);
}

/* Why the policy leaves what was raised to ksoftirqd before any of it is polled, or PUNT_MAX. */
static enum punt softirq_defers(struct softnet *softnet, uint32_t word)
{
	switch (DEFERRAL_POLICY(word)) {
	case DEFERRAL_LOOPED:
		if (!looped_within(softnet, DEFERRAL_TICKS(word)))
			return PUNT_MAX;
		break;
	case DEFERRAL_KSOFTIRQD_RUNNING:
		if (!ksoftirqd_running(softnet))
			return PUNT_MAX;
		break;
	default:
		return PUNT_MAX;
	}
	inbox_take(&softnet->inbox, &softnet->list);
	if (!softnet->list.first)
		return PUNT_MAX; /* an interrupt for another poller */
	return DEFERRAL_POLICY(word) == DEFERRAL_LOOPED ? PUNT_LOOPED : PUNT_RUNNING;
}

/*
 * The list goes to ksoftirqd, which has to be woken after active_leave. Until those NAPIs are
 * complete their interrupts would only wake the interrupt runner for nothing, so they are masked;
 * napi_complete unmasks.
 */
static void softirq_punt(struct softnet *softnet, enum punt cause)
{
	counter_add(&softnet->record->counters.punted[cause], 1);
	for (struct napi *napi = softnet->list.first; napi; napi = napi->next)
		napi_mask(napi);
}

struct step softirq_irq_step(void *arg)
{
	struct softnet *softnet = arg;
	enum punt cause;
	uint32_t word;
	bool again;

	if (!active_enter(softnet))
		return STEP(STEP_WAIT);
	counter_add(&softnet->record->counters.interrupts, 1);
	softnet->context->now = machine_now(softnet->engine->machine);
	word = atomic_load_explicit(&softnet->deferral, memory_order_relaxed);
	cause = softirq_defers(softnet, word);
	if (cause == PUNT_MAX)
		cause = softirq_run(softnet);
	again = cause != PUNT_MAX && DEFERRAL_POLICY(word) == DEFERRAL_NEVER;
	if (cause != PUNT_MAX && !again) {
		softirq_punt(softnet, cause);
		active_leave(softnet);
		if (!CANARY(LOST_WAKEUP))
			ksoftirqd_wake(softnet);
		return STEP(STEP_WAIT);
	}
	/* What came into the inbox meanwhile is for the next step, so that a step is bounded. */
	if (!active_leave(softnet))
		again = true;
	return STEP(again ? STEP_YIELD : STEP_WAIT);
}

/*
 * The policy has become `never`, and irq/N may have been woken for that in the middle of this step,
 * for nothing. Control stores the policy, then irq/N looks at `active`; here it is the other way
 * round: one of the two sees the other.
 */
static bool ksoftirqd_gives_back(struct softnet *softnet)
{
	return DEFERRAL_POLICY(atomic_load(&softnet->deferral)) == DEFERRAL_NEVER;
}

struct step softirq_ksoftirqd_step(void *arg)
{
	struct softnet *softnet = arg;
	uint32_t wakes = atomic_load(&softnet->wakes);
	bool left = false;

	if (!active_enter(softnet)) {
		atomic_store(&softnet->rested, wakes);
		return STEP(STEP_WAIT); /* who is active wakes us when work is left */
	}
	if (softnet->list.first || !inbox_empty(&softnet->inbox)) {
		if (!ksoftirqd_running(softnet)) /* it is, whoever woke it */
			atomic_store(&softnet->rested, wakes - 1);
		counter_add(&softnet->record->counters.ksoftirqd_rounds, 1);
		softnet->context->now = machine_now(softnet->engine->machine);
		left = softirq_run(softnet) != PUNT_MAX;
	}
	if (!active_leave(softnet))
		left = true;
	if (left && ksoftirqd_gives_back(softnet)) {
		runner_wake(softnet->irq);
		left = false;
	}
	if (!left)
		atomic_store(&softnet->rested, wakes);
	return STEP(left ? STEP_YIELD : STEP_WAIT);
}

static int softirq_prepare(struct napi *napi, struct softnet *softnet, struct error *err)
{
	(void)napi;
	(void)softnet;
	(void)err;
	return 0;
}

static struct runner *softirq_runner(struct napi *napi)
{
	return napi->softnet->irq;
}

static void softirq_retire(struct napi *napi, struct softnet *softnet)
{
	(void)napi;
	(void)softnet;
}

const struct poller_ops softirq_poller = {
	.name = "softirq",
	.prepare = softirq_prepare,
	.runner = softirq_runner,
	.dispatch = softirq_dispatch,
	.retire = softirq_retire,
};

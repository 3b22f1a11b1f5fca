/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <napier/port.h>

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
	return !atomic_load_explicit(&softnet->active, memory_order_relaxed) &&
	       !atomic_exchange(&softnet->active, true);
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
	while (unpolled.first) {
		struct napi *napi = list_take(&unpolled);
		uint32_t work;

		if (napi_poll(napi, context, &work))
			list_append(&repoll, napi);
		budget -= work;
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

/* Rounds until there is no work or the restart limit is reached. True when work is left. */
static bool softirq_run(struct softnet *softnet)
{
	const struct engine_config *config = &softnet->engine->config;
	struct context *context = softnet->context;
	uint32_t restarts = config->restarts;
	int64_t limit;

	context->now = machine_now(softnet->engine->machine);
	limit = context->now + config->restart_usecs * NSEC_PER_USEC;
	while (softirq_round(softnet)) {
		if (context->now >= limit || !--restarts)
			return true;
		counter_add(&softnet->record->counters.restarts, 1);
	}
	return false;
}

/*
 * The list goes to ksoftirqd. Until those NAPIs are complete their interrupts would only wake the
 * interrupt runner for nothing, so they are masked; napi_complete unmasks.
 */
static void softirq_punt(struct softnet *softnet)
{
	counter_add(&softnet->record->counters.punted, 1);
	for (struct napi *napi = softnet->list.first; napi; napi = napi->next)
		napi_mask(napi);
}

struct step softirq_irq_step(void *arg)
{
	struct softnet *softnet = arg;
	bool left, punt, seen;

	if (!active_enter(softnet))
		return STEP(STEP_WAIT);
	counter_add(&softnet->record->counters.interrupts, 1);
	left = softirq_run(softnet);
	punt = left && softnet_deferral(softnet) != DEFERRAL_NEVER;
	if (punt)
		softirq_punt(softnet);
	seen = active_leave(softnet);
	if (punt) {
		runner_wake(softnet->ksoftirqd);
		return STEP(STEP_WAIT);
	}
	/* What came into the inbox meanwhile is for the next step, so that a step is bounded. */
	return STEP(seen && !left ? STEP_WAIT : STEP_YIELD);
}

struct step softirq_ksoftirqd_step(void *arg)
{
	struct softnet *softnet = arg;
	bool left;

	if (!active_enter(softnet))
		return STEP(STEP_WAIT); /* who is active wakes us when work is left */
	if (!softnet->list.first && inbox_empty(&softnet->inbox)) {
		left = false;
	} else {
		counter_add(&softnet->record->counters.ksoftirqd_rounds, 1);
		left = softirq_run(softnet);
	}
	if (!active_leave(softnet))
		left = true;
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

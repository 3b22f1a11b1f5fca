/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <core/canary.h>
#include <core/context.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/start.h>

static void busy_dispatch(struct napi *napi)
{
	struct busy *busy = napi->softnet->busy;

	napi_mask(napi);
	inbox_put(&busy->inbox, napi);
	runner_wake(busy->runner);
}

/* Every NAPI once. Returns the packets of all. */
static uint32_t busy_round(struct busy *busy)
{
	struct napi_list held;
	uint32_t work, sum = 0;

	list_init(&held);
	busy->held = 0;
	while (busy->list.first) {
		struct napi *napi = list_take(&busy->list);

		bool holds;

		do {
			holds = napi_poll(napi, busy->context, &work);
			sum += work;
		} while (CANARY(UNFAIR) && holds && work);
		if (holds) {
			list_append(&held, napi);
			busy->held++;
		}
	}
	list_join(&busy->list, &held);
	return sum;
}

/* After so long without a packet all of them may rest, ns; TIME_NEVER: one of them never does. */
static int64_t busy_patience(const struct busy *busy)
{
	int64_t longest = 0;

	for (struct napi *napi = busy->list.first; napi; napi = napi->next) {
		int64_t suspend = atomic_load_explicit(&napi->idle_suspend, memory_order_relaxed);

		if (!suspend)
			return TIME_NEVER;
		if (suspend > longest)
			longest = suspend;
	}
	return longest;
}

/*
 * Gives the tokens back when nothing has come for long enough, but for those of NAPIs that have got
 * something just now.
 */
static void busy_rest(struct busy *busy)
{
	struct napi_list held;

	if (busy->context->now - busy->idle_since < busy_patience(busy))
		return;
	busy->idle_since = busy->context->now;
	list_init(&held);
	while (busy->list.first) {
		struct napi *napi = list_take(&busy->list);

		if (napi_complete(napi, 0)) {
			busy->held--;
			continue;
		}
		napi_mask(napi);
		list_append(&held, napi);
	}
	list_join(&busy->list, &held);
}

/*
 * A step is as long as a softirq round may be: then others of the machine get a look in. While one
 * of the NAPIs rests (or is disabled, which looks the same from here) it is one round: the
 * interrupt of that one is seen between steps only.
 */
static struct step busy_step(void *arg)
{
	struct busy *busy = arg;
	struct context *context = busy->context;
	struct engine *engine = busy->engine;
	int64_t limit;

	context->now = machine_now(engine->machine);
	limit = context->now + engine_budget_ns(engine);
	do {
		bool woken = !busy->list.first;

		inbox_take(&busy->inbox, &busy->list);
		if (!busy->list.first)
			return STEP(STEP_WAIT);
		if (busy_round(busy) || woken)
			busy->idle_since = context->now;
		else
			busy_rest(busy);
	} while (context->now < limit &&
		 busy->held == atomic_load_explicit(&busy->users, memory_order_relaxed));
	return STEP(STEP_YIELD);
}

static void busy_stop(struct softnet *softnet)
{
	struct busy *busy = softnet->busy;

	softnet->busy = NULL;
	atomic_store(&softnet->record->busy_tid, 0);
	/* A dispatch puts and then wakes: let it come to its end while the runner is there. */
	machine_quiesce(busy->engine->machine);
	runner_stop(busy->runner);
	context_destroy(busy->context);
	free(busy);
}

static int busy_start(struct softnet *softnet, struct error *err)
{
	struct runner_config config = {.step = busy_step};
	struct runner_observation seen;
	struct busy *busy = aligned_alloc(_Alignof(struct busy), sizeof(*busy));
	int rc;

	if (!busy)
		return error_set(err, -ENOMEM, "no memory for a busy-polling thread");
	memset(busy, 0, sizeof(*busy));
	busy->engine = softnet->engine;
	list_init(&busy->list);
	rc = context_create(busy->engine, &busy->context);
	if (rc) {
		free(busy);
		return error_set(err, rc, "no memory for a busy-polling thread");
	}
	busy->context->keeps = true;
	config.arg = busy;
	snprintf(config.name, sizeof(config.name), "busy/%u", softnet_cpu(softnet));
	cpuset_add(&config.placement.cpus, softnet_cpu(softnet));
	rc = poller_runner_start(busy->engine, &config, &softnet->busy_asked, &busy->runner, err);
	if (rc) {
		context_destroy(busy->context);
		free(busy);
		return rc;
	}
	softnet->busy = busy;
	runner_observe(busy->runner, &seen);
	atomic_store(&softnet->record->busy_tid, seen.tid);
	softnet_record_placement(softnet);
	return 0;
}

static int busy_prepare(struct napi *napi, struct softnet *softnet, struct error *err)
{
	(void)napi;
	if (!softnet->busy) {
		int rc = busy_start(softnet, err);

		if (rc)
			return rc;
	}
	softnet->busy->users++;
	return 0;
}

static void busy_retire(struct napi *napi, struct softnet *softnet)
{
	(void)napi;
	if (atomic_fetch_sub(&softnet->busy->users, 1) == 1)
		busy_stop(softnet);
}

static struct runner *busy_runner(struct napi *napi)
{
	return napi->softnet->busy->runner;
}

const struct poller_ops busy_poller = {
	.name = "busy-poll",
	.per_cpu = true,
	.prepare = busy_prepare,
	.runner = busy_runner,
	.dispatch = busy_dispatch,
	.retire = busy_retire,
};

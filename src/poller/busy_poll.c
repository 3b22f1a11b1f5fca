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
	napi->idle_since = 0;
	inbox_put(&busy->inbox, napi);
	runner_wake(busy->runner);
}

/* True when it has given the token back: nothing came for the time after which it may rest. */
static bool busy_rest(struct napi *napi, const struct context *context, uint32_t work)
{
	int64_t suspend = atomic_load_explicit(&napi->idle_suspend, memory_order_relaxed);

	if (work || !napi->idle_since) {
		napi->idle_since = context->now;
		return false;
	}
	if (!suspend || context->now - napi->idle_since < suspend)
		return false;
	if (napi_complete(napi, 0))
		return true;
	napi_mask(napi); /* something came just now */
	napi->idle_since = context->now;
	return false;
}

/* Every NAPI once. */
static void busy_round(struct busy *busy)
{
	struct napi_list held;
	uint32_t work;

	list_init(&held);
	while (busy->list.first) {
		struct napi *napi = list_take(&busy->list);

		bool holds;

		do
			holds = napi_poll(napi, busy->context, &work);
		while (CANARY(UNFAIR) && holds && work);
		if (holds && !busy_rest(napi, busy->context, work))
			list_append(&held, napi);
	}
	list_join(&busy->list, &held);
}

/* A step is as long as a softirq round may be: then others of the machine get a look in. */
static struct step busy_step(void *arg)
{
	struct busy *busy = arg;
	struct context *context = busy->context;
	struct engine *engine = busy->engine;
	int64_t limit;

	context->now = machine_now(engine->machine);
	limit = context->now + engine_budget_ns(engine);
	do {
		inbox_take(&busy->inbox, &busy->list);
		if (!busy->list.first)
			return STEP(STEP_WAIT);
		busy_round(busy);
	} while (context->now < limit);
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
	if (!--softnet->busy->users)
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

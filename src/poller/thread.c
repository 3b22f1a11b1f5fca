/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * thread: one runner per NAPI, napi/<port>-<queue>, which also takes the queue's interrupts: waking
 * it is all that an interrupt costs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <core/context.h>
#include <core/engine.h>
#include <core/napi.h>
#include <poller/thread.h>

/*
 * One step polls for at most budget_usecs, so that control and others of its class get their turn
 * whatever the polls look like: full ones, or ones that just stay under the weight. (Of a real-time
 * class only after full ones: under the weight it goes on while interrupts are there already.)
 */
static struct step thread_step(void *arg)
{
	struct poller_thread *thread = arg;
	struct context *context = thread->context;
	struct engine *engine = context->engine;
	int64_t limit;
	uint32_t work;

	if (!thread->holds && !atomic_exchange(&thread->granted, false))
		return STEP(STEP_WAIT);
	thread->holds = true;
	context->now = machine_now(engine->machine);
	limit = context->now + engine_budget_ns(engine);
	do {
		if (!napi_poll(thread->napi, context, &work)) {
			thread->holds = false;
			return STEP(STEP_WAIT);
		}
	} while (context->now < limit);
	return STEP(atomic_load_explicit(&thread->yields, memory_order_relaxed) ? STEP_YIELD
										: STEP_AGAIN);
}

/* napi/PORT-QUEUE; the port's name is cut where it must be, the queue's number stays. */
static void thread_name(const struct napi *napi, char name[RUNNER_NAME_MAX])
{
	unsigned queue = napi->queue->index; /* two digits at most */
	int room = RUNNER_NAME_MAX - (int)sizeof("napi/-0") - (queue > 9);

	snprintf(name, RUNNER_NAME_MAX, "napi/%.*s-%u", room, napi->queue->port->name, queue % 100);
}

static int thread_prepare(struct napi *napi, struct softnet *softnet, struct error *err)
{
	struct engine *engine = napi->engine;
	struct runner_config config = {.step = thread_step};
	struct poller_thread *thread = calloc(1, sizeof(*thread));
	struct runner_observation seen;
	struct queue_settings settings;
	int rc;

	(void)softnet;
	if (!thread || context_create(engine, &thread->context)) {
		free(thread);
		return error_set(err, -ENOMEM, "no memory for a polling thread");
	}
	settings_find(&engine->settings, napi->queue->port->name, (int)napi->queue->index,
		      &settings);
	thread->napi = napi;
	thread_name(napi, config.name);
	config.arg = thread;
	config.placement = settings.placement;
	thread->yields = settings.placement.class == RUNNER_FIFO;
	if (cpuset_empty(&config.placement.cpus))
		config.placement.cpus = engine->config.cpus;
	rc = runner_start(engine->machine, &config, &thread->runner, err);
	if (rc) {
		context_destroy(thread->context);
		free(thread);
		return rc;
	}
	napi->thread = thread;
	runner_observe(thread->runner, &seen);
	atomic_store(&napi->record->tid, seen.tid);
	return 0;
}

static struct runner *thread_runner(struct napi *napi)
{
	return napi->thread->runner;
}

static void thread_dispatch(struct napi *napi)
{
	struct poller_thread *thread = napi->thread;

	atomic_store(&thread->granted, true);
	runner_wake(thread->runner);
}

static void thread_retire(struct napi *napi, struct softnet *softnet)
{
	struct poller_thread *thread = napi->thread;

	(void)softnet;
	napi->thread = NULL;
	atomic_store(&napi->record->tid, 0);
	/*
	 * A dispatch grants and then wakes: what it granted may have been used up and handed on
	 * before it comes to the wake-up, for which the runner still has to be there.
	 */
	machine_quiesce(napi->engine->machine);
	runner_stop(thread->runner);
	context_destroy(thread->context);
	free(thread);
}

int poller_thread_place(struct napi *napi, const struct queue_settings *settings)
{
	const struct placement *wanted = &settings->placement;
	struct runner_observation seen;
	int rc;

	if (!napi->thread || !(settings->cpus_set || settings->class_set))
		return 0;
	runner_observe(napi->thread->runner, &seen);
	if (settings->cpus_set)
		seen.placement.cpus =
			cpuset_empty(&wanted->cpus) ? napi->engine->config.cpus : wanted->cpus;
	if (settings->class_set) {
		seen.placement.class = wanted->class;
		seen.placement.level = wanted->level;
	}
	rc = runner_place(napi->thread->runner, &seen.placement);
	if (!rc)
		atomic_store(&napi->thread->yields, seen.placement.class == RUNNER_FIFO);
	return rc;
}

const struct poller_ops thread_poller = {
	.name = "thread",
	.prepare = thread_prepare,
	.runner = thread_runner,
	.dispatch = thread_dispatch,
	.retire = thread_retire,
};

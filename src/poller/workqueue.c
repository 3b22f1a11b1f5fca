/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <core/context.h>
#include <poller/softirq.h>
#include <poller/start.h>
#include <poller/workqueue.h>

/* Wakes one idle worker, the lowest: it ran last, so its CPU and caches are warm. */
static void worker_wake(struct workqueue *wq)
{
	uint64_t idle = atomic_load(&wq->idle);

	while (idle) {
		uint64_t bit = idle & -idle;

		if (atomic_compare_exchange_weak(&wq->idle, &idle, idle & ~bit)) {
			runner_wake(wq->worker[__builtin_ctzll(bit)].runner);
			return;
		}
	}
}

static void workqueue_dispatch(struct napi *napi)
{
	struct workqueue *wq = napi->engine->workqueue;

	inbox_put(&wq->inbox, napi); /* before the look at idle; pairs with worker_rest */
	worker_wake(wq);
}

/* Somebody waits for a worker. */
static bool queue_waiting(struct workqueue *wq)
{
	return !inbox_empty(&wq->inbox) || atomic_load(&wq->listed);
}

static struct napi *queue_take(struct workqueue *wq)
{
	struct napi *napi = NULL;

	if (!queue_waiting(wq))
		return NULL;
	lock_acquire(&wq->lock);
	inbox_take(&wq->inbox, &wq->list);
	if (wq->list.first)
		napi = list_take(&wq->list);
	atomic_store(&wq->listed, wq->list.first);
	lock_release(&wq->lock);
	return napi;
}

/*
 * Behind all who wait. The caller takes the next one itself; a worker that went idle just before
 * takes another, as saturated NAPIs are not dispatched again and would stay on this one worker.
 */
static void queue_put_back(struct workqueue *wq, struct napi *napi)
{
	lock_acquire(&wq->lock);
	inbox_take(&wq->inbox, &wq->list);
	list_append(&wq->list, napi);
	atomic_store(&wq->listed, true);
	lock_release(&wq->lock);
	worker_wake(wq);
}

/* Nothing to do. Enters itself as idle, then looks again. */
static struct step worker_rest(struct worker *worker)
{
	struct workqueue *wq = worker->workqueue;

	worker->began = 0;
	atomic_fetch_or(&wq->idle, worker->bit);
	return STEP(queue_waiting(wq) ? STEP_YIELD : STEP_WAIT);
}

/* By the budget of now, which may have become less since it began. */
static bool worker_in_time(const struct worker *worker)
{
	return worker->context->now - worker->began < engine_budget_ns(worker->workqueue->engine);
}

/* To the next NAPI, or first to others of its class, whom a real-time worker would keep waiting. */
static struct step worker_next(struct worker *worker)
{
	if (worker_in_time(worker))
		return STEP(STEP_AGAIN);
	worker->began = 0;
	return STEP(STEP_YIELD);
}

/*
 * One NAPI. All of them together have budget_usecs: a round's time is also the time after which a
 * worker should let others run.
 */
static struct step worker_step(void *arg)
{
	struct worker *worker = arg;
	struct workqueue *wq = worker->workqueue;
	struct context *context = worker->context;
	struct engine *engine = wq->engine;
	struct napi *napi = worker->napi;
	uint32_t work;

	/*
	 * Woken by other than worker_wake: whoever looks for an idle one must not find this one.
	 * Before it takes a NAPI, or the wake-up for the next one would go to a worker that is
	 * busy.
	 */
	if (atomic_load_explicit(&wq->idle, memory_order_relaxed) & worker->bit)
		atomic_fetch_and(&wq->idle, ~worker->bit);
	if (!napi)
		napi = queue_take(wq);
	if (!napi)
		return worker_rest(worker);
	worker->napi = NULL;
	context->now = machine_now(engine->machine);
	if (!worker->began)
		worker->began = context->now;
	while (napi_poll(napi, context, &work)) {
		if (queue_waiting(wq)) {
			queue_put_back(wq, napi);
			break;
		}
		napi_mask(napi);
		if (!worker_in_time(worker)) {
			worker->napi = napi;
			break;
		}
	}
	return worker_next(worker);
}

static int worker_start(struct workqueue *wq, uint32_t i, struct error *err)
{
	struct worker *worker = &wq->worker[i];
	struct runner_config config = {.step = worker_step, .arg = worker};
	struct runner_observation seen;
	int rc = context_create(wq->engine, &worker->context);

	if (rc)
		return error_set(err, rc, "no memory for a worker");
	worker->workqueue = wq;
	worker->bit = UINT64_C(1) << i;
	snprintf(config.name, sizeof(config.name), "kworker/%u", i % WORKERS_MAX);
	rc = poller_runner_start(wq->engine, &config, &wq->engine->config.worker, &worker->runner,
				 err);
	if (rc) {
		context_destroy(worker->context);
		return rc;
	}
	runner_observe(worker->runner, &seen);
	atomic_store(&wq->engine->counters->worker_tid[i], seen.tid);
	return 0;
}

void workqueue_record_placement(struct engine *engine)
{
	const struct placement *asked = &engine->config.worker;
	struct counters_file *file = engine->counters;

	atomic_store(&file->worker_class, (int32_t)asked->class);
	atomic_store(&file->worker_level, asked->level);
	cpuset_format(&asked->cpus, file->worker_cpus, sizeof(file->worker_cpus));
}

void workqueue_place(struct engine *engine, const struct cpuset *cpus)
{
	struct workqueue *wq = engine->workqueue;

	engine->config.worker.cpus = *cpus;
	for (uint32_t i = 0; wq && i < wq->workers; i++) {
		struct runner_observation seen;

		runner_observe(wq->worker[i].runner, &seen);
		seen.placement.cpus = *cpus;
		if (runner_place(wq->worker[i].runner, &seen.placement))
			engine_log(engine, LEVEL_WARNING, "kworker/%u stays on the CPUs it had", i);
	}
	workqueue_record_placement(engine);
}

static void workqueue_stop(struct workqueue *wq)
{
	/* A dispatch puts and then wakes: let it come to its end while the workers are there. */
	machine_quiesce(wq->engine->machine);
	while (wq->workers) {
		struct worker *worker = &wq->worker[--wq->workers];

		atomic_store(&wq->engine->counters->worker_tid[wq->workers], 0);
		runner_stop(worker->runner);
		context_destroy(worker->context);
	}
	lock_destroy(&wq->lock);
	free(wq);
}

static int workqueue_start(struct engine *engine, struct workqueue **out, struct error *err)
{
	struct workqueue *wq = aligned_alloc(_Alignof(struct workqueue), sizeof(*wq));
	uint32_t workers = engine->config.workers;

	if (!wq)
		return error_set(err, -ENOMEM, "no memory for a workqueue");
	memset(wq, 0, sizeof(*wq));
	wq->engine = engine;
	list_init(&wq->list);
	if (lock_init(&wq->lock)) {
		free(wq);
		return error_set(err, -ENOMEM, "no lock for a workqueue");
	}
	for (; wq->workers < workers; wq->workers++) {
		int rc = worker_start(wq, wq->workers, err);

		if (rc) {
			workqueue_stop(wq);
			return rc;
		}
	}
	workqueue_record_placement(engine);
	*out = wq;
	return 0;
}

/* The workers are there while a NAPI uses them. */
static int workqueue_prepare(struct napi *napi, struct softnet *softnet, struct error *err)
{
	struct engine *engine = napi->engine;

	(void)softnet;
	if (!engine->workqueue) {
		int rc = workqueue_start(engine, &engine->workqueue, err);

		if (rc)
			return rc;
	}
	engine->workqueue->users++;
	return 0;
}

static void workqueue_retire(struct napi *napi, struct softnet *softnet)
{
	struct workqueue *wq = napi->engine->workqueue;

	(void)softnet;
	if (--wq->users)
		return;
	napi->engine->workqueue = NULL;
	workqueue_stop(wq);
}

static struct runner *workqueue_runner(struct napi *napi)
{
	return napi->softnet->irq;
}

const struct poller_ops workqueue_poller = {
	.name = "workqueue",
	.owner = "kworker",
	.prepare = workqueue_prepare,
	.runner = workqueue_runner,
	.dispatch = workqueue_dispatch,
	.retire = workqueue_retire,
};

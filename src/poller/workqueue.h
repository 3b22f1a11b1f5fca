/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workqueue: one unbound pool of workers, kworker/N, for all NAPIs of an engine that ask for it.
 *
 * A NAPI stands in the queue once (its token does) and is polled by one worker at a time. A worker
 * polls its NAPI on while that has full polls and nobody waits; when others wait it goes back to
 * the end of the queue after each poll, so a saturated port takes its turn among others and at most
 * one worker. Interrupts are taken by the engine CPU's interrupt runner; they are masked while a
 * worker goes on beyond one poll.
 *
 * Who puts a NAPI into the queue takes one worker out of `idle` and wakes it; a worker that goes
 * idle enters itself there and looks at the queue after that: one of the two sees the other.
 */
#ifndef POLLER_WORKQUEUE_H
#define POLLER_WORKQUEUE_H

#include <core/engine.h>
#include <poller/list.h>

#define WORKERS_MAX COUNTERS_WORKERS

struct workqueue;

struct worker {
	struct workqueue *workqueue;
	uint64_t bit; /* in idle */
	struct runner *runner;
	struct context *context;
	struct napi *napi; /* whose token it holds from one step to the next */
	int64_t began;	   /* budget_usecs after it others of its class come first; 0: not yet */
};

struct workqueue {
	struct engine *engine;
	uint32_t users; /* NAPIs; control only */
	uint32_t workers;
	struct worker worker[WORKERS_MAX];

	struct lock lock; /* of the list; a worker holds it to take or put one NAPI */
	struct napi_list list;
	_Atomic bool listed; /* the list is not empty */

	_Alignas(64) struct napi_inbox inbox;
	_Alignas(64) _Atomic uint64_t idle;
};

/* Control context. Writes what is asked of the workers into the counters. */
void workqueue_record_placement(struct engine *engine);
/* Control context. Its workers, there or to come, run on these. */
void workqueue_place(struct engine *engine, const struct cpuset *cpus);

#endif

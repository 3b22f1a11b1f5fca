/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CORE_ENGINE_QUEUE_H
#define CORE_ENGINE_QUEUE_H

#include <core/engine.h>
#include <core/napi.h>

/*
 * Control context, engine lock held. Gives an open port's queue its NAPI (disabled, with what was
 * set for it) and its lock, in the caller's memory, and a record. Nothing is left when it fails.
 */
int queue_begin(struct port_queue *queue, struct napi *napi, struct lock *lock, struct error *err);
/* Its NAPI is disabled and nobody sends on it any more. The lock stays: a kind's close may use it.
 */
void queue_end(struct port_queue *queue);

/*
 * The kind of port hears who polls the queue and what is set for that. What its poller_changed
 * says.
 */
int queue_tell(struct napi *napi, struct error *err);
/* The same where it was not asked for just now: an error is logged. */
void queue_told(struct napi *napi);

/*
 * What its NAPI merges is as is set for it and as the handler of now wants it. In force with the
 * next poll, which also lets go what is held and is not to be any more.
 */
void queue_gro(struct napi *napi);
/* The same of all NAPIs: a handler's ports have changed. */
void queues_gro(struct engine *engine);

/* The wake sources of its NAPI are as is set for it from now on. */
void queue_deferral(struct napi *napi);

/* Where it belongs: as is set, or as it falls, or instead of a CPU that is away. */
struct softnet *queue_softnet(const struct port_queue *queue,
			      const struct queue_settings *settings);

/*
 * NAPIs in the order of ports and queues, the engine's own ports included, from a walk of zeros on;
 * NULL after the last. Control context, engine lock held.
 */
struct napi_walk {
	uint32_t port, queue;
};

struct napi *napi_walk_next(const struct engine *engine, struct napi_walk *walk);

/* What is asked of the queue's thread, for those who read the counters. */
void queue_record_placement(struct napi *napi);

#endif

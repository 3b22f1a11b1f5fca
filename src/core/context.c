/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <napier/busy_poll.h>
#include <napier/port.h>

#include <core/context.h>
#include <core/engine.h>
#include <core/napi.h>
#include <machine/lock.h>

/*
 * The lowest that is free, so that they stay dense however many contexts come and go. Beyond as
 * many as there are bits for, the last one is everybody's: indices only spread.
 */
#define INDEX_SHARED (CONTEXT_WORDS * 64)

static uint32_t index_take(struct engine *engine)
{
	for (uint32_t i = 0; i < CONTEXT_WORDS; i++) {
		uint64_t used = atomic_load(&engine->context_indices[i]);

		while (~used) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~used);

			if (atomic_compare_exchange_weak(&engine->context_indices[i], &used,
							 used | UINT64_C(1) << bit))
				return i * 64 + bit;
		}
	}
	return INDEX_SHARED;
}

static void index_give(struct engine *engine, uint32_t index)
{
	if (index < INDEX_SHARED)
		atomic_fetch_and(&engine->context_indices[index / 64],
				 ~(UINT64_C(1) << index % 64));
}

int context_create(struct engine *engine, struct context **out)
{
	struct context *context = aligned_alloc(_Alignof(struct context), sizeof(*context));

	if (!context)
		return -ENOMEM;
	memset(context, 0, sizeof(*context));
	pool_cache_init(&context->cache, engine->pool);
	context->engine = engine;
	context->counters = &context->own;
	context->now = machine_now(engine->machine);
	context->index = index_take(engine);
	lock_acquire(&engine->context_lock);
	context->next = engine->context_list;
	context->at = &engine->context_list;
	if (context->next)
		context->next->at = &context->next;
	engine->context_list = context;
	lock_release(&engine->context_lock);
	*out = context;
	return 0;
}

void context_destroy(struct context *context)
{
	if (!context)
		return;
	context_kick(context);
	pool_cache_drain(&context->cache);
	index_give(context->engine, context->index);
	lock_acquire(&context->engine->context_lock);
	*context->at = context->next;
	if (context->next)
		context->next->at = context->at;
	lock_release(&context->engine->context_lock);
	free(context);
}

void context_kick(struct context *context)
{
	/* First: other CPUs work on those while this one sends. */
	if (context->backlogs)
		backlogs_kick(context);
	for (uint32_t i = 0; i < context->kicks; i++) {
		struct port_queue *queue = context->kick[i];
		struct napi *tx = atomic_load_explicit(&queue->tx, memory_order_acquire);

		if (tx) {
			if (!context->foreign)
				napi_schedule(tx);
			else if (!napi_remind(tx))
				irq_raise(&tx->queue->irq);
			continue;
		}
		lock_acquire(queue->lock);
		queue->port->ops->kick(queue, context);
		lock_release(queue->lock);
	}
	context->kicks = 0;
}

int engine_context_open(struct engine *engine, struct context **out)
{
	int rc = context_create(engine, out);

	if (!rc)
		(*out)->foreign = true;
	return rc;
}

void context_enter(struct context *context)
{
	if (!context->inside++)
		context->entered = machine_enter(context->engine->machine);
}

void context_leave(struct context *context)
{
	if (--context->inside || !context->entered)
		return;
	context->entered = false;
	machine_leave(context->engine->machine);
}

void engine_context_close(struct context *context)
{
	if (!context->engine)
		free(context); /* its engine is gone, and all packets with it */
	else
		context_destroy(context);
}

void contexts_orphan(struct engine *engine)
{
	for (struct context *context = engine->context_list; context; context = context->next)
		context->engine = NULL;
}

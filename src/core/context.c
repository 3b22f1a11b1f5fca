/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <napier/engine.h>
#include <napier/port.h>

#include <core/context.h>
#include <core/engine.h>
#include <machine/lock.h>

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
	context->index = atomic_fetch_add(&engine->contexts, 1);
	*out = context;
	return 0;
}

void context_destroy(struct context *context)
{
	if (!context)
		return;
	context_kick(context);
	pool_cache_drain(&context->cache);
	free(context);
}

void context_kick(struct context *context)
{
	for (uint32_t i = 0; i < context->kicks; i++) {
		struct port_queue *queue = context->kick[i];

		lock_acquire(queue->lock);
		queue->port->ops->kick(queue, context);
		lock_release(queue->lock);
	}
	context->kicks = 0;
}

int engine_context_open(struct engine *engine, struct context **out)
{
	return context_create(engine, out);
}

void engine_context_close(struct context *context)
{
	context_destroy(context);
}

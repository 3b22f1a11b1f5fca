/* SPDX-License-Identifier: BSD-2-Clause */
/* A pool, and a context that takes from it and counts for itself: for tests without an engine. */
#ifndef POOL_CONTEXT_H
#define POOL_CONTEXT_H

#include "test.h"

#include <napier/napi.h>

static struct pool *pool;
static struct context context;

/* `frames` of 2048 bytes. */
static inline void pool_context_begin(uint32_t frames)
{
	const struct pool_config config = {.frames = frames, .frame_size = 2048};

	memset(&context, 0, sizeof(context));
	context.counters = &context.own;
	assert_int_equal(pool_create(&config, &pool, NULL), 0);
	pool_cache_init(&context.cache, pool);
}

/* All of them are free again. */
static inline void pool_context_end(void)
{
	pool_cache_drain(&context.cache);
	assert_int_equal(pool_available(pool), pool->frames);
	pool_destroy(pool);
}

#endif

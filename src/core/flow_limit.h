/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow limit of a backlog: while it is more than half full, a flow that sent more than half of
 * the last 128 packets loses its next ones, so that one large flow does not shut out small ones.
 * (The kernel's rule.) One user at a time: under the backlog's lock.
 */
#ifndef CORE_FLOW_LIMIT_H
#define CORE_FLOW_LIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define FLOW_LIMIT_HISTORY 128

struct flow_limit {
	uint32_t shift; /* of a 32-bit product: its upper bits are the bucket */
	uint32_t head;
	uint16_t history[FLOW_LIMIT_HISTORY]; /* the buckets of the last packets */
	uint8_t bucket[];		      /* packets of it in the history */
};

/* buckets: a power of two, 2..65536. NULL without memory; ended by free(). */
static inline struct flow_limit *flow_limit_create(uint32_t buckets)
{
	struct flow_limit *limit = calloc(1, sizeof(*limit) + buckets);

	if (limit)
		limit->shift = (uint32_t)__builtin_clz(buckets) + 1;
	return limit;
}

/* The backlog is half full or more, and this packet came. True: it is to be dropped. */
static inline bool flow_limit_over(struct flow_limit *limit, uint32_t hash)
{
	uint32_t now = hash * UINT32_C(0x61c88647) >> limit->shift;
	uint32_t old = limit->history[limit->head];

	limit->history[limit->head] = (uint16_t)now;
	limit->head = (limit->head + 1) % FLOW_LIMIT_HISTORY;
	if (limit->bucket[old])
		limit->bucket[old]--;
	return ++limit->bucket[now] > FLOW_LIMIT_HISTORY / 2;
}

#endif

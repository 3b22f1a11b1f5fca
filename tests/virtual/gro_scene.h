/* SPDX-License-Identifier: BSD-2-Clause */
/* A scene whose port a merges what it receives. */
#ifndef GRO_SCENE_H
#define GRO_SCENE_H

#include "scene.h"

/* timeout_ns: gro_flush_timeout; 0: none. */
static inline void merge_on(struct scene *s, uint32_t timeout_ns)
{
	const struct queue_settings settings = {
		.gro_set = true,
		.gro = GRO_ON,
		.gro_flush_timeout_set = timeout_ns > 0,
		.gro_flush_timeout = timeout_ns,
	};

	scene_set(s, "a", -1, settings);
}

static inline void scene_one(struct scene *s, enum poller poller)
{
	/* A handful of ordinary runners share the CPU with the interrupts. */
	scene_begin(s, true, 7, poller);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of its CPUs the engine works on. Control context, engine lock held. */
#ifndef CORE_ENGINE_CPUS_H
#define CORE_ENGINE_CPUS_H

#include <core/engine.h>

/* -EINVAL: one that the engine was not created with. */
int engine_cpus_check(struct engine *engine, const struct cpuset *cpus, struct error *err);
/*
 * Works on these from now on, which have been checked; empty: on all it was created with.
 * -ETIMEDOUT: a poll or a backlog did not end in time; what starting runners says. Then everything
 * is as it was.
 */
int engine_cpus_change(struct engine *engine, const struct cpuset *cpus, struct error *err);

/* The CPUs it works on and those that are away, such as "0-2 (away: 3)". */
void engine_cpus_text(const struct engine *engine, char *text, size_t size);

/* Of an engine CPU that may be away, or NULL. */
struct softnet *engine_softnet_any(struct engine *engine, unsigned cpu);
/* `home`, or the which-th of those that are there, counted round. */
struct softnet *engine_softnet_instead(struct engine *engine, struct softnet *home, uint32_t which);

#endif

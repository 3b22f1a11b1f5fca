/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering as control sets it up. Control context, engine lock held. */
#ifndef CORE_ENGINE_STEER_H
#define CORE_ENGINE_STEER_H

#include <core/engine.h>
#include <core/napi.h>

/* At the engine's start, its CPUs known. -EINVAL, -ERANGE, -ENOMEM: a field of config. */
int engine_steer_begin(struct engine *engine, struct error *err);
void engine_steer_end(struct engine *engine);

/* What a set for the engine says of steering: checked before any of it is done, and done. */
int engine_steer_check(const struct engine_settings *s, struct error *err);
/* All or nothing. -ENOMEM, -ETIMEDOUT. */
int engine_steer_set(struct engine *engine, const struct engine_settings *s, struct error *err);

/* What a set for a queue says of steering, before any of it is done. */
int steer_check(struct engine *engine, const char *port, const struct queue_settings *s,
		struct error *err);

/*
 * Steers what the queue receives as `s` says, in the keys that are set there, from the queue's
 * next poll on. It is not polled until what it put into backlogs has left its handler: so no
 * packet is lost and no flow changes its order. Does nothing where all is as wished.
 *
 * -ETIMEDOUT within `timeout`, -ENOMEM, and what backlogs_open says: with everything as before.
 */
int steer_apply(struct napi *napi, const struct queue_settings *s, int64_t timeout,
		struct error *err);

/* The same keys again, for engine CPUs that have gone away or come back. */
int steer_again(struct napi *napi, int64_t timeout, struct error *err);
/* Flows are read on the i-th engine CPU, or no longer. */
void steer_cpu_mark(struct engine *engine, uint32_t i, bool there);

/* The NAPIs of the port are disabled: it has no packets in backlogs any more. -ETIMEDOUT. */
int steer_port_end(struct port *port, int64_t timeout);

#endif

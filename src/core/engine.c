/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine itself: create, destroy, lock, log, tick. Its ports are in engine_port.c. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

#include <core/context.h>
#include <core/engine.h>
#include <core/engine_cpus.h>
#include <core/engine_steer.h>
#include <core/napi.h>
#include <poller/softirq.h>
#include <poller/workqueue.h>

const char *napier_version(void)
{
	return NAPIER_VERSION;
}

void engine_log(struct engine *engine, enum log_level level, const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (!engine->config.log)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	engine->config.log(engine->config.log_arg, level, line);
}

static bool lock_tried(void *arg)
{
	struct engine *engine = arg;

	return lock_try(&engine->control);
}

void engine_lock(struct engine *engine)
{
	if (!lock_try(&engine->control))
		machine_wait(engine->machine, lock_tried, engine, TIME_NEVER);
}

void engine_unlock(struct engine *engine)
{
	lock_release(&engine->control);
	machine_notify(engine->machine);
}

static void default_u32(uint32_t *value, uint32_t fallback)
{
	if (!*value)
		*value = fallback;
}

static int config_fill(struct engine_config *config, struct error *err)
{
	struct cpuset there;

	if (!config->name)
		config->name = "default";
	default_u32(&config->frames, 16384);
	default_u32(&config->frame_size, 2048);
	default_u32(&config->ports_max, 64);
	default_u32(&config->queues_max, 256);
	default_u32(&config->weight, NAPI_WEIGHT_DEFAULT);
	default_u32(&config->budget, 300);
	default_u32(&config->budget_usecs, 2000);
	default_u32(&config->restarts, 10);
	default_u32(&config->max_backlog, 1000);
	default_u32(&config->gro_normal_batch, GRO_NORMAL_BATCH);
	default_u32(&config->restart_usecs, 2000);
	default_u32(&config->looped_ticks, LOOPED_TICKS_DEFAULT);
	default_u32(&config->hz, 250);
	if (!config->packet_ns)
		config->packet_ns = 100;
	if (!config->poll_ns)
		config->poll_ns = 200;
	if (config->weight > NAPI_WEIGHT_MAX)
		return error_set(err, -ERANGE, "weight %u: must be 1 to %u", config->weight,
				 NAPI_WEIGHT_MAX);
	if (config->gro_normal_batch > PACKET_VECTOR_MAX)
		return error_set(err, -ERANGE, "gro_normal_batch %u: must be 1 to %u",
				 config->gro_normal_batch, PACKET_VECTOR_MAX);
	if (!poller_valid(config->poller))
		return error_set(err, -EINVAL, "no such poller; there are: %s", poller_list());
	if ((unsigned)config->deferral >= DEFERRAL_MAX)
		return error_set(err, -EINVAL, "no such deferral; the policies are %s",
				 deferral_list());
	if (config->looped_ticks > LOOPED_TICKS_MAX || config->hz > HZ_MAX)
		return error_set(err, -ERANGE, "looped_ticks must be 1 to %d, hz 1 to %d",
				 LOOPED_TICKS_MAX, HZ_MAX);
	machine_cpus(config->machine, &there);
	if (cpuset_empty(&config->cpus))
		config->cpus = there;
	default_u32(&config->workers, cpuset_count(&config->cpus));
	if (config->workers < 2)
		config->workers = 2;
	if (cpuset_empty(&config->worker.cpus))
		config->worker.cpus = config->cpus;
	if (config->workers > WORKERS_MAX)
		config->workers = WORKERS_MAX;
	for (unsigned cpu = cpuset_next(&config->cpus, 0); cpu < CPU_MAX;
	     cpu = cpuset_next(&config->cpus, cpu + 1)) {
		char text[128];

		if (cpuset_has(&there, cpu))
			continue;
		cpuset_format(&there, text, sizeof(text));
		return error_set(err, -EINVAL,
				 "CPU %u cannot be used: this process may run on CPUs %s", cpu,
				 text);
	}
	return 0;
}

static void ports_tick(struct engine *engine, int64_t now)
{
	for (uint32_t i = 0; i < engine->config.ports_max; i++) {
		struct port *port = engine->port[i];

		if (port && port->ops->tick)
			port->ops->tick(port, now);
	}
}

/* Housekeeping. While control holds the lock this second's is left out. */
static struct step tick_step(void *arg)
{
	struct engine *engine = arg;
	int64_t now = machine_now(engine->machine);

	if (now < engine->next_tick)
		return STEP_UNTIL(engine->next_tick);
	engine->next_tick = now + TICK;
	if (lock_try(&engine->control)) {
		engine_watch(engine);
		for (uint32_t i = 0; i < HANDLERS_MAX; i++) {
			struct handler *handler = engine->handler[i];

			if (handler && handler->ops->tick)
				handler->ops->tick(handler, now);
		}
		ports_tick(engine, now);
		engine_unlock(engine);
	}
	return STEP_UNTIL(engine->next_tick);
}

static int cpus_start(struct engine *engine, struct error *err)
{
	unsigned cpu = 0;

	engine->softnet =
		aligned_alloc(_Alignof(struct softnet), engine->cpus * sizeof(struct softnet));
	if (!engine->softnet)
		return error_set(err, -ENOMEM, "no memory for %u engine CPUs", engine->cpus);
	memset(engine->softnet, 0, engine->cpus * sizeof(struct softnet));
	/* All of them before one is started: those that were not are stopped as well. */
	for (uint32_t i = 0; i < engine->cpus; i++, cpu++) {
		cpu = cpuset_next(&engine->config.cpus, cpu);
		softnet_init(&engine->softnet[i], engine, cpu, counters_cpu(engine->counters, i));
	}
	for (uint32_t i = 0; i < engine->cpus; i++) {
		int rc = softnet_start(&engine->softnet[i], err);

		if (rc)
			return rc;
	}
	return 0;
}

static int parts_start(struct engine *engine, struct error *err)
{
	struct engine_config *config = &engine->config;
	struct pool_config pool = {.frames = config->frames, .frame_size = config->frame_size};
	struct runner_config tick = {.name = "napier/tick", .step = tick_step, .arg = engine};
	const char *path = engine->counters_path[0] ? engine->counters_path : NULL;
	int rc;

	engine->port = calloc(config->ports_max, sizeof(*engine->port));
	engine->queue_ended = calloc(config->queues_max, sizeof(*engine->queue_ended));
	if (!engine->port || !engine->queue_ended)
		return error_set(err, -ENOMEM, "no memory for %u ports", config->ports_max);
	rc = pool_create(&pool, &engine->pool, err);
	if (rc)
		return rc;
	rc = counters_create(path, engine->cpus, config->queues_max, &engine->counters, err);
	if (rc)
		return rc;
	snprintf(engine->counters->engine, sizeof(engine->counters->engine), "%s", config->name);
	atomic_store(&engine->counters->poller_default, (uint32_t)config->poller);
	snprintf(engine->counters->version_text, sizeof(engine->counters->version_text), "%s",
		 NAPIER_VERSION);
	rc = context_create(engine, &engine->context);
	if (rc)
		return error_set(err, rc, "no memory for the engine");
	engine_settings_start(engine);
	rc = cpus_start(engine, err);
	if (rc)
		return rc;
	rc = engine_steer_begin(engine, err);
	if (rc)
		return rc;
	rc = runner_start(engine->machine, &tick, &engine->tick, err);
	if (!rc)
		counters_publish(engine->counters);
	return rc;
}

/* A path that was cut would name another file. */
static int path_copy(const char *name, const char *path, char to[ENGINE_PATH_MAX],
		     struct error *err)
{
	size_t length = path ? strlen(path) : 0;

	if (length >= ENGINE_PATH_MAX)
		return error_set(err, -ENAMETOOLONG, "%s has %zu bytes: it must be at most %d",
				 name, length, ENGINE_PATH_MAX - 1);
	if (path)
		memcpy(to, path, length + 1);
	return 0;
}

int engine_create(const struct engine_config *config, struct engine **out, struct error *err)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int rc;

	if (!engine)
		return error_set(err, -ENOMEM, "no memory for an engine");
	engine->config = *config;
	engine->machine = config->machine;
	rc = config_fill(&engine->config, err);
	if (!rc)
		rc = path_copy("counters_path", config->counters_path, engine->counters_path, err);
	if (!rc)
		rc = path_copy("restore_path", config->restore_path, engine->restore_path, err);
	if (!rc)
		rc = lock_init(&engine->control);
	if (rc) {
		free(engine);
		return rc;
	}
	rc = lock_init(&engine->context_lock);
	if (rc) {
		lock_destroy(&engine->control);
		free(engine);
		return rc;
	}
	snprintf(engine->name, sizeof(engine->name), "%s", engine->config.name);
	engine->config.name = engine->name;
	engine->config.counters_path = engine->counters_path;
	engine->config.restore_path = engine->restore_path;
	engine->packet_ns = engine->config.packet_ns;
	engine->poll_ns = engine->config.poll_ns;
	engine->cpus_all = engine->config.cpus;
	engine->cpus = cpuset_count(&engine->cpus_all);
	engine->worker_cpus_own = !cpuset_empty(&config->worker.cpus);
	rc = parts_start(engine, err);
	if (rc) {
		engine_destroy(engine);
		return rc;
	}
	*out = engine;
	return 0;
}

/* A poll that does not end: its memory cannot be freed before it has. */
static void port_end(struct port *port)
{
	while (engine_port_remove(port->engine, port, NULL))
		;
}

void engine_destroy(struct engine *engine)
{
	if (!engine)
		return;
	if (engine->tick)
		runner_stop(engine->tick);
	for (uint32_t i = 0; engine->port && i < engine->config.ports_max; i++)
		if (engine->port[i] && engine->port[i]->ops != &backlog_port_ops)
			port_end(engine->port[i]);
	if (engine->backlogs)
		port_end(engine->backlogs->port);
	for (uint32_t i = 0; i < HANDLERS_MAX; i++)
		if (engine->handler[i])
			engine->handler[i]->ops->destroy(engine->handler[i]);
	for (uint32_t i = 0; engine->softnet && i < engine->cpus; i++)
		softnet_stop(&engine->softnet[i]);
	context_destroy(engine->context);
	contexts_orphan(engine);
	engine_steer_end(engine);
	pool_destroy(engine->pool);
	if (engine->counters)
		counters_destroy(engine->counters,
				 engine->counters_path[0] ? engine->counters_path : NULL);
	lock_destroy(&engine->context_lock);
	lock_destroy(&engine->control);
	free(engine->softnet);
	free(engine->port);
	free(engine->queue_ended);
	free(engine);
}

struct machine *engine_machine(struct engine *engine)
{
	return engine->machine;
}

struct pool *engine_pool(struct engine *engine)
{
	return engine->pool;
}

const struct counters_file *engine_counters(struct engine *engine)
{
	return engine->counters;
}

struct softnet *engine_softnet(struct engine *engine, unsigned cpu)
{
	struct softnet *softnet = engine_softnet_any(engine, cpu);

	return softnet && !softnet->away ? softnet : NULL;
}

struct softnet *engine_softnet_at(struct engine *engine, uint32_t i)
{
	return &engine->softnet[i];
}

int engine_handler_register(struct engine *engine, struct handler *handler)
{
	int rc = -ENOSPC;

	engine_lock(engine); /* the tick looks at them too */
	for (uint32_t i = 0; rc && i < HANDLERS_MAX; i++) {
		if (!engine->handler[i]) {
			engine->handler[i] = handler;
			rc = 0;
		}
	}
	engine_unlock(engine);
	return rc;
}

int engine_poller_default_set(struct engine *engine, enum poller poller)
{
	if (!poller_valid(poller))
		return -EINVAL;
	engine_lock(engine);
	engine->config.poller = poller;
	atomic_store(&engine->counters->poller_default, (uint32_t)poller);
	engine_unlock(engine);
	return 0;
}

int engine_check(struct engine *engine, struct error *err)
{
	uint32_t free_packets = pool_available(engine->pool);

	/* What is in the caches of contexts is free, too. */
	lock_acquire(&engine->context_lock);
	for (struct context *context = engine->context_list; context; context = context->next)
		free_packets += context->cache.n;
	lock_release(&engine->context_lock);
	if (free_packets != engine->pool->frames)
		return error_set(err, -EIO, "%d of %u packets are not free",
				 (int)(engine->pool->frames - free_packets), engine->pool->frames);
	return 0;
}

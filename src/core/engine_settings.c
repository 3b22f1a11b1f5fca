/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of the engine as a whole and of its CPUs: checked first, so that what follows cannot
 * fail, and read by who polls at its next round.
 */
#include <errno.h>
#include <string.h>

#include <core/engine_cpus.h>
#include <core/engine_queue.h>
#include <core/engine_steer.h>
#include <poller/softirq.h>

static int range_check(const char *key, bool set, uint32_t value, uint32_t max, struct error *err)
{
	if (set && (!value || value > max))
		return error_set(err, -ERANGE, "%s %u: must be 1 to %u", key, value, max);
	return 0;
}

static int cpu_settings_check(const struct cpu_settings *s, struct error *err)
{
	if (s->deferral_set && (unsigned)s->deferral >= DEFERRAL_MAX)
		return error_set(err, -EINVAL, "no such deferral; the policies are %s",
				 deferral_list());
	return range_check("looped_ticks", s->deferral_set && s->deferral == DEFERRAL_LOOPED,
			   s->looped_ticks, LOOPED_TICKS_MAX, err);
}

static void cpu_apply(struct softnet *softnet, const struct cpu_settings *s)
{
	if (s->deferral_set)
		softnet_deferral_set(softnet, s->deferral, s->looped_ticks);
}

static void budget_apply(struct engine *engine)
{
	const struct engine_config *config = &engine->config;
	int64_t ns = config->budget_usecs * NSEC_PER_USEC;

	atomic_store_explicit(&engine->budget, config->budget, memory_order_relaxed);
	atomic_store_explicit(&engine->budget_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&engine->gro_batch, config->gro_normal_batch, memory_order_relaxed);
	atomic_store(&engine->counters->gro_normal_batch, config->gro_normal_batch);
	atomic_store(&engine->counters->budget, config->budget);
	atomic_store(&engine->counters->budget_usecs, config->budget_usecs);
	atomic_store(&engine->counters->weight, config->weight);
	atomic_store(&engine->counters->busy_poll, config->busy_poll);
	atomic_store(&engine->counters->busy_read, config->busy_read);
}

uint32_t engine_busy_poll(const struct engine *engine)
{
	return atomic_load_explicit(&engine->counters->busy_poll, memory_order_relaxed);
}

uint32_t engine_busy_read(const struct engine *engine)
{
	return atomic_load_explicit(&engine->counters->busy_read, memory_order_relaxed);
}

/* Zero is a value here: not at all. */
static int busy_check(const char *key, bool set, uint32_t usecs, struct error *err)
{
	if (set && usecs > ENGINE_BUSY_POLL_MAX)
		return error_set(err, -ERANGE, "%s %u: must be 0 to %u", key, usecs,
				 ENGINE_BUSY_POLL_MAX);
	return 0;
}

void engine_settings_start(struct engine *engine)
{
	budget_apply(engine);
}

/* A weight of a queue's own has been asked for, and stays. */
static void weights_apply(struct engine *engine)
{
	struct napi_walk walk = {0};
	struct napi *napi;

	while ((napi = napi_walk_next(engine, &walk))) {
		struct queue_settings own;

		settings_find(&engine->settings, napi->queue->port->name, (int)napi->queue->index,
			      &own);
		if (!own.weight_set)
			napi_weight_set(napi, engine->config.weight);
	}
}

/* What may fail though the values are right. */
static int may_fail(struct engine *engine, const struct engine_settings *s, struct error *err)
{
	struct cpuset before = engine->config.cpus;
	int rc = s->on_cpus_set ? engine_cpus_change(engine, &s->on_cpus, err) : 0;

	if (rc)
		return rc;
	rc = engine_steer_set(engine, s, err);
	if (rc)
		engine_cpus_change(engine, &before, NULL);
	return rc;
}

int engine_set(struct engine *engine, const struct engine_settings *s, struct error *err)
{
	struct engine_config *config = &engine->config;
	int rc = range_check("dev_weight", s->weight_set, s->weight, NAPI_WEIGHT_MAX, err);

	if (!rc)
		rc = range_check("netdev_budget", s->budget_set, s->budget, ENGINE_BUDGET_MAX, err);
	if (!rc)
		rc = range_check("netdev_budget_usecs", s->budget_usecs_set, s->budget_usecs,
				 ENGINE_BUDGET_USECS_MAX, err);
	if (!rc)
		rc = busy_check("busy_poll", s->busy_poll_set, s->busy_poll, err);
	if (!rc)
		rc = busy_check("busy_read", s->busy_read_set, s->busy_read, err);
	if (!rc)
		rc = range_check("gro_normal_batch", s->gro_normal_batch_set, s->gro_normal_batch,
				 PACKET_VECTOR_MAX, err);
	if (!rc)
		rc = cpu_settings_check(&s->cpus, err);
	if (!rc)
		rc = engine_steer_check(s, err);
	if (!rc && s->on_cpus_set)
		rc = engine_cpus_check(engine, &s->on_cpus, err);
	if (rc)
		return rc;
	engine_lock(engine);
	rc = may_fail(engine, s, err);
	if (rc) {
		engine_unlock(engine);
		return rc;
	}
	if (s->weight_set)
		config->weight = s->weight;
	if (s->budget_set)
		config->budget = s->budget;
	if (s->budget_usecs_set)
		config->budget_usecs = s->budget_usecs;
	if (s->busy_poll_set)
		config->busy_poll = s->busy_poll;
	if (s->busy_read_set)
		config->busy_read = s->busy_read;
	if (s->gro_normal_batch_set)
		config->gro_normal_batch = s->gro_normal_batch;
	budget_apply(engine);
	if (s->weight_set)
		weights_apply(engine);
	for (uint32_t i = 0; i < engine->cpus; i++)
		cpu_apply(&engine->softnet[i], &s->cpus);
	engine_unlock(engine);
	return 0;
}

int engine_cpu_set(struct engine *engine, unsigned cpu, const struct cpu_settings *s,
		   struct error *err)
{
	struct softnet *softnet;
	char there[128];
	int rc = cpu_settings_check(s, err);

	if (rc)
		return rc;
	engine_lock(engine);
	softnet = engine_softnet_any(engine, cpu);
	if (softnet)
		cpu_apply(softnet, s);
	cpuset_format(&engine->cpus_all, there, sizeof(there));
	engine_unlock(engine);
	if (!softnet)
		return error_set(err, -ENODEV, "cpu/%u: not an engine CPU; those are %s", cpu,
				 there);
	return 0;
}

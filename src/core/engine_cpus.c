/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engine CPUs that are taken away and come back while it runs.
 *
 * A CPU's softnet stays in its place, so that indices and records keep; only its runners end. Why
 * nothing is left on it (case 18):
 *   - it is `away` first, so nothing new is placed there, and flows recorded there count as not
 *     recorded;
 *   - every NAPI that belongs there, its backlog's too, is switched to another CPU: what one of
 *     them held is polled by the next owner, in order, and no token stays in its inbox;
 *   - every queue that steers gets its map again without it. For that the queue is not polled for a
 *     moment, and what it put into backlogs, this one's among them, leaves its handler first: so no
 *     packet is left there, none changes its order, and no kick for it is in anybody's notes;
 *   - after a quiesce nobody who dispatched to it before is on the way to its runners.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <core/automatic.h>
#include <core/engine_cpus.h>
#include <core/engine_queue.h>
#include <core/engine_steer.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <poller/workqueue.h>

void engine_cpus_text(const struct engine *engine, char *text, size_t size)
{
	struct cpuset away = {0};
	char list[64];
	size_t used;

	for (unsigned cpu = cpuset_next(&engine->cpus_all, 0); cpu < CPU_MAX;
	     cpu = cpuset_next(&engine->cpus_all, cpu + 1))
		if (!cpuset_has(&engine->config.cpus, cpu))
			cpuset_add(&away, cpu);
	cpuset_format(&engine->config.cpus, text, size);
	cpuset_format(&away, list, sizeof(list));
	used = strlen(text);
	if (*list)
		snprintf(text + used, size - used, " (away: %s)", list);
}

struct softnet *engine_softnet_any(struct engine *engine, unsigned cpu)
{
	for (uint32_t i = 0; i < engine->cpus; i++)
		if (softnet_cpu(&engine->softnet[i]) == cpu)
			return &engine->softnet[i];
	return NULL;
}

struct softnet *engine_softnet_instead(struct engine *engine, struct softnet *home, uint32_t which)
{
	uint32_t there = cpuset_count(&engine->config.cpus);

	if (!home->away)
		return home;
	which %= there;
	for (uint32_t i = 0;; i++)
		if (!engine->softnet[i].away && !which--)
			return &engine->softnet[i];
}

/* Every queue of every port, the engine's own ports included. */
static int queues_each(struct engine *engine, int64_t deadline, struct error *err,
		       int (*each)(struct napi *napi, const struct queue_settings *settings,
				   int64_t left, struct error *err))
{
	struct napi_walk walk = {0};
	struct napi *napi;
	int rc = 0;

	while (!rc && (napi = napi_walk_next(engine, &walk))) {
		int64_t left = deadline - machine_now(engine->machine);
		struct queue_settings settings;

		settings_find(&engine->settings, napi->queue->port->name, (int)napi->queue->index,
			      &settings);
		rc = each(napi, &settings, left > 0 ? left : 0, err);
	}
	return rc;
}

/* Also where poller auto has taken it elsewhere: it may do so again. */
static int napi_go_home(struct napi *napi, const struct queue_settings *settings, int64_t left,
			struct error *err)
{
	struct softnet *softnet = queue_softnet(napi->queue, settings);
	int rc;

	if (left > SWITCH_TIMEOUT)
		left = SWITCH_TIMEOUT;
	napi_settle(napi); /* before it is said what its poller is */
	rc = napi_switch(napi, napi_poller(napi), softnet, left, NULL, err);
	if (!rc)
		automatic_home(napi);
	return rc;
}

static int napi_steer_again(struct napi *napi, const struct queue_settings *settings, int64_t left,
			    struct error *err)
{
	(void)settings;
	return napi->steer ? steer_again(napi, left, err) : 0;
}

/* A thread for which no CPUs are set runs on the engine's. */
static int thread_settle(struct napi *napi, const struct queue_settings *settings, int64_t left,
			 struct error *err)
{
	const struct queue_settings any = {.cpus_set = true};

	(void)left;
	(void)err;
	if (cpuset_empty(&settings->placement.cpus) && poller_thread_place(napi, &any))
		engine_log(napi->engine, LEVEL_WARNING,
			   "%s/%u: its thread stays on the CPUs it had", napi->queue->port->name,
			   napi->queue->index);
	return 0;
}

static int settle(struct engine *engine, struct error *err)
{
	int64_t deadline = machine_now(engine->machine) + REMOVE_TIMEOUT;
	int rc = queues_each(engine, deadline, err, napi_go_home);

	if (!rc)
		rc = queues_each(engine, deadline, err, napi_steer_again);
	queues_each(engine, deadline, NULL, thread_settle);
	if (!engine->worker_cpus_own)
		workqueue_place(engine, &engine->config.cpus);
	return rc;
}

/* The engine works on these from now on. */
static void cpus_mark(struct engine *engine, const struct cpuset *cpus)
{
	engine->config.cpus = *cpus;
	for (uint32_t i = 0; i < engine->cpus; i++) {
		struct softnet *softnet = &engine->softnet[i];

		softnet_away_set(softnet, !cpuset_has(cpus, softnet_cpu(softnet)));
		steer_cpu_mark(engine, i, !softnet->away);
	}
}

static bool softnet_used(struct engine *engine, const struct softnet *softnet)
{
	struct napi_walk walk = {0};
	struct napi *napi;

	while ((napi = napi_walk_next(engine, &walk))) {
		napi_settle(napi); /* poller auto may have begun a switch: its holder writes this */
		if (napi->softnet == softnet)
			return true;
	}
	return false;
}

/* Those that are away end, but for one that a NAPI could not be moved from. */
static void cpus_stop(struct engine *engine)
{
	machine_quiesce(engine->machine);
	for (uint32_t i = 0; i < engine->cpus; i++) {
		struct softnet *softnet = &engine->softnet[i];

		if (softnet->away && softnet->irq && !softnet_used(engine, softnet))
			softnet_stop(softnet);
	}
}

/* All or none. */
static int cpus_start(struct engine *engine, const struct cpuset *cpus, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < engine->cpus; i++) {
		struct softnet *softnet = &engine->softnet[i];

		if (cpuset_has(cpus, softnet_cpu(softnet)) && !softnet->irq)
			rc = softnet_start(softnet, err);
	}
	if (rc)
		cpus_stop(engine);
	return rc;
}

int engine_cpus_check(struct engine *engine, const struct cpuset *cpus, struct error *err)
{
	char there[128];

	cpuset_format(&engine->cpus_all, there, sizeof(there));
	for (unsigned cpu = cpuset_next(cpus, 0); cpu < CPU_MAX; cpu = cpuset_next(cpus, cpu + 1))
		if (!cpuset_has(&engine->cpus_all, cpu))
			return error_set(err, -EINVAL,
					 "cpus: the engine was not started with CPU %u; those that "
					 "can be given are %s",
					 cpu, there);
	return 0;
}

int engine_cpus_change(struct engine *engine, const struct cpuset *asked, struct error *err)
{
	struct cpuset before = engine->config.cpus;
	struct cpuset cpus = cpuset_empty(asked) ? engine->cpus_all : *asked;
	struct error inner = {0};
	int rc;

	if (!memcmp(&cpus, &before, sizeof(cpus)))
		return 0;
	rc = cpus_start(engine, &cpus, err);
	if (rc)
		return rc;
	cpus_mark(engine, &cpus);
	rc = settle(engine, &inner);
	if (rc) {
		char text[128];

		cpus_mark(engine, &before);
		settle(engine, NULL);
		cpuset_format(&before, text, sizeof(text));
		error_set(err, rc, "cpus stay %s: %s", text, inner.text);
	}
	cpus_stop(engine);
	return rc;
}

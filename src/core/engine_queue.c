/* SPDX-License-Identifier: BSD-2-Clause */
/* A port's queues as the engine sees them: their NAPI, lock and record in the counters. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <core/automatic.h>
#include <core/engine_cpus.h>
#include <core/engine_queue.h>
#include <core/gro.h>
#include <core/receive.h>
#include <poller/softirq.h>

/* What is counted goes on; the rest of a record is of the queue that had it before. */
static void record_clear(struct queue_record *record)
{
	const char *end = (const char *)(record + 1);
	uint64_t stuck = counter_read(&record->stuck);
	char *after = (char *)(&record->transmit + 1);

	memset(record, 0, offsetof(struct queue_record, napi));
	memset(after, 0, (size_t)(end - after));
	atomic_store(&record->stuck, stuck);
}

/*
 * The record that this queue had before, when it was there; else one that nobody had; else that of
 * the queue that went away the longest ago. NULL: all are in use.
 */
static struct queue_record *record_take(struct engine *engine, const struct port_queue *queue)
{
	const char *name = queue->port->name;
	struct queue_record *best = NULL;
	uint64_t best_ended = UINT64_MAX;
	bool known = false;

	for (uint32_t i = 0; i < engine->config.queues_max && !known; i++) {
		struct queue_record *record = counters_queue(engine->counters, i);

		if (record->in_use)
			continue;
		known = !strcmp(record->port_name, name) && record->queue == queue->index;
		if (known || engine->queue_ended[i] < best_ended) {
			best_ended = engine->queue_ended[i];
			best = record;
		}
	}
	if (!best)
		return NULL;
	if (known)
		record_clear(best);
	else
		memset(best, 0, sizeof(*best));
	/* Also for the next attempt, should this one fail. */
	snprintf(best->port_name, sizeof(best->port_name), "%s", name);
	best->queue = queue->index;
	return best;
}

struct napi *napi_walk_next(const struct engine *engine, struct napi_walk *walk)
{
	for (; walk->port < engine->config.ports_max; walk->port++, walk->queue = 0) {
		const struct port *port = engine->port[walk->port];

		if (port && walk->queue < port->queues)
			return port->queue[walk->queue++].napi;
	}
	return NULL;
}

void queue_record_placement(struct napi *napi)
{
	struct engine *engine = napi->engine;
	const struct port_queue *queue = napi->queue;
	struct queue_record *record = napi->record;
	struct queue_settings asked;

	settings_find(&engine->settings, queue->port->name, (int)queue->index, &asked);
	atomic_store(&record->class_asked, (int32_t)asked.placement.class);
	atomic_store(&record->level_asked, asked.placement.level);
	cpuset_format(&asked.placement.cpus, record->cpus_asked, sizeof(record->cpus_asked));
	/* A backlog is that of its CPU. */
	atomic_store(&record->cpu_pinned,
		     asked.cpu_set || !strcmp(queue->port->name, BACKLOG_PORT));
}

/* A kind that the kernel has no say in, or that has no means to ask it. */
static int tell_nobody(const struct napi *napi)
{
	const struct port *port = napi->queue->port;
	enum poller poller = napi_poller(napi);

	if ((poller == POLLER_BUSY_POLL || poller == POLLER_APP) && port->ifindex &&
	    !napi->queue->index)
		engine_log(napi->engine, LEVEL_INFO,
			   "%s: %s polls its sockets only: the kernel's share stays in its "
			   "softirq, as %s ports have no preferred busy polling",
			   port->name, poller_name(poller), port->ops->kind);
	return 0;
}

void queue_deferral(struct napi *napi)
{
	struct queue_settings settings;

	settings_find(&napi->engine->settings, napi->queue->port->name, (int)napi->queue->index,
		      &settings);
	atomic_store(&napi->defer_hard_irqs, settings.napi_defer_hard_irqs);
	atomic_store(&napi->gro_flush_timeout, settings.gro_flush_timeout);
	atomic_store(&napi->irq_suspend_timeout, settings.irq_suspend_timeout);
	atomic_store(&napi->record->defer_hard_irqs, settings.napi_defer_hard_irqs);
	atomic_store(&napi->record->gro_flush_timeout, settings.gro_flush_timeout);
	atomic_store(&napi->record->irq_suspend_timeout, settings.irq_suspend_timeout);
}

int queue_tell(struct napi *napi, struct error *err)
{
	struct port_queue *queue = napi->queue;
	struct queue_settings settings;

	settings_find(&napi->engine->settings, queue->port->name, (int)queue->index, &settings);
	if (!queue->port->ops->poller_changed)
		return tell_nobody(napi);
	return queue->port->ops->poller_changed(queue, napi_poller(napi), &settings, err);
}

/* Where nobody asked for the kernel's part just now: it is said, and the port works on without. */
void queue_told(struct napi *napi)
{
	struct error err;

	if (queue_tell(napi, &err))
		engine_log(napi->engine, LEVEL_WARNING, "%s", err.text);
}

static void record_fill(struct queue_record *record, const struct port_queue *queue,
			const struct napi *napi)
{
	const struct port *port = queue->port;

	record->port = port->index;
	record->queue = queue->index;
	snprintf(record->port_name, sizeof(record->port_name), "%s", port->name);
	snprintf(record->port_spec, sizeof(record->port_spec), "%s", port->spec);
	snprintf(record->mode, sizeof(record->mode), "%s", port->mode);
	snprintf(record->state, sizeof(record->state), "%s", port_state_name(port->state));
	atomic_store(&record->poller_asked,
		     (uint32_t)(napi->automatic ? POLLER_AUTO : napi_poller(napi)));
	atomic_store(&record->poller_observed, (uint32_t)napi_poller(napi));
	atomic_store(&record->cpu, softnet_cpu(napi->softnet));
	atomic_store(&record->weight, napi_weight(napi));
	atomic_store(&record->disabled, 1);
	atomic_store(&record->kernel.defer_hard_irqs_asked, KERNEL_UNKNOWN);
	atomic_store(&record->kernel.defer_hard_irqs, KERNEL_UNKNOWN);
	atomic_store(&record->kernel.gro_flush_timeout_asked, KERNEL_UNKNOWN);
	atomic_store(&record->kernel.gro_flush_timeout, KERNEL_UNKNOWN);
	atomic_store(&record->in_use, 1);
}

/* Spread over the engine CPUs, starting at another for each port. Backlogs are where they belong.
 */
static struct softnet *softnet_default(struct engine *engine, const struct port_queue *queue)
{
	uint32_t first = queue->port->ops == &backlog_port_ops ? 0 : queue->port->index;

	return &engine->softnet[(first + queue->index) % engine->cpus];
}

struct softnet *queue_softnet(const struct port_queue *queue, const struct queue_settings *settings)
{
	struct engine *engine = queue->port->engine;
	struct softnet *home = settings->cpu_set ? engine_softnet_any(engine, settings->cpu) : NULL;

	if (!home)
		home = softnet_default(engine, queue);
	return engine_softnet_instead(engine, home, queue->port->index + queue->index);
}

/* What is asked for it, in the order in which that counts; what it can be polled by, else. */
static int poller_choose(const struct port_queue *queue, const struct queue_settings *settings,
			 enum poller *out, struct error *err)
{
	const struct port_config *config = engine_port_config(queue->port);
	const struct port_ops *ops = queue->port->ops;

	*out = queue->port->engine->config.poller;
	if (settings->poller_set)
		*out = settings->poller;
	else if (config->poller_set)
		*out = config->poller;
	else if (ops->poller_set)
		*out = ops->poller;
	else if (*out != POLLER_AUTO && ops->pollers && !(ops->pollers >> *out & 1))
		*out = (enum poller)__builtin_ctz(ops->pollers);
	return port_poller_check(queue->port, *out, err);
}

/* Where poller auto begins. */
static enum poller poller_first(const struct port_queue *queue)
{
	uint32_t can = queue->port->ops->pollers;

	return can && !(can >> POLLER_SOFTIRQ & 1) ? (enum poller)__builtin_ctz(can)
						   : POLLER_SOFTIRQ;
}

int queue_begin(struct port_queue *queue, struct napi *napi, struct lock *lock, struct error *err)
{
	struct engine *engine = queue->port->engine;
	struct queue_settings settings;
	enum poller poller;
	int rc;

	settings_find(&engine->settings, queue->port->name, (int)queue->index, &settings);
	rc = poller_choose(queue, &settings, &poller, err);
	if (rc)
		return rc;
	napi->record = record_take(engine, queue);
	if (!napi->record)
		return error_set(err, -ENOSPC, "no room for another queue: queues_max is %u",
				 engine->config.queues_max);
	rc = lock_init(lock);
	if (rc)
		return error_set(err, rc, "%s: no lock: %s", queue->port->name, strerror(-rc));
	napi->engine = engine;
	napi->queue = queue;
	napi->poll = queue->port->ops->poll ? queue->port->ops->poll : queue_poll;
	if (!queue->port->ops->poll && gro_create(&napi->gro)) {
		lock_destroy(lock);
		return error_set(err, -ENOMEM, "%s: no memory for GRO", queue->port->name);
	}
	napi->weight = settings.weight_set ? settings.weight : engine->config.weight;
	napi->softnet = queue_softnet(queue, &settings);
	napi_idle_suspend_set(napi, settings.idle_suspend_set ? settings.idle_suspend_usecs
							      : engine->config.idle_suspend_usecs);
	queue->napi = napi;
	queue->irq.handler = queue_interrupt;
	queue->transmit = &napi->record->transmit;
	queue->kernel = &napi->record->kernel;
	queue->lock = lock;
	rc = napi_init(napi, poller == POLLER_AUTO ? poller_first(queue) : poller, err);
	if (!rc && poller == POLLER_AUTO) {
		rc = automatic_begin(napi, err);
		if (rc)
			napi_end(napi);
	}
	if (rc) {
		gro_destroy(napi->gro);
		queue->lock = NULL;
		lock_destroy(lock);
		return rc;
	}
	record_fill(napi->record, queue, napi);
	queue_record_placement(napi);
	queue_deferral(napi);
	queue_gro(napi);
	queue_told(napi);
	return 0;
}

void queue_end(struct port_queue *queue)
{
	struct engine *engine = queue->napi->engine;
	struct queue_record *record = queue->napi->record;

	automatic_end(queue->napi);
	napi_end(queue->napi);
	steer_destroy(queue->napi->steer);
	gro_destroy(queue->napi->gro);
	queue->napi->gro = NULL;
	atomic_store(&record->in_use, 0);
	engine->queue_ended[record - counters_queue(engine->counters, 0)] = ++engine->queue_ends;
}

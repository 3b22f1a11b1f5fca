/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's ports: add, remove, handlers, settings.
 *
 * Why removal ends: disabling each NAPI returns within its bound with nobody polling it; taking the
 * port from its handler and quiescing means that no other NAPI's poll still sends to it; then its
 * interrupts are detached, its threads stopped, and nobody is left who could reach it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/handler.h>

#include <core/context.h>
#include <core/engine.h>
#include <core/napi.h>
#include <core/receive.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <port/netdev.h>

struct engine_port {
	struct port port;
	struct port_config config;
	struct napi *napi; /* one per queue */
	struct lock *lock; /* likewise */
	uint32_t live;	   /* queues whose NAPI and lock have been made */
};

static struct engine_port *engine_port_of(struct port *port)
{
	return (struct engine_port *)port;
}

static struct queue_record *record_take(struct engine *engine)
{
	for (uint32_t i = 0; i < engine->config.queues_max; i++) {
		struct queue_record *record = counters_queue(engine->counters, i);

		if (!record->in_use) {
			memset(record, 0, sizeof(*record));
			return record;
		}
	}
	return NULL;
}

/* What is asked of the queue's thread, for those who read the counters. */
static void record_placement(struct engine *engine, struct napi *napi)
{
	const struct port_queue *queue = napi->queue;
	struct queue_record *record = napi->record;
	struct queue_settings asked;

	settings_find(&engine->settings, queue->port->name, (int)queue->index, &asked);
	atomic_store(&record->class_asked, (int32_t)asked.placement.class);
	atomic_store(&record->level_asked, asked.placement.level);
	cpuset_format(&asked.placement.cpus, record->cpus_asked, sizeof(record->cpus_asked));
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
	atomic_store(&record->poller_asked, (uint32_t)napi_poller(napi));
	atomic_store(&record->poller_observed, (uint32_t)napi_poller(napi));
	atomic_store(&record->cpu, softnet_cpu(napi->softnet));
	atomic_store(&record->weight, napi_weight(napi));
	atomic_store(&record->disabled, 1);
	atomic_store(&record->in_use, 1);
}

/* Spread over the engine CPUs, starting at another for each port. */
static struct softnet *softnet_default(struct engine *engine, const struct port_queue *queue)
{
	return &engine->softnet[(queue->port->index + queue->index) % engine->cpus];
}

static int queue_begin(struct engine *engine, struct engine_port *ep, uint32_t i, struct error *err)
{
	struct port_queue *queue = &ep->port.queue[i];
	struct napi *napi = &ep->napi[i];
	struct queue_settings settings;
	int rc;

	napi->record = record_take(engine);
	if (!napi->record)
		return error_set(err, -ENOSPC, "no room for another queue: queues_max is %u",
				 engine->config.queues_max);
	rc = lock_init(&ep->lock[i]);
	if (rc)
		return error_set(err, rc, "%s: no lock: %s", ep->port.name, strerror(-rc));
	settings_find(&engine->settings, ep->port.name, (int)i, &settings);
	napi->engine = engine;
	napi->queue = queue;
	napi->poll = queue_poll;
	napi->weight = settings.weight_set ? settings.weight : engine->config.weight;
	napi->softnet = settings.cpu_set ? engine_softnet(engine, settings.cpu) : NULL;
	if (!napi->softnet)
		napi->softnet = softnet_default(engine, queue);
	queue->napi = napi;
	queue->irq.handler = queue_interrupt;
	queue->transmit = &napi->record->transmit;
	queue->lock = &ep->lock[i];
	rc = napi_init(napi, settings.poller_set ? settings.poller : engine->config.poller, err);
	if (rc) {
		lock_destroy(&ep->lock[i]);
		return rc;
	}
	record_fill(napi->record, queue, napi);
	record_placement(engine, napi);
	ep->live++;
	return 0;
}

static void queues_end(struct engine_port *ep)
{
	while (ep->live) {
		struct napi *napi = &ep->napi[--ep->live];

		napi_end(napi);
		atomic_store(&napi->record->in_use, 0);
	}
}

/* Everything is ended; the device is closed. */
static void engine_port_free(struct engine_port *ep)
{
	for (uint32_t i = 0; ep->lock && i < ep->port.queues; i++)
		if (ep->port.queue[i].lock)
			lock_destroy(&ep->lock[i]);
	free(ep->port.queue);
	free(ep->napi);
	free(ep->lock);
	free(ep);
}

static int port_open(struct engine_port *ep, struct error *err)
{
	struct port_config config = ep->config; /* open takes its options out */
	int back, rc;

	rc = netns_enter(config.netns, &back, err);
	if (rc)
		return rc;
	rc = ep->port.ops->open(&ep->port, &config, err);
	netns_leave(back);
	return rc;
}

static int queues_begin(struct engine *engine, struct engine_port *ep, struct error *err)
{
	ep->napi = calloc(ep->port.queues, sizeof(*ep->napi));
	ep->lock = calloc(ep->port.queues, sizeof(*ep->lock));
	if (!ep->napi || !ep->lock)
		return error_set(err, -ENOMEM, "%s: no memory for %u queues", ep->port.name,
				 ep->port.queues);
	for (uint32_t i = 0; i < ep->port.queues; i++) {
		int rc = queue_begin(engine, ep, i, err);

		if (rc)
			return rc;
	}
	return 0;
}

/* As given, or what the target is called without its directory, or the kind where it has none. */
static const char *name_default(const struct port_config *config)
{
	const char *slash = strrchr(config->target, '/');

	if (config->name[0])
		return config->name;
	if (config->target[0])
		return slash ? slash + 1 : config->target;
	return config->kind;
}

/* Names, index and the rest that open may read. */
static int port_fill(struct engine *engine, struct engine_port *ep, struct error *err)
{
	const struct port_config *config = &ep->config;
	const char *name = name_default(config);
	struct port *port = &ep->port;
	uint32_t index = 0;

	/* Only a file's name can be too long for it. */
	snprintf(port->spec, sizeof(port->spec), "%s:%.*s", config->kind,
		 (int)(sizeof(port->spec) - sizeof(config->kind) - 1), config->target);
	if (!name[0] || strlen(name) >= sizeof(port->name))
		return error_set(err, -EINVAL,
				 "%s: give the port a name of 1 to %zu bytes with name=",
				 port->spec, sizeof(port->name) - 1);
	strcpy(port->name, name);
	if (engine_port_find(engine, port->name))
		return error_set(
			err, -EEXIST,
			"port name '%s' is taken; give this one another with name=", port->name);
	while (index < engine->config.ports_max && engine->port[index])
		index++;
	if (index == engine->config.ports_max)
		return error_set(err, -ENOSPC, "no room for another port: ports_max is %u", index);
	port->ops = config->ops;
	port->engine = engine;
	port->pool = engine->pool;
	port->machine = engine->machine;
	port->index = (uint16_t)index;
	port->state = PORT_UP;
	return 0;
}

static int port_add_locked(struct engine *engine, struct engine_port *ep, struct error *err)
{
	int rc = port_fill(engine, ep, err);

	if (!rc)
		rc = port_open(ep, err);
	if (rc)
		return rc;
	rc = queues_begin(engine, ep, err);
	if (rc) {
		queues_end(ep);
		ep->port.ops->close(&ep->port, engine->context);
		return rc;
	}
	engine->port[ep->port.index] = &ep->port;
	for (uint32_t i = 0; i < ep->port.queues && !ep->config.disabled; i++)
		napi_enable_locked(&ep->napi[i]);
	return 0;
}

int engine_port_add(struct engine *engine, const struct port_config *config, struct port **out,
		    struct error *err)
{
	struct engine_port *ep = calloc(1, sizeof(*ep));
	int rc;

	if (!ep)
		return error_set(err, -ENOMEM, "no memory for a port");
	ep->config = *config;
	if (!ep->config.ops)
		ep->config.ops = port_kind_find(config->kind);
	if (!ep->config.ops) {
		free(ep);
		return error_set(err, -EINVAL, "no kind of port '%s'", config->kind);
	}
	if (!ep->config.kind[0])
		snprintf(ep->config.kind, sizeof(ep->config.kind), "%s", ep->config.ops->kind);
	engine_lock(engine);
	rc = port_add_locked(engine, ep, err);
	engine_unlock(engine);
	if (rc)
		engine_port_free(ep);
	else
		*out = &ep->port;
	return rc;
}

static void handler_take_away(struct port *port)
{
	struct handler *handler = port->handler;

	if (!handler)
		return;
	atomic_store(&port->handler, NULL);
	if (handler->ops->port_remove)
		handler->ops->port_remove(handler, port);
}

static int port_remove_locked(struct engine *engine, struct engine_port *ep, struct error *err)
{
	for (uint32_t i = 0; i < ep->port.queues; i++)
		if (napi_disable_locked(&ep->napi[i], REMOVE_TIMEOUT))
			return error_set(
				err, -ETIMEDOUT,
				"port %s: a poll of queue %u does not end; it stays, disabled",
				ep->port.name, i);
	port_state_set(&ep->port, PORT_DOWN);
	handler_take_away(&ep->port);
	machine_quiesce(engine->machine);
	engine->port[ep->port.index] = NULL;
	queues_end(ep);
	ep->port.ops->close(&ep->port, engine->context);
	return 0;
}

int engine_port_remove(struct engine *engine, struct port *port, struct error *err)
{
	struct engine_port *ep = engine_port_of(port);
	int rc;

	engine_lock(engine);
	rc = port_remove_locked(engine, ep, err);
	engine_unlock(engine);
	if (!rc)
		engine_port_free(ep);
	return rc;
}

struct port *engine_port_find(struct engine *engine, const char *name)
{
	for (uint32_t i = 0; i < engine->config.ports_max; i++)
		if (engine->port[i] && !strcmp(engine->port[i]->name, name))
			return engine->port[i];
	return NULL;
}

struct port *engine_port_at(struct engine *engine, uint32_t i)
{
	return i < engine->config.ports_max ? engine->port[i] : NULL;
}

const struct port_config *engine_port_config(const struct port *port)
{
	return &((const struct engine_port *)port)->config;
}

int engine_handler_set(struct engine *engine, struct port *port, struct handler *handler,
		       struct error *err)
{
	struct handler *before;
	int rc = 0;

	engine_lock(engine);
	before = port->handler;
	if (before != handler) {
		if (handler && handler->ops->port_add)
			rc = handler->ops->port_add(handler, port, err);
		if (!rc) {
			atomic_store(&port->handler, handler);
			/* No input from the port runs in the old one from here on ... */
			machine_quiesce(engine->machine);
			if (before && before->ops->port_remove)
				before->ops->port_remove(before, port);
			/* ... and from here on no other port's sends to it. */
			machine_quiesce(engine->machine);
		}
	}
	engine_unlock(engine);
	return rc;
}

/* What a set would do, checked before any of it is done. */
static int settings_check(struct engine *engine, const struct queue_settings *s, struct error *err)
{
	char there[128];

	if (s->poller_set && (unsigned)s->poller >= POLLER_MAX)
		return error_set(err, -EINVAL, "no such poller; there are: %s", poller_list());
	if (s->weight_set && (!s->weight || s->weight > NAPI_WEIGHT_MAX))
		return error_set(err, -ERANGE, "weight %u: must be 1 to %u", s->weight,
				 NAPI_WEIGHT_MAX);
	if (s->cpus_set && !cpuset_empty(&s->placement.cpus)) {
		struct cpuset may;
		unsigned cpu = 0;

		machine_cpus(engine->machine, &may);
		while ((cpu = cpuset_next(&s->placement.cpus, cpu)) < CPU_MAX &&
		       cpuset_has(&may, cpu))
			cpu++;
		cpuset_format(&may, there, sizeof(there));
		if (cpu < CPU_MAX)
			return error_set(err, -EINVAL,
					 "cpus: CPU %u cannot be used: this process may run on "
					 "CPUs %s",
					 cpu, there);
	}
	cpuset_format(&engine->config.cpus, there, sizeof(there));
	if (s->cpu_set && !engine_softnet(engine, s->cpu))
		return error_set(err, -EINVAL, "cpu %u: not an engine CPU; those are %s", s->cpu,
				 there);
	return 0;
}

static int queue_apply(struct engine *engine, struct napi *napi, const struct queue_settings *s,
		       int64_t *took, struct error *err)
{
	enum poller poller = s->poller_set ? s->poller : napi_poller(napi);
	struct softnet *softnet = s->cpu_set ? engine_softnet(engine, s->cpu) : napi->softnet;
	int64_t one;
	int rc;

	rc = poller_thread_place(napi, s);
	if (rc)
		return error_set(err, rc, "%s/%u: its thread cannot be placed so: %s%s",
				 napi->queue->port->name, napi->queue->index, strerror(-rc),
				 rc == -EPERM ? " (it takes CAP_SYS_NICE)" : "");
	rc = napi_switch(napi, poller, softnet, SWITCH_TIMEOUT, &one, err);
	if (rc)
		return rc;
	if (one > *took)
		*took = one;
	if (s->poller_set)
		atomic_store(&napi->record->poller_asked, (uint32_t)s->poller);
	if (s->weight_set)
		napi_weight_set(napi, s->weight);
	return 0;
}

/* What a queue has now, in the same keys: to go back to. */
static struct queue_settings queue_now(struct napi *napi, const struct queue_settings *keys,
				       const struct queue_settings *kept)
{
	struct queue_settings now = *keys;

	now.poller = napi_poller(napi);
	now.weight = napi_weight(napi);
	now.cpu = softnet_cpu(napi->softnet);
	now.placement = kept->placement;
	return now;
}

static int queues_apply(struct engine *engine, struct port *port, int queue,
			const struct queue_settings *settings, int64_t *took, struct error *err)
{
	struct engine_port *ep = engine_port_of(port);
	uint32_t first = queue < 0 ? 0 : (uint32_t)queue;
	uint32_t end = queue < 0 ? port->queues : (uint32_t)queue + 1;
	struct queue_settings before[PORT_QUEUES_MAX];

	for (uint32_t i = first; i < end && i < port->queues; i++) {
		struct queue_settings kept;
		int rc;

		settings_find(&engine->settings, port->name, (int)i, &kept);
		before[i] = queue_now(&ep->napi[i], settings, &kept);
		rc = queue_apply(engine, &ep->napi[i], settings, took, err);
		if (!rc)
			continue;
		for (uint32_t k = first; k <= i; k++) {
			int64_t ignored = 0;

			queue_apply(engine, &ep->napi[k], &before[k], &ignored, NULL);
		}
		return rc;
	}
	return 0;
}

int engine_queue_set(struct engine *engine, const char *name, int queue,
		     const struct queue_settings *settings, int64_t *took, struct error *err)
{
	int64_t longest = 0;
	struct settings *kept;
	struct port *port;
	int rc;

	if (queue >= PORT_QUEUES_MAX)
		return error_set(err, -EINVAL, "%s/%d: queues are numbered 0 to %d", name, queue,
				 PORT_QUEUES_MAX - 1);
	kept = malloc(sizeof(*kept));
	if (!kept)
		return error_set(err, -ENOMEM, "no memory for settings");
	engine_lock(engine);
	*kept = engine->settings;
	rc = settings_check(engine, settings, err);
	if (!rc) {
		/* Kept first: a thread that is made now finds its placement there. */
		rc = settings_keep(&engine->settings, name, queue, settings);
		if (rc)
			error_set(err, rc, "no room for another setting; %d are kept",
				  SETTINGS_MAX);
	}
	port = engine_port_find(engine, name);
	if (!rc && port)
		rc = queues_apply(engine, port, queue, settings, &longest, err);
	if (rc)
		engine->settings = *kept;
	for (uint32_t i = 0; !rc && port && i < port->queues; i++)
		record_placement(engine, port->queue[i].napi);
	engine_unlock(engine);
	free(kept);
	if (took)
		*took = longest;
	return rc;
}

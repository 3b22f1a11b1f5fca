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
#include <core/engine_queue.h>
#include <core/engine_steer.h>
#include <core/tx_napi.h>
#include <port/netdev.h>

struct engine_port {
	struct port port;
	struct port_config config;
	struct napi *napi;	/* one per queue */
	struct lock *lock;	/* likewise */
	uint32_t live;		/* queues that have begun */
	struct engine_port *tx; /* its TX NAPIs' port */
};

static struct engine_port *engine_port_of(struct port *port)
{
	return (struct engine_port *)port;
}

static void queues_end(struct engine_port *ep)
{
	while (ep->live)
		queue_end(&ep->port.queue[--ep->live]);
}

/* Everything is ended; the device is closed. */
static void engine_port_free(struct engine_port *ep)
{
	for (uint32_t i = 0; i < ep->port.queues; i++)
		if (ep->port.queue[i].lock)
			lock_destroy(ep->port.queue[i].lock);
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

static int queues_begin(struct engine_port *ep, struct error *err)
{
	ep->napi = calloc(ep->port.queues, sizeof(*ep->napi));
	ep->lock = calloc(ep->port.queues, sizeof(*ep->lock));
	if (!ep->napi || !ep->lock)
		return error_set(err, -ENOMEM, "%s: no memory for %u queues", ep->port.name,
				 ep->port.queues);
	for (; ep->live < ep->port.queues; ep->live++) {
		uint32_t i = ep->live;
		int rc = queue_begin(&ep->port.queue[i], &ep->napi[i], &ep->lock[i], err);

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
	if (!strcmp(name, BACKLOG_PORT) && config->ops != &backlog_port_ops)
		return error_set(err, -EINVAL,
				 "port name '%s' is the engine's own; give this one another with "
				 "name=",
				 name);
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

/*
 * What was set before. The port has its place: this may open another, the backlogs'. One that does
 * not receive has nothing to be steered.
 */
static int queues_steer(struct engine_port *ep, struct error *err)
{
	struct engine *engine = ep->port.engine;
	int rc = 0;

	if (ep->port.ops->poll)
		return 0;
	for (uint32_t i = 0; !rc && i < ep->port.queues; i++) {
		struct queue_settings settings;

		settings_find(&engine->settings, ep->port.name, (int)i, &settings);
		rc = steer_apply(&ep->napi[i], &settings, SWITCH_TIMEOUT, err);
	}
	return rc;
}

/* Nobody sends to it, and its NAPIs are disabled. */
static void port_end(struct engine *engine, struct engine_port *ep)
{
	engine->port[ep->port.index] = NULL;
	queues_end(ep);
	ep->port.ops->close(&ep->port, engine->context);
}

static int port_begin(struct engine *engine, struct engine_port *ep, struct error *err)
{
	int rc = port_fill(engine, ep, err);

	if (!rc)
		rc = port_open(ep, err);
	if (rc)
		return rc;
	rc = queues_begin(ep, err);
	if (rc) {
		queues_end(ep);
		ep->port.ops->close(&ep->port, engine->context);
		return rc;
	}
	engine->port[ep->port.index] = &ep->port;
	rc = queues_steer(ep, err);
	if (rc)
		port_end(engine, ep);
	return rc;
}

/* A kind that has fallen back to another may have lost what it was asked for. */
static int tx_add_locked(struct engine *engine, struct engine_port *ep, struct error *err)
{
	struct port_config config;
	struct port *tx;
	int rc;

	if (!ep->port.ops->kick) {
		port_warn(&ep->port,
			  "tx_napi=yes has no effect with %s, which sends without a kick",
			  ep->port.spec);
		return 0;
	}
	rc = tx_port_config(&ep->port, &config, err);
	if (!rc)
		rc = engine_port_add_locked(engine, &config, &tx, err);
	if (rc)
		return rc;
	ep->tx = engine_port_of(tx);
	tx_port_begin(tx);
	return 0;
}

int engine_port_add_locked(struct engine *engine, const struct port_config *config,
			   struct port **out, struct error *err)
{
	struct engine_port *ep = calloc(1, sizeof(*ep));
	int rc = 0;

	if (!ep)
		return error_set(err, -ENOMEM, "no memory for a port");
	ep->config = *config;
	if (!ep->config.ops)
		ep->config.ops = port_kind_find(config->kind);
	if (!ep->config.ops)
		rc = error_set(err, -EINVAL, "no kind of port '%s'", config->kind);
	else if (config->tx_napi && !ep->config.ops->kick)
		rc = error_set(err, -EINVAL,
			       "%s:%s: tx_napi=yes: this kind sends without a kick, so there is "
			       "nothing to do for TX NAPIs",
			       ep->config.ops->kind, config->target);
	else if (!ep->config.kind[0])
		snprintf(ep->config.kind, sizeof(ep->config.kind), "%s", ep->config.ops->kind);
	if (!rc)
		rc = port_begin(engine, ep, err);
	if (rc) {
		engine_port_free(ep);
		return rc;
	}
	if (config->tx_napi)
		rc = tx_add_locked(engine, ep, err);
	if (rc) {
		/* It has never been polled, so nothing of it is in a backlog or a handler. */
		port_end(engine, ep);
		engine_port_free(ep);
		return rc;
	}
	for (uint32_t i = 0; i < ep->port.queues && !config->disabled; i++)
		napi_enable_locked(&ep->napi[i]);
	*out = &ep->port;
	return 0;
}

int engine_port_add(struct engine *engine, const struct port_config *config, struct port **out,
		    struct error *err)
{
	int rc;

	engine_lock(engine);
	rc = engine_port_add_locked(engine, config, out, err);
	engine_unlock(engine);
	return rc;
}

int engine_port_add_threaded(struct engine *engine, const struct port_config *config,
			     struct port **out, struct error *err)
{
	struct port_config threaded = *config;

	threaded.poller_set = true;
	threaded.poller = POLLER_WORKQUEUE;
	return engine_port_add(engine, &threaded, out, err);
}

/* A queue whose turn comes late is still asked once. */
static int64_t time_left(struct engine *engine, int64_t deadline)
{
	int64_t left = deadline - machine_now(engine->machine);

	return left > 0 ? left : 0;
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

/* A poll that has begun ends within its bound, or the port stays. */
static int queues_disable(struct engine *engine, struct engine_port *ep, int64_t deadline,
			  struct error *err)
{
	for (uint32_t i = 0; i < ep->port.queues; i++)
		if (napi_disable_locked(&ep->napi[i], time_left(engine, deadline)))
			return error_set(err, -ETIMEDOUT,
					 "port %s: a poll of queue %u does not end; the port stays",
					 ep->port.name, i);
	return 0;
}

/* From then on who sends kicks. When it fails its queues serve again. */
static int tx_remove_locked(struct engine *engine, struct engine_port *ep, int64_t deadline,
			    struct error *err)
{
	struct engine_port *tx = ep->tx;
	int rc;

	tx_port_end(&tx->port);
	rc = queues_disable(engine, tx, deadline, err);
	if (rc) {
		for (uint32_t i = 0; i < tx->port.queues; i++)
			napi_enable_locked(&tx->napi[i]);
		tx_port_begin(&tx->port);
		return rc;
	}
	tx_port_flush(&tx->port, engine->context);
	port_end(engine, tx);
	engine_port_free(tx);
	ep->tx = NULL;
	return 0;
}

static int port_remove_locked(struct engine *engine, struct engine_port *ep, struct error *err)
{
	int64_t deadline = machine_now(engine->machine) + REMOVE_TIMEOUT;
	int rc = queues_disable(engine, ep, deadline, err);

	if (!rc && steer_port_end(&ep->port, time_left(engine, deadline)))
		rc = error_set(err, -ETIMEDOUT,
			       "port %s: a poll of a backlog that may hold its packets does not "
			       "end; the port stays",
			       ep->port.name);
	if (!rc && ep->tx)
		rc = tx_remove_locked(engine, ep, deadline, err);
	if (rc)
		return rc;
	port_state_set(&ep->port, PORT_DOWN);
	handler_take_away(&ep->port);
	machine_quiesce(engine->machine);
	port_end(engine, ep);
	queues_gro(engine);
	return 0;
}

/* Whether this is the backlogs' port, and they are used. */
static bool backlogs_used(struct engine *engine, const struct port *port)
{
	bool used = false;

	for (uint32_t i = 0; port->ops == &backlog_port_ops && i < engine->config.ports_max; i++)
		for (uint32_t k = 0; engine->port[i] && k < engine->port[i]->queues; k++)
			used |= engine->port[i]->queue[k].napi->steer != NULL;
	return used;
}

int engine_port_remove(struct engine *engine, struct port *port, struct error *err)
{
	struct engine_port *ep = engine_port_of(port);
	int rc;

	engine_lock(engine);
	if (port->ops == &tx_port_ops) {
		rc = tx_remove_locked(engine, engine_port_of(tx_port_of(port)),
				      machine_now(engine->machine) + REMOVE_TIMEOUT, err);
		engine_unlock(engine);
		return rc;
	}
	rc = backlogs_used(engine, port)
		     ? error_set(err, -EBUSY,
				 "backlog: queues are steered through it; set their rps_cpus=none "
				 "and rps_flow_cnt=0 first")
		     : port_remove_locked(engine, ep, err);
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

/*
 * What GRO holds was received for the handler of now: it goes there before another comes. Pauses
 * those queues that merge, and those that have merged until lately: setting gro=off waits for
 * nobody, and they let go what they hold with their next poll. The others hold nothing. Of one that
 * nobody comes to poll in time, what is held goes to the handler that is there when somebody does.
 */
static void merging_pause(struct engine *engine, struct port *port)
{
	int64_t deadline = machine_now(engine->machine) + SWITCH_TIMEOUT;

	for (uint32_t i = 0; i < port->queues; i++) {
		struct napi *napi = port->queue[i].napi;

		if (napi_disabled(napi) || !(atomic_load(&napi->gro_types) || napi->merged))
			continue;
		napi->paused = !napi_disable_locked(napi, time_left(engine, deadline));
		if (napi->paused)
			napi->merged = false;
	}
}

static void merging_resume(struct port *port)
{
	for (uint32_t i = 0; i < port->queues; i++) {
		struct napi *napi = port->queue[i].napi;

		if (napi->paused)
			napi_enable_locked(napi);
		napi->paused = false;
	}
}

static int handler_change(struct engine *engine, struct port *port, struct handler *handler,
			  struct error *err)
{
	struct handler *before = port->handler;
	int rc = 0;

	if (handler && handler->ops->port_add)
		rc = handler->ops->port_add(handler, port, err);
	if (rc)
		return rc;
	atomic_store(&port->handler, handler);
	/* No input from the port runs in the old one from here on ... */
	machine_quiesce(engine->machine);
	if (before && before->ops->port_remove)
		before->ops->port_remove(before, port);
	/* ... and from here on no other port's sends to it. */
	machine_quiesce(engine->machine);
	queues_gro(engine);
	return 0;
}

int engine_handler_set(struct engine *engine, struct port *port, struct handler *handler,
		       struct error *err)
{
	int rc = 0;

	if (handler && port->ops->poll)
		return error_set(err, -EINVAL,
				 "port %s takes no handler: ports of kind %s receive nothing",
				 port->name, port->ops->kind);
	engine_lock(engine);
	if (port->handler != handler) {
		merging_pause(engine, port);
		rc = handler_change(engine, port, handler, err);
		merging_resume(port);
	}
	engine_unlock(engine);
	return rc;
}

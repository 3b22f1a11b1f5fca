/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ports of a service, and what becomes of them when their devices come and go.
 *
 *     add --> open --(device gone)--> absent --(opened again, tried once a second)--> open
 *
 * An absent port is in no engine: its frames and its queues are free. What was set for its queues
 * is kept by the engine by the port's name; its VLANs and the rest are in its setup.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <control/service.h>

static const char *port_name(const struct service_port *sp)
{
	return sp->setup->config.name;
}

static struct service_port *service_port_find(struct service *service, const char *name)
{
	for (uint32_t i = 0; i < service->ports_n; i++) {
		if (!strcmp(port_name(service->ports[i]), name))
			return service->ports[i];
	}
	return NULL;
}

/* For `napier show`, which asks nobody. Renamed into place, so that it is read whole. */
static void absent_write(struct service *service)
{
	char path[RUNDIR_PATH_MAX + 10], next[RUNDIR_PATH_MAX + 16];
	bool any = false;
	FILE *file;

	rundir_file(&service->rundir, "absent", path);
	snprintf(next, sizeof(next), "%s.new", path);
	file = fopen(next, "we");
	if (!file) {
		service_log(service, LEVEL_WARNING, "%s: %s", next, strerror(errno));
		return;
	}
	for (uint32_t i = 0; i < service->ports_n; i++) {
		const struct service_port *sp = service->ports[i];

		if (sp->port)
			continue;
		any = true;
		fprintf(file, "%s\t%s:%s\t%s\n", port_name(sp), sp->setup->config.kind,
			sp->setup->config.target, sp->why);
	}
	if (fclose(file) || !any || rename(next, path)) {
		unlink(next);
		unlink(path);
	}
}

/* A port of a filtering bridge is in VLAN 1 until it is told others. */
static int vlans_set(struct service *service, struct service_port *sp, struct error *err)
{
	const struct setup_port *setup = sp->setup;

	if (!setup_port_vlans(setup))
		return 0;
	bridge_vlan_remove(service->handler, sp->port, 1);
	for (uint16_t vid = 1; vid <= VLAN_MAX; vid++) {
		bool tagged = setup->tagged[vid / 64] >> (vid % 64) & 1;
		bool untagged = setup->untagged[vid / 64] >> (vid % 64) & 1;
		struct bridge_vlan vlan = {
			.vid = vid,
			.pvid = vid == setup->pvid,
			.untagged = !tagged,
		};
		int rc;

		if (!tagged && !untagged && !vlan.pvid)
			continue;
		rc = bridge_vlan_add(service->handler, sp->port, &vlan, err);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * No program is at the other end of such a port, so what is sent there would fill its ring and
 * stay. It is down unless another one, perhaps yet to be opened, is its peer.
 */
static void inside_tell(struct service *service, const struct service_port *sp)
{
	const struct port *port = sp->port;

	if (port && port->features & PORT_INSIDE && atomic_load(&port->state) == PORT_DOWN)
		service_log(service, LEVEL_WARNING,
			    "port %s: nobody is at its other end, so it is down until it is "
			    "another %s port's peer (peer=%s)",
			    port_name(sp), port->ops->kind, port_name(sp));
}

static int port_enable(struct port *port)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < port->queues; i++)
		rc = napi_enable(port->queue[i].napi);
	return rc;
}

/* Receives from now on; what is hosted moves when it can be reached both ways. */
static int port_start(struct service *service, struct service_port *sp, struct error *err)
{
	int rc = port_enable(sp->port);

	if (!rc && sp->hosted)
		rc = port_enable(sp->hosted->tap);
	if (rc)
		return error_set(err, rc, "port %s: %s", port_name(sp), strerror(-rc));
	if (sp->hosted)
		hosted_move(sp->hosted);
	inside_tell(service, sp);
	return 0;
}

int service_ports_start(struct service *service, struct error *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < service->ports_n; i++)
		if (service->ports[i]->port)
			rc = port_start(service, service->ports[i], err);
	service->started = !rc;
	return rc;
}

/* Nothing is received before the port is all it should be, and at start before all ports are. */
static int port_open(struct service *service, struct service_port *sp, struct error *err)
{
	struct port_config *config = &sp->setup->config;
	int rc = 0;

	if (sp->setup->host[0] && !sp->hosted)
		rc = hosted_check(sp->setup, err);
	if (rc)
		return rc;
	config->disabled = true;
	rc = engine_port_add(service->engine, config, &sp->port, err);
	if (rc) {
		sp->port = NULL;
		return rc;
	}
	if (sp->port->ifindex)
		rc = monitor_watch(service->monitor, &sp->watch, config->netns, sp->port->ifindex,
				   err);
	if (!rc && sp->setup->host[0])
		rc = hosted_open(service, sp->setup, sp->port, &sp->hosted, err);
	else if (!rc)
		rc = engine_handler_set(service->engine, sp->port, service->handler, err);
	if (!rc)
		rc = vlans_set(service, sp, err);
	if (sp->port->features & PORT_INSIDE)
		port_state_set(sp->port, PORT_DOWN);
	sp->told = (enum port_state)atomic_load(&sp->port->state);
	if (!rc && service->started)
		rc = port_start(service, sp, err);
	if (!rc)
		return 0;
	monitor_unwatch(service->monitor, &sp->watch);
	if (!engine_port_remove(service->engine, sp->port, NULL))
		sp->port = NULL;
	return rc;
}

static int tx_wish_set(struct service *service, const struct setup_port *setup, struct error *err)
{
	char name[PORT_NAME_MAX + 4];
	struct queue_settings settings;
	int rc = wish_settings(&setup->tx, &settings, err);

	if (rc || wish_empty(&setup->tx))
		return rc;
	snprintf(name, sizeof(name), "%s-tx", setup->config.name);
	return engine_queue_set(service->engine, name, -1, &settings, NULL, err);
}

static int host_wish_set(struct service *service, const struct setup_port *setup, struct error *err)
{
	struct queue_settings settings;
	int rc = wish_settings(&setup->host_wish, &settings, err);

	if (rc || wish_empty(&setup->host_wish))
		return rc;
	return engine_queue_set(service->engine, setup->host, -1, &settings, NULL, err);
}

static int wishes_set(struct service *service, const struct setup_port *setup, struct error *err)
{
	for (uint32_t i = 0; i < setup->queues_n; i++) {
		const struct setup_queue *queue = &setup->queues[i];
		struct queue_settings settings;
		int rc = wish_settings(&queue->wish, &settings, err);

		if (!rc && !wish_empty(&queue->wish))
			rc = engine_queue_set(service->engine, setup->config.name, queue->queue,
					      &settings, NULL, err);
		if (rc)
			return rc;
	}
	if (setup->host[0]) {
		int rc = host_wish_set(service, setup, err);

		if (rc)
			return rc;
	}
	return tx_wish_set(service, setup, err);
}

static void absent_make(struct service *service, struct service_port *sp, const char *why)
{
	snprintf(sp->why, sizeof(sp->why), "%s", why);
	service->retry = machine_now(service->machine) + SERVICE_RETRY;
	absent_write(service);
}

int service_port_add(struct service *service, struct setup_port *port, struct service_port **out,
		     struct error *err)
{
	struct service_port *sp;
	struct error own;
	int rc;

	err = err ? err : &own;
	if (service_port_find(service, port->config.name))
		return error_set(err, -EEXIST,
				 "port %s is there already: give this one name=… after a comma",
				 port->config.name);
	if (service->ports_n == SETUP_PORTS_MAX)
		return error_set(err, -ENOSPC, "port %s: there are %d ports, the most there can be",
				 port->config.name, SETUP_PORTS_MAX);
	rc = setup_port_check(service->setup, port, err);
	if (!rc)
		rc = wishes_set(service, port, err);
	if (rc)
		return rc;
	sp = calloc(1, sizeof(*sp));
	if (!sp)
		return error_set(err, -ENOMEM, "port %s: no memory", port->config.name);
	sp->setup = port;
	rc = port_open(service, sp, err);
	if (rc && !(port->wait && (rc == -ENODEV || rc == -ENOENT))) {
		free(sp);
		return rc;
	}
	service->ports[service->ports_n++] = sp;
	if (rc) {
		service_log(service, LEVEL_INFO, "port %s: waiting for it (wait=yes): %s",
			    port_name(sp), err->text);
		absent_make(service, sp, err->text);
	}
	*out = sp;
	return 0;
}

/* Out of the list and freed; it is closed. */
static void port_forget(struct service *service, struct service_port *sp)
{
	uint32_t i = 0;

	while (service->ports[i] != sp)
		i++;
	service->ports_n--;
	memmove(&service->ports[i], &service->ports[i + 1],
		(service->ports_n - i) * sizeof(service->ports[0]));
	setup_port_free(sp->setup);
	free(sp);
}

/* The TX NAPIs of one. */
static bool service_port_tx(struct service *service, const char *name)
{
	size_t size = strlen(name);
	char of[PORT_NAME_MAX];
	struct service_port *sp;

	if (size < 4 || size >= sizeof(of) + 3 || strcmp(name + size - 3, "-tx"))
		return false;
	snprintf(of, sizeof(of), "%.*s", (int)size - 3, name);
	sp = service_port_find(service, of);
	return sp && sp->setup->config.tx_napi;
}

static struct service_port *service_port_hosting(struct service *service, const char *tap)
{
	for (uint32_t i = 0; i < service->ports_n; i++)
		if (!strcmp(service->ports[i]->setup->host, tap))
			return service->ports[i];
	return NULL;
}

/* Everything goes back to the wire, and the TAP away. */
static int host_end(struct service_port *sp)
{
	int rc;

	if (!sp->hosted)
		return 0;
	hosted_return(sp->hosted);
	rc = hosted_close(sp->hosted);
	if (!rc)
		sp->hosted = NULL;
	return rc;
}

void service_ports_return(struct service *service)
{
	for (uint32_t i = 0; i < service->ports_n; i++)
		if (service->ports[i]->hosted)
			hosted_return(service->ports[i]->hosted);
}

int service_port_remove(struct service *service, const char *name, struct error *err)
{
	struct service_port *sp = service_port_find(service, name);
	int rc;

	if (!sp && service_port_tx(service, name))
		return error_set(err, -EBUSY, "%s goes with its port: napier port remove %.*s",
				 name, (int)strlen(name) - 3, name);
	if (!sp) {
		sp = service_port_hosting(service, name);
		if (sp)
			return error_set(err, -EBUSY,
					 "%s goes with its wire: napier port remove %s", name,
					 port_name(sp));
		return error_set(err, -ENOENT, "no port %.40s: napier show lists them", name);
	}
	rc = host_end(sp);
	if (rc)
		return error_set(err, rc, "port %s: a poll of %s does not end; the port stays",
				 name, sp->setup->host);
	if (sp->port) {
		rc = engine_port_remove(service->engine, sp->port, err);
		if (rc)
			return rc;
		monitor_unwatch(service->monitor, &sp->watch);
	}
	port_forget(service, sp);
	absent_write(service);
	return 0;
}

/* By its own interface or its host's. */
static struct service_port *service_port_watched(struct service *service, const struct watch *watch)
{
	uint32_t i = 0;

	while (&service->ports[i]->watch != watch &&
	       !(service->ports[i]->hosted && &service->ports[i]->hosted->watch == watch))
		i++;
	return service->ports[i];
}

static void port_gone(struct service *service, struct service_port *sp)
{
	struct error err;

	port_state_set(sp->port, PORT_GONE);
	service_log(service, LEVEL_WARNING,
		    "port %s: its device %s is gone: it is opened again when it returns",
		    port_name(sp), sp->setup->config.target);
	monitor_unwatch(service->monitor, &sp->watch);
	if (engine_port_remove(service->engine, sp->port, &err)) {
		/* A poll does not end. It is tried again with the ports that are absent. */
		service_log(service, LEVEL_WARNING, "%s", err.text);
		service->retry = machine_now(service->machine) + SERVICE_RETRY;
		return;
	}
	sp->port = NULL;
	if (sp->hosted)
		hosted_wire_gone(sp->hosted);
	absent_make(service, sp, "its device is gone");
}

/* Somebody has deleted it, and all that the host had there: the wire gets it, and all begins anew.
 */
static void tap_gone(struct service *service, struct service_port *sp)
{
	service_log(service, LEVEL_WARNING,
		    "port %s: its host's interface %s is gone: it is made again", port_name(sp),
		    sp->setup->host);
	port_state_set(sp->hosted->tap, PORT_GONE);
	if (host_end(sp) || !sp->port)
		return;
	monitor_unwatch(service->monitor, &sp->watch);
	port_state_set(sp->port, PORT_GONE);
	if (!engine_port_remove(service->engine, sp->port, NULL))
		sp->port = NULL;
	absent_make(service, sp, "its host's interface is gone");
}

void service_link(void *arg, struct watch *watch, enum link_event event)
{
	struct service *service = arg;
	enum port_state now = event == LINK_UP ? PORT_UP : PORT_DOWN;
	struct service_port *sp = service_port_watched(service, watch);

	if (event == LINK_GONE) {
		if (watch == &sp->watch)
			port_gone(service, sp);
		else
			tap_gone(service, sp);
		return;
	}
	if (sp->hosted)
		hosted_follow(sp->hosted);
	if (watch != &sp->watch)
		return;
	/* The port may have noticed by itself, but tells nobody. */
	if ((enum port_state)atomic_load(&sp->port->state) != now)
		port_state_set(sp->port, now);
	if (sp->told == now)
		return;
	sp->told = now;
	service_log(service, now == PORT_UP ? LEVEL_INFO : LEVEL_WARNING, "port %s: %s is %s",
		    port_name(sp), sp->setup->config.target, now == PORT_UP ? "up" : "down");
}

static void port_retry(struct service *service, struct service_port *sp)
{
	struct error err = {0};

	if (sp->port) {
		if (engine_port_remove(service->engine, sp->port, NULL))
			return;
		sp->port = NULL;
		absent_make(service, sp, "its device is gone");
	}
	if (!port_open(service, sp, &err)) {
		service_log(service, LEVEL_INFO, "port %s: %s is back, opened again", port_name(sp),
			    sp->setup->config.target);
		absent_write(service);
		return;
	}
	if (!strcmp(sp->why, err.text))
		return;
	if (err.code != -ENODEV && err.code != -ENOENT)
		service_log(service, LEVEL_WARNING, "port %s: cannot be opened again: %s",
			    port_name(sp), err.text);
	absent_make(service, sp, err.text);
}

static bool port_away(const struct service_port *sp)
{
	return !sp->port || atomic_load(&sp->port->state) == PORT_GONE;
}

int64_t service_ports_retry(struct service *service, int64_t now)
{
	bool any = false;

	if (now < service->retry)
		return service->retry;
	for (uint32_t i = 0; i < service->ports_n; i++) {
		if (!port_away(service->ports[i]))
			continue;
		port_retry(service, service->ports[i]);
		any |= port_away(service->ports[i]);
	}
	service->retry = any ? machine_now(service->machine) + SERVICE_RETRY : TIME_NEVER;
	return service->retry;
}

bool service_ports_finite(const struct service *service)
{
	bool any = false;

	for (uint32_t i = 0; i < service->ports_n; i++) {
		const struct port *port = service->ports[i]->port;

		if (!port || !(port->features & (PORT_FINITE | PORT_SINK)))
			return false;
		any |= port->features & PORT_FINITE;
	}
	return any;
}

bool service_ports_ended(const struct service *service)
{
	for (uint32_t i = 0; i < service->ports_n; i++) {
		const struct port *port = service->ports[i]->port;

		if ((port->features & PORT_FINITE) && atomic_load(&port->state) != PORT_ENDED)
			return false;
	}
	return true;
}

void service_ports_free(struct service *service)
{
	while (service->ports_n) {
		struct service_port *sp = service->ports[0];

		host_end(sp);
		if (sp->port) {
			monitor_unwatch(service->monitor, &sp->watch);
			engine_port_remove(service->engine, sp->port, NULL);
		}
		port_forget(service, sp);
	}
}

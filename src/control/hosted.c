/* SPDX-License-Identifier: BSD-2-Clause */
/* The TAP of a hosted interface: its making, what of the wire's it follows, its end. */
#include "control/hosted.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <control/service.h>
#include <port/netdev_stack.h>

static int stack_check(const struct setup_port *setup, struct error *err)
{
	const char *name = setup->config.target;
	struct netdev_stack stack;
	struct netdev dev;
	int rc = netdev_open(&dev, name, err);

	if (rc)
		return rc;
	rc = netdev_stack_read(&dev, &stack);
	netdev_close(&dev);
	if (rc)
		return error_set(err, rc, "host: %s: netlink: %s", name, strerror(-rc));
	if (stack.master[0])
		return error_set(err, -EBUSY,
				 "host: %s belongs to %s, whose addresses are the host's: ip link "
				 "set %s nomaster, or run it as a port of napier's bridge",
				 name, stack.master, name);
	if (stack.upper[0])
		return error_set(err, -EBUSY,
				 "host: %s stands on %s and would receive nothing any more: remove "
				 "it first (ip link del %s), and make it on %s afterwards",
				 stack.upper, name, stack.upper, setup->host);
	if (if_nametoindex(setup->host))
		return error_set(err, -EEXIST,
				 "host: there is an interface %s already: name another for %s with "
				 "host=NAME",
				 setup->host, name);
	return 0;
}

int hosted_check(const struct setup_port *setup, struct error *err)
{
	int back, rc = netns_enter(setup->config.netns, &back, err);

	if (rc)
		return rc;
	rc = stack_check(setup, err);
	netns_leave(back);
	return rc;
}

/* As many queues as the wire has: a connection stays on one of them both ways. */
static int tap_add(struct hosted *h, const struct port *wire, struct error *err)
{
	struct port_config config = {
		.kind = "tap",
		.queues = wire->queues,
		.options = "up=no",
		.disabled = true,
	};

	snprintf(config.target, sizeof(config.target), "%s", h->setup->host);
	snprintf(config.name, sizeof(config.name), "%s", h->setup->host);
	snprintf(config.netns, sizeof(config.netns), "%s", h->setup->config.netns);
	return engine_port_add(h->service->engine, &config, &h->tap, err);
}

static void settings_copy(struct hosted *h)
{
	char failed[64];
	unsigned n;

	/* Its address comes with the others, from the wire. */
	ifsysctl_write("ipv6/conf", h->setup->host, "addr_gen_mode", "1");
	n = ifsysctl_copy(h->wire.name, h->setup->host, failed);
	if (n)
		service_log(h->service, LEVEL_WARNING,
			    "port %s: %u setting%s of %s not copied to %s, such as %s",
			    h->setup->config.name, n, n == 1 ? " was" : "s were", h->wire.name,
			    h->setup->host, failed);
}

/* Before it is up, so that the kernel makes no address of another MAC. */
static int tap_dress(struct hosted *h, struct error *err)
{
	struct netdev_change change = {.up = 1, .carrier = -1};
	struct netdev_link wire;
	int rc = netdev_link(&h->wire, &wire);

	if (!rc) {
		settings_copy(h);
		change.address = wire.address;
		change.mtu = wire.mtu;
		rc = netdev_change(h->tap_dev.fd, h->tap_dev.ifindex, &change);
	}
	return rc ? error_set(err, rc, "host: %s cannot be made like %s: %s", h->setup->host,
			      h->wire.name, strerror(-rc))
		  : 0;
}

static int devices_open(struct hosted *h, struct error *err)
{
	int back, rc = netns_enter(h->setup->config.netns, &back, err);

	if (rc)
		return rc;
	rc = netdev_open(&h->wire, h->setup->config.target, err);
	if (!rc && h->tap_dev.fd < 0) {
		rc = netdev_open(&h->tap_dev, h->setup->host, err);
		if (!rc)
			rc = tap_dress(h, err);
	}
	netns_leave(back);
	return rc;
}

static int pair(struct hosted *h, struct port *wire, struct error *err)
{
	struct service *service = h->service;
	int rc = engine_handler_set(service->engine, wire, service->host, err);

	if (!rc)
		rc = engine_handler_set(service->engine, h->tap, service->host, err);
	return rc ? rc : host_pair(service->host, wire, h->tap, err);
}

static int host_make(struct service *service, struct error *err)
{
	int rc = service->host ? 0 : host_create(service->engine, &service->host);

	return rc ? error_set(err, rc, "handler host: %s", strerror(-rc)) : 0;
}

static int hosted_make(struct service *service, const struct setup_port *setup,
		       const struct port *wire, struct hosted **out, struct error *err)
{
	struct hosted *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return error_set(err, -ENOMEM, "host: no memory");
	h->service = service;
	h->setup = setup;
	h->wire = h->tap_dev = NETDEV_CLOSED;
	rc = host_make(service, err);
	if (!rc)
		rc = tap_add(h, wire, err);
	if (rc) {
		free(h);
		return rc;
	}
	*out = h;
	return 0;
}

int hosted_open(struct service *service, const struct setup_port *setup, struct port *wire,
		struct hosted **hosted, struct error *err)
{
	bool made = !*hosted;
	int rc = 0;

	if (strcmp(wire->ops->kind, "xdp"))
		return error_set(
			err, -EOPNOTSUPP,
			"host: %s could be opened with packet sockets only, which leave all "
			"frames to the kernel's stack there as well (see the warning "
			"before)",
			setup->config.target);
	if (made)
		rc = hosted_make(service, setup, wire, hosted, err);
	if (!rc)
		rc = devices_open(*hosted, err);
	if (!rc)
		rc = pair(*hosted, wire, err);
	if (!rc && made)
		rc = monitor_watch(service->monitor, &(*hosted)->watch, setup->config.netns,
				   (*hosted)->tap_dev.ifindex, err);
	if (!rc)
		hosted_follow(*hosted);
	if (rc && !made)
		netdev_close(&(*hosted)->wire);
	else if (rc && *hosted && !hosted_close(*hosted))
		*hosted = NULL;
	return rc;
}

static void port_follow(struct port *port, bool up)
{
	enum port_state now = up ? PORT_UP : PORT_DOWN;

	if (atomic_load(&port->state) != (int)now)
		port_state_set(port, now);
}

/*
 * Without a carrier, and with another MAC, the kernel forgets nexthop objects, the routes by those,
 * and neighbours. They are kept here, and come again with the carrier.
 */
static void keep(struct hosted *h)
{
	netconf_free(&h->kept);
	if (!netconf_read(h->tap_dev.fd, h->tap_dev.ifindex, h->tap_dev.name, &h->kept))
		netconf_leave_out(&h->kept, RTM_NEWADDR);
}

static void kept_say(void *arg, const char *line)
{
	const struct hosted *h = arg;

	service_log(h->service, LEVEL_WARNING, "port %s: %s", h->setup->config.name, line);
}

static void kept_add(struct hosted *h)
{
	const struct netconf_target to = {
		.fd = h->tap_dev.fd,
		.ifindex = h->tap_dev.ifindex,
		.name = h->tap_dev.name,
		.say = kept_say,
		.say_arg = h,
	};

	netconf_add(&h->kept, &to, 0);
	netconf_free(&h->kept);
}

/* What differs only: each change is told to all who listen, and so comes back here. */
void hosted_follow(struct hosted *h)
{
	struct netdev_change change = {.up = -1, .carrier = -1};
	struct netdev_link tap, wire = {0};
	bool up = h->wire.fd >= 0 && !netdev_link(&h->wire, &wire) && netdev_link_up(&wire);
	int rc;

	if (netdev_link(&h->tap_dev, &tap))
		return;
	if (tap.carrier != up)
		change.carrier = up;
	if (wire.mtu && wire.mtu != tap.mtu)
		change.mtu = wire.mtu;
	if (wire.mtu && memcmp(wire.address, tap.address, sizeof(tap.address)))
		change.address = wire.address;
	if (change.carrier == 0 || (change.address && !h->kept.n))
		keep(h);
	rc = change.carrier < 0 && !change.mtu && !change.address
		     ? 0
		     : netdev_change(h->tap_dev.fd, h->tap_dev.ifindex, &change);
	if (rc)
		service_log(h->service, LEVEL_WARNING, "port %s: %s does not follow %s: %s",
			    h->setup->config.name, h->tap_dev.name, h->setup->config.target,
			    strerror(-rc));
	if (up && h->kept.n)
		kept_add(h);
	port_follow(h->tap, up && tap.flags & IFF_UP);
}

void hosted_wire_gone(struct hosted *h)
{
	netdev_close(&h->wire);
	hosted_follow(h);
	service_log(h->service, LEVEL_INFO,
		    "port %s: %s keeps its addresses and routes, and has no carrier until %s is "
		    "back",
		    h->setup->config.name, h->tap_dev.name, h->setup->config.target);
}

int hosted_close(struct hosted *h)
{
	int rc;

	monitor_unwatch(h->service->monitor, &h->watch);
	rc = engine_port_remove(h->service->engine, h->tap, NULL);
	if (rc)
		return rc;
	netdev_close(&h->wire);
	netdev_close(&h->tap_dev);
	netconf_free(&h->before);
	netconf_free(&h->kept);
	free(h);
	return 0;
}

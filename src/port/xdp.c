/* SPDX-License-Identifier: BSD-2-Clause */
/* xdp: open and close. */
#include "port/xdp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include "port/device.h"
#include "port/kinds.h"

/* Why a driver did not take the program, where its code means more than its text. */
static const char *attach_reason(const struct xdp_port *xp, int rc)
{
	bool veth = !strcmp(xp->driver, "veth");

	switch (rc) {
	case -EPERM:
		return "attaching an XDP program needs CAP_BPF and CAP_NET_ADMIN, outside of user "
		       "namespaces";
	case -EOPNOTSUPP:
		return strcmp(xp->driver, "virtio_net") ? "the driver has no XDP"
							: "its receive offloads cannot be switched "
							  "off by the guest";
	case -ENOSPC:
		if (veth)
			return "the peer has more transmit queues than this end has receive queues";
		break;
	case -ERANGE:
		if (veth)
			return "the peer's MTU is too large for it";
		break;
	}
	return strerror(-rc);
}

static int program_attach(struct xdp_port *xp, bool native, struct error *err)
{
	struct netdev_link link;
	int rc = xdp_program_open(&xp->program, xp->dev.ifindex, native);

	if (!rc)
		return 0;
	/* It came between our look and our attempt. */
	if ((rc == -EBUSY || rc == -EEXIST) && !netdev_link(&xp->dev, &link) && link.xdp_program)
		return xdp_attached_error(xp, &link, err);
	return error_set(err, rc, "xdp:%s: no %s XDP with driver %s: %s", xp->dev.name,
			 native ? "native" : "generic", xp->driver, attach_reason(xp, rc));
}

/* Native, or else generic, as far as the mode allows. */
static int program_open(struct xdp_port *xp, const struct xdp_request *request, struct error *err)
{
	struct error native;
	int rc;

	if (request->mode == XDP_ATTACH_GENERIC)
		return program_attach(xp, false, err);
	rc = program_attach(xp, true, &native);
	if (!rc)
		return 0;
	if (request->mode == XDP_ATTACH_NATIVE || rc == -EBUSY || rc == -EPERM ||
	    request->zerocopy == XDP_ZEROCOPY_ON)
		return error_set(err, rc, "%s", native.text);
	port_warn(xp->port, "%s; using generic XDP, which is slower", native.text);
	return program_attach(xp, false, err);
}

/*
 * As many frames as the rings take, but not all of the pool: other ports need some, and so does
 * what is on its way from one to the other.
 */
static int fill_begin(struct xdp_port *xp, const struct xdp_request *request, struct error *err)
{
	uint32_t share = pool_available(xp->port->pool) / 2 / request->queues;
	uint32_t target = request->ring;
	struct pool_cache cache;

	if (share < XDP_RING_MIN)
		return error_set(err, -ENOSPC,
				 "xdp:%s: the pool has %u frames left, %u queue%s need%s %u: "
				 "--frames more, or queues= fewer",
				 xp->dev.name, pool_available(xp->port->pool), request->queues,
				 request->queues == 1 ? "" : "s", request->queues == 1 ? "s" : "",
				 request->queues * XDP_RING_MIN * 2);
	if (share < target) {
		port_warn(
			xp->port,
			"only %u frames a queue to receive into (ring=%u): the pool has no more to "
			"share out",
			share, target);
		target = share;
	}
	pool_cache_init(&cache, xp->port->pool);
	for (uint32_t i = 0; i < request->queues; i++) {
		xp->queue[i].fill_target = target;
		xdp_fill(&xp->queue[i], &cache);
	}
	pool_cache_drain(&cache);
	return 0;
}

/* Where a local sender's checksums may be partial. */
static bool checksums_wanted(const struct xdp_port *xp, const struct xdp_request *request)
{
	static const char *const drivers[] = {"veth", "virtio_net", "tun"};

	if (request->checksum != XDP_CHECKSUM_AUTO)
		return request->checksum == XDP_CHECKSUM_COMPLETE;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(*drivers); i++)
		if (!strcmp(drivers[i], xp->driver))
			return true;
	return false;
}

static int sockets_open(struct xdp_port *xp, const struct xdp_request *request, struct error *err)
{
	bool checksums = checksums_wanted(xp, request);
	int rc = 0;

	xp->queue = aligned_alloc(_Alignof(struct xdp_queue),
				  request->queues * sizeof(struct xdp_queue));
	if (!xp->queue || port_queues_alloc(xp->port, request->queues))
		return error_set(err, -ENOMEM, "xdp:%s: no memory for %u queues", xp->dev.name,
				 request->queues);
	memset(xp->queue, 0, request->queues * sizeof(struct xdp_queue));
	for (; xp->opened < request->queues; xp->opened++) {
		xp->queue[xp->opened].checksums = checksums;
		rc = xdp_socket_open(xp, xp->opened, request->ring, request->zerocopy, err);
		if (rc)
			return rc;
	}
	rc = fill_begin(xp, request, err);
	for (uint32_t i = 0; i < request->queues && !rc; i++) {
		rc = xdp_program_redirect(&xp->program, i, xp->queue[i].fd);
		if (rc)
			error_set(err, rc, "xdp:%s: queue %u: redirecting to its socket: %s",
				  xp->dev.name, i, strerror(-rc));
	}
	return rc;
}

/* Before generic XDP the kernel has made long packets of short ones, if it is let. */
static void merging_warn(struct xdp_port *xp)
{
	const char *name = xp->dev.name;
	bool on;

	if (!netdev_feature(&xp->dev, "rx-gro", &on) && on)
		port_warn(
			xp->port,
			"GRO makes packets that are longer than a frame, which generic XDP loses: "
			"%sethtool -K %s gro off",
			xp->fix_prefix, name);
	if (!strcmp(xp->driver, "veth"))
		port_warn(xp->port,
			  "segments longer than a frame are lost: at the peer, ethtool -K "
			  "PEER tso off gso off");
}

/* Tags that are not in the frame when the program sees it, and that it cannot put back. */
static void tags_warn(struct xdp_port *xp, const struct netdev_link *link)
{
	bool on;

	if (xp->program.tags)
		return;
	if (!strcmp(xp->driver, "veth"))
		port_warn(xp->port,
			  "VLAN tags that the peer's stack leaves to the device are lost: "
			  "at the peer, ethtool -K PEER txvlan off");
	else if (!link->kind[0] && !netdev_feature(&xp->dev, "rx-vlan-hw-parse", &on) && on)
		port_warn(
			xp->port,
			"VLAN tags that the device takes out are lost: %sethtool -K %s rxvlan off",
			xp->fix_prefix, xp->dev.name);
}

static void port_fill(struct xdp_port *xp, const struct xdp_request *request)
{
	struct port *port = xp->port;
	bool zerocopy = xp->queue[0].zerocopy;

	snprintf(port->mode, sizeof(port->mode), "%s, %s",
		 xp->program.native ? "native" : "generic", zerocopy ? "zero copy" : "copy");
	device_describe(port, &xp->dev, &request->link);
	device_down_warn(port, &xp->dev, &request->link);
}

/* In the order in which each step relies on the one before. */
static int xdp_port_open(struct xdp_port *xp, const struct port_config *config,
			 struct xdp_request *request, struct error *err)
{
	int rc = xdp_request_check(xp, config, request, err);

	if (!rc)
		rc = program_open(xp, request, err);
	if (!rc)
		rc = sockets_open(xp, request, err);
	if (rc)
		return rc;
	rc = netdev_promiscuous(&xp->dev, &xp->promiscuous);
	if (rc)
		return error_set(err, rc, "xdp:%s: promiscuous mode: %s", xp->dev.name,
				 strerror(-rc));
	xp->deferral_error = irq_defer_open(&xp->deferral, xp->dev.name, !xp->netns[0]);
	port_fill(xp, request);
	tags_warn(xp, &request->link);
	if (!xp->program.native)
		merging_warn(xp);
	xdp_watch_begin(xp, &request->link);
	return 0;
}

/* Frames that the kernel had, found by their marks. */
static void frames_take_back(struct xdp_port *xp, struct pool_cache *cache)
{
	uint32_t mark = (uint32_t)xp->port->index + 1;
	struct pool *pool = xp->port->pool;

	for (uint32_t i = 0; i < pool->frames; i++) {
		struct packet *p = &pool->packets[i];

		if (atomic_load_explicit(&p->holder, memory_order_relaxed) >> 16 != mark)
			continue;
		atomic_store_explicit(&p->holder, 0, memory_order_relaxed);
		p->next = NULL;
		packet_free(cache, &p, 1);
	}
}

static void xdp_port_close(struct xdp_port *xp, struct pool_cache *cache)
{
	xdp_deferral_put_back(xp);
	irq_defer_close(&xp->deferral);
	/* First the program, so that nothing new comes in. */
	xdp_program_close(&xp->program);
	while (xp->opened)
		xdp_socket_close(xp, --xp->opened, cache);
	frames_take_back(xp, cache);
	if (xp->promiscuous >= 0)
		close(xp->promiscuous);
	netdev_close(&xp->dev);
	free(xp->queue);
	xp->port->private = NULL;
	free(xp);
}

/* The reasons for which another kind of port may do better on the same interface. */
static bool fallback_helps(int rc)
{
	return rc == -EPERM || rc == -EOPNOTSUPP || rc == -EAFNOSUPPORT || rc == -ENOSYS ||
	       rc == -ENOMEM || rc == -ERANGE || rc == -ENOTSUP;
}

static int fall_back(struct port *port, struct port_config *config, const struct error *why,
		     struct error *err)
{
	const struct port_ops *packet = port_kind_find("packet");

	if (!packet)
		return error_set(err, why->code, "%s", why->text);
	port_warn(port, "%s; using packet sockets instead", why->text);
	free(port->queue);
	port->queue = NULL;
	port->queues = 0;
	port->mode[0] = '\0';
	port->ops = packet;
	snprintf(port->spec, sizeof(port->spec), "packet:%.*s", IFNAMSIZ - 1, config->target);
	snprintf(config->kind, sizeof(config->kind), "packet");
	return packet->open(port, config, err);
}

static int xdp_open_checked(struct port *port, struct port_config *config,
			    struct xdp_request *request, struct error *err)
{
	struct xdp_port *xp = calloc(1, sizeof(*xp));
	struct pool_cache cache;
	char missing[64];
	int rc;

	if (!xp)
		return error_set(err, -ENOMEM, "xdp:%s: no memory", config->target);
	xp->port = port;
	xp->program = XDP_PROGRAM_CLOSED;
	xp->promiscuous = -1;
	xp->deferral = IRQ_DEFER_CLOSED;
	memcpy(xp->netns, config->netns, sizeof(xp->netns));
	if (config->netns[0])
		snprintf(xp->fix_prefix, sizeof(xp->fix_prefix), "ip netns exec %s ",
			 config->netns);
	port->private = xp;
	rc = netdev_open(&xp->dev, config->target, err);
	if (!rc && xdp_capabilities_check(missing, sizeof(missing)))
		rc = error_set(err, -EPERM, "xdp:%s: lacks %s (run it as root, or see setcap(8))",
			       config->target, missing);
	if (!rc)
		rc = xdp_port_open(xp, config, request, err);
	if (rc) {
		pool_cache_init(&cache, port->pool);
		xdp_port_close(xp, &cache);
		pool_cache_drain(&cache);
	}
	return rc;
}

static int xdp_open(struct port *port, struct port_config *config, struct error *err)
{
	struct xdp_request request = {0};
	libbpf_print_fn_t bpf_print;
	libxdp_print_fn_t xdp_print;
	struct error why = {0};
	int rc = xdp_request_read(config, &request, err);

	if (rc)
		return rc;
	/* They would explain on stderr what our errors say. */
	bpf_print = libbpf_set_print(NULL);
	xdp_print = libxdp_set_print(NULL);
	rc = xdp_open_checked(port, config, &request, &why);
	libbpf_set_print(bpf_print);
	libxdp_set_print(xdp_print);
	if (rc && request.mode == XDP_ATTACH_AUTO && request.zerocopy != XDP_ZEROCOPY_ON &&
	    fallback_helps(rc))
		return fall_back(port, config, &why, err);
	if (rc)
		error_set(err, rc, "%s", why.text);
	return rc;
}

static void xdp_close(struct port *port, struct context *context)
{
	xdp_port_close(xdp_port_of(port), &context->cache);
}

const struct port_ops xdp_port_ops = {
	.kind = "xdp",
	.help = "xdp:IF[,mode=auto|native|generic][,zerocopy=auto|on|off][,queues=N][,ring=N]"
		"[,checksum=auto|complete|off]  an interface by AF_XDP",
	.open = xdp_open,
	.receive = xdp_receive,
	.transmit = xdp_transmit,
	.kick = xdp_kick,
	.poller_changed = xdp_poller_changed,
	.tick = xdp_tick,
	.close = xdp_close,
};

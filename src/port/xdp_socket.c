/* SPDX-License-Identifier: BSD-2-Clause */
/* xdp: one queue's UMEM, socket and rings. */
#include "port/xdp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Linux 6.17: how many frames one sendto sends in copy mode, at least 32. */
#ifndef XDP_MAX_TX_SKB_BUDGET
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

/* So that the vectors of a whole poll, to one queue, go out with one call. */
#define TX_BUDGET 256

/* What the kernel charges for a packet of 1514 bytes; it doubles the room it is told. */
#define PACKET_COST 2304

/*
 * The kernel lets go of a queue some time after the descriptor is closed (a work item, and the
 * socket buffers in flight), so one that was used a moment ago may still be taken.
 */
#define BIND_TRIES 100
#define BIND_PAUSE (10 * NSEC_PER_MSEC)

/* In flight at close: a device that does not send within this time will not send at all. */
#define DRAIN_TRIES 20
#define DRAIN_PAUSE (5 * NSEC_PER_MSEC)

/* With zero copy the device writes into our frames until that same work item has run. */
#define ZEROCOPY_PAUSE (200 * NSEC_PER_MSEC)

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void pause_for(struct machine *machine, int64_t ns)
{
	machine_wait(machine, never, NULL, machine_now(machine) + ns);
}

static const char *umem_reason(int rc)
{
	switch (rc) {
	case -ENOBUFS:
		return "the locked-memory limit is too small for the pool: ulimit -l unlimited, "
		       "LimitMEMLOCK=infinity in a systemd unit, or CAP_IPC_LOCK";
	case -EPERM:
		return "opening AF_XDP sockets needs CAP_NET_RAW";
	case -EAFNOSUPPORT:
		return "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS)";
	default:
		return strerror(-rc);
	}
}

/* One attempt at UMEM and sockets; nothing is left when it fails. *umem_failed says which it was.
 */
static int socket_try(struct xdp_port *xp, struct xdp_queue *q, uint16_t flags, bool *umem_failed)
{
	const struct pool *pool = xp->port->pool;
	const struct xsk_umem_config umem = {
		.fill_size = q->ring,
		.comp_size = q->ring,
		.frame_size = 1u << pool->frame_shift,
	};
	const struct xsk_socket_config socket = {
		.rx_size = q->ring,
		.tx_size = q->ring,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_USE_NEED_WAKEUP | flags,
	};
	int rc = xsk_umem__create(&q->umem, pool->area, pool_area_size(pool), &q->fill,
				  &q->completion, &umem);

	*umem_failed = rc;
	if (rc)
		return rc;
	rc = xsk_socket__create(&q->socket, xp->dev.name, q->index, q->umem, &q->rx, NULL, &socket);
	if (!rc) {
		rc = xsk_socket__create_shared(&q->tx_socket, xp->dev.name, q->index, q->umem, NULL,
					       &q->tx, &q->fill, &q->completion, &socket);
		if (rc)
			xsk_socket__delete(q->socket);
	}
	if (rc)
		xsk_umem__delete(q->umem);
	return rc;
}

static int socket_error(const struct xdp_port *xp, const struct xdp_queue *q, int rc,
			struct error *err)
{
	const char *name = xp->dev.name;

	if (rc == -EBUSY)
		return error_set(err, rc,
				 "xdp:%s: queue %u has an AF_XDP socket of another program; end "
				 "that program (see: ss --xdp -p)",
				 name, q->index);
	if (rc == -EOPNOTSUPP)
		return error_set(err, rc,
				 "xdp:%s: driver %s has no zero copy for queue %u: use "
				 "zerocopy=auto or off",
				 name, xp->driver, q->index);
	return error_set(err, rc, "xdp:%s: queue %u: binding the socket: %s", name, q->index,
			 strerror(-rc));
}

static int socket_bind(struct xdp_port *xp, struct xdp_queue *q, uint16_t flags, struct error *err)
{
	bool umem_failed = false;
	int rc = -EBUSY;

	for (int i = 0; i < BIND_TRIES && rc == -EBUSY; i++) {
		if (i)
			pause_for(xp->port->machine, BIND_PAUSE);
		rc = socket_try(xp, q, flags, &umem_failed);
	}
	if (!rc)
		return 0;
	q->umem = NULL;
	q->socket = q->tx_socket = NULL;
	if (umem_failed)
		return error_set(err, rc, "xdp:%s: queue %u: %s", xp->dev.name, q->index,
				 umem_reason(rc));
	return socket_error(xp, q, rc, err);
}

int xdp_socket_open(struct xdp_port *xp, uint32_t index, uint32_t ring, enum xdp_zerocopy zerocopy,
		    struct error *err)
{
	struct xdp_queue *q = &xp->queue[index];
	struct xdp_options options = {0};
	socklen_t size = sizeof(options);
	uint16_t flags = zerocopy == XDP_ZEROCOPY_ON ? XDP_ZEROCOPY : 0;
	int budget = ring < TX_BUDGET ? (int)ring : TX_BUDGET;
	int room = (int)ring * PACKET_COST;
	int rc;

	q->queue = &xp->port->queue[index];
	q->index = index;
	q->mark = ((uint32_t)xp->port->index + 1) << 16 | index;
	q->ring = ring;
	if (zerocopy == XDP_ZEROCOPY_OFF || !xp->program.native)
		flags = XDP_COPY;
	rc = socket_bind(xp, q, flags, err);
	if (rc)
		return rc;
	q->fd = xsk_socket__fd(q->socket);
	q->tx_fd = xsk_socket__fd(q->tx_socket);
	/* By default a socket may have some 90 long packets under way, less than a device's ring.
	 */
	setsockopt(q->tx_fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	/* An older kernel has no such option, and sends 32 a call. */
	setsockopt(q->tx_fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &budget, sizeof(budget));
	if (!getsockopt(q->fd, SOL_XDP, XDP_OPTIONS, &options, &size))
		q->zerocopy = options.flags & XDP_OPTIONS_ZEROCOPY;
	q->queue->private = q;
	q->queue->irq.fd = q->fd;
	return 0;
}

/* What is on its way is sent from our frames (by some devices without a copy), so let it go. */
static void socket_drain(struct xdp_port *xp, struct xdp_queue *q, struct pool_cache *cache)
{
	xdp_complete(q, cache);
	for (int i = 0; i < DRAIN_TRIES && q->sending; i++) {
		int rc = xdp_push(q);

		if (rc && rc != -EAGAIN && rc != -EBUSY && rc != -ENOBUFS)
			return;
		xdp_complete(q, cache);
		if (q->sending)
			pause_for(xp->port->machine, DRAIN_PAUSE);
	}
}

void xdp_socket_close(struct xdp_port *xp, uint32_t index, struct pool_cache *cache)
{
	struct xdp_queue *q = &xp->queue[index];

	socket_drain(xp, q, cache);
	xsk_socket__delete(q->tx_socket);
	xsk_socket__delete(q->socket);
	xsk_umem__delete(q->umem);
	if (q->zerocopy)
		pause_for(xp->port->machine, ZEROCOPY_PAUSE);
	q->socket = q->tx_socket = NULL;
	q->umem = NULL;
	q->queue->private = NULL;
	q->queue->irq.fd = -1;
}

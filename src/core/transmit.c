/* SPDX-License-Identifier: BSD-2-Clause */
/* Where packets leave a handler: sent on a port, delivered, or dropped. */
#include <linux/virtio_net.h>
#include <stdatomic.h>

#include <napier/port.h>

#include <core/canary.h>
#include <core/checksum.h>
#include <core/context.h>
#include <core/frames.h>
#include <core/napi.h>
#include <core/segment.h>
#include <machine/lock.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

void packet_drop(struct context *context, struct packet **v, uint32_t n, enum drop_reason reason)
{
	if (!n)
		return;
	counter_add(&context->counters->dropped[reason], n);
	packet_free(&context->cache, v, n);
	if (CANARY(DOUBLE_FREE))
		packet_free(&context->cache, v + n - 1, 1);
}

void packet_deliver(struct context *context, struct packet **v, uint32_t n)
{
	if (!n)
		return;
	counter_add(&context->counters->delivered, n);
	packet_free(&context->cache, v, n);
}

/* One kick per queue and poll, however many vectors went there. */
static void kick_later(struct context *context, struct port_queue *queue)
{
	for (uint32_t i = context->kicks; i-- > 0;)
		if (context->kick[i] == queue)
			return;
	if (context->kicks == CONTEXT_KICKS)
		context_kick(context);
	context->kick[context->kicks++] = queue;
}

/*
 * The transmit queue follows from the receive queue, not from the runner: a flow keeps its queue,
 * and so its order, when its poller is switched, or it is steered.
 */
static struct port_queue *queue_choose(struct context *context, struct port *port)
{
	uint32_t i = context->napi && !CANARY(REORDER) ? context->received_by : context->index;

	return &port->queue[port->queues == 1 ? 0 : i % port->queues];
}

/* Ready for the wire: no super-packets, and checksums are complete where the port wants that. */
static void queue_send(struct context *context, struct port_queue *queue, struct packet **v,
		       uint32_t n)
{
	const struct port_ops *ops = queue->port->ops;
	uint32_t sent;

	lock_acquire(queue->lock);
	sent = ops->transmit(queue, context, v, n);
	if (sent < n) {
		counter_add(&queue->transmit->full, 1);
		if (ops->kick) {
			ops->kick(queue, context);
			sent += ops->transmit(queue, context, v + sent, n - sent);
		}
	}
	lock_release(queue->lock);
	if (sent < n)
		packet_drop(context, v + sent, n - sent, DROP_TX_FULL);
	if (ops->kick)
		kick_later(context, queue);
}

/*
 * Returns how many are left in v. One that says that its checksum lies where it has no bytes would
 * arrive as damaged, and what it was meant to be nobody knows.
 */
static uint32_t checksums_complete(struct context *context, struct packet **v, uint32_t n)
{
	struct packet *bad[PACKET_VECTOR_MAX];
	uint32_t good = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct packet *p = v[i];

		if ((p->flags & (PACKET_CSUM_PARTIAL | PACKET_GSO)) != PACKET_CSUM_PARTIAL ||
		    checksum_complete(p))
			v[good++] = p;
		else
			bad[i - good] = p;
	}
	packet_drop(context, bad, n - good, DROP_CHECKSUM);
	return good;
}

static void vector_send(struct context *context, struct port_queue *queue, struct packet **v,
			uint32_t n)
{
	if (!(queue->port->features & PORT_TX_CSUM))
		n = checksums_complete(context, v, n);
	if (n)
		queue_send(context, queue, v, n);
}

/* Whether the port takes it as it is, or as it is made here. */
static bool taken_whole(const struct port *port, struct packet *p)
{
	if (!(p->flags & PACKET_GSO))
		return true;
	if (!(port->features & PORT_TX_GSO))
		return false;
	if (p->gso_type == VIRTIO_NET_HDR_GSO_UDP_L4 && !(port->features & PORT_TX_USO))
		return false;
	return !(p->flags & PACKET_FRAMES) || frames_join(p);
}

/* A vector that has super-packets in it: the port gets what it takes, in order. */
static void supers_send(struct context *context, struct port_queue *queue, struct packet **v,
			uint32_t n)
{
	struct packet *out[PACKET_VECTOR_MAX];
	uint32_t filled = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct packet *p = v[i];
		bool whole = taken_whole(queue->port, p);

		do {
			if (whole)
				out[filled++] = p;
			else
				filled += segment_packet(context, &p, out + filled,
							 PACKET_VECTOR_MAX - filled);
			if (filled == PACKET_VECTOR_MAX) {
				vector_send(context, queue, out, filled);
				filled = 0;
			}
		} while (!whole && p);
	}
	if (filled)
		vector_send(context, queue, out, filled);
}

void port_transmit(struct context *context, struct port *port, struct packet **v, uint32_t n)
{
	struct port_queue *queue;
	uint32_t flags = 0;

	if (!port_sendable(port)) {
		packet_drop(context, v, n, DROP_TX_DOWN);
		return;
	}
	queue = queue_choose(context, port);
	for (uint32_t i = 0; i < n; i++)
		flags |= v[i]->flags;
	if (flags & PACKET_GSO)
		supers_send(context, queue, v, n);
	else if (flags & PACKET_CSUM_PARTIAL)
		vector_send(context, queue, v, n);
	else
		queue_send(context, queue, v, n);
}

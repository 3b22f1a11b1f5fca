/* SPDX-License-Identifier: BSD-2-Clause */
/* xdp: the way of a packet through a queue's four rings. */
#include "port/xdp.h"

#include <errno.h>
#include <sys/socket.h>

#include <core/checksum.h>
#include <machine/lock.h>
#include <port/device.h>

enum {
	ETHERNET_HEADER = 14,
	/* A call sends at least 32 frames, so this is more than the largest ring needs. */
	PUSHES_MAX = XDP_RING_MAX / 32 + 1,
	/* Transmitted frames are taken back in vectors, while their lines are still in the cache.
	 */
	COMPLETE_AT = PACKET_VECTOR_MAX,
};

/* When the pool or the device had no room: as long as a busy device needs for part of a ring. */
#define RETRY_AFTER (1 * NSEC_PER_MSEC)

static inline void packet_mark(struct packet *p, uint32_t mark)
{
	atomic_store_explicit(&p->holder, mark, memory_order_relaxed);
}

void xdp_complete(struct xdp_queue *q, struct pool_cache *cache)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t at, n;

	while ((n = xsk_ring_cons__peek(&q->completion, PACKET_VECTOR_MAX, &at))) {
		for (uint32_t i = 0; i < n; i++) {
			v[i] = packet_at(cache->pool,
					 *xsk_ring_cons__comp_addr(&q->completion, at + i));
			packet_mark(v[i], 0);
		}
		xsk_ring_cons__release(&q->completion, n);
		q->sending -= n;
		packet_free(cache, v, n);
	}
}

void xdp_fill(struct xdp_queue *q, struct pool_cache *cache)
{
	const struct pool *pool = cache->pool;
	struct packet *v[PACKET_VECTOR_MAX];

	while (q->filled < q->fill_target) {
		uint32_t n = q->fill_target - q->filled;
		uint32_t at;

		n = packet_alloc(cache, v, n < PACKET_VECTOR_MAX ? n : PACKET_VECTOR_MAX);
		if (!n)
			return;
		/* Never short of room: the ring is at least as big as the target. */
		if (!xsk_ring_prod__reserve(&q->fill, n, &at)) {
			packet_free(cache, v, n);
			return;
		}
		for (uint32_t i = 0; i < n; i++) {
			packet_mark(v[i], q->mark);
			*xsk_ring_prod__fill_addr(&q->fill, at + i) =
				(uint64_t)(v[i] - pool->packets) << pool->frame_shift;
		}
		xsk_ring_prod__submit(&q->fill, n);
		q->filled += n;
	}
	/* A driver that has gone to sleep for want of frames (zero copy only). */
	if (xsk_ring_prod__needs_wakeup(&q->fill))
		recvfrom(q->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

/* Frames that were used go back to the kernel, a vector at a time; true when the pool is short. */
static bool queue_refill(struct xdp_queue *q, struct context *context)
{
	uint32_t batch = q->fill_target / 2;

	if (batch > PACKET_VECTOR_MAX)
		batch = PACKET_VECTOR_MAX;
	if (q->fill_target - q->filled < batch)
		return false;
	xdp_fill(q, &context->cache);
	return q->fill_target - q->filled >= batch;
}

/*
 * The pool is empty. What this queue has sent may be some of it; failing that, look again later:
 * without frames the kernel receives nothing, and so would never wake us.
 */
static void queue_starved(struct xdp_queue *q, struct context *context)
{
	struct port_queue *queue = q->queue;

	if (lock_try(queue->lock)) {
		xdp_complete(q, &context->cache);
		lock_release(queue->lock);
		if (!queue_refill(q, context))
			return;
	}
	irq_arm(&queue->irq, context->now + RETRY_AFTER);
}

/*
 * Marks packets with partial checksums. What is said about them is said once, and should be true:
 * so the first is looked at twice, since a right checksum can look like a partial one.
 */
static inline void partial_checksums(struct xdp_queue *q, struct packet **v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!checksum_partial_detect(v[i]) ||
		    atomic_load_explicit(&q->partial_seen, memory_order_relaxed))
			continue;
		if (!checksum_partial_right(v[i]))
			atomic_store_explicit(&q->partial_seen, true, memory_order_relaxed);
	}
}

/* Descriptors into packets. */
static uint32_t rx_take(struct xdp_queue *q, const struct pool *pool, struct packet **v, uint32_t n)
{
	uint32_t at, got = xsk_ring_cons__peek(&q->rx, n, &at);

	for (uint32_t i = 0; i < got; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&q->rx, at + i);
		struct packet *p = packet_at(pool, d->addr);

		p->data = pool->area + d->addr;
		__builtin_prefetch(p->data);
		p->next = NULL;
		p->len = d->len;
		p->total = d->len;
		p->flags = 0;
		packet_mark(p, 0);
		v[i] = p;
	}
	if (got)
		xsk_ring_cons__release(&q->rx, got);
	return got;
}

/* The kernel's NAPI works in this call, for as many packets as a poll of ours may take. */
static uint32_t rx_drive(struct xdp_queue *q, struct context *context, struct packet **v,
			 uint32_t n)
{
	recvfrom(q->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
	counter_add(&context->counters->kernel_polls, 1);
	return rx_take(q, context->cache.pool, v, n);
}

static void queue_unstick(struct xdp_queue *q, struct context *context);

uint32_t xdp_receive(struct port_queue *queue, struct context *context, struct packet **v,
		     uint32_t n)
{
	struct xdp_queue *q = queue->private;
	uint64_t lost = atomic_load_explicit(&q->lost, memory_order_relaxed);
	uint32_t got = rx_take(q, context->cache.pool, v, n);

	/* The first look may have been at the ring as it was some time ago; this one is not. */
	if (got < n)
		got += rx_take(q, context->cache.pool, v + got, n - got);
	if (!got && atomic_load_explicit(&q->drive, memory_order_relaxed))
		got = rx_drive(q, context, v, n);
	q->filled -= got;
	if (queue_refill(q, context))
		queue_starved(q, context);
	if (q->checksums)
		partial_checksums(q, v, got);
	if (lost != q->lost_counted) {
		counter_add(&context->counters->lost, lost - q->lost_counted);
		q->lost_counted = lost;
	}
	if (atomic_load_explicit(&q->stuck, memory_order_relaxed))
		queue_unstick(q, context);
	return got;
}

uint32_t xdp_transmit(struct port_queue *queue, struct context *context, struct packet **v,
		      uint32_t n)
{
	struct xdp_queue *q = queue->private;
	uint32_t longest = device_mtu(queue->port) + XDP_ETHERNET_AND_TAG - ETHERNET_HEADER;
	uint64_t bytes = 0;
	uint32_t sent = 0, i;

	if (q->sending >= COMPLETE_AT)
		xdp_complete(q, &context->cache);
	for (i = 0; i < n; i++) {
		struct packet *p = v[i];
		struct xdp_desc *d;
		uint32_t at;

		/* In one comparison: too short and too long. */
		if (p->next || p->len - ETHERNET_HEADER > longest) {
			packet_drop(context, &v[i], 1,
				    p->next		       ? DROP_GSO
				    : p->len < ETHERNET_HEADER ? DROP_TOO_SHORT
							       : DROP_TOO_LONG);
			continue;
		}
		/* All of them fit into the completion ring. */
		if (q->sending == q->ring || !xsk_ring_prod__reserve(&q->tx, 1, &at))
			break;
		d = xsk_ring_prod__tx_desc(&q->tx, at);
		d->addr = packet_offset(context->cache.pool, p);
		d->len = p->len;
		d->options = 0;
		bytes += p->len;
		packet_mark(p, q->mark);
		q->sending++;
		sent++;
	}
	if (sent) {
		xsk_ring_prod__submit(&q->tx, sent);
		port_sent(queue, context, sent, bytes);
	}
	return i;
}

int xdp_push(struct xdp_queue *q)
{
	return sendto(q->tx_fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0 ? -errno : 0;
}

/*
 * Makes the kernel send. True when it left some because the device or the socket had no room.
 * An interface that is down or gone keeps what it has: there is no use in asking again.
 */
static bool queue_push(struct xdp_queue *q, struct context *context)
{
	bool left = false;

	if (!xsk_ring_prod__needs_wakeup(&q->tx))
		return false;
	for (uint32_t i = 0; i < PUSHES_MAX; i++) {
		uint32_t before = __atomic_load_n(q->tx.consumer, __ATOMIC_RELAXED);
		int rc = xdp_push(q);

		counter_add(&q->queue->transmit->kicks, 1);
		left = rc == -EAGAIN || rc == -ENOBUFS || rc == -EBUSY;
		if (!left)
			break;
		/* EBUSY: the device dropped one, the next may do better. The others come for want
		 * of room, or at the end of the kernel's own budget; then the ring has moved. */
		if (rc != -EBUSY && __atomic_load_n(q->tx.consumer, __ATOMIC_RELAXED) == before)
			break;
	}
	if (q->sending >= COMPLETE_AT)
		xdp_complete(q, &context->cache);
	return left;
}

void xdp_kick(struct port_queue *queue, struct context *context)
{
	struct xdp_queue *q = queue->private;

	/* Perhaps nothing more is sent here, so the queue's own NAPI sees to what was left. */
	if (queue_push(q, context) && !atomic_exchange(&q->stuck, true))
		irq_raise(&queue->irq);
}

/* In the NAPI: another attempt for what a kick has left, and if need be a later one. */
static void queue_unstick(struct xdp_queue *q, struct context *context)
{
	struct port_queue *queue = q->queue;

	if (lock_try(queue->lock)) {
		if (!queue_push(q, context))
			atomic_store(&q->stuck, false);
		lock_release(queue->lock);
	}
	if (atomic_load(&q->stuck))
		irq_arm(&queue->irq, context->now + RETRY_AFTER);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mem: ports inside the process. A queue has two rings of packets, `in` (to its NAPI) and `out`; a
 * port that is wired to a peer puts what it transmits into the peer's `in` instead of its own
 * `out`. Packets go by reference. One producer and one consumer a ring: the transmit side works
 * under the queue's lock, the NAPI's token makes the receive side one, the application promises the
 * rest.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <core/engine.h>
#include <machine/lock.h>
#include <port/kinds.h>

#define RING_DEFAULT 1024
#define RING_MAX 65536

/* Each side keeps the other's index as it last saw it, and looks again only when that runs out. */
struct ring {
	struct packet **slot;
	uint32_t mask;
	_Alignas(64) _Atomic uint32_t put;
	uint32_t seen_taken;
	_Alignas(64) _Atomic uint32_t taken;
	uint32_t seen_put;
};

struct mem_queue {
	struct ring in, out;
	struct port_queue *peer; /* under the queue's lock */
};

struct mem_port {
	char wished[PORT_NAME_MAX]; /* its peer, by name; empty: whoever wires it */
};

static uint32_t ring_put(struct ring *ring, struct packet **v, uint32_t n)
{
	uint32_t put = atomic_load_explicit(&ring->put, memory_order_relaxed);
	uint32_t room = ring->mask + 1 - (put - ring->seen_taken);

	if (room < n) {
		ring->seen_taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
		room = ring->mask + 1 - (put - ring->seen_taken);
		if (room < n)
			n = room;
	}
	for (uint32_t i = 0; i < n; i++)
		ring->slot[(put + i) & ring->mask] = v[i];
	atomic_store_explicit(&ring->put, put + n, memory_order_release);
	return n;
}

static uint32_t ring_take(struct ring *ring, struct packet **v, uint32_t n)
{
	uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);
	uint32_t there = ring->seen_put - taken;

	if (there < n) {
		ring->seen_put = atomic_load_explicit(&ring->put, memory_order_acquire);
		there = ring->seen_put - taken;
		if (there < n)
			n = there;
	}
	for (uint32_t i = 0; i < n; i++)
		v[i] = ring->slot[(taken + i) & ring->mask];
	atomic_store_explicit(&ring->taken, taken + n, memory_order_release);
	return n;
}

static void ring_drain(struct ring *ring, struct context *context)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n;

	while ((n = ring_take(ring, v, PACKET_VECTOR_MAX)))
		packet_free(&context->cache, v, n);
}

static struct mem_queue *mem_queue_of(struct port_queue *queue)
{
	return queue->private;
}

static void queues_free(struct port *port)
{
	for (uint32_t i = 0; i < port->queues; i++) {
		struct mem_queue *mq = mem_queue_of(&port->queue[i]);

		if (!mq)
			continue;
		free(mq->in.slot);
		free(mq->out.slot);
		free(mq);
	}
}

static struct mem_queue *mem_queue_create(uint32_t size)
{
	struct mem_queue *mq = aligned_alloc(_Alignof(struct mem_queue), sizeof(*mq));

	if (!mq)
		return NULL;
	memset(mq, 0, sizeof(*mq));
	mq->in.mask = mq->out.mask = size - 1;
	mq->in.slot = calloc(size, sizeof(*mq->in.slot));
	mq->out.slot = calloc(size, sizeof(*mq->out.slot));
	if (!mq->in.slot || !mq->out.slot) {
		free(mq->in.slot);
		free(mq->out.slot);
		free(mq);
		return NULL;
	}
	return mq;
}

static struct mem_port *mem_port_of(const struct port *port)
{
	return port->private;
}

static bool wired(const struct port *port)
{
	return mem_queue_of(&port->queue[0])->peer;
}

/* None before the engine has made it: then nobody else knows of the queue. */
static void queue_wire(struct port_queue *queue, struct port_queue *peer)
{
	if (queue->lock)
		lock_acquire(queue->lock);
	mem_queue_of(queue)->peer = peer;
	if (queue->lock)
		lock_release(queue->lock);
}

static void ports_wire(struct port *a, struct port *b, uint32_t queues)
{
	for (uint32_t i = 0; i < queues; i++) {
		queue_wire(&a->queue[i], &b->queue[i]);
		queue_wire(&b->queue[i], &a->queue[i]);
	}
}

static bool wishes(const struct port *a, const struct port *b)
{
	return !strcmp(mem_port_of(a)->wished, b->name);
}

/* As a person says it, of two that are to be each other's; `port` is the one being opened. */
static int peer_check(const struct port *port, const struct port *other, struct error *err)
{
	if (other->ops != &mem_port_ops)
		return error_set(err, -EINVAL, "mem port %s: peer=%s: that is no mem port",
				 port->name, other->name);
	if (wired(other))
		return error_set(err, -EBUSY, "mem port %s: peer=%s: that has a peer already",
				 port->name, other->name);
	if (other->queues != port->queues)
		return error_set(err, -EINVAL, "mem port %s: its peer %s has %u queue%s: queues=%u",
				 port->name, other->name, other->queues,
				 other->queues == 1 ? "" : "s", other->queues);
	return 0;
}

/* One of the two names the other, whichever comes first. Without the other it is down. */
static int peer_find(struct port *port, struct error *err)
{
	struct port *other = engine_port_find(port->engine, mem_port_of(port)->wished);

	if (wishes(port, port))
		return error_set(err, -EINVAL, "mem port %s: peer=%s: that is itself", port->name,
				 port->name);
	for (uint32_t i = 0; !other && i < port->engine->config.ports_max; i++) {
		struct port *at = engine_port_at(port->engine, i);

		if (at && at->ops == &mem_port_ops && wishes(at, port) && !wired(at))
			other = at;
	}
	if (other) {
		int rc = peer_check(port, other, err);

		if (rc)
			return rc;
		ports_wire(port, other, port->queues);
		port_state_set(other, PORT_UP);
	} else if (mem_port_of(port)->wished[0]) {
		atomic_store(&port->state, PORT_DOWN);
	} else {
		port->features |= PORT_INSIDE;
	}
	return 0;
}

static int options_read(struct port *port, struct port_config *config, struct error *err)
{
	char peer[256];

	if (port_option(config, "peer", peer, sizeof(peer))) {
		if (!peer[0] || strlen(peer) >= PORT_NAME_MAX)
			return error_set(err, -EINVAL,
					 "mem:%s: peer=: the name of a port, of 1 to %d bytes",
					 config->target, PORT_NAME_MAX - 1);
		strcpy(mem_port_of(port)->wished, peer);
	}
	return port_options_end(config, "ring, peer", err);
}

static int queues_open(struct port *port, const struct port_config *config, struct error *err)
{
	uint32_t ring = config->ring ? config->ring : RING_DEFAULT;
	int rc;

	if (ring & (ring - 1) || ring < PACKET_VECTOR_MAX || ring > RING_MAX)
		return error_set(err, -EINVAL, "mem:%s: ring=%u: must be a power of two, %u to %u",
				 config->target, ring, PACKET_VECTOR_MAX, RING_MAX);
	rc = port_queues_alloc(port, config->queues ? config->queues : 1);
	if (rc)
		return error_set(err, rc, "mem:%s: queues=%u: must be 1 to %u", config->target,
				 config->queues, PORT_QUEUES_MAX);
	for (uint32_t i = 0; i < port->queues; i++) {
		port->queue[i].private = mem_queue_create(ring);
		if (!port->queue[i].private) {
			queues_free(port);
			return error_set(err, -ENOMEM, "mem:%s: no memory", config->target);
		}
	}
	return 0;
}

static int mem_open(struct port *port, struct port_config *config, struct error *err)
{
	int rc;

	port->private = calloc(1, sizeof(struct mem_port));
	if (!port->private)
		return error_set(err, -ENOMEM, "mem:%s: no memory", config->target);
	rc = options_read(port, config, err);
	if (!rc)
		rc = queues_open(port, config, err);
	if (!rc) {
		rc = peer_find(port, err);
		if (rc)
			queues_free(port);
	}
	if (rc)
		free(port->private);
	return rc;
}

static uint32_t mem_receive(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	(void)context;
	n = ring_take(&mem_queue_of(queue)->in, v, n);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(v[i]->data);
	return n;
}

static uint32_t mem_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	struct mem_queue *mq = mem_queue_of(queue);
	struct ring *ring = mq->peer ? &mem_queue_of(mq->peer)->in : &mq->out;
	uint64_t bytes[PACKET_VECTOR_MAX + 1];
	uint32_t sent;

	/* Summed before: once in the ring, they are the receiver's. */
	bytes[0] = 0;
	for (uint32_t i = 0; i < n; i++)
		bytes[i + 1] = bytes[i] + v[i]->total;
	sent = ring_put(ring, v, n);
	port_sent(queue, context, sent, bytes[sent]);
	return sent;
}

static void mem_kick(struct port_queue *queue, struct context *context)
{
	struct mem_queue *mq = mem_queue_of(queue);

	(void)context;
	if (!mq->peer)
		return;
	counter_add(&queue->transmit->kicks, 1);
	irq_raise(&mq->peer->irq);
}

/* The two are no longer each other's peers; what is sent to the one that is left would stay. */
static void port_unwire(struct port *port)
{
	struct port *other = wired(port) ? mem_queue_of(&port->queue[0])->peer->port : NULL;

	if (!other)
		return;
	if (other != port)
		port_state_set(other, PORT_DOWN);
	for (uint32_t i = 0; i < port->queues && i < other->queues; i++) {
		queue_wire(&other->queue[i], NULL);
		queue_wire(&port->queue[i], NULL);
	}
}

static void mem_close(struct port *port, struct context *context)
{
	port_unwire(port);
	for (uint32_t i = 0; i < port->queues; i++) {
		struct mem_queue *mq = mem_queue_of(&port->queue[i]);

		ring_drain(&mq->in, context);
		ring_drain(&mq->out, context);
	}
	queues_free(port);
	free(port->private);
}

int mem_port_wire(struct port *a, struct port *b)
{
	if (a->ops != &mem_port_ops || b->ops != &mem_port_ops || a->engine != b->engine)
		return -EINVAL;
	if (wired(a) || wired(b))
		return -EBUSY;
	ports_wire(a, b, a->queues < b->queues ? a->queues : b->queues);
	if (atomic_load(&a->state) == PORT_DOWN)
		port_state_set(a, PORT_UP);
	if (atomic_load(&b->state) == PORT_DOWN)
		port_state_set(b, PORT_UP);
	return 0;
}

uint32_t mem_port_send(struct port *port, struct packet **v, uint32_t n)
{
	struct port_queue *queue = &port->queue[0];

	for (uint32_t i = 0; i < n; i++)
		v[i]->total = v[i]->next ? v[i]->total : v[i]->len;
	n = ring_put(&mem_queue_of(queue)->in, v, n);
	if (n)
		irq_raise(&queue->irq);
	return n;
}

uint32_t mem_port_receive(struct port *port, struct packet **v, uint32_t n)
{
	return ring_take(&mem_queue_of(&port->queue[0])->out, v, n);
}

const struct port_ops mem_port_ops = {
	.kind = "mem",
	.help = "mem:NAME[,peer=PORT][,queues=N][,ring=N]  a port inside the process: its other "
		"end is "
		"another one, or a program that embeds the engine",
	.open = mem_open,
	.receive = mem_receive,
	.transmit = mem_transmit,
	.kick = mem_kick,
	.close = mem_close,
};

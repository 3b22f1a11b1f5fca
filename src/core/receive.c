/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The poll function of a port's queue: receive a vector, let GRO merge it, and steer what goes on,
 * or hand it to the handler.
 */
#include <stdatomic.h>

#include <napier/handler.h>

#include <core/canary.h>
#include <core/engine.h>
#include <core/gro.h>
#include <core/napi.h>
#include <core/receive.h>
#include <core/steer.h>

/* n <= PACKET_VECTOR_MAX. */
static void packets_pass(struct napi *napi, struct context *context, struct packet **v, uint32_t n)
{
	struct port *port = napi->queue->port;
	struct handler *handler;

	if (napi->steer)
		n = steer_vector(napi->steer, context, v, n);
	if (!n)
		return;
	/* Whoever takes a handler away quiesces before destroying it; see engine_handler_set. */
	handler = atomic_load_explicit(&port->handler, memory_order_acquire);
	if (handler)
		handler->ops->input(handler, context, port, v, n);
	else
		packet_drop(context, v, n, DROP_NO_HANDLER);
}

/* What GRO lets go, in vectors of gro_normal_batch. */
static void merged_pass(struct napi *napi, struct context *context, struct packet **v, uint32_t n)
{
	uint32_t batch = engine_gro_batch(napi->engine);

	for (uint32_t i = 0; i < n; i += batch)
		packets_pass(napi, context, v + i, n - i < batch ? n - i : batch);
}

/*
 * Nothing that was begun by then is to be held beyond this poll. A full poll has another behind it,
 * which may go on for ever; after one that was not there is none for now.
 */
static int64_t held_limit(const struct napi *napi, const struct context *context, bool full)
{
	int64_t timeout = atomic_load_explicit(&napi->gro_flush_timeout, memory_order_relaxed);

	if (timeout)
		return context->now - timeout;
	return full ? context->now - NSEC_PER_SEC / napi->engine->config.hz : INT64_MAX;
}

static void merge(struct napi *napi, struct context *context, struct packet **v, uint32_t n,
		  bool full)
{
	struct packet *out[PACKET_VECTOR_MAX + GRO_HELD_MAX];
	uint32_t types = atomic_load_explicit(&napi->gro_types, memory_order_relaxed);
	uint32_t passed = gro_receive(napi->gro, context, types, v, n, out);

	/* It has room: out and what is held are what came now and what was held. */
	passed += gro_flush(napi->gro, types ? held_limit(napi, context, full) : INT64_MAX,
			    out + passed, sizeof(out) / sizeof(*out) - passed);
	napi->holds = gro_oldest(napi->gro) != INT64_MAX;
	merged_pass(napi, context, out, passed);
}

uint32_t queue_poll(struct napi *napi, struct context *context, uint32_t budget)
{
	struct port_queue *queue = napi->queue;
	struct port *port = queue->port;
	struct packet *v[PACKET_VECTOR_MAX];
	uint64_t bytes = 0;
	uint32_t n = port->ops->receive(queue, context, v, budget);

	for (uint32_t i = 0; i < n; i++) {
		bytes += v[i]->total;
		if (!(v[i]->flags & PACKET_STAMPED))
			v[i]->stamp = context->now;
		v[i]->hash = 0;
		v[i]->port = port->index;
		v[i]->queue = (uint16_t)queue->index;
	}
	if (n) {
		counter_add(&context->counters->received, n);
		counter_add(&context->counters->received_bytes, bytes);
	}
	if (napi->holds || atomic_load_explicit(&napi->gro_types, memory_order_relaxed))
		merge(napi, context, v, n, n >= budget);
	else if (n)
		packets_pass(napi, context, v, n);
	return n;
}

void queue_flush(struct napi *napi, struct context *context)
{
	struct packet *out[GRO_HELD_MAX];
	struct napi_counters *counters = context->counters;
	struct napi *before = context->napi;
	uint32_t n;

	if (!napi->holds)
		return;
	napi->holds = false;
	context->now = machine_now(napi->engine->machine); /* control's own knows an old one */
	context->napi = napi;
	context->counters = &napi->record->napi;
	context->received_by = napi->queue->index;
	n = gro_flush(napi->gro, INT64_MAX, out, GRO_HELD_MAX);
	if (CANARY(HELD_LOST))
		packet_free(&context->cache, out, n);
	else
		merged_pass(napi, context, out, n);
	context_kick(context);
	context->napi = before;
	context->counters = counters;
}

void queue_interrupt(struct irq *irq)
{
	struct port_queue *queue =
		(struct port_queue *)((char *)irq - offsetof(struct port_queue, irq));

	napi_schedule(queue->napi);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The poll function of a port's queue: receive a vector, steer it, or hand it to the handler. */
#include <stdatomic.h>

#include <napier/handler.h>

#include <core/napi.h>
#include <core/receive.h>
#include <core/steer.h>

uint32_t queue_poll(struct napi *napi, struct context *context, uint32_t budget)
{
	struct port_queue *queue = napi->queue;
	struct port *port = queue->port;
	struct packet *v[PACKET_VECTOR_MAX];
	struct handler *handler;
	uint64_t bytes = 0;
	uint32_t n = port->ops->receive(queue, context, v, budget);
	uint32_t left = n; /* to be handled here */

	if (!n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		bytes += v[i]->total;
		if (!(v[i]->flags & PACKET_STAMPED))
			v[i]->stamp = context->now;
		v[i]->hash = 0;
		v[i]->port = port->index;
		v[i]->queue = (uint16_t)queue->index;
	}
	counter_add(&context->counters->received, n);
	counter_add(&context->counters->received_bytes, bytes);
	if (napi->steer)
		left = steer_vector(napi->steer, context, v, n);
	if (!left)
		return n;
	/* Whoever takes a handler away quiesces before destroying it; see engine_handler_set. */
	handler = atomic_load_explicit(&port->handler, memory_order_acquire);
	if (handler)
		handler->ops->input(handler, context, port, v, left);
	else
		packet_drop(context, v, left, DROP_NO_HANDLER);
	return n;
}

void queue_interrupt(struct irq *irq)
{
	struct port_queue *queue =
		(struct port_queue *)((char *)irq - offsetof(struct port_queue, irq));

	napi_schedule(queue->napi);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/tx_napi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/engine.h>

#include <core/engine.h>
#include <core/napi.h>
#include <machine/lock.h>

struct tx_queue {
	struct port_queue *of;
	uint64_t kicked; /* of its packets; the token's holder */
};

struct tx_port {
	struct port *of;
	struct tx_queue queue[];
};

int tx_port_config(struct port *port, struct port_config *out, struct error *err)
{
	*out = (struct port_config){.ops = &tx_port_ops, .kind = "tx"};
	snprintf(out->target, sizeof(out->target), "%s", port->name);
	if (snprintf(out->name, sizeof(out->name), "%s-tx", port->name) >= (int)sizeof(out->name))
		return error_set(err, -EINVAL,
				 "%s: with tx_napi=yes a name has %zu bytes at most: give another "
				 "with name=",
				 port->name, sizeof(out->name) - 4);
	return 0;
}

static int tx_open(struct port *port, struct port_config *config, struct error *err)
{
	struct port *of = engine_port_find(port->engine, config->target);
	struct tx_port *tx = calloc(1, sizeof(*tx) + of->queues * sizeof(tx->queue[0]));

	if (!tx || port_queues_alloc(port, of->queues)) {
		free(tx);
		return error_set(err, -ENOMEM, "%s: no memory for %u queues", port->name,
				 of->queues);
	}
	tx->of = of;
	for (uint32_t i = 0; i < of->queues; i++) {
		tx->queue[i].of = &of->queue[i];
		port->queue[i].private = &tx->queue[i];
	}
	port->features = PORT_SINK;
	port->private = tx;
	return 0;
}

static void tx_close(struct port *port, struct context *context)
{
	(void)context;
	free(port->private);
}

/*
 * Only when something was sent since the last kick: a poller that keeps its NAPIs polls them all
 * the time. What is sent after the look has its sender schedule this NAPI after that.
 */
static uint32_t tx_poll(struct napi *napi, struct context *context, uint32_t budget)
{
	struct tx_queue *tx = napi->queue->private;
	struct port_queue *of = tx->of;
	uint64_t n;

	if (counter_read(&of->transmit->packets) == tx->kicked)
		return 0;
	lock_acquire(of->lock);
	n = counter_read(&of->transmit->packets) - tx->kicked;
	tx->kicked += n;
	of->port->ops->kick(of, context);
	lock_release(of->lock);
	/* Nothing is left, however much it was. */
	return n < budget ? (uint32_t)n : budget - 1;
}

/* Nobody is meant to send here. */
static uint32_t tx_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	(void)queue;
	packet_drop(context, v, n, DROP_TX_DOWN);
	return n;
}

struct port *tx_port_of(struct port *port)
{
	struct tx_port *tx = port->private;

	return tx->of;
}

static void queues_point(struct port *port, bool to)
{
	for (uint32_t i = 0; i < port->queues; i++) {
		struct tx_queue *tx = port->queue[i].private;

		atomic_store(&tx->of->tx, to ? port->queue[i].napi : NULL);
	}
}

void tx_port_begin(struct port *port)
{
	queues_point(port, true);
}

void tx_port_end(struct port *port)
{
	queues_point(port, false);
	machine_quiesce(port->machine);
}

void tx_port_flush(struct port *port, struct context *context)
{
	for (uint32_t i = 0; i < port->queues; i++) {
		struct tx_queue *tx = port->queue[i].private;

		lock_acquire(tx->of->lock);
		tx->of->port->ops->kick(tx->of, context);
		lock_release(tx->of->lock);
	}
}

const struct port_ops tx_port_ops = {
	.kind = "tx",
	.help = "tx:PORT  the TX NAPIs of another port; comes with its tx_napi=yes",
	.open = tx_open,
	.poll = tx_poll,
	.transmit = tx_transmit,
	.close = tx_close,
};

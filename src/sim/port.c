/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A kind of port for scenarios: a NIC with rings, moderation and a wire.
 *
 * A packet that arrives is a number in the receive ring; it gets a frame when it is received. One
 * that is sent lies in the transmit ring from transmit on, goes out after the kick, one each
 * wire_ns, and its frame is freed by the next who comes by.
 */
#include <stdio.h>
#include <string.h>

#include <sim/sim.h>

/* How soon a poll that had to leave packets behind is tried again. */
#define RETRY (200 * NSEC_PER_USEC)

static void queue_raise(struct sim_queue *q)
{
	struct virtual_stats before, after;

	q->raising = false;
	if (!q->queue)
		return;
	machine_virtual_stats(q->sim->machine, &before);
	irq_raise(&q->queue->irq);
	machine_virtual_stats(q->sim->machine, &after);
	q->raise_lost = after.faults[VIRTUAL_IRQ_LOST] != before.faults[VIRTUAL_IRQ_LOST];
}

static void moderation_over(void *arg)
{
	sim_guard_enter();
	queue_raise(arg);
	sim_guard_leave();
}

static void call_at(struct sim *sim, int64_t when, void (*call)(void *arg), void *arg)
{
	if (machine_virtual_call_at(sim->machine, when, call, arg))
		sim_fail(sim, "no memory for the scenario itself");
}

void sim_port_arrive(struct sim_queue *q, uint16_t flow, uint32_t number)
{
	const struct sim_port_plan *plan = &q->sim->plan.port[q->port->index];
	struct sim *sim = q->sim;

	if (!q->queue)
		return;
	sim->result->arrived++;
	if (q->rx_put - q->rx_taken == plan->rx_ring) {
		sim_fault(sim, SIM_RING_FULL, q->port->name);
		/* One that a fault lost is not owed, but the next one is. */
		if (q->raise_lost)
			queue_raise(q);
		return;
	}
	q->rx[q->rx_put++ % SIM_RING] = (struct sim_arrival){flow, number};
	sim->flow[flow].arrived++;
	if (q->raising)
		return;
	if (!plan->moderation_ns) {
		queue_raise(q);
		return;
	}
	q->raising = true;
	call_at(sim, machine_now(sim->machine) + plan->moderation_ns, moderation_over, q);
}

/* What has gone out is free again. Under the queue's lock. */
static void tx_reclaim(struct sim_queue *q, struct pool_cache *cache)
{
	while (q->tx_freed != q->tx_sent) {
		struct packet **p = &q->tx[q->tx_freed++ % SIM_RING];

		q->sim->frame[*p - cache->pool->packets] = 0;
		packet_free(cache, p, 1);
	}
}

static uint32_t sim_receive(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	struct sim_queue *q = sim_queue_of(queue);
	struct sim *sim = q->sim;
	uint32_t there = q->rx_put - q->rx_taken, got;

	sim_check_poll(q, context, n);
	lock_acquire(queue->lock);
	tx_reclaim(q, &context->cache);
	lock_release(queue->lock);
	if (there > n)
		there = n;
	if (there && sim_chance(sim, sim->plan.rx_short)) {
		there = (uint32_t)random_below(&sim->fault_random, there);
		sim_fault(sim, SIM_RX_SHORT, q->port->name);
		irq_arm(&queue->irq, machine_now(sim->machine) + RETRY);
	}
	got = packet_alloc(&context->cache, v, there);
	if (got < there) {
		sim_fault(sim, SIM_POOL_EMPTY, q->port->name);
		irq_arm(&queue->irq, machine_now(sim->machine) + RETRY);
	}
	sim->polls++;
	for (uint32_t i = 0; i < got; i++) {
		uint32_t *frame = &sim->frame[v[i] - context->cache.pool->packets];

		if (*frame == SIM_FRAME_TX)
			sim_fail(sim, "pool: a frame is given out while a port sends it");
		if (*frame == sim->polls)
			sim_fail(sim, "pool: a frame is given out twice");
		*frame = sim->polls;
		sim_flow_write(sim, &q->rx[q->rx_taken++ % SIM_RING], v[i]);
	}
	if (q->rx_put == q->rx_taken)
		q->raise_lost = false;
	sim_check_polled(q, got);
	return got;
}

static uint32_t sim_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	struct sim_queue *q = sim_queue_of(queue);
	struct sim *sim = q->sim;
	uint64_t bytes = 0;
	uint32_t room;

	tx_reclaim(q, &context->cache);
	room = sim->plan.port[q->port->index].tx_ring - (q->tx_put - q->tx_freed);
	if (room < n) {
		sim_fault(sim, SIM_TX_FULL, q->port->name);
		n = room;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *frame = &sim->frame[v[i] - context->cache.pool->packets];

		if (*frame == SIM_FRAME_TX)
			sim_fail(sim, "pool: a frame is sent that a port is sending already");
		*frame = SIM_FRAME_TX;
		bytes += v[i]->total;
		q->tx[q->tx_put++ % SIM_RING] = v[i];
	}
	sim->taken += n;
	port_sent(queue, context, n, bytes);
	return n;
}

static void wire_step(void *arg)
{
	struct sim_queue *q = arg;
	struct sim *sim = q->sim;

	sim_guard_enter();
	q->wire_busy = false;
	if (q->queue && q->tx_sent != q->tx_kicked) {
		sim_flow_out(sim, q->port->index, q->tx[q->tx_sent++ % SIM_RING]);
		if (q->tx_sent != q->tx_kicked) {
			q->wire_busy = true;
			call_at(sim,
				machine_now(sim->machine) + sim->plan.port[q->port->index].wire_ns,
				wire_step, q);
		}
	}
	sim_guard_leave();
}

static void sim_kick(struct port_queue *queue, struct context *context)
{
	struct sim_queue *q = sim_queue_of(queue);
	struct sim *sim = q->sim;

	(void)context;
	q->tx_kicked = q->tx_put;
	if (q->wire_busy || q->tx_sent == q->tx_kicked)
		return;
	q->wire_busy = true;
	sim_guard_enter();
	call_at(sim, machine_now(sim->machine) + sim->plan.port[q->port->index].wire_ns, wire_step,
		q);
	sim_guard_leave();
}

static int sim_open(struct port *port, struct port_config *config, struct error *err)
{
	struct sim_port *p = (struct sim_port *)port->ops;
	int rc = port_queues_alloc(port, p->sim->plan.port[p->index].queues);

	(void)config;
	if (rc)
		return error_set(err, rc, "%s: no memory", p->name);
	if (p->sim->plan.port[p->index].supers)
		port->features = PORT_TX_CSUM | PORT_TX_GSO | PORT_TX_USO;
	for (uint32_t i = 0; i < port->queues; i++) {
		struct sim_queue *q = &p->queue[i];
		bool wire_busy = q->wire_busy, raising = q->raising;

		*q = (struct sim_queue){.sim = p->sim, .port = p, .index = i, .busy_on = -1};
		q->queue = &port->queue[i];
		q->waits_since = TIME_NEVER;
		/* Calls that are still to come, from before it was closed. */
		q->wire_busy = wire_busy;
		q->raising = raising;
		port->queue[i].private = q;
	}
	return 0;
}

/* The records of the NAPIs are still there. */
static void sim_close(struct port *port, struct context *context)
{
	struct sim_port *p = (struct sim_port *)port->ops;

	for (uint32_t i = 0; i < port->queues; i++) {
		struct sim_queue *q = &p->queue[i];

		q->tx_sent = q->tx_kicked = q->tx_put;
		tx_reclaim(q, &context->cache);
		if (q->counted)
			sim_check_closed(q);
		q->queue = NULL;
	}
}

bool sim_queue_drained(const struct sim_queue *q)
{
	return !q->queue || (q->rx_put == q->rx_taken && q->tx_sent == q->tx_put && !q->raising);
}

struct port *sim_port_tx(const struct sim_port *p)
{
	struct napi *tx = p->port ? atomic_load(&p->port->queue[0].tx) : NULL;

	return tx ? tx->queue->port : NULL;
}

void sim_port_init(struct sim *sim, unsigned index)
{
	struct sim_port *p = &sim->port[index];

	p->ops = (struct port_ops){
		.kind = "sim",
		.help = "a port of a scenario",
		.open = sim_open,
		.receive = sim_receive,
		.transmit = sim_transmit,
		.kick = sim_kick,
		.close = sim_close,
	};
	p->ops.pollers = sim->plan.port[index].pollers;
	p->ops.poller_set = sim->plan.port[index].poller_set;
	p->ops.poller = sim->plan.port[index].poller;
	p->sim = sim;
	p->index = index;
	p->role = sim->plan.port[index].role;
	snprintf(p->name, sizeof(p->name), "p%u", index);
	snprintf(p->tx_name, sizeof(p->tx_name), "p%u-tx", index);
}

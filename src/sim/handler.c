/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the packets of a scenario go: its own handlers, and napier's bridge and drop. */
#include <errno.h>
#include <stdlib.h>

#include <napier/bridge.h>

#include <sim/sim.h>

struct sim_handler {
	struct handler handler;
	struct sim *sim;
	enum sim_role role;
	struct port
		*_Atomic partner[SIM_ENGINE_PORTS]; /* by the index of the port that it came by */
};

static void stall(struct sim *sim, struct port *in)
{
	if (!sim_chance(sim, sim->plan.stall))
		return;
	sim_fault(sim, SIM_STALL, in->name);
	machine_charge(sim->machine, sim->plan.stall_ns);
}

/* An application on some CPU reads it, and says so: RFS follows. */
static void deliver(struct sim *sim, struct context *context, struct packet **v, uint32_t n)
{
	if (sim->engine->config.sock_flow_entries)
		flow_record(sim->engine, packet_flow_hash(context, v[0]),
			    (unsigned)random_below(&sim->fault_random, sim->plan.machine.cpus));
	packet_deliver(context, v, n);
}

static void cross_input(struct handler *handler, struct context *context, struct port *in,
			struct packet **v, uint32_t n)
{
	struct sim_handler *h = (struct sim_handler *)handler;
	struct port *out = atomic_load(&h->partner[in->index]);

	stall(h->sim, in);
	if (h->role == ROLE_SLOW)
		machine_charge(h->sim->machine, h->sim->plan.slow_ns * n);
	if (h->role == ROLE_DELIVER)
		deliver(h->sim, context, v, n);
	else if (out)
		port_transmit(context, out, v, n);
	else
		packet_drop(context, v, n, DROP_HANDLER);
}

/* The partner of each port that is there; also of this one's. */
static void partners_find(struct sim_handler *h, const struct port *without)
{
	struct sim *sim = h->sim;

	for (unsigned i = 0; i < sim->plan.ports; i++) {
		struct port *port = sim->port[i].port;
		struct port *partner = sim->port[sim->plan.port[i].partner].port;

		if (port)
			atomic_store(&h->partner[port->index],
				     port == without || partner == without ? NULL : partner);
	}
}

static int cross_add(struct handler *handler, struct port *port, struct error *err)
{
	(void)port;
	(void)err;
	partners_find((struct sim_handler *)handler, NULL);
	return 0;
}

static void cross_remove(struct handler *handler, struct port *port)
{
	struct sim_handler *h = (struct sim_handler *)handler;

	atomic_store(&h->partner[port->index], NULL);
}

static void cross_destroy(struct handler *handler)
{
	free(handler);
}

static const struct handler_ops cross_ops = {
	.name = "sim",
	.input = cross_input,
	.port_add = cross_add,
	.port_remove = cross_remove,
	.destroy = cross_destroy,
};

static struct handler *cross_create(struct sim *sim, enum sim_role role)
{
	struct sim_handler *h = calloc(1, sizeof(*h));

	if (!h)
		sim_fail(sim, "no memory for the scenario itself");
	h->handler.ops = &cross_ops;
	h->handler.engine = sim->engine;
	h->sim = sim;
	h->role = role;
	if (engine_handler_register(sim->engine, &h->handler))
		sim_fail(sim, "a handler is not accepted");
	return &h->handler;
}

void sim_handlers_create(struct sim *sim)
{
	static const struct bridge_config config = {.entries = 64};
	struct error err;

	sim->handler[ROLE_CROSS] = cross_create(sim, ROLE_CROSS);
	sim->handler[ROLE_SLOW] = cross_create(sim, ROLE_SLOW);
	sim->handler[ROLE_DELIVER] = cross_create(sim, ROLE_DELIVER);
	if (drop_handler_create(sim->engine, &sim->handler[ROLE_DROP]))
		sim_fail(sim, "the drop handler cannot be made");
	for (unsigned i = 0; i < sim->plan.ports && !sim->handler[ROLE_BRIDGE]; i++)
		if (sim->plan.port[i].role == ROLE_BRIDGE &&
		    bridge_create(sim->engine, &config, &sim->handler[ROLE_BRIDGE], &err))
			sim_fail(sim, "%s", err.text);
}

void sim_handlers_unlink(struct sim *sim, const struct port *port)
{
	static const enum sim_role ours[] = {ROLE_CROSS, ROLE_SLOW, ROLE_DELIVER};

	for (unsigned i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		partners_find((struct sim_handler *)sim->handler[ours[i]], port);
}

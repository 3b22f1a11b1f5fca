/* SPDX-License-Identifier: BSD-2-Clause */
/* The udp handler's control side: its making and end, its ports, and what happens every second. */
#include <errno.h>
#include <stdlib.h>

#include <core/engine.h>
#include <handler/udp.h>
#include <handler/udp_net.h>

#define NEIGHBOURS_DEFAULT 1024
#define ECHO_RATE_DEFAULT 1000
#define ERROR_RATE_DEFAULT 100

static int udp_port_add(struct handler *handler, struct port *port, struct error *err)
{
	struct udp *udp = udp_of(handler);
	struct udp_net *net = net_copy(udp);
	struct udp_link *link;

	if (net->links == UDP_PORTS_MAX)
		return error_set(err, -ENOSPC,
				 "%s: the udp handler has %d ports already, which is its limit",
				 port->name, UDP_PORTS_MAX);
	link = &net->link[net->links++];
	*link = (struct udp_link){.port = port, .mac = mac_load(port->address)};
	if (!link->mac) {
		/* One of nobody's, for a port that is no card; the same when it comes back. */
		uint8_t mac[6] = {2, udp->mac[0], udp->mac[1], udp->mac[2]};

		store16(mac + 4, port->index);
		link->mac = mac_load(mac);
	}
	net_publish(udp, net);
	return 0;
}

static void udp_port_remove(struct handler *handler, struct port *port)
{
	struct udp *udp = udp_of(handler);
	struct context *context = handler->engine->context;
	struct udp_net *net = net_copy(udp);
	struct udp_link *link = net_link(net, port);

	if (!link)
		return;
	link_remove(net, link);
	net_publish(udp, net);
	udp_forget_port(udp, port);
	udp_waiting_drop(udp, context, neighbours_purge(udp->neighbours, port->index));
}

static void rate_fill(struct udp_rate *rate)
{
	atomic_store_explicit(&rate->left, rate->rate, memory_order_relaxed);
}

static void neighbours_tick(struct udp *udp, struct context *context, uint32_t now)
{
	const struct udp_net *net = udp_net(udp);
	uint32_t places = neighbours_places(udp->neighbours);

	for (uint32_t i = 0; i < places; i++) {
		struct neighbour_question question;
		struct packet *dropped;
		const struct port *port;
		const struct udp_link *link;

		if (neighbour_step(udp->neighbours, i, now, &question, &dropped)) {
			port = engine_port_at(udp->handler.engine, question.port);
			link = port ? udp_link_of(net, port) : NULL;
			if (link)
				udp_ask(context, link, question.ip, question.mac);
		}
		if (dropped)
			udp_waiting_drop(udp, context, dropped);
	}
}

static void udp_tick(struct handler *handler, int64_t now)
{
	struct udp *udp = udp_of(handler);
	struct context *context = handler->engine->context;
	uint32_t seconds = (uint32_t)(now / NSEC_PER_SEC);

	context->now = now;
	atomic_store_explicit(&udp->seconds, seconds, memory_order_relaxed);
	rate_fill(&udp->echo);
	rate_fill(&udp->error);
	net_tick(udp, now);
	udp_mld_tick(udp, context);
	neighbours_tick(udp, context, seconds);
	context_kick(context);
}

static void parts_free(struct udp *udp)
{
	if (udp->neighbours)
		neighbours_destroy(udp->neighbours);
	free(atomic_load(&udp->net));
	free(udp->spare);
	free(udp->socket);
	free(udp);
}

/* No port uses it, no runner and no application is inside. */
static void udp_destroy(struct handler *handler)
{
	struct udp *udp = udp_of(handler);

	udp_sockets_close(udp);
	parts_free(udp);
}

const struct handler_ops udp_ops = {
	.name = "udp",
	.input = udp_input,
	.port_add = udp_port_add,
	.port_remove = udp_port_remove,
	.tick = udp_tick,
	.destroy = udp_destroy,
};

static int config_check(const struct udp_config *config, struct error *err)
{
	uint32_t limit = config->neighbours;

	if (limit & (limit - 1) || limit > UDP_NEIGHBOURS_MAX)
		return error_set(err, -EINVAL,
				 "udp: neighbours=%u is not a power of two from 1 to %d", limit,
				 UDP_NEIGHBOURS_MAX);
	return 0;
}

static unsigned handler_number(const struct udp *udp)
{
	unsigned number = 0;

	while (udp->handler.engine->handler[number] != &udp->handler)
		number++;
	return number;
}

static int parts_create(struct udp *udp, const struct udp_config *config)
{
	struct engine *engine = udp->handler.engine;
	uint64_t seed[2];

	machine_entropy(engine->machine, seed, sizeof(seed));
	machine_entropy(engine->machine, &udp->ephemeral, sizeof(udp->ephemeral));
	machine_entropy(engine->machine, udp->mac, sizeof(udp->mac));
	udp->echo.rate = config->echo_rate ? config->echo_rate : ECHO_RATE_DEFAULT;
	udp->error.rate = config->error_rate ? config->error_rate : ERROR_RATE_DEFAULT;
	rate_fill(&udp->echo);
	rate_fill(&udp->error);
	udp->seconds = (uint32_t)(machine_now(engine->machine) / NSEC_PER_SEC);
	udp->net = calloc(1, sizeof(*udp->net));
	udp->socket = calloc(UDP_SOCKETS_MAX, sizeof(*udp->socket));
	udp->spare = calloc(1, sizeof(*udp->spare));
	if (!udp->net || !udp->spare || !udp->socket)
		return -ENOMEM;
	return neighbours_create(config->neighbours ? config->neighbours : NEIGHBOURS_DEFAULT, seed,
				 &udp->neighbours);
}

int udp_handler_create(struct engine *engine, const struct udp_config *wish, struct handler **out,
		       struct error *err)
{
	struct udp_config config = {0};
	struct udp *udp;
	int rc;

	if (wish)
		config = *wish;
	rc = config_check(&config, err);
	if (rc)
		return rc;
	udp = calloc(1, sizeof(*udp));
	if (!udp)
		return error_set(err, -ENOMEM, "udp: out of memory");
	udp->handler = (struct handler){.ops = &udp_ops, .engine = engine};
	rc = parts_create(udp, &config);
	if (!rc)
		rc = engine_handler_register(engine, &udp->handler);
	if (rc) {
		parts_free(udp);
		return error_set(err, rc, "udp: cannot be added to the engine: %s", strerror(-rc));
	}
	udp->number = handler_number(udp);
	*out = &udp->handler;
	return 0;
}

void udp_stats_read(struct handler *handler, struct udp_stats *out)
{
	struct udp *udp = udp_of(handler);

	*out = (struct udp_stats){
		.neighbours = atomic_load(&udp->neighbours->entries),
		.neighbours_full = atomic_load(&udp->neighbours->full),
		.resolved = atomic_load(&udp->neighbours->resolved),
		.unresolved = atomic_load(&udp->neighbours->unresolved),
		.waiting_dropped = atomic_load(&udp->waiting_dropped),
		.echoes = atomic_load(&udp->echoes),
		.errors_sent = atomic_load(&udp->errors_sent),
		.errors_received = atomic_load(&udp->errors_received),
		.conflicts = atomic_load(&udp->conflicts),
	};
}

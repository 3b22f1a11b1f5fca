/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handlers: where a port's received packets go.
 *
 * A handler gets a vector, and owns it: every packet ends in port_transmit, packet_deliver,
 * packet_drop or packet_free's caller's hands. A handler's input may run in several runners at
 * once, for different NAPIs.
 */
#ifndef NAPIER_HANDLER_H
#define NAPIER_HANDLER_H

#include <napier/port.h>

#pragma GCC visibility push(default)

struct handler;

/* What GRO may put together into super-packets (PACKET_FRAMES), as bits. */
enum gro_type { GRO_TCP = 1 << 0, GRO_UDP = 1 << 1 };

struct handler_ops {
	const char *name;
	/* Packet path. Owns v; all came in by `in`. */
	void (*input)(struct handler *handler, struct context *context, struct port *in,
		      struct packet **v, uint32_t n);
	/* Control context; NULL where nothing has to be known. remove: no input from the port runs
	 * or will run, but other ports' inputs may still be sending to it until the call returns
	 * and machine_quiesce has been called by the engine. */
	int (*port_add)(struct handler *handler, struct port *port, struct error *err);
	void (*port_remove)(struct handler *handler, struct port *port);
	/*
	 * Control context. What of the packets that come in by `in`, one of its ports, it wants
	 * merged (enum gro_type) where `gro` is auto; asked again after each change of its ports.
	 * NULL: nothing.
	 */
	unsigned (*merges)(struct handler *handler, struct port *in);
	/* Control context, once a second of the machine's time. */
	void (*tick)(struct handler *handler, int64_t now);
	/* No port uses it any more. */
	void (*destroy)(struct handler *handler);
};

/* Of which of these the port sends what comes of merging in one piece. */
static inline unsigned port_gro_types(const struct port *port)
{
	if (!(port->features & PORT_TX_GSO))
		return 0;
	return GRO_TCP | (port->features & PORT_TX_USO ? GRO_UDP : 0);
}

/* The start of every handler's own struct. */
struct handler {
	const struct handler_ops *ops;
	struct engine *engine;
};

/* Packet path. The flow hash of a received packet, computed now when it has not been; never 0. */
uint32_t packet_flow_hash(const struct context *context, struct packet *p);

/*
 * Any context, an application's threads too. A packet with this flow hash was read on engine CPU
 * `cpu` (another number: no effect): with RFS (rps_flow_cnt, rps_sock_flow_entries) the flow's next
 * packets are steered there, once those before them have been handled.
 */
void flow_record(struct engine *engine, uint32_t hash, unsigned cpu);

/* Drops everything as DROP_HANDLER. */
int drop_handler_create(struct engine *engine, struct handler **out);

#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port whose polls are long: `air:` receives 802.11 data frames and makes Ethernet frames of
 * them. Such work should not keep the CPU that took the interrupt from everybody else, so its
 * author asks for the poller workqueue, in the port's ops; for a port of any other kind
 * engine_port_add_threaded asks the same. What a person sets for a port comes before either.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

enum {
	FRAMES = 300,
	AIR_HEADER = 24, /* control, duration, three addresses, sequence */
	SNAP_HEADER = 8, /* aa aa 03 00 00 00, EtherType */
	SNAP_ETHERTYPE = 6,
	PAYLOAD = 46,
};

struct air_port {
	unsigned left; /* frames to come */
	unsigned cut_short;
};

static int air_open(struct port *port, struct port_config *config, struct error *err)
{
	struct air_port *air = calloc(1, sizeof(*air));

	if (!air || port_options_end(config, "none", err) || port_queues_alloc(port, 1)) {
		free(air);
		return air ? -EINVAL : error_set(err, -ENOMEM, "air: no memory");
	}
	air->left = FRAMES;
	port->features = PORT_FINITE;
	port->private = air;
	return 0;
}

/* What the radio would have put there: from a station, to an address behind this access point. */
static void frame_arrive(struct packet *p, unsigned number)
{
	static const uint8_t header[AIR_HEADER] = {
		0x08, 0x01, 0, 0,	   /* data, to the access point */
		2,    0,    0, 0, 0, 0xaa, /* the access point */
		2,    0,    0, 0, 0, 0x01, /* source */
		2,    0,    0, 0, 0, 0x02, /* destination */
	};
	static const uint8_t snap[SNAP_HEADER] = {0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5};

	memcpy(p->data, header, sizeof(header));
	memcpy(p->data + AIR_HEADER, snap, sizeof(snap));
	memset(p->data + AIR_HEADER + SNAP_HEADER, (int)number, PAYLOAD);
	p->len = p->total = AIR_HEADER + SNAP_HEADER + PAYLOAD;
}

/* In place: the Ethernet header ends where the EtherType does. */
static bool frame_convert(struct packet *p)
{
	uint8_t addresses[12];

	if (p->len < AIR_HEADER + SNAP_HEADER)
		return false;
	memcpy(addresses, p->data + 16, 6);
	memcpy(addresses + 6, p->data + 10, 6);
	p->data += AIR_HEADER + SNAP_ETHERTYPE - sizeof(addresses);
	p->len -= AIR_HEADER + SNAP_ETHERTYPE - sizeof(addresses);
	p->total = p->len;
	memcpy(p->data, addresses, sizeof(addresses));
	return true;
}

static uint32_t air_receive(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	struct air_port *air = queue->port->private;
	uint32_t got = packet_alloc(&context->cache, v, n < air->left ? n : air->left);

	for (uint32_t i = 0; i < got; i++) {
		frame_arrive(v[i], air->left--);
		air->cut_short += !frame_convert(v[i]);
	}
	if (!air->left)
		port_state_set(queue->port, PORT_ENDED);
	else if (got < n)
		irq_arm(&queue->irq, context->now + NSEC_PER_MSEC); /* no frames left for now */
	return got;
}

static uint32_t air_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	(void)queue;
	packet_drop(context, v, n, DROP_HANDLER); /* this one only listens */
	return n;
}

static void air_close(struct port *port, struct context *context)
{
	(void)context;
	free(port->private);
}

static const struct port_ops air_ops = {
	.kind = "air",
	.help = "air:NAME  a few 802.11 frames",
	.poller_set = true,
	.poller = POLLER_WORKQUEUE,
	.open = air_open,
	.receive = air_receive,
	.transmit = air_transmit,
	.close = air_close,
};

static bool ended(void *arg)
{
	return ((struct port *)arg)->state == PORT_ENDED;
}

static const char *polled_by(const struct port *port)
{
	return poller_name(napi_poller(port->queue[0].napi));
}

int main(int argc, char **argv)
{
	struct queue_settings person = {.poller_set = true, .poller = POLLER_THREAD};
	struct engine_config config = {.poller = POLLER_SOFTIRQ};
	struct bridge_config table = {0};
	struct port *air, *wire;
	struct port_config pc;
	struct handler *bridge;
	struct engine *engine;
	struct air_port *radio;
	struct error e;

	if (argc > 1) {
		printf("usage: threaded\nShows who polls a port whose author asked for it.\n");
		return strcmp(argv[1], "--help") != 0;
	}
	if (port_kind_register(&air_ops))
		errx(1, "a kind 'air' is there already");
	if (machine_host_create(&config.machine, &e) || engine_create(&config, &engine, &e) ||
	    bridge_create(engine, &table, &bridge, &e) || port_config_parse("mem:wire", &pc, &e) ||
	    engine_port_add_threaded(engine, &pc, &wire, &e) ||
	    engine_handler_set(engine, wire, bridge, &e) || port_config_parse("air:air0", &pc, &e))
		errx(1, "%s", e.text);
	pc.disabled = true; /* until it has a handler */
	if (engine_port_add(engine, &pc, &air, &e) || engine_handler_set(engine, air, bridge, &e))
		errx(1, "%s", e.text);
	napi_enable(air->queue[0].napi);

	machine_wait(config.machine, ended, air, machine_now(config.machine) + 60 * NSEC_PER_SEC);
	napi_disable(air->queue[0].napi, 5 * NSEC_PER_SEC); /* its last poll has ended */
	radio = air->private;
	printf("%s (polled by %s): %u frames converted, %u cut short\n", air->name, polled_by(air),
	       FRAMES - radio->left - radio->cut_short, radio->cut_short);
	printf("%s (polled by %s): %ju sent\n", wire->name, polled_by(wire),
	       (uintmax_t)counter_read(&wire->queue[0].transmit->packets));
	if (engine_queue_set(engine, "air0", -1, &person, NULL, &e))
		errx(1, "%s", e.text);
	printf("%s once a person has said so: polled by %s\n", air->name, polled_by(air));
	engine_destroy(engine);
	machine_destroy(config.machine);
}

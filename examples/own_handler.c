/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A handler of one's own: `echo` sends every frame back to where it came from, with its addresses
 * exchanged, and drops what it was told to. Frames come from and go to this program by a mem port.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

#define FRAMES 1000

struct echo {
	struct handler handler; /* first, so that the one is the other */
	uint16_t refused;	/* an EtherType */
	_Atomic uint32_t seconds;
};

/* One vector, which is ours: each packet has to end somewhere. */
static void echo_input(struct handler *handler, struct context *context, struct port *in,
		       struct packet **v, uint32_t n)
{
	struct echo *echo = (struct echo *)handler;
	struct packet *refused[PACKET_VECTOR_MAX];
	uint32_t kept = 0, out = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *frame = v[i]->data;
		uint8_t address[6];

		if ((frame[12] << 8 | frame[13]) == echo->refused) {
			refused[out++] = v[i];
			continue;
		}
		memcpy(address, frame, 6);
		memcpy(frame, frame + 6, 6);
		memcpy(frame + 6, address, 6);
		v[kept++] = v[i];
	}
	if (out)
		packet_drop(context, refused, out, DROP_HANDLER);
	if (kept)
		port_transmit(context, in, v, kept);
}

/* Once a second, on the control side. */
static void echo_tick(struct handler *handler, int64_t now)
{
	(void)now;
	((struct echo *)handler)->seconds++;
}

static void echo_destroy(struct handler *handler)
{
	free(handler);
}

static const struct handler_ops echo_ops = {
	.name = "echo",
	.input = echo_input,
	.tick = echo_tick,
	.destroy = echo_destroy,
};

static int echo_create(struct engine *engine, uint16_t refused, struct handler **out)
{
	struct echo *echo = calloc(1, sizeof(*echo));
	int rc;

	if (!echo)
		return -1;
	echo->handler = (struct handler){.ops = &echo_ops, .engine = engine};
	echo->refused = refused;
	*out = &echo->handler;
	rc = engine_handler_register(engine, &echo->handler);
	if (rc)
		free(echo);
	return rc;
}

static bool all_handled(void *arg)
{
	const struct napi_counters *counters = napi_counters(((struct port *)arg)->queue[0].napi);

	return counter_read(&counters->transmitted) +
		       counter_read(&counters->dropped[DROP_HANDLER]) ==
	       FRAMES;
}

/* This program's side: it allocates, fills, sends; what the ring does not take it tries again. */
static void send_frames(struct context *context, struct port *port)
{
	static const uint8_t header[12] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};

	for (int i = 0; i < FRAMES; i++) {
		struct packet *p;

		while (!packet_alloc(&context->cache, &p, 1))
			;
		memcpy(p->data, header, sizeof(header));
		p->data[12] = 0x88;
		p->data[13] = i % 4 ? 0xb5 : 0xb6; /* local experimental EtherTypes */
		memset(p->data + 14, i, 46);
		p->len = 60;
		while (!mem_port_send(port, &p, 1))
			;
	}
}

static uint32_t receive_frames(struct context *context, struct port *port)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n, exchanged = 0;

	while ((n = mem_port_receive(port, v, PACKET_VECTOR_MAX))) {
		for (uint32_t i = 0; i < n; i++)
			exchanged += v[i]->data[5] == 2 && v[i]->data[11] == 1;
		packet_free(&context->cache, v, n);
	}
	return exchanged;
}

int main(int argc, char **argv)
{
	struct engine_config config = {0};
	struct port_config pc;
	struct context *context;
	struct handler *echo;
	struct engine *engine;
	struct port *port;
	struct error e;

	if (argc > 1) {
		printf("usage: own_handler\nEchoes 1000 frames by a handler of its own.\n");
		return strcmp(argv[1], "--help") != 0;
	}
	if (machine_host_create(&config.machine, &e) || engine_create(&config, &engine, &e) ||
	    port_config_parse("mem:here,ring=1024", &pc, &e) ||
	    engine_port_add(engine, &pc, &port, &e))
		errx(1, "%s", e.text);
	if (echo_create(engine, 0x88b6, &echo) || engine_context_open(engine, &context))
		errx(1, "no memory");
	if (engine_handler_set(engine, port, echo, &e))
		errx(1, "%s", e.text);

	send_frames(context, port);
	machine_wait(config.machine, all_handled, port,
		     machine_now(config.machine) + 60 * NSEC_PER_SEC);
	printf("sent %d, echoed with addresses exchanged %u, dropped %ju\n", FRAMES,
	       receive_frames(context, port),
	       (uintmax_t)counter_read(&napi_counters(port->queue[0].napi)->dropped[DROP_HANDLER]));

	engine_context_close(context);
	engine_destroy(engine); /* and the handler with it */
	machine_destroy(config.machine);
}

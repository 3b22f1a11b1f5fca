/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A port of one's own: `clock:` receives a frame every so many microseconds, with the time in it,
 * and takes whatever is sent on it. A port is five functions and some flags; the engine gives it
 * its NAPIs, pollers, counters and place in `show`.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

struct clock_port {
	int64_t every; /* ns */
	int64_t due;   /* of the next frame */
	uint64_t left; /* frames to come */
};

/* Control context: reads its own options, makes the queues, sets what people and handlers see. */
static int clock_open(struct port *port, struct port_config *config, struct error *err)
{
	struct clock_port *clock = calloc(1, sizeof(*clock));
	char text[16];

	if (!clock)
		return error_set(err, -ENOMEM, "clock: no memory");
	clock->every = 1 * NSEC_PER_MSEC;
	clock->left = UINT64_MAX;
	if (port_option(config, "usecs", text, sizeof(text)) == 1)
		clock->every = atol(text) * NSEC_PER_USEC;
	if (port_option(config, "frames", text, sizeof(text)) == 1)
		clock->left = strtoull(text, NULL, 10);
	if (clock->every <= 0) {
		free(clock);
		return error_set(err, -EINVAL, "clock: usecs=%s: must be 1 or more", text);
	}
	if (port_options_end(config, "usecs, frames", err) || port_queues_alloc(port, 1)) {
		free(clock);
		return -EINVAL;
	}
	clock->due = machine_now(port->machine);
	port->queue[0].irq = IRQ_INIT(-1, NULL); /* no descriptor: a timer is its interrupt */
	port->features = PORT_FINITE;
	snprintf(port->mode, sizeof(port->mode), "every %ld us", (long)(clock->every / 1000));
	port->private = clock;
	return 0;
}

/* The token's holder. Fewer than n means "nothing more now", so the timer has to be armed. */
static uint32_t clock_receive(struct port_queue *queue, struct context *context, struct packet **v,
			      uint32_t n)
{
	struct clock_port *clock = queue->port->private;
	uint32_t got = 0;

	while (got < n && clock->left && clock->due <= context->now) {
		struct packet *p;

		if (!packet_alloc(&context->cache, &p, 1))
			break; /* no frames left: looks again when the timer fires */
		memset(p->data, 0xff, 6);
		memset(p->data + 6, 2, 6);
		memcpy(p->data + 12, "\x88\xb5", 2);
		memcpy(p->data + 14, &clock->due, sizeof(clock->due));
		p->len = p->total = 60;
		v[got++] = p;
		clock->due += clock->every;
		clock->left--;
	}
	if (!clock->left)
		port_state_set(queue->port, PORT_ENDED);
	else if (got < n)
		irq_arm(&queue->irq, clock->due);
	return got;
}

/* Under the queue's lock. What it takes it owns. */
static uint32_t clock_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			       uint32_t n)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += v[i]->total;
	port_sent(queue, context, n, bytes);
	packet_free(&context->cache, v, n);
	return n;
}

static void clock_close(struct port *port, struct context *context)
{
	(void)context;
	free(port->private);
}

static const struct port_ops clock_ops = {
	.kind = "clock",
	.help = "clock:NAME[,usecs=N][,frames=N]  a frame every N microseconds",
	.open = clock_open,
	.receive = clock_receive,
	.transmit = clock_transmit,
	.close = clock_close,
};

static bool ended(void *arg)
{
	return ((struct port *)arg)->state == PORT_ENDED;
}

int main(int argc, char **argv)
{
	struct engine_config config = {0};
	struct port *ticking, *quiet;
	struct bridge_config table = {0};
	struct port_config pc;
	struct handler *bridge;
	struct engine *engine;
	struct error e;

	if (argc > 1) {
		printf("usage: own_port\nReceives 100 frames by a port of its own.\n");
		return strcmp(argv[1], "--help") != 0;
	}
	if (port_kind_register(&clock_ops))
		errx(1, "a kind 'clock' is there already");
	if (machine_host_create(&config.machine, &e) || engine_create(&config, &engine, &e) ||
	    bridge_create(engine, &table, &bridge, &e) ||
	    port_config_parse("clock:quiet,frames=0", &pc, &e) ||
	    engine_port_add(engine, &pc, &quiet, &e) ||
	    engine_handler_set(engine, quiet, bridge, &e) ||
	    port_config_parse("clock:ticking,usecs=200,frames=100", &pc, &e))
		errx(1, "%s", e.text);
	pc.disabled = true; /* until it has a handler */
	if (engine_port_add(engine, &pc, &ticking, &e) ||
	    engine_handler_set(engine, ticking, bridge, &e))
		errx(1, "%s", e.text);
	napi_enable(ticking->queue[0].napi);

	machine_wait(config.machine, ended, ticking,
		     machine_now(config.machine) + 60 * NSEC_PER_SEC);
	napi_disable(ticking->queue[0].napi, NSEC_PER_SEC); /* its last poll has ended */
	printf("%s (%s): received %ju; %s: sent %ju\n", ticking->name, ticking->mode,
	       (uintmax_t)counter_read(&napi_counters(ticking->queue[0].napi)->received),
	       quiet->name, (uintmax_t)counter_read(&quiet->queue[0].transmit->packets));
	engine_destroy(engine);
	machine_destroy(config.machine);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frames through a bridge, among changes of its VLANs, ports and the time, on the virtual
 * machine. The input is a program of one-byte commands, each followed by what it needs. After each
 * vector the books must balance (I3), and at the end every packet must be free.
 */
#include <stdio.h>
#include <string.h>

#include <napier/napier.h>

#include "fuzz.h"
#include "input.h"

#define PORTS 4
#define FRAME_MAX 128

static struct machine *machine;
static struct engine *engine;
static struct context *context;
static struct handler *bridge[2]; /* without and with vlan_filtering */
static struct port *ports[PORTS];
static bool changed; /* VLANs or ports, by the last input */

static void start(void)
{
	struct virtual_config virtual = {.cpus = 1};
	struct engine_config config = {.frames = 1024};
	struct error err;

	ALWAYS(!machine_virtual_create(&virtual, &machine));
	config.machine = machine;
	ALWAYS(!engine_create(&config, &engine, &err));
	ALWAYS(!engine_context_open(engine, &context));
	for (int i = 0; i < 2; i++) {
		struct bridge_config wish = {
			.entries = 8, .ageing_seconds = 2, .vlan_filtering = i};

		ALWAYS(!bridge_create(engine, &wish, &bridge[i], &err));
	}
	for (int i = 0; i < PORTS; i++) {
		struct port_config port;
		char text[16];

		snprintf(text, sizeof(text), "mem:%d", i);
		ALWAYS(!port_config_parse(text, &port, &err));
		ALWAYS(!engine_port_add(engine, &port, &ports[i], &err));
	}
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void run(int64_t ns)
{
	machine_wait(machine, never, NULL, machine_now(machine) + ns);
}

/* Few enough for addresses to meet again. */
static void address_write(uint8_t *at, uint8_t which)
{
	static const uint8_t few[8][6] = {
		{2, 0, 0, 0, 0, 1},
		{2, 0, 0, 0, 0, 2},
		{2, 0, 0, 0, 0, 3},
		{2, 0, 0, 0, 0, 4},
		{0, 0, 0, 0, 0, 0},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{0x01, 0x80, 0xc2, 0, 0, 0x0e},
		{0x01, 0x00, 0x5e, 0, 0, 1},
	};

	memcpy(at, few[which % 8], 6);
}

/* Length, what the addresses are, the bytes. */
static void frame_take(struct input *in, struct packet *p)
{
	uint8_t addresses;

	p->len = input_byte(in) % FRAME_MAX;
	addresses = input_byte(in);
	for (uint32_t i = 0; i < p->len; i++)
		p->data[i] = input_byte(in);
	if (!(addresses & 0x80) && p->len >= 12) {
		address_write(p->data, addresses & 7);
		address_write(p->data + 6, addresses >> 3 & 7);
	}
}

static void sent_check(const struct packet *p)
{
	ALWAYS(p->len >= 14 && p->len <= FRAME_MAX + 4);
	ALWAYS(p->total == p->len);
	ALWAYS(!p->next);
	/* No frame leaves that came from a group, or went to nobody. */
	ALWAYS(!(p->data[6] & 1));
}

static void ports_drain(void)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n;

	for (int i = 0; i < PORTS; i++) {
		while ((n = mem_port_receive(ports[i], v, PACKET_VECTOR_MAX))) {
			for (uint32_t k = 0; k < n; k++)
				sent_check(v[k]);
			packet_free(&context->cache, v, n);
		}
	}
}

static void books_check(void)
{
	for (int i = 0; i < PORTS; i++) {
		const struct napi_counters *c = napi_counters(ports[i]->queue[0].napi);
		uint64_t out = counter_read(&c->transmitted) + counter_read(&c->delivered) +
			       counter_read(&c->steered) + counter_read(&c->merged);

		for (int reason = 0; reason < DROP_MAX; reason++)
			out += counter_read(&c->dropped[reason]);
		ALWAYS(counter_read(&c->received) + counter_read(&c->cloned) == out);
	}
}

static void command_send(struct input *in)
{
	struct port *port = ports[input_byte(in) % PORTS];
	uint32_t n = 1 + input_byte(in) % PACKET_VECTOR_MAX;
	struct packet *v[PACKET_VECTOR_MAX];

	if ((size_t)(in->end - in->at) < n)
		n = 1;
	ALWAYS(packet_alloc(&context->cache, v, n) == n);
	for (uint32_t i = 0; i < n; i++)
		frame_take(in, v[i]);
	ALWAYS(mem_port_send(port, v, n) == n);
	run(20 * NSEC_PER_USEC);
	ports_drain();
	books_check();
}

static void command_vlan(struct input *in)
{
	struct port *port = ports[input_byte(in) % PORTS];
	uint8_t flags = input_byte(in);
	struct bridge_vlan vlan = {
		.vid = (uint16_t)(input_byte(in) << 8 | input_byte(in)),
		.pvid = flags & 1,
		.untagged = flags & 2,
	};

	if (flags & 4)
		bridge_vlan_remove(bridge[1], port, vlan.vid);
	else
		bridge_vlan_add(bridge[1], port, &vlan, NULL);
}

static void command_port(struct input *in)
{
	struct port *port = ports[input_byte(in) % PORTS];
	uint8_t what = input_byte(in);

	if (what % 4 == 3)
		port_state_set(port, what & 4 ? PORT_UP : PORT_DOWN);
	else
		engine_handler_set(engine, port, what % 4 ? bridge[what % 4 - 1] : NULL, NULL);
}

static void program_run(struct input *in)
{
	while (in->at < in->end) {
		switch (input_byte(in) % 8) {
		case 5:
			changed = true;
			command_vlan(in);
			break;
		case 6:
			changed = true;
			command_port(in);
			break;
		case 7:
			run((1 + input_byte(in) % 4) * NSEC_PER_SEC);
			break;
		default:
			command_send(in);
		}
	}
}

/* Ports that come new into a bridge have no VLANs but its own. */
static void begin_alike(struct handler *handler)
{
	for (int i = 0; i < PORTS && changed; i++) {
		port_state_set(ports[i], PORT_UP);
		engine_handler_set(engine, ports[i], NULL, NULL);
	}
	changed = false;
	for (int i = 0; i < PORTS; i++)
		engine_handler_set(engine, ports[i], handler, NULL);
	bridge_flush(handler);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct error err;

	if (!machine)
		start();
	begin_alike(bridge[size && data[0] & 1]);
	input_byte(&in);
	program_run(&in);
	pool_cache_drain(&context->cache);
	ALWAYS(!engine_check(engine, &err));
	return 0;
}

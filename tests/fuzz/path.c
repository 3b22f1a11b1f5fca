/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frames on their way through an engine, from port to port, on the virtual machine: merged and
 * steered to backlogs or not, while the poller, the steering and the CPUs change. The input is a
 * program of one-byte commands, each followed by what it needs. What comes out is what went in,
 * byte for byte, each frame once, those of a flow in order; the books balance (I3), and at the end
 * every packet is free.
 */
#include <string.h>

#include <core/flow.h>
#include <napier/napier.h>

#include "frame.h"
#include "fuzz.h"

#define CPUS 3
#define FRAMES_MAX 512 /* an input */
#define LEN_MAX 1792
#define LAST_MAX 1024

static struct machine *machine;
static struct engine *engine;
static struct context *context;
static struct port *in_port, *out_port;
static struct frame_flows flows;
static struct flow_hasher hasher;
static bool changed; /* settings, by the last input */

/* What has been sent, by its number, which its stamp holds. */
static struct {
	bool inside; /* it has not come out */
	uint32_t len, hash;
	uint8_t bytes[LEN_MAX];
} sent[FRAMES_MAX];
static uint32_t frames;

/* Of the flows, by hash, the number of the last frame that came out. */
static struct {
	uint32_t hash, number;
} last[LAST_MAX];

/* All that port `in` receives goes out by port `out`. */
static void through_input(struct handler *handler, struct context *c, struct port *in,
			  struct packet **v, uint32_t n)
{
	(void)handler;
	(void)in;
	/* So that there is time to overtake what stands in a backlog. */
	machine_charge(machine, 2 * NSEC_PER_USEC * n);
	port_transmit(c, out_port, v, n);
}

static const struct handler_ops through_ops = {.name = "through", .input = through_input};

static struct port *port_add(const char *text, struct handler *handler)
{
	struct port_config config;
	struct port *port;
	struct error err;

	ALWAYS(!port_config_parse(text, &config, &err));
	ALWAYS(!engine_port_add(engine, &config, &port, &err));
	ALWAYS(!engine_handler_set(engine, port, handler, &err));
	return port;
}

static void start(void)
{
	static struct handler through = {.ops = &through_ops};
	struct virtual_config virtual = {.cpus = CPUS};
	struct engine_config config = {.frames = 2048, .rss_key_set = true};
	struct error err;

	for (int i = 0; i < RSS_KEY_SIZE; i++)
		config.rss_key[i] = (uint8_t)(i * 37 + 11);
	flow_hasher_init(&hasher, config.rss_key, false);
	ALWAYS(!machine_virtual_create(&virtual, &machine));
	config.machine = machine;
	ALWAYS(!engine_create(&config, &engine, &err));
	ALWAYS(!engine_context_open(engine, &context));
	through.engine = engine;
	out_port = port_add("mem:out", NULL);
	in_port = port_add("mem:in", &through);
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

static void frame_check(const struct packet *p)
{
	uint32_t number = (uint32_t)p->stamp, slot;

	ALWAYS(number < frames && sent[number].inside);
	ALWAYS(p->len == sent[number].len && p->total == p->len && !p->next);
	ALWAYS(!memcmp(p->data, sent[number].bytes, p->len));
	slot = sent[number].hash % LAST_MAX;
	ALWAYS(last[slot].hash != sent[number].hash || last[slot].number < number);
	last[slot].hash = sent[number].hash;
	last[slot].number = number;
	sent[number].inside = false;
}

static void out_drain(void)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n;

	while ((n = mem_port_receive(out_port, v, PACKET_VECTOR_MAX))) {
		for (uint32_t i = 0; i < n; i++)
			frame_check(v[i]);
		packet_free(&context->cache, v, n);
	}
}

/* Of all NAPIs, at rest. */
static void books_check(void)
{
	for (uint32_t i = 0; engine_port_at(engine, i); i++) {
		struct port *port = engine_port_at(engine, i);

		for (uint32_t k = 0; k < port->queues; k++) {
			const struct napi_counters *c = napi_counters(port->queue[k].napi);
			uint64_t out = counter_read(&c->transmitted) + counter_read(&c->delivered) +
				       counter_read(&c->steered) + counter_read(&c->merged);

			for (int reason = 0; reason < DROP_MAX; reason++)
				out += counter_read(&c->dropped[reason]);
			ALWAYS(counter_read(&c->received) + counter_read(&c->cloned) == out);
		}
	}
}

static uint64_t dropped(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; engine_port_at(engine, i); i++) {
		struct port *port = engine_port_at(engine, i);

		for (uint32_t k = 0; k < port->queues; k++)
			for (int reason = 0; reason < DROP_MAX; reason++)
				sum += counter_read(
					&napi_counters(port->queue[k].napi)->dropped[reason]);
	}
	return sum;
}

/* One recipe a few times: packets of a flow that follow on one another. */
static void command_send(struct input *in)
{
	uint32_t n = 1 + input_byte(in) % 8;
	struct packet *v[8];
	struct input again;

	if (n > FRAMES_MAX - frames)
		n = FRAMES_MAX - frames;
	if (!n)
		return;
	ALWAYS(packet_alloc(&context->cache, v, n) == n);
	for (uint32_t i = 0; i < n; i++, frames++) {
		uint8_t bytes[FRAME_ROOM];
		uint32_t len;

		again = *in;
		len = frame_make(&again, &flows, bytes, NULL);
		if (len > LEN_MAX)
			len = LEN_MAX;
		memcpy(v[i]->data, bytes, len);
		memcpy(sent[frames].bytes, bytes, len);
		v[i]->len = v[i]->total = sent[frames].len = len;
		v[i]->flags = PACKET_STAMPED;
		v[i]->stamp = frames;
		sent[frames].inside = true;
		sent[frames].hash = flow_hash(&hasher, bytes, len);
	}
	*in = again;
	ALWAYS(mem_port_send(in_port, v, n) == n);
}

static void command_steer(struct input *in)
{
	struct queue_settings s = {.rps_cpus_set = true, .rps_flow_set = true};
	uint8_t choice = input_byte(in);

	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		if (choice >> cpu & 1)
			cpuset_add(&s.rps_cpus, cpu);
	s.rps_flow_cnt = choice & 8 ? 1u << (choice >> 4 & 3) : 0;
	engine_queue_set(engine, "in", -1, &s, NULL, NULL);
}

static void command_flow(struct input *in)
{
	struct engine_settings s = {.sock_flow_entries_set = true};
	uint8_t choice = input_byte(in);

	if (choice & 0x80) {
		s.sock_flow_entries = choice & 0x40 ? 1u << (choice & 7) : 0;
		engine_set(engine, &s, NULL);
	} else if (frames) {
		flow_record(engine, sent[input_byte(in) * 2 % frames].hash, choice & 3);
	}
}

static void command_poll(struct input *in)
{
	struct queue_settings s = {.poller_set = true, .weight_set = true, .gro_set = true};
	struct engine_settings cpus = {.on_cpus_set = true};
	uint8_t choice = input_byte(in);

	if (choice & 0x80) {
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			if (choice >> cpu & 1)
				cpuset_add(&cpus.on_cpus, cpu);
		engine_set(engine, &cpus, NULL);
		return;
	}
	s.poller = (enum poller)(choice % POLLER_MAX);
	s.gro = choice & 0x10 ? GRO_ON : GRO_OFF;
	s.weight = choice & 0x20 ? 1 + (choice & 7) : NAPI_WEIGHT_MAX;
	if (choice & 0x40)
		s.gro_set = false;
	engine_queue_set(engine, choice & 0x40 ? "backlog" : "in", -1, &s, NULL, NULL);
}

static void program_run(struct input *in)
{
	while (in->at < in->end) {
		switch (input_byte(in) % 8) {
		case 4:
			run((1 + input_byte(in)) * NSEC_PER_USEC);
			out_drain();
			break;
		case 5:
			changed = true;
			command_steer(in);
			break;
		case 6:
			changed = true;
			command_flow(in);
			break;
		case 7:
			changed = true;
			command_poll(in);
			break;
		default:
			command_send(in);
		}
	}
}

static void settings_reset(void)
{
	struct queue_settings steer = {.rps_cpus_set = true, .rps_flow_set = true};
	struct queue_settings poll = {
		.poller_set = true, .weight_set = true, .weight = NAPI_WEIGHT_MAX};
	struct engine_settings all = {.on_cpus_set = true, .sock_flow_entries_set = true};
	struct error err;

	ALWAYS(!engine_set(engine, &all, &err));
	ALWAYS(!engine_queue_set(engine, "in", -1, &steer, NULL, &err));
	poll.gro_set = true;
	ALWAYS(!engine_queue_set(engine, "in", -1, &poll, NULL, &err));
	poll.gro_set = false;
	ALWAYS(!engine_queue_set(engine, "backlog", -1, &poll, NULL, &err));
}

static void begin_alike(void)
{
	if (changed)
		settings_reset();
	changed = false;
	frames = 0;
	memset(last, 0, sizeof(last));
	memset(&flows, 0, sizeof(flows));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	uint32_t missing = 0;
	struct error err;
	uint64_t before;

	if (!machine)
		start();
	begin_alike();
	before = dropped();
	program_run(&in);
	/* Some steps of every poller: busy-poll's take 2 ms. */
	run(10 * NSEC_PER_MSEC);
	out_drain();
	books_check();
	for (uint32_t i = 0; i < frames; i++)
		missing += sent[i].inside;
	ALWAYS(dropped() - before == missing);
	pool_cache_drain(&context->cache);
	ALWAYS(!engine_check(engine, &err));
	return 0;
}

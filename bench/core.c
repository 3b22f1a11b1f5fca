/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet costs inside the engine: mem -> bridge -> mem, at vectors of 64 and of 1; with its
 * packets steered to backlogs in between, or merged by GRO and taken apart again; and what the flow
 * hash costs by itself.
 *
 *   core               ns a packet on the host, from the NAPI's own counters (time in polls)
 *   core --once N      N packets at vectors of 64 in one thread, on the virtual machine: to be run
 *                      under callgrind, which counts instructions:
 *                      valgrind --tool=callgrind --toggle-collect=napi_poll core --once 100000
 *
 * The application's side (this thread) gives every packet that comes out back in, so the frames are
 * in the cache: this is the engine's own cost, without a device's and without cache misses on
 * data.
 *
 *   core gro           the rows of GRO alone: core_gro.c
 *   core udp           those of UDP sockets: core_udp.c
 *
 * The rows of events are of one packet that the handler gives back to the port it came from: each
 * time it is an interrupt, a schedule, a poll and a complete, without a sleep.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <napier/napier.h>

#include <core/checksum.h>
#include <core/flow.h>

#include "core.h"

#define CIRCLING 512 /* packets on their way */
#define RUN (200 * NSEC_PER_MSEC)

struct core {
	struct machine *machine;
	struct engine *engine;
	struct port *in, *out;
	struct context *context;
	bool steers;
	uint32_t run; /* packets of a flow that follow on one another, merged; 0: one, and not */
};

static void die(const char *what, const struct error *err)
{
	fprintf(stderr, "core: %s: %s\n", what, err->text);
	exit(1);
}

static struct port *port_open(struct core *core, struct handler *bridge, const char *text)
{
	struct port_config config;
	struct port *port;
	struct error err;

	if (port_config_parse(text, &config, &err) ||
	    engine_port_add(core->engine, &config, &port, &err) ||
	    engine_handler_set(core->engine, port, bridge, &err))
		die(text, &err);
	return port;
}

static void core_open(struct core *core, struct machine *machine, enum poller poller,
		      uint32_t weight)
{
	struct engine_config config = {.machine = machine, .poller = poller, .weight = weight};
	struct handler *bridge;
	struct error err;

	core->machine = machine;
	if (engine_create(&config, &core->engine, &err) ||
	    bridge_create(core->engine, &(struct bridge_config){0}, &bridge, &err))
		die("engine", &err);
	core->in = port_open(core, bridge, "mem:in");
	core->out = port_open(core, bridge, "mem:out");
	if (engine_context_open(core->engine, &core->context))
		die("context", &(struct error){.text = "no memory"});
}

static void core_close(struct core *core)
{
	engine_context_close(core->context);
	engine_destroy(core->engine);
	machine_destroy(core->machine);
}

static void fill(struct packet *p, uint8_t from, uint8_t to, uint8_t flow)
{
	uint16_t sum;

	memset(p->data, 0, 60);
	p->data[0] = p->data[6] = 2;
	p->data[5] = to;
	p->data[11] = from;
	/* UDP over IPv4, of 64 flows: steering can tell them apart, and GRO puts them together. */
	p->data[12] = 0x08;
	p->data[14] = 0x45;
	p->data[17] = 46;
	p->data[20] = 0x40;
	p->data[23] = 17;
	p->data[35] = flow;
	p->data[39] = 26;
	sum = checksum_finish(checksum_add(0, p->data + 14, 20));
	memcpy(p->data + 24, &sum, sizeof(sum));
	p->len = p->total = 60;
}

static bool nothing(void *arg)
{
	(void)arg;
	return false;
}

/* The bridge learns where `to` is, so nothing is flooded. */
static void teach(struct core *core)
{
	struct packet *p;

	packet_alloc(&core->context->cache, &p, 1);
	fill(p, 2, 1, 0);
	mem_port_send(core->out, &p, 1);
	while (!mem_port_receive(core->in, &p, 1))
		machine_wait(core->machine, nothing, NULL,
			     machine_now(core->machine) + NSEC_PER_MSEC);
	packet_free(&core->context->cache, &p, 1);
}

static void start(struct core *core)
{
	struct packet *v[64];

	teach(core);
	for (int i = 0; i < CIRCLING / 64; i++) {
		uint32_t n = packet_alloc(&core->context->cache, v, 64);

		for (uint32_t k = 0; k < n; k++)
			fill(v[k], 1, 2, (uint8_t)(core->run ? k / core->run : k));
		mem_port_send(core->in, v, n);
	}
}

/* What has come out goes back in. Returns how many. */
static uint32_t turn(struct core *core)
{
	struct packet *v[64];
	uint32_t n = mem_port_receive(core->out, v, 64);
	uint32_t sent = 0;

	while (sent < n)
		sent += mem_port_send(core->in, v + sent, n - sent);
	return n;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* To the backlogs of all engine CPUs, whose NAPIs have the same poller. */
static void steer(struct core *core)
{
	struct queue_settings settings = {.rps_cpus_set = true};
	struct error err;

	machine_cpus(core->machine, &settings.rps_cpus);
	if (engine_queue_set(core->engine, "in", -1, &settings, NULL, &err))
		die("rps_cpus", &err);
	core->steers = true;
}

/* With so many packets of a flow in a run, which go on from GRO in vectors of `batch`. */
static void merge(struct core *core, uint32_t run, uint32_t batch)
{
	const struct queue_settings settings = {.gro_set = true, .gro = GRO_ON};
	const struct engine_settings own = {.gro_normal_batch_set = true,
					    .gro_normal_batch = batch};
	struct error err;

	if (engine_queue_set(core->engine, "in", -1, &settings, NULL, &err) ||
	    engine_set(core->engine, &own, &err))
		die("gro", &err);
	core->run = run;
}

/* Time in the polls of a port, and of the backlogs that its packets go through. */
static uint64_t poll_ns(const struct core *core)
{
	struct port *backlog = core->steers ? engine_port_find(core->engine, "backlog") : NULL;
	uint64_t ns = counter_read(&napi_counters(core->in->queue[0].napi)->poll_ns);

	for (uint32_t i = 0; backlog && i < backlog->queues; i++)
		ns += counter_read(&napi_counters(backlog->queue[i].napi)->poll_ns);
	return ns;
}

static void measure(enum poller poller, uint32_t weight, bool steers, uint32_t run, uint32_t batch)
{
	double ns[REPEATS], per_poll = 0;
	char how[48];

	for (int i = 0; i < REPEATS; i++) {
		const struct napi_counters *c;
		uint64_t packets, polls, time;
		struct machine *machine;
		struct core core = {0};
		struct error err;
		int64_t end;

		if (machine_host_create(&machine, &err))
			die("machine", &err);
		core_open(&core, machine, poller, weight);
		if (steers)
			steer(&core);
		if (run)
			merge(&core, run, batch);
		start(&core);
		c = napi_counters(core.in->queue[0].napi);
		packets = counter_read(&c->received);
		polls = counter_read(&c->polls);
		time = poll_ns(&core);
		end = machine_now(machine) + RUN;
		while (machine_now(machine) < end)
			for (int k = 0; k < 100; k++)
				turn(&core);
		packets = counter_read(&c->received) - packets;
		polls = counter_read(&c->polls) - polls - counter_read(&c->empty_polls);
		time = poll_ns(&core) - time;
		ns[i] = (double)time / (double)packets;
		per_poll = (double)packets / (double)polls;
		core_close(&core);
	}
	qsort(ns, REPEATS, sizeof(*ns), compare);
	snprintf(how, sizeof(how),
		 run	  ? "merged: runs of %u, batch %u;"
		 : steers ? "steered"
			  : "",
		 run, batch);
	printf("%-9s %-7s vectors of %-2u  %7.1f ns/packet  (%.1f to %.1f), %.1f packets/poll\n",
	       poller_name(poller), how, weight, ns[REPEATS / 2], ns[0], ns[REPEATS - 1], per_poll);
}

/* Gives each packet back to the port that it came in by: its runner never sleeps. */
static void again_input(struct handler *handler, struct context *context, struct port *in,
			struct packet **v, uint32_t n)
{
	uint32_t back = mem_port_send(in, v, n);

	(void)handler;
	counter_add(&context->counters->transmitted, back);
	packet_drop(context, v + back, n - back, DROP_TX_FULL);
}

static const struct handler_ops again_ops = {.name = "again", .input = again_input};
static struct handler again = {.ops = &again_ops};

static void measure_event(enum poller poller)
{
	double ns[REPEATS];

	for (int i = 0; i < REPEATS; i++) {
		const struct napi_counters *c;
		struct machine *machine;
		struct packet *p;
		struct core core;
		struct error err;
		uint64_t events;
		int64_t start;

		if (machine_host_create(&machine, &err))
			die("machine", &err);
		core_open(&core, machine, poller, 64);
		if (engine_handler_set(core.engine, core.in, &again, &err))
			die("handler", &err);
		packet_alloc(&core.context->cache, &p, 1);
		fill(p, 1, 2, 0);
		mem_port_send(core.in, &p, 1);
		c = napi_counters(core.in->queue[0].napi);
		machine_wait(machine, nothing, NULL, machine_now(machine) + RUN / 4);
		start = machine_now(machine);
		events = counter_read(&c->received);
		machine_wait(machine, nothing, NULL, start + RUN);
		ns[i] = (double)(machine_now(machine) - start) /
			(double)(counter_read(&c->received) - events);
		core_close(&core);
	}
	qsort(ns, REPEATS, sizeof(*ns), compare);
	printf("%-9s  %7.1f ns/event  (%.1f to %.1f)\n", poller_name(poller), ns[REPEATS / 2],
	       ns[0], ns[REPEATS - 1]);
}

static void once(uint32_t packets)
{
	struct virtual_config config = {.cpus = 2};
	struct machine *machine;
	struct core core;
	uint64_t done = 0;

	if (machine_virtual_create(&config, &machine))
		die("machine", &(struct error){.text = "no memory"});
	core_open(&core, machine, POLLER_THREAD, 64);
	start(&core);
	while (done < packets) {
		machine_virtual_run(machine, machine_now(machine) + 20 * NSEC_PER_USEC);
		for (uint32_t n; (n = turn(&core));)
			done += n;
	}
	printf("%lu packets\n", (unsigned long)done);
	core_close(&core);
}

int64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

void figures_print(const char *what, double ns[REPEATS], const char *unit)
{
	qsort(ns, REPEATS, sizeof(*ns), compare);
	printf("%s  %7.1f %s  (%.1f to %.1f)\n", what, ns[REPEATS / 2], unit, ns[0],
	       ns[REPEATS - 1]);
}

static void flow_measure(const char *name, const uint8_t *frame, uint32_t len)
{
	static struct flow_hasher hasher;
	static const uint8_t key[FLOW_KEY_SIZE] = {0x6d, 0x5a, 0x56, 0xda, 1, 2, 3, 4, 5, 6, 7};
	const uint32_t count = 2000000;
	double ns[REPEATS];
	uint8_t copy[128];
	uint32_t sum = 0;
	char what[32];

	flow_hasher_init(&hasher, key, false);
	memcpy(copy, frame, len);
	for (int i = 0; i < REPEATS; i++) {
		int64_t begin = cpu_time();

		for (uint32_t k = 0; k < count; k++) {
			copy[len - 1] = (uint8_t)k; /* a port's lower half */
			sum ^= flow_hash(&hasher, copy, len);
		}
		ns[i] = (double)(cpu_time() - begin) / count;
	}
	snprintf(what, sizeof(what), "flow hash, %-8s%s", name, sum ? "" : ".");
	figures_print(what, ns, "ns/packet");
}

static void flows_measure(void)
{
	static const uint8_t ipv4[38] = {[12] = 0x08, [14] = 0x45, [23] = 6, [26] = 10, [30] = 11};
	static const uint8_t ipv6[58] = {
		[12] = 0x86, [13] = 0xdd, [14] = 0x60, [20] = 6, [22] = 0xfe, [38] = 0xfe};

	flow_measure("IPv4 TCP", ipv4, sizeof(ipv4));
	flow_measure("IPv6 TCP", ipv6, sizeof(ipv6));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--once")) {
		once((uint32_t)strtoul(argv[2], NULL, 10));
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "gro")) {
		gro_measure();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "udp")) {
		udp_measure();
		return 0;
	}
	printf("mem -> bridge -> mem, median of %d runs (least to most)\n", REPEATS);
	for (unsigned poller = 0; poller < POLLER_RUNNER_MAX; poller++) {
		measure((enum poller)poller, 64, false, 0, 0);
		measure((enum poller)poller, 64, true, 0, 0);
		measure((enum poller)poller, 1, false, 0, 0);
	}
	for (uint32_t run = 1; run <= 64; run *= 8)
		for (uint32_t batch = 8; batch <= 64; batch *= 8)
			measure(POLLER_SOFTIRQ, 64, false, run, batch);
	flows_measure();
	gro_measure();
	udp_measure();
	printf("interrupt, schedule, poll of one packet, complete; median of %d runs (least to "
	       "most)\n",
	       REPEATS);
	for (unsigned poller = 0; poller < POLLER_RUNNER_MAX; poller++)
		measure_event((enum poller)poller);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What a packet costs inside the engine, and an event of one packet. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/parts/core.h"

static int64_t run_length(const struct bench_plan *plan)
{
	return (plan->quick ? 20 : 200) * NSEC_PER_MSEC;
}

/*
 * The application's side is this thread. Once the engine is open, as that may run where we may.
 * Returns where we did.
 */
static cpu_set_t thread_pin(const struct bench_plan *plan)
{
	cpu_set_t before, here;

	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&here);
	CPU_SET((unsigned)bench_apart(plan), &here);
	sched_setaffinity(0, sizeof(here), &here);
	return before;
}

static const struct way {
	enum poller poller;
	struct core_ring_config how;
	const char *name;
} ways[] = {
	{POLLER_SOFTIRQ, {.weight = 64}, "vectors of 64"},
	{POLLER_SOFTIRQ, {.weight = 1}, "vectors of 1"},
	{POLLER_SOFTIRQ, {.weight = 64, .steered = true}, "64, steered to a backlog"},
	{POLLER_THREAD, {.weight = 64}, "vectors of 64"},
	{POLLER_THREAD, {.weight = 1}, "vectors of 1"},
	{POLLER_THREAD, {.weight = 64, .steered = true}, "64, steered to a backlog"},
	{POLLER_WORKQUEUE, {.weight = 64}, "vectors of 64"},
	{POLLER_WORKQUEUE, {.weight = 1}, "vectors of 1"},
	{POLLER_WORKQUEUE, {.weight = 64, .steered = true}, "64, steered to a backlog"},
	{POLLER_BUSY_POLL, {.weight = 64}, "vectors of 64"},
	{POLLER_BUSY_POLL, {.weight = 1}, "vectors of 1"},
	{POLLER_BUSY_POLL, {.weight = 64, .steered = true}, "64, steered to a backlog"},
	{POLLER_SOFTIRQ, {.weight = 64, .run = 1, .batch = 8}, "64, GRO, runs of 1, batch 8"},
	{POLLER_SOFTIRQ, {.weight = 64, .run = 1, .batch = 64}, "64, GRO, runs of 1, batch 64"},
	{POLLER_SOFTIRQ, {.weight = 64, .run = 8, .batch = 64}, "64, GRO, runs of 8, batch 64"},
	{POLLER_SOFTIRQ, {.weight = 64, .run = 64, .batch = 64}, "64, GRO, runs of 64, batch 64"},
};

enum { WAYS = sizeof(ways) / sizeof(*ways) };

static const struct figures_form packet_form = {
	.key = "packet",
	.title = "A packet's way through the engine: mem port, bridge, mem port; 60 bytes in the "
		 "cache, time in\npolls. Steered: by flow, to the backlog of the same CPU. GRO: "
		 "packets of a flow in runs are\nmerged, and taken apart again at the mem port.",
	.label = {{"poller", "poller"}, {"way", "way"}},
	.column =
		{
			{"ns_per_packet", "ns/packet", 1},
			{"packets_per_poll", "pkts/poll", 1},
		},
};

static int way_measure(const struct bench_plan *plan, struct figures *f, const struct way *way,
		       struct error *err)
{
	struct figures_row *row = figures_row(f, poller_name(way->poller), way->name, "");
	struct core_ring_config config = way->how;
	const struct napi_counters *c;
	struct machine *machine;
	double packets, polls, ns;
	struct core_ring ring;
	uint64_t turned = 0;
	cpu_set_t before;
	int64_t end;
	int rc = machine_host_create(&machine, err);

	if (rc)
		return rc;
	config.poller = way->poller;
	cpuset_add(&config.cpus, (unsigned)plan->cpu);
	rc = core_ring_open(&ring, machine, &config, err);
	if (rc)
		return rc;
	before = thread_pin(plan);
	c = napi_counters(ring.in->queue[0].napi);
	core_ring_settle(&ring);
	packets = -(double)counter_read(&c->received);
	polls = -(double)(counter_read(&c->polls) - counter_read(&c->empty_polls));
	ns = -(double)core_ring_poll_ns(&ring);
	/* Until something has turned, too: the time may be over before this thread runs again. */
	end = clock_now() + run_length(plan);
	do {
		for (int k = 0; k < 100; k++)
			turned += core_ring_turn(&ring);
	} while (clock_now() < end || (!turned && clock_now() < end + BENCH_PATIENCE));
	core_ring_settle(&ring);
	packets += (double)counter_read(&c->received);
	polls += (double)(counter_read(&c->polls) - counter_read(&c->empty_polls));
	ns += (double)core_ring_poll_ns(&ring);
	sched_setaffinity(0, sizeof(before), &before);
	core_ring_close(&ring);
	if (packets > 0)
		figures_add(f, row, "ns_per_packet", ns / packets);
	if (polls > 0)
		figures_add(f, row, "packets_per_poll", packets / polls);
	return 0;
}

static int packet_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; i < plan->rounds * WAYS && !rc; i++) {
		const struct way *way = &ways[bench_turn(i / WAYS, i % WAYS, WAYS)];

		bench_progress(plan, i, plan->rounds * WAYS, "packet: %s, %s",
			       poller_name(way->poller), way->name);
		rc = way_measure(plan, f, way, err);
	}
	return rc;
}

const struct bench_part core_packet = {
	.key = "packet",
	.summary = "a packet through the bridge: vectors, steering, GRO",
	.form = &packet_form,
	.run = packet_run,
};

static const struct figures_form event_form = {
	.key = "event",
	.title = "An event of one packet: interrupt, schedule, poll, complete, and the handler "
		 "gives the packet\nback to the port that it came from, so that it comes again "
		 "and nobody sleeps. busy-poll neither\nschedules nor completes.",
	.label = {{"poller", "poller"}},
	.column =
		{
			{"ns_per_event", "ns/event", 0},
			{"completes_per_event", "completes/event", 2},
		},
};

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

static int engine_open(struct core_ring *ring, enum poller poller, const struct bench_plan *plan,
		       struct error *err)
{
	struct engine_config config = {.poller = poller, .weight = 64};
	struct port_config port;
	int rc = machine_host_create(&ring->machine, err);

	if (rc)
		return rc;
	config.machine = ring->machine;
	cpuset_add(&config.cpus, (unsigned)plan->cpu);
	rc = engine_create(&config, &ring->engine, err);
	if (!rc)
		rc = port_config_parse("mem:in", &port, err);
	if (!rc)
		rc = engine_port_add(ring->engine, &port, &ring->in, err);
	if (!rc)
		rc = engine_handler_set(ring->engine, ring->in, &again, err);
	if (!rc && engine_context_open(ring->engine, &ring->context))
		rc = error_set(err, -ENOMEM, "no memory for a context");
	if (rc)
		core_ring_close(ring);
	return rc;
}

static uint64_t received(void *napi)
{
	return counter_read(&napi_counters(napi)->received);
}

static int event_measure(const struct bench_plan *plan, struct figures *f, enum poller poller,
			 struct error *err)
{
	struct figures_row *row = figures_row(f, poller_name(poller), "", "");
	struct core_ring ring = {0};
	struct napi *napi;
	double all, completes;
	uint64_t events;
	struct packet *p;
	int64_t begin, wall;
	int rc = engine_open(&ring, poller, plan, err);

	if (rc)
		return rc;
	packet_alloc(&ring.context->cache, &p, 1);
	p->len = p->total = 60;
	mem_port_send(ring.in, &p, 1);
	napi = ring.in->queue[0].napi;
	clock_sleep(run_length(plan) / 4);
	events = received(napi);
	begin = clock_now();
	clock_sleep(run_length(plan));
	bench_await(received, napi, events);
	wall = clock_now() - begin;
	events = received(napi) - events;
	/*
	 * These are of all of it, and read at rest: the engine may go on for any time between two
	 * readings.
	 */
	rc = napi_disable(napi, BENCH_PATIENCE);
	all = (double)received(napi);
	completes = (double)counter_read(&napi_counters(napi)->completes);
	core_ring_close(&ring);
	if (rc)
		return error_set(err, rc, "disabling a NAPI: %s", strerror(-rc));
	if (!events)
		return 0;
	figures_add(f, row, "ns_per_event", (double)wall / (double)events);
	figures_add(f, row, "completes_per_event", completes / all);
	return 0;
}

static int event_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	const unsigned n = POLLER_RUNNER_MAX;
	int rc = 0;

	for (unsigned i = 0; i < plan->rounds * n && !rc; i++) {
		enum poller poller = bench_turn(i / n, i % n, n);

		bench_progress(plan, i, plan->rounds * n, "event: %s", poller_name(poller));
		rc = event_measure(plan, f, poller, err);
	}
	return rc;
}

const struct bench_part core_event = {
	.key = "event",
	.summary = "interrupt, schedule, poll of one packet, complete",
	.form = &event_form,
	.run = event_run,
};

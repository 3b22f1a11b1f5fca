/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include <core/checksum.h>

#include "lab/clock.h"
#include "lab/parts/core.h"

#define PATIENCE (10 * NSEC_PER_SEC)

enum { CIRCLING = 512, FRAME = 60 };

static int port_open(struct core_ring *ring, struct handler *bridge, const char *text,
		     struct port **out, struct error *err)
{
	struct port_config config;
	int rc = port_config_parse(text, &config, err);

	if (!rc)
		rc = engine_port_add(ring->engine, &config, out, err);
	return rc ? rc : engine_handler_set(ring->engine, *out, bridge, err);
}

static int steer(struct core_ring *ring, struct error *err)
{
	struct queue_settings settings = {.rps_cpus_set = true};

	settings.rps_cpus = ring->config.cpus;
	if (cpuset_empty(&settings.rps_cpus))
		machine_cpus(ring->machine, &settings.rps_cpus);
	return engine_queue_set(ring->engine, "in", -1, &settings, NULL, err);
}

static int merge(struct core_ring *ring, struct error *err)
{
	const struct queue_settings settings = {.gro_set = true, .gro = GRO_ON};
	const struct engine_settings own = {.gro_normal_batch_set = true,
					    .gro_normal_batch = ring->config.batch};
	int rc = engine_queue_set(ring->engine, "in", -1, &settings, NULL, err);

	return rc ? rc : engine_set(ring->engine, &own, err);
}

/* UDP over IPv4, of 64 flows: steering can tell them apart, and GRO puts them together. */
static void fill(struct packet *p, uint8_t from, uint8_t to, uint8_t flow)
{
	uint16_t sum;

	memset(p->data, 0, FRAME);
	p->data[0] = p->data[6] = 2;
	p->data[5] = to;
	p->data[11] = from;
	p->data[12] = 0x08;
	p->data[14] = 0x45;
	p->data[17] = 46;
	p->data[20] = 0x40;
	p->data[23] = 17;
	p->data[35] = flow;
	p->data[39] = 26;
	sum = checksum_finish(checksum_add(0, p->data + 14, 20));
	memcpy(p->data + 24, &sum, sizeof(sum));
	p->len = p->total = FRAME;
}

static bool nothing(void *arg)
{
	(void)arg;
	return false;
}

/* The bridge learns where `to` is, so nothing is flooded. */
static int teach(struct core_ring *ring, struct error *err)
{
	int64_t limit = machine_now(ring->machine) + PATIENCE;
	struct packet *p;

	packet_alloc(&ring->context->cache, &p, 1);
	fill(p, 2, 1, 0);
	mem_port_send(ring->out, &p, 1);
	while (!mem_port_receive(ring->in, &p, 1)) {
		int64_t now = machine_now(ring->machine);

		if (now > limit)
			return error_set(err, -ETIMEDOUT, "the bridge did not pass a packet on");
		machine_wait(ring->machine, nothing, NULL, now + NSEC_PER_MSEC);
	}
	packet_free(&ring->context->cache, &p, 1);
	return 0;
}

static void start(struct core_ring *ring)
{
	uint32_t run = ring->config.run ? ring->config.run : 1;
	struct packet *v[PACKET_VECTOR_MAX];

	for (int i = 0; i < CIRCLING / PACKET_VECTOR_MAX; i++) {
		uint32_t n = packet_alloc(&ring->context->cache, v, PACKET_VECTOR_MAX);

		for (uint32_t k = 0; k < n; k++)
			fill(v[k], 1, 2, (uint8_t)(k / run));
		ring->sent += mem_port_send(ring->in, v, n);
	}
}

static int engine_open(struct core_ring *ring, struct error *err)
{
	const struct core_ring_config *c = &ring->config;
	struct engine_config config = {.machine = ring->machine,
				       .poller = c->poller,
				       .weight = c->weight,
				       .cpus = c->cpus};
	struct handler *bridge;
	int rc = engine_create(&config, &ring->engine, err);

	if (!rc)
		rc = bridge_create(ring->engine, &(struct bridge_config){0}, &bridge, err);
	if (!rc)
		rc = port_open(ring, bridge, "mem:in", &ring->in, err);
	if (!rc)
		rc = port_open(ring, bridge, "mem:out", &ring->out, err);
	if (!rc && engine_context_open(ring->engine, &ring->context))
		rc = error_set(err, -ENOMEM, "no memory for a context");
	return rc;
}

int core_ring_open(struct core_ring *ring, struct machine *machine,
		   const struct core_ring_config *config, struct error *err)
{
	int rc;

	*ring = (struct core_ring){.machine = machine, .config = *config};
	rc = engine_open(ring, err);
	if (!rc && config->steered)
		rc = steer(ring, err);
	if (!rc && config->run)
		rc = merge(ring, err);
	if (!rc)
		rc = teach(ring, err);
	if (rc)
		core_ring_close(ring);
	else
		start(ring);
	return rc;
}

void core_ring_close(struct core_ring *ring)
{
	if (ring->context)
		engine_context_close(ring->context);
	if (ring->engine)
		engine_destroy(ring->engine);
	machine_destroy(ring->machine);
}

uint32_t core_ring_turn(struct core_ring *ring)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = mem_port_receive(ring->out, v, PACKET_VECTOR_MAX), sent = 0;

	while (sent < n)
		sent += mem_port_send(ring->in, v + sent, n - sent);
	ring->sent += n;
	return n;
}

void core_ring_settle(struct core_ring *ring)
{
	const struct napi_counters *c = napi_counters(ring->in->queue[0].napi);
	int64_t now = machine_now(ring->machine), limit = now + PATIENCE;

	while (counter_read(&c->received) < ring->sent && now < limit) {
		machine_wait(ring->machine, nothing, NULL, now + NSEC_PER_MSEC);
		now = machine_now(ring->machine);
	}
	machine_quiesce(ring->machine);
}

uint64_t core_ring_poll_ns(const struct core_ring *ring)
{
	struct port *backlog =
		ring->config.steered ? engine_port_find(ring->engine, "backlog") : NULL;
	uint64_t ns = counter_read(&napi_counters(ring->in->queue[0].napi)->poll_ns);

	for (uint32_t i = 0; backlog && i < backlog->queues; i++)
		ns += counter_read(&napi_counters(backlog->queue[i].napi)->poll_ns);
	return ns;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a datagram costs from the port to the application, and back, all of it in one thread: the
 * application polls (poller app), so that its CPU time is that of port, NAPI, handler and socket
 * together. 64-byte frames in vectors of 64, whose bytes are in the cache; the mem port's share is
 * in the row of the handler that drops all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/busy_poll.h>

#include <core/checksum.h>

#include "lab/clock.h"
#include "lab/parts/core.h"

#define PAYLOAD 18
#define FRAME (42 + PAYLOAD)
#define PATIENCE (10 * NSEC_PER_SEC)

struct bench {
	struct machine *machine;
	struct engine *engine;
	struct context *context;
	struct handler *udp, *drop;
	struct port *port;
	struct napi_udp *socket;
	uint8_t mac[6];
	uint64_t fed; /* to the handler that drops */
};

static void bench_close(struct bench *b)
{
	if (b->socket)
		napi_udp_close(b->socket);
	if (b->context)
		engine_context_close(b->context);
	if (b->engine)
		engine_destroy(b->engine);
	if (b->machine)
		machine_destroy(b->machine);
}

static int engine_open(struct bench *b, struct error *err)
{
	struct engine_config config = {.poller = POLLER_APP, .weight = 64};
	/* No interrupt comes in between. */
	struct queue_settings quiet = {.irq_suspend_timeout_set = true,
				       .irq_suspend_timeout = 100 * 1000 * 1000};
	struct port_config port;
	int rc = machine_host_create(&b->machine, err);

	if (rc)
		return rc;
	config.machine = b->machine;
	rc = engine_create(&config, &b->engine, err);
	if (!rc)
		rc = engine_queue_set(b->engine, "a", -1, &quiet, NULL, err);
	if (!rc)
		rc = port_config_parse("mem:a", &port, err);
	if (!rc)
		rc = engine_port_add(b->engine, &port, &b->port, err);
	if (!rc && (drop_handler_create(b->engine, &b->drop) ||
		    engine_context_open(b->engine, &b->context)))
		rc = error_set(err, -ENOMEM, "no memory for a context");
	return rc;
}

static int socket_open(struct bench *b, struct error *err)
{
	struct napi_udp_config wish = {
		.busy_read_set = true, .busy_read = 1000, .budget = 64, .prefer = true};
	struct napi_udp_address local;
	int rc = udp_handler_create(b->engine, NULL, &b->udp, err);

	if (!rc)
		rc = engine_handler_set(b->engine, b->port, b->udp, err);
	if (!rc)
		rc = udp_address_add(b->udp, b->port, "10.0.0.2/24", err);
	if (!rc)
		rc = napi_udp_open(b->udp, &wish, &b->socket, err);
	if (rc)
		return rc;
	napi_udp_address_parse("0.0.0.0:7", &local);
	rc = napi_udp_bind(b->socket, &local);
	udp_port_mac(b->udp, b->port, b->mac);
	return rc ? error_set(err, rc, "binding a socket: %s", strerror(-rc)) : 0;
}

static int bench_open(struct bench *b, struct error *err)
{
	int rc = engine_open(b, err);

	if (!rc)
		rc = socket_open(b, err);
	if (rc)
		bench_close(b);
	return rc;
}

static uint16_t sum_finish(const void *at, size_t len, uint32_t sum)
{
	return checksum_finish(checksum_add(sum, at, len));
}

/* From one of 16 sources. */
static void frame_fill(const struct bench *b, struct packet *p, uint32_t i)
{
	static const uint8_t head[] = {0,    0, 0,  0,	0, 0, 2,    0, 0,  0,  0, 1,  8,  0,
				       0x45, 0, 0,  46, 0, 0, 0x40, 0, 64, 17, 0, 0,  10, 0,
				       0,    1, 10, 0,	0, 2, 4,    0, 0,  7,  0, 26, 0,  0};
	static const uint8_t pseudo[] = {0, 17, 0, 26};
	uint16_t sum;

	memcpy(p->data, head, sizeof(head));
	memcpy(p->data, b->mac, 6);
	p->data[35] = (uint8_t)(i % 16);
	memset(p->data + 42, 0x55, PAYLOAD);
	sum = sum_finish(p->data + 14, 20, 0);
	memcpy(p->data + 24, &sum, 2);
	sum = sum_finish(p->data + 34, 26,
			 checksum_add(checksum_add(0, pseudo, 4), p->data + 26, 8));
	memcpy(p->data + 40, &sum, 2);
	p->len = p->total = FRAME;
}

static bool feed(struct bench *b)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = packet_alloc(&b->context->cache, v, PACKET_VECTOR_MAX);

	for (uint32_t i = 0; i < n; i++)
		frame_fill(b, v[i], i);
	return n == PACKET_VECTOR_MAX && mem_port_send(b->port, v, n) == n;
}

static uint32_t drain(struct bench *b)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = mem_port_receive(b->port, v, PACKET_VECTOR_MAX);

	packet_free(&b->context->cache, v, n);
	return n;
}

/* Our side of ARP: whoever is asked for is here. */
static void answer(struct bench *b)
{
	struct packet *p;

	while (mem_port_receive(b->port, &p, 1)) {
		uint8_t mac[6], ip[4];
		uint8_t *arp = p->data + 14;

		memcpy(ip, arp + 24, 4);
		memcpy(mac, p->data + 6, 6);
		memcpy(p->data, mac, 6);
		memcpy(p->data + 6, "\2\0\0\0\0\1", 6);
		arp[7] = 2;
		memcpy(arp + 18, arp + 8, 10);
		memcpy(arp + 8, p->data + 6, 6);
		memcpy(arp + 14, ip, 4);
		mem_port_send(b->port, &p, 1);
	}
}

enum what { MAKE, DROP, RECEIVE, ECHO, WHATS };

static const char *const names[WHATS] = {
	[MAKE] = "made by this benchmark alone",
	[DROP] = "and dropped by a handler",
	[RECEIVE] = "and read from a socket",
	[ECHO] = "and sent back in their frames",
};

static void make_turn(struct bench *b)
{
	struct packet *p[PACKET_VECTOR_MAX];
	uint32_t k = packet_alloc(&b->context->cache, p, PACKET_VECTOR_MAX);

	for (uint32_t i = 0; i < k; i++)
		frame_fill(b, p[i], i);
	packet_free(&b->context->cache, p, k);
}

/* False: nothing came for so long; or, of the next one, not all went back. */
static bool drop_turn(struct bench *b)
{
	struct busy_poll how = {.budget = 64, .prefer = true};
	struct napi *napi = b->port->queue[0].napi;
	int64_t limit = 0;

	b->fed += PACKET_VECTOR_MAX;
	while (counter_read(&napi_counters(napi)->dropped[DROP_HANDLER]) < b->fed) {
		if (!limit)
			limit = clock_now() + PATIENCE;
		napi_busy_loop(napi, b->context, &how, NULL, NULL);
		if (clock_now() > limit)
			return false;
	}
	return true;
}

static bool socket_turn(struct bench *b, bool echo)
{
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	uint32_t done = 0;
	int64_t limit = 0;

	while (done < PACKET_VECTOR_MAX) {
		int n = napi_udp_recv(b->socket, b->context, v, NAPI_UDP_VECTOR_MAX);

		if (n < 0) {
			if (!limit)
				limit = clock_now() + PATIENCE;
			if (clock_now() > limit)
				return false;
			continue;
		}
		done += (uint32_t)n;
		if (!echo)
			napi_udp_release(b->socket, b->context, v, (uint32_t)n);
		else if (napi_udp_send(b->socket, b->context, v, (uint32_t)n) != n)
			return false;
	}
	while (echo && drain(b))
		;
	return true;
}

static int turns(struct bench *b, enum what what, unsigned count, struct error *err)
{
	for (unsigned i = 0; i < count; i++) {
		bool went = true;

		if (what == MAKE) {
			make_turn(b);
			continue;
		}
		if (feed(b))
			went = what == DROP ? drop_turn(b) : socket_turn(b, what == ECHO);
		else
			went = false;
		if (!went)
			return error_set(err, -ETIMEDOUT, "udp: %s: datagrams did not come, or go",
					 names[what]);
	}
	return 0;
}

static int handler_choose(struct bench *b, enum what what, struct error *err)
{
	int rc = engine_handler_set(b->engine, b->port, what == DROP ? b->drop : b->udp, err);

	if (rc || what == DROP)
		return rc;
	/* The port has lost it while another handler had it; the first time it has it yet. */
	rc = udp_address_add(b->udp, b->port, "10.0.0.2/24", err);
	return rc == -EEXIST ? 0 : rc;
}

static int what_measure(const struct bench_plan *plan, struct bench *b, enum what what,
			struct figures *f, struct error *err)
{
	unsigned count = plan->quick ? 200 : 20000;
	int rc = handler_choose(b, what, err);
	int64_t begin;

	if (rc)
		return rc;
	drain(b);
	if (what == ECHO) {
		struct napi_udp_address peer;

		napi_udp_address_parse("10.0.0.1:5", &peer);
		napi_udp_send_copy(b->socket, b->context, "", 1, &peer);
		answer(b);
	}
	rc = turns(b, what, 100, err);
	begin = core_time();
	if (!rc)
		rc = turns(b, what, count, err);
	if (!rc)
		figures_add(f, figures_row(f, names[what], "", ""), "ns_per_packet",
			    (double)(core_time() - begin) / count / PACKET_VECTOR_MAX);
	return rc;
}

static const struct figures_form form = {
	.key = "udp",
	.title = "64-byte datagrams from a mem port to an application and back, all of it in the "
		 "application's\nthread (poller app), 64 at a time.",
	.label = {{"datagrams", "datagrams"}},
	.column = {{"ns_per_packet", "ns/packet", 1}},
};

static int udp_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	int rc = 0;

	for (unsigned i = 0; i < plan->rounds && !rc; i++) {
		struct bench b = {0};

		rc = bench_open(&b, err);
		if (rc)
			return rc;
		for (unsigned k = 0; k < WHATS && !rc; k++) {
			enum what what = bench_turn(i, k, WHATS);

			bench_progress(plan, i * WHATS + k, plan->rounds * WHATS, "udp: %s",
				       names[what]);
			rc = what_measure(plan, &b, what, f, err);
		}
		bench_close(&b);
	}
	return rc;
}

const struct bench_part core_udp = {
	.key = "udp",
	.summary = "datagrams to an application and back",
	.form = &form,
	.run = udp_run,
};

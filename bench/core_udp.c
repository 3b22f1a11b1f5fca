/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a datagram costs from the port to the application, and back, all of it in one thread: the
 * application polls (poller app), so that its CPU time is that of port, NAPI, handler and socket
 * together. 64-byte frames in vectors of 64, whose bytes are in the cache; the mem port's share is
 * in the row of the handler that drops all.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/busy_poll.h>
#include <napier/napier.h>

#include <core/checksum.h>

#include "core.h"

#define PAYLOAD 18
#define FRAME (42 + PAYLOAD)
#define TURNS 20000

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

static void die(const struct error *err)
{
	fprintf(stderr, "core: udp: %s\n", err->text);
	exit(1);
}

static void bench_open(struct bench *b)
{
	struct engine_config config = {.poller = POLLER_APP, .weight = 64};
	struct napi_udp_config wish = {
		.busy_read_set = true, .busy_read = 1000, .budget = 64, .prefer = true};
	/* No interrupt comes in between. */
	struct queue_settings quiet = {.irq_suspend_timeout_set = true,
				       .irq_suspend_timeout = 100 * 1000 * 1000};
	struct port_config port;
	struct napi_udp_address local;
	struct error err;

	if (machine_host_create(&b->machine, &err))
		die(&err);
	config.machine = b->machine;
	if (engine_create(&config, &b->engine, &err) ||
	    engine_queue_set(b->engine, "a", -1, &quiet, NULL, &err) ||
	    port_config_parse("mem:a", &port, &err) ||
	    engine_port_add(b->engine, &port, &b->port, &err) ||
	    udp_handler_create(b->engine, NULL, &b->udp, &err) ||
	    engine_handler_set(b->engine, b->port, b->udp, &err) ||
	    udp_address_add(b->udp, b->port, "10.0.0.2/24", &err) ||
	    napi_udp_open(b->udp, &wish, &b->socket, &err))
		die(&err);
	napi_udp_address_parse("0.0.0.0:7", &local);
	if (napi_udp_bind(b->socket, &local) || drop_handler_create(b->engine, &b->drop) ||
	    engine_context_open(b->engine, &b->context))
		exit(1);
	udp_port_mac(b->udp, b->port, b->mac);
}

static void bench_close(struct bench *b)
{
	napi_udp_close(b->socket);
	engine_context_close(b->context);
	engine_destroy(b->engine);
	machine_destroy(b->machine);
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

static void feed(struct bench *b)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = packet_alloc(&b->context->cache, v, PACKET_VECTOR_MAX);

	for (uint32_t i = 0; i < n; i++)
		frame_fill(b, v[i], i);
	if (mem_port_send(b->port, v, n) != n)
		exit(1);
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

enum what { MAKE, DROP, RECEIVE, ECHO };

static void turn(struct bench *b, enum what what)
{
	struct busy_poll how = {.budget = 64, .prefer = true};
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	struct packet *p[PACKET_VECTOR_MAX];
	uint32_t done = 0;
	int n;

	if (what == MAKE) {
		uint32_t k = packet_alloc(&b->context->cache, p, PACKET_VECTOR_MAX);

		for (uint32_t i = 0; i < k; i++)
			frame_fill(b, p[i], i);
		packet_free(&b->context->cache, p, k);
		return;
	}
	feed(b);
	if (what == DROP) {
		struct napi *napi = b->port->queue[0].napi;

		b->fed += PACKET_VECTOR_MAX;
		while (counter_read(&napi_counters(napi)->dropped[DROP_HANDLER]) < b->fed)
			napi_busy_loop(napi, b->context, &how, NULL, NULL);
		return;
	}
	while (done < PACKET_VECTOR_MAX) {
		n = napi_udp_recv(b->socket, b->context, v, NAPI_UDP_VECTOR_MAX);
		if (n < 0)
			continue;
		done += (uint32_t)n;
		if (what == ECHO)
			napi_udp_send(b->socket, b->context, v, (uint32_t)n);
		else
			napi_udp_release(b->socket, b->context, v, (uint32_t)n);
	}
	while (what == ECHO && drain(b))
		;
}

static void row(struct bench *b, const char *name, enum what what)
{
	double ns[REPEATS];

	engine_handler_set(b->engine, b->port, what == DROP ? b->drop : b->udp, NULL);
	if (what != DROP)
		udp_address_add(b->udp, b->port, "10.0.0.2/24", NULL);
	drain(b);
	if (what == ECHO) {
		struct napi_udp_address peer;

		napi_udp_address_parse("10.0.0.1:5", &peer);
		napi_udp_send_copy(b->socket, b->context, "", 1, &peer);
		answer(b);
	}
	for (int i = 0; i < 100; i++)
		turn(b, what);
	for (int r = 0; r < REPEATS; r++) {
		int64_t begin = cpu_time();

		for (int i = 0; i < TURNS; i++)
			turn(b, what);
		ns[r] = (double)(cpu_time() - begin) / TURNS / PACKET_VECTOR_MAX;
	}
	figures_print(name, ns, "ns/packet");
}

void udp_measure(void)
{
	struct bench b = {0};

	printf("64-byte datagrams, all in the application's thread; median of %d runs (least to "
	       "most)\n",
	       REPEATS);
	bench_open(&b);
	row(&b, "made by this benchmark alone ", MAKE);
	row(&b, "and dropped by a handler     ", DROP);
	row(&b, "and read from a socket       ", RECEIVE);
	row(&b, "and sent back in their frames", ECHO);
	bench_close(&b);
}

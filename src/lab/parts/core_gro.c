/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP segments of 1448 bytes over IPv4 through gro_receive in vectors of 64, with a flush after
 * each as at the end of a poll. Only these two are timed: the frames are made before, and are in
 * the cache as when a device has just written them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/checksum.h>
#include <core/gro.h>

#include "lab/parts/core.h"

#define CIRCLING 512
#define PAYLOAD 1448
#define TRANSPORT 34
#define HEADERS (TRANSPORT + 32)
#define FLOWS_MAX 100000

struct stream {
	struct pool *pool;
	struct context context;
	struct gro *gro;
	struct packet *v[CIRCLING];
	uint32_t payload_sum;
	uint32_t flows, run; /* packets of a flow in a row; 0: any flow each time */
	uint16_t flags;
	uint32_t at;			/* packets so far */
	uint32_t sequence[FLOWS_MAX];	/* in segments */
	uint64_t random, calls, passed; /* what went on */
};

static int stream_open(struct stream *s, struct error *err)
{
	const struct pool_config config = {.frames = CIRCLING, .frame_size = 2048};
	int rc = pool_create(&config, &s->pool, err);

	if (rc)
		return rc;
	if (gro_create(&s->gro)) {
		pool_destroy(s->pool);
		return error_set(err, -ENOMEM, "no memory for GRO");
	}
	s->context.counters = &s->context.own;
	pool_cache_init(&s->context.cache, s->pool);
	for (uint32_t i = 0; i < CIRCLING; i += POOL_BATCH)
		packet_alloc(&s->context.cache, s->v + i, POOL_BATCH);
	for (uint32_t i = 0; i < CIRCLING; i++)
		for (uint32_t k = 0; k < PAYLOAD; k++)
			s->v[i]->data[HEADERS + k] = (uint8_t)(k * 7);
	s->payload_sum = checksum_add(0, s->v[0]->data + HEADERS, PAYLOAD);
	s->random = 88172645463325252u;
	return 0;
}

static void stream_close(struct stream *s)
{
	packet_free(&s->context.cache, s->v, CIRCLING);
	pool_cache_drain(&s->context.cache);
	gro_destroy(s->gro);
	pool_destroy(s->pool);
}

static uint32_t flow_next(struct stream *s)
{
	s->at++;
	if (s->run)
		return s->at / s->run % s->flows;
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)(s->random >> 33) % s->flows;
}

/* The next segment of its flow: all but the payload, which stays. */
static void packet_make(struct stream *s, struct packet *p)
{
	static const uint8_t start[] = {2, 0, 0,    0, 0, 2,	2, 0, 0,    0, 0,  1,
					8, 0, 0x45, 0, 5, 0xdc, 0, 0, 0x40, 0, 64, 6};
	static const uint8_t timestamp[] = {1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0};
	uint32_t flow = flow_next(s), sum;
	uint32_t words[] = {htonl(0x0a000000 + flow), htonl(0x0a800001)};
	uint32_t sequence = htonl(s->sequence[flow]++ * PAYLOAD);
	uint8_t *tcp = p->data + TRANSPORT;
	uint16_t value;

	memset(p->data, 0, HEADERS);
	memcpy(p->data, start, sizeof(start));
	memcpy(p->data + 26, words, sizeof(words));
	value = checksum_finish(checksum_add(0, p->data + 14, 20));
	memcpy(p->data + 24, &value, 2);
	tcp[1] = 80;
	tcp[3] = 81;
	memcpy(tcp + 4, &sequence, 4);
	tcp[12] = 0x80;
	tcp[13] = 0x10;
	memcpy(tcp + 20, timestamp, sizeof(timestamp));
	sum = checksum_add(s->payload_sum, words, sizeof(words));
	sum = checksum_add(sum, tcp, 32) + htons(6) + htons(32 + PAYLOAD);
	value = checksum_finish(sum);
	memcpy(tcp + 16, &value, 2);
	p->len = p->total = HEADERS + PAYLOAD;
	p->next = NULL;
	p->flags = s->flags;
}

static void vector_run(struct stream *s, struct packet **v)
{
	struct packet *out[PACKET_VECTOR_MAX + GRO_HELD_MAX];
	uint32_t n = gro_receive(s->gro, &s->context, GRO_TCP | GRO_UDP, v, PACKET_VECTOR_MAX, out);

	s->passed += n + gro_flush(s->gro, INT64_MAX, out + n, GRO_HELD_MAX);
	s->context.now++;
}

static double round_run(struct stream *s)
{
	int64_t begin;

	for (uint32_t i = 0; i < CIRCLING; i++)
		packet_make(s, s->v[i]);
	begin = core_time();
	for (uint32_t i = 0; i < CIRCLING; i += PACKET_VECTOR_MAX)
		vector_run(s, s->v + i);
	s->calls += CIRCLING;
	return (double)(core_time() - begin) / CIRCLING;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static const struct figures_form form = {
	.key = "gro",
	.title = "GRO itself: TCP segments of 1448 bytes over IPv4 in vectors of 64, and a flush "
		 "after each; their\nchecksum is trusted, as a device has looked at it, or added "
		 "up.",
	.label = {{"checksum", "checksum"}, {"flows", "flows"}, {"order", "order"}},
	.column =
		{
			{"ns_per_packet", "ns/packet", 1},
			{"merged_to_one", "merged to one", 1},
		},
};

static const uint32_t flows[] = {1, 64, 1000, FLOWS_MAX}, runs[] = {1, 4, 16, 0};

/* Of one flow all orders are the same. */
enum { ORDERS = 4, PATTERNS = 1 + 3 * ORDERS, CELLS = 2 * PATTERNS, TIMES = 40 };

static void pattern_measure(struct stream *s, unsigned pattern, bool trusted, unsigned times,
			    struct figures *f)
{
	uint32_t run = runs[pattern ? (pattern - 1) % ORDERS : ORDERS - 1];
	char count[16], order[24];
	struct figures_row *row;
	double ns[TIMES];

	s->flows = flows[pattern ? 1 + (pattern - 1) / ORDERS : 0];
	s->run = run;
	s->flags = trusted ? PACKET_CSUM_VALID : 0;
	s->calls = s->passed = 0;
	for (unsigned k = 0; k < times; k++)
		ns[k] = round_run(s);
	qsort(ns, times, sizeof(*ns), compare);
	snprintf(count, sizeof(count), "%u", s->flows);
	snprintf(order, sizeof(order), run ? "runs of %u" : "at random", run);
	row = figures_row(f, trusted ? "trusted" : "added up", count, order);
	figures_add(f, row, "ns_per_packet", ns[times / 2]);
	figures_add(f, row, "merged_to_one", (double)s->calls / (double)s->passed);
}

static int gro_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct stream *s = calloc(1, sizeof(*s));
	int rc = s ? stream_open(s, err) : error_set(err, -ENOMEM, "no memory for a stream");

	if (rc) {
		free(s);
		return rc;
	}
	for (unsigned i = 0; i < plan->rounds * CELLS; i++) {
		unsigned cell = bench_turn(i / CELLS, i % CELLS, CELLS);

		bench_progress(plan, i, plan->rounds * CELLS, "gro");
		pattern_measure(s, cell % PATTERNS, cell < PATTERNS, plan->quick ? 3 : TIMES, f);
	}
	stream_close(s);
	free(s);
	return 0;
}

const struct bench_part core_gro = {
	.key = "gro",
	.summary = "GRO itself, by flows, order and checksum",
	.form = &form,
	.run = gro_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random streams of many flows, with losses, reordering, duplicates and all that must not merge,
 * through GRO; what comes out is taken apart. Each packet comes out once, byte for byte and with
 * its metadata as it went in; those of a flow in the order in which they came, fragments in that of
 * all flows between their addresses; and what is counted as merged is what was in chains.
 */
#include "test.h"

#include <time.h>

#include <napier/port.h>

#include <core/gro.h>

#include "frames.h"

#define FRAMES 1024
#define FLOWS 48
#define PAIRS 8 /* of addresses */
#define PACKETS 20000
#define SEEDS 40
#define LEN_MAX 1792

/* What went in. */
struct record {
	const struct packet *packet;
	struct packet meta;
	uint8_t bytes[LEN_MAX];
	uint32_t pair, flow; /* flow FLOWS: of any, and not seen which */
	uint64_t in_pair, in_flow;
};

struct stream {
	struct frame_spec next;
	uint64_t in, out; /* packets */
};

struct world {
	struct pool *pool;
	struct context context;
	struct gro *gro;
	uint64_t random;
	struct stream flow[FLOWS];
	struct record record[FRAMES]; /* by the packet's index in the pool */
	uint64_t pair_in[PAIRS];      /* packets */
	uint64_t pair_out[PAIRS];
	uint64_t hidden_in[PAIRS]; /* of them up to the last one without ports */
	uint64_t in, out, merged;
	uint32_t flows; /* of this run */
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (uint32_t)(w->random >> 33) % below;
}

static bool one_in(struct world *w, uint32_t n)
{
	return !draw(w, n);
}

static void flow_begin(struct world *w, uint32_t i)
{
	struct frame_spec *s = &w->flow[i].next;

	*s = (struct frame_spec){
		.version = i & 1 ? 6 : 4,
		.protocol = i & 2 ? 17 : 6,
		.tags = (uint8_t)draw(w, 3),
		.flow = (uint8_t)((i & 1) +
				  2 * draw(w, PAIRS / 2)), /* the version tells pairs apart */
		.source = (uint16_t)(1000 + i),
		.target = 80,
		.sequence = draw(w, UINT32_MAX),
		.flags = 0x10,
		.options = (uint8_t)(12 * draw(w, 2)),
		.id = (uint16_t)draw(w, 65536),
		.df = one_in(w, 2),
		.size = (uint16_t)(1 + draw(w, 1400)),
	};
}

/* A packet that does not follow, or has something odd. */
static void spec_disturb(struct world *w, struct frame_spec *s)
{
	switch (draw(w, 8)) {
	case 0: /* one is lost */
		s->sequence += s->size;
		s->id++;
		break;
	case 1: /* one comes again, or late */
		s->sequence -= s->size * (1 + draw(w, 3));
		break;
	case 2:
		s->flags = (uint8_t)draw(w, 256);
		break;
	case 3:
		s->flags |= 0x08;
		break;
	case 4:
		s->size = (uint16_t)draw(w, 1401);
		break;
	case 5:
		s->ack++;
		break;
	case 6:
		s->id = (uint16_t)draw(w, 65536);
		break;
	default:
		s->options = (uint8_t)(4 * draw(w, 11));
		if (s->size > 1400)
			s->size = 1400;
	}
}

/* Behind the spec: flags, trailers, damage. True: its ports are not to be seen. */
static bool packet_disturb(struct world *w, struct packet *p, const struct frame_spec *s)
{
	uint8_t *ip = p->data + frame_network(s);

	switch (draw(w, 8)) {
	case 0:
		p->flags |= PACKET_CSUM_VALID;
		break;
	case 1:
		p->flags |= PACKET_CSUM_PARTIAL;
		p->csum_start = (uint16_t)frame_transport(s);
		p->csum_offset = s->protocol == 6 ? 16 : 6;
		break;
	case 2:
		p->flags |= PACKET_GSO | PACKET_CSUM_PARTIAL;
		p->gso_size = 10;
		break;
	case 3:
		p->data[p->len - 1 - draw(w, p->len - frame_transport(s) - 4)] ^= 1;
		break;
	case 4:
		memset(p->data + p->len, 0, 6);
		p->len += 6;
		break;
	case 5: /* a fragment */
		if (s->version == 4)
			frame_put16(ip + 6, 0x2000 | draw(w, 100));
		else
			ip[6] = 44;
		return true;
	case 6:
		ip[s->version == 4 ? 1 : 0] ^= 4;
		break;
	default:
		p->data[11] ^= 1;
	}
	return false;
}

static struct packet *packet_next(struct world *w)
{
	uint32_t f = draw(w, w->flows);
	struct stream *stream = &w->flow[f];
	struct frame_spec *s = &stream->next;
	struct frame_spec now;
	struct packet *p;
	struct record *r;
	bool hidden = false;

	assert_int_equal(packet_alloc(&w->context.cache, &p, 1), 1);
	now = *s;
	if (one_in(w, 12))
		spec_disturb(w, &now);
	now.fill = (uint8_t)draw(w, 256);
	p->len = frame_write(&now, p->data);
	p->csum_start = p->csum_offset = p->gso_size = 0;
	p->gso_type = 0;
	p->stamp = w->context.now;
	p->hash = draw(w, 100);
	p->port = (uint16_t)f;
	p->queue = 3;
	if (one_in(w, 12))
		hidden = packet_disturb(w, p, &now);
	p->total = p->len;
	s->sequence = now.sequence + now.size;
	if (!s->df || s->id & 1)
		s->id = (uint16_t)(now.id + 1);
	r = &w->record[p - w->pool->packets];
	r->packet = p;
	r->meta = *p;
	memcpy(r->bytes, p->data, p->len);
	r->pair = s->flow;
	r->flow = hidden ? FLOWS : f;
	r->in_pair = ++w->pair_in[r->pair];
	if (hidden)
		w->hidden_in[r->pair] = r->in_pair;
	else
		r->in_flow = ++stream->in;
	w->in++;
	return p;
}

/* Those that came before the last one without ports, and all before that one. */
static void check_order(struct world *w, const struct record *r)
{
	if (r->flow < FLOWS) {
		assert_int_equal(r->in_flow, ++w->flow[r->flow].out);
	} else {
		for (uint32_t i = 0; i < FRAMES; i++)
			assert_false(w->record[i].packet && w->record[i].pair == r->pair &&
				     w->record[i].in_pair < r->in_pair);
	}
	for (uint32_t i = 0; i < FRAMES && w->hidden_in[r->pair]; i++)
		assert_false(w->record[i].packet && w->record[i].flow == FLOWS &&
			     w->record[i].pair == r->pair && w->record[i].in_pair < r->in_pair);
}

static void check_packet(struct world *w, struct packet *p)
{
	struct record *r = &w->record[p - w->pool->packets];

	assert_ptr_equal(r->packet, p);
	assert_int_equal(p->len, r->meta.len);
	assert_int_equal(p->total, r->meta.total);
	assert_memory_equal(p->data, r->bytes, p->len);
	assert_int_equal(p->flags, r->meta.flags);
	assert_int_equal(p->stamp, r->meta.stamp);
	assert_int_equal(p->hash, r->meta.hash);
	assert_int_equal(p->port, r->meta.port);
	assert_int_equal(p->queue, r->meta.queue);
	if (p->flags & (PACKET_CSUM_PARTIAL | PACKET_GSO)) {
		assert_int_equal(p->csum_start, r->meta.csum_start);
		assert_int_equal(p->csum_offset, r->meta.csum_offset);
	}
	check_order(w, r);
	r->packet = NULL;
	w->out++;
	packet_free(&w->context.cache, &p, 1);
}

/* Takes a chain apart. */
static void check_out(struct world *w, struct packet *p)
{
	uint32_t total = 0, frames = 0;

	if (!(p->flags & PACKET_FRAMES)) {
		assert_null(p->next);
		check_packet(w, p);
		return;
	}
	for (const struct packet *frame = p; frame; frame = frame->next, frames++)
		total += frame->len;
	assert_int_equal(p->total, total);
	assert_in_range(frames, 2, GRO_FRAMES_MAX);
	assert_true(p->flags & PACKET_GSO && p->gso_size);
	w->merged += frames - 1;
	p->flags &= (uint16_t) ~(PACKET_GSO | PACKET_FRAMES);
	p->total = p->len;
	while (p) {
		struct packet *next = p->next;

		p->next = NULL;
		check_packet(w, p);
		p = next;
	}
}

static void world_open(struct world *w, uint64_t seed)
{
	const struct pool_config config = {.frames = FRAMES, .frame_size = 2048};

	memset(w, 0, sizeof(*w));
	w->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	for (int i = 0; i < 8; i++)
		draw(w, 2);
	w->context.counters = &w->context.own;
	assert_int_equal(pool_create(&config, &w->pool, NULL), 0);
	pool_cache_init(&w->context.cache, w->pool);
	assert_int_equal(gro_create(&w->gro), 0);
	w->flows = 1 + draw(w, FLOWS);
	for (uint32_t i = 0; i < FLOWS; i++)
		flow_begin(w, i);
}

static void flush(struct world *w, int64_t before)
{
	struct packet *out[GRO_HELD_MAX];
	uint32_t room = 1 + draw(w, GRO_HELD_MAX);
	uint32_t n;

	do {
		n = gro_flush(w->gro, before, out, room);
		for (uint32_t i = 0; i < n; i++)
			check_out(w, out[i]);
	} while (n == room);
	assert_true(gro_oldest(w->gro) > before || before == INT64_MAX);
}

static void world_close(struct world *w)
{
	flush(w, INT64_MAX);
	assert_int_equal(gro_oldest(w->gro), INT64_MAX);
	assert_int_equal(w->out, w->in);
	assert_int_equal(counter_read(&w->context.own.merged), w->merged);
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_int_equal(w->flow[i].in, w->flow[i].out);
	gro_destroy(w->gro);
	pool_cache_drain(&w->context.cache);
	assert_int_equal(pool_available(w->pool), FRAMES);
	pool_destroy(w->pool);
}

/* Returns how many were merged. */
static uint64_t seed_run(struct world *w, uint64_t seed)
{
	unsigned types = GRO_TCP | GRO_UDP;

	world_open(w, seed);
	while (w->in < PACKETS) {
		struct packet *v[PACKET_VECTOR_MAX], *out[PACKET_VECTOR_MAX + GRO_HELD_MAX];
		uint32_t n = 1 + draw(w, PACKET_VECTOR_MAX);
		uint32_t got;

		for (uint32_t i = 0; i < n; i++)
			v[i] = packet_next(w);
		if (one_in(w, 20))
			types = draw(w, 4);
		got = gro_receive(w->gro, &w->context, types, v, n, out);
		for (uint32_t i = 0; i < got; i++)
			check_out(w, out[i]);
		if (one_in(w, 3))
			flush(w, w->context.now - draw(w, 5));
		w->context.now += draw(w, 3);
	}
	world_close(w);
	return w->merged;
}

static void random_streams(void **state)
{
	struct world *w = malloc(sizeof(*w));
	uint64_t fresh = (uint64_t)time(NULL), merged = 0;

	(void)state;
	assert_non_null(w);
	printf("seeds 1 to %d and %llu\n", SEEDS, (unsigned long long)fresh);
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		merged += seed_run(w, seed);
	merged += seed_run(w, fresh);
	printf("%llu of %d merged\n", (unsigned long long)merged, (SEEDS + 1) * PACKETS);
	assert_true(merged > PACKETS); /* else nothing was looked at */
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_streams)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of any kind through GRO, in vectors and with flushes as the input says. What comes out is
 * taken apart in two ways: unlinked, each frame comes out once, as it went in, those of a flow in
 * order; and made one packet and segmented, a chain gives the same bytes.
 */
#include <linux/virtio_net.h>
#include <string.h>

#include <core/frames.h>
#include <core/gro.h>
#include <core/segment.h>

#include "frame.h"
#include "fuzz.h"

#define FRAMES 256
#define PACKETS 32 /* an input */
#define REPEATS_MAX 7
#define LEN_MAX 400

static struct pool *pool;
static struct context context;
static struct gro *gro;

/* What went in, in order. */
struct record {
	const struct packet *packet; /* NULL: it has come out */
	struct packet meta;
	struct frame_facts facts;
	uint16_t port; /* of an honest TCP or UDP packet */
	uint8_t bytes[LEN_MAX];
};

static struct record record[PACKETS];
static uint32_t records, out_packets, out_merged;

static void start(void)
{
	const struct pool_config config = {.frames = FRAMES, .frame_size = 2048};

	ALWAYS(!pool_create(&config, &pool, NULL));
	context.counters = &context.own;
	pool_cache_init(&context.cache, pool);
	ALWAYS(!gro_create(&gro));
}

/* Its addresses, as a number. */
static uint32_t pair_of(const struct record *r)
{
	return r->facts.version * 16u + r->facts.flow;
}

static bool has_ports(const struct record *r)
{
	return r->facts.protocol == 6 || r->facts.protocol == 17;
}

/* It has no ports, and that is to be seen: not only behind headers that nobody knows. */
static bool fragment_seen(const struct record *r)
{
	return r->facts.fragment && !r->facts.tunnel &&
	       (r->facts.version == 4 || r->facts.extensions == 1);
}

static bool ports_seen(const struct record *r)
{
	return !r->facts.fragment && !r->facts.hidden && r->facts.extensions <= 8;
}

/* Whether a has to come out before b, which came later. Only of what is sure. */
static bool precedes(const struct record *a, const struct record *b)
{
	if (!a->facts.honest || !b->facts.honest || !a->facts.version || pair_of(a) != pair_of(b))
		return false;
	if (a->facts.tags > 2 || b->facts.tags > 2 || !has_ports(a) || !has_ports(b))
		return false;
	if (fragment_seen(a))
		return fragment_seen(b) || ports_seen(b);
	if (fragment_seen(b))
		return ports_seen(a);
	return ports_seen(a) && ports_seen(b) && a->facts.protocol == b->facts.protocol &&
	       a->port == b->port;
}

static void out_check(struct packet *p)
{
	struct record *r = record;

	while (r < record + records && r->packet != p)
		r++;
	ALWAYS(r < record + records);
	ALWAYS(!p->next && p->len == r->meta.len && p->total == r->meta.total);
	ALWAYS(!memcmp(p->data, r->bytes, p->len));
	ALWAYS(p->flags == r->meta.flags && p->stamp == r->meta.stamp && p->port == r->meta.port);
	for (const struct record *before = record; before < r; before++)
		ALWAYS(!before->packet || !precedes(before, r));
	r->packet = NULL;
	out_packets++;
	packet_free(&context.cache, &p, 1);
}

/* Where it was computed, the checksum is the same as well; and ids, unless all had the same. */
static void segment_check(struct packet *segment, const struct packet *frame,
			  const struct packet *chain)
{
	uint8_t *copy = segment->data, *network = copy + chain->csum_start - 20;
	uint32_t field = (uint32_t)chain->csum_start + chain->csum_offset;
	bool ipv4 = chain->gso_type != VIRTIO_NET_HDR_GSO_TCPV6 && network[-2] == 8 && !network[-1];

	ALWAYS(segment->len == frame->len);
	if (ipv4 && network[6] & 0x40) {
		memcpy(network + 4, frame->data + (network - copy) + 4, 2);
		memcpy(network + 10, frame->data + (network - copy) + 10, 2);
	}
	if (frame->flags & (PACKET_CSUM_VALID | PACKET_CSUM_PARTIAL))
		memcpy(copy + field, frame->data + field, 2);
	ALWAYS(!memcmp(copy, frame->data, frame->len));
}

/* Made one packet with one header, as for a TAP, and segmented. */
static void segmented_check(const struct packet *chain)
{
	struct packet *p = packet_clone(&context.cache, chain), *v[PACKET_VECTOR_MAX];
	const struct packet *frame = chain;
	uint32_t n;

	ALWAYS(p);
	if (!frames_join(p)) {
		/* Only because there are no checksums. */
		ALWAYS(chain->csum_offset == 6 && !chain->data[chain->csum_start + 6] &&
		       !chain->data[chain->csum_start + 7]);
		packet_free(&context.cache, &p, 1);
		return;
	}
	n = segment_packet(&context, &p, v, PACKET_VECTOR_MAX);
	ALWAYS(!p);
	for (uint32_t i = 0; i < n; i++, frame = frame->next) {
		ALWAYS(frame);
		segment_check(v[i], frame, chain);
	}
	ALWAYS(!frame);
	packet_free(&context.cache, v, n);
}

static void chain_check(struct packet *p)
{
	uint32_t total = 0, frames = 0;

	for (const struct packet *frame = p; frame; frame = frame->next, frames++) {
		ALWAYS(frame == p || frame->total == frame->len);
		total += frame->len;
	}
	ALWAYS(p->flags & PACKET_GSO && p->total == total);
	ALWAYS(frames >= 2 && frames <= GRO_FRAMES_MAX);
	segmented_check(p);
	out_merged += frames - 1;
	p->flags &= (uint16_t) ~(PACKET_GSO | PACKET_FRAMES);
	p->total = p->len;
	while (p) {
		struct packet *next = p->next;

		p->next = NULL;
		out_check(p);
		p = next;
	}
}

static void vector_check(struct packet **out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (out[i]->flags & PACKET_FRAMES)
			chain_check(out[i]);
		else
			out_check(out[i]);
	}
}

/* One that is too long for its frame is nothing. */
static struct packet *packet_make(struct input *in, struct frame_flows *flows, uint32_t how)
{
	static uint8_t frame[FRAME_ROOM];
	struct record *r = &record[records];
	uint32_t len = frame_make(in, flows, frame, &r->facts);
	struct packet *p;

	if (len > LEN_MAX)
		return NULL;
	ALWAYS(packet_alloc(&context.cache, &p, 1) == 1);
	memcpy(p->data, frame, len);
	p->len = p->total = len;
	p->stamp = records;
	p->port = (uint16_t)records;
	p->flags = (how & 1 ? PACKET_CSUM_VALID : 0) | (how & 2 ? PACKET_CSUM_PARTIAL : 0);
	p->csum_start = (uint16_t)r->facts.transport;
	p->csum_offset = r->facts.protocol == 6 ? 16 : 6;
	p->gso_type = 0;
	p->gso_size = 0;
	if ((how & 7) == 7)
		p->flags |= PACKET_GSO;
	r->packet = p;
	r->meta = *p;
	r->port = 0;
	if (r->facts.honest && r->facts.transport && !r->facts.fragment)
		r->port = (uint16_t)(frame[r->facts.transport + 2] << 8 |
				     frame[r->facts.transport + 3]);
	memcpy(r->bytes, frame, len);
	records++;
	return p;
}

static void flush(int64_t before, uint32_t room)
{
	struct packet *out[PACKET_VECTOR_MAX];
	uint32_t n;

	do {
		n = gro_flush(gro, before, out, room);
		ALWAYS(n <= room);
		vector_check(out, n);
	} while (n == room);
	ALWAYS(gro_oldest(gro) > before || before == INT64_MAX);
}

static void receive(struct packet **v, uint32_t n, unsigned types)
{
	struct packet *out[PACKET_VECTOR_MAX + GRO_HELD_MAX];

	vector_check(out, gro_receive(gro, &context, types, v, n, out));
	context.now++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t merged = counter_read(&context.own.merged);
	struct frame_flows flows = {0};
	struct input in = {data, data + size};
	struct packet *v[PACKET_VECTOR_MAX];
	unsigned types = GRO_TCP | GRO_UDP;
	uint32_t n = 0;

	if (!gro)
		start();
	records = out_packets = out_merged = 0;
	context.now = 0;
	while (input_left(&in) && records < PACKETS) {
		uint8_t choice = input_byte(&in), more = input_byte(&in);
		const struct input recipe = in;

		/* The same recipe many times over: packets that follow on one another. */
		for (uint32_t i = 0; i <= (more & REPEATS_MAX) && records < PACKETS; i++) {
			in = recipe;
			v[n] = packet_make(&in, &flows, choice >> 2);
			n += v[n] != NULL;
			if (n == PACKET_VECTOR_MAX || (n && choice & 1)) {
				receive(v, n, types);
				n = 0;
			}
		}
		if (more & 0x20)
			types = more >> 6;
		if (choice & 2)
			flush(context.now - 1 - (choice >> 6), 1 + (more >> 6));
	}
	receive(v, n, types);
	flush(INT64_MAX, PACKET_VECTOR_MAX);
	ALWAYS(out_packets == records);
	ALWAYS(counter_read(&context.own.merged) - merged == out_merged);
	pool_cache_drain(&context.cache);
	ALWAYS(pool_available(pool) == FRAMES);
	return 0;
}

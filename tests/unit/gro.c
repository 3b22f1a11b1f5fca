/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of core/gro.h one by one, each beside what merges without it; bounds, ages, order. */
#include "pool_context.h"

#include <linux/virtio_net.h>

#include <napier/port.h>

#include <core/gro.h>

#include "frames.h"

#define GSO_UDP_L4 5
#define FRAMES 256
#define ALL (GRO_TCP | GRO_UDP)

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, PSH = 0x08, ACK = 0x10, URG = 0x20, ECE = 0x40 };

static struct gro *gro;

static int begin(void **state)
{
	(void)state;
	pool_context_begin(FRAMES);
	assert_int_equal(gro_create(&gro), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_int_equal(gro_oldest(gro), INT64_MAX);
	gro_destroy(gro);
	pool_context_end();
	return 0;
}

static uint64_t merged(void)
{
	return counter_read(&context.own.merged);
}

static struct packet *packet_new(void)
{
	struct packet *p;

	assert_int_equal(packet_alloc(&context.cache, &p, 1), 1);
	p->hash = 0;
	p->gso_size = p->gso_type = 0;
	p->csum_start = p->csum_offset = 0;
	return p;
}

static struct packet *packet_of(const struct frame_spec *s)
{
	struct packet *p = packet_new();

	p->len = p->total = frame_write(s, p->data);
	return p;
}

static struct frame_spec tcp(uint8_t version, uint32_t at, uint16_t size)
{
	return (struct frame_spec){
		.version = version,
		.protocol = 6,
		.source = 80,
		.target = 4000,
		.sequence = 0xfffffff0u + at,
		.ack = 77,
		.flags = ACK,
		.options = 12,
		.size = size,
		.fill = (uint8_t)at,
		.df = true,
	};
}

static struct frame_spec udp(uint8_t version, uint16_t id, uint16_t size)
{
	return (struct frame_spec){
		.version = version,
		.protocol = 17,
		.source = 53,
		.target = 4000,
		.size = size,
		.id = id,
		.fill = (uint8_t)id,
	};
}

static uint32_t receive(unsigned types, struct packet **v, uint32_t n, struct packet **out)
{
	return gro_receive(gro, &context, types, v, n, out);
}

static void discard(struct packet **v, uint32_t n)
{
	packet_free(&context.cache, v, n);
}

/* It went through as it came. */
static void check_alone(const struct packet *p, uint16_t flags)
{
	assert_null(p->next);
	assert_int_equal(p->total, p->len);
	assert_int_equal(p->flags, flags);
	assert_int_equal(p->gso_size, 0);
}

/* What is changed in a frame of a pair; more than one byte by more changes. */
enum base { NOTHING, ETHERNET, NETWORK, TRANSPORT, BEHIND, CHECKSUM };

struct change {
	enum base base;
	uint32_t at;
	uint8_t bits; /* turned over */
};

enum kind { TCP4 = 1, TCP6 = 2, UDP4 = 4, UDP6 = 8, V4 = 5, V6 = 10, T = 3, U = 12, EACH = 15 };

struct rule {
	const char *name;
	unsigned kinds; /* enum kind */
	bool merges;
	struct change first[2], second[2];
};

/*
 * Places are those of the RFCs: in IPv4 1 TOS, 4 id, 6 DF, 8 TTL; in IPv6 0 class and label, 7 hop
 * limit; in TCP 4 sequence, 8 acknowledgement, 12 length, 13 flags, 14 window, 20 options; in UDP 4
 * length. CHECKSUM is the transport's, changed after it has been made right.
 */
static const struct rule rules[] = {
	{"as they come", EACH, true},
	{"destination MAC", EACH, false, .second = {{ETHERNET, 5, 1}}},
	{"source MAC", EACH, false, .second = {{ETHERNET, 11, 1}}},
	{"destination MAC of both", EACH, true, {{ETHERNET, 5, 1}}, {{ETHERNET, 5, 1}}},
	{"a group address", EACH, false, .second = {{ETHERNET, 0, 1}}},

	{"TOS", V4, false, .second = {{NETWORK, 1, 0x20}}},
	{"TOS of both", V4, true, {{NETWORK, 1, 0x20}}, {{NETWORK, 1, 0x20}}},
	{"congestion experienced", V4, false, {{NETWORK, 1, 2}}, {{NETWORK, 1, 3}}},
	{"class", V6, false, .second = {{NETWORK, 0, 0x02}}},
	{"class of both", V6, true, {{NETWORK, 0, 0x02}}, {{NETWORK, 0, 0x02}}},
	{"congestion experienced", V6, false, {{NETWORK, 1, 0x20}}, {{NETWORK, 1, 0x30}}},
	{"flow label", V6, false, .second = {{NETWORK, 3, 1}}},
	{"TTL", V4, false, .second = {{NETWORK, 8, 1}}},
	{"TTL of both", V4, true, {{NETWORK, 8, 1}}, {{NETWORK, 8, 1}}},
	{"hop limit", V6, false, .second = {{NETWORK, 7, 1}}},
	{"hop limit of both", V6, true, {{NETWORK, 7, 1}}, {{NETWORK, 7, 1}}},
	{"DF of one", V4, false, .second = {{NETWORK, 6, 0x40}}},
	{"DF of both", V4, true, {{NETWORK, 6, 0x40}}, {{NETWORK, 6, 0x40}}},
	{"reserved bit", V4, false, {{NETWORK, 6, 0x80}}, {{NETWORK, 6, 0x80}}},
	{"IPv4 header checksum", V4, false, .second = {{NETWORK, 10, 1}}},
	{"IPv4 header checksum", V4, false, .first = {{NETWORK, 11, 1}}},
	{"source address", V4, false, .second = {{NETWORK, 15, 1}}},
	{"destination address", V4, false, .second = {{NETWORK, 19, 1}}},
	{"source address", V6, false, .second = {{NETWORK, 15, 1}}},
	{"source address", V6, false, .second = {{NETWORK, 23, 1}}},
	{"destination address", V6, false, .second = {{NETWORK, 24, 1}}},
	{"destination address", V6, false, .second = {{NETWORK, 39, 1}}},
	{"addresses of both", V4, true, {{NETWORK, 15, 9}}, {{NETWORK, 15, 9}}},
	{"addresses of both", V6, true, {{NETWORK, 15, 9}}, {{NETWORK, 15, 9}}},
	{"source port", EACH, false, .second = {{TRANSPORT, 1, 1}}},
	{"destination port", EACH, false, .second = {{TRANSPORT, 3, 1}}},
	{"ports of both", EACH, true, {{TRANSPORT, 3, 1}}, {{TRANSPORT, 3, 1}}},

	{"sequence too high", T, false, .second = {{TRANSPORT, 5, 1}}},
	{"sequence off by one", T, false, .second = {{TRANSPORT, 7, 1}}},
	{"acknowledgement", T, false, .second = {{TRANSPORT, 11, 1}}},
	{"acknowledgement of both", T, true, {{TRANSPORT, 11, 1}}, {{TRANSPORT, 11, 1}}},
	{"window", T, false, .second = {{TRANSPORT, 15, 1}}},
	{"window of both", T, true, {{TRANSPORT, 14, 1}}, {{TRANSPORT, 14, 1}}},
	{"urgent pointer", T, false, .second = {{TRANSPORT, 19, 1}}},
	{"urgent pointer of both", T, true, {{TRANSPORT, 19, 1}}, {{TRANSPORT, 19, 1}}},
	{"kind of an option", T, false, .second = {{TRANSPORT, 20, 1}}},
	{"time stamp", T, false, .second = {{TRANSPORT, 27, 1}}},
	{"time stamp echo", T, false, .second = {{TRANSPORT, 31, 1}}},
	{"time stamp of both", T, true, {{TRANSPORT, 27, 1}}, {{TRANSPORT, 27, 1}}},
	{"PSH in the second", T, true, .second = {{TRANSPORT, 13, PSH}}},
	{"PSH in the first", T, false, .first = {{TRANSPORT, 13, PSH}}},
	{"FIN in the second", T, true, .second = {{TRANSPORT, 13, FIN}}},
	{"FIN in the first", T, false, .first = {{TRANSPORT, 13, FIN}}},
	{"PSH and FIN", T, true, .second = {{TRANSPORT, 13, PSH | FIN}}},
	{"no ACK in one", T, false, .second = {{TRANSPORT, 13, ACK}}},
	{"no ACK in both", T, false, {{TRANSPORT, 13, ACK}}, {{TRANSPORT, 13, ACK}}},
	{"SYN", T, false, {{TRANSPORT, 13, SYN}}, {{TRANSPORT, 13, SYN}}},
	{"RST", T, false, {{TRANSPORT, 13, RST}}, {{TRANSPORT, 13, RST}}},
	{"URG", T, false, {{TRANSPORT, 13, URG}}, {{TRANSPORT, 13, URG}}},
	{"ECE", T, false, {{TRANSPORT, 13, ECE}}, {{TRANSPORT, 13, ECE}}},
	{"CWR in the first", T, false, .first = {{TRANSPORT, 13, 0x80}}},
	{"CWR in the second", T, false, .second = {{TRANSPORT, 13, 0x80}}},
	{"accurate ECN's bit", T, false, {{TRANSPORT, 12, 1}}, {{TRANSPORT, 12, 1}}},
	{"a reserved bit", T, false, {{TRANSPORT, 12, 8}}, {{TRANSPORT, 12, 8}}},
	{"header length below 20", T, false, {{TRANSPORT, 12, 0xc0}}, {{TRANSPORT, 12, 0xc0}}},
	{"header longer than it all", T, false, .second = {{TRANSPORT, 12, 0x70}}},

	{"UDP length below", U, false, .second = {{TRANSPORT, 5, 4}}},
	{"UDP length beyond", U, false, .second = {{TRANSPORT, 4, 1}}},
	{"UDP length of both", U, false, {{TRANSPORT, 5, 4}}, {{TRANSPORT, 5, 4}}},

	{"checksum of the second", EACH, false, .second = {{CHECKSUM, 1, 1}}},
	{"checksum of the first", EACH, false, .first = {{CHECKSUM, 1, 1}}},
	{"last byte damaged", EACH, false, .second = {{BEHIND, 1, 0x10}}},
	{"first byte damaged", EACH, false, .first = {{ETHERNET, 0, 0}, {CHECKSUM, 8, 1}}},
};

static struct frame_spec spec_of(enum kind kind, uint32_t i, uint8_t tags)
{
	uint8_t version = kind & V4 ? 4 : 6;
	struct frame_spec s =
		kind & T ? tcp(version, i * 100, 100) : udp(version, (uint16_t)(7 + i), 100);

	s.tags = tags;
	s.id = (uint16_t)(0xffff + i);
	s.df = false;
	return s;
}

static bool late(const struct change *c, const struct frame_spec *s)
{
	/* What would be made right again by computing the checksums. */
	return c->base == CHECKSUM || c->base == BEHIND ||
	       (c->base == NETWORK && s->version == 4 && c->at / 2 == 5);
}

static uint8_t *change_at(const struct change *c, const struct frame_spec *s, struct packet *p)
{
	switch (c->base) {
	case ETHERNET:
		return p->data + c->at;
	case NETWORK:
		return p->data + frame_network(s) + c->at;
	case TRANSPORT:
		return p->data + frame_transport(s) + c->at;
	case CHECKSUM:
		return p->data + frame_transport(s) + (s->protocol == 6 ? 16 : 6) + c->at;
	default:
		return p->data + p->len - c->at;
	}
}

static struct packet *packet_changed(const struct frame_spec *s, const struct change changes[2])
{
	struct packet *p = packet_of(s);

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < 2; i++)
			if (changes[i].base && late(&changes[i], s) == pass)
				*change_at(&changes[i], s, p) ^= changes[i].bits;
		if (!pass)
			frame_checksums(s, p->data, p->len);
	}
	return p;
}

static uint8_t type_of(const struct frame_spec *s)
{
	if (s->protocol == 17)
		return GSO_UDP_L4;
	return s->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6;
}

/* Two packets as one. */
static void check_pair(struct packet *p, const struct packet *a, const struct packet *b,
		       const struct frame_spec *s)
{
	assert_ptr_equal(p, a);
	assert_ptr_equal(p->next, b);
	assert_null(b->next);
	assert_int_equal(p->flags, PACKET_GSO | PACKET_FRAMES);
	assert_int_equal(b->flags, 0);
	assert_int_equal(p->total, a->len + b->len);
	assert_int_equal(b->total, b->len);
	assert_int_equal(p->gso_size, s->size);
	assert_int_equal(p->gso_type, type_of(s));
	assert_int_equal(p->csum_start, frame_transport(s));
	assert_int_equal(p->csum_offset, s->protocol == 6 ? 16 : 6);
}

/* What goes in comes out, byte for byte, as one or as two in order. */
static void check_rule(const struct rule *rule, enum kind kind, uint8_t tags)
{
	struct frame_spec s[2] = {spec_of(kind, 0, tags), spec_of(kind, 1, tags)};
	struct packet *v[2] = {packet_changed(&s[0], rule->first),
			       packet_changed(&s[1], rule->second)};
	struct packet *out[2 + GRO_HELD_MAX];
	uint8_t bytes[2][2048];
	uint64_t before = merged();
	uint32_t n;

	for (int i = 0; i < 2; i++)
		memcpy(bytes[i], v[i]->data, v[i]->len);
	n = receive(ALL, v, 2, out);
	n += gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX);
	if (n != 2u - rule->merges || merged() - before != rule->merges)
		fail_msg("%s, kind %d, tags %u: %u packets", rule->name, kind, tags, n);
	if (rule->merges) {
		check_pair(out[0], v[0], v[1], &s[0]);
	} else {
		for (int i = 0; i < 2; i++) {
			assert_ptr_equal(out[i], v[i]);
			check_alone(out[i], 0);
		}
	}
	for (int i = 0; i < 2; i++)
		assert_memory_equal(bytes[i], v[i]->data, v[i]->len);
	discard(out, n);
}

static void pairs(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		for (unsigned kind = TCP4; kind <= UDP6; kind *= 2)
			for (uint8_t tags = 0; tags <= 2 && rules[i].kinds & kind; tags++)
				check_rule(&rules[i], (enum kind)kind, tags);
}

static void tags_equal(void **state)
{
	static const struct rule priority = {"tag", EACH, false, .second = {{ETHERNET, 14, 0x20}}};
	static const struct rule vid = {"tag", EACH, false, .second = {{ETHERNET, 15, 1}}};
	static const struct rule inner = {"inner tag", EACH, false, .second = {{ETHERNET, 19, 1}}};
	static const struct rule both = {
		"tags", EACH, true, {{ETHERNET, 15, 1}}, {{ETHERNET, 15, 1}}};

	(void)state;
	for (unsigned kind = TCP4; kind <= UDP6; kind *= 2) {
		check_rule(&priority, (enum kind)kind, 1);
		check_rule(&vid, (enum kind)kind, 1);
		check_rule(&vid, (enum kind)kind, 2);
		check_rule(&inner, (enum kind)kind, 2);
		check_rule(&both, (enum kind)kind, 1);
		check_rule(&both, (enum kind)kind, 2);
	}
}

/* Sends packets made of these; returns how many went on, at once and at the flush, into out. */
static uint32_t run(const struct frame_spec *s, uint32_t n, struct packet **out, uint32_t *at_once)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t got;

	for (uint32_t i = 0; i < n; i++)
		v[i] = packet_of(&s[i]);
	got = receive(ALL, v, n, out);
	if (at_once)
		*at_once = got;
	return got + gro_flush(gro, INT64_MAX, out + got, GRO_HELD_MAX);
}

static uint32_t frames(const struct packet *p)
{
	uint32_t n = 0;

	for (; p; p = p->next)
		n++;
	return n;
}

/* Three packets with these IPv4 ids: into chains of how many. */
static void check_ids(bool df, uint16_t a, uint16_t b, uint16_t c, uint32_t first, uint32_t second)
{
	struct frame_spec s[3];
	struct packet *out[3 + GRO_HELD_MAX];
	const uint16_t id[3] = {a, b, c};
	uint32_t n;

	for (uint32_t i = 0; i < 3; i++) {
		s[i] = tcp(4, 100 * i, 100);
		s[i].id = id[i];
		s[i].df = df;
	}
	n = run(s, 3, out, NULL);
	assert_int_equal(frames(out[0]), first);
	assert_int_equal(n > 1 ? frames(out[1]) : 0, second);
	discard(out, n);
}

static void ipv4_ids(void **state)
{
	(void)state;
	check_ids(false, 5, 6, 7, 3, 0);
	check_ids(false, 0xffff, 0, 1, 3, 0);
	check_ids(false, 5, 5, 5, 1, 1);
	check_ids(false, 5, 6, 6, 2, 1);
	check_ids(false, 5, 7, 8, 1, 2);
	check_ids(false, 6, 5, 6, 1, 2);
	check_ids(false, 5, 6, 8, 2, 1);
	check_ids(true, 5, 6, 7, 3, 0);
	check_ids(true, 5, 5, 5, 3, 0);
	check_ids(true, 0, 0, 0, 3, 0);
	/* The second decides. */
	check_ids(true, 5, 5, 6, 2, 1);
	check_ids(true, 5, 6, 6, 2, 1);
	check_ids(true, 5, 7, 7, 1, 2);
	check_ids(true, 5, 5, 7, 2, 1);
}

static void sizes(void **state)
{
	struct packet *out[4 + GRO_HELD_MAX];
	struct frame_spec s[4];
	uint32_t at_once;

	(void)state;
	for (int udp_too = 0; udp_too < 2; udp_too++) {
		for (uint16_t i = 0; i < 4; i++)
			s[i] = udp_too ? udp(6, i, 100) : tcp(6, 100u * i, 100);
		/* A shorter one is the last, and goes at once; what follows begins again. */
		s[1].size = 99;
		s[2].sequence = s[3].sequence = s[1].sequence + 99;
		s[3].sequence += 100;
		assert_int_equal(run(s, 4, out, &at_once), 2);
		assert_int_equal(at_once, 1);
		assert_int_equal(frames(out[0]), 2);
		assert_int_equal(out[0]->gso_size, 100);
		assert_int_equal(frames(out[1]), 2);
		discard(out, 2);
		/* A longer one begins again. */
		s[1].size = 101;
		assert_int_equal(run(s, 2, out, &at_once), 2);
		assert_int_equal(at_once, 1);
		check_alone(out[0], 0);
		check_alone(out[1], 0);
		discard(out, 2);
		/* Without payload it is passed on, behind what was held. */
		s[1].size = 0;
		assert_int_equal(run(s, 2, out, &at_once), 2);
		assert_int_equal(at_once, 2);
		assert_int_equal(out[0]->len, out[1]->len + 100);
		discard(out, 2);
		/* Of one byte each. */
		s[0].size = s[1].size = 1;
		s[1].sequence = s[0].sequence + 1;
		assert_int_equal(run(s, 2, out, NULL), 1);
		assert_int_equal(frames(out[0]), 2);
		discard(out, 1);
	}
}

/* What ends a chain goes on at once; a packet that could only end one does, too. */
static void push_goes_at_once(void **state)
{
	struct packet *out[3 + GRO_HELD_MAX];
	struct frame_spec s[3] = {tcp(4, 0, 100), tcp(4, 100, 100), tcp(4, 200, 100)};
	uint32_t at_once;

	(void)state;
	s[1].flags |= PSH;
	assert_int_equal(run(s, 3, out, &at_once), 2);
	assert_int_equal(at_once, 1);
	assert_int_equal(frames(out[0]), 2);
	discard(out, 2);
	s[0].flags |= PSH;
	assert_int_equal(run(s, 1, out, &at_once), 1);
	assert_int_equal(at_once, 1);
	discard(out, 1);
}

static void bounded(void **state)
{
	struct packet *out[PACKET_VECTOR_MAX + GRO_HELD_MAX];
	struct frame_spec s[PACKET_VECTOR_MAX];
	uint32_t at_once, n, bytes;

	(void)state;
	for (uint32_t i = 0; i < PACKET_VECTOR_MAX; i++)
		s[i] = tcp(4, 1448 * i, 1448);
	n = run(s, PACKET_VECTOR_MAX, out, &at_once);
	assert_int_equal(n, 2);
	assert_int_equal(at_once, 1); /* a full one does not wait */
	assert_int_equal(frames(out[0]), 45);
	bytes = 20 + 32 + 45 * 1448;
	assert_in_range(bytes, 65535 - 1447, 65535);
	assert_int_equal(frames(out[1]), 64 - 45);
	discard(out, n);

	/* 65535 bytes bind first. */
	for (uint32_t i = 0; i < PACKET_VECTOR_MAX; i++)
		s[i] = udp(4, (uint16_t)i, 1700);
	n = run(s, PACKET_VECTOR_MAX, out, &at_once);
	assert_int_equal(n, 2);
	assert_int_equal(frames(out[0]), (65535 - 28) / 1700);
	discard(out, n);

	/* The number of frames does. */
	for (uint32_t i = 0; i < PACKET_VECTOR_MAX; i++)
		s[i] = udp(6, 0, 10);
	n = run(s, PACKET_VECTOR_MAX, out, &at_once);
	assert_int_equal(n, 2);
	assert_int_equal(frames(out[0]), GRO_FRAMES_MAX);
	discard(out, n);
}

static void udp_without_checksum(void **state)
{
	struct frame_spec s[2] = {udp(4, 1, 100), udp(4, 2, 100)};
	struct packet *v[2], *out[2 + GRO_HELD_MAX];
	uint32_t n;

	(void)state;
	for (int none = 0; none < 4; none++) {
		for (int i = 0; i < 2; i++) {
			v[i] = packet_of(&s[i]);
			if (none >> i & 1)
				memset(v[i]->data + frame_transport(&s[i]) + 6, 0, 2);
		}
		n = receive(ALL, v, 2, out);
		n += gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX);
		assert_int_equal(n, none == 0 || none == 3 ? 1 : 2);
		discard(out, n);
	}
	/* In IPv6 it is not allowed: nothing is begun with such a one either. */
	s[0] = udp(6, 1, 100);
	v[0] = packet_of(&s[0]);
	memset(v[0]->data + frame_transport(&s[0]) + 6, 0, 2);
	assert_int_equal(receive(ALL, v, 1, out), 1);
	discard(out, 1);
}

/* With wrong bytes in it, to see whether it is computed. */
static struct packet *packet_wrong(const struct frame_spec *s, uint16_t flags)
{
	struct packet *p = packet_of(s);

	p->data[frame_transport(s) + (s->protocol == 6 ? 16 : 6)] ^= 0x55;
	p->flags = flags;
	if (flags & PACKET_CSUM_PARTIAL) {
		p->csum_start = (uint16_t)frame_transport(s);
		p->csum_offset = s->protocol == 6 ? 16 : 6;
	}
	return p;
}

static void checksums_trusted(void **state)
{
	struct frame_spec s[2] = {tcp(4, 0, 100), tcp(4, 100, 100)};
	static const uint16_t flags[] = {PACKET_CSUM_VALID, PACKET_CSUM_PARTIAL};
	struct packet *v[2], *out[2 + GRO_HELD_MAX];

	(void)state;
	for (int i = 0; i < 4; i++) {
		v[0] = packet_wrong(&s[0], flags[i & 1]);
		v[1] = packet_wrong(&s[1], flags[i >> 1]);
		assert_int_equal(receive(ALL, v, 2, out), 0);
		assert_int_equal(gro_flush(gro, INT64_MAX, out, 1), 1);
		assert_int_equal(out[0]->flags, flags[i & 1] | PACKET_GSO | PACKET_FRAMES);
		assert_int_equal(out[0]->next->flags, flags[i >> 1]);
		discard(out, 1);
	}
	/* PARTIAL of another place, as of a tunnel, is not what is meant. */
	for (int i = 0; i < 4; i++) {
		v[0] = packet_wrong(&s[0], PACKET_CSUM_PARTIAL);
		v[1] = packet_wrong(&s[1], PACKET_CSUM_PARTIAL);
		if (i & 2)
			v[i & 1]->csum_offset = 6;
		else
			v[i & 1]->csum_start += 2;
		assert_int_equal(receive(ALL, v, 2, out) + gro_flush(gro, INT64_MAX, out, 2), 2);
		check_alone(v[0], PACKET_CSUM_PARTIAL);
		check_alone(v[1], PACKET_CSUM_PARTIAL);
		discard(v, 2);
	}
}

/* A header that says that it is shorter than a header is none, whatever follows from it. */
static void tcp_header_too_short(void **state)
{
	struct frame_spec s[2] = {tcp(4, 0, 100), tcp(4, 116 + 12, 100)};
	struct packet *v[2], *out[2 + GRO_HELD_MAX];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		v[i] = packet_of(&s[i]);
		v[i]->data[frame_transport(&s[i]) + 12] = 0x40;
		frame_checksums(&s[i], v[i]->data, v[i]->len);
	}
	assert_int_equal(receive(ALL, v, 2, out), 2);
	discard(out, 2);
}

/* Two flows, though their addresses and ports are the same. */
static void protocols_are_apart(void **state)
{
	struct frame_spec s[2] = {tcp(4, 0, 100), udp(4, 0, 100)};
	struct packet *v[2], *out[2 + GRO_HELD_MAX];

	(void)state;
	s[1].source = s[0].source;
	v[0] = packet_of(&s[0]);
	v[1] = packet_of(&s[1]);
	assert_int_equal(receive(ALL, v, 2, out), 0);
	assert_int_equal(gro_flush(gro, INT64_MAX, out, 2), 2);
	discard(out, 2);
}

/* A wrong one is not held, and what follows it may merge. */
static void wrong_goes_alone(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];
	uint32_t n;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct frame_spec s = tcp(6, i * 100, 100);

		v[i] = i == 1 ? packet_wrong(&s, 0) : packet_of(&s);
	}
	n = receive(ALL, v, 2, out);
	assert_int_equal(n, 2);
	assert_ptr_equal(out[0], v[0]);
	assert_ptr_equal(out[1], v[1]);
	assert_int_equal(receive(ALL, v + 2, 2, out + n), 0);
	n += gro_flush(gro, INT64_MAX, out + n, 1);
	assert_int_equal(n, 3);
	assert_ptr_equal(out[2], v[2]);
	assert_int_equal(frames(out[2]), 2);
	discard(out, n);
}

static void types(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];
	static const struct {
		unsigned types;
		uint32_t at_once, held;
	} expected[] = {{0, 4, 0}, {GRO_TCP, 2, 1}, {GRO_UDP, 2, 1}, {ALL, 0, 2}};

	(void)state;
	for (int i = 0; i < 4; i++) {
		for (uint32_t k = 0; k < 4; k++) {
			struct frame_spec s =
				k < 2 ? tcp(4, k * 100, 100) : udp(4, (uint16_t)k, 100);

			v[k] = packet_of(&s);
		}
		assert_int_equal(receive(expected[i].types, v, 4, out), expected[i].at_once);
		discard(out, expected[i].at_once);
		assert_int_equal(gro_flush(gro, INT64_MAX, out, 4), expected[i].held);
		discard(out, expected[i].held);
	}
}

/* What is held stays in front of its flow also when its type is no longer merged. */
static void types_change(void **state)
{
	struct packet *v[2], *out[2 + GRO_HELD_MAX];

	(void)state;
	for (uint8_t i = 0; i < 2; i++) {
		struct frame_spec s[2] = {tcp(4, 0, 100), tcp(4, 100, 100)};

		if (i)
			s[0] = udp(6, 0, 100), s[1] = udp(6, 0, 100);
		v[0] = packet_of(&s[0]);
		v[1] = packet_of(&s[1]);
		assert_int_equal(receive(ALL, v, 1, out), 0);
		assert_int_equal(receive(i ? GRO_TCP : 0, v + 1, 1, out), 2);
		assert_ptr_equal(out[0], v[0]);
		assert_ptr_equal(out[1], v[1]);
		discard(out, 2);
	}
}

/* A packet that cannot merge lets its own flow go, and no other. */
static void check_flushes(struct packet *p, const struct frame_spec *flow, bool flushes)
{
	struct frame_spec other = *flow;
	struct packet *v[3], *out[3 + GRO_HELD_MAX];
	uint16_t flags = p->flags;
	uint32_t n;

	other.flow = 9;
	v[0] = packet_of(flow);
	v[1] = packet_of(&other);
	v[2] = p;
	n = receive(ALL, v, 3, out);
	assert_int_equal(n, 1 + flushes);
	assert_ptr_equal(out[0], flushes ? v[0] : p);
	assert_ptr_equal(out[n - 1], p);
	assert_int_equal(p->flags, flags);
	n += gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX);
	assert_int_equal(n, 3);
	discard(out, n);
}

static void frame_is_whole(void **state)
{
	struct frame_spec s[2] = {tcp(4, 0, 100), tcp(4, 100, 100)};
	struct packet *p;

	(void)state;
	/* A trailer behind the IP packet; and less than it says. */
	p = packet_of(&s[1]);
	p->data[p->len++] = 0;
	p->total++;
	check_flushes(p, &s[0], true);
	p = packet_of(&s[1]);
	p->total = --p->len;
	check_flushes(p, &s[0], true);
	/* In two frames. */
	p = packet_of(&s[1]);
	p->next = packet_new();
	p->next->len = p->next->total = 10;
	p->len -= 10;
	check_flushes(p, &s[0], true);
	/* The same with a trailer in the second. */
	p = packet_of(&s[1]);
	p->next = packet_new();
	p->next->len = p->next->total = 10;
	p->total += 10;
	check_flushes(p, &s[0], true);
	/* A super-packet already. */
	p = packet_of(&s[1]);
	p->flags = PACKET_GSO | PACKET_CSUM_VALID;
	p->gso_size = 50;
	check_flushes(p, &s[0], true);
	/* Another protocol. */
	p = packet_of(&s[1]);
	p->data[frame_network(&s[0]) + 9] = 1;
	check_flushes(p, &s[0], false);
	p = packet_of(&s[1]);
	p->data[12] = 0x06; /* ARP, or so */
	check_flushes(p, &s[0], false);
	/* A version that is not the EtherType's. */
	p = packet_of(&s[1]);
	p->data[frame_network(&s[1])] ^= 0x20;
	check_flushes(p, &s[0], false);
	/* Three tags are looked at by nobody. */
	s[1].tags = 2;
	p = packet_of(&s[1]);
	memmove(p->data + 16, p->data + 12, p->len - 12);
	p->len = p->total = p->len + 4;
	check_flushes(p, &s[0], false);
}

/* Puts `size` bytes between the IP header and the rest. */
static struct packet *packet_widened(const struct frame_spec *s, uint32_t size)
{
	struct packet *p = packet_of(s);
	uint8_t *ip = p->data + frame_network(s);
	uint8_t *l4 = p->data + frame_transport(s);

	memmove(l4 + size, l4, p->len - frame_transport(s));
	memset(l4, 0, size);
	p->len += size;
	p->total += size;
	if (s->version == 4) {
		ip[0] += size / 4;
		frame_put16(ip + 2, p->len - frame_network(s));
		memset(ip + 10, 0, 2);
		frame_put16(ip + 10, ntohs(checksum_finish(checksum_add(0, ip, 20 + size))));
	} else {
		frame_put16(ip + 4, p->len - frame_network(s) - 40);
	}
	return p;
}

/* Twice, so that two that are alike would merge. */
static void check_never(const struct frame_spec s[3], struct packet *b, struct packet *c)
{
	struct packet *v[3] = {packet_of(&s[0]), b, c}, *out[3 + GRO_HELD_MAX];

	assert_int_equal(receive(ALL, v, 3, out), 3);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(out[i], v[i]);
		check_alone(out[i], 0);
	}
	discard(out, 3);
}

static void options_and_extensions(void **state)
{
	(void)state;
	for (int udp_too = 0; udp_too < 2; udp_too++) {
		struct frame_spec s[3];
		struct packet *v[3];

		for (uint16_t i = 0; i < 3; i++)
			s[i] = udp_too ? udp(4, i, 100) : tcp(4, 100u * i, 100);
		check_never(s, packet_widened(&s[1], 4), packet_widened(&s[2], 4));
		/* Hop-by-hop, routing, destination options, authentication: still of its flow. */
		static const uint8_t extension[] = {0, 43, 60, 51};

		for (uint32_t e = 0; e < 4; e++) {
			for (uint16_t i = 0; i < 3; i++) {
				s[i] = udp_too ? udp(6, i, 100) : tcp(6, 100u * i, 100);
				v[i] = packet_widened(&s[i], 16);
				v[i]->data[frame_network(&s[i]) + 6] = extension[e];
				v[i]->data[frame_transport(&s[i])] = s[i].protocol;
				v[i]->data[frame_transport(&s[i]) + 1] = e < 3 ? 1 : 2;
			}
			discard(v, 1);
			check_never(s, v[1], v[2]);
		}
	}
}

/* Of these nobody knows the flow: all between its addresses goes before them. */
static void fragments(void **state)
{
	struct frame_spec s = udp(4, 7, 100);
	struct packet *p;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		static const uint16_t field[] = {0x2000, 0x2010, 0x0010};

		p = packet_of(&s);
		frame_put16(p->data + frame_network(&s) + 6, field[i]);
		memset(p->data + frame_transport(&s), 0x55, 4); /* where others have ports */
		frame_checksums(&s, p->data, p->len);
		check_flushes(p, &s, true);
	}
	/* Cut off within the ports. */
	p = packet_of(&s);
	p->len = p->total = frame_transport(&s) + 3;
	p->data[p->len] ^= 1; /* what is behind it is not looked at */
	check_flushes(p, &s, true);
	s = udp(6, 7, 100);
	p = packet_widened(&s, 8);
	p->data[frame_network(&s) + 6] = 44;
	p->data[frame_transport(&s)] = 17;
	check_flushes(p, &s, true);
	/* More extension headers than are looked behind. */
	p = packet_widened(&s, 80);
	p->data[frame_network(&s) + 6] = 60;
	for (uint32_t i = 0; i < 10; i++)
		p->data[frame_transport(&s) + 8 * i] = i < 9 ? 60 : 17;
	memset(p->data + frame_transport(&s) + 80, 0x55, 4);
	check_flushes(p, &s, true);
	/* Cut off within the ports. */
	p = packet_of(&s);
	p->len = p->total = frame_transport(&s) + 3;
	p->data[p->len] ^= 1;
	check_flushes(p, &s, true);
	/* A fragment of others. */
	p = packet_of(&s);
	p->data[frame_network(&s) + 6] = 44;
	p->data[frame_network(&s) + 20] ^= 1;
	check_flushes(p, &s, false);
}

/* All flows between two addresses are let go: more than twice the vector. */
static void fragment_flushes_many(void **state)
{
	struct packet *v[32], *out[32 + GRO_HELD_MAX];
	struct frame_spec s = udp(4, 7, 100);
	uint32_t held;

	(void)state;
	for (uint16_t i = 0; i < 32; i++) {
		s.source = i;
		v[i] = packet_of(&s);
	}
	held = 32 - receive(ALL, v, 32, out);
	discard(out, 32 - held);
	assert_in_range(held, 9, 32);
	v[0] = packet_of(&s);
	frame_put16(v[0]->data + frame_network(&s) + 6, 0x2000);
	assert_int_equal(receive(ALL, v, 1, out), held + 1);
	assert_ptr_equal(out[held], v[0]);
	discard(out, held + 1);
}

/* More flows than places: the oldest of a bucket goes, and none is lost. */
static void buckets_are_bounded(void **state)
{
	static struct packet *in[FRAMES], *out[FRAMES + GRO_HELD_MAX];
	uint32_t n = 0, held;

	(void)state;
	for (uint16_t i = 0; i < FRAMES; i++) {
		struct frame_spec s = tcp(4, 0, 10);

		s.target = i;
		in[i] = packet_of(&s);
		context.now = i;
		n += receive(ALL, in + i, 1, out + n);
		assert_in_range(i + 1u - n, 0, GRO_HELD_MAX);
	}
	held = FRAMES - n;
	assert_int_equal(held, GRO_HELD_MAX); /* 256 flows fill 8 buckets of 8 */
	assert_int_equal(gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX), held);
	/* Each once; those that were held oldest first. */
	for (uint32_t i = 0; i < FRAMES; i++) {
		uint32_t k = 0;

		while (k < FRAMES && out[k] != in[i])
			k++;
		assert_in_range(k, 0, FRAMES - 1);
	}
	for (uint32_t i = n + 1; i < FRAMES; i++)
		assert_true(out[i - 1]->data[37 + 0] < out[i]->data[37]);
	discard(out, FRAMES);
}

static void ages(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];

	(void)state;
	assert_int_equal(gro_oldest(gro), INT64_MAX);
	for (uint32_t i = 0; i < 4; i++) {
		struct frame_spec s = tcp(4, i / 2 * 100, 100);

		s.flow = i & 1;
		v[i] = packet_of(&s);
		context.now = 10 * (i + 1);
		assert_int_equal(receive(ALL, v + i, 1, out), 0);
		assert_int_equal(gro_oldest(gro), 10); /* a packet more does not make it younger */
	}
	assert_int_equal(gro_flush(gro, 9, out, 4), 0);
	assert_int_equal(gro_flush(gro, 10, out, 4), 1);
	assert_ptr_equal(out[0], v[0]);
	assert_int_equal(gro_oldest(gro), 20);
	assert_int_equal(gro_flush(gro, 20, out + 1, 0), 0);
	assert_int_equal(gro_flush(gro, 20, out + 1, 4), 1);
	assert_ptr_equal(out[1], v[1]);
	discard(out, 2);
}

static void flush_room(void **state)
{
	struct packet *v[4], *out[4 + GRO_HELD_MAX];

	(void)state;
	for (uint8_t i = 0; i < 4; i++) {
		struct frame_spec s = tcp(4, 0, 100);

		s.flow = i;
		v[i] = packet_of(&s);
	}
	assert_int_equal(receive(ALL, v, 4, out), 0);
	assert_int_equal(gro_flush(gro, INT64_MAX, out, 3), 3);
	assert_int_equal(gro_flush(gro, INT64_MAX, out + 3, 3), 1);
	for (int i = 0; i < 4; i++)
		assert_ptr_equal(out[i], v[i]);
	discard(out, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pairs, begin, end),
		cmocka_unit_test_setup_teardown(tags_equal, begin, end),
		cmocka_unit_test_setup_teardown(ipv4_ids, begin, end),
		cmocka_unit_test_setup_teardown(sizes, begin, end),
		cmocka_unit_test_setup_teardown(push_goes_at_once, begin, end),
		cmocka_unit_test_setup_teardown(bounded, begin, end),
		cmocka_unit_test_setup_teardown(udp_without_checksum, begin, end),
		cmocka_unit_test_setup_teardown(checksums_trusted, begin, end),
		cmocka_unit_test_setup_teardown(tcp_header_too_short, begin, end),
		cmocka_unit_test_setup_teardown(protocols_are_apart, begin, end),
		cmocka_unit_test_setup_teardown(wrong_goes_alone, begin, end),
		cmocka_unit_test_setup_teardown(types, begin, end),
		cmocka_unit_test_setup_teardown(types_change, begin, end),
		cmocka_unit_test_setup_teardown(frame_is_whole, begin, end),
		cmocka_unit_test_setup_teardown(options_and_extensions, begin, end),
		cmocka_unit_test_setup_teardown(fragments, begin, end),
		cmocka_unit_test_setup_teardown(fragment_flushes_many, begin, end),
		cmocka_unit_test_setup_teardown(buckets_are_bounded, begin, end),
		cmocka_unit_test_setup_teardown(ages, begin, end),
		cmocka_unit_test_setup_teardown(flush_room, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

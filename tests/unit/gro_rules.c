/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of core/gro.h one by one, each beside what merges without it. */
#include "gro_rig.h"

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
	struct frame_spec s = kind & T ? spec_tcp(version, i * 100, 100)
				       : spec_udp(version, (uint16_t)(7 + i), 100);

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
	uint64_t before = gro_merged();
	uint32_t n;

	for (int i = 0; i < 2; i++)
		memcpy(bytes[i], v[i]->data, v[i]->len);
	n = receive(ALL, v, 2, out);
	n += gro_flush(gro, INT64_MAX, out + n, GRO_HELD_MAX);
	if (n != 2u - rule->merges || gro_merged() - before != rule->merges)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		GRO_TEST(pairs),
		GRO_TEST(tags_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

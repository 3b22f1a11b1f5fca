/* SPDX-License-Identifier: BSD-2-Clause */
/* What GRO must leave alone, and what of its flow goes before it. */
#include "gro_rig.h"

static void udp_without_checksum(void **state)
{
	struct frame_spec s[2] = {spec_udp(4, 1, 100), spec_udp(4, 2, 100)};
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
	s[0] = spec_udp(6, 1, 100);
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
	struct frame_spec s[2] = {spec_tcp(4, 0, 100), spec_tcp(4, 100, 100)};
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
	struct frame_spec s[2] = {spec_tcp(4, 0, 100), spec_tcp(4, 116 + 12, 100)};
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
	struct frame_spec s[2] = {spec_tcp(4, 0, 100), spec_udp(4, 0, 100)};
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
		struct frame_spec s = spec_tcp(6, i * 100, 100);

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
	assert_int_equal(frames_in(out[2]), 2);
	discard(out, n);
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
	struct frame_spec s[2] = {spec_tcp(4, 0, 100), spec_tcp(4, 100, 100)};
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
			s[i] = udp_too ? spec_udp(4, i, 100) : spec_tcp(4, 100u * i, 100);
		check_never(s, packet_widened(&s[1], 4), packet_widened(&s[2], 4));
		/* Hop-by-hop, routing, destination options, authentication: still of its flow. */
		static const uint8_t extension[] = {0, 43, 60, 51};

		for (uint32_t e = 0; e < 4; e++) {
			for (uint16_t i = 0; i < 3; i++) {
				s[i] = udp_too ? spec_udp(6, i, 100) : spec_tcp(6, 100u * i, 100);
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
	struct frame_spec s = spec_udp(4, 7, 100);
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
	s = spec_udp(6, 7, 100);
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
	struct frame_spec s = spec_udp(4, 7, 100);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		GRO_TEST(udp_without_checksum),	  GRO_TEST(checksums_trusted),
		GRO_TEST(tcp_header_too_short),	  GRO_TEST(protocols_are_apart),
		GRO_TEST(wrong_goes_alone),	  GRO_TEST(frame_is_whole),
		GRO_TEST(options_and_extensions), GRO_TEST(fragments),
		GRO_TEST(fragment_flushes_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

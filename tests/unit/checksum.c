/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <arpa/inet.h>

#include "core/checksum.h"

/* RFC 1071, byte by byte: the words in network order, carries at once. */
static uint16_t naive_fold(uint32_t sum, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return (uint16_t)sum;
}

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33);
}

static void published_vectors(void **state)
{
	/* RFC 1071, section 3. */
	static const uint8_t rfc1071[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
	/* The IPv4 header that textbooks use; its checksum is b861. */
	static const uint8_t ipv4[] = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
				       0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
	static const uint8_t ones[] = {0xff, 0xff, 0xff, 0xff};

	(void)state;
	assert_int_equal(ntohs(checksum_fold(checksum_add(0, rfc1071, sizeof(rfc1071)))), 0xddf2);
	assert_int_equal(ntohs(checksum_finish(checksum_add(0, rfc1071, sizeof(rfc1071)))), 0x220d);
	assert_int_equal(ntohs(checksum_finish(checksum_add(0, ipv4, sizeof(ipv4)))), 0xb861);
	assert_int_equal(checksum_finish(checksum_add(0, ones, sizeof(ones))), 0);
	assert_int_equal(checksum_finish(checksum_add(0, ones, 0)), 0xffff);
}

static void equals_the_naive_sum(void **state)
{
	static uint8_t data[9216 + 64];
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint32_t at = random_next(&seed) % 64;
		uint32_t len = random_next(&seed) % (round % 16 ? 200 : 9216);
		uint32_t cut = len ? random_next(&seed) % len & ~1u : 0;
		uint32_t parts;

		for (uint32_t i = 0; i < len; i++)
			data[at + i] = round % 3 ? (uint8_t)random_next(&seed) : 0xff;
		assert_int_equal(ntohs(checksum_fold(checksum_add(0, data + at, len))),
				 naive_fold(0, data + at, len));
		parts = checksum_add(checksum_add(0, data + at, cut), data + at + cut, len - cut);
		assert_int_equal(ntohs(checksum_fold(parts)), naive_fold(0, data + at, len));
	}
}

struct shape {
	const char *name;
	int version;
	int tags;
	uint8_t protocol;
	int extensions; /* IPv6: hop-by-hop, destination options */
	int options;	/* IPv4: 32-bit words */
	uint32_t payload;
};

static const struct shape shapes[] = {
	{"IPv4 TCP", 4, 0, 6, 0, 0, 100},	    {"IPv4 TCP, nothing in it", 4, 0, 6, 0, 0, 0},
	{"IPv4 TCP, odd", 4, 0, 6, 0, 0, 1447},	    {"IPv4 UDP", 4, 0, 17, 0, 0, 31},
	{"IPv4 UDP, options", 4, 0, 17, 0, 3, 31},  {"IPv4 UDP, VLAN", 4, 1, 17, 0, 0, 32},
	{"IPv4 TCP, two VLANs", 4, 2, 6, 0, 0, 32}, {"IPv6 TCP", 6, 0, 6, 0, 0, 77},
	{"IPv6 UDP, VLAN", 6, 1, 17, 0, 0, 512},    {"IPv6 UDP, extensions", 6, 0, 17, 2, 0, 64},
};

struct built {
	uint8_t frame[2048];
	struct packet p;
	uint32_t transport; /* from frame */
	uint32_t field;	    /* from frame */
	uint16_t pseudo;    /* folded, host order */
};

/* A frame with the pseudo-header's sum in the checksum field, as a local sender leaves it. */
static void build(struct built *b, const struct shape *shape, uint64_t *seed)
{
	uint32_t header = shape->protocol == 6 ? 20 : 8;
	uint32_t len = header + shape->payload;
	uint8_t pseudo[40] = {0};
	uint32_t at = 12;
	uint8_t *ip;

	for (size_t i = 0; i < sizeof(b->frame); i++)
		b->frame[i] = (uint8_t)random_next(seed);
	for (int i = shape->tags; i > 0; i--, at += 4) {
		b->frame[at] = i == 2 ? 0x88 : 0x81;
		b->frame[at + 1] = i == 2 ? 0xa8 : 0x00;
	}
	ip = b->frame + at + 2;
	if (shape->version == 4) {
		uint32_t total = 20 + 4 * (uint32_t)shape->options + len;

		b->frame[at] = 0x08, b->frame[at + 1] = 0x00;
		ip[0] = (uint8_t)(0x45 + shape->options);
		ip[2] = (uint8_t)(total >> 8), ip[3] = (uint8_t)total;
		ip[6] = 0x40, ip[7] = 0;
		ip[9] = shape->protocol;
		b->transport = at + 2 + 20 + 4 * (uint32_t)shape->options;
		memcpy(pseudo + 24, ip + 12, 8);
	} else {
		uint32_t total = 8 * (uint32_t)shape->extensions + len;

		b->frame[at] = 0x86, b->frame[at + 1] = 0xdd;
		ip[0] = 0x60;
		ip[4] = (uint8_t)(total >> 8), ip[5] = (uint8_t)total;
		ip[6] = shape->extensions ? 0 : shape->protocol;
		if (shape->extensions) {
			ip[40] = 60, ip[41] = 0;
			ip[48] = shape->protocol, ip[49] = 0;
		}
		b->transport = at + 2 + 40 + 8 * (uint32_t)shape->extensions;
		memcpy(pseudo, ip + 8, 32);
	}
	pseudo[33] = shape->protocol;
	pseudo[34] = (uint8_t)(len >> 8), pseudo[35] = (uint8_t)len;
	b->pseudo = naive_fold(0, pseudo, sizeof(pseudo));
	b->field = b->transport + (shape->protocol == 6 ? 16 : 6);
	b->frame[b->field] = (uint8_t)(b->pseudo >> 8);
	b->frame[b->field + 1] = (uint8_t)b->pseudo;
	b->p = (struct packet){.data = b->frame, .len = b->transport + len};
	b->p.total = b->p.len;
}

static uint16_t total_sum(const struct built *b)
{
	return naive_fold(b->pseudo, b->frame + b->transport, b->p.len - b->transport);
}

static void detects_and_completes(void **state)
{
	uint64_t seed = 2;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		for (int round = 0; round < 100; round++) {
			struct built b;

			build(&b, &shapes[i], &seed);
			if (!checksum_partial_detect(&b.p))
				fail_msg("not detected: %s", shapes[i].name);
			assert_int_equal(b.p.flags, PACKET_CSUM_PARTIAL);
			assert_int_equal(b.p.csum_start, b.transport);
			assert_int_equal(b.p.csum_start + b.p.csum_offset, b.field);
			assert_false(checksum_partial_right(&b.p));
			assert_true(checksum_complete(&b.p));
			assert_int_equal(b.p.flags, PACKET_CSUM_VALID);
			assert_int_equal(total_sum(&b), 0xffff);
		}
	}
}

/* A right checksum is not taken for a partial one; where the two coincide, nothing changes. */
static void leaves_right_checksums(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct built b;
		uint8_t before[sizeof(b.frame)];
		uint16_t sum, add;

		build(&b, &shapes[i], &seed);
		assert_true(checksum_partial_detect(&b.p));
		assert_true(checksum_complete(&b.p));
		memcpy(before, b.frame, sizeof(before));
		b.p.flags = 0;
		assert_false(checksum_partial_detect(&b.p));
		assert_memory_equal(before, b.frame, sizeof(before));

		if (shapes[i].payload < 3)
			continue;
		/* Set two bytes of the payload so that the right value is the pseudo-header's sum.
		 */
		build(&b, &shapes[i], &seed);
		memset(b.frame + b.p.len - 4, 0, 4);
		sum = total_sum(&b);
		add = (uint16_t)~sum;
		b.frame[b.p.len - 4 + (b.p.len - b.transport) % 2] = (uint8_t)(add >> 8);
		b.frame[b.p.len - 3 + (b.p.len - b.transport) % 2] = (uint8_t)add;
		assert_int_equal(total_sum(&b), 0xffff);
		memcpy(before, b.frame, sizeof(before));
		assert_true(checksum_partial_detect(&b.p));
		assert_true(checksum_partial_right(&b.p));
		assert_true(checksum_complete(&b.p));
		assert_memory_equal(before, b.frame, sizeof(before));
	}
}

/* Puts b's frame into a UDP datagram of this port, behind 8 bytes and `options`. */
static void wrap(struct built *b, uint16_t port, uint32_t options)
{
	uint32_t front = 14 + 20 + 8 + 8 + options;
	uint32_t total = b->p.len + front - 14;
	uint8_t *outer = b->frame;

	memmove(outer + front, outer, b->p.len);
	memset(outer, 0x11, front);
	outer[12] = 0x08, outer[13] = 0x00;
	outer[14] = 0x45;
	outer[16] = (uint8_t)(total >> 8), outer[17] = (uint8_t)total;
	outer[20] = outer[21] = 0;
	outer[23] = 17;
	outer[36] = (uint8_t)(port >> 8), outer[37] = (uint8_t)port;
	outer[40] = outer[41] = 0; /* no checksum */
	outer[42] = (uint8_t)(options / 4);
	outer[44] = 0x65, outer[45] = 0x58;
	b->p.len += front;
	b->p.total = b->p.len;
	b->transport += front;
	b->field += front;
}

static void looks_into_tunnels(void **state)
{
	static const struct {
		uint16_t port;
		uint32_t options;
	} tunnels[] = {{4789, 0}, {8472, 0}, {6081, 0}, {6081, 12}, {6081, 252}};
	uint64_t seed = 6;
	struct built b;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		for (size_t k = 0; k < sizeof(tunnels) / sizeof(*tunnels); k++) {
			build(&b, &shapes[i], &seed);
			wrap(&b, tunnels[k].port, tunnels[k].options);
			assert_true(checksum_partial_detect(&b.p));
			assert_int_equal(b.p.csum_start, b.transport);
			assert_true(checksum_complete(&b.p));
			assert_int_equal(total_sum(&b), 0xffff);
			b.p.flags = 0;
			assert_false(checksum_partial_detect(&b.p));
			for (uint32_t len = 0; len < b.p.len; len++) {
				uint8_t *cut = malloc(len ? len : 1);
				struct packet p = {.data = cut, .len = len, .total = len};

				memcpy(cut, b.frame, len);
				assert_false(checksum_partial_detect(&p));
				free(cut);
			}
		}
		build(&b, &shapes[i], &seed);
		wrap(&b, 5000, 0);
		assert_false(checksum_partial_detect(&b.p));
	}
	build(&b, &shapes[0], &seed);
	wrap(&b, 6081, 0);
	b.frame[45] = 0x59; /* not Ethernet inside */
	assert_false(checksum_partial_detect(&b.p));
}

static void ignores_the_rest(void **state)
{
	const struct shape udp = {"", 4, 0, 17, 0, 0, 32}, six = {"", 6, 0, 6, 0, 0, 32};
	uint64_t seed = 4;
	struct built b;

	(void)state;
	build(&b, &udp, &seed);
	b.frame[20] = 0x20; /* more fragments */
	assert_false(checksum_partial_detect(&b.p));
	build(&b, &udp, &seed);
	b.frame[21] = 1; /* a later fragment */
	assert_false(checksum_partial_detect(&b.p));
	build(&b, &udp, &seed);
	b.frame[23] = 1; /* ICMP */
	assert_false(checksum_partial_detect(&b.p));
	build(&b, &udp, &seed);
	b.p.len++, b.p.total++; /* padding */
	assert_false(checksum_partial_detect(&b.p));
	build(&b, &six, &seed);
	b.frame[20] = 44; /* a fragment header */
	assert_false(checksum_partial_detect(&b.p));
	/* Every way of being cut short, without reading behind the end (the sanitizer looks). */
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		build(&b, &shapes[i], &seed);
		for (uint32_t len = 0; len < b.p.len; len++) {
			uint8_t *cut = malloc(len ? len : 1);
			struct packet p = {.data = cut, .len = len, .total = len};

			memcpy(cut, b.frame, len);
			assert_false(checksum_partial_detect(&p));
			free(cut);
		}
	}
}

static void completes_chains(void **state)
{
	const struct shape shape = {"", 4, 0, 6, 0, 0, 1400};
	uint64_t seed = 5;

	(void)state;
	for (int round = 0; round < 500; round++) {
		struct packet part[4];
		struct built b;
		uint32_t at = 0;

		build(&b, &shape, &seed);
		assert_true(checksum_partial_detect(&b.p));
		for (int i = 0; i < 4; i++) {
			uint32_t size = i ? random_next(&seed) % 400 : 60 + random_next(&seed) % 60;

			part[i] = b.p;
			part[i].data = b.frame + at;
			part[i].len = i == 3 ? b.p.len - at : size;
			part[i].next = i == 3 ? NULL : &part[i + 1];
			at += part[i].len;
		}
		assert_true(checksum_complete(&part[0]));
		assert_int_equal(total_sum(&b), 0xffff);
	}
}

/* A place outside of the frame comes from a device or a guest: refused, nothing written. */
static void refuses_places_outside(void **state)
{
	uint8_t frame[64] = {0};
	struct packet p = {.data = frame, .len = 60, .total = 60, .flags = PACKET_CSUM_PARTIAL};

	(void)state;
	p.csum_start = 50, p.csum_offset = 9;
	assert_false(checksum_complete(&p));
	p.csum_start = 0xffff, p.csum_offset = 0xffff;
	assert_false(checksum_complete(&p));
	assert_int_equal(p.flags, PACKET_CSUM_PARTIAL);
	p.csum_start = 50, p.csum_offset = 8;
	assert_true(checksum_complete(&p));
	assert_int_equal(frame[58], 0xff);
}

/* What is in the field of bytes that add up to zero, completed from `partial`. */
static uint16_t zero_completed(uint16_t offset, uint16_t partial)
{
	uint8_t frame[24] = {0};
	struct packet p = {.data = frame, .len = 24, .total = 24, .flags = PACKET_CSUM_PARTIAL};
	uint16_t rest = (uint16_t)~partial, value;

	memcpy(frame + offset, &partial, 2);
	memcpy(frame + 22, &rest, 2);
	p.csum_offset = offset;
	assert_true(checksum_complete(&p));
	memcpy(&value, frame + offset, 2);
	return value;
}

/*
 * UDP's "no checksum" must not come out of completing one; TCP has no such thing, and a sender's
 * segment with a checksum of 0 comes out of segmentation as it was.
 */
static void two_zeros(void **state)
{
	(void)state;
	assert_int_equal(zero_completed(6, 0x1234), 0xffff);
	assert_int_equal(zero_completed(4, 0x1234), 0xffff);
	assert_int_equal(zero_completed(16, 0x1234), 0);
	assert_int_equal(zero_completed(16, 0xffff), 0xffff); /* was right */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(equals_the_naive_sum),
		cmocka_unit_test(detects_and_completes),
		cmocka_unit_test(leaves_right_checksums),
		cmocka_unit_test(looks_into_tunnels),
		cmocka_unit_test(ignores_the_rest),
		cmocka_unit_test(completes_chains),
		cmocka_unit_test(refuses_places_outside),
		cmocka_unit_test(two_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow hash: published vectors, and what of a frame goes in. */
#include "test.h"

#include <arpa/inet.h>

#include <core/flow.h>
#include <core/headers.h>
#include <core/flow_limit.h>

/* The key and the vectors that network cards are verified with. */
static const uint8_t published_key[FLOW_KEY_SIZE] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct vector {
	const char *source, *destination;
	uint16_t source_port, destination_port;
	uint32_t with_ports, addresses;
} vectors[] = {
	{"66.9.149.187", "161.142.100.80", 2794, 1766, 0x51ccc178, 0x323e8fc2},
	{"199.92.111.2", "65.69.140.83", 14230, 4739, 0xc626b0ea, 0xd718262a},
	{"24.19.198.95", "12.22.207.184", 12898, 38024, 0x5c2b394a, 0xd2d0a5de},
	{"38.27.205.30", "209.142.163.6", 48228, 2217, 0xafc7327f, 0x82989176},
	{"153.39.163.191", "202.188.127.2", 44251, 1303, 0x10e828a2, 0x5d1809c5},
	{"3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x40207d3d, 0x2cc18cd5},
	{"3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0xdde51bbf, 0x0f0c461c},
	{"3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024,
	 0x02d1feef, 0x4b61e985},
};
#define VECTORS (sizeof(vectors) / sizeof(*vectors))

struct frame {
	uint8_t bytes[256];
	uint32_t len;
	uint32_t type; /* where the type of the payload stands */
};

static struct flow_hasher plain, symmetric;

static int hashers(void **state)
{
	(void)state;
	flow_hasher_init(&plain, published_key, false);
	flow_hasher_init(&symmetric, published_key, true);
	return 0;
}

static void put16(struct frame *f, uint16_t value)
{
	f->bytes[f->len++] = (uint8_t)(value >> 8);
	f->bytes[f->len++] = (uint8_t)value;
}

static void ethernet(struct frame *f, int tags)
{
	static const uint8_t addresses[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

	memset(f, 0, sizeof(*f));
	memcpy(f->bytes, addresses, sizeof(addresses));
	f->len = sizeof(addresses);
	for (int i = 0; i < tags; i++) {
		put16(f, i + 1 < tags ? 0x88a8 : 0x8100);
		put16(f, (uint16_t)(0x2000 + 5 + i));
	}
	f->type = f->len;
	f->len += 2;
}

static bool is_ipv6(const struct vector *v)
{
	return strchr(v->source, ':');
}

/* An IP header with this protocol; the source and destination of v, or the other way round. */
static void ip(struct frame *f, const struct vector *v, uint8_t protocol, bool reverse)
{
	const char *from = reverse ? v->destination : v->source;
	const char *to = reverse ? v->source : v->destination;
	uint8_t *at = f->bytes + f->len;

	if (is_ipv6(v)) {
		at[0] = 0x60;
		at[6] = protocol;
		assert_int_equal(inet_pton(AF_INET6, from, at + 8), 1);
		assert_int_equal(inet_pton(AF_INET6, to, at + 24), 1);
		f->len += 40;
	} else {
		at[0] = 0x45;
		at[9] = protocol;
		assert_int_equal(inet_pton(AF_INET, from, at + 12), 1);
		assert_int_equal(inet_pton(AF_INET, to, at + 16), 1);
		f->len += 20;
	}
	f->bytes[f->type] = is_ipv6(v) ? 0x86 : 0x08;
	f->bytes[f->type + 1] = is_ipv6(v) ? 0xdd : 0x00;
}

static void ports(struct frame *f, const struct vector *v, bool reverse)
{
	put16(f, reverse ? v->destination_port : v->source_port);
	put16(f, reverse ? v->source_port : v->destination_port);
	f->len += 16; /* the rest of a TCP header */
}

static void packet(struct frame *f, const struct vector *v, int tags, uint8_t protocol)
{
	ethernet(f, tags);
	ip(f, v, protocol, false);
	ports(f, v, false);
}

static uint32_t hash_of(const struct frame *f)
{
	return flow_hash(&plain, f->bytes, f->len);
}

/* TCP, UDP and SCTP with ports, all else by addresses; the same behind up to two tags. */
static void published_vectors(void **state)
{
	static const uint8_t with[] = {6, 17, 132}, without[] = {1, 58, 47, 50, 59, 255};
	struct frame f;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		for (int tags = 0; tags <= 2; tags++) {
			for (size_t k = 0; k < sizeof(with); k++) {
				packet(&f, &vectors[i], tags, with[k]);
				assert_int_equal(hash_of(&f), vectors[i].with_ports);
			}
			for (size_t k = 0; k < sizeof(without); k++) {
				packet(&f, &vectors[i], tags, without[k]);
				assert_int_equal(hash_of(&f), vectors[i].addresses);
			}
		}
	}
}

/* The first fragment has ports, and the others have not: all by the addresses. */
static void fragments_stay_together(void **state)
{
	static const uint16_t offsets[] = {0x2000, 0x2001, 0x0001, 0x1fff, 0x3fff};
	struct frame f;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		for (size_t k = 0; k < 5; k++) {
			packet(&f, &vectors[i], 0, 17);
			f.bytes[14 + 6] = (uint8_t)(offsets[k] >> 8);
			f.bytes[14 + 7] = (uint8_t)offsets[k];
			assert_int_equal(hash_of(&f), vectors[i].addresses);
		}
		packet(&f, &vectors[i], 0, 17);
		f.bytes[14 + 6] = 0x40; /* don't fragment: whole */
		assert_int_equal(hash_of(&f), vectors[i].with_ports);
	}
	for (size_t i = 5; i < VECTORS; i++) {
		ethernet(&f, 0);
		ip(&f, &vectors[i], 44, false);
		f.bytes[f.len] = 17;
		f.len += 8;
		ports(&f, &vectors[i], false);
		assert_int_equal(hash_of(&f), vectors[i].addresses);
	}
}

/* The ports behind IPv4 options and IPv6 extension headers; behind too many, the addresses. */
static void options_and_extensions(void **state)
{
	struct frame f;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		ethernet(&f, 0);
		ip(&f, &vectors[i], 6, false);
		f.bytes[14] = 0x47;
		memset(f.bytes + f.len, 1, 8);
		f.len += 8;
		ports(&f, &vectors[i], false);
		assert_int_equal(hash_of(&f), vectors[i].with_ports);
	}
	for (size_t i = 5; i < VECTORS; i++) {
		for (int n = 1; n <= IPV6_EXTENSIONS_MAX + 1; n++) {
			ethernet(&f, 0);
			ip(&f, &vectors[i], 0, false);
			for (int k = 1; k <= n; k++) {
				bool authentication = k == 2;

				/* What follows the second is read in units of 4 bytes. */
				f.bytes[f.len] = k == n ? 6 : k == 1 ? 51 : 60;
				f.bytes[f.len + 1] = authentication ? 4 : 1;
				f.len += authentication ? 24 : 16;
			}
			ports(&f, &vectors[i], false);
			assert_int_equal(hash_of(&f), n <= IPV6_EXTENSIONS_MAX
							      ? vectors[i].with_ports
							      : vectors[i].addresses);
		}
	}
}

/* Both directions of a connection, and nothing but those, have one hash. */
static void symmetric_hash(void **state)
{
	static const uint8_t protocols[] = {6, 17, 1};
	struct frame there, back;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		for (size_t k = 0; k < sizeof(protocols); k++) {
			uint32_t hash;

			packet(&there, &vectors[i], 0, protocols[k]);
			ethernet(&back, 1);
			ip(&back, &vectors[i], protocols[k], true);
			ports(&back, &vectors[i], true);
			hash = flow_hash(&symmetric, there.bytes, there.len);
			assert_int_equal(hash, flow_hash(&symmetric, back.bytes, back.len));
			assert_int_not_equal(hash_of(&there), hash_of(&back));
			/* The ports go with their addresses. */
			ethernet(&back, 0);
			ip(&back, &vectors[i], protocols[k], true);
			ports(&back, &vectors[i], false);
			if (protocols[k] != 1)
				assert_int_not_equal(hash,
						     flow_hash(&symmetric, back.bytes, back.len));
		}
	}
	/* One host talking to itself: the ports alone tell the directions apart. */
	packet(&there, &vectors[0], 0, 6);
	memcpy(there.bytes + 30, there.bytes + 26, 4);
	back = there;
	memcpy(back.bytes + 34, there.bytes + 36, 2);
	memcpy(back.bytes + 36, there.bytes + 34, 2);
	assert_int_equal(flow_hash(&symmetric, there.bytes, there.len),
			 flow_hash(&symmetric, back.bytes, back.len));
}

/* Other frames by their addresses and type: not by what is in them. */
static void other_frames(void **state)
{
	struct frame a, b;

	(void)state;
	for (int tags = 0; tags <= 2; tags++) {
		ethernet(&a, tags);
		a.bytes[a.type] = 0x08;
		a.bytes[a.type + 1] = 0x06;
		a.len += 46;
		b = a;
		b.bytes[a.type + 9] = 77;
		assert_int_equal(hash_of(&a), hash_of(&b));
		b.bytes[a.type + 1] = 0x07;
		assert_int_not_equal(hash_of(&a), hash_of(&b));
		b = a;
		b.bytes[5] = 9;
		assert_int_not_equal(hash_of(&a), hash_of(&b));
		b = a;
		memcpy(b.bytes, a.bytes + 6, 6);
		memcpy(b.bytes + 6, a.bytes, 6);
		assert_int_not_equal(hash_of(&a), hash_of(&b));
		assert_int_equal(flow_hash(&symmetric, a.bytes, a.len),
				 flow_hash(&symmetric, b.bytes, b.len));
	}
}

/* Cut anywhere: ports, addresses, MAC addresses, as far as they are there. Never 0. */
static void truncated(void **state)
{
	static const uint8_t zeros[64];
	struct frame f;

	(void)state;
	for (size_t i = 0; i < VECTORS; i++) {
		uint32_t addresses_end = 14 + (is_ipv6(&vectors[i]) ? 40 : 20);

		packet(&f, &vectors[i], 0, 6);
		for (uint32_t len = 0; len <= f.len; len++) {
			uint32_t hash;
			uint8_t *exact = malloc(len ? len : 1);

			memcpy(exact, f.bytes, len);
			hash = flow_hash(&plain, exact, len);
			free(exact);
			assert_int_not_equal(hash, 0);
			if (len < 14)
				assert_int_equal(hash, 1);
			else if (len >= addresses_end + 4)
				assert_int_equal(hash, vectors[i].with_ports);
			else if (len >= addresses_end)
				assert_int_equal(hash, vectors[i].addresses);
			else
				assert_int_not_equal(hash, vectors[i].addresses);
		}
	}
	assert_int_equal(flow_hash(&plain, zeros, sizeof(zeros)), 1);
}

/* More than half of the last 128 packets; what was before those is forgotten. */
static void limit_forgets(void **state)
{
	struct flow_limit *limit = flow_limit_create(65536);

	(void)state;
	assert_non_null(limit);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < FLOW_LIMIT_HISTORY / 2; i++)
			assert_false(flow_limit_over(limit, 1));
		assert_true(flow_limit_over(limit, 1));
		for (uint32_t i = 0; i < FLOW_LIMIT_HISTORY; i++)
			assert_false(flow_limit_over(limit, 1000 + i));
	}
	free(limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),	  cmocka_unit_test(fragments_stay_together),
		cmocka_unit_test(options_and_extensions), cmocka_unit_test(symmetric_hash),
		cmocka_unit_test(other_frames),		  cmocka_unit_test(truncated),
		cmocka_unit_test(limit_forgets),
	};

	return cmocka_run_group_tests(tests, hashers, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include <core/flow.h>

#define MAC_PAIR 12 /* bytes of both MAC addresses */
#define TAGS_MAX 2

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TYPE_TAG = 0x8100,
	TYPE_SERVICE_TAG = 0x88a8,
};

/* What is hashed: two addresses of `size` bytes, then `tail` bytes (two ports, or a type). */
struct flow_input {
	uint8_t bytes[FLOW_INPUT_MAX];
	uint32_t address; /* bytes of one */
	uint32_t size;	  /* of all */
};

static uint16_t be16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

void flow_hasher_init(struct flow_hasher *hasher, const uint8_t key[FLOW_KEY_SIZE], bool symmetric)
{
	atomic_init(&hasher->symmetric, symmetric);
	for (uint32_t i = 0; i < 2 * FLOW_INPUT_MAX; i++) {
		const uint8_t *at = key + i / 2;
		uint64_t window = 0; /* 40 bits of key, from this byte on */

		for (int k = 0; k < 5; k++)
			window = window << 8 | at[k];
		for (uint32_t value = 0; value < 16; value++) {
			uint32_t sum = 0;

			for (uint32_t bit = 0; bit < 4; bit++)
				if (value & (8u >> bit))
					sum ^= (uint32_t)(window >> (8 - bit - (i & 1) * 4));
			hasher->table[i][value] = sum;
		}
	}
}

static uint32_t toeplitz(const struct flow_hasher *hasher, const uint8_t *bytes, uint32_t size)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < size; i++)
		sum ^= hasher->table[2 * i][bytes[i] >> 4] ^
		       hasher->table[2 * i + 1][bytes[i] & 15];
	return sum;
}

/* Both addresses, and the ports where the transport at `at` has them within the frame. */
static void input_ip(struct flow_input *in, const uint8_t *addresses, uint32_t address,
		     uint8_t protocol, const uint8_t *at, const uint8_t *end)
{
	memcpy(in->bytes, addresses, 2 * (size_t)address);
	in->address = address;
	in->size = 2 * address;
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP && protocol != IPPROTO_SCTP)
		return;
	if (!at || end - at < 4)
		return;
	memcpy(in->bytes + in->size, at, 4);
	in->size += 4;
}

/* False: not even the addresses are there. */
static bool input_ipv4(struct flow_input *in, const uint8_t *at, const uint8_t *end)
{
	uint32_t header;
	bool fragment;

	if (end - at < 20 || at[0] >> 4 != 4 || (at[0] & 15) < 5)
		return false;
	header = (at[0] & 15) * 4u;
	fragment = be16(at + 6) & 0x3fff; /* more fragments, or not the first */
	input_ip(in, at + 12, 4, at[9], fragment || end - at < header ? NULL : at + header, end);
	return true;
}

static bool input_ipv6(struct flow_input *in, const uint8_t *at, const uint8_t *end)
{
	const uint8_t *addresses = at + 8;
	uint8_t next;

	if (end - at < 40 || at[0] >> 4 != 6)
		return false;
	next = at[6];
	at += 40;
	for (int i = 0; i < FLOW_EXTENSIONS_MAX; i++) {
		bool known = next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING ||
			     next == IPPROTO_DSTOPTS || next == IPPROTO_AH;
		uint32_t size;

		if (!known || end - at < 8)
			break;
		size = next == IPPROTO_AH ? (at[1] + 2u) * 4 : (at[1] + 1u) * 8;
		if (size > end - at)
			size = (uint32_t)(end - at);
		next = at[0];
		at += size;
	}
	input_ip(in, addresses, 16, next, at, end);
	return true;
}

static void input_other(struct flow_input *in, const uint8_t *data, uint16_t type)
{
	memcpy(in->bytes, data + 6, 6);
	memcpy(in->bytes + 6, data, 6);
	in->bytes[12] = (uint8_t)(type >> 8);
	in->bytes[13] = (uint8_t)type;
	in->address = 6;
	in->size = 14;
}

static void swap(uint8_t *a, uint8_t *b, uint32_t size)
{
	uint8_t kept[16];

	memcpy(kept, a, size);
	memcpy(a, b, size);
	memcpy(b, kept, size);
}

/* One order for both directions. */
static void input_order(struct flow_input *in)
{
	uint8_t *ports = in->bytes + 2 * (size_t)in->address;
	bool has_ports = in->size == 2 * in->address + 4;
	int order = memcmp(in->bytes, in->bytes + in->address, in->address);

	if (!order && has_ports)
		order = memcmp(ports, ports + 2, 2);
	if (order <= 0)
		return;
	swap(in->bytes, in->bytes + in->address, in->address);
	if (has_ports)
		swap(ports, ports + 2, 2);
}

uint32_t flow_hash(const struct flow_hasher *hasher, const uint8_t *data, uint32_t len)
{
	const uint8_t *end = data + len, *at;
	struct flow_input in;
	uint32_t hash;
	uint16_t type;
	bool found = false;

	if (len < MAC_PAIR + 2)
		return 1;
	at = data + MAC_PAIR + 2;
	type = be16(at - 2);
	for (int i = 0; i < TAGS_MAX && (type == TYPE_TAG || type == TYPE_SERVICE_TAG); i++) {
		if (end - at < 4)
			break;
		type = be16(at + 2);
		at += 4;
	}
	if (type == TYPE_IPV4)
		found = input_ipv4(&in, at, end);
	else if (type == TYPE_IPV6)
		found = input_ipv6(&in, at, end);
	if (!found)
		input_other(&in, data, type);
	if (atomic_load_explicit((_Atomic bool *)&hasher->symmetric, memory_order_relaxed))
		input_order(&in);
	hash = toeplitz(hasher, in.bytes, in.size);
	return hash ? hash : 1;
}

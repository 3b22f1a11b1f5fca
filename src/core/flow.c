/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdatomic.h>
#include <string.h>

#include <core/flow.h>
#include <core/headers.h>

#define MAC_PAIR 12 /* bytes of both MAC addresses */

/* What is hashed: two addresses of `size` bytes, then `tail` bytes (two ports, or a type). */
struct flow_input {
	uint8_t bytes[FLOW_INPUT_MAX];
	uint32_t address; /* bytes of one */
	uint32_t size;	  /* of all */
};

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

/* Both addresses, and the ports where they are in the frame. */
static void input_ip(struct flow_input *in, const uint8_t *data, const struct headers *at)
{
	uint32_t size = headers_addresses_size(at);

	if (size == 8)
		memcpy(in->bytes, headers_addresses(data, at), 8);
	else
		memcpy(in->bytes, headers_addresses(data, at), 32);
	in->address = size / 2;
	in->size = size;
	if (at->hidden || (at->protocol != PROTOCOL_TCP && at->protocol != PROTOCOL_UDP &&
			   at->protocol != PROTOCOL_SCTP))
		return;
	memcpy(in->bytes + size, data + at->transport, 4);
	in->size += 4;
}

static void input_other(struct flow_input *in, const uint8_t *data, const uint8_t *type)
{
	memcpy(in->bytes, data + 6, 6);
	memcpy(in->bytes + 6, data, 6);
	memcpy(in->bytes + 12, type, 2);
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
	struct flow_input in;
	struct headers at;
	uint32_t hash;

	if (len < MAC_PAIR + 2)
		return 1;
	headers_find(data, len, &at);
	if (at.version)
		input_ip(&in, data, &at);
	else
		input_other(&in, data, data + at.network - 2);
	if (atomic_load_explicit((_Atomic bool *)&hasher->symmetric, memory_order_relaxed))
		input_order(&in);
	hash = toeplitz(hasher, in.bytes, in.size);
	return hash ? hash : 1;
}

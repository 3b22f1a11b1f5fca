/* SPDX-License-Identifier: BSD-2-Clause */
/* Ethernet frames of TCP and UDP, with right checksums, for tests of what reads them. */
#ifndef FRAMES_H
#define FRAMES_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <core/checksum.h>

struct frame_spec {
	uint8_t version;	 /* 4 or 6 */
	uint8_t protocol;	 /* 6 or 17 */
	uint8_t tags;		 /* 0 to 2 */
	uint8_t flow;		 /* in the addresses */
	uint16_t source, target; /* ports */
	uint32_t sequence, ack;
	uint8_t flags;	 /* TCP */
	uint8_t options; /* bytes of them, TCP: a multiple of 4; a time stamp first */
	uint16_t id;
	bool df;
	uint16_t size; /* of the payload */
	uint8_t fill;  /* its first byte; the others count up */
};

static inline uint32_t frame_network(const struct frame_spec *s)
{
	return 14 + 4u * s->tags;
}

static inline uint32_t frame_transport(const struct frame_spec *s)
{
	return frame_network(s) + (s->version == 4 ? 20 : 40);
}

static inline uint32_t frame_payload(const struct frame_spec *s)
{
	return frame_transport(s) + (s->protocol == 6 ? 20u + s->options : 8);
}

static inline void frame_put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline void frame_put32(uint8_t *at, uint32_t value)
{
	frame_put16(at, value >> 16);
	frame_put16(at + 2, value);
}

/* The checksum of IPv4's header, and of the transport unless it is UDP that has none. */
static inline void frame_checksums(const struct frame_spec *s, uint8_t *data, uint32_t len)
{
	uint32_t network = frame_network(s), transport = frame_transport(s);
	uint8_t *ip = data + network;
	uint8_t *field = data + transport + (s->protocol == 6 ? 16 : 6);
	uint32_t sum = htons(s->protocol) + htons((uint16_t)(len - transport));
	uint16_t value;

	if (s->version == 4) {
		memset(ip + 10, 0, 2);
		value = checksum_finish(checksum_add(0, ip, 20));
		memcpy(ip + 10, &value, 2);
	}
	memset(field, 0, 2);
	sum = checksum_add(sum, s->version == 4 ? ip + 12 : ip + 8, s->version == 4 ? 8 : 32);
	value = checksum_finish(checksum_add(sum, data + transport, len - transport));
	if (!value)
		value = 0xffff;
	memcpy(field, &value, 2);
}

static inline void frame_ip(const struct frame_spec *s, uint8_t *ip, uint32_t size)
{
	if (s->version == 4) {
		ip[0] = 0x45;
		frame_put16(ip + 2, size);
		frame_put16(ip + 4, s->id);
		frame_put16(ip + 6, s->df ? 0x4000 : 0);
		ip[8] = 64;
		ip[9] = s->protocol;
		frame_put32(ip + 12, 0x0a000000u + s->flow);
		frame_put32(ip + 16, 0x0a010000u + s->flow);
	} else {
		frame_put32(ip, 0x60012345);
		frame_put16(ip + 4, size - 40);
		ip[6] = s->protocol;
		ip[7] = 64;
		ip[8] = ip[24] = 0xfd;
		ip[23] = s->flow;
		ip[38] = 1;
		ip[39] = s->flow;
	}
}

/* Returns its length. */
static inline uint32_t frame_write(const struct frame_spec *s, uint8_t *data)
{
	static const uint8_t macs[12] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};
	uint32_t network = frame_network(s), payload = frame_payload(s);
	uint32_t len = payload + s->size;
	uint8_t *l4 = data + frame_transport(s);

	memset(data, 0, payload);
	memcpy(data, macs, sizeof(macs));
	for (uint32_t i = 0; i < s->tags; i++) {
		frame_put16(data + 12 + 4 * i, i + 1 < s->tags ? 0x88a8 : 0x8100);
		frame_put16(data + 14 + 4 * i, 10 + i);
	}
	frame_put16(data + network - 2, s->version == 4 ? 0x0800 : 0x86dd);
	frame_ip(s, data + network, len - network);
	frame_put16(l4, s->source);
	frame_put16(l4 + 2, s->target);
	if (s->protocol == 6) {
		frame_put32(l4 + 4, s->sequence);
		frame_put32(l4 + 8, s->ack);
		l4[12] = (uint8_t)((20 + s->options) / 4 << 4);
		l4[13] = s->flags;
		frame_put16(l4 + 14, 1000);
		if (s->options >= 12)
			memcpy(l4 + 20, "\x01\x01\x08\x0a\0\0\x10\0\0\0\x20\0", 12);
	} else {
		frame_put16(l4 + 4, 8u + s->size);
	}
	for (uint32_t i = 0; i < s->size; i++)
		data[payload + i] = (uint8_t)(s->fill + i);
	frame_checksums(s, data, len);
	return len;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/checksum.h"

#include <arpa/inet.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static inline uint64_t load32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

enum {
	PROTOCOL_HOP_BY_HOP = 0,
	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_DESTINATION_OPTIONS = 60,

	ETHERTYPE_AT = 12,
	VLAN_TAG = 4,
	VLAN_TAGS_MAX = 2,
	IPV6_HEADER = 40,
	IPV6_EXTENSIONS_MAX = 4,
	CHECKSUM_IN_TCP = 16,
	CHECKSUM_IN_UDP = 6,
	UDP_HEADER = 8,
	TUNNEL_HEADER = 8, /* of VXLAN, and of Geneve without options */
	PORT_VXLAN = 4789,
	PORT_VXLAN_LINUX = 8472, /* from before it had a number, and still the default */
	PORT_GENEVE = 6081,
	GENEVE_ETHERNET = 0x6558,
};

/* What the transport header's place and the pseudo-header come to. */
struct transport {
	uint32_t at;	  /* from data */
	uint32_t len;	  /* header and payload */
	uint32_t offset;  /* of its checksum, from `at` */
	uint8_t protocol; /* TCP or UDP */
	uint64_t sum;	  /* of the addresses */
};

static bool transport_ipv4(const struct packet *p, uint32_t at, struct transport *t)
{
	const uint8_t *ip = p->data + at;
	uint32_t header, total;

	if (at + 20 > p->len || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 0xfu) * 4;
	total = ntohs(load16(ip + 2));
	/* More fragments, or not the first. */
	if (load16(ip + 6) & htons(0x3fff))
		return false;
	if (header < 20 || total < header || at + total > p->total)
		return false;
	t->at = at + header;
	t->len = total - header;
	t->protocol = ip[9];
	t->sum = load32(ip + 12) + load32(ip + 16);
	return true;
}

static bool transport_ipv6(const struct packet *p, uint32_t at, struct transport *t)
{
	const uint8_t *ip = p->data + at;

	if (at + IPV6_HEADER > p->len || ip[0] >> 4 != 6)
		return false;
	t->protocol = ip[6];
	t->len = ntohs(load16(ip + 4));
	t->at = at + IPV6_HEADER;
	if (t->at + t->len > p->total)
		return false;
	t->sum = 0;
	for (int i = 8; i < IPV6_HEADER; i += 4)
		t->sum += load32(ip + i);
	/* Behind a routing header the pseudo-header has another address; a fragment has no sum. */
	for (int i = 0; i < IPV6_EXTENSIONS_MAX; i++) {
		const uint8_t *extension = p->data + t->at;
		uint32_t size;

		if (t->protocol != PROTOCOL_HOP_BY_HOP &&
		    t->protocol != PROTOCOL_DESTINATION_OPTIONS)
			break;
		if (t->at + 2 > p->len)
			return false;
		size = (extension[1] + 1u) * 8;
		if (size > t->len)
			return false;
		t->protocol = extension[0];
		t->at += size;
		t->len -= size;
	}
	return true;
}

/* From the place of the EtherType; TCP or UDP, and with its checksum inside of the frame. */
static bool transport_find(const struct packet *p, uint32_t at, struct transport *t)
{
	uint16_t type;

	if (at + 2 > p->len)
		return false;
	type = load16(p->data + at);
	for (int tags = 0; tags < VLAN_TAGS_MAX; tags++) {
		if (type != htons(0x8100) && type != htons(0x88a8))
			break;
		at += VLAN_TAG;
		if (at + 2 > p->len)
			return false;
		type = load16(p->data + at);
	}
	at += 2;
	if (type == htons(0x0800)) {
		if (!transport_ipv4(p, at, t))
			return false;
	} else if (type != htons(0x86dd) || !transport_ipv6(p, at, t)) {
		return false;
	}
	if (t->protocol == PROTOCOL_TCP)
		t->offset = CHECKSUM_IN_TCP;
	else if (t->protocol == PROTOCOL_UDP)
		t->offset = CHECKSUM_IN_UDP;
	else
		return false;
	if (t->len < t->offset + 2 || t->at + t->offset + 2 > p->len)
		return false;
	/* Completing adds up everything to the end: bytes behind the datagram would be wrong there.
	 */
	return t->at + t->len == p->total;
}

static bool transport_partial(const struct packet *p, const struct transport *t)
{
	uint64_t sum = t->sum + htons(t->protocol) + htons((uint16_t)t->len);

	sum = (sum & UINT32_MAX) + (sum >> 32);
	return load16(p->data + t->at + t->offset) ==
	       checksum_fold(checksum_add(0, &sum, sizeof(sum)));
}

/* A frame inside of a UDP datagram: the place of its EtherType. */
static bool tunnel_enter(const struct packet *p, const struct transport *t, uint32_t *at)
{
	const uint8_t *udp = p->data + t->at;
	uint32_t inner = t->at + UDP_HEADER + TUNNEL_HEADER + ETHERTYPE_AT;
	uint16_t port;

	if (t->protocol != PROTOCOL_UDP || inner > p->len)
		return false;
	port = load16(udp + 2);
	if (port == htons(PORT_GENEVE)) {
		if (load16(udp + UDP_HEADER + 2) != htons(GENEVE_ETHERNET))
			return false;
		inner += (udp[UDP_HEADER] & 0x3fu) * 4; /* its options */
	} else if (port != htons(PORT_VXLAN) && port != htons(PORT_VXLAN_LINUX)) {
		return false;
	}
	*at = inner;
	return true;
}

bool checksum_partial_detect(struct packet *p)
{
	uint32_t at = ETHERTYPE_AT;
	struct transport t;

	if (!transport_find(p, at, &t))
		return false;
	/* The outer checksum of a tunnel is complete while the inner one is not. */
	if (!transport_partial(p, &t) &&
	    !(tunnel_enter(p, &t, &at) && transport_find(p, at, &t) && transport_partial(p, &t)))
		return false;
	p->flags |= PACKET_CSUM_PARTIAL;
	p->csum_start = (uint16_t)t.at;
	p->csum_offset = (uint16_t)t.offset;
	return true;
}

/* What belongs into the checksum field, with its present content taken for a partial sum. */
static uint16_t checksum_value(const struct packet *p)
{
	uint32_t skip = p->csum_start;
	bool odd = false;
	uint32_t sum = 0;
	uint16_t value;

	for (const struct packet *frame = p; frame; frame = frame->next) {
		uint32_t size = frame->len - skip;
		uint32_t part = checksum_add(0, frame->data + skip, size);

		/* A frame that starts at an odd place has its bytes in the other halves. */
		if (odd)
			part = (part & 0x00ff00ff) << 8 | (part >> 8 & 0x00ff00ff);
		sum += part;
		sum += sum < part;
		odd ^= size & 1;
		skip = 0;
	}
	value = checksum_finish(sum);
	/*
	 * Two words mean zero. In UDP 0 says "no checksum"; TCP's senders write what they have
	 * computed, 0, so that is what comes out again; but what is right already stays.
	 */
	if (!value && (p->csum_offset != CHECKSUM_IN_TCP ||
		       load16(p->data + p->csum_start + p->csum_offset) == 0xffff))
		value = 0xffff;
	return value;
}

static bool checksum_inside(const struct packet *p)
{
	return (uint32_t)p->csum_start + p->csum_offset + sizeof(uint16_t) <= p->len;
}

bool checksum_partial_right(const struct packet *p)
{
	return checksum_inside(p) &&
	       load16(p->data + p->csum_start + p->csum_offset) == checksum_value(p);
}

bool checksum_complete(struct packet *p)
{
	uint16_t value;

	if (!checksum_inside(p))
		return false;
	value = checksum_value(p);
	memcpy(p->data + p->csum_start + p->csum_offset, &value, sizeof(value));
	p->flags &= (uint16_t)~PACKET_CSUM_PARTIAL;
	p->flags |= PACKET_CSUM_VALID;
	return true;
}

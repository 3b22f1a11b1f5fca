/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/checksum.h>

#include <core/headers.h>

enum {
	TUNNEL_HEADER = 8, /* of VXLAN, and of Geneve without options */
	PORT_VXLAN = 4789,
	PORT_VXLAN_LINUX = 8472, /* from before it had a number, and still the default */
	PORT_GENEVE = 6081,
	GENEVE_ETHERNET = 0x6558,
};

/* Of TCP or UDP. */
struct transport {
	struct headers at;
	uint32_t len;	 /* header and payload */
	uint32_t offset; /* of its checksum */
};

/*
 * From the place of the EtherType; TCP or UDP, and with its checksum inside of the frame. Not
 * behind a routing header, where the pseudo-header has another address; a fragment has no sum.
 */
static bool transport_find(const struct packet *p, uint32_t at, struct transport *t)
{
	headers_find_inner(p->data, p->len, at, &t->at);
	if (!t->at.version || t->at.hidden || t->at.special)
		return false;
	if (t->at.protocol == PROTOCOL_TCP)
		t->offset = TCP_CHECKSUM;
	else if (t->at.protocol == PROTOCOL_UDP)
		t->offset = UDP_CHECKSUM;
	else
		return false;
	/* Completing adds up everything to the end: bytes behind the datagram would be wrong there.
	 */
	if (t->at.end != p->total || t->at.transport + t->offset + 2 > t->at.end)
		return false;
	t->len = t->at.end - t->at.transport;
	return t->at.transport + t->offset + 2 <= p->len;
}

/* Written out: it is looked for in every packet that a port receives. */
static uint64_t addresses_sum(const uint8_t *data, const struct headers *at)
{
	const uint8_t *addresses = headers_addresses(data, at);
	uint64_t sum = (uint64_t)word32(addresses) + word32(addresses + 4);

	if (at->version == 6)
		for (int i = 8; i < 32; i += 4)
			sum += word32(addresses + i);
	return sum;
}

static bool transport_partial(const struct packet *p, const struct transport *t)
{
	uint64_t sum =
		addresses_sum(p->data, &t->at) + htons(t->at.protocol) + htons((uint16_t)t->len);

	sum = (sum & UINT32_MAX) + (sum >> 32);
	return word16(p->data + t->at.transport + t->offset) ==
	       checksum_fold(checksum_add(0, &sum, sizeof(sum)));
}

/* A frame inside of a UDP datagram: the place of its EtherType. */
static bool tunnel_enter(const struct packet *p, const struct transport *t, uint32_t *at)
{
	const uint8_t *udp = p->data + t->at.transport;
	uint32_t inner = t->at.transport + (uint32_t)UDP_HEADER + TUNNEL_HEADER + ETHERTYPE_AT;
	uint16_t port;

	if (t->at.protocol != PROTOCOL_UDP || inner > p->len)
		return false;
	port = word16(udp + 2);
	if (port == htons(PORT_GENEVE)) {
		if (word16(udp + UDP_HEADER + 2) != htons(GENEVE_ETHERNET))
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
	p->csum_start = t.at.transport;
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
	if (!value && (p->csum_offset != TCP_CHECKSUM ||
		       word16(p->data + p->csum_start + p->csum_offset) == 0xffff))
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
	       word16(p->data + p->csum_start + p->csum_offset) == checksum_value(p);
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

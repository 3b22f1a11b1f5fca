/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/frames.h>

#include <core/checksum.h>
#include <core/gro.h>
#include <core/headers.h>

#define CHAIN_FLAGS (PACKET_GSO | PACKET_FRAMES)

/* Takes the head off: a packet by itself. What was behind it is the super-packet. */
static struct packet *head_take(struct packet **p)
{
	struct packet *head = *p, *rest = head->next;

	if (rest) {
		rest->total = head->total - head->len;
		rest->gso_type = head->gso_type;
		rest->gso_size = head->gso_size;
		rest->csum_start = head->csum_start;
		rest->csum_offset = head->csum_offset;
		rest->flags |= CHAIN_FLAGS;
	}
	head->flags &= (uint16_t)~CHAIN_FLAGS;
	head->next = NULL;
	head->total = head->len;
	*p = rest;
	return head;
}

uint32_t frames_take(struct packet **p, struct packet **out, uint32_t room)
{
	uint32_t n = 0;

	while (*p && n < room)
		out[n++] = head_take(p);
	return n;
}

/* Where the headers are, and what becomes of them. */
struct joint {
	struct headers at;
	uint32_t payload; /* from the data of each frame */
	uint32_t total;
	uint8_t last_flags; /* TCP: PSH and FIN of any */
};

static bool joint_begin(const struct packet *p, struct joint *joint)
{
	const uint8_t *transport;

	headers_find(p->data, p->len, &joint->at);
	if (!joint->at.plain || joint->at.hidden)
		return false;
	transport = p->data + joint->at.transport;
	joint->payload = joint->at.transport + (uint32_t)UDP_HEADER;
	if (joint->at.protocol == PROTOCOL_TCP) {
		if (joint->at.transport + (uint32_t)TCP_HEADER_MIN > p->len)
			return false;
		joint->payload = joint->at.transport + (transport[TCP_HEADER_WORDS] >> 4) * 4u;
		return joint->payload >= joint->at.transport + (uint32_t)TCP_HEADER_MIN;
	}
	return joint->at.protocol == PROTOCOL_UDP && joint->payload <= p->len &&
	       word16(transport + UDP_CHECKSUM);
}

/* All frames, none of which is changed. */
static bool joint_measure(const struct packet *p, struct joint *joint)
{
	uint32_t frames = 0;

	joint->total = joint->payload;
	joint->last_flags = 0;
	for (; p; p = p->next) {
		if (++frames > GRO_FRAMES_MAX || p->len < joint->payload)
			return false;
		joint->total += p->len - joint->payload;
		if (joint->at.protocol == PROTOCOL_TCP)
			joint->last_flags |= p->data[joint->at.transport + TCP_FLAGS];
	}
	return joint->total - joint->at.network <= GRO_BYTES_MAX;
}

static void network_finish(uint8_t *ip, const struct joint *joint)
{
	uint32_t size = joint->total - joint->at.network;
	uint16_t sum = 0;

	if (joint->at.version == 6) {
		store16(ip + IPV6_LENGTH, size - IPV6_HEADER);
		return;
	}
	store16(ip + IPV4_LENGTH, size);
	memcpy(ip + IPV4_CHECKSUM, &sum, sizeof(sum));
	sum = checksum_finish(checksum_add(0, ip, IPV4_HEADER_MIN));
	memcpy(ip + IPV4_CHECKSUM, &sum, sizeof(sum));
}

static void transport_finish(struct packet *p, const struct joint *joint)
{
	const uint8_t *ip = p->data + joint->at.network;
	uint8_t *transport = p->data + joint->at.transport;
	uint32_t size = joint->total - joint->at.transport;
	uint32_t sum = htons(joint->at.protocol) + htons((uint16_t)size);
	uint16_t partial;

	if (joint->at.protocol == PROTOCOL_TCP)
		transport[TCP_FLAGS] |= joint->last_flags & (TCP_PSH | TCP_FIN);
	else
		store16(transport + UDP_LENGTH, size);
	sum = joint->at.version == 4 ? checksum_add(sum, ip + IPV4_ADDRESSES, 8)
				     : checksum_add(sum, ip + IPV6_ADDRESSES, 32);
	partial = checksum_fold(sum);
	p->csum_start = joint->at.transport;
	p->csum_offset = joint->at.protocol == PROTOCOL_TCP ? TCP_CHECKSUM : UDP_CHECKSUM;
	memcpy(transport + p->csum_offset, &partial, sizeof(partial));
}

bool frames_join(struct packet *p)
{
	struct joint joint;

	if (!joint_begin(p, &joint) || !joint_measure(p, &joint))
		return false;
	for (struct packet *frame = p->next; frame; frame = frame->next) {
		frame->data += joint.payload;
		frame->len -= joint.payload;
		frame->total = frame->len;
		frame->flags = 0;
	}
	network_finish(p->data + joint.at.network, &joint);
	transport_finish(p, &joint);
	p->total = joint.total;
	p->flags &= (uint16_t) ~(PACKET_FRAMES | PACKET_CSUM_VALID);
	p->flags |= PACKET_CSUM_PARTIAL;
	return true;
}

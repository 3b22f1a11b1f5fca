/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/segment.h>

#include <linux/virtio_net.h>

#include <napier/port.h>

#include <core/checksum.h>
#include <core/frames.h>
#include <core/headers.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Where the headers of a super-packet are, from data; all in its first frame. */
struct layout {
	struct headers at;
	uint32_t payload;
};

/*
 * False when the headers are not those that gso_type says, or not whole in the first frame. Options
 * and extension headers are repeated in each segment, like the rest. Not behind a routing header:
 * there the checksum is over another destination; and there are no segments of fragments.
 */
static bool layout_find(const struct packet *p, struct layout *layout)
{
	uint8_t type = p->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
	const struct headers *at = &layout->at;
	uint32_t header = UDP_HEADER;

	headers_find(p->data, p->len, &layout->at);
	if (!p->gso_size || !at->version || at->hidden || at->special)
		return false;
	if (at->protocol == PROTOCOL_TCP) {
		if (type != (at->version == 4 ? VIRTIO_NET_HDR_GSO_TCPV4
					      : VIRTIO_NET_HDR_GSO_TCPV6) ||
		    at->transport + (uint32_t)TCP_HEADER_MIN > p->len)
			return false;
		header = (p->data[at->transport + TCP_HEADER_WORDS] >> 4) * 4u;
		if (header < TCP_HEADER_MIN)
			return false;
	} else if (at->protocol != PROTOCOL_UDP || type != VIRTIO_NET_HDR_GSO_UDP_L4) {
		return false;
	}
	layout->payload = at->transport + header;
	return layout->payload <= p->len;
}

/* A place in the payload of a chain. */
struct cursor {
	const struct packet *frame;
	uint32_t at; /* from the frame's data */
};

static void payload_copy(struct cursor *from, uint8_t *to, uint32_t size)
{
	while (size && from->frame) {
		uint32_t part = from->frame->len - from->at;

		if (part > size)
			part = size;
		memcpy(to, from->frame->data + from->at, part);
		from->at += part;
		to += part;
		size -= part;
		if (from->at == from->frame->len)
			*from = (struct cursor){.frame = from->frame->next};
	}
}

/* The pseudo-header's sum into the checksum field, and the field's place into the packet. */
static void checksum_begin(struct packet *segment, const struct layout *layout)
{
	const struct headers *at = &layout->at;
	uint32_t sum = htons(at->protocol) + htons((uint16_t)(segment->len - at->transport));
	uint16_t partial = checksum_fold(checksum_add(sum, headers_addresses(segment->data, at),
						      headers_addresses_size(at)));

	segment->flags = PACKET_CSUM_PARTIAL;
	segment->csum_start = at->transport;
	segment->csum_offset = at->protocol == PROTOCOL_TCP ? TCP_CHECKSUM : UDP_CHECKSUM;
	memcpy(segment->data + segment->csum_start + segment->csum_offset, &partial,
	       sizeof(partial));
}

/* Makes the headers, which are the super-packet's, those of its i-th segment. */
static void headers_finish(struct packet *segment, const struct layout *layout, uint32_t i,
			   bool last, uint16_t gso_size)
{
	uint8_t *ip = segment->data + layout->at.network;
	uint8_t *transport = segment->data + layout->at.transport;

	if (layout->at.version == 4) {
		uint16_t sum;

		store16(ip + IPV4_LENGTH, segment->len - layout->at.network);
		store16(ip + IPV4_ID, load16(ip + IPV4_ID) + i);
		memset(ip + IPV4_CHECKSUM, 0, sizeof(sum));
		sum = checksum_finish(
			checksum_add(0, ip, layout->at.transport - layout->at.network));
		memcpy(ip + IPV4_CHECKSUM, &sum, sizeof(sum));
	} else {
		store16(ip + IPV6_LENGTH, segment->len - layout->at.network - IPV6_HEADER);
	}
	if (layout->at.protocol == PROTOCOL_TCP) {
		store32(transport + TCP_SEQUENCE, load32(transport + TCP_SEQUENCE) + i * gso_size);
		if (i)
			transport[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
		if (!last)
			transport[TCP_FLAGS] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	} else {
		store16(transport + UDP_LENGTH, segment->len - layout->at.transport);
	}
	checksum_begin(segment, layout);
	checksum_complete(segment);
}

static void segment_fill(struct packet *segment, const struct packet *p,
			 const struct layout *layout, struct cursor *from, uint32_t i,
			 uint32_t size, bool last)
{
	memcpy(segment->data, p->data, layout->payload);
	payload_copy(from, segment->data + layout->payload, size);
	segment->len = layout->payload + size;
	segment->total = segment->len;
	segment->stamp = p->stamp;
	segment->hash = p->hash;
	segment->port = p->port;
	segment->queue = p->queue;
	headers_finish(segment, layout, i, last, p->gso_size);
}

/* Takes n segments off the front: what is left continues where they end. */
static void front_remove(struct context *context, struct packet *p, const struct layout *layout,
			 uint32_t n)
{
	uint8_t *ip, *transport;
	uint32_t size = n * p->gso_size;
	uint32_t here = p->len - layout->payload;

	p->total -= size;
	if (here > size)
		here = size;
	memmove(p->data + here, p->data, layout->payload);
	p->data += here;
	p->len -= here;
	size -= here;
	while (size && p->next) {
		struct packet *frame = p->next;

		if (frame->len > size) {
			frame->data += size;
			frame->len -= size;
			break;
		}
		size -= frame->len;
		p->next = frame->next;
		frame->next = NULL;
		packet_free(&context->cache, &frame, 1);
	}
	ip = p->data + layout->at.network;
	transport = p->data + layout->at.transport;
	if (layout->at.version == 4)
		store16(ip + IPV4_ID, load16(ip + IPV4_ID) + n);
	if (layout->at.protocol == PROTOCOL_TCP) {
		store32(transport + TCP_SEQUENCE,
			load32(transport + TCP_SEQUENCE) + n * p->gso_size);
		transport[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
	}
}

static uint32_t segment_refuse(struct context *context, struct packet **p, enum drop_reason reason)
{
	packet_drop(context, p, 1, reason);
	*p = NULL;
	return 0;
}

uint32_t segment_packet(struct context *context, struct packet **p, struct packet **out,
			uint32_t room)
{
	struct packet *whole = *p;
	struct layout layout;
	struct cursor from;
	uint32_t payload, size, segments, wanted, got;

	if (whole->flags & PACKET_FRAMES) {
		got = frames_take(p, out, room);
		counter_add(&context->counters->cloned, *p ? got : got - 1);
		return got;
	}
	if (!layout_find(whole, &layout))
		return segment_refuse(context, p, DROP_GSO);
	payload = whole->total - layout.payload;
	size = payload < whole->gso_size ? payload : whole->gso_size;
	if (layout.payload + size > pool_room(context->cache.pool))
		return segment_refuse(context, p, DROP_TOO_LONG);
	segments = payload ? (payload + size - 1) / size : 1;
	wanted = segments < room ? segments : room;
	got = packet_alloc(&context->cache, out, wanted);

	from = (struct cursor){.frame = whole, .at = layout.payload};
	for (uint32_t i = 0; i < got; i++) {
		bool last = i + 1 == segments;

		segment_fill(out[i], whole, &layout, &from, i, last ? payload - i * size : size,
			     last);
	}
	counter_add(&context->counters->cloned, got == segments ? got - 1 : got);
	if (got < wanted) {
		segment_refuse(context, p, DROP_POOL_EMPTY);
	} else if (got < segments) {
		front_remove(context, whole, &layout, got);
	} else {
		packet_free(&context->cache, p, 1);
		*p = NULL;
	}
	return got;
}

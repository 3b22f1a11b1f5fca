/* SPDX-License-Identifier: BSD-2-Clause */
#include <port/vnet.h>

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <napier/port.h>

#define ETHERNET_HEADER 14
#define TCP_DATA_OFFSET 12 /* in the TCP header: its length in words, in the upper half */
#define UDP_HEADER 8

void vnet_receive_drop(struct context *context, struct packet *p, uint32_t bytes,
		       enum drop_reason reason)
{
	counter_add(&context->counters->received, 1);
	counter_add(&context->counters->received_bytes, bytes);
	packet_drop(context, &p, 1, reason);
}

/* Moves what was spilled into frames behind p. False when there are not enough. */
static bool spill_chain(struct context *context, struct packet *p, const uint8_t *spill,
			uint32_t size)
{
	uint32_t room = pool_room(context->cache.pool);
	uint32_t wanted = (size + room - 1) / room;
	struct packet *frames[PACKET_VECTOR_MAX];
	uint32_t got = packet_alloc(&context->cache, frames, wanted);

	if (got < wanted) {
		packet_free(&context->cache, frames, got);
		return false;
	}
	for (uint32_t i = 0; i < wanted; i++) {
		uint32_t part = size < room ? size : room;

		memcpy(frames[i]->data, spill, part);
		frames[i]->len = part;
		frames[i]->total = part;
		p->next = frames[i];
		p = frames[i];
		spill += part;
		size -= part;
	}
	return true;
}

bool vnet_receive(struct context *context, struct packet *p, const struct virtio_net_hdr *header,
		  const uint8_t *spill, uint32_t size)
{
	uint32_t room = pool_room(context->cache.pool);

	size = size > sizeof(*header) ? size - (uint32_t)sizeof(*header) : 0;
	if (size < ETHERNET_HEADER) {
		vnet_receive_drop(context, p, size, DROP_TOO_SHORT);
		return false;
	}
	p->flags = 0;
	p->len = size < room ? size : room;
	p->total = size;
	if (size > room && !spill_chain(context, p, spill, size - room)) {
		vnet_receive_drop(context, p, size, DROP_POOL_EMPTY);
		return false;
	}
	if (header->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
		p->flags |= PACKET_CSUM_PARTIAL;
		p->csum_start = header->csum_start;
		p->csum_offset = header->csum_offset;
	} else if (header->flags & VIRTIO_NET_HDR_F_DATA_VALID) {
		p->flags |= PACKET_CSUM_VALID;
	}
	if (header->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		p->flags |= PACKET_GSO;
		p->gso_type = header->gso_type;
		p->gso_size = header->gso_size;
	}
	return true;
}

/*
 * Bytes of headers of a super-packet: the kernel keeps these in the linear part of its buffer and
 * the payload in pages. 0 (it then decides by itself) when the packet does not say.
 */
static uint16_t headers_length(const struct packet *p)
{
	uint32_t transport = p->csum_start;

	if (!(p->flags & PACKET_CSUM_PARTIAL))
		return 0;
	if (p->gso_type == VIRTIO_NET_HDR_GSO_UDP_L4)
		return (uint16_t)(transport + UDP_HEADER);
	if (transport + TCP_DATA_OFFSET >= p->len)
		return 0;
	return (uint16_t)(transport + (p->data[transport + TCP_DATA_OFFSET] >> 4) * 4);
}

uint32_t vnet_transmit(const struct packet *p, struct virtio_net_hdr *header, struct iovec *iov,
		       uint32_t max)
{
	uint32_t n = 1;

	*header = (struct virtio_net_hdr){0};
	if (p->flags & PACKET_CSUM_PARTIAL) {
		header->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		header->csum_start = p->csum_start;
		header->csum_offset = p->csum_offset;
	}
	if (p->flags & PACKET_GSO) {
		header->gso_type = p->gso_type;
		header->gso_size = p->gso_size;
		header->hdr_len = headers_length(p);
	}
	if (!max)
		return 0;
	iov[0] = (struct iovec){.iov_base = header, .iov_len = sizeof(*header)};
	for (; p; p = p->next) {
		if (n == max)
			return 0;
		iov[n++] = (struct iovec){.iov_base = p->data, .iov_len = p->len};
	}
	return n;
}

bool vnet_kernel_uso(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 2));
}

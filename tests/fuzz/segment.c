/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a TAP or a packet socket hands over, with whatever its virtio-net header says, through to a
 * port that takes nothing but packets of the wire's size: every byte of the payload goes out once
 * and in order, nothing is longer than a frame, the books balance, and all frames are free again.
 */
#include <string.h>

#include <core/checksum.h>
#include <core/segment.h>
#include <port/vnet.h>

#include "frame.h"
#include "fuzz.h"

#define FRAMES 192
#define LEN_MAX 65535
#define REPEATS_MAX 40 /* of the payload, so that a small input makes a large packet */

static struct pool *pool;
static struct context context;
static uint8_t bytes[LEN_MAX + FRAME_ROOM];

static void start(void)
{
	const struct pool_config config = {.frames = FRAMES, .frame_size = 2048};

	ALWAYS(!pool_create(&config, &pool, NULL));
	context.counters = &context.own;
	pool_cache_init(&context.cache, pool);
}

static uint64_t dropped(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < DROP_MAX; i++)
		sum += counter_read(&context.own.dropped[i]);
	return sum;
}

/* A frame whose payload goes on and on: a super-packet's. */
static uint32_t bytes_make(struct input *in, struct frame_facts *facts)
{
	static struct frame_flows flows;
	uint32_t len = frame_make(in, &flows, bytes, facts);
	uint32_t repeats = input_byte(in) % (REPEATS_MAX + 1);

	if (!facts->honest || facts->padded)
		return len;
	for (repeats *= facts->size; repeats && len < LEN_MAX; repeats--, len++)
		bytes[len] = (uint8_t)(len * 31 + (len >> 8) * 7);
	return len;
}

static void header_make(struct input *in, const struct frame_facts *facts,
			struct virtio_net_hdr *header)
{
	static const uint8_t types[8] = {0, 1, 4, 5, 3, 0x81, 0x84, 0xff};
	uint8_t choice = input_byte(in);

	*header = (struct virtio_net_hdr){
		.flags = choice >> 3 & 3,
		.gso_type = types[choice & 7],
		.gso_size = (uint16_t)(input_byte(in) << (choice & 0x20 ? 4 : 0)),
		.csum_start = (uint16_t)facts->transport,
		.csum_offset = facts->protocol == 6 ? 16 : 6,
	};
	if (choice & 0x40)
		header->csum_start = input_u16(in);
	if (choice & 0x80)
		header->csum_offset = input_u16(in);
}

/* As a TAP receives it: what does not fit into the frame is in the spill. NULL: refused. */
static struct packet *received(const struct virtio_net_hdr *header, uint32_t len)
{
	uint32_t room = pool_room(pool), here = len < room ? len : room;
	uint64_t before = dropped();
	uint8_t *spill;
	struct packet *p;
	bool taken;

	ALWAYS(packet_alloc(&context.cache, &p, 1) == 1);
	memcpy(p->data, bytes, here);
	spill = malloc(len - here + 1);
	ALWAYS(spill);
	memcpy(spill, bytes + here, len - here);
	taken = vnet_receive(&context, p, header, spill, (uint32_t)sizeof(*header) + len);
	free(spill);
	ALWAYS(dropped() == before + !taken);
	return taken ? p : NULL;
}

/* As a TAP would be given it: the same bytes, and the same header but for its hint. */
static void again_check(const struct packet *p, const struct virtio_net_hdr *header, uint32_t len)
{
	struct virtio_net_hdr again;
	struct iovec iov[VNET_IOV_MAX];
	uint32_t n = vnet_transmit(p, &again, iov, VNET_IOV_MAX), at = 0;

	ALWAYS(n >= 2);
	for (uint32_t i = 1; i < n; at += (uint32_t)iov[i++].iov_len)
		ALWAYS(!memcmp(bytes + at, iov[i].iov_base, iov[i].iov_len));
	ALWAYS(at == len);
	ALWAYS(again.gso_type == header->gso_type);
	ALWAYS(!again.gso_type || again.gso_size == header->gso_size);
	if (again.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)
		ALWAYS(again.csum_start == header->csum_start);
}

/* Takes it apart. What goes out of an honest one is its payload. */
static void taken_apart(struct packet *p, const struct frame_facts *facts, uint32_t len,
			uint32_t room)
{
	uint64_t gone = dropped(), cloned = counter_read(&context.own.cloned), out = 0;
	uint16_t size = p->gso_size;
	uint32_t at = facts->payload;

	do {
		struct packet *v[PACKET_VECTOR_MAX];
		uint32_t n = segment_packet(&context, &p, v, room);

		ALWAYS(n <= room);
		for (uint32_t i = 0; i < n; i++) {
			ALWAYS(!v[i]->next && v[i]->len == v[i]->total);
			ALWAYS(v[i]->len <= pool_room(pool));
			ALWAYS(v[i]->flags == PACKET_CSUM_VALID);
			if (!facts->honest)
				continue;
			ALWAYS(v[i]->len >= facts->payload);
			ALWAYS(v[i]->len - facts->payload <= size);
			ALWAYS(!memcmp(v[i]->data + facts->payload, bytes + at,
				       v[i]->len - facts->payload));
			at += v[i]->len - facts->payload;
		}
		out += n;
		packet_free(&context.cache, v, n);
	} while (p);
	gone = dropped() - gone;
	cloned = counter_read(&context.own.cloned) - cloned;
	ALWAYS(1 + cloned == out + gone);
	ALWAYS(!facts->honest || gone || at == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	uint32_t len, room = 1 + input_byte(&in) % PACKET_VECTOR_MAX;
	struct virtio_net_hdr header;
	struct frame_facts facts;
	struct packet *p;

	if (!pool)
		start();
	len = bytes_make(&in, &facts);
	header_make(&in, &facts, &header);
	p = received(&header, len);
	if (p) {
		ALWAYS(p->total == len);
		again_check(p, &header, len);
		if (p->flags & PACKET_GSO) {
			taken_apart(p, &facts, len, room);
		} else {
			if (p->flags & PACKET_CSUM_PARTIAL)
				checksum_complete(p);
			packet_free(&context.cache, &p, 1);
		}
	}
	pool_cache_drain(&context.cache);
	ALWAYS(pool_available(pool) == FRAMES);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets and the pool they come from.
 *
 * All frames of an engine lie in one area (which is also the UMEM of every AF_XDP socket), so a
 * packet goes from port to port without a copy. Beside the frames lies an array of struct packet,
 * one cache line each. The pool is fixed at start; each runner has a cache of its own, and the
 * cost of taking from the shared part is one atomic operation per POOL_BATCH packets.
 *
 * A packet has one owner at a time. Handing a vector to a function that "owns" it ends the
 * caller's right to touch it.
 */
#ifndef NAPIER_PACKET_H
#define NAPIER_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <napier/error.h>

#pragma GCC visibility push(default)

#define PACKET_VECTOR_MAX 64 /* the weight of a NAPI, and the longest vector */
#define POOL_BATCH 64
#define PACKET_HEADROOM 256 /* bytes before data in a fresh packet; AF_XDP reserves the same */

enum packet_flag {
	/* The checksum at csum_start + csum_offset holds only the pseudo-header's sum. */
	PACKET_CSUM_PARTIAL = 1 << 0,
	/* The receiver's hardware or a local sender vouches for the checksums. */
	PACKET_CSUM_VALID = 1 << 1,
	/* A super-packet: gso_type and gso_size are set, `next` may chain further frames. */
	PACKET_GSO = 1 << 2,
	/* stamp is the time of a capture, ns since 1970, set by the port: receive keeps it. */
	PACKET_STAMPED = 1 << 3,
	/*
	 * Beside PACKET_GSO, whose fields the head has: each frame of the chain is a whole packet
	 * with headers and flags of its own, just as it was received, and its len as total, but for
	 * the head, whose total is that of all. Without it the frames behind the head are payload.
	 */
	PACKET_FRAMES = 1 << 4,
};

struct packet {
	uint8_t *data;	     /* first byte of the Ethernet header; a VLAN tag is in the frame */
	struct packet *next; /* the rest of a super-packet, NULL at its end */
	uint32_t len;	     /* bytes at data in this frame */
	uint32_t total;	     /* bytes of the whole chain; equals len without `next` */
	int64_t stamp;	     /* ns, when it was received */
	uint32_t hash;	     /* flow hash, 0: not computed */
	uint16_t port;	     /* index of the port it came in by */
	uint16_t queue;
	uint16_t flags;	      /* enum packet_flag */
	uint16_t csum_start;  /* from data; with PACKET_CSUM_PARTIAL */
	uint16_t csum_offset; /* from csum_start */
	uint16_t gso_size;    /* payload bytes of a segment */
	uint8_t gso_type;     /* VIRTIO_NET_HDR_GSO_* */
	/* The pool's own, while the packet is free. */
	uint32_t batch_count;
	_Atomic uint32_t batch_below;
	/* Not 0 while a device or a socket has it: the mark of that, which alone may touch it. */
	_Atomic uint32_t holder;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct packet) == 64, "packet metadata is one cache line");

/* The part that the packet path reads; constant after pool_create. The rest is in core/pool.c. */
struct pool {
	uint8_t *area;
	struct packet *packets;
	uint32_t frames;
	uint32_t frame_shift; /* log2 of the frame size */
};

/*
 * One per runner. Not shared: whoever calls with it is the only one to do so at that moment.
 */
struct pool_cache {
	struct pool *pool;
	uint32_t n;
	struct packet *v[2 * POOL_BATCH];
};

struct pool_config {
	uint32_t frames;     /* rounded up to a multiple of POOL_BATCH; at most POOL_FRAMES_MAX */
	uint32_t frame_size; /* 2048 or 4096 bytes */
};

#define POOL_FRAMES_MAX (1u << 22)

/* Control context. -EINVAL, -ENOMEM. The memory is touched here, not on the packet path. */
int pool_create(const struct pool_config *config, struct pool **out, struct error *err);
/* All caches have been drained. */
void pool_destroy(struct pool *pool);

/* The area of frames is page-aligned; packet i's frame starts at i * frame_size. */
static inline size_t pool_area_size(const struct pool *pool)
{
	return (size_t)pool->frames << pool->frame_shift;
}

/* Bytes that fit into a fresh packet, from data. */
static inline uint32_t pool_room(const struct pool *pool)
{
	return (1u << pool->frame_shift) - PACKET_HEADROOM;
}

/* Frames in the shared part plus none of the caches: exact only while nothing runs. */
uint32_t pool_available(const struct pool *pool);
void pool_cache_init(struct pool_cache *cache, struct pool *pool);
/* Gives all packets back to the shared part. */
void pool_cache_drain(struct pool_cache *cache);

/*
 * Packet path. Fills v with up to n packets and returns how many: fewer only when the pool is
 * empty. data stands after the headroom, len and flags are 0, next is NULL; other fields are not
 * set. n <= PACKET_VECTOR_MAX.
 */
uint32_t packet_alloc(struct pool_cache *cache, struct packet **v, uint32_t n);

/* Packet path. Owns v; chains are freed whole. */
void packet_free(struct pool_cache *cache, struct packet **v, uint32_t n);

/* Packet path. A copy of the whole chain, all metadata too; NULL when the pool is empty. */
struct packet *packet_clone(struct pool_cache *cache, const struct packet *p);

/* The packet whose frame holds this offset of the area, and the reverse for its data. */
static inline struct packet *packet_at(const struct pool *pool, uint64_t offset)
{
	return &pool->packets[offset >> pool->frame_shift];
}

static inline uint64_t packet_offset(const struct pool *pool, const struct packet *p)
{
	return (uint64_t)(p->data - pool->area);
}

#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The virtio-net header: how AF_PACKET sockets and TAPs say, in front of each packet, which offload
 * it needs; here between that header and a packet's metadata.
 *
 * Both kinds receive a packet into one frame with a spill buffer behind it: ordinary packets never
 * see the spill, and of a super-packet what went there is moved into frames of its own, so that no
 * frames lie waiting for super-packets that do not come.
 */
#ifndef PORT_VNET_H
#define PORT_VNET_H

#include <linux/virtio_net.h>
#include <sys/uio.h>

#include <napier/napi.h>
#include <napier/packet.h>

#include <core/gro.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* With a frame in front, enough for what 16-bit IP lengths allow. */
#define VNET_SPILL 65536

/*
 * Header and frames of the longest chain: GRO_FRAMES_MAX of GRO's, fewer of what was received here,
 * a frame and its spill in frames (65536 / 1792).
 */
#define VNET_IOV_MAX (1 + GRO_FRAMES_MAX)

/* Where a received packet goes: its header, its frame, what does not fit there. */
static inline void vnet_receive_iov(const struct pool *pool, struct packet *p,
				    struct virtio_net_hdr *header, uint8_t *spill,
				    struct iovec iov[3])
{
	iov[0] = (struct iovec){.iov_base = header, .iov_len = sizeof(*header)};
	iov[1] = (struct iovec){.iov_base = p->data, .iov_len = pool_room(pool)};
	iov[2] = (struct iovec){.iov_base = spill, .iov_len = VNET_SPILL};
}

/*
 * Packet path. `size` bytes, the header among them, have been received into these: sets len,
 * total, next, flags and the offload fields of p. False: the packet was counted, dropped
 * (DROP_TOO_SHORT, DROP_POOL_EMPTY) and freed.
 */
bool vnet_receive(struct context *context, struct packet *p, const struct virtio_net_hdr *header,
		  const uint8_t *spill, uint32_t size);

/*
 * Packet path. A packet of `bytes` that a port received and cannot hand on: counts it as received
 * and as dropped, and frees it.
 */
void vnet_receive_drop(struct context *context, struct packet *p, uint32_t bytes,
		       enum drop_reason reason);

/*
 * Packet path. Fills *header for p and describes header and chain in iov; returns how many entries
 * that took, or 0 when it takes more than `max`. They point into p.
 */
uint32_t vnet_transmit(const struct packet *p, struct virtio_net_hdr *header, struct iovec *iov,
		       uint32_t max);

/*
 * Whether the kernel takes UDP super-packets behind that header: since Linux 6.2. A socket, unlike
 * a TAP, has no call that tells, and refuses the packet itself.
 */
bool vnet_kernel_uso(void);

#endif

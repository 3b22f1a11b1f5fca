/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Super-packets into packets of the wire's size, for ports that do not take them whole.
 *
 * TCP over IPv4 and IPv6 and UDP (USO), behind any number of VLAN tags, by the rules of
 * segmentation offload: each segment gets the headers of the super-packet with its own lengths,
 * sequence number, IPv4 id and complete checksums; FIN and PSH only in the last, CWR only in the
 * first.
 */
#ifndef CORE_SEGMENT_H
#define CORE_SEGMENT_H

#include <napier/napi.h>
#include <napier/packet.h>

/*
 * Packet path. Owns *p, a packet with PACKET_GSO, frames chained or not. One with PACKET_FRAMES
 * gives back its frames as they were received, which takes no other frames and cannot fail. Takes
 * up to `room` segments off its front into out, each in one frame with headroom, which the caller
 * then owns, and returns how many. When that was all, or no more can be had, *p is NULL; else *p is
 * the super-packet of the rest, to call again with:
 *
 *	do {
 *		n = segment_packet(context, &p, out, PACKET_VECTOR_MAX);
 *		... send out[0..n) ...
 *	} while (p);
 *
 * What cannot be segmented is dropped in here and counted: DROP_GSO (not the headers that gso_type
 * says), DROP_TOO_LONG (a segment that does not fit into a frame), DROP_POOL_EMPTY (no frames: the
 * segments made so far are good). The segments beyond the first count as `cloned`, so that I3
 * holds. 0 < room <= PACKET_VECTOR_MAX.
 */
uint32_t segment_packet(struct context *context, struct packet **p, struct packet **out,
			uint32_t room);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internet checksum, and packets whose checksum a sender left to be completed.
 *
 * A local sender on veth, virtio-net or tun does not compute TCP and UDP checksums itself: it
 * leaves the folded sum of the pseudo-header in the field and says so beside the packet, trusting
 * the device to do the rest. AF_XDP has no place for that word, so such a packet looks like one
 * with a wrong checksum, and dies silently at the far end. checksum_partial_detect finds them by
 * what is in the field.
 *
 * Packet path, no allocation, no side effect but on the packet.
 */
#ifndef CORE_CHECKSUM_H
#define CORE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <napier/packet.h>

/*
 * Adds `len` bytes, taken as 16-bit words in memory order, to a sum (0 at first). Parts may be
 * added one after the other while each but the last has an even length. The value is only good for
 * adding to, and for the two functions below.
 */
uint32_t checksum_add(uint32_t sum, const void *data, size_t len);

/* The sum in 16 bits, in memory order. */
static inline uint16_t checksum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

/* What goes into a header's checksum field that was 0 (or held a partial sum) while it was added.
 */
static inline uint16_t checksum_finish(uint32_t sum)
{
	return (uint16_t)~checksum_fold(sum);
}

/*
 * Whether the TCP or UDP checksum of this frame (IPv4 or IPv6, behind up to two VLAN tags, not a
 * fragment, nothing behind it, also as the payload of VXLAN or Geneve) is the folded sum of its
 * pseudo-header. If so sets PACKET_CSUM_PARTIAL, csum_start and csum_offset.
 *
 * One in 65536 packets has that value as its right checksum. It does no harm: completing gives that
 * very value again.
 */
bool checksum_partial_detect(struct packet *p);

/* Whether it was one of those after all. Costs as much as completing it. */
bool checksum_partial_right(const struct packet *p);

/*
 * Completes the checksum of a packet with PACKET_CSUM_PARTIAL: it then has PACKET_CSUM_VALID
 * instead. Takes chains. False, and the packet is unchanged, when csum_start and csum_offset are
 * not inside its first frame.
 */
bool checksum_complete(struct packet *p);

#endif

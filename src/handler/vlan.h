/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VLANs of a bridge's ports, by the rules of the kernel's bridge with vlan_filtering:
 *
 *   in:  no tag, or a tag with VID 0  -> the port's pvid, or not allowed without one
 *        a tag                        -> its VID, if the port is a member
 *   out: the port is a member         -> as it says: untagged, or tagged with the VID
 *
 * A tag is 802.1Q (0x8100), the outermost one; a frame with any other outer tag counts as untagged.
 * Priority bits of a tag are kept as long as the frame has one.
 *
 * Ports are the bridge's numbers, 0..63, so the members of a VLAN are one word. Reading is for any
 * context, changing for control context.
 */
#ifndef HANDLER_VLAN_H
#define HANDLER_VLAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <napier/packet.h>

#define VLAN_TAG_SIZE 4
#define VLAN_ID_MAX 4094
#define VLAN_IDS 4096
#define VLAN_PORTS 64

struct vlans {
	_Atomic uint16_t pvid[VLAN_PORTS]; /* 0: none */
	struct {
		_Atomic uint64_t member, untagged; /* a bit per port */
	} id[VLAN_IDS];
};

struct vlans *vlans_create(void); /* NULL without memory; ended by free() */

/* 1 <= vid <= VLAN_ID_MAX. Adding a VLAN that is there changes its flags. */
void vlans_add(struct vlans *vlans, unsigned port, uint16_t vid, bool pvid, bool untagged);
bool vlans_remove(struct vlans *vlans, unsigned port, uint16_t vid); /* false: was no member */
void vlans_clear(struct vlans *vlans, unsigned port);

static inline uint64_t vlans_members(const struct vlans *vlans, uint16_t vid)
{
	return atomic_load_explicit(&vlans->id[vid].member, memory_order_relaxed);
}

/*
 * Packet path. The VLAN of a frame that came in by the port, or 0: not allowed. type_tci is the
 * frame's bytes 12..15 as a big-endian number, the last two 0 in a frame without them.
 */
static inline uint16_t vlan_ingress(const struct vlans *vlans, unsigned port, uint32_t type_tci)
{
	uint16_t vid = type_tci >> 16 == 0x8100 ? type_tci & 0xfff : 0;

	if (!vid)
		return atomic_load_explicit(&vlans->pvid[port], memory_order_relaxed);
	return vlans_members(vlans, vid) >> port & 1 ? vid : 0;
}

/*
 * Packet path. Gives the frame the form that the member port sends this VLAN in; it is at least 14
 * bytes, and 18 with a tag. Of a super-packet with PACKET_FRAMES each frame. False: no room in
 * front of a frame for a tag.
 */
bool vlan_egress(const struct vlans *vlans, unsigned port, uint16_t vid, const struct pool *pool,
		 struct packet *p);

#endif

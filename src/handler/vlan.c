/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include <handler/vlan.h>

#define ADDRESSES_SIZE 12 /* bytes of a frame in front of its tag */

struct vlans *vlans_create(void)
{
	return calloc(1, sizeof(struct vlans));
}

/* Control calls are serialised, so a plain read and write does; runners only read. */
static void bit_set(_Atomic uint64_t *word, unsigned bit, bool value)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	uint64_t mask = UINT64_C(1) << bit;

	atomic_store_explicit(word, value ? old | mask : old & ~mask, memory_order_relaxed);
}

static void pvid_set(struct vlans *vlans, unsigned port, uint16_t vid)
{
	atomic_store_explicit(&vlans->pvid[port], vid, memory_order_relaxed);
}

void vlans_add(struct vlans *vlans, unsigned port, uint16_t vid, bool pvid, bool untagged)
{
	bit_set(&vlans->id[vid].untagged, port, untagged);
	bit_set(&vlans->id[vid].member, port, true);
	if (pvid)
		pvid_set(vlans, port, vid);
	else if (vlans->pvid[port] == vid)
		pvid_set(vlans, port, 0);
}

bool vlans_remove(struct vlans *vlans, unsigned port, uint16_t vid)
{
	if (!(vlans_members(vlans, vid) >> port & 1))
		return false;
	if (vlans->pvid[port] == vid)
		pvid_set(vlans, port, 0);
	bit_set(&vlans->id[vid].member, port, false);
	bit_set(&vlans->id[vid].untagged, port, false);
	return true;
}

void vlans_clear(struct vlans *vlans, unsigned port)
{
	for (uint16_t vid = 1; vid <= VLAN_ID_MAX; vid++)
		vlans_remove(vlans, port, vid);
}

/* Moves the addresses by one tag; what is said in bytes from data moves with them. */
static void tag_push(struct packet *p, uint16_t vid)
{
	const uint8_t tag[VLAN_TAG_SIZE] = {0x81, 0x00, (uint8_t)(vid >> 8), (uint8_t)vid};
	uint8_t addresses[ADDRESSES_SIZE];

	memcpy(addresses, p->data, sizeof(addresses));
	p->data -= VLAN_TAG_SIZE;
	memcpy(p->data, addresses, sizeof(addresses));
	memcpy(p->data + ADDRESSES_SIZE, tag, sizeof(tag));
	p->len += VLAN_TAG_SIZE;
	p->total += VLAN_TAG_SIZE;
	p->csum_start += VLAN_TAG_SIZE;
}

static void tag_pop(struct packet *p)
{
	uint8_t addresses[ADDRESSES_SIZE];

	memcpy(addresses, p->data, sizeof(addresses));
	p->data += VLAN_TAG_SIZE;
	memcpy(p->data, addresses, sizeof(addresses));
	p->len -= VLAN_TAG_SIZE;
	p->total -= VLAN_TAG_SIZE;
	p->csum_start -= VLAN_TAG_SIZE;
}

static bool frame_egress(const struct pool *pool, struct packet *p, uint16_t vid, bool untagged)
{
	uint8_t *tag = p->data + ADDRESSES_SIZE;

	if (tag[0] == 0x81 && tag[1] == 0x00) {
		if (untagged) {
			tag_pop(p);
		} else {
			tag[2] = (uint8_t)((tag[2] & 0xf0) | vid >> 8);
			tag[3] = (uint8_t)vid;
		}
	} else if (!untagged) {
		uint64_t in_frame =
			packet_offset(pool, p) & ((UINT64_C(1) << pool->frame_shift) - 1);

		if (in_frame < VLAN_TAG_SIZE)
			return false;
		tag_push(p, vid);
	}
	return true;
}

bool vlan_egress(const struct vlans *vlans, unsigned port, uint16_t vid, const struct pool *pool,
		 struct packet *p)
{
	bool untagged =
		atomic_load_explicit(&vlans->id[vid].untagged, memory_order_relaxed) >> port & 1;
	struct packet *frame = p;

	if (!frame_egress(pool, p, vid, untagged))
		return false;
	while (p->flags & PACKET_FRAMES && (frame = frame->next)) {
		uint32_t len = frame->len;

		if (!frame_egress(pool, frame, vid, untagged))
			return false;
		p->total += frame->len - len;
	}
	return true;
}

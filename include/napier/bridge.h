/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bridge: an Ethernet bridge as a handler.
 *
 * Learns source addresses per VLAN, forwards to the port an address was learnt on, floods what it
 * does not know and group addresses, ages entries, never forwards 01:80:c2:00:00:0x. With
 * vlan_filtering it follows the rules of the kernel's bridge: untagged frames get the port's pvid,
 * tagged ones need membership, and leave tagged or untagged as the port says. A port that is added
 * is in VLAN 1: its pvid, untagged.
 *
 * Ports that are down are not flooded to, and what was learnt on one is forgotten within a second.
 */
#ifndef NAPIER_BRIDGE_H
#define NAPIER_BRIDGE_H

#include <napier/handler.h>

#pragma GCC visibility push(default)

#define BRIDGE_PORTS_MAX 64

struct bridge_config {
	uint32_t entries;	 /* limit of the table, a power of two; 0: 8192 */
	uint32_t ageing_seconds; /* an address not seen for longer is forgotten; 0: 300 */
	bool vlan_filtering;
};

struct bridge_vlan {
	uint16_t vid;  /* 1..4094 */
	bool pvid;     /* untagged frames belong to it on ingress */
	bool untagged; /* leaves this port without a tag */
};

struct bridge_entry {
	uint8_t address[6];
	uint16_t vid;  /* 0 without vlan_filtering */
	uint16_t port; /* index */
	uint32_t age_seconds;
};

struct bridge_stats {
	uint64_t learned, moved, aged;
	uint64_t table_full; /* times an address found no place; frames to it are flooded */
	uint64_t flooded;    /* frames sent to more than one port or to all */
	uint32_t entries;
};

int bridge_create(struct engine *engine, const struct bridge_config *config, struct handler **out,
		  struct error *err);
/*
 * Control context; ports are added and removed by engine_handler_set. Adding a VLAN again changes
 * what it says; a port has one pvid, the last one. -EINVAL, -ENOENT: not a port of this bridge.
 * Removing one forgets what was learnt there. -ENOENT: the port is no member.
 */
int bridge_vlan_add(struct handler *bridge, struct port *port, const struct bridge_vlan *vlan,
		    struct error *err);
int bridge_vlan_remove(struct handler *bridge, struct port *port, uint16_t vid);
/* Copies up to n entries; returns how many there are. */
uint32_t bridge_entries(struct handler *bridge, struct bridge_entry *out, uint32_t n);
void bridge_stats_read(struct handler *bridge, struct bridge_stats *out);
void bridge_flush(struct handler *bridge);

#pragma GCC visibility pop

#endif

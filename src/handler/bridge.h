/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the bridge: what its packet path (bridge.c) and its control share. */
#ifndef HANDLER_BRIDGE_H
#define HANDLER_BRIDGE_H

#include <napier/bridge.h>

#include <handler/fdb.h>
#include <handler/vlan.h>

_Static_assert(BRIDGE_PORTS_MAX <= 64 && BRIDGE_PORTS_MAX <= VLAN_PORTS, "a bit per port");
_Static_assert(DROP_MAX <= 32, "a bit per reason");

#define BRIDGE_SHARDS 64 /* a power of two */

/* Counted once per vector, by runners that rarely share one. */
struct bridge_shard {
	_Atomic uint64_t flooded, table_full;
} __attribute__((aligned(64)));

/*
 * Ports have numbers of the bridge's own, 0..63: bits of a word, and what the table stores. A
 * port's number is constant while the engine calls input with it. A port that is removed is taken
 * out of `members` and `port` first; a runner that still holds it is through before the engine
 * frees it (machine_quiesce).
 */
struct bridge {
	struct handler handler;
	struct fdb *table;
	struct vlans *vlans;  /* NULL without vlan_filtering */
	uint64_t header_mask; /* of bytes 8..15 of a frame: those that decide where it goes */
	uint32_t ageing;      /* s */
	uint64_t down;	      /* ports whose addresses were forgotten; control's own */
	_Atomic uint64_t members;
	struct port *_Atomic port[BRIDGE_PORTS_MAX];
	uint8_t number[UINT16_MAX + 1]; /* by port->index */
	struct bridge_shard shard[BRIDGE_SHARDS];
};

/* Packet path: struct handler_ops.input. */
void bridge_input(struct handler *handler, struct context *context, struct port *in,
		  struct packet **v, uint32_t n);

#endif

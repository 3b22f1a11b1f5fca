/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GRO's own: what is held, and the rules that say what may be in a chain (core/gro.h has them as a
 * table). A rule reads a held chain's headers from its first frame: they are in the cache, and
 * nothing has to be copied for the many packets that find no partner.
 *
 * The rules are asked in this order: *_fits (could it be in any chain?), then, with one of its flow
 * held, headers_join, *_joins, and last what costs most: packet_right.
 */
#ifndef CORE_GRO_RULES_H
#define CORE_GRO_RULES_H

#include <core/headers.h>
#include <napier/packet.h>

/* A received packet while it is looked at. */
struct segment {
	struct packet *packet;
	struct headers at;
	uint32_t hash;	  /* of its flow */
	uint16_t payload; /* from data */
	uint16_t size;	  /* of the payload */
	bool ends;	  /* nothing may follow it in a chain */
};

/* A chain, or what may become one. */
struct held {
	struct packet *head, *tail;
	int64_t begun;
	uint32_t sequence;		      /* TCP: of what follows it */
	uint32_t bytes;			      /* as one packet, from the network header */
	uint16_t gso_size;		      /* payload of its first */
	uint16_t network, transport, payload; /* from the data of each frame */
	uint16_t id;			      /* IPv4: of the first */
	uint8_t frames;
	uint8_t version, protocol;
	bool fixed_id; /* all have the same one */
	bool right;    /* the first's checksums: known to be */
	uint8_t older, newer;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct held) == 64, "one cache line");

/* Sets payload, size and ends. */
bool tcp_fits(struct segment *segment);
bool udp_fits(struct segment *segment);

/* Both fit and are of one flow. Ethernet and IP headers, and the place in both. */
bool headers_join(const struct held *held, const struct segment *segment);
bool tcp_joins(const struct held *held, const struct segment *segment);
bool udp_joins(const struct held *held, const struct segment *segment);

/* Checksums, of one that fits or is held alone. */
bool packet_right(const struct packet *p, uint32_t network, uint32_t transport, uint8_t version,
		  uint8_t protocol);

#endif

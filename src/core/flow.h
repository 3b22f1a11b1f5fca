/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flow hash: which packets belong together, as one number.
 *
 * Toeplitz, as network cards compute it for receive side scaling, so the published vectors hold and
 * a capture can be checked against a card. What goes in:
 *
 *   TCP, UDP, SCTP over IPv4 or IPv6   source and destination address, source and destination port
 *   any other packet of those          the addresses
 *   fragments, the first one as well   the addresses: all fragments of a packet stay together
 *   other frames                       the MAC addresses and the type
 *
 * behind up to two VLAN tags. What a header would say beyond the end of the frame, or beyond
 * IPV6_EXTENSIONS_MAX (core/headers.h) extension headers, is left out.
 *
 * Symmetric: addresses are put in order first, and the ports with them, so both directions of a
 * connection have one hash. The published vectors do not hold then.
 */
#ifndef CORE_FLOW_H
#define CORE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include <napier/packet.h>

#define FLOW_KEY_SIZE 40  /* bytes of key: 36 of input and a window of 4 */
#define FLOW_INPUT_MAX 36 /* two IPv6 addresses and two ports */

/* Half a byte a step: 4.5 KiB, which stay in the first-level cache beside the packets. */
struct flow_hasher {
	_Atomic bool symmetric; /* control changes it while no queue that steers is polled */
	uint32_t table[2 * FLOW_INPUT_MAX][16];
};

/* Control context. */
void flow_hasher_init(struct flow_hasher *hasher, const uint8_t key[FLOW_KEY_SIZE], bool symmetric);

/* Packet path, any context. Of the frame at data, len bytes of it; never 0. */
uint32_t flow_hash(const struct flow_hasher *hasher, const uint8_t *data, uint32_t len);

/* The same once per packet: p->hash holds it from then on. */
static inline uint32_t packet_flow(const struct flow_hasher *hasher, struct packet *p)
{
	if (!p->hash)
		p->hash = flow_hash(hasher, p->data, p->len);
	return p->hash;
}

#endif

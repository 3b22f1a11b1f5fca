/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generic receive offload: packets of a flow that follow on one another go on as one.
 *
 * What is merged is a chain of packets just as they were received (PACKET_FRAMES, with PACKET_GSO,
 * gso_type, gso_size, csum_start and csum_offset in its head; total is the sum of their len).
 * Nothing of a frame is changed: unlinked, with these two flags taken from the head and its total
 * set to its len, they are what came. A packet that found no partner has not been touched.
 *
 * Two packets can be in one chain when
 *   the frame        is one packet in one frame, of IPv4 or IPv6 behind up to two VLAN tags, that
 *                    ends where IP says (no trailer); Ethernet header and tags are equal
 *   IPv4             no options, no fragment; TOS, TTL and DF equal. IDs count up by one; with DF
 *                    they may be all the same instead (as Linux, inet_gro_receive)
 *   IPv6             no extension headers; class, flow label, hop limit equal
 *   TCP              ports, acknowledgement, window, urgent pointer and options are equal byte for
 *                    byte, time stamps too (as Linux, tcp_gro_receive: a sender's burst is of one
 *                    millisecond); sequence numbers follow on; flags are ACK, with PSH or FIN in
 *                    the last. SYN, RST, URG, ECE, CWR and what is not defined go alone. (Linux
 *                    merges ECE with ECE, and begins with CWR; data has these too seldom.)
 *   UDP              ports equal; the length is IP's; a checksum in all or (IPv4 only) in none
 *   the payload      is not empty, and as long as the first one's; a shorter one is the last
 *   checksums        of IPv4 and the transport are right. For the transport PACKET_CSUM_VALID and
 *                    PACKET_CSUM_PARTIAL vouch; else it is computed, when there is a partner and
 *                    not before
 *
 * Order: a packet of a flow (addresses, protocol, ports) that is not merged lets what is held of
 * that flow go before it. One whose ports cannot be seen, such as a fragment, does so to all flows
 * between its addresses. Between flows there is no order.
 *
 * Contexts: one at a time; the holder of the NAPI's token. gro_create and gro_destroy: control.
 */
#ifndef CORE_GRO_H
#define CORE_GRO_H

#include <stdint.h>

#include <napier/handler.h>

enum {
	GRO_BUCKETS = 8,    /* flows are hashed into these */
	GRO_BUCKET_MAX = 8, /* held in one; when full, the oldest goes */
	GRO_HELD_MAX = GRO_BUCKETS * GRO_BUCKET_MAX,
	GRO_FRAMES_MAX = 45,   /* in one chain: 1448 bytes each, as many as 65535 bytes hold */
	GRO_BYTES_MAX = 65535, /* of the chain as one IP packet */
};

struct gro;

/* -ENOMEM. */
int gro_create(struct gro **out);
/* Nothing is held any more. NULL: no effect. */
void gro_destroy(struct gro *gro);

/*
 * Takes n received packets and puts into out those that go on now, which is the caller's again;
 * holds the others, begun at context->now. `out` has room for n + GRO_HELD_MAX and is not v. Counts
 * `merged`: those that are in a chain behind its head. `types` may change from call to call.
 */
uint32_t gro_receive(struct gro *gro, struct context *context, unsigned types, struct packet **v,
		     uint32_t n, struct packet **out);

/*
 * Those begun at or before `before` (INT64_MAX: all), oldest first, up to room; returns how many.
 * As many as room: there may be more.
 */
uint32_t gro_flush(struct gro *gro, int64_t before, struct packet **out, uint32_t room);

/* Packets, or chains of them, that are held. */
uint32_t gro_held(const struct gro *gro);

/* When the oldest was begun; INT64_MAX: nothing is held. */
int64_t gro_oldest(const struct gro *gro);

#endif

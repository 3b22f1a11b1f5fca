/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the headers of a frame are: Ethernet, up to two VLAN tags, IPv4 or IPv6, and the transport
 * behind IPv6's extension headers. Nothing is read beyond the frame, whatever its headers say.
 *
 * Packet path, no side effect.
 */
#ifndef CORE_HEADERS_H
#define CORE_HEADERS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	ETHERTYPE_AT = 12,
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_QINQ = 0x88a8,
	VLAN_TAG = 4,
	VLAN_TAGS_MAX = 2,

	IPV4_HEADER_MIN = 20,
	IPV4_TOS = 1,
	IPV4_LENGTH = 2,
	IPV4_ID = 4,
	IPV4_FRAGMENT = 6,
	IPV4_DF = 0x4000,
	IPV4_TTL = 8,
	IPV4_PROTOCOL = 9,
	IPV4_CHECKSUM = 10,
	IPV4_ADDRESSES = 12,

	IPV6_HEADER = 40,
	IPV6_LENGTH = 4,
	IPV6_NEXT = 6,
	IPV6_ADDRESSES = 8,
	IPV6_EXTENSIONS_MAX = 8, /* that are looked behind */

	IPV6_HOP_BY_HOP = 0,
	IPV6_ROUTING = 43,
	IPV6_FRAGMENT = 44,
	IPV6_AUTHENTICATION = 51,
	IPV6_DESTINATION_OPTIONS = 60,

	PROTOCOL_TCP = 6,
	PROTOCOL_UDP = 17,
	PROTOCOL_SCTP = 132,

	TCP_HEADER_MIN = 20,
	TCP_SEQUENCE = 4,
	TCP_ACK_NUMBER = 8,
	TCP_HEADER_WORDS = 12,
	TCP_FLAGS = 13,
	TCP_FIN = 0x01,
	TCP_PSH = 0x08,
	TCP_ACK = 0x10,
	TCP_CWR = 0x80,
	TCP_CHECKSUM = 16,
	TCP_URGENT = 18,

	UDP_HEADER = 8,
	UDP_LENGTH = 4,
	UDP_CHECKSUM = 6,
};

/* In memory order: to be compared, or added to a checksum. */
static inline uint16_t word16(const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint32_t word32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t word64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* As numbers. */
static inline uint16_t load16(const uint8_t *at)
{
	return ntohs(word16(at));
}

static inline uint32_t load32(const uint8_t *at)
{
	return ntohl(word32(at));
}

static inline void store16(uint8_t *at, uint32_t value)
{
	uint16_t wire = htons((uint16_t)value);

	memcpy(at, &wire, sizeof(wire));
}

static inline void store32(uint8_t *at, uint32_t value)
{
	uint32_t wire = htonl(value);

	memcpy(at, &wire, sizeof(wire));
}

struct headers {
	uint8_t version;  /* of IP: 4 or 6; 0: not IP, or no whole header: nothing else is set */
	uint8_t protocol; /* of the transport, or where the search ended */
	bool plain;	  /* neither options nor extension headers, nor a fragment */
	bool special;	  /* behind extension headers that are more than options */
	/*
	 * Its ports are not in this frame: a fragment, or cut off, or too far behind. It may be of
	 * any flow between its addresses. transport is not set then.
	 */
	bool hidden;
	uint16_t network; /* from data, behind the EtherType; that also when it is not IP */
	uint16_t transport;
	uint32_t end; /* of the IP packet, by its own length: may be beyond the frame */
};

/* Of the frame at data, len bytes of it. */
void headers_find(const uint8_t *data, uint32_t len, struct headers *out);
/* Of one that is inside of it and whose EtherType is at `at`; all places are from data. */
void headers_find_inner(const uint8_t *data, uint32_t len, uint32_t at, struct headers *out);

/* The source address; the destination's is behind it. */
static inline const uint8_t *headers_addresses(const uint8_t *data, const struct headers *at)
{
	return data + at->network + (at->version == 4 ? IPV4_ADDRESSES : IPV6_ADDRESSES);
}

/* Bytes of both addresses. */
static inline uint32_t headers_addresses_size(const struct headers *at)
{
	return at->version == 4 ? 8 : 32;
}

#endif

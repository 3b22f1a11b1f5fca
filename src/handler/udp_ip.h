/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IP addresses and the headers that carry them, as the udp handler sees them.
 *
 * Addresses of both families are 16 bytes in the order of the wire, IPv4 as ::ffff:a.b.c.d, held as
 * two words so that a comparison is two.
 */
#ifndef HANDLER_UDP_IP_H
#define HANDLER_UDP_IP_H

#include <endian.h>

#include <core/headers.h>

enum {
	ETHERNET_HEADER = 14,
	HEADERS_MAX = ETHERNET_HEADER + IPV6_HEADER + UDP_HEADER, /* of what is sent */
	ICMP_HEADER = 8,

	ETHERTYPE_ARP = 0x0806,

	PROTOCOL_ICMP = 1,
	PROTOCOL_ICMP6 = 58,

	TTL = 64,
	ND_HOP_LIMIT = 255,
};

struct ip {
	uint64_t high, low; /* in memory order */
};

#if __BYTE_ORDER == __LITTLE_ENDIAN
#define IP_MAPPED UINT64_C(0x00000000ffff0000) /* of `low`: what comes before an IPv4 address */
#define IP_MAPPED_MASK UINT64_C(0x00000000ffffffff)
#else
#define IP_MAPPED UINT64_C(0x0000ffff00000000)
#define IP_MAPPED_MASK UINT64_C(0xffffffff00000000)
#endif

/* What a checksum is made of and written as: memory order. */
static inline void store16_raw(uint8_t *at, uint16_t value)
{
	memcpy(at, &value, sizeof(value));
}

static inline struct ip ip_load6(const void *at)
{
	struct ip ip;

	memcpy(&ip, at, sizeof(ip));
	return ip;
}

static inline struct ip ip_load4(const void *at)
{
	struct ip ip = {.low = IP_MAPPED};

	memcpy((uint8_t *)&ip + 12, at, 4);
	return ip;
}

static inline const uint8_t *ip_bytes(const struct ip *ip)
{
	return (const uint8_t *)ip;
}

static inline const uint8_t *ip_bytes4(const struct ip *ip)
{
	return (const uint8_t *)ip + 12;
}

static inline bool ip_equal(struct ip a, struct ip b)
{
	return a.high == b.high && a.low == b.low;
}

static inline bool ip_is4(struct ip a)
{
	return !a.high && (a.low & IP_MAPPED_MASK) == IP_MAPPED;
}

/* :: */
static inline bool ip_is_zero(struct ip a)
{
	return !(a.high | a.low);
}

/* 0.0.0.0 */
static inline bool ip_is_zero4(struct ip a)
{
	return !a.high && a.low == IP_MAPPED;
}

static inline bool ip_is_any(struct ip a)
{
	return ip_is_zero(a) || ip_is_zero4(a);
}

/* Multicast, and 240.0.0.0/4 with the limited broadcast in it. */
static inline bool ip_is_group(struct ip a)
{
	return ip_is4(a) ? ip_bytes4(&a)[0] >= 224 : ip_bytes(&a)[0] == 0xff;
}

static inline bool ip_is_loopback(struct ip a)
{
	struct ip one = {0};

	((uint8_t *)&one)[15] = 1;
	return ip_is4(a) ? ip_bytes4(&a)[0] == 127 : ip_equal(a, one);
}

/* What may stand as the source of a packet that gets an answer. */
static inline bool ip_is_host(struct ip a)
{
	return !ip_is_group(a) && !ip_is_any(a) && !ip_is_loopback(a) &&
	       !(ip_is4(a) && !ip_bytes4(&a)[0]);
}

static inline bool ip_is_link_local(struct ip a)
{
	return ip_bytes(&a)[0] == 0xfe && (ip_bytes(&a)[1] & 0xc0) == 0x80;
}

/* ff02::1:ffXX:XXXX, where neighbours ask for it. */
static inline struct ip ip_solicited_node(struct ip target)
{
	uint8_t bytes[16] = {0xff, 2, [11] = 1, [12] = 0xff};

	memcpy(bytes + 13, ip_bytes(&target) + 13, 3);
	return ip_load6(bytes);
}

/* The first `bits` of 128. */
static inline struct ip ip_mask(unsigned bits)
{
	struct ip mask;

	mask.high = bits ? htobe64(UINT64_MAX << (bits < 64 ? 64 - bits : 0)) : 0;
	mask.low = bits > 64 ? htobe64(UINT64_MAX << (128 - bits)) : 0;
	return mask;
}

static inline bool ip_in(struct ip a, struct ip network, struct ip mask)
{
	return !((a.high ^ network.high) & mask.high) && !((a.low ^ network.low) & mask.low);
}

/*
 * Sums for checksum_add() and the like. So few bytes are added up faster by hand: 8 ns a packet,
 * for the header's and the datagram's sum together.
 */
static inline uint32_t sum_narrow(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	return (uint32_t)(sum + (sum >> 32));
}

/* Of an IPv4 header of 20 bytes. */
static inline uint32_t ipv4_sum(const uint8_t *ip)
{
	return sum_narrow((uint64_t)word32(ip) + word32(ip + 4) + word32(ip + 8) + word32(ip + 12) +
			  word32(ip + 16));
}

/* Of the pseudo-header of this protocol and length. */
static inline uint32_t pseudo_sum(struct ip from, struct ip to, uint8_t protocol, uint32_t len)
{
	uint64_t sum = htons(protocol) + htons((uint16_t)len);

	/* Of IPv4 addresses the last four bytes: what stands before them is no part of the sum. */
	if (ip_is4(from))
		return sum_narrow(sum + word32(ip_bytes4(&from)) + word32(ip_bytes4(&to)));
	sum += (from.high & UINT32_MAX) + (from.high >> 32) + (from.low & UINT32_MAX) +
	       (from.low >> 32);
	sum += (to.high & UINT32_MAX) + (to.high >> 32) + (to.low & UINT32_MAX) + (to.low >> 32);
	return sum_narrow(sum);
}

/* A MAC address as a number below 2^48. */
static inline uint64_t mac_load(const uint8_t *at)
{
	uint64_t mac = 0;

	memcpy(&mac, at, 6);
	return le64toh(mac);
}

static inline void mac_store(uint8_t *at, uint64_t mac)
{
	mac = htole64(mac);
	memcpy(at, &mac, 6);
}

/* Where an IPv6 group's packets go. */
static inline uint64_t mac_of_group(struct ip group)
{
	uint8_t mac[6] = {0x33, 0x33};

	memcpy(mac + 2, ip_bytes(&group) + 12, 4);
	return mac_load(mac);
}

static inline bool mac_is_group(const uint8_t *mac)
{
	return mac[0] & 1;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What TCP and UDP have in common: Ethernet, IP, checksums. */
#include <core/checksum.h>
#include <core/gro_rules.h>

/* 14 bytes, or 4 or 8 more with tags: three words that overlap cover each of these. */
static bool ethernet_equal(const uint8_t *a, const uint8_t *b, uint32_t size)
{
	return !((word64(a) ^ word64(b)) | (word64(a + 6) ^ word64(b + 6)) |
		 (word64(a + size - 8) ^ word64(b + size - 8)));
}

/*
 * IDs count up, or, as a sender may have it that sets DF, stay the same; the second packet
 * decides. It is for the receiver's sake: one that takes the chain apart by counting makes the
 * IDs that were.
 */
static bool ipv4_joins(const struct held *held, const uint8_t *a, const uint8_t *b)
{
	uint16_t step = (uint16_t)(load16(b + IPV4_ID) - held->id);
	uint16_t fragment = word16(a + IPV4_FRAGMENT);

	if (a[IPV4_TOS] != b[IPV4_TOS] || a[IPV4_TTL] != b[IPV4_TTL] ||
	    fragment != word16(b + IPV4_FRAGMENT))
		return false;
	if (held->frames == 1)
		return step == 1 || (!step && fragment & htons(IPV4_DF));
	return step == (held->fixed_id ? 0 : held->frames);
}

static bool ipv6_joins(const uint8_t *a, const uint8_t *b)
{
	/* Version, class and flow label; next header and hop limit. */
	return word32(a) == word32(b) && word16(a + IPV6_NEXT) == word16(b + IPV6_NEXT);
}

bool headers_join(const struct held *held, const struct segment *segment)
{
	const uint8_t *a = held->head->data, *b = segment->packet->data;
	uint32_t network = held->network;

	if (!ethernet_equal(a, b, network)) /* then `network` is the same, too */
		return false;
	if (held->version == 4)
		return ipv4_joins(held, a + network, b + network);
	return ipv6_joins(a + network, b + network);
}

/* Of the pseudo-header, all but what is the transport's. */
static uint32_t addresses_sum(const uint8_t *ip, uint8_t version)
{
	uint64_t sum;

	if (version == 6)
		return checksum_add(0, ip + IPV6_ADDRESSES, 32);
	sum = (uint64_t)word32(ip + IPV4_ADDRESSES) + word32(ip + IPV4_ADDRESSES + 4);
	return (uint32_t)((sum & UINT32_MAX) + (sum >> 32));
}

/* 20 bytes are added up faster by hand. */
static bool ipv4_right(const uint8_t *ip)
{
	uint64_t sum = (uint64_t)word32(ip) + word32(ip + 4) + word32(ip + 8) + word32(ip + 12) +
		       word32(ip + 16);

	sum = (sum & UINT32_MAX) + (sum >> 32);
	return checksum_fold((uint32_t)(sum + (sum >> 32))) == 0xffff;
}

bool packet_right(const struct packet *p, uint32_t network, uint32_t transport, uint8_t version,
		  uint8_t protocol)
{
	uint16_t offset = protocol == PROTOCOL_TCP ? TCP_CHECKSUM : UDP_CHECKSUM;
	const uint8_t *ip = p->data + network;
	uint32_t size = p->len - transport, sum;

	if (version == 4 && !ipv4_right(ip))
		return false;
	if (p->flags & PACKET_CSUM_PARTIAL)
		return p->csum_start == transport && p->csum_offset == offset;
	if (p->flags & PACKET_CSUM_VALID)
		return true;
	if (protocol == PROTOCOL_UDP && !word16(p->data + transport + UDP_CHECKSUM))
		return true; /* it has none: udp_fits */
	sum = checksum_add(addresses_sum(ip, version), p->data + transport, size);
	sum = checksum_fold(sum) + (uint32_t)htons(protocol) + htons((uint16_t)size);
	return checksum_fold(sum) == 0xffff;
}

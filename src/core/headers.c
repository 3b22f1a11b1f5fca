/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/headers.h>

#define PORTS 4 /* bytes: both ports, first in TCP and in UDP */

/* Options, a fragment, or its ports cut off. */
static void ipv4_odd(const uint8_t *ip, uint32_t len, struct headers *out)
{
	uint32_t size = (ip[0] & 0xfu) * 4;
	uint16_t fragment = word16(ip + IPV4_FRAGMENT);

	if (ip[0] >> 4 != 4 || size < IPV4_HEADER_MIN) {
		*out = (struct headers){.network = out->network};
		return;
	}
	out->transport = (uint16_t)(out->network + size);
	/* Without the bit that must be zero, too: what it means nobody knows. */
	out->plain = size == IPV4_HEADER_MIN && !(fragment & ~htons(IPV4_DF));
	/* More of them, or not the first; or cut off. */
	out->hidden = fragment & htons(0x3fff) || out->transport + (uint32_t)PORTS > len;
}

static void ipv4_find(const uint8_t *data, uint32_t len, uint32_t network, struct headers *out)
{
	const uint8_t *ip = data + network;

	*out = (struct headers){
		.version = 4,
		.protocol = ip[IPV4_PROTOCOL],
		.plain = true,
		.network = (uint16_t)network,
		.transport = (uint16_t)(network + IPV4_HEADER_MIN),
		.end = network + load16(ip + IPV4_LENGTH),
	};
	if (ip[0] != 0x45 || word16(ip + IPV4_FRAGMENT) & ~htons(IPV4_DF) ||
	    network + IPV4_HEADER_MIN + PORTS > len)
		ipv4_odd(ip, len, out);
}

/* Known, and with the transport somewhere behind it. */
static bool extension(uint8_t type)
{
	return type == IPV6_HOP_BY_HOP || type == IPV6_ROUTING || type == IPV6_AUTHENTICATION ||
	       type == IPV6_DESTINATION_OPTIONS;
}

/* Goes on at `at`, behind IPv6's own header, where there may be extension headers. */
static void extensions_pass(const uint8_t *data, uint32_t len, uint32_t at, struct headers *out)
{
	for (int i = 0; extension(out->protocol); i++) {
		uint8_t type = out->protocol;

		out->plain = false;
		out->special |= type == IPV6_ROUTING || type == IPV6_AUTHENTICATION;
		if (at + 8 > len || i == IPV6_EXTENSIONS_MAX) {
			out->hidden = true;
			return;
		}
		out->protocol = data[at];
		at += type == IPV6_AUTHENTICATION ? (data[at + 1] + 2u) * 4
						  : (data[at + 1] + 1u) * 8;
	}
	out->transport = (uint16_t)at;
	if (out->protocol == IPV6_FRAGMENT)
		out->plain = false;
	out->hidden = out->protocol == IPV6_FRAGMENT || at + PORTS > len;
}

static void ipv6_find(const uint8_t *data, uint32_t len, uint32_t network, struct headers *out)
{
	const uint8_t *ip = data + network;
	uint32_t at = network + IPV6_HEADER;

	if (at > len || ip[0] >> 4 != 6)
		return;
	*out = (struct headers){
		.version = 6,
		.protocol = ip[IPV6_NEXT],
		.plain = true,
		.network = (uint16_t)network,
		.transport = (uint16_t)at,
		.end = at + load16(ip + IPV6_LENGTH),
	};
	if ((out->protocol != PROTOCOL_TCP && out->protocol != PROTOCOL_UDP) || at + PORTS > len)
		extensions_pass(data, len, at, out);
}

void headers_find_inner(const uint8_t *data, uint32_t len, uint32_t at, struct headers *out)
{
	*out = (struct headers){0};
	for (int tags = 0; tags <= VLAN_TAGS_MAX && at + 2 <= len; tags++, at += VLAN_TAG) {
		uint16_t type = word16(data + at);

		out->network = (uint16_t)(at + 2);
		if (type == htons(ETHERTYPE_IPV4)) {
			if (at + 2 + IPV4_HEADER_MIN <= len)
				ipv4_find(data, len, at + 2, out);
			return;
		}
		if (type == htons(ETHERTYPE_IPV6)) {
			ipv6_find(data, len, at + 2, out);
			return;
		}
		if (type != htons(ETHERTYPE_VLAN) && type != htons(ETHERTYPE_QINQ))
			return;
	}
}

void headers_find(const uint8_t *data, uint32_t len, struct headers *out)
{
	headers_find_inner(data, len, ETHERTYPE_AT, out);
}

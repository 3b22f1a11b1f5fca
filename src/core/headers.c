/* SPDX-License-Identifier: BSD-2-Clause */
#include <core/headers.h>

#define PORTS 4 /* bytes: both ports, first in TCP and in UDP */

static void transport_find(struct headers *out, uint32_t at, uint32_t len)
{
	if (at + PORTS > len)
		out->hidden = true;
	else
		out->transport = (uint16_t)at;
}

static void ipv4_find(const uint8_t *ip, uint32_t len, struct headers *out)
{
	uint32_t size;

	if (out->network + (uint32_t)IPV4_HEADER_MIN > len || ip[0] >> 4 != 4)
		return;
	size = (ip[0] & 0xfu) * 4;
	if (size < IPV4_HEADER_MIN)
		return;
	out->version = 4;
	out->protocol = ip[IPV4_PROTOCOL];
	out->end = out->network + load16(ip + IPV4_LENGTH);
	/* Also the bit that must be zero: what it means nobody knows. */
	out->plain = size == IPV4_HEADER_MIN && !(word16(ip + IPV4_FRAGMENT) & ~htons(IPV4_DF));
	if (word16(ip + IPV4_FRAGMENT) & htons(0x3fff)) /* more of them, or not the first */
		out->hidden = true;
	else
		transport_find(out, out->network + size, len);
}

/* Known, and with the transport somewhere behind it. */
static bool extension(uint8_t type)
{
	return type == IPV6_HOP_BY_HOP || type == IPV6_ROUTING || type == IPV6_AUTHENTICATION ||
	       type == IPV6_DESTINATION_OPTIONS;
}

static void ipv6_find(const uint8_t *data, uint32_t len, struct headers *out)
{
	const uint8_t *ip = data + out->network;
	uint32_t at = out->network + (uint32_t)IPV6_HEADER;

	if (at > len || ip[0] >> 4 != 6)
		return;
	out->version = 6;
	out->protocol = ip[IPV6_NEXT];
	out->end = at + load16(ip + IPV6_LENGTH);
	out->plain = true;
	for (int i = 0; i <= IPV6_EXTENSIONS_MAX; i++) {
		uint8_t type = out->protocol;

		if (type == IPV6_FRAGMENT)
			break;
		if (!extension(type)) {
			transport_find(out, at, len);
			return;
		}
		out->plain = false;
		out->special |= type == IPV6_ROUTING || type == IPV6_AUTHENTICATION;
		if (at + 8 > len)
			break;
		out->protocol = data[at];
		at += type == IPV6_AUTHENTICATION ? (data[at + 1] + 2u) * 4
						  : (data[at + 1] + 1u) * 8;
	}
	out->plain = false;
	out->hidden = true;
}

void headers_find(const uint8_t *data, uint32_t len, struct headers *out)
{
	uint32_t at = ETHERTYPE_AT;

	*out = (struct headers){0};
	for (int tags = 0; tags <= VLAN_TAGS_MAX && at + 2 <= len; tags++, at += VLAN_TAG) {
		uint16_t type = word16(data + at);

		out->network = (uint16_t)(at + 2);
		if (type == htons(ETHERTYPE_IPV4)) {
			ipv4_find(data + out->network, len, out);
			return;
		}
		if (type == htons(ETHERTYPE_IPV6)) {
			ipv6_find(data, len, out);
			return;
		}
		if (type != htons(ETHERTYPE_VLAN) && type != htons(ETHERTYPE_QINQ))
			return;
	}
}

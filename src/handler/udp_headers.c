/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers of what is sent. */
#include <handler/udp.h>

void udp_ethernet_write(uint8_t *at, uint64_t to, uint64_t from, uint16_t type)
{
	mac_store(at, to);
	mac_store(at + 6, from);
	store16(at + 12, type);
}

uint8_t *udp_ip_write(uint8_t *payload, uint32_t len, struct ip from, struct ip to,
		      uint8_t protocol, uint8_t ttl)
{
	uint8_t *ip;

	if (ip_is4(to)) {
		ip = payload - IPV4_HEADER_MIN;
		ip[0] = 0x45;
		ip[1] = 0;
		store16(ip + 2, (uint16_t)(IPV4_HEADER_MIN + len));
		store16(ip + 4, 0);
		store16(ip + 6, 0x4000); /* don't fragment: then the id means nothing */
		ip[8] = ttl;
		ip[9] = protocol;
		store16(ip + 10, 0);
		memcpy(ip + 12, ip_bytes4(&from), 4);
		memcpy(ip + 16, ip_bytes4(&to), 4);
		store16_raw(ip + 10, checksum_finish(ipv4_sum(ip)));
		return ip;
	}
	ip = payload - IPV6_HEADER;
	memset(ip, 0, 4);
	ip[0] = 0x60;
	store16(ip + 4, (uint16_t)len);
	ip[6] = protocol;
	ip[7] = ttl;
	memcpy(ip + 8, &from, 16);
	memcpy(ip + 24, &to, 16);
	return ip;
}

void udp_frame_write(struct packet *p, uint8_t *ip, uint32_t len, uint64_t to,
		     const struct udp_link *link, bool four)
{
	p->data = ip - ETHERNET_HEADER;
	p->len = ETHERNET_HEADER + len;
	p->total = p->len;
	p->next = NULL;
	p->flags = PACKET_CSUM_VALID;
	udp_ethernet_write(p->data, to, link->mac, four ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
}

void udp_headers_write(struct packet *p, uint8_t *payload, uint32_t len, const struct udp_way *way)
{
	bool four = ip_is4(way->target);
	uint8_t *udp = payload - UDP_HEADER;
	uint32_t datagram = UDP_HEADER + len;
	uint32_t sum = pseudo_sum(way->source, way->target, PROTOCOL_UDP, datagram);
	uint8_t *ip;

	store16(udp, way->source_port);
	store16(udp + 2, way->target_port);
	store16(udp + 4, (uint16_t)datagram);
	ip = udp_ip_write(udp, datagram, way->source, way->target, PROTOCOL_UDP, TTL);
	udp_frame_write(p, ip, (uint32_t)(payload - ip) + len, way->mac, way->link, four);
	if (way->link->port->features & PORT_TX_CSUM) {
		store16_raw(udp + 6, checksum_fold(sum));
		p->flags = PACKET_CSUM_PARTIAL;
		p->csum_start = (uint16_t)(udp - p->data);
		p->csum_offset = 6;
		return;
	}
	store16(udp + 6, 0);
	sum = checksum_finish(checksum_add(sum, udp, datagram));
	store16_raw(udp + 6, sum ? (uint16_t)sum : 0xffff);
}

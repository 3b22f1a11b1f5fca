/* SPDX-License-Identifier: BSD-2-Clause */
/* ARP (RFC 826, 5227): answers for our addresses, and questions of ours. */
#include <handler/udp.h>

enum {
	ARP_SIZE = 28,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
	ETHERNET_MIN = 60,
};

static void arp_write(uint8_t *at, uint16_t operation, uint64_t from_mac, struct ip from,
		      uint64_t to_mac, struct ip to)
{
	static const uint8_t begin[6] = {0, 1, 8, 0, 6, 4}; /* Ethernet, IPv4, their sizes */

	memcpy(at, begin, sizeof(begin));
	store16(at + 6, operation);
	mac_store(at + 8, from_mac);
	memcpy(at + 14, ip_bytes4(&from), 4);
	mac_store(at + 18, to_mac);
	memcpy(at + 24, ip_bytes4(&to), 4);
}

static void packet_pad(struct packet *p, uint32_t len)
{
	if (len < ETHERNET_MIN) {
		memset(p->data + len, 0, ETHERNET_MIN - len);
		len = ETHERNET_MIN;
	}
	p->len = len;
	p->total = len;
}

void udp_arp_ask(struct context *context, const struct udp_link *link, struct ip source,
		 struct ip target, uint64_t mac)
{
	struct ip sender = ip_is_any(source) ? (struct ip){.low = IP_MAPPED} : source;
	struct packet *p;

	if (!packet_alloc(&context->cache, &p, 1))
		return; /* as if it had been lost on the way: it is asked again */
	udp_ethernet_write(p->data, mac ? mac : UINT64_C(0xffffffffffff), link->mac, ETHERTYPE_ARP);
	arp_write(p->data + ETHERNET_HEADER, ARP_REQUEST, link->mac, sender, 0, target);
	packet_pad(p, ETHERNET_HEADER + ARP_SIZE);
	port_transmit(context, link->port, &p, 1);
}

static void arp_answer(struct udp_frame *f, uint64_t mac, struct ip from, struct ip own)
{
	struct packet *p = f->p;

	udp_ethernet_write(p->data, mac, f->link->mac, ETHERTYPE_ARP);
	arp_write(f->ip, ARP_REPLY, f->link->mac, own, mac, from);
	p->flags = 0;
	packet_pad(p, ETHERNET_HEADER + ARP_SIZE);
	udp_frame_send(f);
}

void udp_arp_input(struct udp_frame *f)
{
	static const uint8_t begin[6] = {0, 1, 8, 0, 6, 4};
	const struct udp_own *own, *sender;
	bool host;
	struct ip from, to;
	uint16_t operation;
	uint64_t mac;

	if (f->p->len < ETHERNET_HEADER + ARP_SIZE || memcmp(f->ip, begin, sizeof(begin)) ||
	    mac_is_group(f->ip + 8)) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return;
	}
	operation = load16(f->ip + 6);
	mac = mac_load(f->ip + 8);
	from = ip_load4(f->ip + 14);
	to = ip_load4(f->ip + 24);
	sender = udp_own_find(f->link, from);
	if (sender && mac != f->link->mac) {
		udp_conflict(f->udp, f->link, sender);
		udp_frame_end(f);
		return;
	}
	own = udp_own_find(f->link, to);
	host = ip_is_host(from) && !udp_is_broadcast(udp_net(f->udp), from);
	if (host && !sender && operation <= ARP_REPLY)
		udp_neighbour_tell(f->udp, f->context, f->link, from, mac,
				   operation == ARP_REPLY && own && !f->group
					   ? NEIGHBOUR_ANSWER | NEIGHBOUR_OVERRIDE
					   : NEIGHBOUR_OVERRIDE);
	/* From 0.0.0.0 somebody looks whether the address is taken. */
	if (operation == ARP_REQUEST && own && !sender && (host || ip_is_zero4(from)))
		arp_answer(f, mac, from, own->ip);
	else
		udp_frame_end(f);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* ICMP and ICMPv6: pings, port unreachable both ways, and the rest to neighbour discovery. */
#include <errno.h>

#include <handler/udp.h>

enum {
	ECHO_REPLY4 = 0,
	UNREACHABLE4 = 3,
	ECHO_REQUEST4 = 8,
	CODE_PORT4 = 3,

	UNREACHABLE6 = 1,
	ECHO_REQUEST6 = 128,
	ECHO_REPLY6 = 129,
	CODE_PORT6 = 4,
	ND_FIRST = 135, /* solicitation, advertisement */
	ND_LAST = 136,
};

/* The frame goes back as it is, with addresses exchanged, headers without options. */
static void echo_answer(struct udp_frame *f, uint8_t type)
{
	uint64_t mac = mac_load(f->p->data + 6);
	bool four = ip_is4(f->to);
	uint32_t sum = four ? 0 : pseudo_sum(f->to, f->from, PROTOCOL_ICMP6, f->len);
	uint8_t *ip;

	if (!udp_rate_take(&f->udp->echo)) {
		udp_frame_drop(f, DROP_UDP_ECHO_LIMIT);
		return;
	}
	f->at[0] = type;
	store16(f->at + 2, 0);
	store16_raw(f->at + 2, checksum_finish(checksum_add(sum, f->at, f->len)));
	ip = udp_ip_write(f->at, f->len, f->to, f->from, four ? PROTOCOL_ICMP : PROTOCOL_ICMP6,
			  TTL);
	udp_frame_write(f->p, ip, (uint32_t)(f->at + f->len - ip), mac, f->link, four);
	atomic_fetch_add_explicit(&f->udp->echoes, 1, memory_order_relaxed);
	udp_frame_send(f);
}

/* `at` is a packet that we have sent, as far as it was quoted: whose socket sent it? */
static void quoted_error(struct udp_frame *f, const uint8_t *at, uint32_t len)
{
	bool four = ip_is4(f->to);
	uint32_t header = four ? (at[0] & 0xfu) * 4 : IPV6_HEADER;
	const uint8_t *udp = at + header;
	struct udp_endpoint *e;
	struct ip from, to;

	if (len < header + UDP_HEADER || header < IPV4_HEADER_MIN || at[0] >> 4 != (four ? 4 : 6) ||
	    at[four ? 9 : 6] != PROTOCOL_UDP)
		return;
	from = four ? ip_load4(at + 12) : ip_load6(at + 8);
	to = four ? ip_load4(at + 16) : ip_load6(at + 24);
	if (!udp_own_find(f->link, from))
		return;
	e = udp_find(f->udp, from, load16(udp), to, load16(udp + 2),
		     ip_is_link_local(to) ? (uint16_t)(f->link->port->index + 1) : 0);
	/* Only who is connected there has asked to hear of it, as with the kernel's sockets. */
	if (e && e->peer_port)
		udp_error_set(e->socket, ECONNREFUSED);
}

static void error_input(struct udp_frame *f, bool port_unreachable)
{
	atomic_fetch_add_explicit(&f->udp->errors_received, 1, memory_order_relaxed);
	if (port_unreachable && f->len > ICMP_HEADER + IPV4_HEADER_MIN)
		quoted_error(f, f->at + ICMP_HEADER, f->len - ICMP_HEADER);
	udp_frame_end(f);
}

void udp_icmp_input(struct udp_frame *f)
{
	if (f->len < ICMP_HEADER)
		udp_frame_drop(f, DROP_UDP_MALFORMED);
	else if (!(f->p->flags & PACKET_CSUM_VALID) &&
		 checksum_finish(checksum_add(0, f->at, f->len)))
		udp_frame_drop(f, DROP_UDP_CHECKSUM);
	else if (f->at[0] == ECHO_REQUEST4 && !f->at[1])
		echo_answer(f, ECHO_REPLY4);
	else if (f->at[0] == UNREACHABLE4)
		error_input(f, f->at[1] == CODE_PORT4);
	else
		udp_frame_drop(f, DROP_UDP_NOT_OURS);
}

void udp_icmp6_input(struct udp_frame *f)
{
	uint8_t type;

	if (f->len < ICMP_HEADER) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return;
	}
	if (!(f->p->flags & PACKET_CSUM_VALID) &&
	    checksum_finish(checksum_add(pseudo_sum(f->from, f->to, PROTOCOL_ICMP6, f->len), f->at,
					 f->len))) {
		udp_frame_drop(f, DROP_UDP_CHECKSUM);
		return;
	}
	type = f->at[0];
	if (type >= ND_FIRST && type <= ND_LAST)
		udp_nd_input(f);
	else if (type == ECHO_REQUEST6 && !f->at[1] && !f->group)
		echo_answer(f, ECHO_REPLY6);
	else if (type == UNREACHABLE6 && !f->group)
		error_input(f, f->at[1] == CODE_PORT6);
	else
		udp_frame_drop(f, DROP_UDP_NOT_OURS);
}

static void error_write(struct packet *p, const struct udp_frame *f)
{
	bool four = ip_is4(f->to);
	uint32_t whole = (uint32_t)(f->at - f->ip) + f->len;
	uint32_t most = four ? UDP_ERROR_QUOTE : UDP_ERROR_QUOTE6;
	uint32_t quote = whole < most ? whole : most, len = ICMP_HEADER + quote;
	uint32_t sum = four ? 0 : pseudo_sum(f->to, f->from, PROTOCOL_ICMP6, len);
	uint8_t *icmp = p->data, *ip;

	memset(icmp, 0, ICMP_HEADER);
	icmp[0] = four ? UNREACHABLE4 : UNREACHABLE6;
	icmp[1] = four ? CODE_PORT4 : CODE_PORT6;
	memcpy(icmp + ICMP_HEADER, f->ip, quote);
	store16_raw(icmp + 2, checksum_finish(checksum_add(sum, icmp, len)));
	ip = udp_ip_write(icmp, len, f->to, f->from, four ? PROTOCOL_ICMP : PROTOCOL_ICMP6, TTL);
	udp_frame_write(p, ip, (uint32_t)(icmp + len - ip), mac_load(f->p->data + 6), f->link,
			four);
}

/* The error is a copy of the packet's beginning: it counts as cloned, and the packet as dropped. */
void udp_unreachable(struct udp_frame *f)
{
	struct packet *p;

	if (udp_rate_take(&f->udp->error) && packet_alloc(&f->context->cache, &p, 1)) {
		error_write(p, f);
		counter_add(&f->context->counters->cloned, 1);
		atomic_fetch_add_explicit(&f->udp->errors_sent, 1, memory_order_relaxed);
		port_transmit(f->context, f->link->port, &p, 1);
	}
	udp_frame_drop(f, DROP_UDP_NO_SOCKET);
}

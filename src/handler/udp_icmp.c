/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ICMP and ICMPv6: pings, port unreachable both ways, packets that were too big for the way they
 * took, and the rest to neighbour and listener discovery.
 */
#include <errno.h>

#include <handler/udp.h>

enum {
	ECHO_REPLY4 = 0,
	UNREACHABLE4 = 3,
	ECHO_REQUEST4 = 8,
	CODE_PORT4 = 3,
	CODE_TOO_BIG4 = 4,

	UNREACHABLE6 = 1,
	TOO_BIG6 = 2,
	ECHO_REQUEST6 = 128,
	ECHO_REPLY6 = 129,
	CODE_PORT6 = 4,
	MLD_QUERY = 130,
	ND_FIRST = 135, /* solicitation, advertisement */
	ND_LAST = 136,

	/* What every way takes, so that nobody can make one seem narrower. */
	PATH_MTU_MIN4 = 576,
	PATH_MTU_MIN6 = 1280,
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

/*
 * Of which socket is the packet that it quotes? Of those that are connected, who alone have asked
 * to hear of it, as with the kernel's sockets; NULL: of none.
 */
static struct udp_endpoint *quoted_find(struct udp_frame *f)
{
	const uint8_t *at = f->at + ICMP_HEADER;
	uint32_t len = f->len - ICMP_HEADER;
	bool four = ip_is4(f->to);
	uint32_t header;
	const uint8_t *udp;
	struct udp_endpoint *e;
	struct ip from, to;

	if (len < IPV4_HEADER_MIN)
		return NULL;
	header = four ? (at[0] & 0xfu) * 4 : IPV6_HEADER;
	udp = at + header;
	if (len < header + UDP_HEADER || header < IPV4_HEADER_MIN || at[0] >> 4 != (four ? 4 : 6) ||
	    at[four ? 9 : 6] != PROTOCOL_UDP)
		return NULL;
	from = four ? ip_load4(at + 12) : ip_load6(at + 8);
	to = four ? ip_load4(at + 16) : ip_load6(at + 24);
	if (!udp_own_find(f->link, from))
		return NULL;
	e = udp_find(f->udp, from, load16(udp), to, load16(udp + 2),
		     ip_is_link_local(to) ? (uint16_t)(f->link->port->index + 1) : 0);
	return e && e->peer_port ? e : NULL;
}

static void refused_input(struct udp_frame *f)
{
	struct udp_endpoint *e = quoted_find(f);

	if (e)
		udp_error_set(e->socket, ECONNREFUSED);
}

/* mtu as the router says; old ones say 0. What is no news is none to the socket either. */
static void too_big_input(struct udp_frame *f, uint32_t mtu)
{
	uint32_t least = ip_is4(f->to) ? PATH_MTU_MIN4 : PATH_MTU_MIN6;
	struct udp_endpoint *e = quoted_find(f);
	uint32_t known;

	if (!e)
		return;
	if (mtu < least)
		mtu = least;
	known = atomic_load_explicit(&e->path_mtu, memory_order_relaxed);
	if (!known)
		known = f->link->port->mtu ? f->link->port->mtu : UDP_MTU_DEFAULT;
	if (mtu >= known)
		return;
	atomic_store_explicit(&e->path_mtu, mtu, memory_order_relaxed);
	udp_error_set(e->socket, EMSGSIZE);
}

static void error_input4(struct udp_frame *f)
{
	atomic_fetch_add_explicit(&f->udp->errors_received, 1, memory_order_relaxed);
	if (f->at[1] == CODE_PORT4)
		refused_input(f);
	else if (f->at[1] == CODE_TOO_BIG4)
		too_big_input(f, load16(f->at + 6));
	udp_frame_end(f);
}

static void error_input6(struct udp_frame *f)
{
	atomic_fetch_add_explicit(&f->udp->errors_received, 1, memory_order_relaxed);
	if (f->at[0] == TOO_BIG6)
		too_big_input(f, load32(f->at + 4));
	else if (f->at[1] == CODE_PORT6)
		refused_input(f);
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
		error_input4(f);
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
	else if (type == MLD_QUERY)
		udp_mld_input(f);
	else if ((type == UNREACHABLE6 || type == TOO_BIG6) && !f->group)
		error_input6(f);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a received vector: what each packet is, and whose.
 *
 * Every length that a header states is held against the header around it and the frame before
 * anything behind it is read. What is not UDP leaves the vector at once; of UDP the whole vector
 * is looked at first, and then each socket gets its packets together, in order.
 */
#include <handler/udp.h>

#include <core/segment.h>

void udp_frame_drop(const struct udp_frame *frame, enum drop_reason reason)
{
	struct packet *p = frame->p;

	packet_drop(frame->context, &p, 1, reason);
}

void udp_frame_end(const struct udp_frame *frame)
{
	struct packet *p = frame->p;

	packet_deliver(frame->context, &p, 1);
}

void udp_frame_send(const struct udp_frame *frame)
{
	struct packet *p = frame->p;

	port_transmit(frame->context, frame->link->port, &p, 1);
}

bool udp_rate_take(struct udp_rate *rate)
{
	uint32_t left = atomic_load_explicit(&rate->left, memory_order_relaxed);

	while (left)
		if (atomic_compare_exchange_weak_explicit(&rate->left, &left, left - 1,
							  memory_order_relaxed,
							  memory_order_relaxed))
			return true;
	return false;
}

/* DROP_MAX: none. */
static enum drop_reason ipv4_read(struct udp_frame *f, uint32_t room)
{
	uint32_t header, total;

	if (room < IPV4_HEADER_MIN || f->ip[0] >> 4 != 4)
		return DROP_UDP_MALFORMED;
	header = (f->ip[0] & 0xfu) * 4;
	total = load16(f->ip + 2);
	if (header < IPV4_HEADER_MIN || total < header || total > room)
		return DROP_UDP_MALFORMED;
	if (checksum_finish(header == IPV4_HEADER_MIN ? ipv4_sum(f->ip)
						      : checksum_add(0, f->ip, header)))
		return DROP_UDP_CHECKSUM;
	f->from = ip_load4(f->ip + 12);
	f->to = ip_load4(f->ip + 16);
	if (f->group || !udp_own_find(f->link, f->to))
		return DROP_UDP_NOT_OURS;
	/* An answer to a broadcast address would go to all, and nobody is one. */
	if (!ip_is_host(f->from) || udp_is_broadcast(udp_net(f->udp), f->from))
		return DROP_UDP_MALFORMED;
	if (load16(f->ip + 6) & 0x3fff)
		return DROP_UDP_FRAGMENT;
	f->protocol = f->ip[9];
	f->at = f->ip + header;
	f->len = total - header;
	return DROP_MAX;
}

/* Behind the extension headers. A routing header that has come to its end says no more. */
static enum drop_reason extensions_skip(struct udp_frame *f)
{
	for (int i = 0; i <= IPV6_EXTENSIONS_MAX; i++) {
		uint32_t size;

		if (f->protocol == IPV6_FRAGMENT)
			return DROP_UDP_FRAGMENT;
		if (f->protocol != IPV6_HOP_BY_HOP && f->protocol != IPV6_ROUTING &&
		    f->protocol != IPV6_DESTINATION_OPTIONS)
			return DROP_MAX;
		if (f->len < 8)
			return DROP_UDP_MALFORMED;
		size = (f->at[1] + 1u) * 8;
		if (size > f->len)
			return DROP_UDP_MALFORMED;
		if (f->protocol == IPV6_ROUTING && f->at[3])
			return DROP_UDP_NOT_OURS;
		f->protocol = f->at[0];
		f->at += size;
		f->len -= size;
	}
	return DROP_UDP_MALFORMED;
}

/* ff02::1:ffXX:XXXX of one of ours, or ff02::1. */
static bool group_is_ours(const struct udp_link *link, struct ip to)
{
	const uint8_t *b = ip_bytes(&to);
	static const uint8_t solicited[13] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
	static const uint8_t all[16] = {0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

	if (!memcmp(b, all, sizeof(all)))
		return true;
	for (uint32_t i = 0; i < link->addresses; i++)
		if (!memcmp(b, solicited, sizeof(solicited)) &&
		    !memcmp(b + 13, ip_bytes(&link->own[i].ip) + 13, 3))
			return true;
	return false;
}

static enum drop_reason ipv6_read(struct udp_frame *f, uint32_t room)
{
	uint32_t len;

	if (room < IPV6_HEADER || f->ip[0] >> 4 != 6)
		return DROP_UDP_MALFORMED;
	len = load16(f->ip + 4);
	if (len > room - IPV6_HEADER)
		return DROP_UDP_MALFORMED;
	f->from = ip_load6(f->ip + 8);
	f->to = ip_load6(f->ip + 24);
	if (ip_is_group(f->to) ? !group_is_ours(f->link, f->to)
			       : f->group || !udp_own_find(f->link, f->to))
		return DROP_UDP_NOT_OURS;
	/* :: is the source of those who look whether an address is taken. */
	if (!ip_is_host(f->from) && !(ip_is_zero(f->from) && ip_is_group(f->to)))
		return DROP_UDP_MALFORMED;
	f->group = ip_is_group(f->to);
	f->protocol = f->ip[6];
	f->at = f->ip + IPV6_HEADER;
	f->len = len;
	return extensions_skip(f);
}

static inline bool checksum_wrong(const struct udp_frame *f)
{
	uint32_t sum;

	if (f->p->flags & (PACKET_CSUM_VALID | PACKET_CSUM_PARTIAL))
		return false;
	sum = pseudo_sum(f->from, f->to, f->protocol, f->len);
	return checksum_finish(checksum_add(sum, f->at, f->len));
}

/*
 * Its endpoint, with the payload alone left of the packet: what recv wants of the headers it finds
 * csum_start bytes before that. NULL: the packet has ended.
 */
static struct udp_endpoint *datagram_read(struct udp_frame *f)
{
	uint32_t len = f->len < UDP_HEADER ? 0 : load16(f->at + 4);
	struct udp_endpoint *e;
	uint16_t scope;

	if (len < UDP_HEADER || len > f->len) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return NULL;
	}
	if (f->group) {
		udp_frame_drop(f, DROP_UDP_NOT_OURS);
		return NULL;
	}
	f->len = len;
	/* IPv4 may do without a checksum. */
	if (f->at[6] | f->at[7] ? checksum_wrong(f) : !ip_is4(f->to)) {
		udp_frame_drop(f, DROP_UDP_CHECKSUM);
		return NULL;
	}
	scope = ip_is_link_local(f->from) ? (uint16_t)(f->link->port->index + 1) : 0;
	e = udp_find(f->udp, f->to, load16(f->at + 2), f->from, load16(f->at), scope);
	if (!e) {
		udp_unreachable(f);
		return NULL;
	}
	f->p->csum_start = (uint16_t)(f->at + UDP_HEADER - f->ip);
	f->p->data = f->at + UDP_HEADER;
	f->p->len = len - UDP_HEADER;
	f->p->total = f->p->len;
	return e;
}

static struct udp_endpoint *ip_input(struct udp_frame *f, bool four)
{
	uint32_t room = f->p->len - ETHERNET_HEADER;
	enum drop_reason reason = four ? ipv4_read(f, room) : ipv6_read(f, room);

	if (reason != DROP_MAX)
		udp_frame_drop(f, reason);
	else if (f->protocol == PROTOCOL_UDP)
		return datagram_read(f);
	else if (four && f->protocol == PROTOCOL_ICMP)
		udp_icmp_input(f);
	else if (!four && f->protocol == PROTOCOL_ICMP6)
		udp_icmp6_input(f);
	else
		udp_frame_drop(f, DROP_UDP_NOT_OURS);
	return NULL;
}

/* NULL: it has ended, or is somebody's else. */
static struct udp_endpoint *frame_read(struct udp_frame *f)
{
	struct packet *p = f->p;
	uint16_t type;

	if (p->len < ETHERNET_HEADER) {
		udp_frame_drop(f, DROP_TOO_SHORT);
		return NULL;
	}
	if (mac_is_group(p->data + 6)) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return NULL;
	}
	f->group = mac_is_group(p->data);
	if (!f->group && mac_load(p->data) != f->link->mac) {
		udp_frame_drop(f, DROP_UDP_NOT_OURS);
		return NULL;
	}
	/* It goes on in other frames, which nothing here reads: there are no jumbograms. */
	if (p->next) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return NULL;
	}
	f->ip = p->data + ETHERNET_HEADER;
	type = load16(p->data + 12);
	if (type == ETHERTYPE_IPV4 || type == ETHERTYPE_IPV6)
		return ip_input(f, type == ETHERTYPE_IPV4);
	if (type == ETHERTYPE_ARP)
		udp_arp_input(f);
	else
		udp_frame_drop(f, DROP_UDP_NOT_OURS);
	return NULL;
}

/* Those for the socket of the first in `left`, which are then no longer in it. */
static void socket_deliver(struct context *context, struct port *in, struct packet **v,
			   struct napi_udp **to, uint64_t *left)
{
	struct napi_udp *socket = to[__builtin_ctzll(*left)];
	struct packet *out[PACKET_VECTOR_MAX];
	struct napi *napi;
	uint32_t n = 0;

	for (uint64_t rest = *left; rest; rest &= rest - 1) {
		unsigned i = (unsigned)__builtin_ctzll(rest);

		if (to[i] != socket)
			continue;
		out[n++] = v[i];
		*left &= ~(UINT64_C(1) << i);
	}
	/* Not the context's: that may be a backlog's, which no application can poll. */
	napi = in->queue[out[n - 1]->queue].napi;
	udp_enqueue(socket, context, napi, out, n);
}

static void vector_input(struct udp_frame *f, struct port *in, struct packet **v, uint32_t n)
{
	struct napi_udp *to[PACKET_VECTOR_MAX];
	uint64_t left = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct udp_endpoint *e;

		f->p = v[i];
		e = frame_read(f);
		if (!e)
			continue;
		to[i] = e->socket;
		left |= UINT64_C(1) << i;
	}
	while (left)
		socket_deliver(f->context, in, v, to, &left);
}

/* Super-packets are taken apart: a datagram is what its sender has made. */
static void segments_input(struct udp_frame *f, struct port *in, struct packet *p)
{
	struct packet *out[PACKET_VECTOR_MAX];

	do {
		uint32_t n = segment_packet(f->context, &p, out, PACKET_VECTOR_MAX);

		vector_input(f, in, out, n);
	} while (p);
}

void udp_input(struct handler *handler, struct context *context, struct port *in, struct packet **v,
	       uint32_t n)
{
	struct udp *udp = udp_of(handler);
	struct udp_frame f = {
		.udp = udp, .context = context, .link = udp_link_of(udp_net(udp), in)};
	uint32_t begin = 0;

	if (!f.link) {
		packet_drop(context, v, n, DROP_UDP_NOT_OURS);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!(v[i]->flags & PACKET_GSO))
			continue;
		vector_input(&f, in, v + begin, i - begin);
		segments_input(&f, in, v[i]);
		begin = i + 1;
	}
	vector_input(&f, in, v + begin, n - begin);
}

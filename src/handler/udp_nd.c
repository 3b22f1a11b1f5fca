/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery (RFC 4861, 4862, 4429): answers for our addresses, and questions of ours.
 *
 * An address serves as soon as it is added (optimistic): it is asked for once, from ::, and given
 * up when somebody answers or asks the same within a second. Until that is over what is said of it
 * overrides nothing that others know.
 */
#include <handler/udp.h>

enum {
	ND_SOLICITATION = 135,
	ND_ADVERTISEMENT = 136,
	ND_SIZE = 24,  /* without options */
	ND_OPTION = 8, /* a link-layer address */
	OPTION_SOURCE = 1,
	OPTION_TARGET = 2,
	FLAG_SOLICITED = 0x40,
	FLAG_OVERRIDE = 0x20,
};

/* ff02::1 */
static struct ip all_nodes(void)
{
	static const uint8_t bytes[16] = {0xff, 2, [15] = 1};

	return ip_load6(bytes);
}

struct nd {
	uint8_t type, flags, option; /* option 0: none */
	struct ip from, to, target;
	uint64_t mac; /* of the frame */
};

static void nd_write(struct packet *p, uint8_t *at, const struct udp_link *link,
		     const struct nd *nd)
{
	uint32_t len = ND_SIZE + (nd->option ? ND_OPTION : 0);
	uint32_t sum = pseudo_sum(nd->from, nd->to, PROTOCOL_ICMP6, len);
	uint8_t *ip;

	memset(at, 0, ND_SIZE + ND_OPTION);
	at[0] = nd->type;
	at[4] = nd->flags;
	memcpy(at + 8, &nd->target, 16);
	if (nd->option) {
		at[ND_SIZE] = nd->option;
		at[ND_SIZE + 1] = 1;
		mac_store(at + ND_SIZE + 2, link->mac);
	}
	store16_raw(at + 2, checksum_finish(checksum_add(sum, at, len)));
	ip = udp_ip_write(at, len, nd->from, nd->to, PROTOCOL_ICMP6, ND_HOP_LIMIT);
	udp_frame_write(p, ip, (uint32_t)(at + len - ip), nd->mac, link, false);
}

static void nd_send(struct context *context, const struct udp_link *link, const struct nd *nd)
{
	struct packet *p;

	if (!packet_alloc(&context->cache, &p, 1))
		return; /* as if it had been lost on the way: it is asked again */
	nd_write(p, p->data, link, nd);
	port_transmit(context, link->port, &p, 1);
}

void udp_nd_ask(struct context *context, const struct udp_link *link, struct ip source,
		struct ip target, uint64_t mac)
{
	struct ip to = mac ? target : ip_solicited_node(target);
	struct nd nd = {
		.type = ND_SOLICITATION,
		.from = source,
		.to = to,
		.target = target,
		.mac = mac ? mac : mac_of_group(to),
		.option = ip_is_zero(source) ? 0 : OPTION_SOURCE,
	};

	nd_send(context, link, &nd);
}

void udp_nd_announce(struct context *context, const struct udp_link *link, struct ip own)
{
	struct nd nd = {
		.type = ND_ADVERTISEMENT,
		.flags = FLAG_OVERRIDE,
		.from = own,
		.to = all_nodes(),
		.target = own,
		.mac = mac_of_group(all_nodes()),
		.option = OPTION_TARGET,
	};

	nd_send(context, link, &nd);
}

/* False: the options are not what they must be. *mac stays where there is no such option. */
static bool option_find(const uint8_t *at, uint32_t len, uint8_t wanted, uint64_t *mac)
{
	while (len) {
		uint32_t size;

		if (len < 8 || !at[1])
			return false;
		size = at[1] * 8u;
		if (size > len)
			return false;
		if (at[0] == wanted) {
			if (mac_is_group(at + 2))
				return false;
			*mac = mac_load(at + 2);
		}
		at += size;
		len -= size;
	}
	return true;
}

/* In the frame of the question. */
static void nd_answer(struct udp_frame *f, const struct udp_own *own, uint64_t mac)
{
	bool probe = ip_is_zero(f->from);
	struct nd nd = {
		.type = ND_ADVERTISEMENT,
		.flags = (uint8_t)((probe ? 0 : FLAG_SOLICITED) |
				   (own->optimistic ? 0 : FLAG_OVERRIDE)),
		.from = own->ip,
		.to = probe ? all_nodes() : f->from,
		.target = own->ip,
		.mac = probe ? mac_of_group(all_nodes()) : mac,
		.option = OPTION_TARGET,
	};

	/* Where it is without extension headers: behind those it might not fit. */
	nd_write(f->p, f->ip + IPV6_HEADER, f->link, &nd);
	udp_frame_send(f);
}

static void solicitation_input(struct udp_frame *f, struct ip target)
{
	const struct udp_own *own = udp_own_find(f->link, target);
	uint64_t frame_mac = mac_load(f->p->data + 6), mac = 0;
	bool probe = ip_is_zero(f->from);

	if (!option_find(f->at + ND_SIZE, f->len - ND_SIZE, OPTION_SOURCE, &mac) ||
	    (probe && (mac || !ip_equal(f->to, ip_solicited_node(target))))) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return;
	}
	if (!probe && mac)
		udp_neighbour_tell(f->udp, f->context, f->link, f->from, mac, NEIGHBOUR_OVERRIDE);
	if (!own) {
		udp_frame_end(f);
	} else if (probe && own->optimistic && frame_mac != f->link->mac) {
		/* Another begins to use it at the same time: neither may. */
		udp_conflict(f->udp, f->link, own);
		udp_frame_end(f);
	} else {
		nd_answer(f, own, mac ? mac : frame_mac);
	}
}

static void advertisement_input(struct udp_frame *f, struct ip target)
{
	const struct udp_own *own = udp_own_find(f->link, target);
	uint8_t flags = f->at[4];
	uint64_t mac = 0;

	if (!option_find(f->at + ND_SIZE, f->len - ND_SIZE, OPTION_TARGET, &mac) ||
	    (f->group && flags & FLAG_SOLICITED)) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return;
	}
	if (own && mac_load(f->p->data + 6) != f->link->mac)
		udp_conflict(f->udp, f->link, own);
	else if (!own)
		udp_neighbour_tell(f->udp, f->context, f->link, target,
				   mac ? mac : mac_load(f->p->data + 6),
				   (flags & FLAG_SOLICITED ? NEIGHBOUR_ANSWER : 0) |
					   (flags & FLAG_OVERRIDE ? NEIGHBOUR_OVERRIDE : 0));
	udp_frame_end(f);
}

void udp_nd_input(struct udp_frame *f)
{
	struct ip target;

	if (f->ip[7] != ND_HOP_LIMIT || f->at[1] || f->len < ND_SIZE) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return;
	}
	target = ip_load6(f->at + 8);
	if (!ip_is_host(target) || ip_is4(target))
		udp_frame_drop(f, DROP_UDP_MALFORMED);
	else if (f->at[0] == ND_SOLICITATION)
		solicitation_input(f, target);
	else
		advertisement_input(f, target);
}

void udp_ask(struct context *context, const struct udp_link *link, struct ip target, uint64_t mac)
{
	bool four = ip_is4(target);
	struct ip source = {0};

	for (uint32_t i = link->addresses; i-- > 0;) {
		const struct udp_own *own = &link->own[i];

		/* Of the same prefix, or else any of the family. */
		if (ip_is4(own->ip) == four &&
		    (ip_is_zero(source) || ip_in(target, own->ip, own->mask)))
			source = own->ip;
	}
	if (four)
		udp_arp_ask(context, link, source, target, mac);
	else if (!ip_is_zero(source)) /* without one it would look like a duplicate's question */
		udp_nd_ask(context, link, source, target, mac);
}

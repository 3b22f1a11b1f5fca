/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast listener discovery (RFC 2710, 3810): says which groups we listen to. A switch that
 * snoops passes a group's packets on only where somebody has said so, and without that no
 * neighbour's question would come here. The groups are those of neighbour discovery; IPv4 has none.
 *
 * Said of an address when it comes and again a second later, and of all at the next tick when
 * somebody asks, so at most once a second. That one goes is not said: it is forgotten when nobody
 * answers for it.
 */
#include <handler/udp.h>

enum {
	REPORT_1 = 131, /* of one group, in answer to version 1 */
	REPORT = 143,	/* of several */
	QUERY_1 = 24,	/* bytes of a query of version 1; later ones are longer */
	REPORT_HEADER = 8,
	RECORD = 20, /* of a group, without sources */
	LISTENS = 2, /* record: to all who send there */
	BEGINS = 4,  /* and has not before */
	ROUTER_ALERT = 8,
	HOPS = 1,

	ASKED = 1, /* bits of udp->asked */
	ASKED_1 = 2,
};

/* ff02::16 */
static struct ip all_routers(void)
{
	static const uint8_t bytes[16] = {0xff, 2, [15] = 0x16};

	return ip_load6(bytes);
}

/* An address of which it is not yet known whether it is ours may not stand there. */
static struct ip source_choose(const struct udp_link *link)
{
	for (uint32_t i = 0; i < link->addresses; i++)
		if (ip_is_link_local(link->own[i].ip) && !link->own[i].optimistic)
			return link->own[i].ip;
	return (struct ip){0};
}

/* What stands at `at`, behind the option that makes routers look at it. */
static void message_send(struct context *context, const struct udp_link *link, struct packet *p,
			 uint8_t *at, uint32_t len, struct ip to)
{
	static const uint8_t alert[ROUTER_ALERT] = {PROTOCOL_ICMP6, 0, 5, 2, 0, 0, 1, 0};
	struct ip from = source_choose(link);
	uint32_t sum = pseudo_sum(from, to, PROTOCOL_ICMP6, len);
	uint8_t *ip;

	store16_raw(at + 2, checksum_finish(checksum_add(sum, at, len)));
	memcpy(at - ROUTER_ALERT, alert, ROUTER_ALERT);
	ip = udp_ip_write(at - ROUTER_ALERT, ROUTER_ALERT + len, from, to, IPV6_HOP_BY_HOP, HOPS);
	udp_frame_write(p, ip, (uint32_t)(at + len - ip), mac_of_group(to), link, false);
	port_transmit(context, link->port, &p, 1);
}

static void record_write(uint8_t *at, uint8_t type, struct ip own)
{
	struct ip group = ip_solicited_node(own);

	memset(at, 0, RECORD - sizeof(group));
	at[0] = type;
	memcpy(at + RECORD - sizeof(group), &group, sizeof(group));
}

/* Of these addresses of the link, those of IPv6. */
static void report_send(struct context *context, const struct udp_link *link,
			const struct udp_own *own, uint32_t n, uint8_t type)
{
	uint32_t records = 0;
	struct packet *p;

	if (!packet_alloc(&context->cache, &p, 1))
		return; /* as if it had been lost on the way: it is asked again */
	memset(p->data, 0, REPORT_HEADER);
	p->data[0] = REPORT;
	for (uint32_t i = 0; i < n; i++)
		if (!ip_is4(own[i].ip))
			record_write(p->data + REPORT_HEADER + RECORD * records++, type, own[i].ip);
	store16(p->data + 6, records);
	message_send(context, link, p, p->data, REPORT_HEADER + RECORD * records, all_routers());
}

/* Version 1: one for each, to the group itself. */
static void report_send_1(struct context *context, const struct udp_link *link, struct ip own)
{
	struct ip group = ip_solicited_node(own);
	struct packet *p;

	if (!packet_alloc(&context->cache, &p, 1))
		return; /* likewise */
	memset(p->data, 0, REPORT_HEADER);
	p->data[0] = REPORT_1;
	memcpy(p->data + REPORT_HEADER, &group, sizeof(group));
	message_send(context, link, p, p->data, REPORT_HEADER + sizeof(group), group);
}

void udp_mld_tell(struct context *context, const struct udp_link *link, const struct udp_own *own)
{
	report_send(context, link, own, 1, BEGINS);
}

void udp_mld_input(struct udp_frame *f)
{
	const struct udp_net *net = udp_net(f->udp);

	/* From this link and no other. */
	if (f->len < QUERY_1 || f->ip[7] != HOPS || f->ip[6] != IPV6_HOP_BY_HOP ||
	    !ip_is_link_local(f->from)) {
		udp_frame_drop(f, DROP_UDP_MALFORMED);
		return;
	}
	/* Another net: it has been changed just now, and the next query will do. */
	if (f->link >= net->link && f->link < net->link + net->links)
		atomic_fetch_or_explicit(&f->udp->asked[f->link - net->link],
					 f->len == QUERY_1 ? ASKED_1 : ASKED, memory_order_relaxed);
	udp_frame_end(f);
}

static void link_answer(struct context *context, const struct udp_link *link, uint32_t asked)
{
	if (asked & ASKED)
		report_send(context, link, link->own, link->addresses, LISTENS);
	for (uint32_t i = 0; asked & ASKED_1 && i < link->addresses; i++)
		if (!ip_is4(link->own[i].ip))
			report_send_1(context, link, link->own[i].ip);
}

void udp_mld_tick(struct udp *udp, struct context *context)
{
	const struct udp_net *net = udp_net(udp);

	for (uint32_t l = 0; l < net->links; l++) {
		uint32_t asked = atomic_load_explicit(&udp->asked[l], memory_order_relaxed);

		if (!asked)
			continue;
		atomic_fetch_and_explicit(&udp->asked[l], ~asked, memory_order_relaxed);
		link_answer(context, &net->link[l], asked);
	}
}

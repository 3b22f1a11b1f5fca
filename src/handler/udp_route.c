/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a packet leaves: by the longest prefix of all ports' addresses, or by a gateway. */
#include <errno.h>

#include <handler/udp.h>

const struct udp_own *udp_own_find(const struct udp_link *link, struct ip ip)
{
	for (uint32_t i = 0; i < link->addresses; i++)
		if (ip_equal(link->own[i].ip, ip))
			return &link->own[i];
	return NULL;
}

const struct udp_link *udp_link_of(const struct udp_net *net, const struct port *port)
{
	for (uint32_t i = 0; i < net->links; i++)
		if (net->link[i].port == port)
			return &net->link[i];
	return NULL;
}

uint32_t udp_payload_max(const struct udp_link *link, bool four)
{
	uint32_t most = udp_payload_in(link->port->mtu ? link->port->mtu : UDP_MTU_DEFAULT, four);
	uint32_t room = pool_room(link->port->pool); /* payload begins after the headroom */

	return most < room ? most : room;
}

/* The last address of the prefix; where that has one. */
static bool is_broadcast(const struct udp_own *own, struct ip ip)
{
	return ip_is4(ip) && ip_is4(own->ip) && own->prefix < 127 &&
	       (ip.low | own->mask.low) == UINT64_MAX;
}

bool udp_is_broadcast(const struct udp_net *net, struct ip ip)
{
	/* Each ends in two ones at least, and most addresses do not. */
	if ((be64toh(ip.low) & 3) != 3 || !ip_is4(ip))
		return false;
	for (uint32_t l = 0; l < net->links; l++) {
		const struct udp_link *link = &net->link[l];

		for (uint32_t i = 0; i < link->addresses; i++)
			if (is_broadcast(&link->own[i], ip) &&
			    ip_in(ip, link->own[i].ip, link->own[i].mask))
				return true;
	}
	return false;
}

/* The address to send from where none is bound: of the family, and no narrower scope. */
static struct ip source_choose(const struct udp_link *link, struct ip target)
{
	bool local = ip_is_link_local(target);

	for (uint32_t i = 0; i < link->addresses; i++) {
		struct ip ip = link->own[i].ip;

		if (ip_is4(ip) == ip_is4(target) && ip_is_link_local(ip) == local)
			return ip;
	}
	return (struct ip){0};
}

/* The port and address in whose prefix it lies; NULL: in none. */
static const struct udp_own *prefix_find(const struct udp_net *net, struct ip target,
					 uint16_t scope, const struct udp_link **link)
{
	const struct udp_own *best = NULL;

	for (uint32_t l = 0; l < net->links; l++) {
		const struct udp_link *at = &net->link[l];

		if (scope && at->port->index + 1u != scope)
			continue;
		for (uint32_t i = 0; i < at->addresses; i++) {
			const struct udp_own *own = &at->own[i];

			if (!ip_in(target, own->ip, own->mask) ||
			    ip_is4(own->ip) != ip_is4(target) ||
			    (best && best->prefix >= own->prefix))
				continue;
			best = own;
			*link = at;
		}
	}
	return best;
}

static int gateway_find(const struct udp_net *net, struct udp_way *way)
{
	bool four = ip_is4(way->target);

	for (uint32_t l = 0; l < net->links; l++) {
		const struct udp_link *link = &net->link[l];
		struct ip gateway = four ? link->gateway4 : link->gateway6;

		if (ip_is_zero(gateway))
			continue;
		way->link = link;
		way->next_hop = gateway;
		if (ip_is_any(way->source))
			way->source = source_choose(link, way->target);
		return ip_is_any(way->source) ? -ENETUNREACH : 0;
	}
	return -ENETUNREACH;
}

static int source_check(const struct udp_net *net, const struct udp_way *way)
{
	if (ip_is_any(way->source))
		return !ip_is_zero(way->source) && !ip_is4(way->target) ? -EAFNOSUPPORT : 0;
	if (ip_is4(way->source) != ip_is4(way->target))
		return -EAFNOSUPPORT;
	for (uint32_t l = 0; l < net->links; l++)
		if (udp_own_find(&net->link[l], way->source))
			return 0;
	return -EADDRNOTAVAIL;
}

int udp_route(const struct udp_net *net, struct udp_way *way, uint16_t scope)
{
	const struct udp_own *own;
	int rc = source_check(net, way);

	if (rc)
		return rc;
	if (ip_is_group(way->target))
		return -EACCES;
	if (ip_is_any(way->target) || ip_is_loopback(way->target))
		return -ENETUNREACH;
	if (!ip_is_link_local(way->target))
		scope = 0;
	own = prefix_find(net, way->target, scope, &way->link);
	if (!own)
		return ip_is_link_local(way->target) ? -ENETUNREACH : gateway_find(net, way);
	if (ip_equal(own->ip, way->target) || udp_own_find(way->link, way->target))
		return -ENETUNREACH; /* our own: there is no loopback */
	if (is_broadcast(own, way->target))
		return -EACCES;
	way->next_hop = way->target;
	if (ip_is_any(way->source))
		way->source = own->ip;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports' addresses and gateways: set by control, given up where another has one. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <core/engine.h>
#include <handler/udp_net.h>
#include <port/netdev.h>

struct udp_net *net_copy(struct udp *udp)
{
	*udp->spare = *atomic_load(&udp->net);
	return udp->spare;
}

void net_publish(struct udp *udp, struct udp_net *net)
{
	struct udp_net *before = atomic_load(&udp->net);
	bool moved = net->links < before->links;

	for (uint32_t i = 0; i < net->links; i++)
		moved |= net->link[i].addresses < before->link[i].addresses;
	atomic_store_explicit(&udp->net, net, memory_order_release);
	machine_quiesce(udp->handler.engine->machine);
	/* What has been said of an address by its place is said of another's now. */
	for (uint32_t i = 0; i < UDP_PORTS_MAX && moved; i++)
		atomic_store(&udp->duplicate[i], 0);
	udp->spare = before;
}

struct udp_link *net_link(struct udp_net *net, const struct port *port)
{
	return (struct udp_link *)udp_link_of(net, port);
}

void link_remove(struct udp_net *net, struct udp_link *link)
{
	struct udp_link *end = &net->link[--net->links];

	for (; link < end; link++)
		*link = link[1];
}

static const char *ip_text(struct ip ip, char text[INET6_ADDRSTRLEN])
{
	if (ip_is4(ip))
		inet_ntop(AF_INET, ip_bytes4(&ip), text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip_bytes(&ip), text, INET6_ADDRSTRLEN);
	return text;
}

/* "10.0.0.2/24": the prefix is of 128 bits then. */
static int address_parse(const char *text, struct ip *ip, unsigned *prefix)
{
	char name[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t size = slash ? (size_t)(slash - text) : strlen(text);
	unsigned most = 128;
	uint8_t bytes[16];

	if (size >= sizeof(name))
		return -EINVAL;
	memcpy(name, text, size);
	name[size] = 0;
	if (inet_pton(AF_INET, name, bytes) == 1) {
		*ip = ip_load4(bytes);
		most = 32;
	} else if (inet_pton(AF_INET6, name, bytes) == 1) {
		*ip = ip_load6(bytes);
		if (ip_is4(*ip))
			return -EINVAL;
	} else {
		return -EINVAL;
	}
	*prefix = most;
	if (slash) {
		char *end;
		unsigned long bits = strtoul(slash + 1, &end, 10);

		if (slash[1] < '0' || slash[1] > '9' || *end || bits > most)
			return -EINVAL;
		*prefix = (unsigned)bits;
	}
	*prefix += 128 - most;
	return ip_is_host(*ip) ? 0 : -EINVAL;
}

/* A net with the link to be changed, or an error. */
static int change_begin(struct udp *udp, struct port *port, struct udp_net **net,
			struct udp_link **link, struct error *err)
{
	*net = net_copy(udp);
	*link = net_link(*net, port);
	return *link ? 0
		     : error_set(err, -ENOENT,
				 "port %s does not have this udp handler: engine_handler_set() "
				 "comes first",
				 port->name);
}

static struct udp_own *own_add(struct udp_link *link, struct ip ip, unsigned prefix, int64_t now)
{
	struct udp_own *own = &link->own[link->addresses++];

	*own = (struct udp_own){
		.ip = ip,
		.mask = ip_mask(prefix),
		.prefix = (uint8_t)prefix,
		.optimistic = !ip_is4(ip),
		.since = now,
	};
	return own;
}

/* fe80:: and the MAC address (RFC 4291, appendix A). */
static struct ip link_local(uint64_t mac)
{
	uint8_t bytes[16] = {0xfe, 0x80}, m[6];

	mac_store(m, mac);
	memcpy(bytes + 8, m, 3);
	bytes[8] ^= 2;
	bytes[11] = 0xff;
	bytes[12] = 0xfe;
	memcpy(bytes + 13, m + 3, 3);
	return ip_load6(bytes);
}

static bool has_link_local(const struct udp_link *link)
{
	for (uint32_t i = 0; i < link->addresses; i++)
		if (ip_is_link_local(link->own[i].ip))
			return true;
	return false;
}

/* It is announced, or asked for whether it is taken. */
static void own_tell(struct udp *udp, const struct udp_link *link, const struct udp_own *own)
{
	struct context *context = udp->handler.engine->context;

	if (ip_is4(own->ip)) {
		udp_arp_ask(context, link, own->ip, own->ip, 0);
		return;
	}
	/* Before it is asked for: who has it too answers there. */
	udp_mld_tell(context, link, own);
	if (own->optimistic)
		udp_nd_ask(context, link, (struct ip){0}, own->ip, 0);
	else
		udp_nd_announce(context, link, own->ip);
}

/*
 * Then two answer for it, or the kernel is no longer reached at it. Nothing of that looks wrong
 * from here: who asks for the address gets the same MAC from both.
 */
static void kernel_tell(const struct udp *udp, const struct port *port, struct ip ip)
{
	const struct port_config *config = engine_port_config(port);
	char text[INET6_ADDRSTRLEN];
	bool four = ip_is4(ip);

	if (!port->ifindex ||
	    !netdev_address_there(config->netns, port->ifindex, four ? AF_INET : AF_INET6,
				  four ? ip_bytes4(&ip) : ip_bytes(&ip)))
		return;
	engine_log(udp->handler.engine, LEVEL_WARNING,
		   "port %s: the kernel has the address %s on %s too: use one that it does not "
		   "have, or take it from there (ip addr del %s dev %s)",
		   port->name, ip_text(ip, text), config->target, text, config->target);
}

static int address_add(struct udp *udp, struct port *port, const char *text, struct error *err)
{
	int64_t now = machine_now(port->machine);
	uint32_t before, wanted = 1;
	struct udp_link *link;
	struct udp_net *net;
	unsigned prefix;
	struct ip ip;
	int rc;

	if (address_parse(text, &ip, &prefix))
		return error_set(err, -EINVAL,
				 "address '%s': not an IPv4 or IPv6 host's with a prefix, as "
				 "10.0.0.2/24 or fd00::2/64",
				 text);
	rc = change_begin(udp, port, &net, &link, err);
	if (rc)
		return rc;
	before = link->addresses;
	if (!ip_is4(ip) && !has_link_local(link) && !ip_is_link_local(ip))
		wanted = 2;
	for (uint32_t l = 0; l < net->links && !rc; l++)
		if (udp_own_find(&net->link[l], ip))
			rc = error_set(err, -EEXIST, "address %s is port %s's already", text,
				       net->link[l].port->name);
	if (!rc && before + wanted > UDP_ADDRESSES_MAX)
		rc = error_set(err, -ENOSPC,
			       "address %s: port %s has %u already, and %d is the limit", text,
			       port->name, before, UDP_ADDRESSES_MAX);
	if (rc)
		return rc;
	own_add(link, ip, prefix, now);
	if (wanted == 2)
		own_add(link, link_local(link->mac), 64, now)->automatic = true;
	net_publish(udp, net);
	for (uint32_t i = before; i < link->addresses; i++)
		own_tell(udp, link, &link->own[i]);
	context_kick(udp->handler.engine->context);
	kernel_tell(udp, port, ip);
	return 0;
}

int udp_address_add(struct handler *handler, struct port *port, const char *address,
		    struct error *err)
{
	int rc;

	engine_lock(handler->engine);
	rc = address_add(udp_of(handler), port, address, err);
	engine_unlock(handler->engine);
	return rc;
}

static bool in_prefix(const struct udp_link *link, struct ip ip)
{
	for (uint32_t i = 0; i < link->addresses; i++)
		if (ip_in(ip, link->own[i].ip, link->own[i].mask) &&
		    ip_is4(ip) == ip_is4(link->own[i].ip))
			return true;
	return false;
}

static void own_remove(struct udp_link *link, struct udp_own *own)
{
	struct udp_own *end = &link->own[--link->addresses];

	for (; own < end; own++)
		*own = own[1];
	if (!in_prefix(link, link->gateway4))
		link->gateway4 = (struct ip){0};
	if (!in_prefix(link, link->gateway6))
		link->gateway6 = (struct ip){0};
}

static int address_remove(struct udp *udp, struct port *port, const char *text, struct error *err)
{
	struct udp_link *link;
	struct udp_net *net;
	const struct udp_own *own;
	unsigned prefix;
	struct ip ip;
	int rc;

	if (address_parse(text, &ip, &prefix))
		return error_set(err, -ENOENT, "address '%s': no address", text);
	rc = change_begin(udp, port, &net, &link, err);
	if (rc)
		return rc;
	own = udp_own_find(link, ip);
	if (!own)
		return error_set(err, -ENOENT, "address %s: port %s does not have it", text,
				 port->name);
	own_remove(link, (struct udp_own *)own);
	net_publish(udp, net);
	return 0;
}

int udp_address_remove(struct handler *handler, struct port *port, const char *address,
		       struct error *err)
{
	int rc;

	engine_lock(handler->engine);
	rc = address_remove(udp_of(handler), port, address, err);
	engine_unlock(handler->engine);
	return rc;
}

static int gateway_set(struct udp *udp, struct port *port, const char *text, bool remove,
		       struct error *err)
{
	struct ip *gateway, ip;
	struct udp_link *link;
	struct udp_net *net;
	unsigned prefix;
	int rc;

	if (strchr(text, '/') || address_parse(text, &ip, &prefix))
		return error_set(err, -EINVAL, "gateway '%s': not the address of a host", text);
	rc = change_begin(udp, port, &net, &link, err);
	if (rc)
		return rc;
	gateway = ip_is4(ip) ? &link->gateway4 : &link->gateway6;
	if (remove && !ip_equal(*gateway, ip))
		rc = error_set(err, -ENOENT, "gateway %s: port %s does not have it", text,
			       port->name);
	else if (!remove && (!in_prefix(link, ip) || udp_own_find(link, ip)))
		rc = error_set(err, -ENETUNREACH,
			       "gateway %s: in no prefix of an address of port %s, or its own",
			       text, port->name);
	if (rc)
		return rc;
	*gateway = remove ? (struct ip){0} : ip;
	net_publish(udp, net);
	return 0;
}

int udp_gateway_set(struct handler *handler, struct port *port, const char *gateway,
		    struct error *err)
{
	int rc;

	engine_lock(handler->engine);
	rc = gateway_set(udp_of(handler), port, gateway, false, err);
	engine_unlock(handler->engine);
	return rc;
}

int udp_gateway_remove(struct handler *handler, struct port *port, const char *gateway,
		       struct error *err)
{
	int rc;

	engine_lock(handler->engine);
	rc = gateway_set(udp_of(handler), port, gateway, true, err);
	engine_unlock(handler->engine);
	return rc;
}

int udp_port_mac(struct handler *handler, struct port *port, uint8_t mac[6])
{
	const struct udp_link *link;

	engine_lock(handler->engine);
	link = udp_link_of(udp_net(udp_of(handler)), port);
	if (link)
		mac_store(mac, link->mac);
	engine_unlock(handler->engine);
	return link ? 0 : -ENOENT;
}

void udp_conflict(struct udp *udp, const struct udp_link *link, const struct udp_own *own)
{
	const struct udp_net *net = udp_net(udp);

	atomic_fetch_add_explicit(&udp->conflicts, 1, memory_order_relaxed);
	/* The tick tells of it, and does what follows. Another net: it has been changed just now,
	 * and the next conflict will do. */
	if (link >= net->link && link < net->link + net->links)
		atomic_fetch_or_explicit(&udp->duplicate[link - net->link],
					 UINT32_C(1) << (own - link->own), memory_order_relaxed);
}

/* Another has it. An optimistic one is given up; else it is ours, and the others are told so. */
static bool duplicate_end(struct udp *udp, struct udp_link *link, struct udp_own *own)
{
	char text[INET6_ADDRSTRLEN];

	if (own->optimistic) {
		engine_log(udp->handler.engine, LEVEL_WARNING,
			   "port %s: address %s is another's on this link: given up",
			   link->port->name, ip_text(own->ip, text));
		own_remove(link, own);
		return true;
	}
	engine_log(udp->handler.engine, LEVEL_WARNING,
		   "port %s: another on this link has the address %s as well", link->port->name,
		   ip_text(own->ip, text));
	own_tell(udp, link, own);
	return false;
}

static bool link_tick(struct udp *udp, struct udp_link *link, uint32_t duplicates, int64_t now)
{
	bool changed = false;

	/* From the last on, so that removing one leaves those to come where they are. */
	for (uint32_t i = link->addresses; i-- > 0;) {
		struct udp_own *own = &link->own[i];

		if (duplicates >> i & 1) {
			changed |= duplicate_end(udp, link, own);
		} else if (own->optimistic && now - own->since >= DAD_NS) {
			own->optimistic = false;
			own_tell(udp, link, own);
			changed = true;
		}
	}
	return changed;
}

void net_tick(struct udp *udp, int64_t now)
{
	const struct udp_net *current = udp_net(udp);
	bool due = false, changed = false;
	struct udp_net *net;

	for (uint32_t l = 0; l < current->links; l++) {
		due |= atomic_load_explicit(&udp->duplicate[l], memory_order_relaxed) != 0;
		for (uint32_t i = 0; i < current->link[l].addresses; i++)
			due |= current->link[l].own[i].optimistic;
	}
	if (!due)
		return;
	net = net_copy(udp);
	for (uint32_t l = 0; l < net->links; l++) {
		uint32_t duplicates =
			atomic_exchange_explicit(&udp->duplicate[l], 0, memory_order_relaxed);

		changed |= link_tick(udp, &net->link[l], duplicates, now);
	}
	if (changed)
		net_publish(udp, net);
}

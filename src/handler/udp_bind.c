/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What sockets are bound and connected to, and the table by which packets find them.
 *
 * The table is of endpoints, which do not change: binding adds one, connecting adds the new one
 * before it takes the old one away, so that there is no moment without.
 */
#include <errno.h>
#include <stdlib.h>

#include <core/engine.h>
#include <handler/udp.h>

#define EPHEMERAL_FIRST 32768
#define EPHEMERAL_LAST 60999

static struct engine *engine_of(const struct napi_udp *s)
{
	return s->udp->handler.engine;
}

static struct udp_endpoint *endpoint_of(const struct napi_udp *s)
{
	return atomic_load_explicit(&((struct napi_udp *)s)->endpoint, memory_order_acquire);
}

/* Two sockets on one port: whether there are packets that both would be for. */
static bool overlap(struct ip a, struct ip b)
{
	if (ip_is_zero(a) || ip_is_zero(b) || ip_equal(a, b))
		return true;
	return ip_is4(a) && ip_is4(b) && (ip_is_zero4(a) || ip_is_zero4(b));
}

static inline bool fits(const struct udp_endpoint *e, struct ip to, uint16_t port, struct ip from,
			uint16_t from_port, uint16_t scope)
{
	if (e->local_port != port)
		return false;
	if (!ip_equal(e->local, to) && !ip_is_zero(e->local) &&
	    !(ip_is_zero4(e->local) && ip_is4(to)))
		return false;
	return !e->peer_port || (e->peer_port == from_port && ip_equal(e->peer, from) &&
				 (!e->peer_scope || e->peer_scope == scope));
}

/* Bound sockets do not overlap, so there is none that would fit better. */
struct udp_endpoint *udp_find(const struct udp *udp, struct ip to, uint16_t port, struct ip from,
			      uint16_t from_port, uint16_t scope)
{
	struct udp_endpoint *_Atomic *bucket =
		&((struct udp *)udp)->bucket[port & (UDP_BUCKETS - 1)];
	struct udp_endpoint *e = atomic_load_explicit(bucket, memory_order_acquire);

	while (e && !fits(e, to, port, from, from_port, scope))
		e = atomic_load_explicit(&e->next, memory_order_acquire);
	return e;
}

static struct udp_endpoint *_Atomic *bucket_of(struct udp *udp, uint16_t port)
{
	return &udp->bucket[port & (UDP_BUCKETS - 1)];
}

static void endpoint_link(struct udp *udp, struct udp_endpoint *e)
{
	struct udp_endpoint *_Atomic *bucket = bucket_of(udp, e->local_port);

	atomic_store_explicit(&e->next, atomic_load(bucket), memory_order_relaxed);
	atomic_store_explicit(bucket, e, memory_order_release);
}

/* Who is at it just now goes on by its `next`, until quiesced. */
static void endpoint_unlink(struct udp *udp, struct udp_endpoint *e)
{
	struct udp_endpoint *_Atomic *at = bucket_of(udp, e->local_port);

	while (atomic_load(at) != e)
		at = &atomic_load(at)->next;
	atomic_store_explicit(at, atomic_load(&e->next), memory_order_release);
}

/* Its endpoint is this one from now on; NULL: none. The one before is gone when it returns. */
static void endpoint_replace(struct napi_udp *s, struct udp_endpoint *e)
{
	struct udp_endpoint *before = endpoint_of(s);

	if (e)
		endpoint_link(s->udp, e);
	if (before)
		endpoint_unlink(s->udp, before);
	atomic_store_explicit(&s->endpoint, e, memory_order_release);
	if (!before)
		return;
	machine_quiesce(engine_of(s)->machine);
	free(before);
}

static struct udp_endpoint *endpoint_create(struct napi_udp *s, struct ip local, uint16_t port)
{
	struct udp_endpoint *e = aligned_alloc(_Alignof(struct udp_endpoint), sizeof(*e));

	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->socket = s;
	e->local = local;
	e->local_port = port;
	return e;
}

static bool port_taken(struct udp *udp, struct ip ip, uint16_t port)
{
	struct udp_endpoint *e = atomic_load(bucket_of(udp, port));

	for (; e; e = atomic_load(&e->next))
		if (e->local_port == port && overlap(e->socket->bound, ip))
			return true;
	return false;
}

/* 0: all are taken. */
static uint16_t port_choose(struct udp *udp, struct ip ip)
{
	uint32_t range = EPHEMERAL_LAST - EPHEMERAL_FIRST + 1;

	for (uint32_t i = 0; i < range; i++) {
		uint16_t port = (uint16_t)(EPHEMERAL_FIRST + udp->ephemeral++ % range);

		if (!port_taken(udp, ip, port))
			return port;
	}
	return 0;
}

static bool is_ours(const struct udp *udp, struct ip ip)
{
	const struct udp_net *net = udp_net(udp);

	for (uint32_t l = 0; l < net->links; l++)
		if (udp_own_find(&net->link[l], ip))
			return true;
	return false;
}

/* Engine lock held. */
static int bind_to(struct napi_udp *s, struct ip ip, uint16_t port)
{
	struct udp_endpoint *e;

	if (endpoint_of(s))
		return -EINVAL;
	if (!ip_is_any(ip) && !is_ours(s->udp, ip))
		return -EADDRNOTAVAIL;
	if (!port)
		port = port_choose(s->udp, ip);
	else if (port_taken(s->udp, ip, port))
		port = 0;
	if (!port)
		return -EADDRINUSE;
	e = endpoint_create(s, ip, port);
	if (!e)
		return -ENOMEM;
	s->bound = ip;
	endpoint_replace(s, e);
	return 0;
}

int napi_udp_bind(struct napi_udp *s, const struct napi_udp_address *local)
{
	int rc;

	engine_lock(engine_of(s));
	rc = bind_to(s, udp_address_ip(local), local->port);
	engine_unlock(engine_of(s));
	return rc;
}

void udp_unbind(struct napi_udp *s)
{
	endpoint_replace(s, NULL);
}

int udp_bind_any(struct napi_udp *s)
{
	static const struct napi_udp_address any;

	return napi_udp_bind(s, &any);
}

/* Engine lock held, bound. */
static int connect_to(struct napi_udp *s, const struct napi_udp_address *peer)
{
	struct udp_way way = {.source = s->bound};
	struct udp_endpoint *e;
	uint16_t scope = 0;

	if (peer) {
		int rc;

		if (!peer->port)
			return -EINVAL;
		way.target = udp_address_ip(peer);
		rc = udp_route(udp_net(s->udp), &way, peer->scope);
		if (rc)
			return rc;
		scope = peer->scope;
		/* One that does not say by which port means the one that is found. */
		if (ip_is_link_local(way.target))
			scope = (uint16_t)(way.link->port->index + 1);
	}
	e = endpoint_create(s, way.source, endpoint_of(s)->local_port);
	if (!e)
		return -ENOMEM;
	if (peer) {
		e->peer = way.target;
		e->peer_port = peer->port;
		e->peer_scope = scope;
	}
	endpoint_replace(s, e);
	return 0;
}

int napi_udp_connect(struct napi_udp *s, const struct napi_udp_address *peer)
{
	int rc = 0;

	engine_lock(engine_of(s));
	if (!endpoint_of(s) && peer)
		rc = bind_to(s, (struct ip){0}, 0);
	if (!rc && endpoint_of(s))
		rc = connect_to(s, peer);
	engine_unlock(engine_of(s));
	return rc;
}

static void address_write(struct napi_udp_address *out, struct ip ip, uint16_t port, uint16_t scope)
{
	memcpy(out->ip, &ip, sizeof(out->ip));
	out->port = port;
	out->scope = scope;
}

void napi_udp_local(const struct napi_udp *s, struct napi_udp_address *out)
{
	const struct udp_endpoint *e = endpoint_of(s);

	memset(out, 0, sizeof(*out));
	if (e)
		address_write(out, e->local, e->local_port, 0);
}

void napi_udp_peer(const struct napi_udp *s, struct napi_udp_address *out)
{
	const struct udp_endpoint *e = endpoint_of(s);

	memset(out, 0, sizeof(*out));
	if (e && e->peer_port)
		address_write(out, e->peer, e->peer_port, e->peer_scope);
}

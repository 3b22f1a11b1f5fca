/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets' control side: open, bind, connect, close, and the table by which packets find them.
 *
 * The table is of endpoints, which do not change: binding adds one, connecting adds the new one
 * before it takes the old one away, so that there is no moment without.
 *
 * Why close ends: with its endpoint gone and machine_quiesce() over no producer is inside; its
 * application has promised not to be. What is in the queue, and what the application still has
 * (its frames carry the socket's mark), goes back to the pool.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <core/engine.h>
#include <handler/udp.h>

#define RECEIVE_DEFAULT 512
#define SEND_DEFAULT 128
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

/* Of all udp handlers of the engine. */
static uint32_t frames_promised(const struct engine *engine)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < HANDLERS_MAX; i++)
		if (engine->handler[i] && engine->handler[i]->ops == &udp_ops)
			sum += udp_of(engine->handler[i])->frames;
	return sum;
}

static int limits_check(const struct engine *engine, const struct napi_udp *s, struct error *err)
{
	uint32_t promised = frames_promised(engine), wanted = s->receive_max + s->send_max;

	if (s->receive_max > UDP_RECEIVE_MAX || s->send_max > UDP_SEND_MAX)
		return error_set(err, -EINVAL,
				 "udp: receive_max=%u, send_max=%u: at most %d and %d",
				 s->receive_max, s->send_max, UDP_RECEIVE_MAX, UDP_SEND_MAX);
	if (promised + wanted > engine->pool->frames / 2)
		return error_set(
			err, -ENOBUFS,
			"udp: a socket for %u packets with others for %u is more than half "
			"of the pool's %u frames; ask for fewer, or give the engine more "
			"(frames)",
			wanted, promised, engine->pool->frames);
	return 0;
}

static void socket_free(struct napi_udp *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free((void *)s->slot);
	free(s);
}

static int socket_create(struct udp *udp, const struct napi_udp_config *config,
			 struct napi_udp **out, struct error *err)
{
	struct napi_udp *s = aligned_alloc(_Alignof(struct napi_udp), sizeof(*s));
	uint32_t slots = 1;
	int rc;

	if (!s)
		return error_set(err, -ENOMEM, "udp: no memory for a socket");
	memset(s, 0, sizeof(*s));
	s->udp = udp;
	s->config = *config;
	if (!config->busy_read_set)
		s->config.busy_read = engine_busy_read(udp->handler.engine);
	if (!config->busy_poll_set)
		s->config.busy_poll = engine_busy_poll(udp->handler.engine);
	s->receive_max = config->receive_max ? config->receive_max : RECEIVE_DEFAULT;
	s->send_max = config->send_max ? config->send_max : SEND_DEFAULT;
	s->fd = -1;
	rc = limits_check(udp->handler.engine, s, err);
	if (rc)
		goto failed;
	while (slots < s->receive_max)
		slots *= 2;
	s->mask = slots - 1;
	s->slot = calloc(slots, sizeof(*s->slot));
	s->fd = s->slot ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
	if (s->fd < 0) {
		rc = error_set(err, s->slot ? -errno : -ENOMEM,
			       "udp: no memory or descriptor for "
			       "a socket");
		goto failed;
	}
	*out = s;
	return 0;

failed:
	socket_free(s);
	return rc;
}

static int socket_add(struct udp *udp, const struct napi_udp_config *config, struct napi_udp **out,
		      struct error *err)
{
	uint32_t index = 0;
	struct napi_udp *s = NULL;
	int rc;

	while (index < UDP_SOCKETS_MAX && udp->socket[index])
		index++;
	if (index == UDP_SOCKETS_MAX)
		return error_set(err, -ENOSPC, "udp: there are %d sockets already, the limit",
				 UDP_SOCKETS_MAX);
	rc = socket_create(udp, config, &s, err);
	if (rc)
		return rc;
	s->index = index;
	s->mark = UDP_MARK | (udp->number * UDP_SOCKETS_MAX + index) << 1;
	udp->socket[index] = s;
	if (index >= udp->sockets)
		udp->sockets = index + 1;
	udp->frames += s->receive_max + s->send_max;
	*out = s;
	return 0;
}

int napi_udp_open(struct handler *handler, const struct napi_udp_config *wish,
		  struct napi_udp **out, struct error *err)
{
	struct napi_udp_config config = {0};
	int rc;

	if (wish)
		config = *wish;
	engine_lock(handler->engine);
	rc = socket_add(udp_of(handler), &config, out, err);
	engine_unlock(handler->engine);
	return rc;
}

void udp_forget_port(struct udp *udp, const struct port *port)
{
	for (uint32_t i = 0; i < udp->sockets; i++) {
		struct napi_udp *s = udp->socket[i];

		for (uint32_t q = 0; s && q < port->queues; q++) {
			struct napi *napi = port->queue[q].napi;

			atomic_compare_exchange_strong(&s->napi, &napi, NULL);
		}
	}
}

static void frames_take_back(struct napi_udp *s)
{
	struct pool_cache *cache = &engine_of(s)->context->cache;
	struct pool *pool = engine_of(s)->pool;

	for (uint32_t i = 0; i <= s->mask; i++) {
		struct packet *p = atomic_load_explicit(&s->slot[i], memory_order_acquire);

		if (p)
			packet_free(cache, &p, 1);
	}
	if (counter_read(&s->taken) == counter_read(&s->released) && !counter_read(&s->allocated))
		return;
	for (uint32_t i = 0; i < pool->frames; i++) {
		struct packet *p = &pool->packets[i];

		if ((atomic_load_explicit(&p->holder, memory_order_relaxed) & ~UDP_MARK_SENDING) !=
		    s->mark)
			continue;
		atomic_store_explicit(&p->holder, 0, memory_order_relaxed);
		p->next = NULL;
		packet_free(cache, &p, 1);
	}
}

/* Nobody is inside. */
static void socket_end(struct napi_udp *s)
{
	struct udp *udp = s->udp;

	frames_take_back(s);
	udp->frames -= s->receive_max + s->send_max;
	udp->socket[s->index] = NULL;
	free(endpoint_of(s));
	socket_free(s);
}

void napi_udp_close(struct napi_udp *s)
{
	struct engine *engine = engine_of(s);

	engine_lock(engine);
	if (endpoint_of(s))
		endpoint_replace(s, NULL);
	socket_end(s);
	engine_unlock(engine);
}

void udp_sockets_close(struct udp *udp)
{
	for (uint32_t i = 0; i < udp->sockets; i++)
		if (udp->socket[i])
			socket_end(udp->socket[i]);
}

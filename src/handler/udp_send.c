/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a sent vector: each message is checked and gets its way and headers in front of its
 * payload, where the frame has room for them; those for one port are sent together. What waits for
 * its neighbour is the neighbour's until that answers.
 */
#include <errno.h>

#include <napier/busy_poll.h>

#include <handler/udp.h>

/* One call of napi_udp_send. */
struct passage {
	struct napi_udp *socket;
	struct context *context;
	const struct udp_net *net;
	const struct udp_endpoint *endpoint;
	uint32_t now;
	/* Of the message before: messages mostly go where the one before went. */
	struct udp_way way;
	struct napi_udp_address peer, local;
	bool known;    /* `way` is the one to these two */
	bool resolved; /* and its neighbour's address is in it */
	/* Ready for one port, not yet sent. */
	struct packet *out[PACKET_VECTOR_MAX];
	uint32_t n;
	uint32_t received, allocated; /* frames that are no longer the socket's, by their mark */
};

void udp_waiting_drop(struct udp *udp, struct context *context, struct packet *p)
{
	struct napi_counters *counters = context->counters;

	/* They are no packets of the NAPI that is being polled. */
	context->counters = &context->own;
	while (p) {
		struct packet *next = p->next;

		p->next = NULL;
		packet_drop(context, &p, 1, DROP_UDP_NEIGHBOUR);
		atomic_fetch_add_explicit(&udp->waiting_dropped, 1, memory_order_relaxed);
		p = next;
	}
	context->counters = counters;
}

void udp_neighbour_tell(struct udp *udp, struct context *context, const struct udp_link *link,
			struct ip ip, uint64_t mac, unsigned news)
{
	struct packet *p = neighbour_confirm(udp->neighbours, link->port->index, ip, mac, news,
					     udp_seconds(udp));
	struct napi_counters *counters = context->counters;
	struct packet *out[NEIGHBOUR_WAITING];
	uint32_t n = 0;

	for (; p; p = out[n - 1]->next)
		out[n++] = p;
	if (!n)
		return;
	for (uint32_t i = 0; i < n; i++)
		out[i]->next = NULL;
	/* They are no packets of the NAPI that is being polled. */
	context->counters = &context->own;
	port_transmit(context, link->port, out, n);
	context->counters = counters;
}

static void flush(struct passage *passage)
{
	if (passage->n)
		port_transmit(passage->context, passage->way.link->port, passage->out, passage->n);
	passage->n = 0;
}

static bool address_equal(const struct napi_udp_address *a, const struct napi_udp_address *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Into passage->way: where the message goes, and from where. */
static int way_find(struct passage *passage, const struct napi_udp_message *m)
{
	const struct udp_endpoint *e = passage->endpoint;
	struct ip target = udp_address_ip(&m->peer), source = udp_address_ip(&m->local);
	struct udp_way way = {.source_port = e->local_port};
	uint16_t scope = m->peer.scope;
	int rc;

	if (passage->known && address_equal(&m->peer, &passage->peer) &&
	    address_equal(&m->local, &passage->local))
		return 0;
	if (ip_is_zero(target) && !m->peer.port) {
		if (!e->peer_port)
			return -EDESTADDRREQ;
		way.target = e->peer;
		way.target_port = e->peer_port;
		scope = e->peer_scope;
	} else {
		way.target = target;
		way.target_port = m->peer.port;
	}
	if (!way.target_port)
		return -EINVAL;
	way.source = ip_is_any(source) ? e->local : source;
	rc = udp_route(passage->net, &way, scope);
	if (rc)
		return rc;
	if (passage->n && way.link != passage->way.link)
		flush(passage);
	passage->way = way;
	passage->peer = m->peer;
	passage->local = m->local;
	passage->known = true;
	passage->resolved = false;
	return 0;
}

/* Payload where the application may have put it: inside the frame, with room for the headers. */
static bool payload_inside(const struct pool *pool, const struct napi_udp_message *m)
{
	size_t at = (size_t)(m->packet - pool->packets) << pool->frame_shift;
	const uint8_t *frame = pool->area + at;

	return m->data >= frame + HEADERS_MAX && m->data <= frame + (1u << pool->frame_shift) &&
	       m->len <= frame + (1u << pool->frame_shift) - m->data;
}

/* Takes the packet: it is ready, or waits, or has been dropped. */
static void neighbour_resolve(struct passage *passage, struct packet *p)
{
	struct udp *udp = passage->socket->udp;
	struct udp_way *way = &passage->way;
	uint64_t mac;
	bool ask;

	switch (neighbour_wait(udp->neighbours, way->link->port->index, way->next_hop, passage->now,
			       &p, &mac, &ask)) {
	case NEIGHBOUR_KNOWN:
		mac_store(p->data, mac);
		passage->out[passage->n++] = p;
		break;
	default:
		if (p)
			udp_waiting_drop(udp, passage->context, p);
	}
	if (ask) {
		/* What goes to others first was sent first. */
		flush(passage);
		udp_ask(passage->context, way->link, way->next_hop, 0);
	}
}

/* What is the socket's to send, and where it may be. 0: the frame's mark is in *mark. */
static int message_check(const struct passage *passage, const struct napi_udp_message *m,
			 uint32_t *mark)
{
	struct packet *p = m->packet;

	*mark = p ? atomic_load_explicit(&p->holder, memory_order_relaxed) : 0;
	return (*mark & ~UDP_MARK_SENDING) == passage->socket->mark &&
			       payload_inside(passage->context->cache.pool, m)
		       ? 0
		       : -EINVAL;
}

static int message_send(struct passage *passage, struct napi_udp_message *m)
{
	struct napi_udp *s = passage->socket;
	enum neighbour_answer answer = NEIGHBOUR_KNOWN;
	struct udp_way *way = &passage->way;
	struct packet *p = m->packet;
	uint32_t mark;
	int rc = message_check(passage, m, &mark);

	if (!rc)
		rc = way_find(passage, m);
	if (rc)
		return rc;
	if (m->len > udp_payload_max(way->link, ip_is4(way->target)) ||
	    (m->len > udp_payload_path(passage->endpoint) &&
	     ip_equal(way->target, passage->endpoint->peer)))
		return -EMSGSIZE;
	if (!passage->resolved)
		answer = neighbour_find(s->udp->neighbours, way->link->port->index, way->next_hop,
					passage->now, &way->mac);
	if (answer == NEIGHBOUR_GONE)
		return -EHOSTUNREACH;
	udp_headers_write(p, m->data, m->len, way);
	atomic_store_explicit(&p->holder, 0, memory_order_relaxed);
	m->packet = NULL;
	if (mark == s->mark)
		passage->received++;
	else
		passage->allocated++;
	passage->resolved = answer == NEIGHBOUR_KNOWN;
	if (passage->resolved)
		passage->out[passage->n++] = p;
	else
		neighbour_resolve(passage, p);
	return 0;
}

static void passage_end(struct passage *passage, uint32_t taken)
{
	struct napi_udp *s = passage->socket;

	flush(passage);
	context_kick(passage->context);
	udp_frames_return(s, passage->received, passage->allocated);
	counter_add(&s->sent, taken);
}

int napi_udp_send(struct napi_udp *s, struct context *context, struct napi_udp_message *v,
		  uint32_t n)
{
	struct passage passage = {.socket = s, .context = context};
	uint32_t i;
	int rc;

	if (!n || n > NAPI_UDP_VECTOR_MAX)
		return -EINVAL;
	if (atomic_load_explicit(&s->error, memory_order_relaxed)) {
		rc = -atomic_exchange(&s->error, 0);
		if (rc)
			return rc;
	}
	if (!atomic_load_explicit(&s->endpoint, memory_order_relaxed)) {
		/* To bind waits for what runners do: one that did it would wait for itself. */
		rc = context->foreign ? udp_bind_any(s) : -EINVAL;
		if (rc)
			return rc;
	}
	context_enter(context);
	passage.net = udp_net(s->udp);
	passage.endpoint = atomic_load_explicit(&s->endpoint, memory_order_acquire);
	passage.now = udp_seconds(s->udp);
	rc = 0;
	for (i = 0; i < n && !rc; i += !rc)
		rc = message_send(&passage, &v[i]);
	passage_end(&passage, i);
	context_leave(context);
	return i ? (int)i : rc;
}

/* What the smallest MTU of the handler's ports allows to both families, and the peer's way. */
static uint32_t room_least(const struct napi_udp *s, const struct pool *pool)
{
	const struct udp_endpoint *e =
		atomic_load_explicit(&((struct napi_udp *)s)->endpoint, memory_order_acquire);
	uint32_t path = e ? udp_payload_path(e) : UINT32_MAX, room = pool_room(pool);
	const struct udp_net *net = udp_net(s->udp);

	for (uint32_t l = 0; l < net->links; l++) {
		uint32_t most = udp_payload_max(&net->link[l], false);

		room = most < room ? most : room;
	}
	return path < room ? path : room;
}

int napi_udp_alloc(struct napi_udp *s, struct context *context, struct napi_udp_message *v,
		   uint32_t n)
{
	uint32_t used = (uint32_t)counter_read(&s->allocated);
	struct packet *p[NAPI_UDP_VECTOR_MAX];
	struct napi_udp_address peer, local;
	uint32_t room;

	if (!n || n > NAPI_UDP_VECTOR_MAX)
		return -EINVAL;
	if (n > s->send_max - used)
		n = s->send_max - used;
	n = packet_alloc(&context->cache, p, n);
	if (!n)
		return -ENOBUFS;
	context_enter(context);
	room = room_least(s, context->cache.pool);
	napi_udp_peer(s, &peer);
	context_leave(context);
	memset(&local, 0, sizeof(local));
	for (uint32_t i = 0; i < n; i++) {
		atomic_store_explicit(&p[i]->holder, s->mark | UDP_MARK_SENDING,
				      memory_order_relaxed);
		v[i] = (struct napi_udp_message){
			.data = p[i]->data,
			.room = (uint16_t)room,
			.peer = peer,
			.local = local,
			.packet = p[i],
		};
	}
	counter_add(&s->allocated, n);
	return (int)n;
}

int napi_udp_send_copy(struct napi_udp *s, struct context *context, const void *data, size_t len,
		       const struct napi_udp_address *peer)
{
	struct napi_udp_message m;
	int rc = napi_udp_alloc(s, context, &m, 1);

	if (rc < 0)
		return rc;
	if (len <= pool_room(context->cache.pool)) {
		memcpy(m.data, data, len);
		m.len = (uint16_t)len;
		if (peer)
			m.peer = *peer;
		rc = napi_udp_send(s, context, &m, 1);
	} else {
		rc = -EMSGSIZE;
	}
	if (rc < 0)
		napi_udp_release(s, context, &m, 1);
	return rc < 0 ? rc : (int)len;
}

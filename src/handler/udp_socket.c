/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets' beginning and end.
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

static struct engine *engine_of(const struct napi_udp *s)
{
	return s->udp->handler.engine;
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
	free(atomic_load(&s->endpoint));
	socket_free(s);
}

void napi_udp_close(struct napi_udp *s)
{
	struct engine *engine = engine_of(s);

	engine_lock(engine);
	udp_unbind(s);
	socket_end(s);
	engine_unlock(engine);
}

void udp_sockets_close(struct udp *udp)
{
	for (uint32_t i = 0; i < udp->sockets; i++)
		if (udp->socket[i])
			socket_end(udp->socket[i]);
}

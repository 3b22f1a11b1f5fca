/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

#include <control/setup.h>

#include "lab/clock.h"
#include "lab/load/rr_server.h"

#define PATIENCE (10 * NSEC_PER_SEC)
#define AGAIN (100 * NSEC_PER_MSEC)

enum {
	LOOK_MS = 20,
	/* With the poller app: it looks so long before it sleeps, where nothing else is asked. */
	BUSY_USECS = 1000,
	/* And it may be away so long with what it has got before the engine polls in its place. */
	SUSPEND_NS = 20000000,
};

struct rr_engine {
	struct setup setup;
	struct machine *machine;
	struct engine *engine;
	struct port *port;
	struct napi_udp *socket;
};

static int setup_make(const struct load_place *place, struct setup *setup, struct error *err)
{
	const struct load_engine *engine = &place->engine;
	char text[sizeof(engine->settings) + 32];
	int ret;

	setup_init(setup);
	snprintf(text, sizeof(text), "engine = { %s };", engine->settings);
	ret = setup_text_read(setup, "engine", text, err);
	setup->engine.name = "lab";
	setup->engine.poller = engine->poller;
	if (!cpuset_empty(&engine->cpus))
		setup->engine.cpus = engine->cpus;
	return ret;
}

/* The kernel lets go of the AF_XDP sockets of an engine some time after it. */
static int port_open(const struct load_place *place, struct rr_engine *e, struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;
	struct port_config config;
	char text[192];
	int ret;

	if (place->netns >= 0)
		snprintf(text, sizeof(text), "%s,netns=/proc/self/fd/%d", place->engine.port,
			 place->netns);
	else
		snprintf(text, sizeof(text), "%s", place->engine.port);
	ret = port_config_parse(text, &config, err);
	while (!ret && (ret = engine_port_add(e->engine, &config, &e->port, err)) == -EBUSY &&
	       clock_now() < deadline) {
		clock_sleep(AGAIN);
		ret = 0;
	}
	return ret;
}

static int interrupts_suspend(struct rr_engine *e, struct error *err)
{
	const struct queue_settings settings = {
		.irq_suspend_timeout_set = true,
		.irq_suspend_timeout = SUSPEND_NS,
	};

	return engine_queue_set(e->engine, e->port->name, -1, &settings, NULL, err);
}

static int socket_open(const struct rr_server *server, struct rr_engine *e, struct error *err)
{
	const struct load_config *config = &server->config;
	/* Of no effect but with the poller app. */
	struct napi_udp_config how = {
		.budget = config->busy_poll_budget,
		.prefer = config->prefer_busy_poll || server->place.engine.poller == POLLER_APP,
	};
	struct napi_udp_address local;
	struct handler *udp;
	char text[32];
	int ret = udp_handler_create(e->engine, NULL, &udp, err);

	if (!ret)
		ret = engine_handler_set(e->engine, e->port, udp, err);
	if (!ret)
		ret = udp_address_add(udp, e->port, server->place.engine.address, err);
	if (ret)
		return ret;
	how.busy_read = config->busy_poll_usecs ? config->busy_poll_usecs : BUSY_USECS;
	how.busy_read_set = config->busy_poll_usecs || !e->setup.engine.busy_read;
	ret = napi_udp_open(udp, &how, &e->socket, err);
	if (ret)
		return ret;
	snprintf(text, sizeof(text), "0.0.0.0:%u", server->place.port);
	if (strchr(server->place.engine.address, ':'))
		snprintf(text, sizeof(text), "[::]:%u", server->place.port);
	ret = napi_udp_address_parse(text, &local);
	if (!ret)
		ret = napi_udp_bind(e->socket, &local);
	return ret ? error_set(err, ret, "binding napier's UDP socket to port %u: %s",
			       server->place.port, strerror(-ret))
		   : 0;
}

int rr_engine_open(struct rr_server *server, struct error *err)
{
	struct rr_engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "no memory");
	server->engine = e;
	ret = setup_make(&server->place, &e->setup, err);
	if (!ret)
		ret = machine_host_create(&e->machine, err);
	if (ret)
		return ret;
	e->setup.engine.machine = e->machine;
	ret = engine_create(&e->setup.engine, &e->engine, err);
	if (!ret)
		ret = port_open(&server->place, e, err);
	if (!ret && server->place.engine.poller == POLLER_APP)
		ret = interrupts_suspend(e, err);
	return ret ? ret : socket_open(server, e, err);
}

void rr_engine_close(struct rr_server *server)
{
	struct rr_engine *e = server->engine;

	if (e->socket)
		napi_udp_close(e->socket);
	if (e->engine)
		engine_destroy(e->engine);
	if (e->machine)
		machine_destroy(e->machine);
	setup_free(&e->setup);
	free(e);
	server->engine = NULL;
}

void rr_engine_counts(const struct rr_server *server, uint64_t *polls, uint64_t *packets)
{
	const struct port *port = server->engine->port;

	*polls = *packets = 0;
	for (uint32_t i = 0; port && i < port->queues; i++) {
		const struct napi_counters *c = napi_counters(port->queue[i].napi);

		*polls += counter_read(&c->polls) - counter_read(&c->empty_polls);
		*packets += counter_read(&c->received);
	}
}

static void send_or_release(struct napi_udp *socket, struct context *context,
			    struct napi_udp_message *v, uint32_t n, struct rr_server_worker *w)
{
	int sent = n ? napi_udp_send(socket, context, v, n) : 0;

	sent = sent < 0 ? 0 : sent;
	counter_add(&w->transactions, (uint64_t)sent);
	for (int i = 0; i < sent; i++)
		counter_add(&w->bytes_out, v[i].len);
	/* Those that cannot be sent are lost, as the client will see. */
	if ((uint32_t)sent < n)
		napi_udp_release(socket, context, v + sent, n - (uint32_t)sent);
}

static bool answer_make(struct rr_server_worker *w, struct napi_udp_message *m)
{
	uint32_t size, most = sizeof(struct rr_hello);

	counter_add(&w->bytes_in, m->len);
	if (w->server->config.response_size > most)
		most = w->server->config.response_size;
	if (m->room < most || !rr_server_request(w, m->data, m->len, &size))
		return false;
	/* What stood behind the request is not the engine's to send. */
	if (size > m->len)
		memset(m->data + m->len, 0, size - m->len);
	m->len = (uint16_t)size;
	return true;
}

/* In place: each goes back in the frame in which it came. */
static void answer_all(struct rr_server_worker *w, struct context *context,
		       struct napi_udp_message *v, uint32_t n)
{
	struct napi_udp *socket = w->server->engine->socket;
	uint32_t out = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!answer_make(w, &v[i])) {
			napi_udp_release(socket, context, &v[i], 1);
			continue;
		}
		v[out++] = v[i];
		/* With work, each is answered when it is done. */
		if (w->server->config.work) {
			send_or_release(socket, context, v, out, w);
			out = 0;
		}
	}
	send_or_release(socket, context, v, out, w);
}

int rr_server_udp_engine(struct rr_server_worker *w)
{
	struct rr_server *server = w->server;
	struct napi_udp *socket = server->engine->socket;
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	struct pollfd wait = {.fd = napi_udp_fd(socket), .events = POLLIN};
	struct context *context;
	int ret = engine_context_open(server->engine->engine, &context);

	if (ret)
		return error_set(&server->err, ret, "an engine's context: %s", strerror(-ret));
	rr_server_ready(w);
	while (!server->stop) {
		int n = napi_udp_recv(socket, context, v, NAPI_UDP_VECTOR_MAX);

		rr_server_stall(w);
		if (n > 0)
			answer_all(w, context, v, (uint32_t)n);
		else if (!server->config.server_spins && !napi_udp_arm(socket, context))
			poll(&wait, 1, LOOK_MS);
	}
	engine_context_close(context);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <control/setup.h>

#include "lab/engine_socket.h"
#include "lab/load/rr_server.h"

enum {
	LOOK_MS = 20,
	/* With the poller app: it looks so long before it sleeps, where nothing else is asked. */
	BUSY_USECS = 1000,
};

struct rr_engine {
	struct setup setup;
	struct engine_socket at;
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

static int socket_open(const struct rr_server *server, struct rr_engine *e, struct error *err)
{
	const struct load_config *config = &server->config;
	const struct load_place *place = &server->place;
	char port[192];
	struct engine_socket_config how = {
		.engine = e->setup.engine,
		.port = port,
		.address = place->engine.address,
		.udp_port = place->port,
		.how =
			{
				.busy_read_set =
					config->busy_poll_usecs || !e->setup.engine.busy_read,
				.busy_read = config->busy_poll_usecs ? config->busy_poll_usecs
								     : BUSY_USECS,
				.budget = config->busy_poll_budget,
				.prefer = config->prefer_busy_poll ||
					  place->engine.poller == POLLER_APP,
			},
	};

	snprintf(port, sizeof(port), "%s", place->engine.port);
	if (place->netns >= 0)
		snprintf(port, sizeof(port), "%s,netns=/proc/self/fd/%d", place->engine.port,
			 place->netns);
	return engine_socket_open(&how, &e->at, err);
}

int rr_engine_open(struct rr_server *server, struct error *err)
{
	struct rr_engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "no memory");
	ret = setup_make(&server->place, &e->setup, err);
	if (!ret)
		ret = socket_open(server, e, err);
	if (!ret) {
		server->engine = e;
		return 0;
	}
	setup_free(&e->setup);
	free(e);
	return ret;
}

void rr_engine_close(struct rr_server *server)
{
	struct rr_engine *e = server->engine;
	struct error ignored;

	engine_socket_close(&e->at, &ignored);
	setup_free(&e->setup);
	free(e);
	server->engine = NULL;
}

void rr_engine_counts(const struct rr_server *server, uint64_t *polls, uint64_t *packets)
{
	engine_socket_counts(&server->engine->at, polls, packets);
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
	struct napi_udp *socket = w->server->engine->at.socket;
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
	struct napi_udp *socket = server->engine->at.socket;
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	struct pollfd wait = {.fd = napi_udp_fd(socket), .events = POLLIN};
	struct context *context;
	int ret = engine_context_open(server->engine->at.engine, &context);

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

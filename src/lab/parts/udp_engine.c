/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/parts/udp_serve.h"

#define ADDRESS "10.78.0.2/24"

int udp_engine_open(struct udp_server *server, struct error *err)
{
	const struct udp_server_config *config = &server->config;
	const struct ends *ends = config->ends;
	char port[128];
	struct engine_socket_config how = {
		.engine = {.name = "lab", .poller = config->poller},
		.port = port,
		.address = ADDRESS,
		.udp_port = config->port,
		.how =
			{
				.busy_read_set = true,
				.busy_read = UDP_SERVER_BUSY_USECS,
				.budget = config->work == UDP_COUNT ? UDP_SERVER_VECTOR : 0,
				.prefer = true,
			},
	};
	struct engine_socket *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "no memory");
	cpuset_add(&how.engine.cpus, (unsigned)config->engine_cpu);
	snprintf(port, sizeof(port), "xdp:%s,netns=%s", ends->near,
		 ends->lab->namespace[ends->near_ns].path);
	ret = engine_socket_open(&how, e, err);
	if (ret)
		free(e);
	else
		server->engine = e;
	return ret;
}

int udp_engine_close(struct udp_server *server, struct error *err)
{
	int ret = engine_socket_close(server->engine, err);

	free(server->engine);
	server->engine = NULL;
	return ret;
}

void udp_engine_counts(const struct udp_server *server, struct udp_server_counts *out)
{
	engine_socket_counts(server->engine, &out->polls, &out->packets);
}

static void echo(struct udp_server *server, struct context *context, struct napi_udp_message *v,
		 uint32_t n)
{
	struct napi_udp *socket = server->engine->socket;
	int sent = napi_udp_send(socket, context, v, n);

	sent = sent < 0 ? 0 : sent;
	/* Those that cannot be sent are lost, as the client will see. */
	if ((uint32_t)sent < n)
		napi_udp_release(socket, context, v + sent, n - (uint32_t)sent);
}

int udp_engine_serve(struct udp_server *server)
{
	struct napi_udp *socket = server->engine->socket;
	struct napi_udp_message v[UDP_SERVER_VECTOR];
	struct pollfd wait = {.fd = napi_udp_fd(socket), .events = POLLIN};
	struct context *context;
	int ret = engine_context_open(server->engine->engine, &context);

	if (ret)
		return error_set(&server->err, ret, "an engine's context: %s", strerror(-ret));
	server->state = 1;
	while (!server->stop) {
		int n = napi_udp_recv(socket, context, v, UDP_SERVER_VECTOR);

		if (n <= 0) {
			if (!napi_udp_arm(socket, context))
				poll(&wait, 1, UDP_SERVER_LOOK_MS);
			continue;
		}
		udp_server_count(server, (unsigned)n);
		if (server->config.work == UDP_ECHO)
			echo(server, context, v, (uint32_t)n);
		else
			napi_udp_release(socket, context, v, (uint32_t)n);
	}
	engine_context_close(context);
	return 0;
}

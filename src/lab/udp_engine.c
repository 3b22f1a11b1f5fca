/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/napier.h>

#include "lab/clock.h"
#include "lab/udp_serve.h"

#define PATIENCE (10 * NSEC_PER_SEC)
#define AGAIN (100 * NSEC_PER_MSEC)
#define ADDRESS "10.78.0.2/24"

/* So long the program may be away with what it has got before the engine polls in its place. */
enum { SUSPEND_NS = 20000000 };

struct udp_engine {
	struct machine *machine;
	struct engine *engine;
	struct port *port;
	struct napi_udp *socket;
};

/* The near interface. The kernel lets go of the AF_XDP sockets of an engine some time after it. */
static int port_open(const struct udp_server_config *config, struct udp_engine *e,
		     struct error *err)
{
	const struct ends *ends = config->ends;
	int64_t deadline = clock_now() + PATIENCE;
	struct port_config port;
	char text[128];
	int ret;

	snprintf(text, sizeof(text), "xdp:%s,netns=%s", ends->near,
		 ends->lab->namespace[ends->near_ns].path);
	ret = port_config_parse(text, &port, err);
	while (!ret && (ret = engine_port_add(e->engine, &port, &e->port, err)) == -EBUSY &&
	       clock_now() < deadline) {
		clock_sleep(AGAIN);
		ret = 0;
	}
	return ret;
}

/* The kernel's are left alone: below a veth's AF_XDP socket nobody but softirq can poll its NAPI.
 */
static int interrupts_suspend(struct udp_engine *e, struct error *err)
{
	const struct queue_settings settings = {
		.irq_suspend_timeout_set = true,
		.irq_suspend_timeout = SUSPEND_NS,
	};

	return engine_queue_set(e->engine, e->port->name, -1, &settings, NULL, err);
}

static int socket_open(const struct udp_server_config *config, struct udp_engine *e,
		       struct error *err)
{
	/* Of no effect but with the poller app. */
	struct napi_udp_config how = {
		.busy_read_set = true,
		.busy_read = UDP_SERVER_BUSY_USECS,
		.budget = config->work == UDP_COUNT ? UDP_SERVER_VECTOR : 0,
		.prefer = true,
	};
	struct napi_udp_address local;
	struct handler *udp;
	char text[32];
	int ret = udp_handler_create(e->engine, NULL, &udp, err);

	if (!ret)
		ret = engine_handler_set(e->engine, e->port, udp, err);
	if (!ret)
		ret = udp_address_add(udp, e->port, ADDRESS, err);
	if (ret)
		return ret;
	ret = napi_udp_open(udp, &how, &e->socket, err);
	if (ret)
		return ret;
	snprintf(text, sizeof(text), "0.0.0.0:%u", config->port);
	ret = napi_udp_address_parse(text, &local);
	if (!ret)
		ret = napi_udp_bind(e->socket, &local);
	return ret ? error_set(err, ret, "binding a UDP socket: %s", strerror(-ret)) : 0;
}

int udp_engine_open(struct udp_server *server, struct error *err)
{
	const struct udp_server_config *config = &server->config;
	struct engine_config engine = {.name = "lab", .poller = config->poller};
	struct udp_engine *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "no memory");
	server->engine = e;
	ret = machine_host_create(&e->machine, err);
	if (ret)
		return ret;
	engine.machine = e->machine;
	cpuset_add(&engine.cpus, (unsigned)config->engine_cpu);
	ret = engine_create(&engine, &e->engine, err);
	if (!ret)
		ret = port_open(config, e, err);
	if (!ret && config->poller == POLLER_APP)
		ret = interrupts_suspend(e, err);
	return ret ? ret : socket_open(config, e, err);
}

int udp_engine_close(struct udp_server *server, struct error *err)
{
	struct udp_engine *e = server->engine;
	int ret = 0;

	if (e->socket)
		napi_udp_close(e->socket);
	if (e->engine) {
		if (e->port)
			ret = engine_port_remove(e->engine, e->port, err);
		if (!ret)
			ret = engine_check(e->engine, err);
		engine_destroy(e->engine);
	}
	if (e->machine)
		machine_destroy(e->machine);
	free(e);
	server->engine = NULL;
	return ret;
}

void udp_engine_counts(const struct udp_server *server, struct udp_server_counts *out)
{
	const struct napi_counters *c = napi_counters(server->engine->port->queue[0].napi);

	out->polls = counter_read(&c->polls) - counter_read(&c->empty_polls);
	out->packets = counter_read(&c->received);
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

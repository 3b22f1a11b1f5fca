/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/engine_socket.h"

#define PATIENCE (10 * NSEC_PER_SEC)
#define AGAIN (100 * NSEC_PER_MSEC)

/*
 * With the poller app the program may be away so long with what it has got before the engine polls
 * in its place.
 */
enum { SUSPEND_NS = 20000000 };

/* The kernel lets go of the AF_XDP sockets of an engine some time after it. */
static int port_open(const char *text, struct engine_socket *s, struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;
	struct port_config config;
	int ret = port_config_parse(text, &config, err);

	while (!ret && (ret = engine_port_add(s->engine, &config, &s->port, err)) == -EBUSY &&
	       clock_now() < deadline) {
		clock_sleep(AGAIN);
		ret = 0;
	}
	return ret;
}

/* The kernel's are left alone: below a veth's AF_XDP socket nobody but softirq can poll its NAPI.
 */
static int interrupts_suspend(struct engine_socket *s, struct error *err)
{
	const struct queue_settings settings = {
		.irq_suspend_timeout_set = true,
		.irq_suspend_timeout = SUSPEND_NS,
	};

	return engine_queue_set(s->engine, s->port->name, -1, &settings, NULL, err);
}

static int socket_open(const struct engine_socket_config *config, struct engine_socket *s,
		       struct error *err)
{
	bool v6 = strchr(config->address, ':');
	struct napi_udp_address local;
	struct handler *udp;
	char text[32];
	int ret = udp_handler_create(s->engine, NULL, &udp, err);

	if (!ret)
		ret = engine_handler_set(s->engine, s->port, udp, err);
	if (!ret)
		ret = udp_address_add(udp, s->port, config->address, err);
	if (!ret)
		ret = napi_udp_open(udp, &config->how, &s->socket, err);
	if (ret)
		return ret;
	snprintf(text, sizeof(text), "%s:%u", v6 ? "[::]" : "0.0.0.0", config->udp_port);
	ret = napi_udp_address_parse(text, &local);
	if (!ret)
		ret = napi_udp_bind(s->socket, &local);
	return ret ? error_set(err, ret, "binding napier's UDP socket to port %u: %s",
			       config->udp_port, strerror(-ret))
		   : 0;
}

static int all_open(const struct engine_socket_config *config, struct engine_socket *s,
		    struct error *err)
{
	struct engine_config engine = config->engine;
	int ret = machine_host_create(&s->machine, err);

	if (ret)
		return ret;
	engine.machine = s->machine;
	ret = engine_create(&engine, &s->engine, err);
	if (!ret)
		ret = port_open(config->port, s, err);
	if (!ret && engine.poller == POLLER_APP)
		ret = interrupts_suspend(s, err);
	return ret ? ret : socket_open(config, s, err);
}

int engine_socket_open(const struct engine_socket_config *config, struct engine_socket *out,
		       struct error *err)
{
	struct error ignored;
	int ret;

	*out = (struct engine_socket){0};
	ret = all_open(config, out, err);
	if (ret)
		engine_socket_close(out, &ignored);
	return ret;
}

int engine_socket_close(struct engine_socket *s, struct error *err)
{
	int ret = 0;

	if (s->socket)
		napi_udp_close(s->socket);
	if (s->port)
		ret = engine_port_remove(s->engine, s->port, err);
	if (!ret && s->engine)
		ret = engine_check(s->engine, err);
	if (s->engine)
		engine_destroy(s->engine);
	if (s->machine)
		machine_destroy(s->machine);
	*s = (struct engine_socket){0};
	return ret;
}

void engine_socket_counts(const struct engine_socket *s, uint64_t *polls, uint64_t *packets)
{
	*polls = *packets = 0;
	for (uint32_t i = 0; i < s->port->queues; i++) {
		const struct napi_counters *c = napi_counters(s->port->queue[i].napi);

		*polls += counter_read(&c->polls) - counter_read(&c->empty_polls);
		*packets += counter_read(&c->received);
	}
}

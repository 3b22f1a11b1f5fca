/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <napier/host.h>

#include <core/engine_queue.h>

/*
 * The other end of each port, by its index. A port that is removed is taken out first; a runner
 * that still holds it is through before the engine frees it (machine_quiesce).
 */
struct host {
	struct handler handler;
	struct port *_Atomic peer[];
};

static struct host *host_of(struct handler *handler)
{
	return (struct host *)handler;
}

static void host_input(struct handler *handler, struct context *context, struct port *in,
		       struct packet **v, uint32_t n)
{
	struct port *out =
		atomic_load_explicit(&host_of(handler)->peer[in->index], memory_order_acquire);

	if (out)
		port_transmit(context, out, v, n);
	else
		packet_drop(context, v, n, DROP_TX_DOWN);
}

static void host_port_remove(struct handler *handler, struct port *port)
{
	struct host *host = host_of(handler);
	struct port *peer = atomic_load(&host->peer[port->index]);

	if (!peer)
		return;
	atomic_store(&host->peer[port->index], NULL);
	atomic_store(&host->peer[peer->index], NULL);
}

/* Merged packets enter the kernel by one system call, and go up its stack as one. */
static unsigned host_merges(struct handler *handler, struct port *in)
{
	const struct port *peer = atomic_load(&host_of(handler)->peer[in->index]);

	return peer ? port_gro_types(peer) : 0;
}

static void host_destroy(struct handler *handler)
{
	free(handler);
}

static const struct handler_ops host_ops = {
	.name = "host",
	.input = host_input,
	.port_remove = host_port_remove,
	.merges = host_merges,
	.destroy = host_destroy,
};

int host_create(struct engine *engine, struct handler **out)
{
	uint32_t ports = engine->config.ports_max;
	struct host *host = calloc(1, sizeof(*host) + ports * sizeof(host->peer[0]));
	int rc;

	if (!host)
		return -ENOMEM;
	host->handler = (struct handler){.ops = &host_ops, .engine = engine};
	rc = engine_handler_register(engine, &host->handler);
	if (rc) {
		free(host);
		return rc;
	}
	*out = &host->handler;
	return 0;
}

static int pair_check(struct host *host, const struct port *port, struct error *err)
{
	if (port->handler != &host->handler)
		return error_set(err, -EINVAL, "port %s is not one of this handler's", port->name);
	if (host->peer[port->index])
		return error_set(err, -EBUSY, "port %s has another end already", port->name);
	return 0;
}

int host_pair(struct handler *handler, struct port *wire, struct port *tap, struct error *err)
{
	struct host *host = host_of(handler);
	int rc;

	engine_lock(handler->engine);
	rc = pair_check(host, wire, err);
	if (!rc)
		rc = pair_check(host, tap, err);
	if (!rc && wire == tap)
		rc = error_set(err, -EINVAL, "port %s cannot be its own other end", wire->name);
	if (!rc) {
		atomic_store_explicit(&host->peer[wire->index], tap, memory_order_release);
		atomic_store_explicit(&host->peer[tap->index], wire, memory_order_release);
		queues_gro(handler->engine);
	}
	engine_unlock(handler->engine);
	return rc;
}

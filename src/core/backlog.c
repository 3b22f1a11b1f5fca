/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <napier/handler.h>

#include <core/backlog.h>
#include <core/canary.h>
#include <core/engine.h>
#include <core/napi.h>
#include <poller/softirq.h>

static uint32_t backlog_length(const struct backlog *backlog)
{
	return (uint32_t)(backlog->put - backlog->taken);
}

/* The engine CPU of the NAPI that is being polled, as a bit; 0 outside of polls. */
static uint64_t own_bit(const struct context *context)
{
	const struct engine *engine = context->engine;

	return context->napi ? UINT64_C(1) << (context->napi->softnet - engine->softnet) : 0;
}

/* Under the lock. Puts what fits and may; the others into `limited`. Returns how far it came. */
static uint32_t slots_fill(struct backlog *backlog, struct packet **v, uint32_t n,
			   struct packet **limited, uint32_t *limited_n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint32_t length = backlog_length(backlog);

		if (length >= backlog->max)
			break;
		if (backlog->limit && length >= backlog->max / 2 &&
		    flow_limit_over(backlog->limit, v[i]->hash))
			limited[(*limited_n)++] = v[i];
		else
			backlog->slot[backlog->put++ & backlog->mask] = v[i];
	}
	return i;
}

uint64_t backlog_put(struct backlog *backlog, struct context *context, struct packet **v,
		     uint32_t n)
{
	struct backlog_counters *counters = backlog->counters;
	struct packet *limited[PACKET_VECTOR_MAX];
	uint64_t bit = UINT64_C(1) << backlog->index;
	uint32_t limited_n = 0, done;
	uint64_t position;
	bool was_empty;

	lock_acquire(&backlog->lock);
	was_empty = backlog->put == backlog->taken;
	done = slots_fill(backlog, v, n, limited, &limited_n);
	position = backlog->put;
	atomic_store_explicit(&counters->length, backlog_length(backlog), memory_order_relaxed);
	if (was_empty && !(context->backlogs & bit)) {
		context->backlogs |= bit;
		if (bit != own_bit(context))
			counter_add(&counters->received_rps, 1);
	}
	if (done < n)
		counter_add(&counters->dropped, n - done);
	if (limited_n)
		counter_add(&counters->flow_limit, limited_n);
	lock_release(&backlog->lock);
	counter_add(&context->counters->steered, done - limited_n);
	packet_drop(context, limited, limited_n, DROP_FLOW_LIMIT);
	packet_drop(context, v + done, n - done, DROP_BACKLOG_FULL);
	return position;
}

void backlogs_kick(struct context *context)
{
	struct backlogs *backlogs = context->engine->backlogs;
	uint64_t left = context->backlogs;
	uint64_t own = own_bit(context) & left;

	context->backlogs = 0;
	if (CANARY(KICK_LEFT) && left & (left - 1))
		left &= left - 1;
	for (left &= ~own; left; left &= left - 1)
		napi_schedule(backlogs->backlog[__builtin_ctzll(left)].queue->napi);
	if (own)
		napi_schedule(backlogs->backlog[__builtin_ctzll(own)].queue->napi);
}

/*
 * Up to n packets, and the position behind them. Fewer than n: it is empty. A packet is received
 * before it no longer counts as standing there, so who looks at the counters misses none.
 */
static uint32_t backlog_take(struct backlog *backlog, struct context *context, struct packet **v,
			     uint32_t n, uint64_t *position)
{
	uint32_t got = 0;

	lock_acquire(&backlog->lock);
	while (got < n && backlog->taken != backlog->put) {
		struct packet *p = backlog->slot[backlog->taken++ & backlog->mask];

		if (p)
			v[got++] = p;
	}
	*position = backlog->taken;
	counter_add(&context->counters->received, got);
	atomic_store_explicit(&backlog->counters->length, backlog_length(backlog),
			      memory_order_release);
	lock_release(&backlog->lock);
	return got;
}

/* The packets at the head of v that came in by one queue. */
static uint32_t run_length(struct packet *const *v, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && v[i]->port == v[0]->port && v[i]->queue == v[0]->queue)
		i++;
	return i;
}

/* Its port is there: who removes one purges the backlogs first. */
static void run_input(struct context *context, struct packet **v, uint32_t n)
{
	struct port *port = context->engine->port[v[0]->port];
	struct handler *handler = atomic_load_explicit(&port->handler, memory_order_acquire);

	context->received_by = v[0]->queue;
	if (handler)
		handler->ops->input(handler, context, port, v, n);
	else
		packet_drop(context, v, n, DROP_NO_HANDLER);
}

static uint32_t backlog_poll(struct napi *napi, struct context *context, uint32_t budget)
{
	struct backlog *backlog = napi->queue->private;
	struct packet *v[PACKET_VECTOR_MAX];
	uint64_t bytes = 0, position;
	uint32_t n = backlog_take(backlog, context, v, budget, &position);

	for (uint32_t i = 0; i < n; i++) {
		__builtin_prefetch(v[i]->data);
		bytes += v[i]->total;
	}
	counter_add(&context->counters->received_bytes, bytes);
	for (uint32_t i = 0, run; i < n; i += run) {
		run = run_length(v + i, n - i);
		run_input(context, v + i, run);
	}
	/* Pairs with backlog_passed: what comes after it comes after these packets. */
	atomic_store_explicit(&backlog->passed, position, memory_order_release);
	if (atomic_load_explicit(&backlog->backlogs->waiting, memory_order_relaxed))
		machine_notify(napi->engine->machine);
	return n;
}

static int backlog_begin(struct backlog *backlog, struct engine *engine, uint32_t index)
{
	const struct engine_config *config = &engine->config;
	uint32_t slots = backlog_slots(config->max_backlog);
	int rc;

	backlog->slot = calloc(slots, sizeof(*backlog->slot));
	if (!backlog->slot)
		return -ENOMEM;
	rc = lock_init(&backlog->lock);
	if (rc) {
		free(backlog->slot);
		return rc;
	}
	backlog->mask = slots - 1;
	backlog->max = config->max_backlog;
	backlog->index = index;
	backlog->backlogs = engine->backlogs;
	backlog->counters = &engine->softnet[index].record->backlog;
	return 0;
}

static void backlogs_free(struct backlogs *backlogs)
{
	while (backlogs->n) {
		struct backlog *backlog = &backlogs->backlog[--backlogs->n];

		free(backlog->limit);
		free(backlog->slot);
		lock_destroy(&backlog->lock);
	}
	backlogs->engine->backlogs = NULL;
	free(backlogs);
}

static int backlog_open(struct port *port, struct port_config *config, struct error *err)
{
	struct engine *engine = port->engine;
	size_t size = sizeof(struct backlogs) + engine->cpus * sizeof(struct backlog);
	struct backlogs *backlogs;
	int rc = 0;

	(void)config;
	if (engine->cpus > BACKLOGS_MAX)
		return error_set(err, -ERANGE,
				 "steering works with up to %d engine CPUs, and there are %u: "
				 "give the engine fewer with cpus",
				 BACKLOGS_MAX, engine->cpus);
	size = (size + _Alignof(struct backlogs) - 1) & ~(_Alignof(struct backlogs) - 1);
	backlogs = aligned_alloc(_Alignof(struct backlogs), size);
	if (!backlogs)
		return error_set(err, -ENOMEM, "no memory for backlogs");
	memset(backlogs, 0, size);
	backlogs->engine = engine;
	backlogs->port = port;
	engine->backlogs = backlogs;
	while (!rc && backlogs->n < engine->cpus) {
		rc = backlog_begin(&backlogs->backlog[backlogs->n], engine, backlogs->n);
		if (!rc)
			backlogs->n++;
	}
	if (!rc)
		rc = backlogs_limit_set(backlogs, engine->config.flow_limit);
	if (!rc)
		rc = port_queues_alloc(port, backlogs->n);
	if (rc) {
		backlogs_free(backlogs);
		return error_set(err, rc, "backlogs: %s", strerror(-rc));
	}
	for (uint32_t i = 0; i < backlogs->n; i++) {
		port->queue[i].private = &backlogs->backlog[i];
		backlogs->backlog[i].queue = &port->queue[i];
	}
	strcpy(port->spec, BACKLOG_PORT);
	return 0;
}

/* Nothing is in them: the ports whose packets they held have been removed. */
static void backlog_close(struct port *port, struct context *context)
{
	(void)context;
	backlogs_free(port->engine->backlogs);
}

const struct port_ops backlog_port_ops = {
	.kind = BACKLOG_PORT,
	.help = "the engine's own",
	.open = backlog_open,
	.poll = backlog_poll,
	.close = backlog_close,
};

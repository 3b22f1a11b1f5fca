/* SPDX-License-Identifier: BSD-2-Clause */
/* Control's side of the backlogs: open, wait, purge, sizes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <core/backlog.h>
#include <core/engine.h>
#include <core/napi.h>

int backlogs_open(struct engine *engine, struct error *err)
{
	const struct port_config config = {
		.ops = &backlog_port_ops, .kind = BACKLOG_PORT, .name = BACKLOG_PORT};
	struct port *port;

	return engine->backlogs ? 0 : engine_port_add_locked(engine, &config, &port, err);
}

struct passing {
	struct backlogs *backlogs;
	uint64_t position[BACKLOGS_MAX];
};

static bool all_passed(void *arg)
{
	const struct passing *passing = arg;

	for (uint32_t i = 0; i < passing->backlogs->n; i++)
		if (!backlog_passed(&passing->backlogs->backlog[i], passing->position[i]))
			return false;
	return true;
}

int backlogs_wait(struct backlogs *backlogs, int64_t deadline)
{
	struct machine *machine = backlogs->engine->machine;
	struct passing passing = {.backlogs = backlogs};
	int rc;

	for (uint32_t i = 0; i < backlogs->n; i++) {
		struct backlog *backlog = &backlogs->backlog[i];

		lock_acquire(&backlog->lock);
		passing.position[i] = backlog->put;
		lock_release(&backlog->lock);
	}
	atomic_store(&backlogs->waiting, 1);
	rc = machine_wait(machine, all_passed, &passing, deadline);
	atomic_store(&backlogs->waiting, 0);
	return rc ? -ETIMEDOUT : 0;
}

/* Its NAPI is disabled, so its counters are control's. */
static void backlog_purge(struct backlog *backlog, const struct port *port)
{
	struct engine *engine = port->engine;
	struct napi_counters *counters = &backlog->queue->napi->record->napi;

	lock_acquire(&backlog->lock);
	for (uint64_t i = backlog->taken; i != backlog->put; i++) {
		struct packet **slot = &backlog->slot[i & backlog->mask];

		if (!*slot || (*slot)->port != port->index)
			continue;
		counter_add(&counters->received, 1);
		counter_add(&counters->received_bytes, (*slot)->total);
		counter_add(&counters->dropped[DROP_PORT_REMOVED], 1);
		packet_free(&engine->context->cache, slot, 1);
		*slot = NULL;
	}
	lock_release(&backlog->lock);
}

int backlogs_purge(struct backlogs *backlogs, const struct port *port, int64_t timeout)
{
	struct machine *machine = backlogs->engine->machine;
	int64_t deadline = machine_now(machine) + timeout;

	for (uint32_t i = 0; i < backlogs->n; i++) {
		struct backlog *backlog = &backlogs->backlog[i];
		struct napi *napi = backlog->queue->napi;
		bool was_disabled = napi_disabled(napi);
		int64_t left = deadline - machine_now(machine);

		if (napi_disable_locked(napi, left > 0 ? left : 0))
			return -ETIMEDOUT;
		backlog_purge(backlog, port);
		if (!was_disabled)
			napi_enable_locked(napi);
	}
	return 0;
}

/* Owns the slots. One that is fuller than it may be keeps its own, and takes nothing until then. */
static void backlog_max_set(struct backlog *backlog, struct packet **slot, uint32_t max)
{
	uint32_t mask = backlog_slots(max) - 1;

	lock_acquire(&backlog->lock);
	if (backlog->put - backlog->taken <= (uint64_t)mask + 1) {
		struct packet **before = backlog->slot;

		for (uint64_t i = backlog->taken; i != backlog->put; i++)
			slot[i & mask] = before[i & backlog->mask];
		backlog->slot = slot;
		backlog->mask = mask;
		slot = before;
	}
	backlog->max = max;
	lock_release(&backlog->lock);
	free(slot);
}

int backlogs_max_set(struct backlogs *backlogs, uint32_t max)
{
	struct packet **slot[BACKLOGS_MAX];

	for (uint32_t i = 0; i < backlogs->n; i++) {
		slot[i] = calloc(backlog_slots(max), sizeof(**slot));
		if (slot[i])
			continue;
		while (i--)
			free(slot[i]);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < backlogs->n; i++)
		backlog_max_set(&backlogs->backlog[i], slot[i], max);
	return 0;
}

int backlogs_limit_set(struct backlogs *backlogs, uint32_t buckets)
{
	struct flow_limit *limit[BACKLOGS_MAX] = {NULL};

	for (uint32_t i = 0; buckets && i < backlogs->n; i++) {
		limit[i] = flow_limit_create(buckets);
		if (limit[i])
			continue;
		while (i--)
			free(limit[i]);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < backlogs->n; i++) {
		struct backlog *backlog = &backlogs->backlog[i];
		struct flow_limit *before;

		lock_acquire(&backlog->lock);
		before = backlog->limit;
		backlog->limit = limit[i];
		lock_release(&backlog->lock);
		free(before);
	}
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog: a NAPI that is scheduled, yet was not polled from one tick to the next, is stuck.
 * It costs the packet path nothing: it looks at the state word and the poll counter.
 */
#include <stdio.h>

#include <napier/port.h>

#include <core/engine_queue.h>
#include <poller/softirq.h>

/* Who has it: a runner, or an application's thread. */
static void owner_text(struct napi *napi, const struct poller_ops *ops, char *text, size_t size)
{
	int32_t tid = atomic_load(&napi->record->app_tid);

	if (tid > 0)
		snprintf(text, size, "an application's thread %d", tid);
	else if (tid)
		snprintf(text, size, "an application");
	else
		snprintf(text, size, "runner %s",
			 ops->owner ? ops->owner : ops->runner(napi)->name);
}

static void napi_watch(struct engine *engine, struct napi *napi)
{
	const struct port_queue *queue = napi->queue;
	uint32_t state = napi_state_load(napi);
	uint64_t polls = counter_read(&napi->record->napi.polls);
	bool stuck = state & NAPI_SCHED && napi->seen_scheduled && polls == napi->seen_polls;

	/* Its holder may change its poller and CPU just now; whoever began that ends it in time. */
	if (napi->change.pending)
		return;
	if (stuck && !napi->stuck) {
		enum poller poller = napi_state_poller(state);
		const struct poller_ops *ops = poller_ops(poller);
		char owner[64];

		counter_add(&napi->record->stuck, 1);
		owner_text(napi, ops, owner, sizeof(owner));
		engine_log(engine, LEVEL_WARNING,
			   "%s/%u: scheduled, but not polled for a second; poller %s, %s",
			   queue->port->name, queue->index, ops->name, owner);
	}
	napi->stuck = stuck;
	napi->seen_scheduled = state & NAPI_SCHED;
	napi->seen_polls = polls;
}

void engine_watch(struct engine *engine)
{
	struct napi_walk walk = {0};
	struct napi *napi;

	while ((napi = napi_walk_next(engine, &walk)))
		napi_watch(engine, napi);
}

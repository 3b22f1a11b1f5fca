/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Backlogs: one queue of packets per engine CPU, into which steering puts what was received
 * elsewhere, and a NAPI that works on it.
 *
 * They are the queues of a port of the engine's own, `backlog`: queue i is the backlog of engine
 * CPU i, in the order of their numbers. So a backlog's NAPI has a poller, weight, thread, record
 * and watchdog like any other; what it polls is handed to the handler of the port by which it came
 * in.
 *
 *  call           | beside            | by whom
 *  ---------------+-------------------+-----------------------------------------------
 *  backlog_put    | anything          | the holder of a receiving NAPI's token
 *  backlog_poll   | backlog_put       | the holder of the backlog's token
 *  backlog_passed | anything          | anyone
 *  the others     | as backlog_poll   | control, engine lock held
 *
 * Kicks. Who puts packets into an empty backlog notes it in its context, and schedules the NAPI at
 * the end of its poll (context_kick), once for all that the poll has put there. A backlog that is
 * not empty has been scheduled or is in somebody's notes: its poll completes only when it is empty.
 * tests/model/backlog.pml is this rule as a model.
 */
#ifndef CORE_BACKLOG_H
#define CORE_BACKLOG_H

#include <stdatomic.h>

#include <napier/port.h>

#include <core/flow_limit.h>
#include <machine/lock.h>

#define BACKLOG_PORT "backlog"
#define BACKLOGS_MAX PORT_QUEUES_MAX /* a bit each in a context's notes */

struct backlog {
	struct lock lock;
	/*
	 * Under the lock. Positions only grow; slot[position & mask]. NULL: was purged.
	 * taken <= put <= taken + mask + 1.
	 */
	struct packet **slot;
	uint32_t mask;
	uint32_t max; /* netdev_max_backlog */
	uint64_t put, taken;
	struct flow_limit *limit; /* NULL: none */
	struct backlog_counters *counters;

	uint32_t index;
	struct port_queue *queue;
	struct backlogs *backlogs;

	/* What was put before this position has left its handler. */
	_Alignas(64) _Atomic uint64_t passed;
};

struct backlogs {
	struct engine *engine;
	struct port *port;
	_Atomic uint32_t waiting; /* control waits for some to pass */
	uint32_t n;
	struct backlog backlog[];
};

extern const struct port_ops backlog_port_ops;

/* Control context, engine lock held. The engine's backlogs, opened when there are none. */
int backlogs_open(struct engine *engine, struct error *err);

/*
 * Packet path. Owns v, n > 0 packets with their hash set: puts them there, or drops them
 * (DROP_BACKLOG_FULL, DROP_FLOW_LIMIT). Returns the position after the last.
 */
uint64_t backlog_put(struct backlog *backlog, struct context *context, struct packet **v,
		     uint32_t n);

/* Schedules the backlogs in the context's notes, that of its own CPU last. */
void backlogs_kick(struct context *context);

/* For so many packets: a power of two, so that positions only grow. */
static inline uint32_t backlog_slots(uint32_t max)
{
	uint32_t slots = PACKET_VECTOR_MAX;

	while (slots < max)
		slots *= 2;
	return slots;
}

/* Whether all that was put before this position has left its handler. */
static inline bool backlog_passed(const struct backlog *backlog, uint64_t position)
{
	return atomic_load_explicit((_Atomic uint64_t *)&backlog->passed, memory_order_acquire) >=
	       position;
}

/* Waits until all that is in them now has left its handler. -ETIMEDOUT at the deadline. */
int backlogs_wait(struct backlogs *backlogs, int64_t deadline);

/*
 * Drops what came in by this port, whose NAPIs are disabled (DROP_PORT_REMOVED). None of its
 * packets is in a handler any more when it returns. -ETIMEDOUT: a backlog's poll did not end.
 */
int backlogs_purge(struct backlogs *backlogs, const struct port *port, int64_t timeout);

/* Control context, engine lock held. In force at once; -ENOMEM, and then nothing has changed. */
int backlogs_max_set(struct backlogs *backlogs, uint32_t max);
int backlogs_limit_set(struct backlogs *backlogs, uint32_t buckets); /* 0: none */

#endif

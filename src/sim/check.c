/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What always holds: some of it where the port is polled, the rest after every event of the
 * machine, when every step is over.
 */
#include <inttypes.h>

#include <core/backlog.h>
#include <core/gro.h>
#include <machine/virtual.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <poller/workqueue.h>

#include <sim/sim.h>

/* Whether this runner is the one, or one of those, by whom the NAPI is to be polled. */
static bool runner_fits(const struct sim *sim, const struct napi *napi, enum poller poller,
			const struct runner *runner)
{
	const struct workqueue *wq = napi->engine->workqueue;

	switch (poller) {
	case POLLER_APP:
		if (napi->record->app_tid)
			return sim_poll_app_is(sim, runner);
		/* fall through */
	case POLLER_SOFTIRQ:
		return runner == napi->softnet->irq || runner == napi->softnet->ksoftirqd;
	case POLLER_THREAD:
		return napi->thread && runner == napi->thread->runner;
	case POLLER_BUSY_POLL:
		return napi->softnet->busy && runner == napi->softnet->busy->runner;
	case POLLER_WORKQUEUE:
		for (uint32_t i = 0; wq && i < wq->workers; i++)
			if (runner == wq->worker[i].runner)
				return true;
		return false;
	default:
		return false;
	}
}

static bool softirq_polls(const struct napi *napi)
{
	const struct runner *runner = runner_current();

	return runner == napi->softnet->irq || runner == napi->softnet->ksoftirqd;
}

/* I5: a step polls on for so long and no longer. */
static void step_check(struct sim *sim, const struct context *context, const char *name)
{
	int64_t limit = engine_budget_ns(sim->engine);

	if (sim->event_began == TIME_NEVER)
		sim->event_began = context->now;
	else if (context->now - sim->event_began >= limit)
		sim_fail(sim, "I5: %s polls on after %" PRId64 " us, of %" PRId64, name,
			 (context->now - sim->event_began) / 1000, limit / 1000);
}

void sim_check_poll(struct sim_queue *q, struct context *context, uint32_t n)
{
	struct napi *napi = q->queue->napi;
	const struct runner *runner = runner_current();
	uint32_t state = napi_state_load(napi);
	enum poller poller = napi_state_poller(state);
	struct sim *sim = q->sim;

	if (!(state & NAPI_SCHED) || state & NAPI_DISABLED)
		sim_fail(sim, "I1: %s/%u is polled, but %s", q->port->name, q->index,
			 state & NAPI_DISABLED ? "disabled" : "not scheduled");
	if (!runner || !runner_fits(sim, napi, poller, runner))
		sim_fail(sim, "I1: %s/%u is polled by %s, but its poller is %s", q->port->name,
			 q->index, runner ? runner->name : "nobody", poller_name(poller));
	if (context->napi != napi || context->counters != &napi->record->napi)
		sim_fail(sim, "I3: what %s/%u receives is not counted for it", q->port->name,
			 q->index);
	if (!n || n > napi_weight(napi))
		sim_fail(sim, "I5: %s/%u is polled for %u packets, its weight is %u", q->port->name,
			 q->index, n, napi_weight(napi));
	if (softirq_polls(napi))
		sim_check_softirq_poll(sim, napi, context);
	else if (poller != POLLER_BUSY_POLL && poller != POLLER_APP)
		step_check(sim, context, runner->name);
	q->polled = true;
	q->event_polls++;
}

void sim_check_polled(struct sim_queue *q, uint32_t n)
{
	struct sim *sim = q->sim;
	struct napi *napi = q->queue->napi;

	q->received += n;
	sim->result->polls++;
	if (softirq_polls(napi))
		sim_check_softirq_polled(sim, napi, n);
	sim_note(sim, "poll", q->port->name, "/%u %u", q->index, n);
}

/* I3: packets that a NAPI has had are counted once, as what became of them. */
static void counters_check(struct sim *sim, const struct napi *napi)
{
	const struct napi_counters *c = &napi->record->napi;
	uint64_t in = counter_read(&c->received) + counter_read(&c->cloned);
	uint64_t out = counter_read(&c->transmitted) + counter_read(&c->delivered) +
		       counter_read(&c->steered) + counter_read(&c->merged);
	uint32_t held = 0;

	for (int reason = 0; reason < DROP_MAX; reason++)
		out += counter_read(&c->dropped[reason]);
	if (napi->gro)
		held = gro_held(napi->gro);
	if (in != out + held)
		sim_fail(sim,
			 "I3: %s/%u: %" PRIu64 " packets received or copied, %" PRIu64
			 " sent, delivered, steered, merged or dropped, %u held",
			 napi->queue->port->name, napi->queue->index, in, out, held);
}

static void balance_check(struct sim *sim, struct sim_queue *q)
{
	const struct napi *napi = q->queue->napi;
	uint64_t received = counter_read(&napi->record->napi.received);

	counters_check(sim, napi);
	if (received != q->received)
		sim_fail(sim,
			 "I3: %s/%u: %" PRIu64 " packets taken, %" PRIu64 " counted as received",
			 q->port->name, q->index, q->received, received);
}

static uint64_t transmitted(const struct sim_queue *q)
{
	return counter_read(&q->queue->napi->record->napi.transmitted) - q->transmitted_before;
}

static uint64_t steered(const struct sim_queue *q)
{
	return counter_read(&q->queue->napi->record->napi.steered) - q->steered_before;
}

void sim_check_opened(struct sim_queue *q)
{
	const struct napi_counters *c = &q->queue->napi->record->napi;

	q->received = counter_read(&c->received);
	q->transmitted_before = counter_read(&c->transmitted);
	q->steered_before = counter_read(&c->steered);
	q->counted = true;
}

void sim_check_closed(struct sim_queue *q)
{
	balance_check(q->sim, q);
	q->sim->transmitted_closed += transmitted(q);
	q->sim->steered_closed += steered(q);
}

/* Those that were purged leave holes. */
static uint64_t backlog_standing(const struct backlog *backlog)
{
	uint64_t n = 0;

	for (uint64_t i = backlog->taken; i != backlog->put; i++)
		n += backlog->slot[i & backlog->mask] != NULL;
	return n;
}

/* What was steered stands in a backlog or has been received there. */
static void backlogs_check(struct sim *sim, uint64_t steered, uint64_t *sent)
{
	const struct backlogs *backlogs = sim->engine->backlogs;
	uint64_t taken = 0;

	for (uint32_t i = 0; backlogs && i < backlogs->n; i++) {
		const struct backlog *backlog = &backlogs->backlog[i];
		const struct napi *napi = backlog->queue->napi;

		counters_check(sim, napi);
		taken += counter_read(&napi->record->napi.received) + backlog_standing(backlog);
		*sent += counter_read(&napi->record->napi.transmitted);
	}
	if (taken != steered)
		sim_fail(sim, "I3: %" PRIu64 " packets were steered, backlogs have or had %" PRIu64,
			 steered, taken);
}

void sim_check_totals(struct sim *sim)
{
	uint64_t sum = sim->transmitted_closed, put = sim->steered_closed;

	for (unsigned i = 0; i < sim->plan.ports; i++) {
		struct port *port = sim->port[i].port;

		for (uint32_t k = 0; port && k < port->queues; k++) {
			balance_check(sim, &sim->port[i].queue[k]);
			sum += transmitted(&sim->port[i].queue[k]);
			put += steered(&sim->port[i].queue[k]);
		}
	}
	backlogs_check(sim, put, &sum);
	if (sim->app.context)
		sum += counter_read(&sim->app.context->own.transmitted);
	if (sum != sim->taken)
		sim_fail(sim, "I3: NAPIs have transmitted %" PRIu64 " packets, ports took %" PRIu64,
			 sum, sim->taken);
}

/* A busy-poller's step serves all it has in turn. */
static void fairness_check(struct sim *sim)
{
	struct {
		uint32_t least, most;
	} of[SIM_CPUS];
	int before[SIM_PORTS][SIM_QUEUES];

	for (unsigned i = 0; i < SIM_CPUS; i++) {
		of[i].least = UINT32_MAX;
		of[i].most = 0;
	}
	for (unsigned i = 0; i < sim->plan.ports; i++)
		for (unsigned k = 0; k < SIM_QUEUES; k++)
			before[i][k] = sim->port[i].queue[k].busy_on;
	sim_census(sim);
	for (unsigned i = 0; i < sim->plan.ports; i++) {
		for (unsigned k = 0; k < SIM_QUEUES; k++) {
			struct sim_queue *q = &sim->port[i].queue[k];
			int cpu = q->busy_on;

			if (q->queue && cpu >= 0 && cpu == before[i][k]) {
				if (q->event_polls < of[cpu].least)
					of[cpu].least = q->event_polls;
				if (q->event_polls > of[cpu].most)
					of[cpu].most = q->event_polls;
			}
			q->event_polls = 0;
		}
	}
	for (unsigned i = 0; i < SIM_CPUS; i++)
		if (of[i].least < of[i].most && of[i].most - of[i].least > 1)
			sim_fail(sim,
				 "I5: a busy-poller polls one NAPI %u times and another %u times",
				 of[i].most, of[i].least);
}

/* By its TX NAPI: it is scheduled, or an application's context has raised its interrupt. */
static bool kick_comes(const struct sim_queue *q)
{
	const struct napi *tx = atomic_load(&q->queue->tx);

	return tx && (napi_state_load(tx) & (NAPI_SCHED | NAPI_DISABLED) ||
		      virtual_irq_pending(&tx->queue->irq));
}

static void queue_check(struct sim *sim, struct sim_queue *q)
{
	if (q->polled)
		balance_check(sim, q);
	if (q->tx_kicked != q->tx_put && !q->port->removing && !kick_comes(q))
		sim_fail(sim, "I2: %s/%u: %u packets were sent, and no kick came", q->port->name,
			 q->index, q->tx_put - q->tx_kicked);
	q->polled = false;
}

/*
 * The rule of core/backlog.h: what stands in one has its NAPI scheduled, when nobody is in a poll;
 * or an application has suspended it and the timer will.
 */
static void kicks_check(struct sim *sim)
{
	const struct backlogs *backlogs = sim->engine->backlogs;

	for (uint32_t i = 0; backlogs && i < backlogs->n; i++) {
		const struct backlog *backlog = &backlogs->backlog[i];
		const struct napi *napi = backlog->queue->napi;
		uint32_t state = napi_state_load(napi);
		bool timed = napi_state_poller(state) == POLLER_APP &&
			     atomic_load(&napi->timer_at) != TIME_NEVER;

		if (backlog->put != backlog->taken && !timed &&
		    !(state & (NAPI_SCHED | NAPI_DISABLED)))
			sim_fail(sim, "I2: backlog/%u: packets stand in it, and no kick came", i);
	}
}

void sim_check_event(void *arg)
{
	struct sim *sim = arg;

	if (sim_guard_caught())
		sim_fail(sim, "I7: %s allocates in its step", sim_guard_caught());
	sim->event_began = TIME_NEVER;
	fairness_check(sim);
	sim_check_softirq(sim);
	kicks_check(sim);
	for (unsigned i = 0; i < sim->plan.ports; i++)
		for (unsigned k = 0; k < SIM_QUEUES; k++)
			if (sim->port[i].queue[k].queue)
				queue_check(sim, &sim->port[i].queue[k]);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the tokens are. Between two steps every NAPI that is scheduled has its token in exactly one
 * place, somebody's list, inbox or hand, and every other NAPI in none: that is I1, and the half of
 * I2 that does not need time.
 */
#include <string.h>

#include <core/engine_queue.h>
#include <machine/virtual.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <poller/workqueue.h>

#include <sim/sim.h>

enum { PORTS = SIM_ENGINE_PORTS, LONGEST = 256 };

struct census {
	struct sim *sim;
	uint8_t tokens[PORTS][PORT_QUEUES_MAX];
	int8_t busy_on[PORTS][PORT_QUEUES_MAX]; /* index of the engine CPU, from 1 */
};

static void found(struct census *c, const struct napi *napi, int busy_on)
{
	unsigned port = napi->queue->port->index, queue = napi->queue->index;

	if (port >= PORTS || queue >= PORT_QUEUES_MAX)
		sim_fail(c->sim, "I1: a list holds what is no NAPI");
	c->tokens[port][queue]++;
	if (busy_on)
		c->busy_on[port][queue] = (int8_t)busy_on;
}

static void found_all(struct census *c, const struct napi *napi, int busy_on)
{
	unsigned n = 0;

	for (; napi; napi = napi->next) {
		if (++n > LONGEST)
			sim_fail(c->sim, "I1: a list of NAPIs bites its tail: one is in it twice");
		found(c, napi, busy_on);
	}
}

static bool asleep(const struct runner *runner)
{
	return ((const struct virtual_runner *)runner)->state == RUNNER_WAITING;
}

/* Whoever has a token is awake, or nothing will come of it. */
static void must_be_awake(struct census *c, bool has, bool sleeps, const struct runner *runner)
{
	if (has && sleeps)
		sim_fail(c->sim, "I2: %s has a NAPI to poll and is asleep", runner->name);
}

static void count_cpu(struct census *c, struct softnet *softnet, int number)
{
	const struct napi *listed = softnet->list.first, *put = atomic_load(&softnet->inbox.last);
	struct busy *busy = softnet->busy;

	found_all(c, listed, 0);
	found_all(c, put, 0);
	if (softnet->irq) /* else it is away */
		must_be_awake(c, listed || put, asleep(softnet->irq) && asleep(softnet->ksoftirqd),
			      softnet->ksoftirqd);
	if (!busy)
		return;
	listed = busy->list.first;
	put = atomic_load(&busy->inbox.last);
	found_all(c, listed, number);
	found_all(c, put, 0);
	must_be_awake(c, listed || put, asleep(busy->runner), busy->runner);
}

static void count_workqueue(struct census *c, struct workqueue *wq)
{
	bool all_asleep = true;

	found_all(c, wq->list.first, 0);
	found_all(c, atomic_load(&wq->inbox.last), 0);
	for (uint32_t i = 0; i < wq->workers; i++) {
		struct worker *worker = &wq->worker[i];

		all_asleep &= asleep(worker->runner);
		if (worker->napi)
			found(c, worker->napi, 0);
		must_be_awake(c, worker->napi, asleep(worker->runner), worker->runner);
	}
	must_be_awake(c, wq->list.first || atomic_load(&wq->inbox.last), all_asleep,
		      wq->worker[0].runner);
}

static void count_thread(struct census *c, const struct napi *napi)
{
	const struct poller_thread *thread = napi->thread;

	if (!thread)
		return;
	if (thread->holds)
		found(c, napi, 0);
	if (atomic_load(&thread->granted))
		found(c, napi, 0);
	must_be_awake(c, thread->holds || atomic_load(&thread->granted), asleep(thread->runner),
		      thread->runner);
}

static void count_app(struct census *c, const struct sim_poll_app *app)
{
	if (!app->looking || !app->loop.holds)
		return;
	found(c, app->loop.napi, 0);
	must_be_awake(c, true, asleep(app->runner), app->runner);
}

/* Scheduled, and for how long not polled. */
static void watch_wait(struct sim *sim, struct sim_queue *q, uint32_t state)
{
	struct napi *napi = q->queue->napi;
	uint64_t polls = counter_read(&napi->record->napi.polls);
	int64_t now = machine_now(sim->machine);

	if (!(state & NAPI_SCHED) || polls != q->seen_polls)
		q->waits_since = TIME_NEVER;
	q->seen_polls = polls;
	if (!(state & NAPI_SCHED))
		return;
	if (q->waits_since == TIME_NEVER)
		q->waits_since = now;
	if (!sim->plan.fifo && now - q->waits_since > SIM_BOUND)
		sim_fail(sim, "I2: %s/%u has been scheduled for %d ms and is not polled; poller %s",
			 q->port->name, q->index, (int)(SIM_BOUND / NSEC_PER_MSEC),
			 poller_name(napi_state_poller(state)));
}

static void check_napi(struct census *c, struct napi *napi)
{
	const struct port_queue *queue = napi->queue;
	uint32_t state = napi_state_load(napi);
	unsigned tokens = c->tokens[queue->port->index][queue->index];
	enum poller poller = napi_state_poller(state);

	if (tokens > 1)
		sim_fail(c->sim, "I1: the token of %s/%u is in %u places; poller %s",
			 queue->port->name, queue->index, tokens, poller_name(poller));
	if (state & NAPI_SCHED && !tokens)
		sim_fail(c->sim, "I2: %s/%u is scheduled and nobody has it; poller %s",
			 queue->port->name, queue->index, poller_name(poller));
	if (!(state & NAPI_SCHED) && tokens)
		sim_fail(c->sim, "I1: %s/%u is not scheduled, yet somebody has it; poller %s",
			 queue->port->name, queue->index, poller_name(poller));
	if (state & (NAPI_SCHED | NAPI_DISABLED))
		return;
	if (napi->holds && atomic_load(&napi->timer_at) == TIME_NEVER)
		sim_fail(c->sim, "I2: GRO of %s/%u holds packets, and no timer comes; poller %s",
			 queue->port->name, queue->index, poller_name(poller));
	if (!napi->holds && napi->irq_masked != (atomic_load(&napi->timer_at) != TIME_NEVER))
		sim_fail(c->sim, "I2: the interrupt of %s/%u is %s, and its timer %s; poller %s",
			 queue->port->name, queue->index, napi->irq_masked ? "off" : "on",
			 napi->irq_masked ? "too" : "as well", poller_name(poller));
	if ((napi->irq_masked || napi->holds) && atomic_load(&napi->timer.deadline) == TIME_NEVER &&
	    !virtual_irq_pending(&napi->timer))
		sim_fail(c->sim, "I2: the interrupt of %s/%u is off, and no timer armed; poller %s",
			 queue->port->name, queue->index, poller_name(poller));
	if (napi->timer.runner != poller_ops(poller)->runner(napi) ||
	    queue->irq.runner != poller_ops(poller)->runner(napi))
		sim_fail(c->sim, "I2: %s/%u waits for interrupts that do not come; poller %s",
			 queue->port->name, queue->index, poller_name(poller));
}

void sim_census(struct sim *sim)
{
	struct engine *engine = sim->engine;
	struct census c = {.sim = sim};
	struct napi_walk walk = {0};
	struct napi *napi;

	for (uint32_t i = 0; i < engine->cpus; i++)
		count_cpu(&c, engine_softnet_at(engine, i), (int)i + 1);
	if (engine->workqueue)
		count_workqueue(&c, engine->workqueue);
	for (unsigned i = 0; i < sim->plan.poll_apps; i++)
		count_app(&c, &sim->poll_app[i]);
	while ((napi = napi_walk_next(engine, &walk))) {
		count_thread(&c, napi);
		check_napi(&c, napi);
	}
	for (unsigned i = 0; i < sim->plan.ports; i++) {
		struct port *port = sim->port[i].port;

		for (uint32_t k = 0; port && k < port->queues; k++) {
			struct sim_queue *q = &sim->port[i].queue[k];

			watch_wait(sim, q, napi_state_load(q->queue->napi));
			q->busy_on = c.busy_on[port->index][k] - 1;
		}
	}
}

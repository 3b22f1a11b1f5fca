/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include <core/automatic.h>
#include <core/engine_queue.h>
#include <core/meter.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <poller/workqueue.h>

static int64_t ready_of(struct runner *runner)
{
	struct runner_usage usage;

	runner_usage(runner, &usage);
	return usage.ready_time;
}

static int64_t cpu_of(struct runner *runner)
{
	struct runner_usage usage;

	if (!runner)
		return 0;
	runner_usage(runner, &usage);
	return usage.cpu_time;
}

/* How long those who poll this NAPI have waited for a CPU so far. */
static int64_t napi_ready(struct napi *napi)
{
	const struct workqueue *wq = napi->engine->workqueue;
	int64_t sum = 0;

	switch (napi_poller(napi)) {
	case POLLER_SOFTIRQ:
		return ready_of(napi->softnet->irq) + ready_of(napi->softnet->ksoftirqd);
	case POLLER_WORKQUEUE:
		/* One of them has it, whichever. */
		for (uint32_t i = 0; i < wq->workers; i++)
			sum += ready_of(wq->worker[i].runner);
		return ready_of(napi->softnet->irq) +
		       sum / (wq->users < wq->workers ? wq->users : wq->workers);
	default:
		return ready_of(poller_ops(napi_poller(napi))->runner(napi));
	}
}

static void reading_take(struct napi *napi, struct meter_reading *out)
{
	const struct napi_counters *c = &napi->record->napi;

	out->received = counter_read(&c->received);
	out->polls = counter_read(&c->polls);
	out->empty_polls = counter_read(&c->empty_polls);
	out->full_polls = counter_read(&c->full_polls);
	out->poll_ns = counter_read(&c->poll_ns);
	out->empty_ns = counter_read(&c->empty_ns);
	out->wakes = counter_read(&c->wakes);
	out->wake_ns = counter_read(&c->wake_ns);
	out->ready_ns = napi_ready(napi);
}

/* now = what there is - seen; seen = what there is. */
static void reading_renew(struct napi *napi)
{
	struct meter_napi *a = &napi->automatic->meter;
	const uint64_t *before = (const uint64_t *)&a->seen;
	struct meter_reading there;

	reading_take(napi, &there);
	for (size_t i = 0; i < sizeof(there) / sizeof(uint64_t); i++)
		((uint64_t *)&a->now)[i] = ((uint64_t *)&there)[i] - before[i];
	if (!a->fresh)
		a->now.ready_ns = 0;
	a->fresh = true;
	a->seen = there;
}

/* CPU time of every runner so far that polls or takes interrupts. */
static int64_t runners_cpu(struct engine *engine)
{
	const struct workqueue *wq = engine->workqueue;
	struct napi_walk walk = {0};
	struct napi *napi;
	int64_t sum = 0;

	for (uint32_t i = 0; i < engine->cpus; i++) {
		const struct softnet *softnet = &engine->softnet[i];

		if (softnet->irq) /* else it is away */
			sum += cpu_of(softnet->irq) + cpu_of(softnet->ksoftirqd);
		if (softnet->busy)
			sum += cpu_of(softnet->busy->runner);
	}
	for (uint32_t i = 0; wq && i < wq->workers; i++)
		sum += cpu_of(wq->worker[i].runner);
	while ((napi = napi_walk_next(engine, &walk))) {
		if (napi->thread)
			sum += cpu_of(poller_ops(POLLER_THREAD)->runner(napi));
	}
	return sum;
}

/* What busy/N did of use there in this look; empty polls are as good as idling. */
static double busy_load(const struct meter *meter, const struct softnet *softnet)
{
	struct napi_walk walk = {0};
	struct napi *napi;
	double load = 0;

	while ((napi = napi_walk_next(meter->engine, &walk))) {
		const struct automatic_napi *a = napi->automatic;

		if (napi->softnet != softnet || napi_poller(napi) != POLLER_BUSY_POLL)
			continue;
		if (!a)
			return 1; /* somebody wants it to spin */
		load += (double)(a->meter.now.poll_ns - a->meter.now.empty_ns) / (double)meter->ns;
	}
	return load;
}

static void cpus_look(struct meter *meter)
{
	const struct engine *engine = meter->engine;
	double ns = (double)meter->ns;

	machine_idle_times(engine->machine, meter->idle, meter->idle_n);
	for (uint32_t i = 0; i < engine->cpus; i++) {
		const struct softnet *softnet = &engine->softnet[i];
		struct meter_cpu *cpu = &meter->cpu[i];
		int64_t idle = meter->idle[softnet->cpu];
		int64_t busy = softnet->busy ? cpu_of(softnet->busy->runner) : 0;
		double share = (double)(idle - cpu->idle_ns) / ns, spins = 0;

		if (busy > cpu->busy_ns && cpu->busy_ns)
			spins = (double)(busy - cpu->busy_ns) / ns - busy_load(meter, softnet);
		if (spins > 0)
			share += spins;
		cpu->idle = share < 0 ? 0 : share > 1 ? 1 : share;
		cpu->idle_ns = idle;
		cpu->busy_ns = busy;
	}
}

static void packets_look(struct meter *meter)
{
	struct napi_walk walk = {0};
	uint64_t received = 0;
	bool spins = false;
	struct napi *napi;

	while ((napi = napi_walk_next(meter->engine, &walk))) {
		received += counter_read(&napi->record->napi.received);
		if (!napi->automatic)
			continue;
		spins |= napi_poller(napi) == POLLER_BUSY_POLL;
		reading_renew(napi);
	}
	/* One that was removed takes its packets along. */
	meter->all_packets = received > meter->received ? received - meter->received : 0;
	meter->received = received;
	meter->active = meter->all_packets || spins;
}

static void cost_look(struct meter *meter, bool wanted)
{
	int64_t before = meter->runner_ns;

	meter->runner_ns = wanted ? runners_cpu(meter->engine) : -1;
	meter->all_cpu_ns = 0;
	if (before >= 0 && meter->runner_ns > before)
		meter->all_cpu_ns = meter->runner_ns - before;
}

void meter_look(struct meter *meter, int64_t now, bool wants_cpu_time)
{
	meter->ns = now - meter->last;
	meter->last = now;
	packets_look(meter);
	cpus_look(meter);
	cost_look(meter, wants_cpu_time);
}

struct softnet *meter_spin_softnet(const struct meter *meter, const struct napi *napi)
{
	struct engine *engine = meter->engine;
	uint32_t own = (uint32_t)(napi->softnet - engine->softnet), best = own;

	if (atomic_load(&napi->record->cpu_pinned) || napi_poller(napi) == POLLER_BUSY_POLL ||
	    meter->cpu[own].idle >= CHOICE_FREE)
		return napi->softnet;
	for (uint32_t i = 0; i < engine->cpus; i++) {
		if (!engine->softnet[i].away && meter->cpu[i].idle > meter->cpu[best].idle)
			best = i;
	}
	return &engine->softnet[best];
}

/* With this one spinning too, a CPU is left where nobody does. */
static bool may_spin(const struct meter *meter, const struct softnet *softnet)
{
	const struct engine *engine = meter->engine;
	unsigned spinning = 1;

	for (uint32_t i = 0; i < engine->cpus; i++)
		spinning += &engine->softnet[i] != softnet && engine->softnet[i].busy;
	return spinning < meter->machine_cpus;
}

void meter_sample(const struct meter *meter, const struct napi *napi, struct choice_sample *s)
{
	const struct softnet *spin = meter_spin_softnet(meter, napi);
	const struct engine *engine = meter->engine;
	const struct meter_reading *now = &napi->automatic->meter.now;
	double ns = (double)meter->ns;

	*s = (struct choice_sample){
		.ns = meter->ns,
		.packets = now->received,
		.polls = now->polls - now->empty_polls,
		.full_polls = now->full_polls,
		.wakes = now->wakes,
		.load = (double)(now->poll_ns - now->empty_ns) / ns,
		.crowded = (double)now->ready_ns / ns,
		.idle_spin = meter->cpu[spin - engine->softnet].idle,
		.may_spin = may_spin(meter, spin),
		.all_packets = meter->all_packets,
		.all_cpu_ns = meter->all_cpu_ns,
	};
	if (now->wakes)
		s->wait_ns = ((double)now->wake_ns + (double)now->ready_ns) / (double)now->wakes;
	for (uint32_t i = 0; i < engine->cpus; i++) {
		if (!engine->softnet[i].away && meter->cpu[i].idle > s->idle_most)
			s->idle_most = meter->cpu[i].idle;
	}
}

int meter_begin(struct meter *meter, struct engine *engine)
{
	int64_t now = machine_now(engine->machine);
	struct cpuset cpus;

	machine_cpus(engine->machine, &cpus);
	*meter = (struct meter){.engine = engine, .machine_cpus = cpuset_count(&cpus)};
	for (uint32_t i = 0; i < engine->cpus; i++) {
		if (engine->softnet[i].cpu >= meter->idle_n)
			meter->idle_n = engine->softnet[i].cpu + 1;
	}
	meter->cpu = calloc(engine->cpus, sizeof(*meter->cpu));
	meter->idle = calloc(meter->idle_n, sizeof(*meter->idle));
	if (!meter->cpu || !meter->idle) {
		meter_end(meter);
		return -ENOMEM;
	}
	meter->last = now - 1;
	meter_look(meter, now, false);
	return 0;
}

void meter_end(struct meter *meter)
{
	free(meter->cpu);
	free(meter->idle);
}

void meter_napi_begin(struct meter_napi *meter, struct napi *napi)
{
	reading_take(napi, &meter->seen);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <napier/port.h>

#include <core/automatic.h>
#include <core/choice.h>
#include <core/engine.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <poller/workqueue.h>

#define LOOK_IDLE (10 * CHOICE_INTERVAL) /* nothing comes, and nobody spins */
#define LOOK_SOON NSEC_PER_MSEC		 /* a switch is not over yet, or control has the lock */

/* What is compared with the look before. */
struct seen {
	uint64_t received, polls, empty_polls, full_polls, poll_ns, empty_ns, wakes, wake_ns;
	int64_t ready_ns; /* of the runners that poll it */
};

struct automatic_napi {
	struct choice choice;
	struct softnet *home; /* busy-poll may take it elsewhere */
	struct seen seen;
	struct seen now; /* the difference, of this look */
	bool fresh;	 /* `seen` is of this poller */
	bool switches;	 /* a switch has been begun */
	enum poller wanted;
	int64_t deadline; /* for that */
};

/* An engine CPU. */
struct automatic_cpu {
	int64_t idle_ns, busy_ns; /* so far: with nothing to run; CPU time of its busy/N */
	double idle;		  /* in this look, with what busy-poll spent on finding nothing */
};

struct automatic {
	struct engine *engine;
	struct runner *runner;
	uint32_t users;
	uint64_t looks;
	int64_t next;
	int64_t last;	  /* look */
	int64_t cpu_ns;	  /* of all runners, at the last look; -1: not measured */
	uint64_t packets; /* of all NAPIs */
	unsigned machine_cpus;
	struct automatic_cpu *cpu; /* one per engine CPU */
	int64_t *idle;		   /* by number of the CPU, for all up to the highest engine CPU */
	unsigned idle_n;
};

/* NAPIs in the order of ports and queues; NULL after the last. */
struct walk {
	uint32_t port, queue;
};

static struct napi *walk_next(struct engine *engine, struct walk *walk)
{
	for (; walk->port < engine->config.ports_max; walk->port++, walk->queue = 0) {
		struct port *port = engine->port[walk->port];

		if (port && walk->queue < port->queues)
			return port->queue[walk->queue++].napi;
	}
	return NULL;
}

static void why_tell(struct napi *napi)
{
	struct queue_record *record = napi->record;

	snprintf(record->why, sizeof(record->why), "%s",
		 napi->automatic ? napi->automatic->choice.why : "");
}

__attribute__((format(printf, 2, 3))) static void decision_log(struct napi *napi,
							       const char *format, ...)
{
	const struct port_queue *queue = napi->queue;
	char text[96];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	engine_log(napi->engine, LEVEL_INFO, "%s/%u: auto: %s: %s", queue->port->name, queue->index,
		   text, napi->automatic->choice.why);
	why_tell(napi);
}

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

static void seen_read(struct napi *napi, struct seen *seen)
{
	const struct napi_counters *c = &napi->record->napi;

	seen->received = counter_read(&c->received);
	seen->polls = counter_read(&c->polls);
	seen->empty_polls = counter_read(&c->empty_polls);
	seen->full_polls = counter_read(&c->full_polls);
	seen->poll_ns = counter_read(&c->poll_ns);
	seen->empty_ns = counter_read(&c->empty_ns);
	seen->wakes = counter_read(&c->wakes);
	seen->wake_ns = counter_read(&c->wake_ns);
	seen->ready_ns = napi_ready(napi);
}

/* now = what there is - seen; seen = what there is. */
static void seen_renew(struct napi *napi)
{
	struct automatic_napi *a = napi->automatic;
	const uint64_t *before = (const uint64_t *)&a->seen;
	struct seen there;

	seen_read(napi, &there);
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
	struct walk walk = {0};
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
	while ((napi = walk_next(engine, &walk))) {
		if (napi->thread)
			sum += cpu_of(poller_ops(POLLER_THREAD)->runner(napi));
	}
	return sum;
}

/* What busy/N did of use there in this look; empty polls are as good as idling. */
static double busy_load(struct engine *engine, const struct softnet *softnet, int64_t ns)
{
	struct walk walk = {0};
	struct napi *napi;
	double load = 0;

	while ((napi = walk_next(engine, &walk))) {
		const struct automatic_napi *a = napi->automatic;

		if (napi->softnet != softnet || napi_poller(napi) != POLLER_BUSY_POLL)
			continue;
		if (!a)
			return 1; /* somebody wants it to spin */
		load += (double)(a->now.poll_ns - a->now.empty_ns) / (double)ns;
	}
	return load;
}

static void cpus_look(struct automatic *automatic, int64_t ns)
{
	struct engine *engine = automatic->engine;

	machine_idle_times(engine->machine, automatic->idle, automatic->idle_n);
	for (uint32_t i = 0; i < engine->cpus; i++) {
		const struct softnet *softnet = &engine->softnet[i];
		struct automatic_cpu *cpu = &automatic->cpu[i];
		int64_t idle = automatic->idle[softnet->cpu];
		int64_t busy = softnet->busy ? cpu_of(softnet->busy->runner) : 0;
		double share = (double)(idle - cpu->idle_ns) / (double)ns, spins = 0;

		if (busy > cpu->busy_ns && cpu->busy_ns)
			spins = (double)(busy - cpu->busy_ns) / (double)ns -
				busy_load(engine, softnet, ns);
		if (spins > 0)
			share += spins;
		cpu->idle = share < 0 ? 0 : share > 1 ? 1 : share;
		cpu->idle_ns = idle;
		cpu->busy_ns = busy;
	}
}

/* The CPU that busy-poll would take: its own if that will do or was asked for, else the idlest. */
static struct softnet *spin_softnet(const struct automatic *automatic, const struct napi *napi)
{
	struct engine *engine = automatic->engine;
	uint32_t own = (uint32_t)(napi->softnet - engine->softnet), best = own;

	if (atomic_load(&napi->record->cpu_pinned) || napi_poller(napi) == POLLER_BUSY_POLL ||
	    automatic->cpu[own].idle >= CHOICE_FREE)
		return napi->softnet;
	for (uint32_t i = 0; i < engine->cpus; i++) {
		if (!engine->softnet[i].away && automatic->cpu[i].idle > automatic->cpu[best].idle)
			best = i;
	}
	return &engine->softnet[best];
}

/* With this one spinning too, a CPU is left where nobody does. */
static bool may_spin(const struct automatic *automatic, const struct softnet *softnet)
{
	const struct engine *engine = automatic->engine;
	unsigned spinning = 1;

	for (uint32_t i = 0; i < engine->cpus; i++)
		spinning += &engine->softnet[i] != softnet && engine->softnet[i].busy;
	return spinning < automatic->machine_cpus;
}

static void sample_make(const struct automatic *automatic, const struct napi *napi, int64_t ns,
			struct choice_sample *s)
{
	const struct softnet *spin = spin_softnet(automatic, napi);
	const struct engine *engine = automatic->engine;
	const struct seen *now = &napi->automatic->now;

	*s = (struct choice_sample){
		.ns = ns,
		.packets = now->received,
		.polls = now->polls - now->empty_polls,
		.full_polls = now->full_polls,
		.wakes = now->wakes,
		.load = (double)(now->poll_ns - now->empty_ns) / (double)ns,
		.crowded = (double)now->ready_ns / (double)ns,
		.idle_spin = automatic->cpu[spin - engine->softnet].idle,
		.may_spin = may_spin(automatic, spin),
		.may_try = true,
	};
	if (now->wakes)
		s->wait_ns = ((double)now->wake_ns + (double)now->ready_ns) / (double)now->wakes;
	for (uint32_t i = 0; i < engine->cpus; i++) {
		if (!engine->softnet[i].away && automatic->cpu[i].idle > s->idle_most)
			s->idle_most = automatic->cpu[i].idle;
	}
}

/* It ended, whoever saw to that. */
static void switch_ended(struct napi *napi)
{
	struct automatic_napi *a = napi->automatic;

	a->switches = false;
	a->fresh = false;
	if (napi_poller(napi) == a->wanted) {
		choice_made(&a->choice, a->wanted);
		return;
	}
	choice_failed(&a->choice, a->wanted);
	a->choice.poller = napi_poller(napi);
	decision_log(napi, "%s cannot be had", poller_name(a->wanted));
}

/* True: it is not over yet. */
static bool switch_goes_on(struct automatic *automatic, struct napi *napi)
{
	struct automatic_napi *a = napi->automatic;
	int64_t now = machine_now(automatic->engine->machine);

	if (!a->switches)
		return false;
	if (napi_switch_end(napi, now >= a->deadline, NULL) == -EAGAIN)
		return true;
	switch_ended(napi);
	return false;
}

static void switch_start(struct automatic *automatic, struct napi *napi, enum poller wanted)
{
	static const char *const moves[] = {
		[CHOICE_TRY] = "tries",
		[CHOICE_BACK] = "goes back to",
		[CHOICE_LEAVE] = "rests with",
	};
	struct automatic_napi *a = napi->automatic;
	struct softnet *softnet =
		wanted == POLLER_BUSY_POLL ? spin_softnet(automatic, napi) : a->home;
	struct error err;

	decision_log(napi, "%s %s after %s", moves[a->choice.move], poller_name(wanted),
		     poller_name(a->choice.poller));
	a->wanted = wanted;
	a->switches = true;
	a->deadline = machine_now(automatic->engine->machine) + SWITCH_TIMEOUT;
	if (napi_switch_begin(napi, wanted, softnet, &err)) {
		snprintf(a->choice.why, sizeof(a->choice.why), "%.*s",
			 (int)sizeof(a->choice.why) - 1, err.text);
		switch_ended(napi);
	}
}

static void napi_look(struct automatic *automatic, struct napi *napi, struct choice_sample *s)
{
	struct choice *choice = &napi->automatic->choice;
	bool tried = choice->tries;
	enum poller wanted;

	/* Another may have been set and auto asked for again. */
	if (choice->poller != napi_poller(napi)) {
		choice_init(choice, napi_poller(napi), choice->can);
		napi->automatic->fresh = false;
	}
	wanted = choice_step(choice, s);
	if (wanted != choice->poller)
		switch_start(automatic, napi, wanted);
	else if (tried && !choice->tries)
		decision_log(napi, "stays with %s", poller_name(wanted));
}

/* Sums over all NAPIs; true while something comes, or somebody spins. */
static bool packets_look(struct automatic *automatic, struct choice_sample *all)
{
	struct engine *engine = automatic->engine;
	struct walk walk = {0};
	uint64_t packets = 0;
	bool spins = false;
	struct napi *napi;

	while ((napi = walk_next(engine, &walk))) {
		packets += counter_read(&napi->record->napi.received);
		spins |= napi->automatic && napi_poller(napi) == POLLER_BUSY_POLL;
	}
	/* One that was removed takes its packets along. */
	all->all_packets = packets > automatic->packets ? packets - automatic->packets : 0;
	automatic->packets = packets;
	return all->all_packets || spins;
}

static void cost_look(struct automatic *automatic, bool wanted, struct choice_sample *all)
{
	int64_t before = automatic->cpu_ns;

	automatic->cpu_ns = wanted ? runners_cpu(automatic->engine) : -1;
	all->all_cpu_ns = 0;
	if (before >= 0 && automatic->cpu_ns > before)
		all->all_cpu_ns = automatic->cpu_ns - before;
}

/* All of them, the one first that was second before: so that each gets its turn to try. */
static void napis_look(struct automatic *automatic, int64_t ns, const struct choice_sample *all,
		       bool may_try)
{
	uint64_t first = automatic->looks++ % automatic->users, i = 0;

	for (int turn = 0; turn < 2; turn++) {
		struct walk walk = {0};
		struct napi *napi;

		i = 0;
		while ((napi = walk_next(automatic->engine, &walk))) {
			struct choice_sample s;

			if (!napi->automatic || (i++ < first) == !turn || napi_disabled(napi))
				continue;
			sample_make(automatic, napi, ns, &s);
			s.all_packets = all->all_packets;
			s.all_cpu_ns = all->all_cpu_ns;
			s.may_try = may_try;
			napi_look(automatic, napi, &s);
			may_try = may_try && !napi->automatic->switches;
		}
	}
}

/* One look at everything. Returns when the next one is due. */
static int64_t look(struct automatic *automatic, int64_t now)
{
	int64_t ns = now - automatic->last;
	struct choice_sample all = {0};
	bool active, tries = false, measures = false;
	struct walk walk = {0};
	struct napi *napi;

	active = packets_look(automatic, &all);
	while ((napi = walk_next(automatic->engine, &walk))) {
		if (!napi->automatic)
			continue;
		seen_renew(napi);
		tries |= napi->automatic->choice.tries;
		measures |= choice_measures(&napi->automatic->choice);
	}
	cpus_look(automatic, ns);
	cost_look(automatic, measures, &all);
	automatic->last = now;
	napis_look(automatic, ns, &all, !tries);
	return now + (active || tries ? CHOICE_INTERVAL : LOOK_IDLE);
}

static struct step automatic_step(void *arg)
{
	struct automatic *automatic = arg;
	struct engine *engine = automatic->engine;
	int64_t now = machine_now(engine->machine);
	struct walk walk = {0};
	struct napi *napi;
	bool waits = false;

	if (now < automatic->next)
		return STEP_UNTIL(automatic->next);
	automatic->next = now + LOOK_SOON;
	if (!lock_try(&engine->control))
		return STEP_UNTIL(automatic->next);
	while ((napi = walk_next(engine, &walk)))
		waits |= napi->automatic && switch_goes_on(automatic, napi);
	if (!waits && now - automatic->last >= CHOICE_INTERVAL)
		automatic->next = look(automatic, now);
	else if (!waits)
		automatic->next = automatic->last + CHOICE_INTERVAL;
	walk = (struct walk){0};
	while ((napi = walk_next(engine, &walk))) {
		if (napi->automatic && napi->automatic->switches)
			automatic->next = now + LOOK_SOON;
	}
	engine_unlock(engine);
	return STEP_UNTIL(automatic->next);
}

static void automatic_free(struct automatic *automatic)
{
	free(automatic->cpu);
	free(automatic->idle);
	free(automatic);
}

static int automatic_start(struct engine *engine, struct error *err)
{
	struct runner_config config = {.name = "napier/auto", .step = automatic_step};
	struct automatic *automatic = calloc(1, sizeof(*automatic));
	struct choice_sample none;
	struct cpuset cpus;
	int rc;

	if (!automatic)
		return error_set(err, -ENOMEM, "no memory for poller auto");
	automatic->engine = engine;
	automatic->cpu_ns = -1;
	for (uint32_t i = 0; i < engine->cpus; i++) {
		if (engine->softnet[i].cpu >= automatic->idle_n)
			automatic->idle_n = engine->softnet[i].cpu + 1;
	}
	machine_cpus(engine->machine, &cpus);
	automatic->machine_cpus = cpuset_count(&cpus);
	automatic->cpu = calloc(engine->cpus, sizeof(*automatic->cpu));
	automatic->idle = calloc(automatic->idle_n, sizeof(*automatic->idle));
	if (!automatic->cpu || !automatic->idle) {
		automatic_free(automatic);
		return error_set(err, -ENOMEM, "no memory for poller auto");
	}
	/* What was before does not count. */
	packets_look(automatic, &none);
	automatic->last = machine_now(engine->machine);
	cpus_look(automatic, 1);
	automatic->next = automatic->last + CHOICE_INTERVAL;
	config.arg = automatic;
	rc = runner_start(engine->machine, &config, &automatic->runner, err);
	if (rc) {
		automatic_free(automatic);
		return rc;
	}
	engine->automatic = automatic;
	return 0;
}

int automatic_begin(struct napi *napi, struct error *err)
{
	struct engine *engine = napi->engine;
	struct automatic_napi *a;
	int rc = 0;

	if (napi->automatic)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return error_set(err, -ENOMEM, "no memory for poller auto");
	if (!engine->automatic)
		rc = automatic_start(engine, err);
	if (rc) {
		free(a);
		return rc;
	}
	engine->automatic->users++;
	choice_init(&a->choice, napi_poller(napi), napi->queue->port->ops->pollers);
	seen_read(napi, &a->seen);
	a->home = napi->softnet;
	napi->automatic = a;
	why_tell(napi);
	return 0;
}

void automatic_end(struct napi *napi)
{
	struct automatic *automatic = napi->engine->automatic;

	if (!napi->automatic)
		return;
	napi_settle(napi);
	free(napi->automatic);
	napi->automatic = NULL;
	why_tell(napi);
	if (--automatic->users)
		return;
	napi->engine->automatic = NULL;
	runner_stop(automatic->runner);
	automatic_free(automatic);
}

void automatic_home(struct napi *napi)
{
	if (napi->automatic)
		napi->automatic->home = napi->softnet;
}

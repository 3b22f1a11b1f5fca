/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario from a seed. Small values are likelier than large ones where that makes things
 * collide: rings that fill, budgets that run out, CPUs that many have to share.
 */
#include <sim/scenario.h>

static const char *const role_names[ROLES] = {
	[ROLE_CROSS] = "cross",	    [ROLE_SLOW] = "slow",     [ROLE_DROP] = "drop",
	[ROLE_DELIVER] = "deliver", [ROLE_BRIDGE] = "bridge",
};

const char *sim_role_name(enum sim_role role)
{
	return (unsigned)role < ROLES ? role_names[role] : "unknown";
}

static uint32_t below(struct random *r, uint32_t n)
{
	return (uint32_t)random_below(r, n);
}

/* low to high, each power of two as likely as the next. */
static int64_t spread(struct random *r, int64_t low, int64_t high)
{
	int64_t top = low;

	while (top < high && random_below(r, 2))
		top *= 2;
	if (top > high)
		top = high;
	return low + (int64_t)random_below(r, (uint64_t)(top - low + 1));
}

static uint32_t power(struct random *r, unsigned low, unsigned high)
{
	return 1u << (low + below(r, high - low + 1));
}

/* Half of the time a small number, of which many divide each other, else any. */
static uint32_t count(struct random *r, uint32_t max)
{
	static const uint32_t round[] = {1, 2, 4, 8, 16, 32, 64, 64};

	if (below(r, 2)) {
		uint32_t n = round[below(r, sizeof(round) / sizeof(*round))];

		return n < max ? n : max;
	}
	return 1 + below(r, max);
}

static struct placement placement(struct random *r, bool fifo)
{
	if (fifo)
		return (struct placement){.class = RUNNER_FIFO, .level = 1 + (int)below(r, 60)};
	return (struct placement){.class = RUNNER_FAIR, .level = (int)below(r, 5) - 2};
}

static void machine_draw(struct random *r, struct scenario *s)
{
	struct random seed = sim_stream(s->seed, STREAM_MACHINE);

	s->machine = (struct virtual_config){
		.cpus = (unsigned)spread(r, 1, SIM_CPUS),
		.seed = random_next(&seed),
		.step_ns = 200 + below(r, 1000),
		.irq_ns = 300 + below(r, 2000),
		.switch_ns = 300 + below(r, 2000),
		.tick_ns = spread(r, 100, 4000) * NSEC_PER_USEC,
		.jitter_percent = below(r, 3) ? below(r, 100) : 0,
	};
}

static void engine_draw(struct random *r, struct scenario *s)
{
	struct engine_config *e = &s->engine;

	*e = (struct engine_config){
		.name = "sim",
		.ports_max = SIM_ENGINE_PORTS,
		.queues_max = 2 * SIM_PORTS * SIM_QUEUES + SIM_CPUS,
		.poller = (enum poller)below(r, POLLER_MAX),
		.weight = count(r, NAPI_WEIGHT_MAX),
		.budget = count(r, 300),
		.budget_usecs = (uint32_t)spread(r, 10, 400),
		.idle_suspend_usecs = below(r, 2) ? 10 + below(r, 200) : 0,
		.restarts = 1 + below(r, 10),
		.restart_usecs = (uint32_t)spread(r, 20, 1000),
		.interrupt = placement(r, s->fifo && below(r, 4)),
		.ksoftirqd = placement(r, s->fifo && !below(r, 4)),
		.worker = placement(r, s->fifo && !below(r, 3)),
		.workers = (uint32_t)spread(r, 2, 6),
		.poll_ns = 300 + below(r, 2000),
		.max_backlog = (uint32_t)spread(r, 4, 128),
		.flow_limit = below(r, 2) ? 16 : 0,
		.sock_flow_entries = below(r, 2) ? 32 : 0,
		.deferral = (enum deferral)below(r, DEFERRAL_MAX),
		.looped_ticks = 1 + below(r, 4),
		.hz = 100 * power(r, 0, 6),
		.packet_ns = 50 + below(r, 1000),
	};
	/* Sometimes not all CPUs are the engine's. */
	for (unsigned cpu = 0; cpu < s->machine.cpus; cpu++)
		if (!below(r, 4))
			cpuset_add(&e->cpus, cpu);
	s->slow_ns = spread(r, 1, 20) * NSEC_PER_USEC;
}

static void ports_draw(struct random *r, struct scenario *s)
{
	bool bridge = !below(r, 3);

	s->ports = 2 + below(r, SIM_PORTS - 1);
	for (unsigned i = 0; i < s->ports; i++) {
		struct sim_port_plan *p = &s->port[i];

		p->queues = (uint32_t)spread(r, 1, SIM_QUEUES);
		p->rx_ring = power(r, 3, 8);
		p->tx_ring = power(r, 3, 8);
		p->wire_ns = spread(r, 100, 8000);
		p->moderation_ns = below(r, 3) ? 0 : spread(r, 1, 50) * NSEC_PER_USEC;
		p->tx_napi = !below(r, 4);
		p->supers = !below(r, 3);
		p->pollers = below(r, 6) ? 0 : 1 + below(r, (1 << POLLER_MAX) - 1);
		p->poller_set = !below(r, 5);
		do
			p->poller = (enum poller)below(r, POLLER_MAX);
		while (p->pollers && !(p->pollers >> p->poller & 1));
		p->partner = (i ^ 1) < s->ports ? i ^ 1 : 0;
		if (bridge && below(r, 8))
			p->role = ROLE_BRIDGE;
		else
			p->role = below(r, 2) ? ROLE_CROSS : (enum sim_role)below(r, ROLE_BRIDGE);
	}
}

static void flows_draw(struct random *r, struct scenario *s)
{
	s->flows = 1 + below(r, SIM_FLOWS);
	for (unsigned i = 0; i < s->flows; i++) {
		struct sim_flow_plan *f = &s->flow[i];

		f->port = below(r, s->ports);
		f->queue = below(r, s->port[f->port].queues);
		f->to = below(r, s->ports);
		f->pattern = (enum sim_pattern)below(r, PATTERNS);
		f->interval_ns = 100 * (int64_t)power(r, 3, 11);
		f->burst = count(r, 64);
		f->length = 60 + below(r, 200);
	}
}

static void hogs_draw(struct random *r, struct scenario *s)
{
	s->hogs = below(r, 3) ? below(r, SIM_HOGS + 1) : 0;
	for (unsigned i = 0; i < s->hogs; i++) {
		struct sim_hog_plan *h = &s->hog[i];

		/* One FIFO hog at most: those that take turns leave nothing to anybody. */
		h->placement = placement(r, !i && below(r, 2));
		if (below(r, 2))
			cpuset_add(&h->placement.cpus, below(r, s->machine.cpus));
		h->run_ns = spread(r, 5, 200) * NSEC_PER_USEC;
		h->rest_ns = h->placement.class == RUNNER_FIFO || below(r, 2)
				     ? h->run_ns * (2 + below(r, 4))
				     : 0;
	}
}

static void poll_apps_draw(struct random *r, struct scenario *s)
{
	s->poll_apps = below(r, SIM_POLL_APPS + 1);
	for (unsigned i = 0; i < s->poll_apps; i++)
		s->poll_app[i] = (struct sim_poll_app_plan){
			.how = {.usecs = below(r, 3) ? (uint32_t)spread(r, 1, 100) : 0,
				.budget = below(r, 2) ? count(r, NAPI_WEIGHT_MAX) : 0,
				.prefer = below(r, 2)},
			.whole = !below(r, 3),
			.service_ns = below(r, 5000),
			.away_ns = spread(r, 1, 200) * NSEC_PER_USEC,
		};
}

static void faults_draw(struct random *r, struct scenario *s)
{
	struct random seed = sim_stream(s->seed, STREAM_FAULTS);

	/* One or two kinds at a time: all of them at once hide each other. */
	for (unsigned n = 1 + below(r, 2); n; n--) {
		unsigned kind = below(r, VIRTUAL_FAULTS + 2);
		uint32_t chance = power(r, 9, 15);

		if (kind < VIRTUAL_START_FAILS)
			s->faults.chance[kind] = chance;
		else if (kind == VIRTUAL_FAULTS)
			s->rx_short = chance;
		else
			s->stall = chance / 16;
	}
	s->faults.late_ns = spread(r, 1, 200) * NSEC_PER_USEC;
	s->faults.seed = random_next(&seed);
	s->stall_ns = spread(r, 20, 500) * NSEC_PER_USEC;
}

/* Frames for all that may lie somewhere: rings, and the caches of everyone who can have one. */
static uint32_t frames_needed(const struct scenario *s)
{
	uint32_t contexts = 5 + SIM_POLL_APPS + s->engine.workers, frames = 0;

	contexts += 4 * s->machine.cpus;
	frames += s->engine.max_backlog * s->machine.cpus;
	for (unsigned i = 0; i < s->ports; i++) {
		contexts += 2 * s->port[i].queues;
		frames += s->port[i].tx_ring * s->port[i].queues;
	}
	return frames + contexts * 2 * POOL_BATCH + PACKET_VECTOR_MAX;
}

void scenario_draw(uint64_t seed, bool faults, struct scenario *out)
{
	struct random r = sim_stream(seed, STREAM_PLAN);

	*out = (struct scenario){.seed = seed};
	out->fifo = below(&r, 2);
	machine_draw(&r, out);
	engine_draw(&r, out);
	ports_draw(&r, out);
	flows_draw(&r, out);
	hogs_draw(&r, out);
	out->app_ns = below(&r, 3) ? 0 : spread(&r, 5, 100) * NSEC_PER_USEC;
	out->operations = 4 + below(&r, 24);
	out->operation_ns = spread(&r, 20, 400) * NSEC_PER_USEC;
	out->engine.frames = frames_needed(out);
	if (faults)
		faults_draw(&r, out);
	poll_apps_draw(&r, out);
}

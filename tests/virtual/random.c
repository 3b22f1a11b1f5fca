/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random runners on random machines: every seed is another scenario. After every event the machine
 * is looked at from inside (machine/virtual.h) for what must always hold.
 */
#include "worker.h"

#include "machine/virtual.h"

enum { SEEDS = 200, WORKERS_MAX = 12, SOURCES_MAX = 8 };
static const int64_t TIME = 30 * MSEC;
static const int64_t TICK = 500 * USEC;

struct scenario;

struct member {
	struct scenario *scenario;
	struct runner *runner;
	bool wake_owed;	    /* woken, no step since */
	int64_t busy_until; /* at least, by its last step */
	int64_t starving; /* since: queued while a CPU of its set has room for it; -1: it is not */
	int steps;
};

struct source {
	struct irq irq;
	struct scenario *scenario;
	bool call_owed; /* raised, not called since */
	int calls;
};

struct scenario {
	struct machine *machine;
	struct virtual *inside;
	uint64_t seed;
	struct random random; /* the scenario's own: what is drawn does not hang on the machine */
	bool quiet;	      /* everybody waits and nobody is woken any more */
	unsigned workers, sources;
	struct member worker[WORKERS_MAX];
	struct source source[SOURCES_MAX];
};

static uint64_t draw(struct scenario *s, uint64_t n)
{
	return random_below(&s->random, n);
}

#define must(s, condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			char text[256];                                                            \
			machine_virtual_describe((s)->machine, text, sizeof(text));                \
			fail_msg("%s: %s", text, #condition);                                      \
		}                                                                                  \
	} while (0)

static struct placement placement_draw(struct scenario *s)
{
	struct placement p = draw(s, 4) ? fair((int)draw(s, 40) - 20) : fifo(1 + (int)draw(s, 5));

	for (uint64_t n = draw(s, 4); n; n--)
		cpuset_add(&p.cpus, (unsigned)draw(s, s->inside->config.cpus));
	return p;
}

static void wake_any(struct scenario *s)
{
	struct member *w = &s->worker[draw(s, s->workers)];

	if (!w->runner || ((struct virtual_runner *)w->runner)->state == RUNNER_ENDED)
		return;
	w->wake_owed = true;
	runner_wake(w->runner);
}

static void source_any(struct scenario *s)
{
	struct source *source = &s->source[draw(s, s->sources)];
	struct runner *r = s->worker[draw(s, s->workers)].runner;

	switch (draw(s, 8)) {
	case 0:
		irq_mask(&source->irq);
		break;
	case 1:
	case 2:
		irq_unmask(&source->irq);
		break;
	case 3:
		irq_arm(&source->irq, machine_now(s->machine) + (int64_t)draw(s, 50 * USEC));
		break;
	case 4:
		if (r)
			irq_attach(&source->irq, r);
		break;
	case 5:
		if (!draw(s, 10)) {
			irq_detach(&source->irq);
			source->call_owed = false;
		}
		break;
	default:
		if (source->irq.runner)
			source->call_owed = true;
		irq_raise(&source->irq);
	}
}

static void handler(struct irq *irq)
{
	struct source *source = (struct source *)irq;
	struct scenario *s = source->scenario;

	source->calls++;
	source->call_owed = false;
	must(s, runner_current() == irq->runner);
	machine_charge(s->machine, (int64_t)draw(s, 2000));
	if (!s->quiet && !draw(s, 3))
		wake_any(s);
	if (!s->quiet && !draw(s, 4))
		source_any(s);
}

static struct step member_step(void *arg)
{
	struct member *w = arg;
	struct scenario *s = w->scenario;
	int64_t began = machine_now(s->machine),
		charged = (int64_t)draw(s, draw(s, 20) ? 5000 : 200000);

	must(s, runner_current() == w->runner);
	must(s, began >= w->busy_until);
	w->wake_owed = false;
	w->steps++;
	machine_charge(s->machine, charged);
	w->busy_until = began + charged + s->inside->config.step_ns;
	if (s->quiet)
		return STEP(STEP_WAIT);
	if (!draw(s, 3))
		wake_any(s);
	if (!draw(s, 3))
		source_any(s);
	switch (draw(s, 10)) {
	case 0:
	case 1:
		return STEP(STEP_AGAIN);
	case 2:
	case 3:
		return STEP(STEP_YIELD);
	case 4:
	case 5:
		return STEP_UNTIL(machine_now(s->machine) + (int64_t)draw(s, 100 * USEC));
	default:
		return STEP(draw(s, 300) ? STEP_WAIT : STEP_EXIT);
	}
}

static void worker_begin(struct scenario *s, struct member *w)
{
	struct runner_config config = {
		.step = member_step, .arg = w, .placement = placement_draw(s)};

	*w = (struct member){.scenario = s, .starving = -1};
	snprintf(config.name, sizeof(config.name), "worker-%u", (unsigned)(w - s->worker));
	must(s, !runner_start(s->machine, &config, &w->runner, NULL));
}

/* Settings from outside, now and then. */
static void disturb(void *arg)
{
	struct scenario *s = arg;
	struct member *w = &s->worker[draw(s, s->workers)];
	struct placement p = placement_draw(s);

	if (s->quiet)
		return;
	switch (draw(s, 6)) {
	case 0:
		if (w->runner) {
			for (unsigned i = 0; i < s->sources; i++)
				if (s->source[i].irq.runner == w->runner)
					s->source[i].call_owed = false; /* it is detached */
			runner_stop(w->runner);
		}
		w->runner = NULL;
		break;
	case 1:
		wake_any(s);
		break;
	case 2:
		source_any(s);
		break;
	case 3:
		for (unsigned i = 0; i < s->workers; i++)
			if (!s->worker[i].runner)
				worker_begin(s, &s->worker[i]);
		break;
	default:
		if (w->runner) {
			must(s, !runner_place(w->runner, &p));
			w->starving = -1;
		}
	}
	machine_virtual_call_at(s->machine, machine_now(s->machine) + (int64_t)draw(s, 60 * USEC),
				disturb, s);
}

/* c has something lower to do than r, or nothing. */
static bool cpu_has_room(const struct virtual_cpu *c, const struct virtual_runner *r)
{
	const struct virtual_runner *first = c->queue[RUNNER_FIFO].first, *now = c->current;

	if (first || (now && now->placement.class == RUNNER_FIFO))
		return r->placement.class == RUNNER_FIFO &&
		       (!first || first->placement.level < r->placement.level) &&
		       (!now || now->placement.class == RUNNER_FAIR ||
			now->placement.level < r->placement.level);
	return r->placement.class == RUNNER_FIFO || (!now && !c->queue[RUNNER_FAIR].count);
}

static void check_cpu(struct scenario *s, const struct virtual_cpu *c)
{
	for (int class = RUNNER_FAIR; class <= RUNNER_FIFO; class ++) {
		const struct virtual_runner *before = NULL, *r;
		unsigned count = 0;

		for (r = c->queue[class].first; r; before = r, r = r->next, count++) {
			must(s, r->state == RUNNER_QUEUED && r->cpu == c && r->prev == before);
			must(s, (int)r->placement.class == class);
			must(s, virtual_balance_allows(r, c));
			if (before && class == RUNNER_FAIR)
				must(s, before->vruntime <= r->vruntime);
			else if (before)
				must(s, before->placement.level >= r->placement.level);
		}
		must(s, c->queue[class].last == before && c->queue[class].count == count);
	}
	if (c->current) {
		must(s, c->current->state == RUNNER_RUNNING && c->current->cpu == c);
		must(s, virtual_balance_allows(c->current, c) || c->resched);
		must(s, c->event.index);
	}
}

/* Between any two events. */
static bool check(void *arg)
{
	struct scenario *s = arg;
	struct virtual *v = s->inside;
	int64_t used = 0;
	unsigned running = 0, on_cpus = 0;

	for (unsigned i = 0; i < v->config.cpus; i++) {
		check_cpu(s, &v->cpus[i]);
		on_cpus += v->cpus[i].current != NULL;
	}
	for (unsigned i = 0; i < s->workers; i++) {
		struct member *w = &s->worker[i];
		struct virtual_runner *r = (struct virtual_runner *)w->runner;
		bool starves = false;

		if (!r)
			continue;
		running += r->state == RUNNER_RUNNING;
		used += r->cpu_time;
		for (unsigned cpu = 0; r->state == RUNNER_QUEUED && cpu < v->config.cpus; cpu++)
			starves |= cpu_has_room(&v->cpus[cpu], r) &&
				   virtual_balance_allows(r, &v->cpus[cpu]);
		if (!starves)
			w->starving = -1;
		else if (w->starving < 0)
			w->starving = v->now;
		/* A tick moves one runner away from a CPU. */
		must(s, !starves || v->now - w->starving <= 2 * TICK);
	}
	must(s, running == on_cpus);
	must(s, used <= v->now * v->config.cpus);
	return false;
}

static uint64_t scenario_run(uint64_t seed, unsigned *events)
{
	static struct scenario s;
	struct virtual_stats stats;

	s = (struct scenario){.seed = seed, .random = {~seed}};
	s.machine = machine_make((struct virtual_config){
		.seed = seed,
		.cpus = 1 + (unsigned)draw(&s, 6),
		.tick_ns = TICK,
		.jitter_percent = (unsigned)draw(&s, 2) * 30,
	});
	s.inside = (struct virtual *)s.machine;
	s.workers = 1 + (unsigned)draw(&s, WORKERS_MAX);
	s.sources = 1 + (unsigned)draw(&s, SOURCES_MAX);
	for (unsigned i = 0; i < s.sources; i++)
		s.source[i] = (struct source){.irq = IRQ_INIT(-1, handler), .scenario = &s};
	for (unsigned i = 0; i < s.workers; i++)
		worker_begin(&s, &s.worker[i]);
	machine_virtual_call_at(s.machine, 0, disturb, &s);
	must(&s, machine_wait(s.machine, check, &s, TIME) == -ETIMEDOUT);

	/* Now nobody asks for anything any more: all that was asked for has to come, then silence.
	 */
	s.quiet = true;
	for (unsigned i = 0; i < s.sources; i++)
		irq_unmask(&s.source[i].irq);
	must(&s, machine_wait(s.machine, check, &s, TIME_NEVER) == -EDEADLK);
	for (unsigned i = 0; i < s.workers; i++) {
		struct virtual_runner *r = (struct virtual_runner *)s.worker[i].runner;

		if (!r)
			continue;
		must(&s, r->state == RUNNER_WAITING || r->state == RUNNER_ENDED);
		must(&s, r->state == RUNNER_ENDED || !s.worker[i].wake_owed);
	}
	for (unsigned i = 0; i < s.sources; i++) {
		const struct virtual_runner *r = (struct virtual_runner *)s.source[i].irq.runner;

		must(&s, !s.source[i].call_owed || (r && r->state == RUNNER_ENDED));
	}
	machine_virtual_stats(s.machine, &stats);
	*events += (unsigned)stats.events;
	for (unsigned i = 0; i < s.workers; i++)
		if (s.worker[i].runner)
			runner_stop(s.worker[i].runner);
	machine_destroy(s.machine);
	return stats.trace_hash;
}

static void random_scenarios(void **state)
{
	unsigned events = 0;

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t hash = scenario_run(seed, &events);

		assert_int_equal(hash, scenario_run(seed, &events));
	}
	print_message("%d seeds twice, %u events\n", SEEDS, events);
	assert_true(events > 100 * SEEDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_scenarios),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

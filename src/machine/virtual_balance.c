/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPU a runner goes to: at its wake-up, and later when loads have become uneven. */
#include "machine/virtual.h"

bool virtual_balance_allows(const struct virtual_runner *r, const struct virtual_cpu *c)
{
	return cpuset_empty(&r->placement.cpus) || cpuset_has(&r->placement.cpus, c->index);
}

/* The set's idle CPUs in one word of the bitmaps. */
static uint64_t idle_word(const struct virtual *v, const struct cpuset *set, size_t i)
{
	return v->cpus_idle.bits[i] & set->bits[i];
}

/* The n-th bit that is set in word. */
static unsigned bit_at(uint64_t word, unsigned n)
{
	while (n--)
		word &= word - 1;
	return (unsigned)__builtin_ctzll(word);
}

/* One of the idle CPUs of the set, or NULL. */
static struct virtual_cpu *idle_draw(struct virtual *v, const struct cpuset *set)
{
	size_t words = (v->config.cpus + 63) / 64;
	unsigned count = 0, n;

	for (size_t i = 0; i < words; i++)
		count += (unsigned)__builtin_popcountll(idle_word(v, set, i));
	if (!count)
		return NULL;
	n = count > 1 ? (unsigned)virtual_draw(v, count) : 0;
	for (size_t i = 0;; i++) {
		uint64_t word = idle_word(v, set, i);
		unsigned here = (unsigned)__builtin_popcountll(word);

		if (n < here)
			return &v->cpus[i * 64 + bit_at(word, n)];
		n -= here;
	}
}

/* What a FIFO runner has to beat to run here at once: 0 for fair ones, else the level. */
static int cpu_level(const struct virtual_cpu *c)
{
	const struct virtual_runner *r = c->queue[RUNNER_FIFO].first;
	int level = r ? r->placement.level : 0;

	r = c->current;
	if (r && r->placement.class == RUNNER_FIFO && r->placement.level > level)
		level = r->placement.level;
	return level;
}

/* A FIFO CPU takes two fair ones' share, so that it does not starve the one that queues there. */
static unsigned cpu_load(const struct virtual_cpu *c)
{
	return virtual_queue_load(c, RUNNER_FAIR) + 2 * virtual_queue_load(c, RUNNER_FIFO);
}

/*
 * None is idle. A FIFO runner looks for the lowest level, a fair one for the least load; where
 * that is the same as on `home`, it stays at home.
 */
static struct virtual_cpu *busy_select(struct virtual *v, const struct virtual_runner *r,
				       const struct cpuset *set, struct virtual_cpu *home)
{
	bool fifo = r->placement.class == RUNNER_FIFO;
	struct virtual_cpu *best = home;
	int least = home ? (fifo ? cpu_level(home) : (int)cpu_load(home)) : INT32_MAX;
	unsigned equals = 1;

	for (unsigned i = cpuset_next(set, 0); i < v->config.cpus; i = cpuset_next(set, i + 1)) {
		struct virtual_cpu *c = &v->cpus[i];
		int value = fifo ? cpu_level(c) : (int)cpu_load(c);

		if (value < least) {
			least = value;
			best = c;
			equals = 1;
		} else if (value == least && best != home && virtual_draw(v, ++equals) == 0) {
			best = c;
		}
	}
	return best;
}

struct virtual_cpu *virtual_balance_select(struct virtual *v, struct virtual_runner *r)
{
	const struct cpuset *set = &r->placement.cpus;
	struct virtual_cpu *home = r->cpu, *c;

	if (cpuset_empty(set))
		set = &v->cpus_all;
	if (home && !cpuset_has(set, home->index))
		home = NULL;
	if (home && cpuset_has(&v->cpus_idle, home->index))
		return home;
	c = idle_draw(v, set);
	if (c)
		return c;
	/* As the kernel does: a fair runner that finds none idle goes home, and ticks even out. */
	if (home && r->placement.class == RUNNER_FAIR)
		return home;
	return busy_select(v, r, set, home);
}

void virtual_balance_move(struct virtual *v, struct virtual_runner *r, struct virtual_cpu *to)
{
	struct virtual_cpu *from = r->cpu;

	virtual_queue_remove(v, r);
	virtual_cpu_account(v, to);
	r->vruntime += to->vruntime_min - from->vruntime_min;
	v->stats.migrations++;
	virtual_trace(v, TRACE_MOVE, to, r, from->index, 0);
	virtual_cpu_add(v, to, r);
}

/* How many queued runners a CPU can do without: one that idles is about to take one itself. */
static unsigned cpu_spare(const struct virtual_cpu *c)
{
	unsigned queued = c->queue[RUNNER_FIFO].count + c->queue[RUNNER_FAIR].count;

	return c->current || !queued ? queued : queued - 1;
}

/* The first of c's queue that may run on `to`. */
static struct virtual_runner *queue_find(const struct virtual_cpu *c, enum runner_class class,
					 const struct virtual_cpu *to)
{
	struct virtual_runner *r = c->queue[class].first;

	while (r && !virtual_balance_allows(r, to))
		r = r->next;
	return r;
}

/* The highest FIFO runner that queues elsewhere and would run on c at once, or NULL. */
static struct virtual_runner *fifo_find(const struct virtual *v, const struct virtual_cpu *c)
{
	struct virtual_runner *best = NULL;
	int level = cpu_level(c);

	if (v->queued[RUNNER_FIFO] == c->queue[RUNNER_FIFO].count)
		return NULL;
	for (unsigned i = 0; i < v->config.cpus; i++) {
		const struct virtual_cpu *from = &v->cpus[i];
		struct virtual_runner *r = queue_find(from, RUNNER_FIFO, c);

		if (from != c && cpu_spare(from) && r && r->placement.level > level) {
			best = r;
			level = r->placement.level;
		}
	}
	return best;
}

/* For a CPU without work: a fair runner of the busiest CPU that has one to give. */
static struct virtual_runner *fair_find(struct virtual *v, const struct virtual_cpu *c)
{
	struct virtual_runner *best = NULL;
	unsigned most = 0, equals = 1;

	if (!v->queued[RUNNER_FAIR])
		return NULL;
	for (unsigned i = 0; i < v->config.cpus; i++) {
		const struct virtual_cpu *from = &v->cpus[i];
		struct virtual_runner *r;

		if (!cpu_spare(from) || cpu_load(from) < most)
			continue;
		r = queue_find(from, RUNNER_FAIR, c);
		if (!r)
			continue;
		if (cpu_load(from) > most) {
			most = cpu_load(from);
			best = r;
			equals = 1;
		} else if (virtual_draw(v, ++equals) == 0) {
			best = r;
		}
	}
	return best;
}

void virtual_balance_pull(struct virtual *v, struct virtual_cpu *c)
{
	struct virtual_runner *r = fifo_find(v, c);

	if (!r && !c->queue[RUNNER_FIFO].count && !c->queue[RUNNER_FAIR].count)
		r = fair_find(v, c);
	if (r)
		virtual_balance_move(v, r, c);
}

/* A FIFO runner that queues on c though it could run at once elsewhere. */
static bool fifo_push(struct virtual *v, struct virtual_cpu *c)
{
	for (struct virtual_runner *r = c->queue[RUNNER_FIFO].first; r; r = r->next) {
		struct virtual_cpu *to = virtual_balance_select(v, r);

		if (to == c || cpu_level(to) >= r->placement.level)
			continue;
		virtual_balance_move(v, r, to);
		return true;
	}
	return false;
}

/* The first fair runner of c that may run where there is least to do. */
static void fair_push(struct virtual *v, struct virtual_cpu *c)
{
	struct virtual_cpu *to = NULL;
	struct virtual_runner *moves = NULL;
	unsigned least = cpu_load(c), equals = 1;

	for (unsigned i = 0; i < v->config.cpus; i++) {
		struct virtual_cpu *other = &v->cpus[i];
		unsigned load = cpu_load(other);
		struct virtual_runner *r;

		/* With one less there is no gain: they would only change places. */
		if (load > least || load + 2 > cpu_load(c))
			continue;
		r = queue_find(c, RUNNER_FAIR, other);
		if (!r)
			continue;
		equals = load < least ? 1 : equals + 1;
		if (equals > 1 && virtual_draw(v, equals) != 0)
			continue;
		least = load;
		to = other;
		moves = r;
	}
	if (moves)
		virtual_balance_move(v, moves, to);
}

void virtual_balance_push(struct virtual *v, struct virtual_cpu *c)
{
	if (!fifo_push(v, c))
		fair_push(v, c);
}

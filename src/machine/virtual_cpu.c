/* SPDX-License-Identifier: BSD-2-Clause */
/* A CPU: who has it and until when. */
#include <assert.h>
#include <stddef.h>

#include "machine/virtual.h"

void virtual_cpu_account(struct virtual *v, struct virtual_cpu *c)
{
	struct virtual_runner *r = c->current;
	struct virtual_runner *first = c->queue[RUNNER_FAIR].first;
	int64_t ran = v->now - c->since;
	int64_t least = first ? first->vruntime : INT64_MAX;

	c->since = v->now;
	if (!r)
		c->idle_time += ran;
	if (!r || !ran)
		return;
	assert(ran <= r->remaining);
	r->remaining -= ran;
	r->switching = ran < r->switching ? r->switching - ran : 0;
	r->cpu_time += ran;
	if (r->placement.class != RUNNER_FAIR)
		return;
	r->vruntime += ran * 1024 / r->weight;
	if (r->vruntime < least)
		least = r->vruntime;
	if (least > c->vruntime_min)
		c->vruntime_min = least;
}

void virtual_cpu_kick(struct virtual *v, struct virtual_cpu *c)
{
	bool executes = v->executing && v->executing->cpu == c;

	c->resched = true;
	/* While it executes a step its event is set afterwards, when the cost is known. */
	if (!executes && !(c->event.index && c->event.time == v->now))
		virtual_event_set(v, &c->event, v->now);
}

static void tick_set(struct virtual *v, struct virtual_cpu *c)
{
	int64_t tick = v->config.tick_ns;

	if (!c->tick.index)
		virtual_event_set(v, &c->tick,
				  v->now + tick - (v->now + tick - c->tick_phase) % tick);
}

void virtual_cpu_add(struct virtual *v, struct virtual_cpu *c, struct virtual_runner *r)
{
	virtual_cpu_account(v, c);
	virtual_queue_add(v, c, r, true);
	if (!c->current || virtual_queue_preempts(v, r, c->current))
		virtual_cpu_kick(v, c);
	else
		tick_set(v, c);
}

void virtual_cpu_leave(struct virtual *v, struct virtual_cpu *c)
{
	virtual_cpu_account(v, c);
	c->current = NULL;
}

/*
 * The current runner goes back to the queue, here or where it may and can run. One that was
 * preempted goes before its equals, one that yields behind them.
 */
static void current_put(struct virtual *v, struct virtual_cpu *c, bool yields)
{
	struct virtual_runner *r = c->current;
	const struct virtual_runner *head = c->queue[RUNNER_FIFO].first;
	bool pushed = r->placement.class == RUNNER_FIFO && head &&
		      head->placement.level > r->placement.level;

	c->current = NULL;
	virtual_queue_add(v, c, r, yields);
	if (pushed || !virtual_balance_allows(r, c)) {
		struct virtual_cpu *to = virtual_balance_select(v, r);

		if (to != c)
			virtual_balance_move(v, r, to);
	}
}

/*
 * A fair runner that yields lets the one behind it go first, if that is not so far ahead that it
 * would be unfair.
 */
static struct virtual_runner *queue_choose(const struct virtual *v, const struct virtual_cpu *c,
					   const struct virtual_runner *yields)
{
	struct virtual_runner *r = c->queue[RUNNER_FIFO].first;

	if (r)
		return r;
	r = c->queue[RUNNER_FAIR].first;
	if (r && r == yields && r->next && !virtual_queue_preempts(v, r, r->next))
		r = r->next;
	return r;
}

/*
 * It loses the CPU. What is left of the switch to it is nobody's work: it gets a whole one when it
 * comes back, and would otherwise owe more with each time that it is preempted in the middle of it.
 */
static void switch_forget(struct virtual_runner *r)
{
	r->remaining -= r->switching;
	r->switching = 0;
}

static void cpu_choose(struct virtual *v, struct virtual_cpu *c, bool yields)
{
	struct virtual_runner *before = c->current, *r;

	if (before)
		current_put(v, c, yields);
	virtual_balance_pull(v, c);
	c->resched = false;
	r = queue_choose(v, c, yields ? before : NULL);
	if (before && r != before)
		switch_forget(before);
	if (before && r != before && !yields) {
		v->stats.preemptions++;
		virtual_trace(v, TRACE_PREEMPT, c, before, before->remaining, 0);
	}
	if (!r) {
		cpuset_add(&v->cpus_idle, c->index);
		virtual_event_cancel(v, &c->tick);
		virtual_trace(v, TRACE_IDLE, c, NULL, 0, 0);
		return;
	}
	virtual_queue_remove(v, r);
	r->state = RUNNER_RUNNING;
	c->current = r;
	if (r != before) {
		v->stats.switches++;
		virtual_trace(v, TRACE_SWITCH, c, r, 0, 0);
		r->switching = virtual_cost(v, v->config.switch_ns);
		r->remaining += r->switching;
	}
	if (c->queue[RUNNER_FAIR].count + c->queue[RUNNER_FIFO].count)
		tick_set(v, c);
}

static void cpu_fire(struct virtual *v, struct virtual_event *e)
{
	struct virtual_cpu *c =
		(struct virtual_cpu *)((char *)e - offsetof(struct virtual_cpu, event));
	bool yields = false;

	virtual_cpu_account(v, c);
	if (c->current && !c->current->remaining)
		yields = virtual_runner_finish(v, c->current);
	if (!c->current || yields || c->resched)
		cpu_choose(v, c, yields);
	if (!c->current)
		return;
	if (!c->current->remaining)
		virtual_runner_begin(v, c->current);
	virtual_event_set(v, e, c->resched ? v->now : v->now + c->current->remaining);
}

static void tick_fire(struct virtual *v, struct virtual_event *e)
{
	struct virtual_cpu *c =
		(struct virtual_cpu *)((char *)e - offsetof(struct virtual_cpu, tick));
	const struct virtual_runner *r = c->current, *next = c->queue[RUNNER_FAIR].first;

	if (!next && !c->queue[RUNNER_FIFO].first)
		return;
	virtual_cpu_account(v, c);
	virtual_trace(v, TRACE_TICK, c, NULL, 0, 0);
	virtual_balance_push(v, c);
	next = c->queue[RUNNER_FAIR].first;
	if (r && next && r->placement.class == RUNNER_FAIR && next->vruntime < r->vruntime)
		virtual_cpu_kick(v, c);
	tick_set(v, c);
}

void virtual_cpu_init(struct virtual *v, struct virtual_cpu *c)
{
	c->event.fire = cpu_fire;
	c->tick.fire = tick_fire;
	c->tick_phase = (int64_t)virtual_draw(v, (uint64_t)v->config.tick_ns);
	cpuset_add(&v->cpus_all, c->index);
}

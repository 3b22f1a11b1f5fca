/* SPDX-License-Identifier: BSD-2-Clause */
/* A runner: its life, its steps, and what comes after them. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "machine/current.h"
#include "machine/virtual.h"

static struct virtual *runner_machine(struct virtual_runner *r)
{
	return (struct virtual *)r->base.machine;
}

static int placement_check(const struct virtual *v, const struct placement *p, struct error *err)
{
	unsigned beyond = cpuset_next(&p->cpus, v->config.cpus);

	if (beyond < CPU_MAX)
		return error_set(err, -EINVAL, "there is no CPU %u; the virtual machine has 0-%u",
				 beyond, v->config.cpus - 1);
	if (p->class == RUNNER_FIFO && (p->level < 1 || p->level > 99))
		return error_set(err, -EINVAL, "FIFO priority %d is not 1..99", p->level);
	if (p->class == RUNNER_FAIR && (p->level < -20 || p->level > 19))
		return error_set(err, -EINVAL, "nice %d is not -20..19", p->level);
	if (p->class != RUNNER_FIFO && p->class != RUNNER_FAIR)
		return error_set(err, -EINVAL, "%d is not a class of runners", (int)p->class);
	return 0;
}

static void placement_set(struct virtual_runner *r, const struct placement *p)
{
	r->placement = *p;
	r->weight = virtual_weight(p->class == RUNNER_FAIR ? p->level : 0);
}

void virtual_runner_unblock(struct virtual *v, struct virtual_runner *r)
{
	struct virtual_cpu *from = r->cpu, *to = virtual_balance_select(v, r);
	int64_t least;

	virtual_event_cancel(v, &r->timer);
	virtual_cpu_account(v, to);
	if (from != to) {
		r->vruntime += to->vruntime_min - (from ? from->vruntime_min : 0);
		if (from) {
			v->stats.migrations++;
			virtual_trace(v, TRACE_MOVE, to, r, from->index, 0);
		}
	}
	/* A sleeper comes first, but what it did not use is not saved up beyond this. */
	least = to->vruntime_min - (from ? v->config.tick_ns / 2 : 0);
	if (r->vruntime < least)
		r->vruntime = least;
	virtual_cpu_add(v, to, r);
}

static void timer_fire(struct virtual *v, struct virtual_event *e)
{
	struct virtual_runner *r =
		(struct virtual_runner *)((char *)e - offsetof(struct virtual_runner, timer));

	virtual_trace(v, TRACE_TIMEOUT, NULL, r, 0, 0);
	virtual_runner_unblock(v, r);
}

int virtual_runner_start(struct machine *m, const struct runner_config *config, struct runner **out,
			 struct error *err)
{
	struct virtual *v = (struct virtual *)m;
	struct virtual_runner *r;
	int rc = placement_check(v, &config->placement, err);

	if (rc)
		return rc;
	if (virtual_fault(v, VIRTUAL_START_FAILS, NULL))
		return error_set(err, -EAGAIN, "%s: a thread cannot be made (injected fault)",
				 config->name);
	r = calloc(1, sizeof(*r));
	if (!r || virtual_event_reserve(v)) {
		free(r);
		return error_set(err, -ENOMEM, "no memory for the runner %s", config->name);
	}
	r->base.machine = m;
	memcpy(r->base.name, config->name, sizeof(r->base.name));
	r->base.name[RUNNER_NAME_MAX - 1] = '\0';
	r->name_hash = virtual_trace_name(r->base.name);
	r->step = config->step;
	r->arg = config->arg;
	r->timer.fire = timer_fire;
	r->between = true;
	placement_set(r, &config->placement);
	v->runners++;
	virtual_trace(v, TRACE_START, NULL, r, 0, 0);
	virtual_runner_unblock(v, r);
	*out = &r->base;
	return 0;
}

void virtual_runner_stop(struct runner *runner)
{
	struct virtual_runner *r = (struct virtual_runner *)runner;
	struct virtual *v = runner_machine(r);

	assert(v->executing != r && "runner_stop from its own step");
	while (r->attached)
		virtual_irq_detach(r->attached);
	if (r->state == RUNNER_QUEUED) {
		virtual_queue_remove(v, r);
		if (!r->cpu->current)
			virtual_cpu_kick(v, r->cpu); /* it may idle again */
	} else if (r->state == RUNNER_RUNNING) {
		virtual_cpu_leave(v, r->cpu);
		virtual_cpu_kick(v, r->cpu);
	}
	virtual_event_cancel(v, &r->timer);
	virtual_event_unreserve(v);
	virtual_trace(v, TRACE_STOP, NULL, r, 0, 0);
	v->runners--;
	free(r);
}

void virtual_runner_wake(struct runner *runner)
{
	struct virtual_runner *r = (struct virtual_runner *)runner;
	struct virtual *v = runner_machine(r);

	if (r->woken || r->state == RUNNER_ENDED)
		return;
	r->woken = true;
	virtual_trace(v, TRACE_WAKE, NULL, r, r->state == RUNNER_WAITING, 0);
	if (r->state == RUNNER_WAITING)
		virtual_runner_unblock(v, r);
}

int virtual_runner_place(struct runner *runner, const struct placement *placement)
{
	struct virtual_runner *r = (struct virtual_runner *)runner;
	struct virtual *v = runner_machine(r);
	bool queued = r->state == RUNNER_QUEUED;
	int rc = placement_check(v, placement, NULL);

	if (rc)
		return rc;
	virtual_trace(v, TRACE_PLACE, NULL, r, placement->class, placement->level);
	if (r->state == RUNNER_RUNNING)
		virtual_cpu_account(v, r->cpu);
	if (queued)
		virtual_queue_remove(v, r);
	placement_set(r, placement);
	virtual_queue_renew(v, r);
	if (queued) {
		if (!r->cpu->current)
			virtual_cpu_kick(v, r->cpu);
		virtual_runner_unblock(v, r);
	} else if (r->state == RUNNER_RUNNING) {
		virtual_cpu_kick(v, r->cpu);
	}
	return 0;
}

void virtual_runner_observe(struct runner *runner, struct runner_observation *out)
{
	struct virtual_runner *r = (struct virtual_runner *)runner;

	if (r->state == RUNNER_RUNNING)
		virtual_cpu_account(runner_machine(r), r->cpu);
	*out = (struct runner_observation){
		.cpu = r->cpu ? r->cpu->index : 0,
		.placement = r->placement,
		.cpu_time = r->cpu_time,
		.waiting = r->state == RUNNER_WAITING,
	};
}

void virtual_runner_usage(struct runner *runner, struct runner_usage *out)
{
	struct virtual_runner *r = (struct virtual_runner *)runner;
	struct virtual *v = runner_machine(r);

	if (r->state == RUNNER_RUNNING)
		virtual_cpu_account(v, r->cpu);
	*out = (struct runner_usage){.cpu_time = r->cpu_time, .ready_time = r->ready_time};
	if (r->state == RUNNER_QUEUED)
		out->ready_time += v->now - r->queued_at;
}

/* It said STEP_WAIT. Whatever came since the step began is what it waits for. */
static void runner_block(struct virtual *v, struct virtual_runner *r)
{
	if (r->woken || r->raised || r->said.deadline <= v->now)
		return;
	virtual_trace(v, TRACE_WAIT, r->cpu, r, r->said.deadline, 0);
	virtual_cpu_leave(v, r->cpu);
	r->state = RUNNER_WAITING;
	if (r->said.deadline != TIME_NEVER)
		virtual_event_set(v, &r->timer, virtual_fault_timer(v, r, r->said.deadline));
}

bool virtual_runner_finish(struct virtual *v, struct virtual_runner *r)
{
	if (r->piece != PIECE_STEP)
		return false;
	r->piece = PIECE_SWITCH;
	r->between = r->said.verdict != STEP_AGAIN;
	switch (r->said.verdict) {
	case STEP_AGAIN:
		return false;
	case STEP_YIELD:
		return true;
	case STEP_WAIT:
		runner_block(v, r);
		return false;
	case STEP_EXIT:
		virtual_trace(v, TRACE_END, r->cpu, r, 0, 0);
		virtual_cpu_leave(v, r->cpu);
		r->state = RUNNER_ENDED;
		return false;
	}
	assert(!"a verdict");
	return false;
}

void virtual_runner_begin(struct virtual *v, struct virtual_runner *r)
{
	struct irq *irq;
	uint64_t number;

	if (r->between)
		virtual_irq_look(r);
	r->between = false;
	irq = virtual_irq_take(r);
	v->executing = r;
	memcpy(v->last, r->base.name, sizeof(v->last));
	runner_current_set(&r->base);
	if (irq) {
		r->piece = PIECE_IRQ;
		number = virtual_irq_number(irq);
		irq->handler(irq);
		r->remaining = virtual_cost(v, v->config.irq_ns + v->charged);
		v->stats.interrupts++;
		virtual_trace(v, TRACE_IRQ, r->cpu, r, r->remaining, (int64_t)number);
	} else {
		r->piece = PIECE_STEP;
		r->woken = false;
		r->said = r->step(r->arg);
		r->remaining = virtual_cost(v, v->config.step_ns + v->charged);
		v->stats.steps++;
		virtual_trace(v, TRACE_STEP, r->cpu, r, r->remaining, r->said.verdict);
	}
	runner_current_set(NULL);
	v->executing = NULL;
	v->charged = 0;
}

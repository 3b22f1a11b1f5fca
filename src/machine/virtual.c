/* SPDX-License-Identifier: BSD-2-Clause */
/* The virtual machine as a whole: its time goes on in loop_run, and nowhere else. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "machine/virtual.h"

/* A call of the scenario. */
struct virtual_call {
	struct virtual_event event;
	struct virtual_call *next, *prev;
	void (*call)(void *arg);
	void *arg;
};

int64_t virtual_cost(struct virtual *v, int64_t ns)
{
	/* Only upwards: a step must not end before what its machine_now() has said. */
	if (v->config.jitter_percent)
		ns += (int64_t)virtual_draw(v, (uint64_t)ns * v->config.jitter_percent / 100 + 1);
	return ns;
}

static int64_t virtual_now(struct machine *m)
{
	struct virtual *v = (struct virtual *)m;

	return v->now + v->charged;
}

static void virtual_charge(struct machine *m, int64_t ns)
{
	struct virtual *v = (struct virtual *)m;

	assert(ns >= 0);
	if (v->executing)
		v->charged += ns;
}

/* Lets events happen until done, or until there are none up to the deadline. */
static int loop_run(struct virtual *v, bool (*done)(void *arg), void *arg, int64_t deadline)
{
	v->same_time = 0;
	for (;;) {
		struct virtual_event *e;

		if (done && done(arg))
			return 0;
		e = virtual_event_first(v);
		if (!e && deadline == TIME_NEVER)
			return -EDEADLK;
		if (!e || e->time > deadline)
			break;
		if (e->time > v->now)
			v->same_time = 0;
		else if (++v->same_time > VIRTUAL_SAME_TIME_MAX)
			return -ELOOP;
		v->now = e->time;
		virtual_event_cancel(v, e);
		e->fire(v, e);
		if (v->config.watch)
			v->config.watch(v->config.watch_arg);
	}
	if (deadline > v->now)
		v->now = deadline;
	return done && done(arg) ? 0 : -ETIMEDOUT;
}

static int virtual_wait(struct machine *m, bool (*done)(void *arg), void *arg, int64_t deadline)
{
	struct virtual *v = (struct virtual *)m;
	int rc;

	assert(!v->looping && "machine_wait from inside machine_wait");
	v->looping = true;
	rc = loop_run(v, done, arg, deadline);
	v->looping = false;
	return rc;
}

static void virtual_cpus(struct machine *m, struct cpuset *out)
{
	*out = ((struct virtual *)m)->cpus_all;
}

/* Who waits here looks after every event anyway. */
static void virtual_notify(struct machine *m)
{
	(void)m;
}

/* Steps are atomic: but for the one that is being made, every runner is between two of them. */
static void virtual_quiesce(struct machine *m)
{
	(void)m;
}

static void virtual_idle_times(struct machine *m, int64_t *idle, unsigned n)
{
	struct virtual *v = (struct virtual *)m;

	for (unsigned i = 0; i < n; i++) {
		idle[i] = 0;
		if (i >= v->config.cpus)
			continue;
		virtual_cpu_account(v, &v->cpus[i]);
		idle[i] = v->cpus[i].idle_time;
	}
}

static void call_remove(struct virtual *v, struct virtual_call *c)
{
	*(c->prev ? &c->prev->next : &v->calls) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	virtual_event_cancel(v, &c->event);
	virtual_event_unreserve(v);
	free(c);
}

static void virtual_destroy(struct machine *m)
{
	struct virtual *v = (struct virtual *)m;

	assert(!v->runners && "machine_destroy before runner_stop");
	while (v->calls)
		call_remove(v, v->calls);
	free(v->events.slots);
	free(v->cpus);
	free(v);
}

/* A stream of its own: what is drawn for it does not change what else the seed decides. */
static void virtual_entropy(struct machine *m, void *out, size_t size)
{
	struct random random = {random_mix(((struct virtual *)m)->config.seed)};
	uint8_t *at = out;

	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)(random_next(&random) >> 56);
}

static const struct machine_ops virtual_ops = {
	.name = "virtual",
	.now = virtual_now,
	.cpus = virtual_cpus,
	.runner_start = virtual_runner_start,
	.runner_stop = virtual_runner_stop,
	.runner_wake = virtual_runner_wake,
	.runner_place = virtual_runner_place,
	.runner_observe = virtual_runner_observe,
	.runner_usage = virtual_runner_usage,
	.idle_times = virtual_idle_times,
	.irq_attach = virtual_irq_attach,
	.irq_detach = virtual_irq_detach,
	.irq_mask = virtual_irq_mask,
	.irq_unmask = virtual_irq_unmask,
	.irq_raise = virtual_irq_raise,
	.irq_arm = virtual_irq_arm,
	.wait = virtual_wait,
	.notify = virtual_notify,
	.quiesce = virtual_quiesce,
	.charge = virtual_charge,
	.entropy = virtual_entropy,
	.destroy = virtual_destroy,
};

static int64_t or_default(int64_t value, int64_t otherwise)
{
	return value ? value : otherwise;
}

static bool config_valid(const struct virtual_config *config)
{
	return config->cpus <= CPU_MAX && config->step_ns >= 0 && config->irq_ns >= 0 &&
	       config->switch_ns >= 0 && config->tick_ns >= 0 && config->jitter_percent <= 1000;
}

int machine_virtual_create(const struct virtual_config *config, struct machine **out)
{
	struct virtual *v;

	if (!config_valid(config))
		return -EINVAL;
	v = calloc(1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->base.ops = &virtual_ops;
	v->config = *config;
	v->config.cpus = config->cpus ? config->cpus : 2;
	v->config.step_ns = or_default(config->step_ns, 500);
	v->config.irq_ns = or_default(config->irq_ns, 1000);
	v->config.switch_ns = or_default(config->switch_ns, 1000);
	v->config.tick_ns = or_default(config->tick_ns, 4 * NSEC_PER_MSEC);
	v->random.state = config->seed;
	v->cpus = calloc(v->config.cpus, sizeof(*v->cpus));
	if (!v->cpus)
		goto no_memory;
	for (unsigned i = 0; i < v->config.cpus; i++) {
		/* Its own event, and its tick. */
		if (virtual_event_reserve(v) || virtual_event_reserve(v))
			goto no_memory;
		v->cpus[i].index = i;
		virtual_cpu_init(v, &v->cpus[i]);
	}
	v->cpus_idle = v->cpus_all;
	*out = &v->base;
	return 0;

no_memory:
	free(v->events.slots);
	free(v->cpus);
	free(v);
	return -ENOMEM;
}

static struct virtual *virtual_of(struct machine *m)
{
	assert(m->ops == &virtual_ops);
	return (struct virtual *)m;
}

void machine_virtual_stats(struct machine *m, struct virtual_stats *out)
{
	*out = virtual_of(m)->stats;
}

int machine_virtual_describe(struct machine *m, char *text, size_t size)
{
	struct virtual *v = virtual_of(m);

	return snprintf(text, size,
			"virtual machine: seed %" PRIu64 ", %" PRId64
			".%03dus, trace hash %016" PRIx64 ", last step by %s%s",
			v->config.seed, v->now / 1000, (int)(v->now % 1000), v->stats.trace_hash,
			*v->last ? v->last : "nobody",
			v->same_time > VIRTUAL_SAME_TIME_MAX ? ", time does not go on" : "");
}

int machine_virtual_run(struct machine *m, int64_t until)
{
	return virtual_wait(&virtual_of(m)->base, NULL, NULL, until) == -ELOOP ? -ELOOP : 0;
}

uint64_t machine_virtual_draw(struct machine *m, uint64_t n)
{
	assert(n > 0);
	return virtual_draw(virtual_of(m), n);
}

static void call_fire(struct virtual *v, struct virtual_event *e)
{
	struct virtual_call *c =
		(struct virtual_call *)((char *)e - offsetof(struct virtual_call, event));
	void (*call)(void *arg) = c->call;
	void *arg = c->arg;

	virtual_trace(v, TRACE_CALL, NULL, NULL, 0, 0);
	call_remove(v, c);
	v->calling = true;
	call(arg);
	v->calling = false;
}

int machine_virtual_call_at(struct machine *m, int64_t when, void (*call)(void *arg), void *arg)
{
	struct virtual *v = virtual_of(m);
	struct virtual_call *c = calloc(1, sizeof(*c));

	if (!c || virtual_event_reserve(v)) {
		free(c);
		return -ENOMEM;
	}
	c->event.fire = call_fire;
	c->call = call;
	c->arg = arg;
	c->next = v->calls;
	if (c->next)
		c->next->prev = c;
	v->calls = c;
	virtual_event_set(v, &c->event, when > v->now ? when : v->now);
	return 0;
}

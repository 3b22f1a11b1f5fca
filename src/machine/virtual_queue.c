/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of runnable runners on a CPU. Queues are sorted lists: on a CPU they are short, they
 * need no memory when a runner is woken, and who balances has to walk them in order anyway.
 */
#include <assert.h>

#include "machine/virtual.h"

/* Each level of nice is a quarter more or less CPU; nice 0 is 1024. */
int64_t virtual_weight(int nice)
{
	int64_t weight = INT64_C(1024) << 20;

	for (; nice < 0; nice++)
		weight = weight * 5 / 4;
	for (; nice > 0; nice--)
		weight = weight * 4 / 5;
	return weight >> 20;
}

static bool runner_before(const struct virtual_runner *a, const struct virtual_runner *b)
{
	if (a->placement.class == RUNNER_FIFO) {
		if (a->placement.level != b->placement.level)
			return a->placement.level > b->placement.level;
	} else if (a->vruntime != b->vruntime) {
		return a->vruntime < b->vruntime;
	}
	return a->order < b->order;
}

/* Among fair runners of equal vruntime the seed decides, among FIFO ones the order they came in. */
void virtual_queue_renew(struct virtual *v, struct virtual_runner *r)
{
	r->order = ++v->order;
	if (r->placement.class == RUNNER_FAIR)
		r->order = (r->order & UINT32_MAX) | random_next(&v->random) << 32;
}

void virtual_queue_add(struct virtual *v, struct virtual_cpu *c, struct virtual_runner *r,
		       bool behind)
{
	struct virtual_queue *q = &c->queue[r->placement.class];
	struct virtual_runner *at = q->last; /* goes behind this one */

	if (behind)
		virtual_queue_renew(v, r);
	while (at && runner_before(r, at))
		at = at->prev;
	r->prev = at;
	r->next = at ? at->next : q->first;
	*(r->prev ? &r->prev->next : &q->first) = r;
	*(r->next ? &r->next->prev : &q->last) = r;
	q->count++;
	v->queued[r->placement.class]++;
	r->cpu = c;
	r->state = RUNNER_QUEUED;
	r->queued_at = v->now;
	v->cpus_idle.bits[c->index / 64] &= ~(UINT64_C(1) << (c->index % 64));
}

void virtual_queue_remove(struct virtual *v, struct virtual_runner *r)
{
	struct virtual_queue *q = &r->cpu->queue[r->placement.class];

	assert(r->state == RUNNER_QUEUED && q->count);
	*(r->prev ? &r->prev->next : &q->first) = r->next;
	*(r->next ? &r->next->prev : &q->last) = r->prev;
	r->next = r->prev = NULL;
	r->ready_time += v->now - r->queued_at;
	q->count--;
	v->queued[r->placement.class]--;
}

bool virtual_queue_preempts(const struct virtual *v, const struct virtual_runner *a,
			    const struct virtual_runner *b)
{
	if (a->placement.class != b->placement.class)
		return a->placement.class == RUNNER_FIFO;
	if (a->placement.class == RUNNER_FIFO)
		return a->placement.level > b->placement.level;
	return b->vruntime - a->vruntime > v->config.tick_ns / 4;
}

unsigned virtual_queue_load(const struct virtual_cpu *c, enum runner_class class)
{
	return c->queue[class].count + (c->current && c->current->placement.class == class);
}

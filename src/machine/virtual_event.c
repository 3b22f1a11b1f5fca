/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A binary heap of pending events. Keys are kept in the slots, so that sifting touches no event but
 * to tell it its place.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "machine/virtual.h"

int virtual_event_reserve(struct virtual *v)
{
	struct virtual_event_heap *h = &v->events;

	if (h->reserved + 2 > h->size) {
		uint32_t size = h->size ? h->size * 2 : 64;
		struct virtual_event_slot *slots = realloc(h->slots, size * sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		h->slots = slots;
		h->size = size;
	}
	h->reserved++;
	return 0;
}

void virtual_event_unreserve(struct virtual *v)
{
	assert(v->events.reserved > v->events.count);
	v->events.reserved--;
}

static bool slot_before(const struct virtual_event_slot *a, const struct virtual_event_slot *b)
{
	return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void slot_put(struct virtual_event_heap *h, uint32_t index, struct virtual_event_slot slot)
{
	h->slots[index] = slot;
	slot.event->index = index;
}

static void sift_up(struct virtual_event_heap *h, uint32_t index, struct virtual_event_slot slot)
{
	while (index > 1 && slot_before(&slot, &h->slots[index / 2])) {
		slot_put(h, index, h->slots[index / 2]);
		index /= 2;
	}
	slot_put(h, index, slot);
}

static void sift_down(struct virtual_event_heap *h, uint32_t index, struct virtual_event_slot slot)
{
	for (;;) {
		uint32_t child = index * 2;

		if (child > h->count)
			break;
		if (child < h->count && slot_before(&h->slots[child + 1], &h->slots[child]))
			child++;
		if (slot_before(&slot, &h->slots[child]))
			break;
		slot_put(h, index, h->slots[child]);
		index = child;
	}
	slot_put(h, index, slot);
}

/* The slot goes to this place, or wherever from there it belongs. */
static void slot_settle(struct virtual_event_heap *h, uint32_t index,
			struct virtual_event_slot slot)
{
	if (index > 1 && slot_before(&slot, &h->slots[index / 2]))
		sift_up(h, index, slot);
	else
		sift_down(h, index, slot);
}

void virtual_event_set(struct virtual *v, struct virtual_event *e, int64_t time)
{
	struct virtual_event_heap *h = &v->events;

	e->time = time;
	e->order = h->order++;
	if (!e->index) {
		assert(h->count < h->reserved);
		e->index = ++h->count;
	}
	slot_settle(h, e->index, (struct virtual_event_slot){time, e->order, e});
}

void virtual_event_cancel(struct virtual *v, struct virtual_event *e)
{
	struct virtual_event_heap *h = &v->events;
	uint32_t index = e->index;
	struct virtual_event_slot moved;

	if (!index)
		return;
	e->index = 0;
	moved = h->slots[h->count--];
	if (moved.event != e)
		slot_settle(h, index, moved);
}

struct virtual_event *virtual_event_first(struct virtual *v)
{
	return v->events.count ? v->events.slots[1].event : NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include <handler/neighbour.h>

#define BUCKETS_MIN 1 /* has places enough for a limit below NEIGHBOUR_WAYS */
#define MAC_MASK UINT64_C(0xffffffffffff)
#define STATE_SHIFT 48

static uint64_t word(const struct neighbour *e)
{
	return atomic_load_explicit(&((struct neighbour *)e)->mac, memory_order_relaxed);
}

static enum neighbour_state state_of(const struct neighbour *e)
{
	return (enum neighbour_state)(word(e) >> STATE_SHIFT);
}

static void state_set(struct neighbour *e, enum neighbour_state state, uint64_t mac, uint32_t now)
{
	atomic_store_explicit(&e->mac, (mac & MAC_MASK) | (uint64_t)state << STATE_SHIFT,
			      memory_order_release);
	e->since = now;
	e->probes = 0;
}

int neighbours_create(uint32_t limit, const uint64_t seed[2], struct neighbours **out)
{
	uint32_t buckets = limit * NEIGHBOUR_SPARE / NEIGHBOUR_WAYS;
	struct neighbours *t = aligned_alloc(_Alignof(struct neighbours), sizeof(*t));
	size_t size;
	int rc = -ENOMEM;

	if (!t)
		return rc;
	memset(t, 0, sizeof(*t));
	if (buckets < BUCKETS_MIN)
		buckets = BUCKETS_MIN;
	size = (size_t)buckets * NEIGHBOUR_WAYS * sizeof(*t->place);
	t->place = aligned_alloc(_Alignof(struct neighbour), size);
	if (t->place) {
		memset(t->place, 0, size);
		rc = lock_init(&t->lock);
	}
	if (rc) {
		free(t->place);
		free(t);
		return rc;
	}
	t->mask = buckets - 1;
	t->limit = limit;
	t->seed[0] = seed[0];
	t->seed[1] = seed[1] | 1;
	*out = t;
	return 0;
}

void neighbours_destroy(struct neighbours *t)
{
	lock_destroy(&t->lock);
	free(t->place);
	free(t);
}

uint32_t neighbours_places(const struct neighbours *t)
{
	return (t->mask + 1) * NEIGHBOUR_WAYS;
}

static struct neighbour *bucket_of(const struct neighbours *t, uint32_t port, struct ip ip)
{
	unsigned __int128 product =
		(unsigned __int128)(ip.low ^ t->seed[0]) * (t->seed[1] ^ (ip.high * 2 + port * 2));
	uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);

	hash *= t->seed[1];
	return &t->place[((hash >> 32) & t->mask) * NEIGHBOUR_WAYS];
}

static bool key_is(const struct neighbour *entry, uint32_t port, struct ip ip)
{
	struct neighbour *e = (struct neighbour *)entry;

	return atomic_load_explicit(&e->low, memory_order_relaxed) == ip.low &&
	       atomic_load_explicit(&e->high, memory_order_relaxed) == ip.high &&
	       atomic_load_explicit(&e->port, memory_order_relaxed) == port;
}

enum neighbour_answer neighbour_find(struct neighbours *t, uint32_t port, struct ip ip,
				     uint32_t now, uint64_t *mac)
{
	struct neighbour *e = bucket_of(t, port, ip);

	for (int i = 0; i < NEIGHBOUR_WAYS; i++, e++) {
		uint32_t sequence = atomic_load_explicit(&e->sequence, memory_order_acquire);
		uint64_t found;
		bool match;

		match = key_is(e, port, ip);
		found = atomic_load_explicit(&e->mac, memory_order_acquire);
		if (!match || found >> STATE_SHIFT == NEIGHBOUR_FREE)
			continue;
		atomic_thread_fence(memory_order_acquire);
		/* The place is being given to another: its owner finds out under the lock. */
		if (sequence & 1 ||
		    atomic_load_explicit(&e->sequence, memory_order_relaxed) != sequence)
			return NEIGHBOUR_ASK;
		if (found >> STATE_SHIFT == NEIGHBOUR_FAILED)
			return NEIGHBOUR_GONE;
		if (found >> STATE_SHIFT == NEIGHBOUR_INCOMPLETE)
			return NEIGHBOUR_ASK;
		if (atomic_load_explicit(&e->used, memory_order_relaxed) != now)
			atomic_store_explicit(&e->used, now, memory_order_relaxed);
		*mac = found & MAC_MASK;
		return NEIGHBOUR_KNOWN;
	}
	return NEIGHBOUR_ASK;
}

static struct neighbour *locate(struct neighbours *t, uint32_t port, struct ip ip)
{
	struct neighbour *e = bucket_of(t, port, ip);

	for (int i = 0; i < NEIGHBOUR_WAYS; i++, e++)
		if (state_of(e) != NEIGHBOUR_FREE && key_is(e, port, ip))
			return e;
	return NULL;
}

static struct packet *waiting_take(struct neighbour *e)
{
	struct packet *first = e->first;

	e->first = NULL;
	e->last = NULL;
	e->waiting = 0;
	return first;
}

/* Nothing waits for it. */
static void forget(struct neighbours *t, struct neighbour *e, uint32_t now)
{
	state_set(e, NEIGHBOUR_FREE, 0, now);
	atomic_fetch_sub_explicit(&t->entries, 1, memory_order_relaxed);
}

/* One that can be given up: the longest unused of those that nothing waits for. */
static struct neighbour *victim(struct neighbour *bucket, uint32_t now)
{
	struct neighbour *oldest = NULL;

	for (struct neighbour *e = bucket; e < bucket + NEIGHBOUR_WAYS; e++) {
		enum neighbour_state state = state_of(e);

		if (state != NEIGHBOUR_STALE && state != NEIGHBOUR_FAILED)
			continue;
		if (!oldest || now - e->used > now - oldest->used)
			oldest = e;
	}
	return oldest;
}

static struct neighbour *place_find(struct neighbours *t, struct neighbour *bucket, uint32_t now)
{
	bool full = t->entries >= t->limit;
	struct neighbour *e;

	for (int i = 0; i < NEIGHBOUR_WAYS && !full; i++)
		if (state_of(&bucket[i]) == NEIGHBOUR_FREE)
			return &bucket[i];
	e = victim(bucket, now);
	/*
	 * At the limit others are looked through as well, or strangers there would stay for ten
	 * minutes. Only some at a time: who makes us answer ever new neighbours must not make each
	 * answer cost the whole table.
	 */
	for (uint32_t i = 0; full && !e && i < NEIGHBOUR_LOOK && i <= t->mask; i++)
		e = victim(&t->place[(t->look++ & t->mask) * NEIGHBOUR_WAYS], now);
	if (!e)
		return NULL;
	forget(t, e, now);
	if (e >= bucket && e < bucket + NEIGHBOUR_WAYS)
		return e;
	for (int i = 0; i < NEIGHBOUR_WAYS; i++)
		if (state_of(&bucket[i]) == NEIGHBOUR_FREE)
			return &bucket[i];
	return NULL;
}

static struct neighbour *entry_make(struct neighbours *t, uint32_t port, struct ip ip, uint32_t now)
{
	struct neighbour *e = place_find(t, bucket_of(t, port, ip), now);
	uint32_t sequence;

	if (!e) {
		atomic_fetch_add_explicit(&t->full, 1, memory_order_relaxed);
		return NULL;
	}
	sequence = atomic_load_explicit(&e->sequence, memory_order_relaxed);
	atomic_store_explicit(&e->sequence, sequence + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&e->port, port, memory_order_relaxed);
	atomic_store_explicit(&e->high, ip.high, memory_order_relaxed);
	atomic_store_explicit(&e->low, ip.low, memory_order_relaxed);
	state_set(e, NEIGHBOUR_INCOMPLETE, 0, now);
	atomic_store_explicit(&e->used, now, memory_order_relaxed);
	atomic_store_explicit(&e->sequence, sequence + 2, memory_order_release);
	atomic_fetch_add_explicit(&t->entries, 1, memory_order_relaxed);
	return e;
}

static bool has_mac(enum neighbour_state state)
{
	return state == NEIGHBOUR_REACHABLE || state == NEIGHBOUR_STALE || state == NEIGHBOUR_PROBE;
}

enum neighbour_answer neighbour_wait(struct neighbours *t, uint32_t port, struct ip ip,
				     uint32_t now, struct packet **p, uint64_t *mac, bool *ask)
{
	enum neighbour_answer answer = NEIGHBOUR_ASK;
	struct neighbour *e;

	*ask = false;
	lock_acquire(&t->lock);
	e = locate(t, port, ip);
	if (!e) {
		e = entry_make(t, port, ip, now);
		*ask = e;
	} else if (has_mac(state_of(e))) {
		*mac = word(e) & MAC_MASK;
		answer = NEIGHBOUR_KNOWN;
	} else if (state_of(e) == NEIGHBOUR_FAILED) {
		state_set(e, NEIGHBOUR_INCOMPLETE, 0, now);
		*ask = true;
	}
	if (e && answer == NEIGHBOUR_ASK && e->waiting < NEIGHBOUR_WAITING) {
		(*p)->next = NULL;
		if (e->first)
			e->last->next = *p;
		else
			e->first = *p;
		e->last = *p;
		e->waiting++;
		*p = NULL;
	}
	lock_release(&t->lock);
	return answer;
}

/* What follows from the news for an entry that has a MAC address (RFC 4861, 7.2.5). */
static void update(struct neighbour *e, uint64_t mac, unsigned news, uint32_t now)
{
	bool differs = (word(e) & MAC_MASK) != mac;

	if (differs && !(news & NEIGHBOUR_OVERRIDE)) {
		if (state_of(e) == NEIGHBOUR_REACHABLE)
			state_set(e, NEIGHBOUR_STALE, word(e), now);
		return;
	}
	if (news & NEIGHBOUR_ANSWER)
		state_set(e, NEIGHBOUR_REACHABLE, mac, now);
	else if (differs)
		state_set(e, NEIGHBOUR_STALE, mac, now);
}

struct packet *neighbour_confirm(struct neighbours *t, uint32_t port, struct ip ip, uint64_t mac,
				 unsigned news, uint32_t now)
{
	struct packet *ready = NULL;
	struct neighbour *e;

	lock_acquire(&t->lock);
	e = locate(t, port, ip);
	if (e && has_mac(state_of(e))) {
		update(e, mac, news, now);
	} else if (e) {
		state_set(e, news & NEIGHBOUR_ANSWER ? NEIGHBOUR_REACHABLE : NEIGHBOUR_STALE, mac,
			  now);
		atomic_fetch_add_explicit(&t->resolved, 1, memory_order_relaxed);
		ready = waiting_take(e);
	}
	lock_release(&t->lock);
	for (struct packet *p = ready; p; p = p->next)
		mac_store(p->data, mac);
	return ready;
}

/* Asked once more, or given up. True: ask. */
static bool probe(struct neighbours *t, struct neighbour *e, uint32_t now, struct packet **dropped)
{
	if (++e->probes < NEIGHBOUR_PROBES)
		return true;
	state_set(e, NEIGHBOUR_FAILED, 0, now);
	atomic_fetch_add_explicit(&t->unresolved, 1, memory_order_relaxed);
	*dropped = waiting_take(e);
	return false;
}

static bool step(struct neighbours *t, struct neighbour *e, uint32_t now, struct packet **dropped)
{
	uint32_t age = now - e->since, used = atomic_load_explicit(&e->used, memory_order_relaxed);

	switch (state_of(e)) {
	case NEIGHBOUR_INCOMPLETE:
	case NEIGHBOUR_PROBE:
		return probe(t, e, now, dropped);
	case NEIGHBOUR_REACHABLE:
		if (age >= NEIGHBOUR_REACHABLE_S)
			state_set(e, NEIGHBOUR_STALE, word(e), now);
		return false;
	case NEIGHBOUR_STALE:
		if ((int32_t)(used - e->since) > 0) {
			state_set(e, NEIGHBOUR_PROBE, word(e), now);
			return true;
		}
		if (age >= NEIGHBOUR_STALE_S)
			forget(t, e, now);
		return false;
	case NEIGHBOUR_FAILED:
		if (age >= NEIGHBOUR_FAILED_S)
			forget(t, e, now);
		return false;
	default:
		return false;
	}
}

bool neighbour_step(struct neighbours *t, uint32_t i, uint32_t now, struct neighbour_question *out,
		    struct packet **dropped)
{
	struct neighbour *e = &t->place[i];
	bool ask;

	*dropped = NULL;
	/* Most places are free. */
	if (state_of(e) == NEIGHBOUR_FREE)
		return false;
	lock_acquire(&t->lock);
	ask = step(t, e, now, dropped);
	out->port = e->port;
	out->ip = (struct ip){e->high, e->low};
	out->mac = state_of(e) == NEIGHBOUR_PROBE ? word(e) & MAC_MASK : 0;
	lock_release(&t->lock);
	return ask;
}

struct packet *neighbours_purge(struct neighbours *t, uint32_t port)
{
	struct packet *all = NULL;

	lock_acquire(&t->lock);
	for (uint32_t i = 0; i < neighbours_places(t); i++) {
		struct neighbour *e = &t->place[i];

		if (state_of(e) == NEIGHBOUR_FREE || e->port != port)
			continue;
		if (e->first) {
			e->last->next = all;
			all = waiting_take(e);
		}
		forget(t, e, 0);
	}
	lock_release(&t->lock);
	return all;
}

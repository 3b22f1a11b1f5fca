/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <handler/fdb.h>

#define BUCKETS_MIN 256 /* in fewer, chance finds too few ways out of full ones */

int fdb_create(uint32_t entries, struct fdb **out)
{
	uint32_t wished = entries / (FDB_WAYS / FDB_SPARE);
	uint32_t buckets = wished < BUCKETS_MIN ? BUCKETS_MIN : wished;
	size_t size = (size_t)buckets * sizeof(struct fdb_bucket);
	struct fdb *t;
	int rc = -ENOMEM;

	if (!entries || entries & (entries - 1) || entries > FDB_ENTRIES_MAX)
		return -EINVAL;
	t = aligned_alloc(64, sizeof(*t));
	if (!t)
		return rc;
	memset(t, 0, sizeof(*t));
	t->bucket = aligned_alloc(64, size);
	if (!t->bucket)
		goto no_buckets;
	/* The memory is touched here, not on the packet path. */
	memset(t->bucket, 0, size);
	t->mask = buckets - 1;
	t->limit = entries;
	rc = getrandom(t->seed, sizeof(t->seed), 0) == sizeof(t->seed) ? 0 : -errno;
	if (rc)
		goto no_seed;
	t->seed[1] |= 1;
	rc = lock_init(&t->lock);
	if (rc)
		goto no_seed;
	*out = t;
	return 0;

no_seed:
	free(t->bucket);
no_buckets:
	free(t);
	return rc;
}

void fdb_destroy(struct fdb *t)
{
	lock_destroy(&t->lock);
	free(t->bucket);
	free(t);
}

/* Counters of the table change under its lock only, so they have one writer at a time. */
static void count(_Atomic uint64_t *c)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static void entries_set(struct fdb *t, uint32_t n)
{
	atomic_store_explicit(&t->entries, n, memory_order_relaxed);
}

static struct fdb_entry *place_in(struct fdb_bucket *b)
{
	for (unsigned i = 0; i < FDB_WAYS; i++) {
		if (!atomic_load_explicit(&b->entry[i].key, memory_order_relaxed))
			return &b->entry[i];
	}
	return NULL;
}

/* The first bucket if it has room: most lookups then end there. */
static struct fdb_entry *place_find(struct fdb *t, uint64_t key)
{
	uint64_t hash = fdb_hash(t, key);
	struct fdb_entry *place = place_in(fdb_first(t, hash));

	return place ? place : place_in(fdb_second(t, hash));
}

static void place_fill(struct fdb_entry *e, uint64_t key, uint32_t port, uint32_t stamp)
{
	atomic_store_explicit(&e->port, port, memory_order_release);
	atomic_store_explicit(&e->stamp, stamp, memory_order_relaxed);
	atomic_store_explicit(&e->key, key, memory_order_release);
}

/*
 * A purge that is under way. While one reads the table, an entry that it has yet to come to may be
 * moved to a place that it has passed; so who moves one looks here first.
 */
struct fdb_purge {
	uint32_t port, vid; /* whatever says FDB_ANY, or 0 for idle, does not matter */
	uint32_t idle;	    /* not seen for more than this many seconds, at `now` */
	uint32_t now;
	struct fdb_purge *next;
};

static bool matches(const struct fdb_entry *e, const struct fdb_purge *purge)
{
	uint64_t key = atomic_load_explicit(&e->key, memory_order_acquire);

	if (!key)
		return false;
	if (purge->port != FDB_ANY &&
	    atomic_load_explicit(&e->port, memory_order_relaxed) != purge->port)
		return false;
	if (purge->vid != FDB_ANY && (key >> 48 & 0xfff) != purge->vid)
		return false;
	/* Runners may be ahead of the caller's now: a difference below 0 is fresh. */
	return !purge->idle ||
	       (int32_t)(purge->now - atomic_load_explicit(&e->stamp, memory_order_relaxed)) >
		       (int32_t)purge->idle;
}

/* Under the lock. */
static void forget(struct fdb *t, struct fdb_entry *e, const struct fdb_purge *purge)
{
	atomic_store_explicit(&e->key, 0, memory_order_relaxed);
	entries_set(t, fdb_entries(t) - 1);
	if (purge->idle)
		count(&t->aged);
}

static const struct fdb_purge *purge_of(const struct fdb *t, const struct fdb_entry *e)
{
	for (const struct fdb_purge *purge = t->purging; purge; purge = purge->next)
		if (matches(e, purge))
			return purge;
	return NULL;
}

/*
 * Both buckets are full: one of those in them goes to its other bucket. A lookup beside this may
 * miss that address once, as if it had not been learnt yet.
 */
static struct fdb_entry *place_make(struct fdb *t, struct fdb_bucket *b)
{
	for (unsigned i = 0; i < FDB_WAYS; i++) {
		struct fdb_entry *e = &b->entry[i], *other;
		uint64_t key = atomic_load_explicit(&e->key, memory_order_relaxed);
		const struct fdb_purge *purge = purge_of(t, e);

		if (purge) {
			forget(t, e, purge);
			return e;
		}
		other = place_find(t, key);
		if (!other)
			continue;
		place_fill(other, key, atomic_load_explicit(&e->port, memory_order_relaxed),
			   atomic_load_explicit(&e->stamp, memory_order_relaxed));
		t->relocated++;
		atomic_store_explicit(&e->key, 0, memory_order_release);
		return e;
	}
	return NULL;
}

/* Under the lock. NULL: there is none to be had. */
static struct fdb_entry *place_for(struct fdb *t, uint64_t key)
{
	uint64_t hash = fdb_hash(t, key);
	struct fdb_entry *place = place_find(t, key);

	if (!place)
		place = place_make(t, fdb_first(t, hash));
	if (!place)
		place = place_make(t, fdb_second(t, hash));
	return place;
}

bool fdb_learn(struct fdb *t, uint64_t key, uint32_t port, uint32_t now)
{
	struct fdb_entry *e;
	bool known = false;

	/* A full table meets new addresses at the rate of packets: do not take the lock for each.
	 */
	if (fdb_entries(t) >= t->limit && !fdb_locate(t, key))
		return false;
	lock_acquire(&t->lock);
	e = fdb_locate(t, key);
	if (e) {
		known = true;
		if (atomic_load_explicit(&e->port, memory_order_relaxed) != port) {
			atomic_store_explicit(&e->port, port, memory_order_release);
			count(&t->moved);
		}
		atomic_store_explicit(&e->stamp, now, memory_order_relaxed);
	} else if (fdb_entries(t) < t->limit && (e = place_for(t, key))) {
		known = true;
		place_fill(e, key, port, now);
		entries_set(t, fdb_entries(t) + 1);
		count(&t->learned);
	}
	lock_release(&t->lock);
	return known;
}

static void purge_run(struct fdb *t, struct fdb_purge *purge)
{
	struct fdb_purge **at = &t->purging;

	lock_acquire(&t->lock);
	purge->next = t->purging;
	t->purging = purge;
	lock_release(&t->lock);
	for (uint32_t i = 0; i < (t->mask + 1) * FDB_WAYS; i++) {
		struct fdb_entry *e = &t->bucket[i / FDB_WAYS].entry[i % FDB_WAYS];

		/* The first look is without the lock: most stay. */
		if (!matches(e, purge))
			continue;
		lock_acquire(&t->lock);
		if (matches(e, purge))
			forget(t, e, purge);
		lock_release(&t->lock);
	}
	lock_acquire(&t->lock);
	while (*at != purge)
		at = &(*at)->next;
	*at = purge->next;
	lock_release(&t->lock);
}

void fdb_purge(struct fdb *t, uint32_t port, uint32_t vid)
{
	purge_run(t, &(struct fdb_purge){.port = port, .vid = vid});
}

/* The oldest stamp of all, or now. */
static uint32_t oldest(const struct fdb *t, uint32_t now)
{
	uint32_t stamp = now;

	for (uint32_t i = 0; i < (t->mask + 1) * FDB_WAYS; i++) {
		struct fdb_entry *e = &t->bucket[i / FDB_WAYS].entry[i % FDB_WAYS];
		uint32_t s = atomic_load_explicit(&e->stamp, memory_order_relaxed);

		if (atomic_load_explicit(&e->key, memory_order_acquire) && (int32_t)(s - stamp) < 0)
			stamp = s;
	}
	return stamp;
}

void fdb_age(struct fdb *t, uint32_t now, uint32_t seconds)
{
	uint64_t relocated;

	/* Stamps only grow, so the table need not be read again before the oldest can be due. */
	if (!fdb_entries(t) || (int32_t)(now - t->due) < 0)
		return;
	purge_run(t, &(struct fdb_purge){
			     .port = FDB_ANY, .vid = FDB_ANY, .idle = seconds, .now = now});
	relocated = t->relocated;
	t->due = oldest(t, now) + seconds + 1;
	/* The oldest may be the one that was moved out of sight: look again the next time. */
	if (t->relocated != relocated)
		t->due = now;
}

uint32_t fdb_copy(const struct fdb *t, uint32_t *position, struct fdb_copy *out, uint32_t n)
{
	uint32_t copied = 0;

	for (; copied < n && *position < (t->mask + 1) * FDB_WAYS; ++*position) {
		const struct fdb_entry *e =
			&t->bucket[*position / FDB_WAYS].entry[*position % FDB_WAYS];
		struct fdb_copy *c = &out[copied];

		c->key = atomic_load_explicit(&e->key, memory_order_acquire);
		c->port = atomic_load_explicit(&e->port, memory_order_acquire);
		c->stamp = atomic_load_explicit(&e->stamp, memory_order_relaxed);
		if (c->key && atomic_load_explicit(&e->key, memory_order_relaxed) == c->key)
			copied++;
	}
	return copied;
}

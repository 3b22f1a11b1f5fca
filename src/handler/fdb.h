/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The forwarding table of a bridge: which port an address was last seen on.
 *
 * A hash of buckets of one cache line, four entries each; an address has two buckets it may be
 * in, chosen by a hash with a seed of its own, so that nobody outside can make addresses collide.
 * There are twice as many places as the limit allows entries, and an entry goes to its other bucket
 * to make room: of new addresses at the limit less than one in 10^7 finds no place.
 *
 * Lookups take no lock and write nothing. An address that is known where it is learnt costs a
 * lookup, and one store a second. Only what changes the table takes its lock.
 *
 *  call                    | beside             | lock
 *  ------------------------+--------------------+---------------------
 *  fdb_find, fdb_seen      | anything           | none
 *  fdb_learn               | anything           | taken inside
 *  fdb_purge, fdb_age      | anything but age   | taken inside, an entry at a time; none is
 *                          |                    | missed for being moved meanwhile
 *  fdb_copy, fdb_entries   | anything           | none
 *
 * A place is reused in this order: key = 0, port, key = the new one; port and key are release
 * stores. A reader looks at key, port and key again, with acquire: seeing the port of the new
 * owner it cannot see the key of the old one any more. Only if the place goes to another address
 * and back within those three loads may one frame take the other's way, as after a move; what VLAN
 * it may leave by is looked at after that.
 */
#ifndef HANDLER_FDB_H
#define HANDLER_FDB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <machine/lock.h>

#define FDB_WAYS 4
#define FDB_SPARE 2 /* places per entry of the limit */
#define FDB_ENTRIES_MAX (1u << 22)
#define FDB_USED (UINT64_C(1) << 63)

/* Any address, in the order of the wire in the lowest 48 bits; then the VLAN. Never 0. */
static inline uint64_t fdb_key(uint64_t address, uint16_t vid)
{
	return FDB_USED | (uint64_t)vid << 48 | address;
}

struct fdb_entry {
	_Atomic uint64_t key; /* 0: free */
	_Atomic uint32_t port;
	_Atomic uint32_t stamp; /* s of the machine's time, when it was last seen */
};

struct fdb_bucket {
	struct fdb_entry entry[FDB_WAYS];
} __attribute__((aligned(64)));

struct fdb {
	struct fdb_bucket *bucket;
	uint32_t mask; /* buckets - 1 */
	uint32_t limit;
	uint64_t seed[2];
	/* What is written lies apart from what every lookup reads. */
	struct lock lock __attribute__((aligned(64)));
	_Atomic uint32_t entries;
	_Atomic uint64_t learned, moved, aged;
	_Atomic uint64_t relocated; /* entries that made room, to their other bucket */
	struct fdb_purge *purging;  /* purges under way; under the lock */
	uint32_t due;		    /* nothing can be too old before; fdb_age's own */
};

/* entries: a power of two up to FDB_ENTRIES_MAX. -EINVAL, -ENOMEM, what getrandom says. */
int fdb_create(uint32_t entries, struct fdb **out);
void fdb_destroy(struct fdb *t);

static inline uint64_t fdb_hash(const struct fdb *t, uint64_t key)
{
	unsigned __int128 product = (unsigned __int128)(key ^ t->seed[0]) * t->seed[1];
	uint64_t hash = (uint64_t)product ^ (uint64_t)(product >> 64);

	/* Once more, or addresses that count up would fall into a pattern. */
	hash *= t->seed[1];
	return hash ^ hash >> 32;
}

/* Ends at the first hit: comparing all eight places without a branch took twice as long. */
static inline struct fdb_entry *fdb_bucket_find(struct fdb_bucket *b, uint64_t key)
{
	for (unsigned i = 0; i < FDB_WAYS; i++) {
		if (atomic_load_explicit(&b->entry[i].key, memory_order_acquire) == key)
			return &b->entry[i];
	}
	return NULL;
}

static inline struct fdb_bucket *fdb_first(const struct fdb *t, uint64_t hash)
{
	return &t->bucket[hash & t->mask];
}

/* Never the first one again. */
static inline struct fdb_bucket *fdb_second(const struct fdb *t, uint64_t hash)
{
	return &t->bucket[(hash ^ (hash >> 32 | 1)) & t->mask];
}

static inline struct fdb_entry *fdb_locate(const struct fdb *t, uint64_t key)
{
	uint64_t hash = fdb_hash(t, key);
	struct fdb_entry *e = fdb_bucket_find(fdb_first(t, hash), key);

	return e ? e : fdb_bucket_find(fdb_second(t, hash), key);
}

/* Packet path. The port of the address, or -1. */
static inline int fdb_find(const struct fdb *t, uint64_t key)
{
	struct fdb_entry *e = fdb_locate(t, key);
	int port;

	if (!e)
		return -1;
	port = (int)atomic_load_explicit(&e->port, memory_order_acquire);
	return atomic_load_explicit(&e->key, memory_order_relaxed) == key ? port : -1;
}

/*
 * Packet path. True if the address is known there, which is then fresh. A stamp that hits a place
 * just given to another address only makes that one as fresh as it is.
 */
static inline bool fdb_seen(struct fdb *t, uint64_t key, uint32_t port, uint32_t now)
{
	struct fdb_entry *e = fdb_locate(t, key);

	if (!e || atomic_load_explicit(&e->port, memory_order_relaxed) != port)
		return false;
	if (atomic_load_explicit(&e->stamp, memory_order_relaxed) != now)
		atomic_store_explicit(&e->stamp, now, memory_order_relaxed);
	return true;
}

/* Packet path, when fdb_seen said no. False: the limit is reached and the address is not known. */
bool fdb_learn(struct fdb *t, uint64_t key, uint32_t port, uint32_t now);

#define FDB_ANY UINT32_MAX

/* Control context. Forgets what was learnt on this port and in this VLAN, or FDB_ANY. */
void fdb_purge(struct fdb *t, uint32_t port, uint32_t vid);

/*
 * Control context, one caller. Forgets addresses that have not been seen for more than this many
 * seconds, counted as aged.
 */
void fdb_age(struct fdb *t, uint32_t now, uint32_t seconds);

struct fdb_copy {
	uint64_t key;
	uint32_t port;
	uint32_t stamp;
};

/* Any context. Copies the entries from *position on; 0 is the first. Returns how many, n unless
 * that was the end. */
uint32_t fdb_copy(const struct fdb *t, uint32_t *position, struct fdb_copy *out, uint32_t n);

static inline uint32_t fdb_entries(const struct fdb *t)
{
	return atomic_load_explicit(&t->entries, memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bridge's table, changed in the middle of a purge: what the purge is for is gone after it,
 * also when an entry that it had yet to come to was moved to a place that it had passed. The table
 * is compiled in here with a lock that calls the test, which makes the moment exact.
 */
#include "test.h"

#include <machine/lock.h>

static void (*at_lock)(void);

static void lock_acquire_watched(struct lock *l)
{
	void (*call)(void) = at_lock;

	if (call)
		call();
	lock_acquire(l);
}

#define lock_acquire lock_acquire_watched
#include "../../src/handler/fdb.c"
#undef lock_acquire

#define PASSED 3 /* buckets in the order of the purge */
#define MET 4
#define FULL 6
#define OTHER 7

#define GONE 1 /* ports: the one that is purged */
#define STAYS 2

static struct fdb *table;
static unsigned locks;
static uint64_t newcomer;
static uint32_t last_key;

/* An address whose buckets are these. */
static uint64_t key_in(uint32_t first, uint32_t second)
{
	while (last_key++ < 100000000) {
		uint64_t key = fdb_key(last_key, 0), hash = fdb_hash(table, key);

		if (fdb_first(table, hash) == &table->bucket[first] &&
		    fdb_second(table, hash) == &table->bucket[second])
			return key;
	}
	fail_msg("no such address");
	return 0;
}

/* The lock of the entry that is met; the first one was the purge's, before it began to read. */
static void learn_between(void)
{
	if (++locks != 2)
		return;
	at_lock = NULL;
	assert_true(fdb_learn(table, newcomer, STAYS, 100));
}

/* Both buckets of the newcomer are full; one entry could make room for it, in a passed one. */
static uint64_t table_fill(uint32_t stamp)
{
	uint64_t moved;

	last_key = 0;
	locks = 0;
	assert_int_equal(fdb_create(64, &table), 0);
	moved = key_in(FULL, PASSED);
	assert_true(fdb_learn(table, moved, GONE, stamp));
	for (unsigned i = 1; i < FDB_WAYS; i++)
		assert_true(fdb_learn(table, key_in(FULL, OTHER), STAYS, 100));
	for (unsigned i = 0; i < FDB_WAYS; i++)
		assert_true(fdb_learn(table, key_in(OTHER, FULL), STAYS, 100));
	assert_true(fdb_learn(table, key_in(MET, OTHER), GONE, stamp));
	newcomer = key_in(FULL, OTHER);
	return moved;
}

static void purges_what_moves_meanwhile(void **state)
{
	uint64_t moved = table_fill(100);

	(void)state;
	at_lock = learn_between;
	fdb_purge(table, GONE, FDB_ANY);
	assert_null(at_lock);
	assert_int_equal(fdb_find(table, moved), -1);
	assert_int_equal(fdb_find(table, newcomer), STAYS);
	assert_int_equal(fdb_entries(table), 2 * FDB_WAYS);
	/* Over is over: it may be learnt there again, and moved. */
	assert_true(fdb_learn(table, moved, GONE, 100));
	assert_int_equal(fdb_find(table, moved), GONE);
	fdb_destroy(table);
}

static void ages_what_moves_meanwhile(void **state)
{
	uint64_t moved = table_fill(50);

	(void)state;
	at_lock = learn_between;
	fdb_age(table, 100, 10);
	assert_null(at_lock);
	assert_int_equal(fdb_find(table, moved), -1);
	assert_int_equal(fdb_find(table, newcomer), STAYS);
	assert_int_equal(table->aged, 2);
	assert_int_equal(fdb_entries(table), 2 * FDB_WAYS);
	fdb_destroy(table);
}

/* Without a purge, or where it does not apply, an entry makes room as ever. */
static void moves_what_stays(void **state)
{
	uint64_t moved = table_fill(100);

	(void)state;
	at_lock = learn_between;
	fdb_purge(table, GONE,
		  1); /* another VLAN: nothing is met, so the second lock is its last */
	assert_int_equal(locks, 2);
	at_lock = NULL;
	assert_int_equal(fdb_find(table, moved), GONE);
	assert_int_equal(fdb_find(table, newcomer), STAYS);
	assert_int_equal(table->relocated, 1);
	assert_int_equal(fdb_entries(table), 2 * FDB_WAYS + 2);
	fdb_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(purges_what_moves_meanwhile),
		cmocka_unit_test(ages_what_moves_meanwhile),
		cmocka_unit_test(moves_what_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge's table of addresses: against a plain model, at its limits, and from three threads. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <handler/fdb.h>

#define ADDRESSES 400
#define LIMIT 256
#define AGEING 5

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % below;
}

struct model {
	bool known;
	uint32_t port, stamp;
};

static uint64_t key_of(uint32_t i)
{
	return fdb_key(UINT64_C(0x020000000000) + i, (uint16_t)(i % 3));
}

static uint32_t model_count(const struct model *model)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ADDRESSES; i++)
		n += model[i].known;
	return n;
}

static void model_check(const struct fdb *t, const struct model *model)
{
	for (uint32_t i = 0; i < ADDRESSES; i++)
		assert_int_equal(fdb_find(t, key_of(i)), model[i].known ? (int)model[i].port : -1);
	assert_int_equal(fdb_entries(t), model_count(model));
}

static void model_purge(struct model *model, uint32_t port, uint32_t vid)
{
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		if ((port == FDB_ANY || model[i].port == port) && (vid == FDB_ANY || i % 3 == vid))
			model[i].known = false;
	}
}

static uint32_t model_age(struct model *model, uint32_t now)
{
	uint32_t aged = 0;

	for (uint32_t i = 0; i < ADDRESSES; i++) {
		if (model[i].known && now - model[i].stamp > AGEING) {
			model[i].known = false;
			aged++;
		}
	}
	return aged;
}

static void model_packet(struct fdb *t, struct model *model, uint32_t i, uint32_t port,
			 uint32_t now)
{
	uint64_t learned = t->learned, moved = t->moved;
	bool known = model[i].known, fits = known || model_count(model) < LIMIT;

	if (fdb_seen(t, key_of(i), port, now)) {
		assert_true(known && model[i].port == port);
	} else {
		assert_false(known && model[i].port == port);
		assert_int_equal(fdb_learn(t, key_of(i), port, now), fits);
	}
	assert_int_equal(t->learned, learned + (fits && !known));
	assert_int_equal(t->moved, moved + (known && model[i].port != port));
	if (fits)
		model[i] = (struct model){.known = true, .port = port, .stamp = now};
}

static void agrees_with_a_model(void **state)
{
	struct model model[ADDRESSES] = {0};
	uint32_t now = 0;
	uint64_t aged = 0;
	struct fdb *t;

	(void)state;
	random_state = 1;
	assert_int_equal(fdb_create(LIMIT, &t), 0);
	for (uint32_t step = 0; step < 100000; step++) {
		uint32_t what = draw(1000);

		if (what < 2) {
			uint32_t port = draw(2) ? draw(8) : FDB_ANY;
			uint32_t vid = draw(2) ? draw(3) : FDB_ANY;

			fdb_purge(t, port, vid);
			model_purge(model, port, vid);
		} else if (what < 12) {
			now += draw(3);
			fdb_age(t, now, AGEING);
			aged += model_age(model, now);
			assert_int_equal(t->aged, aged);
		} else {
			model_packet(t, model, draw(ADDRESSES), draw(8), now);
		}
		if (step % 97 == 0)
			model_check(t, model);
	}
	model_check(t, model);
	assert_true(aged > 100);
	fdb_destroy(t);
}

static void ages_to_the_second(void **state)
{
	struct fdb *t;

	(void)state;
	assert_int_equal(fdb_create(8, &t), 0);
	assert_true(fdb_learn(t, fdb_key(2, 0), 1, 100));
	assert_true(fdb_learn(t, fdb_key(4, 0), 1, 100));
	assert_true(fdb_seen(t, fdb_key(4, 0), 1, 101));
	fdb_age(t, 110, 10);
	assert_int_equal(fdb_entries(t), 2);
	fdb_age(t, 111, 10);
	assert_int_equal(fdb_find(t, fdb_key(2, 0)), -1);
	assert_int_equal(fdb_find(t, fdb_key(4, 0)), 1);
	fdb_age(t, 112, 10);
	assert_int_equal(fdb_entries(t), 0);
	assert_int_equal(t->aged, 2);
	fdb_destroy(t);
}

static void fills_to_the_limit(void **state)
{
	static const uint32_t limits[] = {1, 2, 8, 64, 8192};

	(void)state;
	for (size_t l = 0; l < sizeof(limits) / sizeof(*limits); l++) {
		uint32_t limit = limits[l];
		struct fdb *t;

		assert_int_equal(fdb_create(limit, &t), 0);
		for (uint32_t i = 0; i < limit; i++)
			assert_true(fdb_learn(t, fdb_key(i + 1, 0), i % 5, 0));
		assert_int_equal(fdb_entries(t), limit);
		assert_false(fdb_learn(t, fdb_key(limit + 1, 0), 0, 0));
		assert_int_equal(fdb_find(t, fdb_key(limit + 1, 0)), -1);
		/* What is in it still moves, and makes room when it goes. */
		assert_true(fdb_learn(t, fdb_key(1, 0), 7, 0));
		assert_int_equal(fdb_find(t, fdb_key(1, 0)), 7);
		assert_int_equal(t->moved, 1);
		for (uint32_t i = 1; i < limit; i++)
			assert_int_equal(fdb_find(t, fdb_key(i + 1, 0)), (int)(i % 5));
		fdb_purge(t, 7, FDB_ANY);
		assert_int_equal(fdb_entries(t), limit - 1);
		assert_true(fdb_learn(t, fdb_key(limit + 1, 0), 0, 0));
		fdb_destroy(t);
	}
}

/* Addresses that share both buckets, as nobody could choose them without the seed. */
static void survives_collisions(void **state)
{
	uint64_t keys[2 * FDB_WAYS + 1];
	unsigned n = 0;
	struct fdb *t;

	(void)state;
	assert_int_equal(fdb_create(64, &t), 0);
	for (uint32_t i = 1; n < 2 * FDB_WAYS + 1; i++) {
		uint64_t key = fdb_key(i, 0), hash = fdb_hash(t, key);

		assert_true(i < 10000000);
		if (fdb_first(t, hash) == &t->bucket[3] && fdb_second(t, hash) == &t->bucket[6])
			keys[n++] = key;
	}
	for (unsigned i = 0; i < 2 * FDB_WAYS; i++)
		assert_true(fdb_learn(t, keys[i], i, 0));
	assert_false(fdb_learn(t, keys[n - 1], 9, 0));
	assert_int_equal(fdb_entries(t), 2 * FDB_WAYS);
	for (unsigned i = 0; i < 2 * FDB_WAYS; i++)
		assert_int_equal(fdb_find(t, keys[i]), (int)i);
	fdb_purge(t, 6, FDB_ANY);
	assert_true(fdb_learn(t, keys[n - 1], 9, 0));
	assert_int_equal(fdb_find(t, keys[n - 1]), 9);
	assert_int_equal(fdb_find(t, keys[6]), -1);
	fdb_destroy(t);
}

static void copies_all(void **state)
{
	struct fdb_copy copy[16];
	uint32_t position = 0, total = 0, n;
	uint64_t sum = 0;
	struct fdb *t;

	(void)state;
	assert_int_equal(fdb_create(64, &t), 0);
	assert_int_equal(fdb_copy(t, &position, copy, 16), 0);
	position = 0;
	for (uint32_t i = 1; i <= 50; i++)
		assert_true(fdb_learn(t, fdb_key(i, 7), i, 1000 + i));
	do {
		n = fdb_copy(t, &position, copy, 16);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(copy[i].key, fdb_key(copy[i].port, 7));
			assert_int_equal(copy[i].stamp, 1000 + copy[i].port);
			sum += copy[i].port;
		}
		total += n;
	} while (n == 16);
	assert_int_equal(total, 50);
	assert_int_equal(sum, 50 * 51 / 2);
	fdb_destroy(t);
}

static void refuses(void **state)
{
	static const uint32_t wrong[] = {0, 3, 100, 1u << 23, UINT32_MAX};
	struct fdb *t;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(fdb_create(wrong[i], &t), -EINVAL);
}

/* The port of an address in the threads' test says which address it belongs to. */
#define THREAD_ADDRESSES 600
#define THREAD_PORT(i, variant) ((i) << 4 | (variant))

struct crowd {
	struct fdb *t;
	_Atomic bool end;
};

static void *learner(void *arg)
{
	struct crowd *crowd = arg;
	uint32_t now = 0;

	while (!atomic_load(&crowd->end)) {
		now++;
		for (uint32_t i = 0; i < THREAD_ADDRESSES; i++) {
			uint32_t port = THREAD_PORT(i, now / 7 % 3);

			if (!fdb_seen(crowd->t, fdb_key(i + 1, 0), port, now))
				fdb_learn(crowd->t, fdb_key(i + 1, 0), port, now);
		}
	}
	return NULL;
}

static void threads_see_whole_entries(void **state)
{
	struct crowd crowd = {0};
	pthread_t learners[2];
	time_t limit = time(NULL) + 200;
	uint64_t found = 0;

	(void)state;
	assert_int_equal(fdb_create(LIMIT, &crowd.t), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&learners[i], NULL, learner, &crowd), 0);
	/*
	 * Meanwhile places are freed, by port and all, and given to other addresses. Until some are
	 * found, for the learners may be kept from their CPU.
	 */
	for (uint32_t round = 0; round < 300 || (!found && time(NULL) < limit); round++) {
		if (!found)
			sched_yield();
		for (uint32_t i = 0; i < THREAD_ADDRESSES; i++) {
			int port = fdb_find(crowd.t, fdb_key(i + 1, 0));

			if (port < 0)
				continue;
			found++;
			assert_int_equal(port >> 4, i);
		}
		assert_true(fdb_entries(crowd.t) <= LIMIT);
		fdb_purge(crowd.t, round % 5 ? THREAD_PORT(round, round % 3) : FDB_ANY, FDB_ANY);
	}
	assert_true(found > 0);
	atomic_store(&crowd.end, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(learners[i], NULL);
	fdb_purge(crowd.t, FDB_ANY, FDB_ANY);
	assert_int_equal(fdb_entries(crowd.t), 0);
	fdb_destroy(crowd.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_model),
		cmocka_unit_test(ages_to_the_second),
		cmocka_unit_test(fills_to_the_limit),
		cmocka_unit_test(survives_collisions),
		cmocka_unit_test(copies_all),
		cmocka_unit_test(refuses),
		cmocka_unit_test(threads_see_whole_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

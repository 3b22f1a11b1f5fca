/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <pthread.h>

#include "machine/lock.h"

enum { THREADS = 4, ROUNDS = 20000 };

struct shared {
	struct lock lock;
	uint64_t count;
};

static void *count_up(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		lock_acquire(&s->lock);
		s->count++;
		lock_release(&s->lock);
	}
	return NULL;
}

static void excludes(void **state)
{
	struct shared s = {.count = 0};
	pthread_t threads[THREADS];

	(void)state;
	assert_int_equal(lock_init(&s.lock), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_up, &s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(s.count, THREADS * ROUNDS);
	lock_destroy(&s.lock);
}

static void *try_once(void *arg)
{
	struct lock *l = arg;
	bool got = lock_try(l);

	if (got)
		lock_release(l);
	return got ? l : NULL;
}

static bool free_for_others(struct lock *l)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, try_once, l), 0);
	pthread_join(thread, &result);
	return result;
}

static void tries(void **state)
{
	struct lock l;

	(void)state;
	assert_int_equal(lock_init(&l), 0);
	assert_true(lock_try(&l));
	assert_false(free_for_others(&l));
	lock_release(&l);
	assert_true(free_for_others(&l));
	lock_destroy(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(excludes),
		cmocka_unit_test(tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

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

/* The priority at which the kernel runs a thread at the moment: below 0 for real-time ones. */
static int priority_of(pid_t tid)
{
	char path[64], text[512], *at;
	int priority = 0;
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	at = strrchr(text, ')'); /* the end of field 2; this is field 18 */
	for (int field = 2; at && field < 18; field++)
		at = strchr(at + 1, ' ');
	assert_non_null(at);
	assert_int_equal(sscanf(at, " %d", &priority), 1);
	return priority;
}

static void *acquire_once(void *arg)
{
	lock_acquire(arg);
	lock_release(arg);
	return NULL;
}

/* The holder runs at the priority of a FIFO thread that waits, until it lets go. */
static void inherits_priority(void **state)
{
	struct sched_param param = {.sched_priority = 10};
	pthread_attr_t fifo;
	pthread_t thread;
	struct lock l;
	int rc, priority = 0;

	(void)state;
	pthread_attr_init(&fifo);
	pthread_attr_setinheritsched(&fifo, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&fifo, SCHED_FIFO);
	pthread_attr_setschedparam(&fifo, &param);
	assert_int_equal(lock_init(&l), 0);
	lock_acquire(&l);
	rc = pthread_create(&thread, &fifo, acquire_once, &l);
	pthread_attr_destroy(&fifo);
	if (rc) {
		lock_release(&l);
		lock_destroy(&l);
		print_message("no right to SCHED_FIFO here\n");
		skip();
	}
	for (int i = 0; i < 120000 && priority >= 0; i++) {
		usleep(1000);
		priority = priority_of(gettid());
	}
	lock_release(&l);
	pthread_join(thread, NULL);
	lock_destroy(&l);
	assert_int_equal(priority, -1 - 10);
	assert_true(priority_of(gettid()) >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(excludes),
		cmocka_unit_test(tries),
		cmocka_unit_test(inherits_priority),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

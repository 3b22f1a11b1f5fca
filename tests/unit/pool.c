/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <pthread.h>

#include <napier/packet.h>

static struct pool *pool_make(uint32_t frames, uint32_t frame_size)
{
	struct pool_config config = {.frames = frames, .frame_size = frame_size};
	struct pool *pool = NULL;

	assert_int_equal(pool_create(&config, &pool, NULL), 0);
	return pool;
}

static void every_frame_once(void **state)
{
	struct pool *pool = pool_make(1000, 2048); /* rounded up to 1024 */
	static struct packet *all[1024];
	struct pool_cache cache;
	uint8_t *seen = calloc(1024, 1);
	uint32_t n = 0, got;

	(void)state;
	pool_cache_init(&cache, pool);
	assert_int_equal(pool->frames, 1024);
	assert_int_equal(pool_available(pool), 1024);
	while ((got = packet_alloc(&cache, all + n, 33)))
		n += got;
	assert_int_equal(n, 1024);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = packet_offset(pool, all[i]);

		assert_int_equal(at % 2048, PACKET_HEADROOM);
		assert_ptr_equal(packet_at(pool, at), all[i]);
		assert_int_equal(seen[at / 2048]++, 0);
	}
	packet_free(&cache, all, n);
	pool_cache_drain(&cache);
	assert_int_equal(pool_available(pool), 1024);
	pool_destroy(pool);
	free(seen);
}

static void chains_are_freed_whole(void **state)
{
	struct pool *pool = pool_make(128, 4096);
	struct packet *v[5], *copy;
	struct pool_cache cache;

	(void)state;
	pool_cache_init(&cache, pool);
	assert_int_equal(packet_alloc(&cache, v, 5), 5);
	for (int i = 0; i < 4; i++) {
		v[i]->next = v[i + 1];
		v[i]->len = 100 + (uint32_t)i;
		memset(v[i]->data, i, v[i]->len);
	}
	v[4]->len = 1;
	v[4]->data[0] = 9;
	v[0]->flags = PACKET_GSO;
	copy = packet_clone(&cache, v[0]);
	assert_non_null(copy);
	assert_int_equal(copy->flags, PACKET_GSO);
	assert_int_equal(copy->next->len, 101);
	assert_memory_equal(copy->next->data, v[1]->data, 101);
	assert_int_equal(copy->next->next->next->next->data[0], 9);
	assert_null(copy->next->next->next->next->next);
	packet_free(&cache, v, 1);
	packet_free(&cache, &copy, 1);
	pool_cache_drain(&cache);
	assert_int_equal(pool_available(pool), 128);
	pool_destroy(pool);
}

static void clone_of_a_chain_gives_back_what_it_took(void **state)
{
	struct pool *pool = pool_make(64, 2048);
	struct packet *v[62];
	struct pool_cache cache;

	(void)state;
	pool_cache_init(&cache, pool);
	assert_int_equal(packet_alloc(&cache, v, 62), 62);
	v[0]->next = v[1];
	v[1]->next = v[2]; /* three to copy, two are left */
	assert_null(packet_clone(&cache, v[0]));
	packet_free(&cache, v, 1);
	packet_free(&cache, v + 3, 59);
	pool_cache_drain(&cache);
	assert_int_equal(pool_available(pool), 64);
	pool_destroy(pool);
}

static void bad_sizes(void **state)
{
	static const struct pool_config wrong[] = {
		{.frames = 1024, .frame_size = 1500},
		{.frames = 10, .frame_size = 2048},
		{.frames = POOL_FRAMES_MAX + 1, .frame_size = 2048},
	};
	struct error err;
	struct pool *pool;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		err.text[0] = '\0';
		assert_int_equal(pool_create(&wrong[i], &pool, &err), -EINVAL);
		assert_true(strlen(err.text) > 0);
	}
}

#define ROUNDS 20000

/* Each owner writes its mark into the packets it holds: two owners of one packet are seen. */
static void *churn(void *arg)
{
	struct pool *pool = arg;
	struct packet *v[PACKET_VECTOR_MAX];
	struct pool_cache cache;
	uint64_t wrong = 0;
	uint32_t mark = (uint32_t)(uintptr_t)&cache;

	pool_cache_init(&cache, pool);
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t n = packet_alloc(&cache, v, 1 + (uint32_t)round % PACKET_VECTOR_MAX);

		for (uint32_t i = 0; i < n; i++)
			v[i]->hash = mark + i;
		for (uint32_t i = 0; i < n; i++)
			wrong += v[i]->hash != mark + i;
		packet_free(&cache, v, n);
		if (round % 7 == 0)
			pool_cache_drain(&cache);
	}
	pool_cache_drain(&cache);
	return (void *)(uintptr_t)wrong;
}

static void threads_never_share_a_packet(void **state)
{
	struct pool *pool = pool_make(512, 2048);
	pthread_t thread[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, churn, pool), 0);
	for (int i = 0; i < 4; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(pool_available(pool), 512);
	pool_destroy(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_frame_once),
		cmocka_unit_test(chains_are_freed_whole),
		cmocka_unit_test(clone_of_a_chain_gives_back_what_it_took),
		cmocka_unit_test(bad_sizes),
		cmocka_unit_test(threads_never_share_a_packet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

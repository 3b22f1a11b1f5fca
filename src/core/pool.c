/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool: frames, their metadata, and a lock-free depot of batches.
 *
 * Free packets that are in no cache stand in the depot, in batches of up to POOL_BATCH linked
 * through packet->next. The depot is a stack of batches; its head is one 64-bit word, the index of
 * the first packet of the top batch (plus one) and a tag against ABA, so that taking or giving a
 * batch is one compare-and-swap.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <napier/packet.h>

struct depot {
	struct pool pool;
	size_t packets_size;
	_Alignas(64) _Atomic uint64_t head; /* tag << 32 | index + 1 */
};

_Static_assert(_Alignof(struct depot) == 64, "the head has a cache line of its own");

static void batch_push(struct depot *depot, struct packet *first, uint32_t n)
{
	uint64_t index = (uint64_t)(first - depot->pool.packets) + 1;
	uint64_t head = atomic_load_explicit(&depot->head, memory_order_relaxed);
	uint64_t wanted;

	first->batch_count = n;
	do {
		atomic_store_explicit(&first->batch_below, (uint32_t)head, memory_order_relaxed);
		wanted = ((head >> 32) + 1) << 32 | index;
	} while (!atomic_compare_exchange_weak_explicit(
		&depot->head, &head, wanted, memory_order_release, memory_order_relaxed));
}

static struct packet *batch_pop(struct depot *depot)
{
	uint64_t head = atomic_load_explicit(&depot->head, memory_order_acquire);
	struct packet *first;
	uint64_t wanted;

	do {
		if (!(uint32_t)head)
			return NULL;
		first = &depot->pool.packets[(uint32_t)head - 1];
		/* May be another's by now: then the value is any, and the tag makes us try again.
		 */
		wanted = ((head >> 32) + 1) << 32 |
			 atomic_load_explicit(&first->batch_below, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&depot->head, &head, wanted, memory_order_acquire, memory_order_acquire));
	return first;
}

/* Links v into a batch and gives it to the depot. */
static void batch_give(struct depot *depot, struct packet **v, uint32_t n)
{
	for (uint32_t i = 0; i + 1 < n; i++)
		v[i]->next = v[i + 1];
	v[n - 1]->next = NULL;
	batch_push(depot, v[0], n);
}

static struct depot *depot_of(struct pool *pool)
{
	return (struct depot *)pool;
}

/* Huge pages where there are some: fewer TLB misses over a pool of tens of megabytes. */
static void *area_map(size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *area = MAP_FAILED;

	if (size % (2u << 20) == 0)
		area = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB | MAP_POPULATE,
			    -1, 0);
	if (area != MAP_FAILED)
		return area;
	area = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (area == MAP_FAILED)
		return NULL;
	madvise(area, size, MADV_HUGEPAGE);
	memset(area, 0, size); /* touched here, not on the packet path */
	return area;
}

static int config_check(const struct pool_config *config, struct error *err)
{
	if (config->frame_size != 2048 && config->frame_size != 4096)
		return error_set(err, -EINVAL, "frame size %u: must be 2048 or 4096 bytes",
				 config->frame_size);
	if (config->frames < POOL_BATCH || config->frames > POOL_FRAMES_MAX)
		return error_set(err, -EINVAL, "pool of %u frames: must be %u to %u",
				 config->frames, POOL_BATCH, POOL_FRAMES_MAX);
	return 0;
}

int pool_create(const struct pool_config *config, struct pool **out, struct error *err)
{
	int rc = config_check(config, err);
	struct depot *depot;
	struct pool *pool;

	if (rc)
		return rc;
	depot = aligned_alloc(_Alignof(struct depot), sizeof(*depot));
	if (!depot)
		return error_set(err, -ENOMEM, "no memory for the packet pool");
	memset(depot, 0, sizeof(*depot));
	pool = &depot->pool;
	pool->frames = (config->frames + POOL_BATCH - 1) / POOL_BATCH * POOL_BATCH;
	pool->frame_shift = config->frame_size == 4096 ? 12 : 11;
	depot->packets_size = (size_t)pool->frames * sizeof(struct packet);
	pool->area = area_map(pool_area_size(pool));
	pool->packets = area_map(depot->packets_size);
	if (!pool->area || !pool->packets) {
		pool_destroy(pool);
		return error_set(err, -ENOMEM, "no memory for %u frames of %u bytes", pool->frames,
				 config->frame_size);
	}
	for (uint32_t i = pool->frames; i > 0; i -= POOL_BATCH) {
		struct packet *v[POOL_BATCH];

		for (uint32_t k = 0; k < POOL_BATCH; k++)
			v[k] = &pool->packets[i - POOL_BATCH + k];
		batch_give(depot, v, POOL_BATCH);
	}
	*out = pool;
	return 0;
}

void pool_destroy(struct pool *pool)
{
	if (!pool)
		return;
	if (pool->area)
		munmap(pool->area, pool_area_size(pool));
	if (pool->packets)
		munmap(pool->packets, depot_of(pool)->packets_size);
	free(depot_of(pool));
}

uint32_t pool_available(const struct pool *pool)
{
	struct depot *depot = depot_of((struct pool *)pool);
	uint32_t index = (uint32_t)atomic_load(&depot->head);
	uint32_t n = 0;

	while (index && n < pool->frames) {
		struct packet *first = &pool->packets[index - 1];

		n += first->batch_count;
		index = atomic_load(&first->batch_below);
	}
	return n;
}

void pool_cache_init(struct pool_cache *cache, struct pool *pool)
{
	cache->pool = pool;
	cache->n = 0;
}

void pool_cache_drain(struct pool_cache *cache)
{
	while (cache->n) {
		uint32_t n = cache->n < POOL_BATCH ? cache->n : POOL_BATCH;

		cache->n -= n;
		batch_give(depot_of(cache->pool), cache->v + cache->n, n);
	}
}

/* Takes one batch more; there is room for it. False when the depot is empty. */
static bool cache_fill(struct pool_cache *cache)
{
	struct packet *p = batch_pop(depot_of(cache->pool));

	if (!p)
		return false;
	for (; p; p = p->next)
		cache->v[cache->n++] = p;
	return true;
}

uint32_t packet_alloc(struct pool_cache *cache, struct packet **v, uint32_t n)
{
	struct pool *pool = cache->pool;
	uint32_t got;

	assert(n <= PACKET_VECTOR_MAX); /* so that a batch more always fits into the cache */
	while (cache->n < n)
		if (!cache_fill(cache))
			break;
	got = cache->n < n ? cache->n : n;
	cache->n -= got;
	/* The last given back is the first taken: its lines are the ones still in the cache. */
	for (uint32_t i = 0; i < got; i++) {
		struct packet *p = cache->v[cache->n + got - 1 - i];

		p->data = pool->area + ((size_t)(p - pool->packets) << pool->frame_shift) +
			  PACKET_HEADROOM;
		p->next = NULL;
		p->len = 0;
		p->total = 0;
		p->flags = 0;
		v[i] = p;
	}
	return got;
}

static void cache_put(struct pool_cache *cache, struct packet *p)
{
	if (cache->n == 2 * POOL_BATCH) {
		/* The older half goes, the hot half stays. */
		batch_give(depot_of(cache->pool), cache->v, POOL_BATCH);
		memcpy(cache->v, cache->v + POOL_BATCH, POOL_BATCH * sizeof(*cache->v));
		cache->n = POOL_BATCH;
	}
	cache->v[cache->n++] = p;
}

void packet_free(struct pool_cache *cache, struct packet **v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct packet *p = v[i];

		do {
			struct packet *next = p->next;

			cache_put(cache, p);
			p = next;
		} while (p);
	}
}

struct packet *packet_clone(struct pool_cache *cache, const struct packet *p)
{
	uint32_t room = pool_room(cache->pool);
	struct packet *first = NULL;
	struct packet **at = &first;

	for (; p; p = p->next) {
		struct packet *copy;

		if (!packet_alloc(cache, &copy, 1)) {
			if (first)
				packet_free(cache, &first, 1);
			return NULL;
		}
		*at = copy;
		at = &copy->next;
		if (p->len > room) /* it has grown into its headroom: a tag */
			copy->data -= p->len - room;
		memcpy(copy->data, p->data, p->len);
		copy->len = p->len;
		copy->total = p->total;
		copy->stamp = p->stamp;
		copy->hash = p->hash;
		copy->port = p->port;
		copy->queue = p->queue;
		copy->flags = p->flags;
		copy->csum_start = p->csum_start;
		copy->csum_offset = p->csum_offset;
		copy->gso_size = p->gso_size;
		copy->gso_type = p->gso_type;
	}
	return first;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A socket's receive queue: NAPIs put packets in, one application takes them out.
 *
 * The limit is on what stands in the queue and what has been read and not released, together:
 * reserved - released. A producer reserves slots for all of its vector by one compare-and-swap,
 * then fills them; a consumer takes what is filled, in order, and empties the slot. So a slot is
 * filled again only when `released` has gone past, which the consumer does after it has emptied it:
 * slots are at least as many as the limit, and what is released has been taken.
 *
 * Sleeping. The consumer sets `armed`, then looks whether the next slot is filled; a producer fills
 * its slots, then looks at `armed`. Each has a full barrier in between, so that not both can see
 * the old state: either the consumer sees the packet and does not sleep, or the producer sees
 * `armed`, takes it away (an exchange: one of several does) and writes fd. The same holds for an
 * error. A producer that has reserved a slot before others, and filled it after them, looks at
 * `armed` then as well; until then the consumer waits for that slot, though those behind it are
 * filled.
 */
#include <errno.h>
#include <unistd.h>

#include <napier/busy_poll.h>

#include <handler/udp.h>

static void wake(struct napi_udp *s)
{
	uint64_t one = 1;

	if (!atomic_exchange_explicit(&s->armed, 0, memory_order_acq_rel))
		return;
	atomic_fetch_add_explicit(&s->wakes, 1, memory_order_relaxed);
	/* It cannot fail: the counter of an eventfd that is read in between has room. */
	if (write(s->fd, &one, sizeof(one)) < 0)
		atomic_store_explicit(&s->error, EIO, memory_order_relaxed);
}

static void wake_if_armed(struct napi_udp *s)
{
	atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in napi_udp_arm */
	if (atomic_load_explicit(&s->armed, memory_order_relaxed))
		wake(s);
}

void udp_error_set(struct napi_udp *s, int error)
{
	atomic_store_explicit(&s->error, error, memory_order_release);
	wake_if_armed(s);
}

/* How many of n find room; from *first on. */
static uint32_t reserve(struct napi_udp *s, uint32_t n, uint64_t *first)
{
	uint64_t reserved = atomic_load_explicit(&s->reserved, memory_order_relaxed);
	uint32_t k;

	do {
		/* Acquire: the slots that have been released are empty. */
		uint64_t released = atomic_load_explicit(&s->released, memory_order_acquire);
		int64_t used = (int64_t)(reserved - released);

		/* Below 0: `reserved` is older than `released`, and the exchange will fail. */
		k = used < (int64_t)s->receive_max ? s->receive_max - (uint32_t)used : 0;
		if (k > n)
			k = n;
	} while (k && !atomic_compare_exchange_weak_explicit(&s->reserved, &reserved, reserved + k,
							     memory_order_relaxed,
							     memory_order_relaxed));
	*first = reserved;
	return k;
}

void udp_enqueue(struct napi_udp *s, struct context *context, struct napi *napi, struct packet **v,
		 uint32_t n)
{
	uint64_t first;
	uint32_t k = reserve(s, n, &first);

	for (uint32_t i = 0; i < k; i++)
		atomic_store_explicit(&s->slot[(first + i) & s->mask], v[i], memory_order_release);
	if (k) {
		counter_add(&context->counters->delivered, k);
		if (atomic_load_explicit(&s->napi, memory_order_relaxed) != napi)
			atomic_store_explicit(&s->napi, napi, memory_order_relaxed);
		wake_if_armed(s);
	}
	if (k < n) {
		atomic_fetch_add_explicit(&s->dropped, n - k, memory_order_relaxed);
		packet_drop(context, v + k, n - k, DROP_UDP_QUEUE_FULL);
	}
}

static bool queue_filled(const struct napi_udp *s)
{
	uint64_t taken = atomic_load_explicit(&((struct napi_udp *)s)->taken, memory_order_relaxed);

	return atomic_load_explicit(&s->slot[taken & s->mask], memory_order_acquire);
}

static int error_take(struct napi_udp *s)
{
	if (!atomic_load_explicit(&s->error, memory_order_relaxed))
		return 0;
	return -atomic_exchange_explicit(&s->error, 0, memory_order_acquire);
}

static void address_set(struct napi_udp_address *a, const uint8_t *ip, bool four, uint16_t port,
			uint16_t scope)
{
	struct ip mapped = four ? ip_load4(ip) : ip_load6(ip);

	memcpy(a->ip, &mapped, sizeof(a->ip));
	a->port = port;
	a->scope = scope;
}

/* Its headers are still before its payload, and have been checked. */
static void message_fill(struct napi_udp_message *m, struct packet *p, const struct pool *pool,
			 uint32_t mark)
{
	const uint8_t *udp = p->data - UDP_HEADER, *ip = p->data - p->csum_start;
	bool four = ip[0] >> 4 == 4;
	const uint8_t *from = ip + (four ? 12 : 8), *to = ip + (four ? 16 : 24);
	uint16_t scope = 0;
	uint32_t used = (uint32_t)(packet_offset(pool, p) & ((1u << pool->frame_shift) - 1));

	if (!four && from[0] == 0xfe && (from[1] & 0xc0) == 0x80)
		scope = (uint16_t)(p->port + 1);
	m->data = p->data;
	m->len = (uint16_t)p->len;
	m->room = (uint16_t)((1u << pool->frame_shift) - used);
	m->in_port = p->port;
	m->in_queue = p->queue;
	m->stamp = p->stamp;
	m->hash = p->hash;
	address_set(&m->peer, from, four, load16(udp), scope);
	address_set(&m->local, to, four, load16(udp + 2), scope);
	m->packet = p;
	atomic_store_explicit(&p->holder, mark, memory_order_relaxed);
}

static uint32_t queue_take(struct napi_udp *s, const struct pool *pool, struct napi_udp_message *v,
			   uint32_t n)
{
	uint64_t taken = atomic_load_explicit(&s->taken, memory_order_relaxed);
	struct packet *found[NAPI_UDP_VECTOR_MAX];
	uint32_t k;

	for (k = 0; k < n; k++) {
		struct packet *_Atomic *slot = &s->slot[(taken + k) & s->mask];

		found[k] = atomic_load_explicit(slot, memory_order_acquire);
		if (!found[k])
			break;
		__builtin_prefetch(found[k]);
		atomic_store_explicit(slot, NULL, memory_order_relaxed);
	}
	for (uint32_t i = 0; i < k; i++) {
		if (i + 4 < k)
			__builtin_prefetch(found[i + 4]->data - UDP_HEADER);
		message_fill(&v[i], found[i], pool, s->mark);
	}
	atomic_store_explicit(&s->taken, taken + k, memory_order_relaxed);
	return k;
}

/* What arm began ends. fd is read once for each time that it was written. */
static void awake(struct napi_udp *s)
{
	uint64_t count;

	if (s->waiting) {
		s->waiting = false;
		if (!atomic_exchange_explicit(&s->armed, 0, memory_order_acq_rel))
			s->woken++;
	}
	/* Not written yet: another time. Until then fd may say that there is something. */
	if (s->woken && read(s->fd, &count, sizeof(count)) > 0)
		s->woken -= count;
}

static bool found(void *arg)
{
	struct napi_udp *s = arg;

	return queue_filled(s) || atomic_load_explicit(&s->error, memory_order_relaxed);
}

/* Polls the NAPI that the last packet came from, where the application may do that. */
static void look(struct napi_udp *s, struct context *context, uint32_t usecs)
{
	struct busy_poll how = {
		.usecs = usecs, .budget = s->config.budget, .prefer = s->config.prefer};
	struct napi *napi;

	context_enter(context);
	napi = atomic_load_explicit(&s->napi, memory_order_relaxed);
	if (napi)
		napi_busy_loop(napi, context, &how, found, s);
	context_leave(context);
}

int napi_udp_recv(struct napi_udp *s, struct context *context, struct napi_udp_message *v,
		  uint32_t n)
{
	uint32_t k;
	int rc;

	if (!n || n > NAPI_UDP_VECTOR_MAX)
		return -EINVAL;
	if (s->waiting || s->woken)
		awake(s);
	if (s->config.busy_read && !found(s))
		look(s, context, s->config.busy_read);
	rc = error_take(s);
	if (rc)
		return rc;
	k = queue_take(s, context->cache.pool, v, n);
	return k ? (int)k : -EAGAIN;
}

bool napi_udp_arm(struct napi_udp *s, struct context *context)
{
	if (s->woken)
		awake(s);
	if (s->config.busy_poll && !found(s))
		look(s, context, s->config.busy_poll);
	s->waiting = true;
	atomic_store_explicit(&s->armed, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with the one in wake_if_armed */
	return found(s);
}

void udp_frames_return(struct napi_udp *s, uint32_t received, uint32_t allocated)
{
	/* Release: the slots of what has been taken are empty. */
	if (received)
		atomic_store_explicit(&s->released, counter_read(&s->released) + received,
				      memory_order_release);
	if (allocated)
		counter_add(&s->allocated, -(uint64_t)allocated);
}

void napi_udp_release(struct napi_udp *s, struct context *context, const struct napi_udp_message *v,
		      uint32_t n)
{
	uint32_t received = 0, allocated = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct packet *p = v[i].packet;
		uint32_t holder = p ? atomic_load_explicit(&p->holder, memory_order_relaxed) : 0;

		/* One that has been given back before is left alone: it may be another's. */
		if (!p || (holder & ~UDP_MARK_SENDING) != s->mark)
			continue;
		atomic_store_explicit(&p->holder, 0, memory_order_relaxed);
		if (holder == s->mark)
			received++;
		else
			allocated++;
		packet_free(&context->cache, &p, 1);
	}
	udp_frames_return(s, received, allocated);
}

int napi_udp_fd(const struct napi_udp *s)
{
	return s->fd;
}

void napi_udp_stats_read(const struct napi_udp *socket, struct napi_udp_stats *out)
{
	struct napi_udp *s = (struct napi_udp *)socket;
	/* In this order: what is taken off is not above what it is taken from. */
	uint64_t released = atomic_load(&s->released), taken = atomic_load(&s->taken);

	out->received = atomic_load(&s->reserved);
	out->read = taken;
	out->dropped = atomic_load(&s->dropped);
	out->sent = atomic_load(&s->sent);
	out->wakes = atomic_load(&s->wakes);
	out->queued = (uint32_t)(out->received - taken);
	out->held = (uint32_t)(taken - released);
	out->allocated = (uint32_t)atomic_load(&s->allocated);
	out->receive_max = s->receive_max;
	out->send_max = s->send_max;
}

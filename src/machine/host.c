/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <urcu/urcu-qsbr.h>

#include "machine/host.h"

/*
 * liburcu is not compiled with TSan, so its grace periods order nothing there. These say what a
 * grace period gives: what a reader did before its quiescent state comes before what the caller of
 * quiesce does after it, and the other way round.
 */
#ifdef __SANITIZE_THREAD__
#define HOST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOST_TSAN 1
#endif
#endif

#ifdef HOST_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define grace_acquire(h) __tsan_acquire(&(h)->grace)
#define grace_release(h) __tsan_release(&(h)->grace)
#else
#define grace_acquire(h) ((void)(h))
#define grace_release(h) ((void)(h))
#endif

int64_t host_now(struct machine *m)
{
	struct timespec now;

	(void)m;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

bool host_offline(struct host *h)
{
	bool was = urcu_qsbr_read_ongoing();

	if (was) {
		grace_release(h);
		urcu_qsbr_thread_offline();
	}
	return was;
}

void host_online(struct host *h, bool was)
{
	if (was) {
		urcu_qsbr_thread_online();
		grace_acquire(h);
	}
}

void host_quiescent(struct host *h)
{
	grace_release(h);
	urcu_qsbr_quiescent_state();
	grace_acquire(h);
}

/* liburcu takes a caller that is itself a runner offline while it waits. */
static void host_quiesce(struct machine *m)
{
	struct host *h = host_of(m);

	grace_release(h);
	urcu_qsbr_synchronize_rcu();
	grace_acquire(h);
}

/*
 * Threads that are no runners. QSBR knows a thread from its first visit on; its record is the
 * thread's own memory, so it has to be taken out when the thread ends.
 */
static pthread_key_t visitor_key;
static pthread_once_t visitor_once = PTHREAD_ONCE_INIT;
static _Thread_local bool visitor;

static void visitor_end(void *arg)
{
	(void)arg;
	urcu_qsbr_unregister_thread();
}

static void visitor_key_make(void)
{
	int rc = pthread_key_create(&visitor_key, visitor_end);

	assert(!rc);
	(void)rc;
}

static bool host_enter(struct machine *m)
{
	struct host *h = host_of(m);

	if (urcu_qsbr_read_ongoing())
		return false;
	if (visitor) {
		urcu_qsbr_thread_online();
	} else {
		pthread_once(&visitor_once, visitor_key_make);
		pthread_setspecific(visitor_key, &visitor);
		urcu_qsbr_register_thread(); /* and it is online */
		visitor = true;
	}
	grace_acquire(h);
	return true;
}

static void host_leave(struct machine *m)
{
	host_offline(host_of(m));
}

static void host_pass(struct machine *m)
{
	host_quiescent(host_of(m));
}

static pid_t host_tid(struct machine *m)
{
	static _Thread_local pid_t tid;

	(void)m;
	if (!tid)
		tid = gettid();
	return tid;
}

static void host_destroy(struct machine *m)
{
	struct host *h = host_of(m);

	assert(!h->running);
	while (h->parked) {
		struct host_runner *r = h->parked;

		h->parked = r->next_parked;
		host_runner_free(r);
	}
	lock_destroy(&h->lock);
	free(h);
}

static int64_t host_epoch(struct machine *m)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	return real.tv_sec * NSEC_PER_SEC + real.tv_nsec - host_now(m);
}

/* The kernel's pool is seeded long before programs run, so this neither fails nor waits. */
static void host_entropy(struct machine *m, void *out, size_t size)
{
	ssize_t got = getrandom(out, size, 0);

	(void)m;
	assert(size <= 256 && got == (ssize_t)size);
	(void)got;
}

static const struct machine_ops host_ops = {
	.name = "host",
	.now = host_now,
	.cpus = host_cpus,
	.runner_start = host_runner_start,
	.runner_stop = host_runner_stop,
	.runner_wake = host_runner_wake,
	.runner_place = host_runner_place,
	.runner_observe = host_runner_observe,
	.runner_usage = host_runner_usage,
	.idle_times = host_idle_times,
	.irq_attach = host_irq_attach,
	.irq_detach = host_irq_detach,
	.irq_mask = host_irq_mask,
	.irq_unmask = host_irq_unmask,
	.irq_raise = host_irq_raise,
	.irq_arm = host_irq_arm,
	.wait = host_wait,
	.notify = host_notify,
	.quiesce = host_quiesce,
	.enter = host_enter,
	.leave = host_leave,
	.pass = host_pass,
	.tid = host_tid,
	.epoch = host_epoch,
	.entropy = host_entropy,
	.destroy = host_destroy,
};

int machine_host_create(struct machine **out, struct error *err)
{
	struct host *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return error_set(err, -ENOMEM, "no memory for the host machine");
	h->base.ops = &host_ops;
	rc = lock_init(&h->lock);
	if (rc) {
		free(h);
		return error_set(err, rc,
				 "the kernel has no priority-inheriting futexes (CONFIG_FUTEX_PI)");
	}
	rc = host_cpus_read(0, &h->cpus);
	if (rc) {
		lock_destroy(&h->lock);
		free(h);
		return error_set(err, rc, "cannot read this process's CPU affinity: %s",
				 strerror(-rc));
	}
	*out = &h->base;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control's waiting: an eventcount on a futex. The waiter reads `sequence`, looks, and sleeps only
 * if `sequence` is still the same; notify changes it first and then looks for waiters. What nobody
 * announces (a counter that has grown) is looked at too, at growing intervals: a program may wait
 * here for all its life, and idle costs nothing.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "machine/host.h"

#define LOOK_FIRST NSEC_PER_MSEC
#define LOOK_LAST (256 * NSEC_PER_MSEC)

/* Returns when woken, at the deadline, or for no reason. */
static void sequence_wait(struct host *h, uint32_t seen, int64_t end)
{
	struct timespec until = {end / NSEC_PER_SEC, end % NSEC_PER_SEC};
	bool was;

	was = host_offline(h);
	syscall(SYS_futex, &h->sequence, FUTEX_WAIT_BITSET_PRIVATE, seen, &until, NULL,
		FUTEX_BITSET_MATCH_ANY);
	host_online(h, was);
}

int host_wait(struct machine *m, bool (*done)(void *arg), void *arg, int64_t deadline)
{
	struct host *h = host_of(m);
	int64_t look = LOOK_FIRST;
	int rc;

	/* Before the look at `sequence`; notify does the two in the other order. */
	atomic_fetch_add(&h->waiters, 1);
	for (;;) {
		uint32_t seen = atomic_load(&h->sequence);
		int64_t now = host_now(m);

		rc = 0;
		if (done(arg))
			break;
		rc = -ETIMEDOUT;
		if (now >= deadline)
			break;
		sequence_wait(h, seen, deadline - now < look ? deadline : now + look);
		look = 2 * look < LOOK_LAST ? 2 * look : LOOK_LAST;
	}
	atomic_fetch_sub(&h->waiters, 1);
	return rc;
}

void host_notify(struct machine *m)
{
	struct host *h = host_of(m);

	atomic_fetch_add(&h->sequence, 1);
	if (atomic_load(&h->waiters))
		syscall(SYS_futex, &h->sequence, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock between runners, and between runners and control.
 *
 * A runner of class FIFO may come to wait for a lock that an ordinary one holds, and on one CPU
 * that one then never runs: so the lock is a mutex with priority inheritance, by which the holder
 * runs at the priority of the highest waiter until it lets go. Without contention it costs one
 * atomic operation each way and no system call.
 *
 * Acquire and release in one thread and, in a runner, within one step: on the virtual machine all
 * runners share one thread, so a lock that is held over the end of a step deadlocks there.
 *
 *  call         | beside             | order
 *  -------------+--------------------+--------
 *  lock_acquire | anything but       | acquire
 *  lock_try     | init and destroy   | acquire, when it returns true
 *  lock_release | of the same lock   | release
 */
#ifndef MACHINE_LOCK_H
#define MACHINE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

struct lock {
	pthread_mutex_t mutex;
};

/* -ENOMEM, or -ENOTSUP where the kernel has no priority inheritance. */
int lock_init(struct lock *l);
/* Nobody holds it or waits for it. */
void lock_destroy(struct lock *l);
void lock_acquire(struct lock *l);
/* True if it was free and is the caller's now. */
bool lock_try(struct lock *l);
void lock_release(struct lock *l);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>

#include "machine/lock.h"

int lock_init(struct lock *l)
{
	pthread_mutexattr_t attributes;
	int rc = pthread_mutexattr_init(&attributes);

	if (rc)
		return -rc;
	rc = pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	if (!rc)
		rc = pthread_mutex_init(&l->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	return -rc;
}

void lock_destroy(struct lock *l)
{
	int rc = pthread_mutex_destroy(&l->mutex);

	assert(!rc);
	(void)rc;
}

/* The only errors left are misuse: locking one's own lock again, or memory that is no lock. */
void lock_acquire(struct lock *l)
{
	int rc = pthread_mutex_lock(&l->mutex);

	assert(!rc);
	(void)rc;
}

bool lock_try(struct lock *l)
{
	int rc = pthread_mutex_trylock(&l->mutex);

	assert(!rc || rc == EBUSY);
	return !rc;
}

void lock_release(struct lock *l)
{
	int rc = pthread_mutex_unlock(&l->mutex);

	assert(!rc);
	(void)rc;
}

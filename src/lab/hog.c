/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lab/hog.h"

struct hog {
	pthread_t thread;
	_Atomic bool stop;
};

static void *hog_run(void *arg)
{
	struct hog *hog = arg;

	while (!atomic_load_explicit(&hog->stop, memory_order_relaxed))
		;
	return NULL;
}

int hog_start(int cpu, struct hog **out, struct error *err)
{
	struct hog *hog = calloc(1, sizeof(*hog));
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	if (!hog)
		return error_set(err, -ENOMEM, "no memory");
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	rc = pthread_create(&hog->thread, &attr, hog_run, hog);
	pthread_attr_destroy(&attr);
	if (rc) {
		free(hog);
		return error_set(err, -rc, "starting a hog on CPU %d: %s", cpu, strerror(rc));
	}
	*out = hog;
	return 0;
}

void hog_stop(struct hog *hog)
{
	atomic_store(&hog->stop, true);
	pthread_join(hog->thread, NULL);
	free(hog);
}

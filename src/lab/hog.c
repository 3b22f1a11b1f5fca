/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <urcu/arch.h>

#include "lab/hog.h"

struct hog {
	pthread_t thread;
	sem_t started;
	pid_t tid;
	bool idle;
	int rc; /* of class idle */
	_Atomic bool stop;
};

/* 1 to 10 us, by how long the CPU takes for a pause. */
static void idle_turn(void)
{
	for (int i = 0; i < 200; i++)
		caa_cpu_relax();
	sched_yield();
}

static void *hog_run(void *arg)
{
	struct hog *hog = arg;

	hog->tid = gettid();
	if (hog->idle)
		hog->rc = sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}) ? -errno : 0;
	sem_post(&hog->started);
	while (!hog->rc && !atomic_load_explicit(&hog->stop, memory_order_relaxed))
		if (hog->idle)
			idle_turn();
	return NULL;
}

static int start(int cpu, bool idle, struct hog **out, struct error *err)
{
	struct hog *hog = calloc(1, sizeof(*hog));
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	if (!hog)
		return error_set(err, -ENOMEM, "no memory");
	hog->idle = idle;
	sem_init(&hog->started, 0, 0);
	pthread_attr_init(&attr);
	if (cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	rc = pthread_create(&hog->thread, &attr, hog_run, hog);
	pthread_attr_destroy(&attr);
	if (rc) {
		sem_destroy(&hog->started);
		free(hog);
		return error_set(err, -rc, "starting a hog on CPU %d: %s", cpu, strerror(rc));
	}
	while (sem_wait(&hog->started))
		;
	rc = hog->rc;
	if (rc) {
		hog_stop(hog);
		return error_set(err, rc, "class idle: %s", strerror(-rc));
	}
	*out = hog;
	return 0;
}

int hog_start(int cpu, struct hog **out, struct error *err)
{
	return start(cpu, false, out, err);
}

int hog_idle_start(int cpu, struct hog **out, struct error *err)
{
	return start(cpu, true, out, err);
}

pid_t hog_thread(const struct hog *hog)
{
	return hog->tid;
}

void hog_stop(struct hog *hog)
{
	atomic_store(&hog->stop, true);
	pthread_join(hog->thread, NULL);
	sem_destroy(&hog->started);
	free(hog);
}

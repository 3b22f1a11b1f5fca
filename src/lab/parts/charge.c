/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/parts/charge.h"
#include "lab/clock.h"
#include "lab/cputime.h"

#define QUICK_NS 100000

enum { THREADS = 64, TRIES = 10 };

void charge_moment(void (*take)(void *arg, void *moment), void *arg, void *moment, size_t size)
{
	char best[CHARGE_MOMENT_MAX] __attribute__((aligned(16)));
	int64_t least = INT64_MAX;

	assert(size <= sizeof(best));
	for (unsigned i = 0; i < TRIES && least > QUICK_NS; i++) {
		int64_t begin = clock_now(), took;

		take(arg, moment);
		took = clock_now() - begin;
		if (took >= least)
			continue;
		least = took;
		memcpy(best, moment, size);
	}
	memcpy(moment, best, size);
}

/* A thread's of ours own work: without the softirq on its back. */
static int64_t thread_net(const struct napi_watch *watch, pid_t thread)
{
	/* First the back: what is added between the two reads is then the thread's, never negative.
	 */
	int64_t back = thread ? napi_watch_back(watch, thread) : 0;

	return thread ? cputime_thread(thread) - back : 0;
}

static int64_t process_net(const struct napi_watch *watch, pid_t process)
{
	char path[64];
	struct dirent *entry;
	int64_t back = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] != '.')
			back += napi_watch_back(watch, (pid_t)atoi(entry->d_name));
	}
	if (tasks)
		closedir(tasks);
	return cputime_process(process) - back;
}

static int64_t engine_net(const struct charge_config *config, const int64_t ns[CHARGE_PARTIES])
{
	int64_t all = config->engine ? process_net(config->watch, config->engine) : 0;

	if (config->engine != getpid())
		return all;
	return all - ns[CHARGE_SENDER] - ns[CHARGE_RECEIVER] -
	       thread_net(config->watch, (pid_t)syscall(SYS_gettid));
}

static int64_t napi_threads_net(const struct napi_watch *watch, const char *interface)
{
	pid_t thread[THREADS];
	char prefix[32];
	int64_t sum = 0;
	unsigned n;

	snprintf(prefix, sizeof(prefix), "napi/%.15s-", interface);
	n = cputime_threads_find(prefix, thread, THREADS);
	for (unsigned i = 0; i < n; i++) /* of one thread each */
		sum += process_net(watch, thread[i]);
	return sum;
}

static int64_t kernel_time(const struct charge_config *config)
{
	int64_t sum = config->theirs ? 0 : napi_watch_softirq(config->watch);

	for (unsigned i = 0; i < CHARGE_INTERFACES && config->interface[i]; i++) {
		const char *interface = config->interface[i];
		struct napi_watched watched;

		if (*interface && config->threaded)
			sum += napi_threads_net(config->watch, interface);
		if (!config->theirs)
			continue;
		napi_watch_read(config->watch, interface, &watched);
		sum += watched.softirq;
	}
	return sum;
}

void charge_read(const struct charge_config *config, int64_t ns[CHARGE_PARTIES])
{
	ns[CHARGE_SENDER] = thread_net(config->watch, config->sender);
	ns[CHARGE_RECEIVER] = thread_net(config->watch, config->receiver);
	ns[CHARGE_ENGINE] = engine_net(config, ns);
	ns[CHARGE_KERNEL] = kernel_time(config);
}

bool charge_known(const int64_t from[CHARGE_PARTIES], const int64_t to[CHARGE_PARTIES])
{
	for (unsigned i = 0; i < CHARGE_PARTIES; i++)
		if (to[i] < from[i])
			return false;
	return true;
}

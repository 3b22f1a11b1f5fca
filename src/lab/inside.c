/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab/inside.h"

struct visit {
	int netns, ret;
	bool entered;
	int (*work)(void *arg);
	void *arg;
};

/* A thread of its own, so that the caller's namespace never changes. */
static void *visit_run(void *arg)
{
	struct visit *v = arg;

	v->entered = v->netns < 0 || !setns(v->netns, CLONE_NEWNET);
	v->ret = v->entered ? v->work(v->arg) : -errno;
	return NULL;
}

int inside_run(int netns, int (*work)(void *arg), void *arg, struct error *err)
{
	struct visit visit = {.netns = netns, .work = work, .arg = arg};
	pthread_t thread;
	int ret = -pthread_create(&thread, NULL, visit_run, &visit);

	if (ret)
		return error_set(err, ret, "starting a thread: %s", strerror(-ret));
	pthread_join(thread, NULL);
	if (!visit.entered)
		return error_set(err, visit.ret,
				 "entering a network namespace (needs CAP_SYS_ADMIN): %s",
				 strerror(-visit.ret));
	return visit.ret;
}

int inside_open(const char *name, int *netns, struct error *err)
{
	char path[256];

	*netns = -1;
	if (!*name)
		return 0;
	snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/run/netns/", name);
	*netns = open(path, O_RDONLY | O_CLOEXEC);
	if (*netns < 0)
		return error_set(err, -errno, "%s: network namespace: %s%s", name, strerror(errno),
				 errno == ENOENT ? "; ip netns lists those that are there" : "");
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/consumer.h"

struct consumer {
	struct netlab *lab;
	unsigned ns;
	uint16_t port;
	int fd;
	pthread_t thread;
	sem_t started;
	int rc;
	struct error err;
	_Atomic uint64_t count;
	_Atomic bool stop;
};

/* Looks now and then whether it should stop. */
static int socket_open(struct consumer *c)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(c->port)};
	struct timeval patience = {.tv_usec = 50000};

	if (netlab_enter(c->lab, c->ns, &c->err))
		return -1;
	c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || bind(c->fd, (void *)&at, sizeof(at)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		return error_set(&c->err, -errno, "a consumer's socket: %s", strerror(errno));
	return 0;
}

static void *consume(void *arg)
{
	struct consumer *c = arg;
	uint8_t data[2048];

	c->rc = socket_open(c);
	sem_post(&c->started);
	while (!c->rc && !atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		if (recv(c->fd, data, sizeof(data), 0) >= 0)
			atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed);
	}
	if (c->fd >= 0)
		close(c->fd);
	return NULL;
}

int consumer_start(struct netlab *lab, unsigned ns, uint16_t port, int cpu, struct consumer **out,
		   struct error *err)
{
	struct consumer *c = calloc(1, sizeof(*c));
	pthread_attr_t attr;
	cpu_set_t cpus;
	int rc;

	if (!c)
		return error_set(err, -ENOMEM, "no memory");
	c->lab = lab;
	c->ns = ns;
	c->port = port;
	c->fd = -1;
	sem_init(&c->started, 0, 0);
	pthread_attr_init(&attr);
	if (cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	rc = pthread_create(&c->thread, &attr, consume, c);
	pthread_attr_destroy(&attr);
	if (rc) {
		free(c);
		return error_set(err, -rc, "starting a consumer: %s", strerror(rc));
	}
	while (sem_wait(&c->started))
		;
	rc = c->rc;
	if (rc) {
		*err = c->err;
		consumer_stop(c);
		return rc;
	}
	*out = c;
	return 0;
}

uint64_t consumer_count(const struct consumer *consumer)
{
	return atomic_load_explicit((_Atomic uint64_t *)&consumer->count, memory_order_relaxed);
}

void consumer_stop(struct consumer *consumer)
{
	atomic_store(&consumer->stop, true);
	pthread_join(consumer->thread, NULL);
	sem_destroy(&consumer->started);
	free(consumer);
}

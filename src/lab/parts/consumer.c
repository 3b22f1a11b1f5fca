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
#include <time.h>
#include <unistd.h>

#include "lab/parts/consumer.h"

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
	pthread_mutex_t lock; /* of what ages points to */
	struct histogram *ages;
};

/* Looks now and then whether it should stop. */
static int socket_open(struct consumer *c)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(c->port)};
	struct timeval patience = {.tv_usec = 50000};
	int stamps = 1;

	if (netlab_enter(c->lab, c->ns, &c->err))
		return -1;
	c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || bind(c->fd, (void *)&at, sizeof(at)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPNS, &stamps, sizeof(stamps)))
		return error_set(&c->err, -errno, "a consumer's socket: %s", strerror(errno));
	return 0;
}

static void age_record(struct consumer *c, struct msghdr *message)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct timespec then, now;
	int64_t age;

	if (!control || control->cmsg_type != SCM_TIMESTAMPNS)
		return;
	memcpy(&then, CMSG_DATA(control), sizeof(then));
	clock_gettime(CLOCK_REALTIME, &now);
	age = (now.tv_sec - then.tv_sec) * INT64_C(1000000000) + now.tv_nsec - then.tv_nsec;
	pthread_mutex_lock(&c->lock);
	if (c->ages)
		histogram_record(c->ages, age > 0 ? (uint64_t)age : 0);
	pthread_mutex_unlock(&c->lock);
}

static bool datagram_take(struct consumer *c)
{
	char data[2048], control[CMSG_SPACE(sizeof(struct timespec))];
	struct iovec to = {.iov_base = data, .iov_len = sizeof(data)};
	struct msghdr message = {
		.msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	if (recvmsg(c->fd, &message, 0) < 0)
		return false;
	age_record(c, &message);
	return true;
}

static void *consume(void *arg)
{
	struct consumer *c = arg;

	c->rc = socket_open(c);
	sem_post(&c->started);
	while (!c->rc && !atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		if (datagram_take(c))
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
	pthread_mutex_init(&c->lock, NULL);
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

void consumer_ages(struct consumer *consumer, struct histogram *ages)
{
	pthread_mutex_lock(&consumer->lock);
	consumer->ages = ages;
	pthread_mutex_unlock(&consumer->lock);
}

void consumer_stop(struct consumer *consumer)
{
	atomic_store(&consumer->stop, true);
	pthread_join(consumer->thread, NULL);
	pthread_mutex_destroy(&consumer->lock);
	sem_destroy(&consumer->started);
	free(consumer);
}

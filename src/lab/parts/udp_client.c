/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <napier/machine.h>

#include "lab/clock.h"
#include "lab/parts/udp_client.h"

#define LOST (100 * NSEC_PER_MSEC)
#define PATIENCE (10 * NSEC_PER_SEC)

enum { BYTES_MAX = 1472 };

struct udp_client {
	struct udp_client_config config;
	pthread_t thread;
	bool started;
	pid_t tid;
	int fd;
	_Atomic int failed; /* negative errno */
	struct error err;
	_Atomic bool stop, record;
	_Atomic uint64_t answered, lost;
	struct histogram latency; /* the thread's while it runs */
};

static int socket_open(struct udp_client *c)
{
	const struct ends *ends = c->config.ends;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(c->config.port)};
	struct timeval limit = {.tv_usec = LOST / 1000};

	if (netlab_enter(ends->lab, ends->far_ns, &c->err))
		return -EPERM;
	inet_pton(AF_INET, ENDS_NEAR, &at.sin_addr);
	c->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (void *)&at, sizeof(at)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		return error_set(&c->err, -errno, "a client's socket: %s", strerror(errno));
	return 0;
}

/* Late answers to requests before this one are passed over. False: there is none. */
static bool answer_await(struct udp_client *c, uint64_t tag, int64_t sent)
{
	char data[BYTES_MAX];

	do {
		ssize_t n = recv(c->fd, data, sizeof(data), c->config.spins ? MSG_DONTWAIT : 0);

		if (n == (ssize_t)c->config.bytes && !memcmp(data, &tag, sizeof(tag)))
			return true;
	} while (clock_now() - sent < LOST);
	return false;
}

static void *run(void *arg)
{
	struct udp_client *c = arg;
	char request[BYTES_MAX] = {0};
	uint64_t tag = 0;

	c->tid = (pid_t)syscall(SYS_gettid);
	c->failed = socket_open(c);
	while (!c->failed && !c->stop) {
		bool record = atomic_load_explicit(&c->record, memory_order_acquire);
		int64_t sent = clock_now();

		tag++;
		memcpy(request, &tag, sizeof(tag));
		if (send(c->fd, request, c->config.bytes, 0) < 0 || !answer_await(c, tag, sent)) {
			c->lost++;
			continue;
		}
		if (record)
			histogram_record(&c->latency, (uint64_t)(clock_now() - sent));
		c->answered++;
	}
	return NULL;
}

static int answers_await(struct udp_client *c, struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;

	while (!c->answered) {
		if (c->failed) {
			*err = c->err;
			return c->failed;
		}
		if (clock_now() > deadline)
			return error_set(err, -ETIMEDOUT, "no response within %d s",
					 (int)(PATIENCE / NSEC_PER_SEC));
		clock_sleep(NSEC_PER_MSEC);
	}
	return 0;
}

int udp_client_start(const struct udp_client_config *config, struct udp_client **out,
		     struct error *err)
{
	struct udp_client *c = calloc(1, sizeof(*c));
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	if (!c)
		return error_set(err, -ENOMEM, "no memory");
	c->config = *config;
	c->fd = -1;
	histogram_reset(&c->latency);
	CPU_ZERO(&cpus);
	CPU_SET(config->cpu, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	ret = pthread_create(&c->thread, &attr, run, c);
	pthread_attr_destroy(&attr);
	c->started = !ret;
	if (ret)
		ret = error_set(err, -ret, "starting a client: %s", strerror(ret));
	else
		ret = answers_await(c, err);
	if (ret)
		udp_client_stop(c, NULL);
	else
		*out = c;
	return ret;
}

void udp_client_record(struct udp_client *client, bool on)
{
	atomic_store_explicit(&client->record, on, memory_order_release);
}

void udp_client_read(const struct udp_client *client, uint64_t *answered, uint64_t *lost)
{
	*answered = client->answered;
	*lost = client->lost;
}

pid_t udp_client_thread(const struct udp_client *client)
{
	return client->tid;
}

void udp_client_stop(struct udp_client *client, struct histogram *into)
{
	client->stop = true;
	if (client->started)
		pthread_join(client->thread, NULL);
	if (client->fd >= 0)
		close(client->fd);
	if (into)
		histogram_merge(into, &client->latency);
	free(client);
}

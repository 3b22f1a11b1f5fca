/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/parts/bulk.h"
#include "lab/clock.h"

#include <napier/machine.h>

#define PATIENCE (10 * NSEC_PER_SEC)

enum { CHUNK = 128 << 10, LOOK_USECS = 50000 };

struct side {
	struct bulk *bulk;
	pthread_t thread;
	bool started;
	pid_t tid;
	int fd;
	_Atomic int state; /* 0: not yet, 1: works, negative: errno */
	const char *what;  /* that failed */
};

struct bulk {
	struct bulk_config config;
	struct side from, to;
	_Atomic uint64_t bytes;
	_Atomic bool stop;
};

static int side_fail(struct side *s, const char *what)
{
	s->what = what;
	s->state = -errno;
	return -1;
}

static struct sockaddr_in address_of(const struct bulk_config *config)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(config->port)};

	inet_pton(AF_INET, config->address, &at.sin_addr);
	return at;
}

/* In the end's namespace, so opened by its thread. Looks now and then whether it should stop. */
static int socket_open(struct side *s, const struct bulk_end *end)
{
	struct timeval look = {.tv_usec = LOOK_USECS};
	int one = 1;

	s->tid = (pid_t)syscall(SYS_gettid);
	if (setns(end->netns, CLONE_NEWNET))
		return side_fail(s, "entering a namespace");
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) ||
	    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look)) ||
	    setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		return side_fail(s, "opening a socket");
	return 0;
}

static bool again(void)
{
	return errno == EAGAIN || errno == EINTR || errno == EINPROGRESS || errno == EALREADY;
}

static void *receive(void *arg)
{
	struct side *s = arg;
	struct bulk *b = s->bulk;
	struct sockaddr_in at = address_of(&b->config);
	char *buffer = malloc(CHUNK);
	int connection = -1;

	if (!buffer || socket_open(s, &b->config.to))
		goto end;
	if (bind(s->fd, (void *)&at, sizeof(at)) || listen(s->fd, 1)) {
		side_fail(s, "listening");
		goto end;
	}
	s->state = 1;
	while (connection < 0 && !b->stop)
		connection = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	/* Accepted ones inherit the time-out. */
	while (connection >= 0 && !b->stop) {
		ssize_t n = recv(connection, buffer, CHUNK, 0);

		if (n > 0)
			atomic_fetch_add_explicit(&b->bytes, (uint64_t)n, memory_order_relaxed);
		else if (n == 0 || !again())
			break;
	}
end:
	if (connection >= 0)
		close(connection);
	free(buffer);
	return NULL;
}

/* A file in memory, sent as web servers do it: without a copy, so that the sender costs least. */
static int file_make(struct side *s)
{
	int fd = memfd_create("bulk", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, CHUNK) || fallocate(fd, 0, 0, CHUNK)) {
		side_fail(s, "making a file in memory");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static void *transmit(void *arg)
{
	struct side *s = arg;
	struct bulk *b = s->bulk;
	struct sockaddr_in at = address_of(&b->config);
	int file = file_make(s);
	sigset_t pipe;

	/* The receiver may be gone first, and sendfile knows no MSG_NOSIGNAL. */
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	if (file < 0 || socket_open(s, &b->config.from))
		goto end;
	while (connect(s->fd, (void *)&at, sizeof(at)) && errno != EISCONN) {
		if (b->stop || !again()) {
			side_fail(s, "connecting");
			goto end;
		}
	}
	s->state = 1;
	while (!b->stop) {
		off_t from = 0;

		if (sendfile(s->fd, file, &from, CHUNK) < 0 && !again())
			break;
	}
end:
	if (file >= 0)
		close(file);
	return NULL;
}

static int side_start(struct bulk *b, struct side *s, void *(*run)(void *), int cpu,
		      struct error *err)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	s->bulk = b;
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	ret = pthread_create(&s->thread, &attr, run, s);
	pthread_attr_destroy(&attr);
	if (ret)
		return error_set(err, -ret, "starting a thread: %s", strerror(ret));
	s->started = true;
	pthread_setname_np(s->thread, s == &b->from ? "bulk-send" : "bulk-receive");
	return 0;
}

static bool receiver_ready(const struct bulk *b)
{
	return b->to.state > 0;
}

static bool data_flows(const struct bulk *b)
{
	return b->bytes > 0 && b->from.state > 0;
}

static int await(struct bulk *b, bool (*done)(const struct bulk *b), const char *what,
		 struct error *err)
{
	int64_t deadline = clock_now() + PATIENCE;

	while (!done(b)) {
		const struct side *failed = b->to.state < 0 ? &b->to : &b->from;

		if (failed->state < 0)
			return error_set(err, failed->state, "%s port %u: %s: %s",
					 b->config.address, b->config.port, failed->what,
					 strerror(-failed->state));
		if (clock_now() > deadline)
			return error_set(err, -ETIMEDOUT, "%s port %u: %s after %d s",
					 b->config.address, b->config.port, what,
					 (int)(PATIENCE / NSEC_PER_SEC));
		clock_sleep(NSEC_PER_MSEC);
	}
	return 0;
}

int bulk_start(const struct bulk_config *config, struct bulk **out, struct error *err)
{
	struct bulk *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
		return error_set(err, -ENOMEM, "no memory");
	b->config = *config;
	b->from.fd = b->to.fd = -1;
	ret = side_start(b, &b->to, receive, config->to.cpu, err);
	if (!ret)
		ret = await(b, receiver_ready, "not listening", err);
	if (!ret)
		ret = side_start(b, &b->from, transmit, config->from.cpu, err);
	if (!ret)
		ret = await(b, data_flows, "no data came through", err);
	if (ret)
		bulk_stop(b);
	else
		*out = b;
	return ret;
}

/* Of the namespace that the thread is in: segments that came, that went, and again. */
static void tcp_read(pid_t thread, uint64_t *in, uint64_t *out, uint64_t *again_out)
{
	char path[64], line[512];
	FILE *f;

	*in = *out = *again_out = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%d/net/snmp", thread);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		/* The first line has the names, which do not scan. */
		if (sscanf(line,
			   "Tcp: %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			   " %" SCNu64,
			   in, out, again_out) == 3)
			break;
	}
	if (f)
		fclose(f);
}

void bulk_read(const struct bulk *b, struct bulk_counts *out)
{
	uint64_t ignored, ignored_too;
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	getsockopt(b->from.fd, IPPROTO_TCP, TCP_INFO, &info, &length);
	out->segment = info.tcpi_snd_mss;
	out->bytes = b->bytes;
	tcp_read(b->to.tid, &out->packets, &ignored, &ignored_too);
	tcp_read(b->from.tid, &ignored, &out->sent, &out->again);
}

pid_t bulk_sender(const struct bulk *bulk)
{
	return bulk->from.tid;
}

pid_t bulk_receiver(const struct bulk *bulk)
{
	return bulk->to.tid;
}

static void side_stop(struct side *s)
{
	if (s->started)
		pthread_join(s->thread, NULL);
	if (s->fd >= 0)
		close(s->fd);
}

void bulk_stop(struct bulk *b)
{
	b->stop = true;
	side_stop(&b->from);
	side_stop(&b->to);
	free(b);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <napier/counters.h>

#include "lab/load/rrul_echo.h"
#include "lab/load/rrul_probe.h"
#include "lab/load/rrul_time.h"
#include "lab/load/side.h"
#include "lab/load/stream_socket.h"

enum { PROBE_MAX = 2048, OPTIONS = 64 };

struct rrul_echo {
	struct load_place place;
	bool spins;
	int fd, wake;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
	_Atomic bool stop;
	counter probes;
};

/* One probe, if there is one: it came with its class as an option, which is one of sending, too. */
static bool probe_reflect(struct rrul_echo *e)
{
	_Alignas(struct cmsghdr) char options[OPTIONS];
	uint8_t data[PROBE_MAX];
	struct sockaddr_storage from;
	struct iovec iov = {data, sizeof(data)};
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = options,
		.msg_controllen = sizeof(options),
	};
	ssize_t n = recvmsg(e->fd, &message, MSG_DONTWAIT);
	struct rrul_message head;
	struct cmsghdr *option;
	int tos = 0;

	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	if (n < RRUL_PROBE_SIZE || (message.msg_flags & MSG_TRUNC))
		return true;
	memcpy(&head, data, sizeof(head));
	if (ntohl(head.magic) != RRUL_MAGIC)
		return true;
	option = CMSG_FIRSTHDR(&message);
	if (option && option->cmsg_level == IPPROTO_IP && option->cmsg_type == IP_TOS) {
		/* It is received as a byte, and sent as an int. */
		tos = *CMSG_DATA(option);
		option->cmsg_len = CMSG_LEN(sizeof(tos));
		memcpy(CMSG_DATA(option), &tos, sizeof(tos));
		message.msg_controllen = CMSG_SPACE(sizeof(tos));
	} else if (!option || option->cmsg_type != IPV6_TCLASS) {
		message.msg_controllen = 0;
	}
	iov.iov_len = (size_t)n;
	counter_add(&e->probes, 1);
	/* One that cannot be sent is lost on its way back. */
	if (sendmsg(e->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return errno != EAGAIN;
	return true;
}

static void *echo_run(void *arg)
{
	struct rrul_echo *e = arg;

	e->tid = (pid_t)syscall(SYS_gettid);
	/* One that spins in real time would leave its CPU to nobody. */
	if (!e->spins)
		rrul_real_time();
	while (!e->stop) {
		struct pollfd p[] = {{.fd = e->fd, .events = POLLIN},
				     {.fd = e->wake, .events = POLLIN}};

		if (!e->spins)
			poll(p, 2, -1);
		while (!e->stop && probe_reflect(e))
			;
	}
	return NULL;
}

static int socket_open(struct rrul_echo *e, const struct load_config *config, struct error *err)
{
	struct stream_address at;
	int ret = side_address(&e->place, 0, &at.at, &at.length, err), one = 1;
	bool v6 = at.at.ss_family == AF_INET6;

	if (ret)
		return ret;
	e->fd = stream_socket(&e->place, at.at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (e->fd < 0)
		return error_set(err, e->fd, "opening a socket: %s", strerror(-e->fd));
	ret = stream_socket_options(e->fd, config, true);
	if (!ret && setsockopt(e->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
			       v6 ? IPV6_RECVTCLASS : IP_RECVTOS, &one, sizeof(one)))
		ret = -errno;
	if (!ret && bind(e->fd, (void *)&at.at, at.length))
		ret = -errno;
	return ret ? error_set(err, ret, "receiving probes on %s port %u: %s", e->place.address,
			       e->place.port, strerror(-ret))
		   : 0;
}

int rrul_echo_start(const struct load_config *config, const struct load_place *place,
		    struct rrul_echo **out, struct error *err)
{
	struct rrul_echo *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return error_set(err, -ENOMEM, "no memory for a server");
	e->place = *place;
	e->spins = config->server_spins;
	e->fd = -1;
	e->wake = eventfd(0, EFD_CLOEXEC);
	ret = e->wake < 0 ? error_set(err, -errno, "eventfd: %s", strerror(errno))
			  : socket_open(e, config, err);
	if (!ret)
		ret = side_thread_start(&e->place, 0, "rrul-echo", &e->thread, echo_run, e, err);
	e->started = !ret;
	while (e->started && !e->tid)
		usleep(100);
	if (ret)
		rrul_echo_stop(e);
	else
		*out = e;
	return ret;
}

pid_t rrul_echo_thread(const struct rrul_echo *e)
{
	return e->tid;
}

uint64_t rrul_echo_probes(const struct rrul_echo *e)
{
	return counter_read(&e->probes);
}

void rrul_echo_stop(struct rrul_echo *e)
{
	uint64_t one = 1;

	e->stop = true;
	if (e->wake >= 0 && write(e->wake, &one, sizeof(one)) != sizeof(one))
		(void)!errno;
	if (e->started)
		pthread_join(e->thread, NULL);
	if (e->fd >= 0)
		close(e->fd);
	if (e->wake >= 0)
		close(e->wake);
	free(e);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lab/load/stream_socket.h"

/* Kernel 6.9 on; older headers do not have it. */
#ifndef EPIOCSPARAMS
struct epoll_params {
	uint32_t busy_poll_usecs;
	uint16_t busy_poll_budget;
	uint8_t prefer_busy_poll;
	uint8_t pad;
};
#define EPIOCSPARAMS _IOW(0x8A, 0x01, struct epoll_params)
#endif

enum { EPOLL_BUDGET = 8 }; /* the kernel's own default */

int stream_address(const struct load_place *place, struct stream_address *out, struct error *err)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&out->at;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->at;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, place->address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(place->port);
		out->length = sizeof(*in);
		return 0;
	}
	if (inet_pton(AF_INET6, place->address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(place->port);
		out->length = sizeof(*in6);
		return 0;
	}
	return error_set(err, -EINVAL, "%s: not an IPv4 or IPv6 address", place->address);
}

int stream_socket(const struct load_place *place, int family, int type, int protocol)
{
	int back, fd;

	if (place->netns < 0) {
		fd = socket(family, type | SOCK_CLOEXEC, protocol);
		return fd < 0 ? -errno : fd;
	}
	back = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (back < 0)
		return -errno;
	if (setns(place->netns, CLONE_NEWNET)) {
		fd = -errno;
		close(back);
		return fd;
	}
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		fd = -errno;
	if (setns(back, CLONE_NEWNET)) {
		int ret = -errno;

		if (fd >= 0)
			close(fd);
		fd = ret;
	}
	close(back);
	return fd;
}

static bool busy_polls(const struct load_config *config, bool server)
{
	return config->busy_poll_usecs && (server || config->client_spins);
}

int stream_socket_options(int fd, const struct load_config *config, bool server)
{
	int usecs = (int)config->busy_poll_usecs, budget = (int)config->busy_poll_budget, one = 1;

	if (!busy_polls(config, server))
		return 0;
	if (setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &usecs, sizeof(usecs)) ||
	    (config->prefer_busy_poll &&
	     setsockopt(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &one, sizeof(one))) ||
	    (budget && setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget, sizeof(budget))))
		return -errno;
	return 0;
}

int stream_epoll_options(int epoll, const struct load_config *config, bool server)
{
	struct epoll_params params = {
		.busy_poll_usecs = config->busy_poll_usecs,
		.busy_poll_budget = (uint16_t)(config->busy_poll_budget ? config->busy_poll_budget
									: EPOLL_BUDGET),
		.prefer_busy_poll = config->prefer_busy_poll,
	};

	if (!busy_polls(config, server))
		return 0;
	if (ioctl(epoll, EPIOCSPARAMS, &params) && errno != ENOTTY && errno != EINVAL)
		return -errno;
	return 0;
}

int stream_socket_class(int fd, int family, uint8_t tos)
{
	int value = tos;
	int ret = family == AF_INET6
			  ? setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof(value))
			  : setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof(value));

	return ret ? -errno : 0;
}

int stream_socket_look(int fd)
{
	struct timeval look = {.tv_usec = STREAM_LOOK_MS * 1000};

	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof(look)))
		return -errno;
	return 0;
}

void stream_files_allow(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

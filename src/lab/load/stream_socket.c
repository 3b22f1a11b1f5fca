/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <unistd.h>

#include "lab/load/side.h"
#include "lab/load/stream_socket.h"

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

int stream_socket_options(int fd, const struct load_config *config, bool server)
{
	return server || config->client_spins ? side_socket_busy_poll(fd, config) : 0;
}

int stream_epoll_options(int epoll, const struct load_config *config, bool server)
{
	return server || config->client_spins ? side_epoll_busy_poll(epoll, config) : 0;
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab/parts/udp_serve.h"

/* Packets of one busy poll: of the kernel's own default a server that counts would get too few. */
enum { BUDGET = 64 };

static int option_set(int fd, int option, int value)
{
	return setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)) ? -errno : 0;
}

static int busy_poll_set(int fd, enum udp_server_kind kind)
{
	int ret = 0;

	if (kind == UDP_KERNEL_PREFER)
		ret = option_set(fd, SO_PREFER_BUSY_POLL, 1);
	if (!ret && (kind == UDP_KERNEL_PREFER || kind == UDP_KERNEL_BUSY_POLL))
		ret = option_set(fd, SO_BUSY_POLL, UDP_SERVER_BUSY_USECS);
	if (!ret && kind == UDP_KERNEL_PREFER)
		ret = option_set(fd, SO_BUSY_POLL_BUDGET, BUDGET);
	return ret;
}

static int socket_open(struct udp_server *server)
{
	const struct udp_server_config *config = &server->config;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(config->port)};
	struct timeval look = {.tv_usec = UDP_SERVER_LOOK_MS * 1000};
	int fd, ret;

	if (netlab_enter(config->ends->lab, config->ends->near_ns, &server->err))
		return -EPERM;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (void *)&at, sizeof(at)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look))) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
		return error_set(&server->err, ret, "a server's socket: %s", strerror(-ret));
	}
	ret = busy_poll_set(fd, config->kind);
	if (!ret)
		return fd;
	close(fd);
	return error_set(&server->err, -EOPNOTSUPP, "a socket that busy-polls: %s", strerror(-ret));
}

static void echo(struct udp_server *server, int fd, int flags)
{
	char data[UDP_SERVER_SIZE];

	while (!server->stop) {
		struct sockaddr_in peer;
		socklen_t length = sizeof(peer);
		ssize_t n = recvfrom(fd, data, sizeof(data), flags, (void *)&peer, &length);

		if (n < 0)
			continue;
		udp_server_count(server, 1);
		/* One that cannot be sent is lost, as the client will see. */
		(void)!sendto(fd, data, (size_t)n, 0, (void *)&peer, length);
	}
}

static int count(struct udp_server *server, int fd, int flags)
{
	struct mmsghdr messages[UDP_SERVER_VECTOR] = {0};
	struct iovec to[UDP_SERVER_VECTOR];
	char *data = malloc((size_t)UDP_SERVER_VECTOR * UDP_SERVER_SIZE);

	if (!data)
		return error_set(&server->err, -ENOMEM, "no memory");
	for (unsigned i = 0; i < UDP_SERVER_VECTOR; i++) {
		to[i] = (struct iovec){data + (size_t)i * UDP_SERVER_SIZE, UDP_SERVER_SIZE};
		messages[i].msg_hdr = (struct msghdr){.msg_iov = &to[i], .msg_iovlen = 1};
	}
	while (!server->stop) {
		int n = recvmmsg(fd, messages, UDP_SERVER_VECTOR, flags | MSG_WAITFORONE, NULL);

		if (n > 0)
			udp_server_count(server, (unsigned)n);
	}
	free(data);
	return 0;
}

int udp_kernel_serve(struct udp_server *server)
{
	int flags = server->config.kind == UDP_KERNEL_SPINS ? MSG_DONTWAIT : 0;
	int fd = socket_open(server), ret = 0;

	if (fd < 0)
		return fd;
	server->state = 1;
	if (server->config.work == UDP_ECHO)
		echo(server, fd, flags);
	else
		ret = count(server, fd, flags);
	close(fd);
	return ret;
}

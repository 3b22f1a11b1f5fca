/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"
#include "lab/load/side.h"

#define PATIENCE (5 * NSEC_PER_SEC)
enum { AGAIN_MS = 100 };

/* Waits a little for so many bytes or a datagram; how many came, 0, or a negative errno. */
static ssize_t answer_read(int fd, struct rr_hello *answer, size_t got)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t n;

	if (poll(&p, 1, AGAIN_MS) <= 0)
		return 0;
	n = recv(fd, (uint8_t *)answer + got, sizeof(*answer) - got, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return 0;
	/* The end of a connection. */
	return n < 0 ? -errno : n ? n : -ECONNRESET;
}

static bool whole(const struct rr_hello *answer, size_t got)
{
	return got == sizeof(*answer) ||
	       (got >= sizeof(answer->head) && (answer->head.magic != htonl(RR_MAGIC) ||
						answer->head.version != htons(RR_VERSION)));
}

/* How many bytes of an answer came, or a negative errno. */
static ssize_t exchange(int fd, const struct rr_hello *hello, bool datagrams,
			struct rr_hello *answer)
{
	int64_t deadline = clock_now() + PATIENCE;
	bool sent = false;
	size_t got = 0;

	while (!whole(answer, got) && clock_now() < deadline) {
		ssize_t n = 0;

		/* Over UDP either may get lost. */
		if (datagrams || !sent)
			n = send(fd, hello, sizeof(*hello), MSG_NOSIGNAL) < 0 ? -errno : 0;
		sent = true;
		if (n >= 0)
			n = answer_read(fd, answer, got);
		if (n == -ECONNRESET && got)
			return (ssize_t)got;
		if (n < 0)
			return n;
		got += (size_t)n;
	}
	return whole(answer, got) ? (ssize_t)got : -ETIMEDOUT;
}

static int connect_within(int fd, const struct sockaddr_storage *address, socklen_t length)
{
	struct timeval limit = {.tv_sec = PATIENCE / NSEC_PER_SEC};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!connect(fd, (const void *)address, length))
		return 0;
	return errno == EINPROGRESS ? -ETIMEDOUT : -errno;
}

int rr_greet(struct rr_client *client)
{
	const struct load_place *place = &client->place;
	bool datagrams = client->config.protocol == LOAD_UDP;
	struct rr_hello hello, answer = {0};
	struct sockaddr_storage address;
	struct error err;
	socklen_t length;
	ssize_t n;
	int fd;
	int ret = side_address(place, 0, &address, &length, &err);

	fd = socket(address.ss_family, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	if (fd < 0)
		ret = -errno;
	if (!ret)
		ret = connect_within(fd, &address, length);
	rr_hello_make(&client->config, RR_ASKS, &hello);
	n = ret ? ret : exchange(fd, &hello, datagrams, &answer);
	if (fd >= 0)
		close(fd);
	if (n >= 0) {
		ret = rr_hello_check(&client->config, place, &answer, (size_t)n, &err);
		if (ret)
			rr_client_fail(client, ret, "%s", err.text);
		return ret;
	}
	if (n == -ECONNREFUSED)
		rr_client_fail(client, (int)n,
			       "nobody listens at %s port %u: start the server first",
			       place->address, place->port);
	else if (n == -ETIMEDOUT)
		rr_client_fail(client, (int)n, "%s port %u does not answer within %d s",
			       place->address, place->port, (int)(PATIENCE / NSEC_PER_SEC));
	else
		rr_client_fail(client, (int)n, "greeting %s port %u: %s", place->address,
			       place->port, strerror((int)-n));
	return (int)n;
}

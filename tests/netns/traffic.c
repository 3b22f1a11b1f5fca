/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT 4711
#define CHUNK 65536
#define TRIES 5

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address_parse(const char *text, uint16_t port, union address *out)
{
	memset(out, 0, sizeof(*out));
	if (strchr(text, ':')) {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons(port);
		assert_int_equal(inet_pton(AF_INET6, text, &out->v6.sin6_addr), 1);
		return sizeof(out->v6);
	}
	out->v4.sin_family = AF_INET;
	out->v4.sin_port = htons(port);
	assert_int_equal(inet_pton(AF_INET, text, &out->v4.sin_addr), 1);
	return sizeof(out->v4);
}

static int socket_open(const union address *address, int type, int protocol, int seconds)
{
	const struct timeval patience = {.tv_sec = seconds};
	int fd = socket(address->any.sa_family, type, protocol), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

/* Bytes that tell their position. */
static void chunk_fill(uint8_t *chunk, uint64_t at, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		uint64_t word = ((at + i) / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);

		chunk[i] = (uint8_t)(word >> (at + i) % 8 * 8);
	}
}

/* --- TCP ----------------------------------------------------------------------------------- */

struct stream_ends {
	union address address;
	socklen_t size;
	uint64_t bytes;
	_Atomic int *stop;
};

static int receive(void *arg, int up)
{
	struct stream_ends *ends = arg;
	int listener = socket_open(&ends->address, SOCK_STREAM, 0, TRAFFIC_SECONDS), fd;
	uint8_t chunk[CHUNK], wanted[CHUNK];
	uint64_t at = 0;
	ssize_t n;

	if (bind(listener, &ends->address.any, ends->size) || listen(listener, 1) || !netns_up(up))
		return 1;
	fd = accept(listener, NULL, NULL);
	while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0) {
		chunk_fill(wanted, at, (size_t)n);
		if (memcmp(chunk, wanted, (size_t)n))
			return 2;
		at += (uint64_t)n;
	}
	if (n < 0)
		return 3;
	return send(fd, &at, sizeof(at), MSG_NOSIGNAL) == sizeof(at) ? 0 : 4;
}

static bool enough(const struct stream_ends *ends, uint64_t at)
{
	if (ends->bytes)
		return at >= ends->bytes;
	usleep(2000);
	return atomic_load(ends->stop);
}

static int transmit(void *arg)
{
	struct stream_ends *ends = arg;
	int fd = socket_open(&ends->address, SOCK_STREAM, 0, TRAFFIC_SECONDS);
	uint64_t at = 0, came;
	uint8_t chunk[CHUNK];

	if (connect(fd, &ends->address.any, ends->size))
		return 1;
	while (!enough(ends, at)) {
		size_t left = ends->bytes ? ends->bytes - at : CHUNK;
		size_t size = left < CHUNK ? left : CHUNK;

		chunk_fill(chunk, at, size);
		for (size_t done = 0; done < size;) {
			ssize_t n = send(fd, chunk + done, size - done, MSG_NOSIGNAL);

			if (n <= 0)
				return 2;
			done += (size_t)n;
		}
		at += size;
	}
	shutdown(fd, SHUT_WR);
	if (recv(fd, &came, sizeof(came), MSG_WAITALL) != sizeof(came))
		return 3;
	return at && came == at ? 0 : 4;
}

void stream_begin(const struct netns_links *links, unsigned from, unsigned to, const char *address,
		  uint64_t bytes, struct stream *out)
{
	struct stream_ends ends = {.bytes = bytes};

	ends.size = address_parse(address, PORT, &ends.address);
	ends.stop = out->stop = mmap(NULL, sizeof(*out->stop), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(out->stop, MAP_FAILED);
	out->receiver = netns_fork_up(links, to, receive, &ends);
	out->sender = netns_fork(links, from, transmit, &ends);
}

void stream_end(struct stream *stream)
{
	atomic_store(stream->stop, 1);
	assert_int_equal(netns_wait(stream->sender, 2 * TRAFFIC_SECONDS), 0);
	assert_int_equal(netns_wait(stream->receiver, TRAFFIC_SECONDS), 0);
	munmap((void *)stream->stop, sizeof(*stream->stop));
}

void stream_run(const struct netns_links *links, unsigned from, unsigned to, const char *address,
		uint64_t bytes)
{
	struct stream stream;

	stream_begin(links, from, to, address, bytes, &stream);
	stream_end(&stream);
}

/* --- UDP ----------------------------------------------------------------------------------- */

struct datagrams {
	union address address;
	socklen_t size;
	const uint32_t *sizes;
	uint32_t n;
};

/* Until its test ends it. */
static int datagrams_return(void *arg, int up)
{
	struct datagrams *d = arg;
	int fd = socket_open(&d->address, SOCK_DGRAM, 0, TRAFFIC_SECONDS);
	uint8_t data[CHUNK];

	if (bind(fd, &d->address.any, d->size) || !netns_up(up))
		return 1;
	for (;;) {
		union address from;
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(fd, data, sizeof(data), 0, &from.any, &size);

		if (n < 0)
			return 2;
		sendto(fd, data, (size_t)n, 0, &from.any, size);
	}
}

/* An answer to an earlier datagram, which was late, has another size, or another content. */
static bool datagram_passes(int fd, uint32_t size)
{
	uint8_t data[CHUNK], back[CHUNK];

	chunk_fill(data, size, size);
	for (int tries = 0; tries < TRIES; tries++) {
		ssize_t n;

		if (send(fd, data, size, 0) != size)
			return false;
		while ((n = recv(fd, back, sizeof(back), 0)) > 0)
			if (n == size && !memcmp(back, data, size))
				return true;
	}
	return false;
}

static int datagrams_send(void *arg)
{
	struct datagrams *d = arg;
	int fd = socket_open(&d->address, SOCK_DGRAM, 0, 3);

	if (connect(fd, &d->address.any, d->size))
		return 1;
	for (uint32_t i = 0; i < d->n; i++) {
		if (datagram_passes(fd, d->sizes[i]))
			continue;
		printf("  a datagram of %u bytes does not pass\n", d->sizes[i]);
		fflush(stdout);
		return 2;
	}
	return 0;
}

void datagrams_run(const struct netns_links *links, unsigned from, unsigned to, const char *address,
		   const uint32_t *sizes, uint32_t n)
{
	struct datagrams d = {.sizes = sizes, .n = n};
	pid_t server;
	int status;

	d.size = address_parse(address, PORT, &d.address);
	server = netns_fork_up(links, to, datagrams_return, &d);
	status = netns_wait(netns_fork(links, from, datagrams_send, &d), TRAFFIC_SECONDS);
	netns_wait(server, 0);
	assert_int_equal(status, 0);
}

/* --- echo ---------------------------------------------------------------------------------- */

struct echo {
	union address address;
	socklen_t size;
	uint32_t bytes;
};

static uint16_t sum(const uint8_t *data, size_t size)
{
	uint32_t total = 0;

	for (size_t i = 0; i < size; i++)
		total += i % 2 ? data[i] : (uint32_t)data[i] << 8;
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return htons((uint16_t)~total);
}

/* The kernel takes the IPv4 header along, and computes ICMPv6's checksum itself. */
static int echo_ask(void *arg)
{
	struct echo *echo = arg;
	bool v6 = echo->address.any.sa_family == AF_INET6;
	int fd = socket_open(&echo->address, SOCK_RAW, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP, 3);
	uint8_t out[CHUNK] = {v6 ? ICMP6_ECHO_REQUEST : ICMP_ECHO}, in[CHUNK + 60];
	uint16_t id = htons((uint16_t)getpid()), check;
	size_t size = 8 + echo->bytes;

	memcpy(out + 4, &id, 2);
	chunk_fill(out + 8, 0, echo->bytes);
	check = v6 ? 0 : sum(out, size);
	memcpy(out + 2, &check, 2);
	for (int i = 0; i < TRIES; i++) {
		ssize_t n;

		if (sendto(fd, out, size, 0, &echo->address.any, echo->size) < 0)
			continue;
		while ((n = recv(fd, in, sizeof(in), 0)) > 0) {
			size_t skip = v6 ? 0 : (size_t)(in[0] & 15) * 4;

			if ((size_t)n == skip + size &&
			    in[skip] == (v6 ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) &&
			    !memcmp(in + skip + 4, out + 4, size - 4))
				return 0;
		}
	}
	return 1;
}

bool echoes(const struct netns_links *links, unsigned from, const char *address, uint32_t size)
{
	struct echo echo = {.bytes = size};

	echo.size = address_parse(address, 0, &echo.address);
	return !netns_wait(netns_fork(links, from, echo_ask, &echo), TRAFFIC_SECONDS);
}

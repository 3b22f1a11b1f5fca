/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lab/load/rr_server.h"
#include "lab/load/side.h"

enum {
	BUFFERS = 1 << 22, /* bytes for all datagrams of a vector, at most */
	SLOT_MAX = 1 << 16,
	QUEUE = 1 << 22, /* what the socket may hold, where the system lets it */
	LOOK_USECS = 20000,
};

struct vector {
	unsigned n;
	struct mmsghdr in[RR_SERVER_VECTOR], out[RR_SERVER_VECTOR];
	struct iovec to[RR_SERVER_VECTOR], from[RR_SERVER_VECTOR];
	struct sockaddr_storage peer[RR_SERVER_VECTOR];
	uint8_t *data; /* a request and its response have the same place */
	size_t slot;
};

static int socket_open(struct rr_server_worker *w)
{
	struct rr_server *server = w->server;
	struct timeval look = {.tv_usec = LOOK_USECS};
	struct sockaddr_storage address;
	socklen_t length;
	int one = 1, queue = QUEUE, fd;
	int ret = side_address(&server->place, 0, &address, &length, &server->err);

	if (ret)
		return ret;
	fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* The threads' sockets share the port; an alien one would get some of the requests. */
	if (fd >= 0 && server->config.server_threads > 1)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	if (fd < 0 || bind(fd, (void *)&address, length) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof(look))) {
		ret = error_set(&server->err, -errno, "a UDP socket on %s port %u: %s",
				server->place.address, server->place.port, strerror(errno));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue));
	ret = side_socket_busy_poll(fd, &server->config);
	if (!ret)
		return fd;
	close(fd);
	return error_set(&server->err, ret, "a socket that busy-polls: %s", strerror(-ret));
}

static struct vector *vector_create(const struct load_config *config)
{
	struct vector *v = calloc(1, sizeof(*v));
	size_t size = config->request_size > config->response_size ? config->request_size
								   : config->response_size;

	if (!v)
		return NULL;
	/* One byte more than a request has tells a longer one from it. */
	v->slot = (size < sizeof(struct rr_hello) ? sizeof(struct rr_hello) : size) + 1;
	v->slot = (v->slot + 63) / 64 * 64;
	v->n = BUFFERS / v->slot < RR_SERVER_VECTOR ? (unsigned)(BUFFERS / v->slot)
						    : RR_SERVER_VECTOR;
	v->data = calloc(v->n, v->slot);
	if (!v->data) {
		free(v);
		return NULL;
	}
	for (unsigned i = 0; i < v->n; i++) {
		v->to[i] = (struct iovec){v->data + i * v->slot, v->slot};
		v->in[i].msg_hdr = (struct msghdr){
			.msg_name = &v->peer[i],
			.msg_namelen = sizeof(v->peer[i]),
			.msg_iov = &v->to[i],
			.msg_iovlen = 1,
		};
	}
	return v;
}

/* A datagram that is none of ours gets no answer. */
static void answer_add(struct rr_server_worker *w, struct vector *v, unsigned i, unsigned *out)
{
	uint32_t size;
	size_t got = v->in[i].msg_len;

	if (!rr_server_request(w, v->to[i].iov_base, got, &size))
		return;
	v->from[*out] = (struct iovec){v->to[i].iov_base, size};
	v->out[*out].msg_hdr = (struct msghdr){
		.msg_name = &v->peer[i],
		.msg_namelen = v->in[i].msg_hdr.msg_namelen,
		.msg_iov = &v->from[*out],
		.msg_iovlen = 1,
	};
	(*out)++;
}

/* What cannot be sent is lost, as the client will see. */
static void answers_send(struct rr_server_worker *w, int fd, struct vector *v, unsigned n)
{
	for (unsigned at = 0; at < n;) {
		int sent = sendmmsg(fd, v->out + at, n - at, 0);

		if (sent <= 0) {
			at++;
			continue;
		}
		for (int i = 0; i < sent; i++)
			counter_add(&w->bytes_out, v->out[at + (unsigned)i].msg_len);
		counter_add(&w->transactions, (uint64_t)sent);
		at += (unsigned)sent;
	}
}

/*
 * Of one flow with one request under way there is never a second datagram to be found, of two
 * seldom: to look for it, and to pass vectors of one, costs 3 to 9% of a transaction. Four a thread
 * are better taken together.
 */
static bool comes_singly(const struct load_config *config)
{
	return config->rate == 0 && config->flows <= 2 * config->server_threads;
}

static void serve_singly(struct rr_server_worker *w, int fd, struct vector *v)
{
	int flags = w->server->config.server_spins ? MSG_DONTWAIT : 0;
	struct sockaddr_storage *peer = &v->peer[0];

	while (!w->server->stop) {
		socklen_t length = sizeof(*peer);
		ssize_t n = recvfrom(fd, v->data, v->slot, flags, (void *)peer, &length);
		uint32_t size;

		rr_server_stall(w);
		if (n < 0)
			continue;
		counter_add(&w->bytes_in, (uint64_t)n);
		if (!rr_server_request(w, v->data, (size_t)n, &size))
			continue;
		/* What cannot be sent is lost, as the client will see. */
		if (sendto(fd, v->data, size, 0, (void *)peer, length) < 0)
			continue;
		counter_add(&w->bytes_out, size);
		counter_add(&w->transactions, 1);
	}
}

static void serve_vectors(struct rr_server_worker *w, int fd, struct vector *v)
{
	const struct load_config *config = &w->server->config;
	int flags = config->server_spins ? MSG_DONTWAIT : MSG_WAITFORONE;

	while (!w->server->stop) {
		unsigned out = 0;
		int n = recvmmsg(fd, v->in, v->n, flags, NULL);

		rr_server_stall(w);
		for (int i = 0; i < n; i++) {
			counter_add(&w->bytes_in, v->in[i].msg_len);
			answer_add(w, v, (unsigned)i, &out);
			v->in[i].msg_hdr.msg_namelen = sizeof(v->peer[i]);
			/* With work, each is answered when it is done. */
			if (config->work) {
				answers_send(w, fd, v, out);
				out = 0;
			}
		}
		answers_send(w, fd, v, out);
	}
}

int rr_server_udp(struct rr_server_worker *w)
{
	struct vector *v;
	int fd = socket_open(w);

	if (fd < 0)
		return fd;
	v = vector_create(&w->server->config);
	if (!v) {
		close(fd);
		return error_set(&w->server->err, -ENOMEM, "no memory for a server");
	}
	rr_server_ready(w);
	if (comes_singly(&w->server->config))
		serve_singly(w, fd, v);
	else
		serve_vectors(w, fd, v);
	free(v->data);
	free(v);
	close(fd);
	return 0;
}

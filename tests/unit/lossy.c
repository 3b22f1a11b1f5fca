/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "lossy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <napier/machine.h>

#include <lab/clock.h>

#include "loopback.h"

enum {
	FLOWS = 64,
	CONNECTIONS = 64,
	SIZE_MAX_DATAGRAM = 65536,
	WAIT_MS = 20,
	HELD_MS = 100,
	ROOM = 4 << 20
};

struct held {
	size_t size; /* 0: nothing */
	int64_t since;
	uint8_t data[2048];
};

struct flow {
	struct sockaddr_in client;
	int server; /* a socket that is connected to it */
	struct held held[2];
};

struct pipe {
	int fd[2]; /* to the client, to the server */
};

struct lossy {
	struct sockaddr_in server;
	lossy_judge *judge;
	void *arg;
	int listener, datagrams;
	pthread_t thread;
	_Atomic bool stop;
	unsigned flows, pipes;
	struct flow flow[FLOWS];
	struct pipe pipe[CONNECTIONS];
	uint8_t data[SIZE_MAX_DATAGRAM];
};

static struct sockaddr_in address_of(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
	char text[INET_ADDRSTRLEN];

	loopback_address(text, sizeof(text));
	inet_pton(AF_INET, text, &at.sin_addr);
	return at;
}

static void pass(struct lossy *l, struct flow *f, bool up, const uint8_t *data, size_t size)
{
	ssize_t n = up ? send(f->server, data, size, 0)
		       : sendto(l->datagrams, data, size, 0, (void *)&f->client, sizeof(f->client));

	(void)n; /* nobody there is a loss, too */
}

static void held_pass(struct lossy *l, struct flow *f, bool up)
{
	struct held *h = &f->held[up];

	if (h->size)
		pass(l, f, up, h->data, h->size);
	h->size = 0;
}

static void datagram(struct lossy *l, struct flow *f, bool up, size_t size)
{
	enum lossy_fate fate = l->judge(l->arg, (unsigned)(f - l->flow), up, l->data, size);
	struct held *h = &f->held[up];

	if (fate == LOSSY_LATER && !h->size && size <= sizeof(h->data)) {
		memcpy(h->data, l->data, size);
		h->size = size;
		h->since = clock_now();
		return;
	}
	for (unsigned i = fate == LOSSY_DROP ? 0 : fate == LOSSY_TWICE ? 2 : 1; i; i--)
		pass(l, f, up, l->data, size);
	if (fate != LOSSY_DROP)
		held_pass(l, f, up);
}

static struct flow *flow_of(struct lossy *l, const struct sockaddr_in *client)
{
	struct flow *f;

	for (unsigned i = 0; i < l->flows; i++) {
		if (l->flow[i].client.sin_port == client->sin_port)
			return &l->flow[i];
	}
	if (l->flows == FLOWS)
		return NULL;
	f = &l->flow[l->flows];
	*f = (struct flow){.client = *client, .server = socket(AF_INET, SOCK_DGRAM, 0)};
	if (connect(f->server, (void *)&l->server, sizeof(l->server)))
		return NULL;
	l->flows++;
	return f;
}

static void datagrams_take(struct lossy *l, struct flow *f)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	struct flow *to = f;
	ssize_t n;

	while ((n = recvfrom(f ? f->server : l->datagrams, l->data, sizeof(l->data), MSG_DONTWAIT,
			     (void *)&from, &length)) > 0) {
		if (!f)
			to = flow_of(l, &from);
		if (to)
			datagram(l, to, !f, (size_t)n);
		length = sizeof(from);
	}
}

static void connection_add(struct lossy *l)
{
	struct pipe *p = &l->pipe[l->pipes];

	p->fd[0] = accept(l->listener, NULL, NULL);
	p->fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (l->pipes == CONNECTIONS - 1 ||
	    connect(p->fd[1], (void *)&l->server, sizeof(l->server))) {
		close(p->fd[0]);
		close(p->fd[1]);
		return;
	}
	l->pipes++;
}

/* An end is passed on as an end. */
static void pipe_pass(struct lossy *l, struct pipe *p, unsigned from)
{
	ssize_t n = recv(p->fd[from], l->data, sizeof(l->data), 0), sent = 0, more;

	while (sent < n) {
		more = send(p->fd[!from], l->data + sent, (size_t)(n - sent), MSG_NOSIGNAL);
		if (more < 0)
			break;
		sent += more;
	}
	if (n <= 0 || sent < n) {
		shutdown(p->fd[!from], SHUT_WR);
		close(p->fd[from]);
		p->fd[from] = -1;
		if (p->fd[!from] >= 0 && n < 0) {
			close(p->fd[!from]);
			p->fd[!from] = -1;
		}
	}
}

static void held_look(struct lossy *l)
{
	for (unsigned i = 0; i < 2 * l->flows; i++) {
		struct flow *f = &l->flow[i / 2];

		if (f->held[i % 2].size &&
		    clock_now() - f->held[i % 2].since > HELD_MS * NSEC_PER_MSEC) {
			l->judge(l->arg, i / 2, i % 2, NULL, 0);
			held_pass(l, f, i % 2);
		}
	}
}

static void *lossy_run(void *arg)
{
	struct lossy *l = arg;

	loopback_stay();
	while (!l->stop) {
		struct pollfd p[2 + FLOWS + 2 * CONNECTIONS];
		unsigned flows = l->flows, pipes = l->pipes;

		p[0] = (struct pollfd){.fd = l->listener, .events = POLLIN};
		p[1] = (struct pollfd){.fd = l->datagrams, .events = POLLIN};
		for (unsigned i = 0; i < flows; i++)
			p[2 + i] = (struct pollfd){.fd = l->flow[i].server, .events = POLLIN};
		for (unsigned i = 0; i < 2 * pipes; i++)
			p[2 + flows + i] =
				(struct pollfd){.fd = l->pipe[i / 2].fd[i % 2], .events = POLLIN};
		poll(p, 2 + flows + 2 * pipes, WAIT_MS);
		if (p[0].revents)
			connection_add(l);
		if (p[1].revents)
			datagrams_take(l, NULL);
		for (unsigned i = 0; i < flows; i++) {
			if (p[2 + i].revents)
				datagrams_take(l, &l->flow[i]);
		}
		for (unsigned i = 0; i < 2 * pipes; i++) {
			if (p[2 + flows + i].revents && l->pipe[i / 2].fd[i % 2] >= 0)
				pipe_pass(l, &l->pipe[i / 2], i % 2);
		}
		held_look(l);
	}
	return NULL;
}

struct lossy *lossy_start(uint16_t port, uint16_t server, lossy_judge *judge, void *arg)
{
	struct sockaddr_in at = address_of(port);
	struct lossy *l = calloc(1, sizeof(*l));
	int one = 1, room = ROOM;

	assert_non_null(l);
	l->server = address_of(server);
	l->judge = judge;
	l->arg = arg;
	l->listener = socket(AF_INET, SOCK_STREAM, 0);
	l->datagrams = socket(AF_INET, SOCK_DGRAM, 0);
	setsockopt(l->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(l->datagrams, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(l->listener, (void *)&at, sizeof(at)) || listen(l->listener, CONNECTIONS) ||
	    bind(l->datagrams, (void *)&at, sizeof(at))) {
		close(l->listener);
		close(l->datagrams);
		free(l);
		return NULL;
	}
	assert_int_equal(pthread_create(&l->thread, NULL, lossy_run, l), 0);
	return l;
}

void lossy_stop(struct lossy *l)
{
	l->stop = true;
	pthread_join(l->thread, NULL);
	close(l->listener);
	close(l->datagrams);
	for (unsigned i = 0; i < l->flows; i++)
		close(l->flow[i].server);
	for (unsigned i = 0; i < 2 * l->pipes; i++) {
		if (l->pipe[i / 2].fd[i % 2] >= 0)
			close(l->pipe[i / 2].fd[i % 2]);
	}
	free(l);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <napier/counters.h>

#include "lab/rr_common.h"

enum { EVENTS = 64, BACKLOG = 4096 };

struct connection {
	int fd;
	struct worker *worker;
	struct connection *next, **previous; /* in the worker's list */
	bool greeted;
	bool closing; /* refused: the answer is all that is sent */
	bool wants_out;
	uint32_t got;	 /* of the hello or request that is coming */
	uint32_t unsent; /* of the answer that is going out */
	uint32_t answer; /* its size */
	uint64_t tag;
	struct rr_hello hello;
};

struct worker {
	struct rr_server *server;
	pthread_t thread;
	bool started;
	int epoll;
	uint8_t *buffer;
	pthread_mutex_t lock; /* of the list: worker 0 adds to all */
	struct connection *connections;
	counter transactions, refused, retransmits;
};

struct rr_server {
	struct rr_config config;
	int listener, stop_event;
	_Atomic int ready; /* 1: listening, negative: errno */
	counter connections;
	unsigned next_worker;
	struct worker worker[];
};

static void connection_close(struct connection *c)
{
	counter_add(&c->worker->retransmits, rr_retransmits(c->fd));
	pthread_mutex_lock(&c->worker->lock);
	*c->previous = c->next;
	if (c->next)
		c->next->previous = c->previous;
	pthread_mutex_unlock(&c->worker->lock);
	/* close() alone does not end the events while a fork()ed child has the descriptor, too. */
	epoll_ctl(c->worker->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	free(c);
}

static int connection_watch(struct connection *c, int operation, bool out)
{
	struct epoll_event event = {.events = out ? EPOLLOUT : EPOLLIN, .data.ptr = c};

	c->wants_out = out;
	return epoll_ctl(c->worker->epoll, operation, c->fd, &event);
}

static void connection_add(struct rr_server *server, int fd)
{
	struct worker *w = &server->worker[server->next_worker++ % server->config.threads];
	struct connection *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->fd = fd;
	c->worker = w;
	pthread_mutex_lock(&w->lock);
	c->next = w->connections;
	c->previous = &w->connections;
	if (c->next)
		c->next->previous = &c->next;
	w->connections = c;
	pthread_mutex_unlock(&w->lock);
	counter_add(&server->connections, 1);
	/* After this the worker may close and free it. */
	if (connection_watch(c, EPOLL_CTL_ADD, false))
		connection_close(c);
}

/* False: the connection is gone. */
static bool answer_send(struct connection *c)
{
	struct worker *w = c->worker;
	const uint8_t *answer = c->greeted ? w->buffer : (uint8_t *)&c->hello;

	while (c->unsent) {
		ssize_t n;

		/* The buffer is all connections', and requests are read into it. */
		if (c->greeted && c->answer - c->unsent < RR_TAG)
			memcpy(w->buffer, &c->tag, c->answer < RR_TAG ? c->answer : RR_TAG);
		n = send(c->fd, answer + c->answer - c->unsent, c->unsent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			if (c->wants_out || !connection_watch(c, EPOLL_CTL_MOD, true))
				return true;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			connection_close(c);
			return false;
		}
		c->unsent -= (uint32_t)n;
	}
	if (c->closing) {
		connection_close(c);
		return false;
	}
	if (c->greeted)
		counter_add(&w->transactions, 1);
	c->greeted = true;
	c->got = 0;
	if (c->wants_out && connection_watch(c, EPOLL_CTL_MOD, false)) {
		connection_close(c);
		return false;
	}
	return true;
}

static void hello_answer(struct connection *c)
{
	const struct rr_config *config = &c->worker->server->config;
	const struct rr_hello *h = &c->hello;
	enum rr_status status = RR_ACCEPTED;

	if (ntohl(h->magic) != RR_MAGIC || ntohs(h->version) != RR_VERSION)
		status = RR_OTHER_VERSION;
	else if (ntohl(h->request_size) != config->request_size ||
		 ntohl(h->response_size) != config->response_size)
		status = RR_OTHER_SIZES;
	if (status != RR_ACCEPTED)
		counter_add(&c->worker->refused, 1);
	c->closing = status != RR_ACCEPTED;
	c->hello = rr_hello(config, status);
	c->answer = c->unsent = sizeof(c->hello);
	answer_send(c);
}

static void connection_read(struct connection *c)
{
	struct worker *w = c->worker;
	const struct rr_config *config = &w->server->config;
	uint32_t size = c->greeted ? config->request_size : (uint32_t)sizeof(c->hello);
	uint8_t *into = c->greeted ? w->buffer : (uint8_t *)&c->hello + c->got;
	ssize_t n = recv(c->fd, into, size - c->got, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_close(c);
		return;
	}
	/* The tag may come in pieces. */
	for (uint32_t i = 0; c->greeted && i < (uint32_t)n && c->got + i < RR_TAG; i++)
		((uint8_t *)&c->tag)[c->got + i] = into[i];
	c->got += (uint32_t)n;
	if (c->got < size)
		return;
	if (!c->greeted) {
		hello_answer(c);
		return;
	}
	c->answer = c->unsent = config->response_size;
	answer_send(c);
}

static void accept_all(struct rr_server *server)
{
	int fd;

	while ((fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		connection_add(server, fd);
}

static int listen_start(struct rr_server *server)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = server};
	struct sockaddr_storage address;
	socklen_t length = 0;
	int one = 1;

	rr_address(&server->config, &address, &length, NULL);
	server->listener = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (server->listener < 0)
		return -errno;
	setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(server->listener, (void *)&address, length) || listen(server->listener, BACKLOG) ||
	    epoll_ctl(server->worker[0].epoll, EPOLL_CTL_ADD, server->listener, &event))
		return -errno;
	return 1;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct rr_server *server = w->server;
	struct epoll_event events[EVENTS];

	if (w == server->worker) {
		int ret = rr_thread_enter(&server->config);

		server->ready = ret ? ret : listen_start(server);
		if (server->ready < 0)
			return NULL;
	}
	for (;;) {
		int n = epoll_wait(w->epoll, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;

			if (!c)
				return NULL;
			if ((void *)c == server)
				accept_all(server);
			else if (c->wants_out)
				answer_send(c);
			else
				connection_read(c);
		}
	}
}

static int worker_init(struct rr_server *server, unsigned i, struct error *err)
{
	const struct rr_config *config = &server->config;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	struct worker *w = &server->worker[i];
	uint32_t size = config->request_size > config->response_size ? config->request_size
								     : config->response_size;

	w->server = server;
	pthread_mutex_init(&w->lock, NULL);
	w->buffer = calloc(1, size);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!w->buffer || w->epoll < 0 ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, server->stop_event, &event))
		return error_set(err, -errno, "starting a server: %s", strerror(errno));
	return 0;
}

static int workers_start(struct rr_server *server, struct error *err)
{
	int ret = 0;

	for (unsigned i = 0; i < server->config.threads && !ret; i++)
		ret = worker_init(server, i, err);
	for (unsigned i = 0; i < server->config.threads && !ret; i++) {
		ret = rr_thread_start(&server->config, "rr-server", &server->worker[i].thread,
				      worker_run, &server->worker[i], err);
		server->worker[i].started = !ret;
		while (!ret && i == 0 && !server->ready)
			usleep(100);
		if (!ret && server->ready < 0)
			ret = error_set(err, server->ready, "listening on %s port %u: %s",
					server->config.address, server->config.port,
					strerror(-server->ready));
	}
	return ret;
}

int demo_server_start(const struct rr_config *config, struct rr_server **out, struct error *err)
{
	struct sockaddr_storage address;
	struct rr_server *server;
	socklen_t length;
	int ret = rr_config_check(config, err);

	if (!ret)
		ret = rr_address(config, &address, &length, err);
	if (ret)
		return ret;
	server = calloc(1, sizeof(*server) + config->threads * sizeof(server->worker[0]));
	if (!server)
		return error_set(err, -ENOMEM, "no memory for a server");
	server->config = *config;
	server->listener = -1;
	server->stop_event = eventfd(0, EFD_CLOEXEC);
	for (unsigned i = 0; i < config->threads; i++)
		server->worker[i].epoll = -1;
	ret = server->stop_event < 0 ? error_set(err, -errno, "eventfd: %s", strerror(errno))
				     : workers_start(server, err);
	if (ret) {
		demo_server_stop(server, NULL);
		return ret;
	}
	*out = server;
	return 0;
}

int64_t demo_server_cpu(const struct rr_server *server)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < server->config.threads; i++)
		sum += rr_thread_cpu(server->worker[i].thread);
	return sum;
}

void demo_server_read(const struct rr_server *server, struct rr_server_result *out)
{
	*out = (struct rr_server_result){.connections = counter_read(&server->connections)};
	for (unsigned i = 0; i < server->config.threads; i++) {
		out->transactions += counter_read(&server->worker[i].transactions);
		out->refused += counter_read(&server->worker[i].refused);
		out->retransmits += counter_read(&server->worker[i].retransmits);
	}
}

void demo_server_stop(struct rr_server *server, struct rr_server_result *result)
{
	uint64_t one = 1;

	/* It stays readable, so every worker sees it. */
	if (write(server->stop_event, &one, sizeof(one)) != sizeof(one))
		(void)!errno;
	for (unsigned i = 0; i < server->config.threads; i++) {
		struct worker *w = &server->worker[i];

		if (w->started)
			pthread_join(w->thread, NULL);
	}
	for (unsigned i = 0; i < server->config.threads; i++) {
		struct worker *w = &server->worker[i];

		while (w->connections)
			connection_close(w->connections);
		if (w->epoll >= 0)
			close(w->epoll);
		free(w->buffer);
	}
	if (result)
		demo_server_read(server, result);
	if (server->listener >= 0)
		close(server->listener);
	close(server->stop_event);
	free(server);
}

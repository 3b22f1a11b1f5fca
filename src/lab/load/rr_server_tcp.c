/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#include "lab/load/rr_server.h"
#include "lab/load/side.h"

enum {
	EVENTS = 128,
	BACKLOG = 4096,
	CHUNK = 1 << 16,
	OWED = 64,   /* requests that a connection has read and not answered, at most */
	ROUNDS = 16, /* reads of one connection, before the others have their turn */
	ALONE = 256, /* of one that is alone, before others are looked for */
	ALONE_MS = 10,
};

struct rr_connection {
	int fd;
	struct rr_server_worker *worker;
	struct rr_connection *next, **previous; /* in the worker's list */
	bool greeted;
	bool refused;
	uint32_t got; /* of the hello or the request that is coming */
	uint32_t tag; /* of that request */
	unsigned owed, oldest;
	uint32_t sent; /* of the response to the oldest */
	uint32_t owes[OWED];
	struct rr_hello *hello; /* until it is greeted */
};

static void connection_close(struct rr_connection *c)
{
	struct rr_server_worker *w = c->worker;

	if (w->alone == c)
		w->alone = NULL;
	if (!w->server->config.connect)
		counter_add(&w->retransmits, side_retransmits(c->fd));
	pthread_mutex_lock(&w->lock);
	*c->previous = c->next;
	if (c->next)
		c->next->previous = c->previous;
	pthread_mutex_unlock(&w->lock);
	/* close() alone does not end the events while a fork()ed child has the descriptor, too. */
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	close(c->fd);
	free(c->hello);
	free(c);
}

static int connection_watch(struct rr_connection *c, int operation)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				    .data.ptr = c};

	return epoll_ctl(c->worker->epoll, operation, c->fd, &event);
}

static void connection_add(struct rr_server_worker *w, int fd, bool greeted)
{
	struct rr_connection *c = calloc(1, sizeof(*c));
	int one = 1;

	if (c && !greeted)
		c->hello = calloc(1, sizeof(*c->hello));
	if (!c || (!greeted && !c->hello)) {
		free(c);
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	side_socket_busy_poll(fd, &w->server->config);
	c->fd = fd;
	c->worker = w;
	c->greeted = greeted;
	pthread_mutex_lock(&w->lock);
	c->next = w->connections;
	c->previous = &w->connections;
	if (c->next)
		c->next->previous = &c->next;
	w->connections = c;
	pthread_mutex_unlock(&w->lock);
	counter_add(&w->connected, 1);
	/* After this the worker may close and free it. */
	if (connection_watch(c, EPOLL_CTL_ADD))
		connection_close(c);
}

/*
 * Those that greet come to thread 0, which deals them out; each has a listener for the others, of
 * which it takes one a time: to find that there is no second would cost as much as the first.
 */
static void accept_some(struct rr_server_worker *w, int listener, bool greeted)
{
	struct rr_server *server = w->server;
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct rr_server_worker *to = w;

		if (!greeted)
			to = &server->worker[server->next_worker++ % server->config.server_threads];
		connection_add(to, fd, greeted);
		if (greeted)
			break;
	}
}

enum progress { GONE, BLOCKED, DONE };

/* What is owed, as much as goes. The buffer is zeros, but for the tags, which have their places. */
static enum progress answers_send(struct rr_connection *c)
{
	struct rr_server_worker *w = c->worker;
	uint32_t size = w->server->config.response_size, tag = rr_tag_size(&w->server->config);
	unsigned most = size < CHUNK ? CHUNK / size : 1;

	while (c->owed) {
		unsigned n = c->owed < most ? c->owed : most;
		size_t want = (size_t)n * size - c->sent;
		ssize_t sent;

		for (unsigned i = 0; i < n; i++)
			memcpy(w->out + (size_t)i * size, &c->owes[(c->oldest + i) % OWED], tag);
		sent = send(c->fd, w->out + c->sent, want, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN ? BLOCKED : GONE;
		counter_add(&w->bytes_out, (uint64_t)sent);
		n = (unsigned)((c->sent + (size_t)sent) / size);
		c->sent = (uint32_t)((c->sent + (size_t)sent) % size);
		c->owed -= n;
		c->oldest = (c->oldest + n) % OWED;
		counter_add(&w->transactions, n);
		if ((size_t)sent < want)
			return BLOCKED;
	}
	return DONE;
}

static enum progress requests_take(struct rr_connection *c, uint32_t n)
{
	struct rr_server_worker *w = c->worker;
	const struct load_config *config = &w->server->config;
	uint32_t tag = rr_tag_size(config);

	for (uint32_t at = 0; at < n;) {
		uint32_t take = config->request_size - c->got;

		take = take < n - at ? take : n - at;
		for (uint32_t i = 0; i < take && c->got + i < tag; i++)
			((uint8_t *)&c->tag)[c->got + i] = w->in[at + i];
		at += take;
		c->got += take;
		if (c->got < config->request_size)
			break;
		c->got = 0;
		c->owes[(c->oldest + c->owed++) % OWED] = c->tag;
		if (config->work) {
			rr_server_work(config->work);
			/* When it is blocked the others of this read are worked on all the same. */
			if (answers_send(c) == GONE)
				return GONE;
		}
	}
	return answers_send(c);
}

/* The only one of its thread, which waits for it without epoll: a system call less a request. */
static void alone_begin(struct rr_connection *c)
{
	struct timeval limit = {.tv_usec = ALONE_MS * 1000};

	if (!c->worker->alone &&
	    !setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) &&
	    !epoll_ctl(c->worker->epoll, EPOLL_CTL_DEL, c->fd, NULL))
		c->worker->alone = c;
}

/* True when the connection is gone. */
static bool hello_read(struct rr_connection *c)
{
	struct rr_server_worker *w = c->worker;
	struct rr_hello answer;
	enum rr_status status;
	size_t size;
	ssize_t n;

	while (c->got < sizeof(*c->hello)) {
		n = recv(c->fd, (uint8_t *)c->hello + c->got, sizeof(*c->hello) - c->got,
			 MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0)
			return true;
		c->got += (uint32_t)n;
		if (c->got >= sizeof(c->hello->head) &&
		    (c->hello->head.magic != htonl(RR_MAGIC) ||
		     c->hello->head.version != htons(RR_VERSION)))
			break;
	}
	status = rr_hello_answer(&w->server->config, c->hello, &answer);
	size = status == RR_OTHER_VERSION ? sizeof(answer.head) : sizeof(answer);
	/* Into an empty send buffer: they go whole. */
	if (send(c->fd, &answer, size, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)size)
		return true;
	c->refused = status != RR_ACCEPTS;
	c->greeted = true;
	c->got = 0;
	if (c->refused)
		counter_add(&w->refused, 1);
	else if (w->server->config.flows <= w->server->config.server_threads)
		alone_begin(c);
	return false;
}

/* One that was refused is kept until the client has read why, and closes. */
static bool refused_read(struct rr_connection *c)
{
	ssize_t n;

	while ((n = recv(c->fd, c->worker->in, CHUNK, MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno != EAGAIN;
}

static bool connection_read(struct rr_connection *c, int flags, bool ending)
{
	struct rr_server_worker *w = c->worker;
	uint32_t size = w->server->config.request_size;

	for (unsigned round = 0; round < ROUNDS; round++) {
		enum progress progress = answers_send(c);
		size_t want = (size_t)(OWED - c->owed) * size - c->got;
		ssize_t n;

		if (progress != DONE)
			return progress == GONE;
		want = want < CHUNK ? want : CHUNK;
		n = recv(c->fd, w->in, want, flags);
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0)
			return true;
		counter_add(&w->bytes_in, (uint64_t)n);
		progress = requests_take(c, (uint32_t)n);
		if (progress != DONE)
			return progress == GONE;
		if ((size_t)n < want && !ending)
			return false;
	}
	if (w->alone == c)
		return false;
	/* The same edge again, behind the others'. */
	return connection_watch(c, EPOLL_CTL_MOD) != 0;
}

static void connection_event(struct rr_connection *c, uint32_t events)
{
	bool gone = false;

	if (!c->greeted)
		gone = hello_read(c);
	if (!gone && c->greeted)
		gone = c->refused ? refused_read(c)
				  : connection_read(c, MSG_DONTWAIT,
						    events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
	if (gone)
		connection_close(c);
}

static int listener_open(struct rr_server_worker *w, unsigned above, bool shared)
{
	struct rr_server *server = w->server;
	struct sockaddr_storage address;
	socklen_t length;
	int one = 1, fd;
	int ret = side_address(&server->place, above, &address, &length, &server->err);

	if (ret)
		return ret;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    (!shared || !setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one))) &&
	    !bind(fd, (void *)&address, length) && !listen(fd, BACKLOG))
		return fd;
	ret = error_set(&server->err, -errno, "listening on %s port %u: %s", server->place.address,
			server->place.port + above, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

/* What an epoll event of this worker is of, when it is not of a connection. */
static int watch(struct rr_server_worker *w, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int worker_open(struct rr_server_worker *w, int *greeter)
{
	struct rr_server *server = w->server;
	uint32_t size = server->config.response_size;
	int ret;

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->in = malloc(CHUNK);
	w->out = calloc(1, size < CHUNK ? CHUNK : size);
	if (w->epoll < 0 || !w->in || !w->out || watch(w, server->stop_event, &server->stop_event))
		return error_set(&server->err, -errno, "starting a server: %s", strerror(errno));
	ret = side_epoll_busy_poll(w->epoll, &server->config);
	if (ret)
		return error_set(&server->err, ret, "busy polling by epoll: %s", strerror(-ret));
	if (w == server->worker) {
		*greeter = listener_open(w, 0, false);
		if (*greeter < 0)
			return *greeter;
		if (watch(w, *greeter, greeter))
			return error_set(&server->err, -errno, "epoll: %s", strerror(errno));
	}
	if (!server->config.connect)
		return 0;
	w->listener = listener_open(w, 1, true);
	if (w->listener < 0)
		return w->listener;
	return watch(w, w->listener, &w->listener)
		       ? error_set(&server->err, -errno, "epoll: %s", strerror(errno))
		       : 0;
}

/* For some time; the others are waited for meanwhile, but no longer than that. */
static void alone_serve(struct rr_server_worker *w)
{
	bool spins = w->server->config.server_spins;

	for (unsigned i = 0; i < ALONE && w->alone && !w->server->stop; i++) {
		struct rr_connection *c = w->alone;
		struct pollfd room = {.fd = c->fd, .events = POLLOUT};
		uint64_t before = counter_read(&w->bytes_in);

		rr_server_stall(w);
		if (c->owed)
			poll(&room, 1, ALONE_MS);
		if (connection_read(c, c->owed || spins ? MSG_DONTWAIT : 0, false))
			connection_close(c);
		else if (!spins && counter_read(&w->bytes_in) == before)
			return;
	}
}

static void serve(struct rr_server_worker *w, int *greeter)
{
	struct rr_server *server = w->server;
	struct epoll_event events[EVENTS];

	while (!server->stop) {
		int n, wait = server->config.server_spins || w->alone ? 0 : -1;

		if (w->alone)
			alone_serve(w);
		n = epoll_wait(w->epoll, events, EVENTS, wait);

		rr_server_stall(w);
		for (int i = 0; i < n; i++) {
			void *what = events[i].data.ptr;

			if (what == greeter)
				accept_some(w, *greeter, false);
			else if (what == &w->listener)
				accept_some(w, w->listener, true);
			else if (what != &server->stop_event)
				connection_event(what, events[i].events);
		}
	}
}

int rr_server_tcp(struct rr_server_worker *w)
{
	int greeter = -1, ret = worker_open(w, &greeter);

	if (!ret) {
		rr_server_ready(w);
		serve(w, &greeter);
	}
	if (greeter >= 0)
		close(greeter);
	return ret;
}

void rr_server_tcp_close(struct rr_server_worker *w)
{
	while (w->connections)
		connection_close(w->connections);
	if (w->listener >= 0)
		close(w->listener);
	if (w->epoll >= 0)
		close(w->epoll);
	free(w->in);
	free(w->out);
}

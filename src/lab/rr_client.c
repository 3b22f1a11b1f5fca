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

#include "lab/clock.h"
#include "lab/rr_common.h"

enum { EVENTS = 64, TICK_MS = 20 };

#define CONNECT_TIMEOUT (5 * NSEC_PER_SEC) /* of one attempt */
#define START_TIMEOUT (20 * NSEC_PER_SEC)  /* of all flows */

enum phase { CONNECT, WARM, MEASURE, DRAIN };

enum flow_state {
	FLOW_CONNECTING,
	FLOW_GREETING,
	FLOW_IDLE,
	FLOW_BUSY, /* a request is under way */
	FLOW_DOWN, /* connects anew at the next tick */
};

struct flow {
	int fd;
	enum flow_state state;
	bool wants_out;
	bool was_connected;
	uint32_t unsent;
	uint32_t got;
	uint64_t tag;
	int64_t since; /* start of the transaction, or of connecting */
	uint8_t head[RR_TAG > sizeof(struct rr_hello) ? RR_TAG : sizeof(struct rr_hello)];
};

struct worker {
	struct rr_client *client;
	pthread_t thread;
	bool started;
	int epoll, wake;
	unsigned flows;
	struct flow *flow;
	uint8_t *buffer;
	_Atomic unsigned connected; /* flows that were connected once */
	struct rr_result result;
};

struct rr_client {
	struct rr_config config;
	struct sockaddr_storage address;
	socklen_t address_length;
	_Atomic int phase;
	_Atomic int64_t measure_start;
	int64_t measure_end;
	_Atomic int failed;	/* negative errno: connecting cannot work */
	struct rr_hello others; /* of a server that refused */
	struct worker worker[];
};

static int flow_watch(struct worker *w, struct flow *f, int operation, bool out)
{
	struct epoll_event event = {.events = out ? EPOLLOUT : EPOLLIN, .data.ptr = f};

	f->wants_out = out;
	return epoll_ctl(w->epoll, operation, f->fd, &event);
}

static void flow_close(struct worker *w, struct flow *f)
{
	if (f->fd < 0)
		return;
	w->result.retransmits += rr_retransmits(f->fd);
	/* close() alone does not end the events while a fork()ed child has the descriptor, too. */
	epoll_ctl(w->epoll, EPOLL_CTL_DEL, f->fd, NULL);
	close(f->fd);
	f->fd = -1;
}

/* The connection is of no more use; a transaction under way is lost. */
static void flow_down(struct worker *w, struct flow *f)
{
	w->result.lost += f->state == FLOW_BUSY;
	flow_close(w, f);
	f->state = FLOW_DOWN;
}

static void flow_connect(struct worker *w, struct flow *f)
{
	struct rr_client *client = w->client;
	int one = 1;

	f->since = clock_now();
	f->fd = socket(client->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f->fd < 0) {
		flow_down(w, f);
		return;
	}
	f->state = FLOW_CONNECTING;
	setsockopt(f->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if ((connect(f->fd, (void *)&client->address, client->address_length) &&
	     errno != EINPROGRESS) ||
	    flow_watch(w, f, EPOLL_CTL_ADD, true))
		flow_down(w, f);
}

/* Sends what is unsent of the message of this size: its head, then zeros. */
static bool message_send(struct worker *w, struct flow *f, uint32_t head, uint32_t size)
{
	while (f->unsent) {
		ssize_t n;

		/* The buffer is all flows', and responses are read into it. */
		if (size - f->unsent < head)
			memcpy(w->buffer, f->head, head);
		n = send(f->fd, w->buffer + size - f->unsent, f->unsent,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			if (f->wants_out || !flow_watch(w, f, EPOLL_CTL_MOD, true))
				return true;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			flow_down(w, f);
			return false;
		}
		f->unsent -= (uint32_t)n;
	}
	if (f->wants_out && flow_watch(w, f, EPOLL_CTL_MOD, false)) {
		flow_down(w, f);
		return false;
	}
	return true;
}

static uint32_t tag_size(const struct rr_config *config)
{
	return config->request_size >= RR_TAG && config->response_size >= RR_TAG ? RR_TAG : 0;
}

static void request_start(struct worker *w, struct flow *f)
{
	const struct rr_config *config = &w->client->config;

	f->tag++;
	memcpy(f->head, &f->tag, RR_TAG);
	f->state = FLOW_BUSY;
	f->unsent = config->request_size;
	f->got = 0;
	w->result.started++;
	f->since = clock_now();
	message_send(w, f, tag_size(config), config->request_size);
}

static void request_continue(struct worker *w, struct flow *f)
{
	const struct rr_config *config = &w->client->config;

	message_send(w, f, tag_size(config), config->request_size);
}

static void idle(struct worker *w, struct flow *f)
{
	int phase = w->client->phase;

	f->state = FLOW_IDLE;
	if (phase == WARM || phase == MEASURE)
		request_start(w, f);
}

static void transaction_end(struct worker *w, struct flow *f)
{
	struct rr_client *client = w->client;
	int64_t now = clock_now();

	w->result.completed++;
	if (client->phase == MEASURE) {
		uint64_t slot = (uint64_t)((now - client->measure_start) / client->config.interval);

		w->result.transactions++;
		histogram_record(&w->result.latency, (uint64_t)(now - f->since));
		if (slot < RR_INTERVALS)
			w->result.interval[slot]++;
	}
	idle(w, f);
}

static void hello_end(struct worker *w, struct flow *f)
{
	struct rr_client *client = w->client;
	struct rr_hello hello;

	memcpy(&hello, f->head, sizeof(hello));
	if (ntohl(hello.magic) != RR_MAGIC || ntohs(hello.version) != RR_VERSION ||
	    ntohs(hello.status) != RR_ACCEPTED) {
		client->others = hello;
		client->failed = -EPROTO;
		flow_down(w, f);
		return;
	}
	if (f->was_connected)
		w->result.reconnects++;
	else
		w->connected++;
	f->was_connected = true;
	idle(w, f);
}

static void flow_read(struct worker *w, struct flow *f)
{
	const struct rr_config *config = &w->client->config;
	bool greeting = f->state == FLOW_GREETING;
	uint32_t size = greeting ? (uint32_t)sizeof(struct rr_hello) : config->response_size;
	uint32_t tag = greeting ? size : tag_size(config);
	ssize_t n = recv(f->fd, w->buffer, size - f->got, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Data that nobody asked for is as bad as the end. */
	if (n <= 0 || f->state == FLOW_IDLE) {
		if (greeting && n == 0)
			w->client->failed = -EPROTO;
		flow_down(w, f);
		return;
	}
	for (uint32_t i = 0; i < (uint32_t)n && f->got + i < tag; i++) {
		if (greeting)
			f->head[f->got + i] = w->buffer[i];
		else if (f->head[f->got + i] != w->buffer[i]) {
			flow_down(w, f);
			return;
		}
	}
	f->got += (uint32_t)n;
	if (f->got < size)
		return;
	if (greeting)
		hello_end(w, f);
	else
		transaction_end(w, f);
}

static void flow_connected(struct worker *w, struct flow *f)
{
	struct rr_hello hello = rr_hello(&w->client->config, RR_ACCEPTED);
	socklen_t length = sizeof(int);
	int error = 0;

	getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &error, &length);
	if (error) {
		flow_down(w, f);
		return;
	}
	f->state = FLOW_GREETING;
	f->got = 0;
	memcpy(f->head, &hello, sizeof(hello));
	/* 16 bytes into an empty send buffer: they go whole. */
	if (send(f->fd, &hello, sizeof(hello), MSG_DONTWAIT | MSG_NOSIGNAL) !=
		    (ssize_t)sizeof(hello) ||
	    flow_watch(w, f, EPOLL_CTL_MOD, false))
		flow_down(w, f);
}

static void flow_event(struct worker *w, struct flow *f)
{
	if (f->fd < 0)
		return;
	if (f->state == FLOW_CONNECTING)
		flow_connected(w, f);
	else if (f->wants_out)
		request_continue(w, f);
	else
		flow_read(w, f);
}

/* Time-outs and new connections; true when no transaction is under way. */
static bool worker_tick(struct worker *w)
{
	struct rr_client *client = w->client;
	int64_t now = clock_now();
	int phase = client->phase;
	bool quiet = true;

	for (unsigned i = 0; i < w->flows; i++) {
		struct flow *f = &w->flow[i];
		int64_t limit = f->state == FLOW_BUSY ? client->config.timeout : CONNECT_TIMEOUT;

		if (f->state == FLOW_DOWN && phase != DRAIN)
			flow_connect(w, f);
		else if (f->state == FLOW_IDLE && phase != DRAIN)
			idle(w, f);
		else if (f->state != FLOW_IDLE && f->state != FLOW_DOWN && now - f->since > limit)
			flow_down(w, f);
		quiet &= f->state != FLOW_BUSY;
	}
	return quiet;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct rr_client *client = w->client;
	struct epoll_event events[EVENTS];
	int64_t tick = 0;
	int ret = rr_thread_enter(&client->config);

	if (ret)
		client->failed = ret;
	while (!ret) {
		int n;

		if (clock_now() >= tick || client->phase == DRAIN) {
			if (worker_tick(w) && client->phase == DRAIN)
				break;
			tick = clock_now() + TICK_MS * NSEC_PER_MSEC;
		}
		n = epoll_wait(w->epoll, events, EVENTS, TICK_MS);
		for (int i = 0; i < n; i++) {
			uint64_t count;

			if (events[i].data.ptr)
				flow_event(w, events[i].data.ptr);
			else if (read(w->wake, &count, sizeof(count)) > 0)
				tick = 0;
		}
	}
	for (unsigned i = 0; i < w->flows; i++)
		flow_close(w, &w->flow[i]);
	return NULL;
}

static int worker_init(struct rr_client *client, unsigned i, struct error *err)
{
	const struct rr_config *config = &client->config;
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	struct worker *w = &client->worker[i];
	uint32_t size = config->request_size > config->response_size ? config->request_size
								     : config->response_size;

	w->client = client;
	histogram_reset(&w->result.latency);
	/* The first workers have one more where it does not divide. */
	w->flows = config->flows / config->threads + (i < config->flows % config->threads);
	w->flow = calloc(w->flows ? w->flows : 1, sizeof(*w->flow));
	w->buffer = calloc(1, size + sizeof(struct rr_hello));
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!w->flow || !w->buffer || w->epoll < 0 || w->wake < 0 ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &event))
		return error_set(err, -errno, "starting a client: %s", strerror(errno));
	for (unsigned f = 0; f < w->flows; f++)
		w->flow[f] = (struct flow){.fd = -1, .state = FLOW_DOWN};
	return 0;
}

static void phase_set(struct rr_client *client, enum phase phase)
{
	uint64_t one = 1;

	client->phase = phase;
	for (unsigned i = 0; i < client->config.threads; i++) {
		if (write(client->worker[i].wake, &one, sizeof(one)) < 0)
			(void)!errno;
	}
}

static int connect_wait(struct rr_client *client, struct error *err)
{
	const struct rr_config *config = &client->config;
	int64_t deadline = clock_now() + START_TIMEOUT;

	for (;;) {
		unsigned connected = 0;

		for (unsigned i = 0; i < config->threads; i++)
			connected += client->worker[i].connected;
		if (client->failed == -EPROTO && ntohl(client->others.magic) == RR_MAGIC)
			return error_set(err, -EPROTO,
					 "the server at %s port %u answers %u B with %u B, not "
					 "%u B with %u B as asked: give both sides the same sizes",
					 config->address, config->port,
					 ntohl(client->others.request_size),
					 ntohl(client->others.response_size), config->request_size,
					 config->response_size);
		if (client->failed)
			return error_set(err, client->failed,
					 "%s port %u is not an rr server of this version: %s",
					 config->address, config->port, strerror(-client->failed));
		if (connected == config->flows)
			return 0;
		if (clock_now() > deadline)
			return error_set(err, -ETIMEDOUT,
					 "%u of %u flows are connected to %s port %u after %d s",
					 connected, config->flows, config->address, config->port,
					 (int)(START_TIMEOUT / NSEC_PER_SEC));
		clock_sleep(NSEC_PER_MSEC);
	}
}

int demo_client_start(const struct rr_config *config, struct rr_client **out, struct error *err)
{
	struct rr_client *client;
	int ret = rr_config_check(config, err);

	if (ret)
		return ret;
	client = calloc(1, sizeof(*client) + config->threads * sizeof(client->worker[0]));
	if (!client)
		return error_set(err, -ENOMEM, "no memory for a client");
	client->config = *config;
	if (!client->config.interval)
		client->config.interval = 100 * NSEC_PER_MSEC;
	for (unsigned i = 0; i < config->threads; i++)
		client->worker[i].epoll = client->worker[i].wake = -1;
	ret = rr_address(config, &client->address, &client->address_length, err);
	for (unsigned i = 0; i < config->threads && !ret; i++)
		ret = worker_init(client, i, err);
	for (unsigned i = 0; i < config->threads && !ret; i++) {
		ret = rr_thread_start(config, "rr-client", &client->worker[i].thread, worker_run,
				      &client->worker[i], err);
		client->worker[i].started = !ret;
	}
	if (!ret)
		ret = connect_wait(client, err);
	if (ret) {
		demo_client_stop(client, NULL);
		return ret;
	}
	phase_set(client, WARM);
	*out = client;
	return 0;
}

void demo_client_measure(struct rr_client *client)
{
	client->measure_start = clock_now();
	client->phase = MEASURE;
}

void demo_client_drain(struct rr_client *client)
{
	if (client->phase == DRAIN)
		return;
	client->measure_end = clock_now();
	phase_set(client, DRAIN);
}

int64_t demo_client_cpu(const struct rr_client *client)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < client->config.threads; i++)
		sum += rr_thread_cpu(client->worker[i].thread);
	return sum;
}

static void result_add(struct rr_result *to, const struct rr_result *from)
{
	to->started += from->started;
	to->completed += from->completed;
	to->lost += from->lost;
	to->reconnects += from->reconnects;
	to->retransmits += from->retransmits;
	to->transactions += from->transactions;
	for (unsigned i = 0; i < RR_INTERVALS; i++)
		to->interval[i] += from->interval[i];
	histogram_merge(&to->latency, &from->latency);
}

static void result_fill(struct rr_client *client, struct rr_result *result)
{
	int64_t intervals;

	memset(result, 0, sizeof(*result));
	histogram_reset(&result->latency);
	for (unsigned i = 0; i < client->config.threads; i++)
		result_add(result, &client->worker[i].result);
	if (!client->measure_start)
		return;
	result->duration = client->measure_end - client->measure_start;
	intervals = (result->duration + client->config.interval - 1) / client->config.interval;
	result->intervals = intervals < RR_INTERVALS ? (unsigned)intervals : RR_INTERVALS;
}

void demo_client_stop(struct rr_client *client, struct rr_result *result)
{
	demo_client_drain(client);
	for (unsigned i = 0; i < client->config.threads; i++) {
		if (client->worker[i].started)
			pthread_join(client->worker[i].thread, NULL);
	}
	if (result)
		result_fill(client, result);
	for (unsigned i = 0; i < client->config.threads; i++) {
		struct worker *w = &client->worker[i];

		if (w->epoll >= 0)
			close(w->epoll);
		if (w->wake >= 0)
			close(w->wake);
		free(w->flow);
		free(w->buffer);
	}
	free(client);
}

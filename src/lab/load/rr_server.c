/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_server.h"
#include "lab/load/side.h"

#define PATIENCE (10 * NSEC_PER_SEC)
#define JUMP 2000 /* ns between two looks at the clock: beyond that something else ran */

void rr_server_ready(struct rr_server_worker *w)
{
	w->server->ready++;
}

void rr_server_stall(struct rr_server_worker *w)
{
	const struct load_config *config = &w->server->config;
	int64_t now;

	if (!w->stall_next)
		return;
	now = clock_now();
	if (now < w->stall_next)
		return;
	/* All threads have the same times, whenever they come to see that one has begun. */
	while (w->stall_next + config->stall <= now)
		w->stall_next += config->stall_every;
	if (now < w->stall_next)
		return;
	while (now < w->stall_next + config->stall && !w->server->stop) {
		int64_t left = w->stall_next + config->stall - now;

		clock_sleep(left < 10 * NSEC_PER_MSEC ? left : 10 * NSEC_PER_MSEC);
		now = clock_now();
	}
	w->stall_next += config->stall_every;
}

/* By the wall clock, without the times when this thread did not have the CPU. */
void rr_server_work(int64_t ns)
{
	int64_t last = clock_now();

	while (ns > 0) {
		int64_t now = clock_now();

		ns -= now - last < JUMP ? now - last : JUMP;
		last = now;
	}
}

/* No request looks like a hello: a tag is not so large, and what has none is zeros. */
static bool hello_is(const void *data, size_t n)
{
	uint32_t magic;

	memcpy(&magic, data, n < sizeof(magic) ? n : sizeof(magic));
	return n >= sizeof(struct rr_hello_head) && magic == htonl(RR_MAGIC);
}

bool rr_server_request(struct rr_server_worker *w, void *data, size_t n, uint32_t *size)
{
	const struct load_config *config = &w->server->config;
	struct rr_hello asked = {0}, answer;
	enum rr_status status;

	if (!hello_is(data, n)) {
		*size = config->response_size;
		if (n == config->request_size && config->work)
			rr_server_work(config->work);
		return n == config->request_size;
	}
	memcpy(&asked, data, n < sizeof(asked) ? n : sizeof(asked));
	status = rr_hello_answer(config, &asked, &answer);
	counter_add(status == RR_ACCEPTS ? &w->connected : &w->refused, 1);
	*size = status == RR_OTHER_VERSION ? sizeof(answer.head) : sizeof(answer);
	memcpy(data, &answer, *size);
	return true;
}

static void *worker_run(void *arg)
{
	struct rr_server_worker *w = arg;
	struct rr_server *server = w->server;
	int ret = side_thread_enter(&server->place);

	w->tid = (pid_t)syscall(SYS_gettid);
	if (ret)
		error_set(&server->err, ret, "entering the server's namespace: %s", strerror(-ret));
	else if (server->config.protocol == LOAD_TCP)
		ret = rr_server_tcp(w);
	else
		ret = server->engine ? rr_server_udp_engine(w) : rr_server_udp(w);
	if (ret)
		server->failed = ret;
	return NULL;
}

static int workers_start(struct rr_server *server, struct error *err)
{
	int64_t start = clock_now(), deadline = start + PATIENCE;

	/* One after another: the first one's listener is what tells of an address in use. */
	for (unsigned i = 0; i < server->config.server_threads; i++) {
		struct rr_server_worker *w = &server->worker[i];
		int ret;

		if (server->config.stall)
			w->stall_next = start + server->config.stall_every;
		ret = side_thread_start(&server->place, i, "rr-server", &w->thread, worker_run, w,
					err);
		if (ret)
			return ret;
		w->started = true;
		while (server->ready <= i && !server->failed && clock_now() < deadline)
			clock_sleep(NSEC_PER_MSEC / 10);
		if (server->failed) {
			*err = server->err;
			return server->failed;
		}
		if (server->ready <= i)
			return error_set(err, -ETIMEDOUT, "the server has not started after %d s",
					 (int)(PATIENCE / NSEC_PER_SEC));
	}
	return 0;
}

static struct rr_server *server_create(const struct load_config *config,
				       const struct load_place *place)
{
	size_t size =
		sizeof(struct rr_server) + config->server_threads * sizeof(struct rr_server_worker);
	struct rr_server *server = aligned_alloc(64, (size + 63) / 64 * 64);

	if (!server)
		return NULL;
	memset(server, 0, size);
	server->config = *config;
	server->place = *place;
	server->stop_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (unsigned i = 0; i < config->server_threads; i++) {
		struct rr_server_worker *w = &server->worker[i];

		w->server = server;
		w->epoll = w->listener = -1;
		pthread_mutex_init(&w->lock, NULL);
	}
	return server;
}

int rr_server_start(const struct load_config *config, const struct load_place *place, void **out,
		    struct error *err)
{
	struct load_config full = *config;
	struct rr_server *server;
	struct error ignored;
	int ret = rr_check(&full, err ? err : &ignored);

	if (ret)
		return ret;
	if (place->engine.used && full.protocol != LOAD_UDP)
		return error_set(err, -EINVAL, "napier's sockets are UDP's: protocol = \"udp\"");
	if (place->engine.used && full.server_threads != 1)
		return error_set(err, -EINVAL,
				 "server_threads = %u: one thread serves with napier's sockets",
				 full.server_threads);
	if (full.protocol == LOAD_TCP)
		ret = side_files_want(full.flows, err);
	if (ret)
		return ret;
	server = server_create(&full, place);
	if (!server)
		return error_set(err, -ENOMEM, "no memory for a server");
	if (place->engine.used)
		ret = rr_engine_open(server, err);
	if (!ret)
		ret = workers_start(server, err);
	if (ret)
		rr_server_stop(server, NULL);
	else
		*out = server;
	return ret;
}

unsigned rr_server_threads(const void *arg, pid_t tids[LOAD_TIDS_MAX])
{
	const struct rr_server *server = arg;
	unsigned n = server->config.server_threads;

	for (unsigned i = 0; i < n; i++)
		tids[i] = server->worker[i].tid;
	return n;
}

json_t *rr_server_read(const void *arg)
{
	const struct rr_server *server = arg;
	uint64_t sum[6] = {0}, polls, packets;
	json_t *o;

	for (unsigned i = 0; i < server->config.server_threads; i++) {
		const struct rr_server_worker *w = &server->worker[i];

		sum[0] += counter_read(&w->transactions);
		sum[1] += counter_read(&w->connected);
		sum[2] += counter_read(&w->refused);
		sum[3] += counter_read(&w->retransmits);
		sum[4] += counter_read(&w->bytes_in);
		sum[5] += counter_read(&w->bytes_out);
	}
	o = json_pack("{s:{s:I, s:I, s:I, s:I, s:I, s:I}}", "counts", "transactions",
		      (json_int_t)sum[0], "connections", (json_int_t)sum[1], "refused",
		      (json_int_t)sum[2], "retransmits", (json_int_t)sum[3], "bytes_received",
		      (json_int_t)sum[4], "bytes_sent", (json_int_t)sum[5]);
	if (server->engine) {
		rr_engine_counts(server, &polls, &packets);
		json_object_set_new(json_object_get(o, "counts"), "polls",
				    json_integer((json_int_t)polls));
		json_object_set_new(json_object_get(o, "counts"), "packets",
				    json_integer((json_int_t)packets));
	}
	return o;
}

void rr_server_stop(void *arg, json_t **result)
{
	struct rr_server *server = arg;
	uint64_t one = 1;

	server->stop = true;
	if (write(server->stop_event, &one, sizeof(one)) < 0)
		(void)!errno;
	for (unsigned i = 0; i < server->config.server_threads; i++) {
		if (server->worker[i].started)
			pthread_join(server->worker[i].thread, NULL);
	}
	for (unsigned i = 0; i < server->config.server_threads; i++) {
		rr_server_tcp_close(&server->worker[i]);
		pthread_mutex_destroy(&server->worker[i].lock);
	}
	if (result)
		*result = rr_server_read(server);
	if (server->engine)
		rr_engine_close(server);
	close(server->stop_event);
	free(server);
}

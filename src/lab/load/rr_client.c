/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"
#include "lab/load/side.h"

#define PATIENCE (5 * NSEC_PER_SEC)

void rr_client_fail(struct rr_client *client, int code, const char *format, ...)
{
	va_list args;

	if (atomic_exchange(&client->failing, true))
		return;
	client->err.code = code;
	va_start(args, format);
	vsnprintf(client->err.text, sizeof(client->err.text), format, args);
	va_end(args);
	client->failed = code;
}

static int worker_init(struct rr_client *client, unsigned i)
{
	const struct load_config *config = &client->config;
	struct rr_worker *w = &client->worker[i];
	unsigned n = config->threads;
	size_t size = config->request_size < RR_CHUNK ? RR_CHUNK : config->request_size;

	w->client = client;
	w->number = i;
	w->epoll = w->ticks = w->apart = -1;
	w->tag = rr_tag_size(config);
	/* The first have one more where it does not divide. */
	w->flows = config->flows / n + (i < config->flows % n);
	w->requests =
		client->open ? config->outstanding / n + (i < config->outstanding % n) : w->flows;
	w->flow = calloc(w->flows, sizeof(*w->flow));
	w->request = calloc(w->requests, sizeof(*w->request));
	w->in = malloc(RR_CHUNK);
	w->out = calloc(1, size);
	w->stats = rr_stats_create();
	if (!w->flow || !w->request || !w->in || !w->out || !w->stats)
		return -ENOMEM;
	for (unsigned f = 0; f < w->flows; f++)
		w->flow[f] = (struct rr_flow){.fd = -1, .first = RR_NONE, .last = RR_NONE};
	for (uint32_t r = 0; r < w->requests; r++) {
		w->request[r].flow = UINT16_MAX;
		w->request[r].next = r + 1 < w->requests ? r + 1 : RR_NONE;
	}
	return 0;
}

static void client_free(struct rr_client *client)
{
	for (unsigned i = 0; i < client->config.threads; i++) {
		struct rr_worker *w = &client->worker[i];

		if (!w->client)
			continue;
		if (w->epoll >= 0)
			close(w->epoll);
		if (w->ticks >= 0)
			close(w->ticks);
		for (unsigned f = 0; w->flow && f < w->flows; f++)
			free(w->flow[f].hello);
		if (w->stats)
			free(w->stats->interval);
		free(w->flow);
		free(w->request);
		free(w->in);
		free(w->out);
		free(w->vector);
		free(w->stats);
	}
	free(client);
}

static int connected_await(struct rr_client *client, struct error *err)
{
	const struct load_config *config = &client->config;
	int64_t deadline = clock_now() + PATIENCE;

	for (;;) {
		uint64_t connected = 0;

		for (unsigned i = 0; i < config->threads; i++)
			connected += counter_read(&client->worker[i].connected);
		if (client->failed) {
			if (err)
				*err = client->err;
			return client->failed;
		}
		if (connected == config->flows)
			return 0;
		/* A greeting has a deadline of its own, which says more. */
		if (clock_now() > deadline + (connected ? 0 : NSEC_PER_SEC))
			return error_set(
				err, -ETIMEDOUT,
				"%s port %u does not answer: %ju of %u flows are connected "
				"after %d s",
				client->place.address, client->place.port, (uintmax_t)connected,
				config->flows, (int)(PATIENCE / NSEC_PER_SEC));
		clock_sleep(NSEC_PER_MSEC);
	}
}

static struct rr_client *client_create(const struct load_config *config,
				       const struct load_place *place)
{
	size_t size = sizeof(struct rr_client) + config->threads * sizeof(struct rr_worker);
	struct rr_client *client = aligned_alloc(64, (size + 63) / 64 * 64);
	int ret = 0;

	if (!client)
		return NULL;
	memset(client, 0, size);
	client->config = *config;
	client->place = *place;
	client->interval = config->interval;
	client->open = config->rate > 0;
	client->many = client->open && !config->connect &&
		       (config->protocol == LOAD_TCP || rr_tag_size(config) == RR_TAG_MAX);
	for (unsigned i = 0; i < config->threads && !ret; i++)
		ret = worker_init(client, i);
	if (!ret)
		return client;
	client_free(client);
	return NULL;
}

static void threads_join(struct rr_client *client)
{
	client->phase = RR_DRAIN;
	for (unsigned i = 0; i < client->config.threads; i++) {
		if (client->worker[i].started)
			pthread_join(client->worker[i].thread, NULL);
		client->worker[i].started = false;
	}
}

static int threads_start(struct rr_client *client, struct error *err)
{
	for (unsigned i = 0; i < client->config.threads; i++) {
		struct rr_worker *w = &client->worker[i];
		int ret = side_thread_start(&client->place, i, "rr-client", &w->thread,
					    rr_worker_run, w, err);

		if (ret)
			return ret;
		w->started = true;
	}
	return connected_await(client, err);
}

/* A tick of each. */
static void running_await(struct rr_client *client)
{
	client->phase = RR_RUN;
	for (unsigned i = 0; i < client->config.threads; i++) {
		while (!counter_read(&client->worker[i].running))
			clock_sleep(NSEC_PER_MSEC / 10);
	}
}

int rr_client_start(const struct load_config *config, const struct load_place *place, void **out,
		    struct error *err)
{
	struct load_config full = *config;
	struct rr_client *client;
	struct error own;
	int ret;

	err = err ? err : &own;
	ret = rr_check(&full, err);
	if (!ret)
		ret = side_files_want(full.flows, err);
	if (ret)
		return ret;
	client = client_create(&full, place);
	if (!client)
		return error_set(err, -ENOMEM, "no memory for a client of %u flows", full.flows);
	ret = side_address(place, full.connect, &client->address, &client->length, err);
	if (!ret)
		ret = threads_start(client, err);
	if (ret) {
		threads_join(client);
		client_free(client);
		return ret;
	}
	running_await(client);
	*out = client;
	return 0;
}

unsigned rr_client_threads(const void *arg, pid_t tids[LOAD_TIDS_MAX])
{
	const struct rr_client *client = arg;

	for (unsigned i = 0; i < client->config.threads; i++)
		tids[i] = client->worker[i].tid;
	return client->config.threads;
}

void rr_client_measure(void *arg, int64_t duration)
{
	struct rr_client *client = arg;
	int64_t now;

	while ((duration + client->interval - 1) / client->interval > RR_INTERVALS_MAX)
		client->interval *= 2;
	client->intervals = (unsigned)((duration + client->interval - 1) / client->interval);
	/* Without memory there is no series; the rest is there. */
	for (unsigned i = 0; i < client->config.threads; i++)
		client->worker[i].stats->interval =
			calloc(client->intervals, sizeof(struct rr_interval));
	/* Who has not seen this has seen that it is not yet, at a time before `now`. */
	atomic_store(&client->begin, RR_BEGINNING);
	now = clock_now();
	client->end = now + duration;
	atomic_store_explicit(&client->begin, now, memory_order_release);
}

void rr_client_progress(const void *arg, struct load_progress *out)
{
	const struct rr_client *client = arg;

	*out = (struct load_progress){.unit = "transactions"};
	for (unsigned i = 0; i < client->config.threads; i++) {
		out->done += counter_read(&client->worker[i].done);
		out->lost += counter_read(&client->worker[i].lost);
	}
}

/* Why no flow has a server any more, or 0. */
static int away(const struct rr_client *client)
{
	int why = 0;

	for (unsigned i = 0; i < client->config.threads; i++) {
		for (unsigned f = 0; f < client->worker[i].flows; f++) {
			int now = client->worker[i].flow[f].away;

			/* One that loses requests is still there. */
			if (now != -ECONNRESET && now != -ECONNREFUSED && now != -EPIPE)
				return 0;
			/* What was first, not what followed. */
			if (!why || now == -ECONNRESET)
				why = now;
		}
	}
	return why;
}

static int result_make(struct rr_client *client, json_t **result, struct error *err)
{
	struct rr_run run = {.open_loop = client->open, .interval = client->interval};
	struct rr_stats *sum = rr_stats_create();
	int why = client->failed ? client->failed : away(client);

	if (!sum)
		return error_set(err, -ENOMEM, "no memory for the results");
	run.duration = client->end - client->begin;
	run.intervals = (unsigned)((run.duration + run.interval - 1) / run.interval);
	if (run.intervals > client->intervals)
		run.intervals = client->intervals;
	sum->interval = calloc(run.intervals + 1, sizeof(*sum->interval));
	for (unsigned i = 0; i < client->config.threads; i++) {
		rr_stats_add(sum, client->worker[i].stats, run.intervals);
		run.retransmits += client->worker[i].retransmits;
	}
	run.connect = client->config.connect;
	run.udp = client->config.protocol == LOAD_UDP;
	run.why = why ? strerror(-why) : NULL;
	*result = rr_stats_json(sum, &run);
	free(sum->interval);
	free(sum);
	if (client->failed)
		*err = client->err;
	else if (why)
		error_set(err, why, "the server at %s port %u went away in mid-run: %s",
			  client->place.address, client->place.port, strerror(-why));
	return *result ? why : error_set(err, -ENOMEM, "no memory for the results");
}

int rr_client_stop(void *arg, json_t **result, struct error *err)
{
	struct rr_client *client = arg;
	int64_t now = clock_now();
	struct error own;
	int ret = 0;

	if (client->begin && client->end > now)
		client->end = now;
	/* Nobody asks what becomes of it. */
	if (!result)
		client->begin = 0;
	threads_join(client);
	if (result)
		ret = result_make(client, result, err ? err : &own);
	client_free(client);
	return ret;
}

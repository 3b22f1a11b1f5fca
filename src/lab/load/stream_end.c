/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/load/side.h"
#include "lab/load/stream_socket.h"
#include "lab/load/stream_worker.h"

enum { DRAIN_LOOK_MS = 2, TCP_ROOM = 128 << 10 };

void stream_rest(int64_t until)
{
	int64_t latest = clock_now() + STREAM_LOOK_MS * NSEC_PER_MSEC;
	struct timespec t;

	if (until > latest)
		until = latest;
	t = (struct timespec){until / NSEC_PER_SEC, until % NSEC_PER_SEC};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* ---- threads ---- */

static void *worker_run(void *arg)
{
	struct stream_worker *w = arg;
	struct stream_end *end = w->end;
	bool udp = end->plan->protocol == LOAD_UDP;
	unsigned *at_work = w->sends ? &end->sending : &end->receiving;
	unsigned run = 0;

	pthread_mutex_lock(&end->lock);
	w->tid = (pid_t)syscall(SYS_gettid);
	pthread_cond_broadcast(&end->change);
	for (;;) {
		while (end->run == run && !end->quit)
			pthread_cond_wait(&end->change, &end->lock);
		if (end->run == run)
			break;
		run = end->run;
		pthread_mutex_unlock(&end->lock);
		if (w->flows && w->sends)
			udp ? stream_udp_send(w) : stream_tcp_send(w);
		else if (w->flows)
			udp ? stream_udp_receive(w) : stream_tcp_receive(w);
		pthread_mutex_lock(&end->lock);
		--*at_work;
		pthread_cond_broadcast(&end->change);
	}
	pthread_mutex_unlock(&end->lock);
	return NULL;
}

static bool udp_receives(const struct stream_worker *w)
{
	return !w->sends && w->end->plan->protocol == LOAD_UDP;
}

static int worker_init(struct stream_end *end, unsigned number, bool sends)
{
	struct stream_worker *w = &end->worker[end->workers++];
	size_t flows = end->plan->flows;

	w->end = end;
	w->number = number;
	w->sends = sends;
	w->out = sends ? calloc(flows, sizeof(struct stream_out *)) : NULL;
	w->in = sends ? NULL : calloc(flows, sizeof(struct stream_in *));
	w->buffer = calloc(udp_receives(w) ? STREAM_BATCH_MAX : 1, end->room);
	if (sends && end->plan->protocol == LOAD_TCP)
		w->rtt = calloc(1, sizeof(*w->rtt));
	return !(sends ? (void *)w->out : (void *)w->in) || !w->buffer ||
			       (sends && end->plan->protocol == LOAD_TCP && !w->rtt)
		       ? -ENOMEM
		       : 0;
}

static int worker_start(struct stream_worker *w, const char *name, const struct load_place *place,
			struct error *err)
{
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%s-%s%u", name, w->sends ? "send" : "recv", w->number);
	ret = side_thread_start(place, (unsigned)(w - w->end->worker), text, &w->thread, worker_run,
				w, err);
	w->started = !ret;
	return ret;
}

static int workers_start(struct stream_end *end, const char *name, const struct load_place *place,
			 struct error *err)
{
	const struct stream_plan *plan = end->plan;
	unsigned threads = plan->threads[end->server];
	bool sends = end->server ? plan->down : plan->up;
	bool receives = end->server ? plan->up : plan->down;
	int ret = 0;

	for (unsigned i = 0; i < threads && sends && !ret; i++)
		ret = worker_init(end, i, true);
	for (unsigned i = 0; i < threads && receives && !ret; i++)
		ret = worker_init(end, i, false);
	if (ret)
		return error_set(err, ret, "no memory for %u flows", plan->flows);
	for (unsigned i = 0; i < end->workers && !ret; i++)
		ret = worker_start(&end->worker[i], name, place, err);
	if (ret)
		return ret;
	pthread_mutex_lock(&end->lock);
	for (unsigned i = 0; i < end->workers; i++) {
		while (!end->worker[i].tid)
			pthread_cond_wait(&end->change, &end->lock);
	}
	pthread_mutex_unlock(&end->lock);
	return 0;
}

static size_t tallies_of(const struct stream_end *end)
{
	return end->plan->groups > 1 ? 2 * (size_t)end->plan->groups : end->workers;
}

static int tables_make(struct stream_end *end, struct error *err)
{
	const struct stream_plan *plan = end->plan;
	bool tracks = plan->protocol == LOAD_UDP && (end->server ? plan->up : plan->down);

	end->out = aligned_alloc(64, plan->flows * sizeof(*end->out));
	end->in = aligned_alloc(64, plan->flows * sizeof(*end->in));
	end->tally = calloc(tallies_of(end), sizeof(*end->tally));
	if (tracks)
		end->track = calloc((size_t)plan->flows * plan->steps, sizeof(*end->track));
	if (!end->out || !end->in || !end->tally || (tracks && !end->track))
		return error_set(err, -ENOMEM, "no memory for %u flows", plan->flows);
	for (unsigned i = 0; i < plan->flows; i++) {
		end->out[i] = (struct stream_out){.fd = -1, .flow = (uint16_t)i};
		end->in[i] = (struct stream_in){.fd = -1, .flow = (uint16_t)i};
	}
	return 0;
}

int stream_end_create(const struct stream_plan *plan, bool server, const char *name,
		      const struct load_place *place, struct stream_end **out, struct error *err)
{
	struct stream_end *end =
		calloc(1, sizeof(*end) + 2 * plan->threads[server] * sizeof(end->worker[0]));
	int ret;

	if (!end)
		return error_set(err, -ENOMEM, "no memory for a stream");
	end->plan = plan;
	end->server = server;
	pthread_mutex_init(&end->lock, NULL);
	pthread_cond_init(&end->change, NULL);
	for (unsigned i = 0; i < plan->steps; i++) {
		if (plan->size[i] > end->size_max)
			end->size_max = plan->size[i];
	}
	/* Of a datagram one byte more, so that a longer one is seen to be so. */
	end->room = end->size_max + 1;
	if (plan->protocol == LOAD_TCP && end->room < TCP_ROOM)
		end->room = TCP_ROOM;
	ret = workers_start(end, name, place, err);
	if (!ret)
		ret = tables_make(end, err);
	if (ret) {
		stream_end_destroy(end);
		return ret;
	}
	*out = end;
	return 0;
}

unsigned stream_end_threads(const struct stream_end *end, pid_t tids[LOAD_TIDS_MAX])
{
	unsigned n = 0;

	for (; n < end->workers && n < LOAD_TIDS_MAX; n++)
		tids[n] = end->worker[n].tid;
	return n;
}

void stream_end_destroy(struct stream_end *end)
{
	if (end->out && end->in)
		stream_end_reset(end);
	pthread_mutex_lock(&end->lock);
	end->quit = true;
	pthread_cond_broadcast(&end->change);
	pthread_mutex_unlock(&end->lock);
	for (unsigned i = 0; i < end->workers; i++) {
		struct stream_worker *w = &end->worker[i];

		if (w->started)
			pthread_join(w->thread, NULL);
		free(w->out);
		free(w->in);
		free(w->buffer);
		free(w->rtt);
	}
	pthread_mutex_destroy(&end->lock);
	pthread_cond_destroy(&end->change);
	free(end->out);
	free(end->in);
	free(end->tally);
	free(end->track);
	free(end);
}

/* ---- one client's time ---- */

int stream_end_flow_add(struct stream_end *end, unsigned flow, int fd)
{
	if (flow >= end->plan->flows || end->out[flow].fd >= 0) {
		close(fd);
		return -EEXIST;
	}
	end->out[flow].fd = end->in[flow].fd = fd;
	end->flows_there++;
	return 0;
}

bool stream_end_complete(const struct stream_end *end)
{
	return end->flows_there == end->plan->flows;
}

/* Of the flows that go its way: every so many-th. */
static void worker_prepare(struct stream_worker *w)
{
	struct stream_end *end = w->end;
	const struct stream_plan *plan = end->plan;
	unsigned steps = plan->steps, threads = plan->threads[end->server];

	w->flows = 0;
	for (unsigned f = w->number; f < plan->flows; f += threads) {
		unsigned group = stream_plan_group(plan, f);
		struct stream_tally *tally = &end->tally[w - end->worker];

		if (stream_plan_sends(plan, f, w->sends == end->server) != true)
			continue;
		if (plan->groups > 1)
			tally = &end->tally[w->sends ? group : plan->groups + group];
		if (w->sends) {
			end->out[f] = (struct stream_out){.fd = end->out[f].fd,
							  .flow = (uint16_t)f,
							  .tally = tally,
							  .step = STREAM_WARM};
			w->out[w->flows++] = &end->out[f];
		} else {
			end->in[f] = (struct stream_in){.fd = end->in[f].fd,
							.flow = (uint16_t)f,
							.tally = tally,
							.track = end->track ? &end->track[f * steps]
									    : NULL};
			w->in[w->flows++] = &end->in[f];
		}
	}
	if (w->rtt)
		histogram_reset(w->rtt);
	w->foreign = 0;
	w->failed = 0;
	w->total = w->total_bytes = w->measured = w->ended = w->arrivals = 0;
}

void stream_end_run(struct stream_end *end)
{
	for (size_t i = 0; i < tallies_of(end); i++) {
		memset(end->tally[i].step, 0, sizeof(end->tally[i].step));
		stream_series_reset(&end->tally[i].bytes, end->plan->interval);
		stream_series_reset(&end->tally[i].messages, end->plan->interval);
	}
	if (end->track)
		memset(end->track, 0,
		       (size_t)end->plan->flows * end->plan->steps * sizeof(*end->track));
	end->start = 0;
	end->duration = end->learned = end->stopped = 0;
	for (unsigned i = 0; i < end->workers; i++)
		worker_prepare(&end->worker[i]);
	end->phase = STREAM_RUN;
	pthread_mutex_lock(&end->lock);
	for (unsigned i = 0; i < end->workers; i++)
		++*(end->worker[i].sends ? &end->sending : &end->receiving);
	end->run++;
	pthread_cond_broadcast(&end->change);
	pthread_mutex_unlock(&end->lock);
}

static int64_t within(const struct stream_end *end, int64_t time)
{
	return time < 0 ? 0 : time < end->duration ? time : end->duration;
}

void stream_end_measure(struct stream_end *end, int64_t start, int64_t duration)
{
	if (end->start)
		return;
	end->duration = end->stopped = duration;
	end->learned = within(end, clock_now() - start);
	stream_plan_ends(end->plan, duration, end->ends);
	atomic_store_explicit(&end->start, start, memory_order_release);
}

static void await(struct stream_end *end, const unsigned *at_work)
{
	pthread_mutex_lock(&end->lock);
	while (*at_work)
		pthread_cond_wait(&end->change, &end->lock);
	pthread_mutex_unlock(&end->lock);
}

static uint64_t measured(const struct stream_end *end, bool sends)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < end->workers; i++) {
		if (end->worker[i].sends == sends)
			sum += counter_read(&end->worker[i].measured);
	}
	return sum;
}

uint64_t stream_end_send_stop(struct stream_end *end)
{
	if (end->phase == STREAM_RUN) {
		if (end->start)
			end->stopped = within(end, clock_now() - end->start);
		end->phase = STREAM_DRAIN;
	}
	await(end, &end->sending);
	return measured(end, true);
}

static uint64_t arrivals(const struct stream_end *end)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < end->workers; i++)
		sum += counter_read(&end->worker[i].arrivals);
	return sum;
}

static bool all_came(struct stream_end *end, uint64_t expected)
{
	bool all;

	if (end->plan->protocol == LOAD_UDP)
		return measured(end, false) >= expected;
	/* Of TCP, when its flows have ended. */
	pthread_mutex_lock(&end->lock);
	all = !end->receiving;
	pthread_mutex_unlock(&end->lock);
	return all;
}

void stream_end_receive_stop(struct stream_end *end, uint64_t expected, bool (*gone)(void *arg),
			     void *arg)
{
	int64_t quiet = end->plan->timeout / 4, until = clock_now() + end->plan->timeout;
	int64_t changed = clock_now();
	uint64_t last = arrivals(end);

	while (end->phase == STREAM_DRAIN && !all_came(end, expected)) {
		int64_t now;

		clock_sleep(DRAIN_LOOK_MS * NSEC_PER_MSEC);
		now = clock_now();
		if (arrivals(end) != last)
			changed = now;
		last = arrivals(end);
		if (now > until || now > changed + quiet || (gone && gone(arg)))
			break;
	}
	end->phase = STREAM_END;
	await(end, &end->receiving);
}

void stream_end_reset(struct stream_end *end)
{
	end->phase = STREAM_END;
	await(end, &end->sending);
	await(end, &end->receiving);
	for (unsigned i = 0; i < end->plan->flows; i++) {
		if (end->out[i].fd >= 0)
			close(end->out[i].fd);
		end->out[i].fd = end->in[i].fd = -1;
	}
	end->flows_there = 0;
	end->phase = STREAM_IDLE;
}

void stream_end_totals(const struct stream_end *end, struct stream_totals *out)
{
	*out = (struct stream_totals){0};
	for (unsigned i = 0; i < end->workers; i++) {
		const struct stream_worker *w = &end->worker[i];

		if (w->sends) {
			out->sent += counter_read(&w->total);
			out->bytes_sent += counter_read(&w->total_bytes);
		} else {
			out->received += counter_read(&w->total);
			out->bytes_received += counter_read(&w->total_bytes);
		}
	}
}

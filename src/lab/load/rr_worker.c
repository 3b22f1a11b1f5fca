/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"
#include "lab/load/side.h"

enum {
	EVENTS = 128,
	SENDS = 32,
	CONNECTING_MAX = 128, /* of a thread, so that no listener overflows */
};

#define CONNECT_TIMEOUT (5 * NSEC_PER_SEC)

static struct rr_flow *flow_with_room(struct rr_worker *w)
{
	if (w->idle == RR_NONE)
		return NULL;
	for (unsigned i = 0; i < w->flows; i++) {
		struct rr_flow *f = &w->flow[w->turn];

		w->turn = w->turn + 1 == w->flows ? 0 : w->turn + 1;
		if (rr_flow_room(w, f))
			return f;
	}
	return NULL;
}

/* Is there a request of the schedule that is still to be sent? When all are stopped: of the run. */
static bool is_wanted(const struct rr_worker *w, int64_t due, int64_t now)
{
	return w->phase == RR_RUN ||
	       (w->phase == RR_DRAIN && due < rr_end(w->client) && now < w->drain_end);
}

/* Sends what is due; of many a part, so that responses are not left to wait. */
static void due_send(struct rr_worker *w)
{
	for (unsigned i = 0; i < SENDS; i++) {
		int64_t due = rr_arrivals_next(&w->arrivals), now = clock_now();
		struct rr_flow *f;

		if (due > now || !is_wanted(w, due, now))
			return;
		f = flow_with_room(w);
		if (!f) {
			if (!w->held)
				w->held_since = now;
			w->held = true;
			return;
		}
		if (w->held) {
			w->held = false;
			w->room_since = now;
			w->catch_until = now + (now - w->held_since);
		}
		if (rr_flow_send(w, f, due, now))
			rr_arrivals_step(&w->arrivals);
	}
}

static void flow_timeouts(struct rr_worker *w, struct rr_flow *f, int64_t now)
{
	int64_t timeout = w->client->config.timeout;

	while (f->first != RR_NONE && now - w->request[f->first].sent > timeout) {
		if (w->client->config.protocol == LOAD_TCP) {
			rr_flow_down(w, f, -ETIMEDOUT);
			return;
		}
		rr_request_lose(w, f, &w->request[f->first], now, true);
	}
}

static void flow_open(struct rr_worker *w, struct rr_flow *f, int64_t now)
{
	if (w->phase == RR_DRAIN || w->connecting >= CONNECTING_MAX)
		return;
	if (w->client->config.connect)
		rr_flow_up(w, f);
	else if (w->client->config.protocol == LOAD_UDP)
		rr_udp_open(w, f, now);
	else
		rr_tcp_connect(w, f, now);
}

/* What was sent again in the warm-up is not the run's. */
static void retransmits_forget(struct rr_worker *w)
{
	bool tcp = w->client->config.protocol == LOAD_TCP && !w->client->config.connect;

	w->in_run = true;
	w->retransmits = 0;
	for (unsigned i = 0; i < w->flows && tcp; i++)
		if (w->flow[i].fd >= 0)
			w->flow[i].retransmitted = side_retransmits(w->flow[i].fd);
}

static void phase_look(struct rr_worker *w)
{
	enum rr_phase phase = (enum rr_phase)w->client->phase;

	if (!w->in_run && rr_begin(w->client))
		retransmits_forget(w);
	if (phase == w->phase)
		return;
	w->phase = phase;
	if (phase == RR_RUN && w->client->open)
		rr_arrivals_start(&w->arrivals, &w->client->config, w->number,
				  w->client->config.threads, clock_now());
	/* Behind it: what is due first is due before control goes on. */
	if (phase == RR_RUN)
		counter_add(&w->running, 1);
}

void rr_worker_tick(struct rr_worker *w)
{
	int64_t now = clock_now();

	phase_look(w);
	for (unsigned i = 0; i < w->flows; i++) {
		struct rr_flow *f = &w->flow[i];

		if (f->first != RR_NONE)
			flow_timeouts(w, f, now);
		else if (f->state == RR_FLOW_DOWN)
			flow_open(w, f, now);
		else if (f->state != RR_FLOW_UP && now - f->since > CONNECT_TIMEOUT)
			rr_flow_down(w, f, -ETIMEDOUT);
		rr_flow_next(w, f, now);
	}
}

/* The end is near: true when nothing of the run is left. */
static bool is_drained(struct rr_worker *w)
{
	int64_t now = clock_now(), due = 0;

	if (!rr_begin(w->client))
		return true;
	if (!w->drain_end)
		w->drain_end = now + w->client->config.timeout;
	if (w->under_way)
		return false;
	if (!w->client->open || (due = rr_arrivals_next(&w->arrivals)) >= rr_end(w->client))
		return true;
	if (now < w->drain_end)
		return false;
	for (; due < rr_end(w->client); due = rr_arrivals_next(&w->arrivals)) {
		rr_request_skip(w, due, now);
		rr_arrivals_step(&w->arrivals);
	}
	return true;
}

static int events_wait(struct rr_worker *w, struct epoll_event *events)
{
	struct timespec left = {0};
	int64_t ns;

	if (w->client->config.client_spins)
		return epoll_wait(w->epoll, events, EVENTS, 0);
	/* Ticks are a timer's: a time-out of each wait would cost each of them. */
	if (!w->client->open || w->phase != RR_RUN || w->held)
		return epoll_wait(w->epoll, events, EVENTS, -1);
	ns = rr_arrivals_next(&w->arrivals) - clock_now();
	if (ns > 0) {
		left.tv_sec = ns / NSEC_PER_SEC;
		left.tv_nsec = ns % NSEC_PER_SEC;
	}
	return epoll_pwait2(w->epoll, events, EVENTS, &left, NULL);
}

static void loop(struct rr_worker *w)
{
	bool udp = w->client->config.protocol == LOAD_UDP;
	struct epoll_event events[EVENTS];
	uint64_t count;

	while (w->phase != RR_DRAIN || !is_drained(w)) {
		int n;

		if (rr_alone_step(w))
			continue;
		n = events_wait(w, events);
		for (int i = 0; i < n; i++) {
			struct rr_flow *f = events[i].data.ptr;

			if (!f) {
				if (read(w->ticks, &count, sizeof(count)) < 0)
					(void)!errno;
				rr_worker_tick(w);
			} else if (udp) {
				rr_udp_event(w, f, events[i].events);
			} else {
				rr_tcp_event(w, f, events[i].events);
			}
			if (w->client->open)
				due_send(w);
		}
		if (w->client->open)
			due_send(w);
	}
}

static int worker_open(struct rr_worker *w)
{
	struct itimerspec every = {
		.it_interval.tv_nsec = RR_TICK_MS * NSEC_PER_MSEC,
		.it_value.tv_nsec = 1,
	};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
	int ret;

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->ticks = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->epoll < 0 || w->ticks < 0 || timerfd_settime(w->ticks, 0, &every, NULL) ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->ticks, &event))
		return -errno;
	if (w->client->config.client_spins) {
		ret = side_epoll_busy_poll(w->epoll, &w->client->config);
		if (ret)
			return ret;
	}
	if (w->client->config.protocol == LOAD_UDP)
		return rr_udp_prepare(w);
	return 0;
}

void *rr_worker_run(void *arg)
{
	struct rr_worker *w = arg;
	struct rr_client *client = w->client;
	int ret = side_thread_enter(&client->place);

	w->tid = (pid_t)syscall(SYS_gettid);
	if (ret) {
		rr_client_fail(client, ret, "entering the client's namespace: %s", strerror(-ret));
		return NULL;
	}
	/* Waits for what is due end when it is due. */
	prctl(PR_SET_TIMERSLACK, 1);
	ret = worker_open(w);
	if (ret)
		rr_client_fail(client, ret, "starting a client: %s", strerror(-ret));
	/* Elsewhere each flow does it. */
	else if (!w->number && (client->config.protocol == LOAD_UDP || client->config.connect))
		ret = rr_greet(client);
	if (!ret)
		loop(w);
	for (unsigned i = 0; i < w->flows; i++)
		rr_flow_close(w, &w->flow[i]);
	return NULL;
}

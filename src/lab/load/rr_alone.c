/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include "lab/clock.h"
#include "lab/load/rr_client.h"

/* It waits by itself, and is no more of the epoll, whose work would come on top. */
static bool separate(struct rr_worker *w, const struct rr_flow *f)
{
	struct timeval limit = {.tv_usec = RR_TICK_MS * 1000};
	int flags = fcntl(f->fd, F_GETFL);

	if (flags < 0 || fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK) ||
	    setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    epoll_ctl(w->epoll, EPOLL_CTL_DEL, f->fd, NULL))
		return false;
	w->apart = f->fd;
	w->ticked = clock_now();
	return true;
}

bool rr_alone_step(struct rr_worker *w)
{
	int flags = w->client->config.client_spins ? MSG_DONTWAIT : 0;
	struct rr_flow *f = &w->flow[0];

	if (w->flows > 1 || w->client->open || w->client->config.connect ||
	    f->state != RR_FLOW_UP || f->first == RR_NONE || f->choked)
		return false;
	if (w->apart != f->fd && !separate(w, f))
		return false;
	w->now = 0;
	if (f->unsent) {
		struct pollfd p = {.fd = f->fd, .events = POLLOUT};

		poll(&p, 1, RR_TICK_MS);
		rr_tcp_push(w, f);
	} else if (w->client->config.protocol == LOAD_UDP) {
		rr_udp_read(w, f, flags);
	} else {
		rr_tcp_read(w, f, flags, false);
	}
	/* Nothing has come: it looks at the clock itself. */
	if (!w->now)
		w->now = clock_now();
	if (w->now - w->ticked >= RR_TICK_MS * NSEC_PER_MSEC) {
		w->ticked = w->now;
		rr_worker_tick(w);
	}
	return true;
}

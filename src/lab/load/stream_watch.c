/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/epoll.h>

#include "lab/load/stream_socket.h"
#include "lab/load/stream_worker.h"

int stream_receive_watch(const struct stream_worker *w, int *epoll)
{
	*epoll = epoll_create1(EPOLL_CLOEXEC);
	if (*epoll < 0)
		return -errno;
	stream_epoll_options(*epoll, w->end->plan->config, w->end->server);
	for (unsigned i = 0; i < w->flows; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = w->in[i]};

		if (epoll_ctl(*epoll, EPOLL_CTL_ADD, w->in[i]->fd, &event))
			return -errno;
	}
	return 0;
}

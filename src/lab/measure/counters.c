/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/measure/counters.h"

struct counted {
	unsigned party;
	int fd[COUNTERS_EVENTS_MAX];
};

struct counters {
	unsigned events;
	struct counters_event event[COUNTERS_EVENTS_MAX];
	unsigned n, room;
	struct counted *counted;
};

static int event_open(const struct counters_event *event, pid_t thread)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.disabled = 1,
		.inherit = 1,
		.exclude_hv = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int counters_open(const struct counters_event *event, unsigned events, struct counters **out)
{
	struct counters *counters;

	for (unsigned i = 0; i < events; i++) {
		int fd = event_open(&event[i], 0);

		if (fd < 0)
			return fd;
		close(fd);
	}
	counters = calloc(1, sizeof(*counters));
	if (!counters)
		return -ENOMEM;
	counters->events = events;
	memcpy(counters->event, event, events * sizeof(*event));
	*out = counters;
	return 0;
}

static void counted_close(const struct counters *counters, const struct counted *c)
{
	for (unsigned i = 0; i < counters->events; i++)
		if (c->fd[i] >= 0)
			close(c->fd[i]);
}

void counters_clear(struct counters *counters)
{
	for (unsigned i = 0; i < counters->n; i++)
		counted_close(counters, &counters->counted[i]);
	counters->n = 0;
}

void counters_close(struct counters *counters)
{
	counters_clear(counters);
	free(counters->counted);
	free(counters);
}

int counters_add(struct counters *counters, pid_t thread, unsigned party)
{
	struct counted c = {.party = party, .fd = {-1, -1, -1, -1}};
	int ret = 0;

	if (counters->n == counters->room) {
		unsigned room = counters->room ? 2 * counters->room : 32;
		struct counted *more = realloc(counters->counted, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		counters->counted = more;
		counters->room = room;
	}
	for (unsigned i = 0; i < counters->events && ret >= 0; i++)
		ret = c.fd[i] = event_open(&counters->event[i], thread);
	if (ret < 0) {
		counted_close(counters, &c);
		return ret == -ESRCH ? 0 : ret;
	}
	counters->counted[counters->n++] = c;
	return 0;
}

static void all_switch(struct counters *counters, unsigned long how)
{
	for (unsigned i = 0; i < counters->n; i++)
		for (unsigned e = 0; e < counters->events; e++)
			ioctl(counters->counted[i].fd[e], how, 0);
}

void counters_start(struct counters *counters)
{
	all_switch(counters, PERF_EVENT_IOC_ENABLE);
}

void counters_stop(struct counters *counters)
{
	all_switch(counters, PERF_EVENT_IOC_DISABLE);
}

bool counters_sum(const struct counters *counters, unsigned party, unsigned event, double *out)
{
	*out = 0;
	for (unsigned i = 0; i < counters->n; i++) {
		const struct counted *c = &counters->counted[i];
		uint64_t value[3]; /* count, time enabled, time that it was on a counter */

		if (c->party != party)
			continue;
		if (read(c->fd[event], value, sizeof(value)) != sizeof(value))
			return false;
		if (!value[2] && value[1])
			return false;
		if (value[2])
			*out += (double)value[0] * (double)value[1] / (double)value[2];
	}
	return true;
}

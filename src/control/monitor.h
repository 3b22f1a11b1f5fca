/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link monitor: tells when an interface that a port is open on goes down, up, or away.
 *
 * One rtnetlink socket per network namespace in use, whose descriptors are interrupts of the runner
 * that calls monitor_work() in every step. Messages that the kernel had to drop are made up for by
 * asking for all links again. All calls are that runner's, or made while it does not run.
 */
#ifndef CONTROL_MONITOR_H
#define CONTROL_MONITOR_H

#include <napier/machine.h>

enum link_event { LINK_DOWN, LINK_UP, LINK_GONE };

struct monitor;
struct monitor_netns;

struct watch {
	int ifindex;
	bool known; /* has been in a dump: news before that are older than the watch */
	bool seen;  /* in the dump that is being read */
	struct monitor_netns *netns;
	struct watch *next;
};

/* May unwatch any, and free this one. Told again what has not changed, too. */
typedef void (*monitor_report)(void *arg, struct watch *watch, enum link_event event);

/* -ENOMEM */
int monitor_open(struct runner *runner, monitor_report report, void *arg, struct monitor **out);
/* Nothing is being watched. */
void monitor_close(struct monitor *monitor);

/*
 * The caller keeps the watch until monitor_unwatch. The present state is reported soon. What
 * netns_enter and the socket say.
 */
int monitor_watch(struct monitor *monitor, struct watch *watch, const char *netns, int ifindex,
		  struct error *err);
/* One that is not being watched: no effect. */
void monitor_unwatch(struct monitor *monitor, struct watch *watch);

/*
 * A bounded piece of work. Returns when there is more, `now` or later, TIME_NEVER when only an
 * interrupt tells. What the kernel refused to tell is asked for again after a second.
 */
int64_t monitor_work(struct monitor *monitor, int64_t now);

#endif

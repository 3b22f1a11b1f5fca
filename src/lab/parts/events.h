/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * events: an engine in this process whose NAPIs have no packets, only events, so that what is
 * measured is what a poller itself does: be scheduled, poll, complete.
 *
 * Two loads:
 *   circling  each poll raises its own NAPI's interrupt again, so all NAPIs always have one event
 *             to come. Nothing from outside takes part.
 *   single    one event at a time, from the caller's thread, to the NAPIs in turn: with the
 * wake-up.
 *
 * One thread uses an events. Functions return 0 or a negative errno and fill err.
 */
#ifndef LAB_PARTS_EVENTS_H
#define LAB_PARTS_EVENTS_H

#include <napier/engine.h>

#include "lab/histogram.h"

enum { EVENTS_NAPIS_MAX = 1024 };

struct events_config {
	enum poller poller;
	unsigned napis;	    /* 1..EVENTS_NAPIS_MAX */
	struct cpuset cpus; /* the engine's */
	bool descriptor;    /* interrupts come by a descriptor, as a device's do; else by raise */
	struct placement worker; /* of the workqueue's threads */
	/* The engine's, until it is open: afterwards it may say that it is slow. */
	void (*log)(void *arg, enum log_level level, const char *line);
	void *log_arg;
};

struct events;

/*
 * Needs up to three descriptors a NAPI; the soft limit is raised when the hard one permits it.
 * -EMFILE names what would be needed.
 */
int events_open(const struct events_config *config, struct events **out, struct error *err);
void events_close(struct events *events);

struct events_sample {
	uint64_t events;
	uint64_t circled; /* of circling, since its begin: what polls and completes match */
	uint64_t polls, completes; /* the NAPIs' own counters */
	int64_t wall, cpu;	   /* ns; cpu of all of the engine's threads */
};

/*
 * Circling, measured for so long (ns) and 100 events at least. Once: afterwards all NAPIs are
 * disabled. -ETIMEDOUT: not even those events within 10 s.
 */
int events_circle(struct events *events, int64_t duration, struct events_sample *out,
		  struct error *err);

struct events_single {
	int64_t duration; /* ns */
	uint64_t most;	  /* events; 0: as many as there is time for */
	int64_t gap;	  /* from a poll to the next event, ns */
	bool sleeps;	  /* between events, and then gap varies by half; else it spins */
	int cpu;	  /* for the caller's thread: none of the engine's; -1: there is none */
	struct histogram *latency; /* from the raise, or the write, to the poll; may be NULL */
};

/*
 * One event at least. The sample is taken when no NAPI is scheduled, but by a busy-poller, which
 * keeps them. -ETIMEDOUT: an event was not polled, or its poll not completed, within 10 s.
 */
int events_single(struct events *events, const struct events_single *how, struct events_sample *out,
		  struct error *err);

#endif

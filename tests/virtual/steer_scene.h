/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene in which port a's packets are steered: settings, the backlogs and their counters,
 * numbered flows. They leave by port b.
 */
#ifndef STEER_SCENE_H
#define STEER_SCENE_H

#include "scene.h"

#define CPUS 4 /* engine CPUs, when virtual */
#define FLOWS 32
#define SETTLE (10 * NSEC_PER_MSEC) /* some steps of every poller: busy-poll's take 2 ms */

void steer_begin(struct scene *s, bool virtual, uint64_t seed, enum poller poller);

extern const struct queue_settings rps_none;
struct queue_settings rps(const char *cpus);

/* Of a port, or of the engine: refused, with a text that has this. */
void steer_refused(struct scene *s, const char *port, struct queue_settings settings, int code,
		   const char *text);
void steer_refused_engine(struct scene *s, struct engine_settings settings, int code,
			  const char *text);

/* The backlogs, once there are any; a CPU's is not worked on while it is disabled. */
struct port *backlog_port(struct scene *s);
const struct napi_counters *backlog_counters(struct scene *s, unsigned cpu);
void backlog_disable(struct scene *s, unsigned cpu);
void backlog_enable(struct scene *s, unsigned cpu);
const struct cpu_record *cpu_record(struct scene *s, unsigned i);

struct load {
	struct source source;
	struct sink sink;
};

/* From a to b, as `source` says, or else FLOWS flows, 16 packets every 5 us. */
void load_start(struct load *load, struct scene *s, struct source source);
/* All that was sent has come out, in order within each flow. */
void load_end(struct load *load, struct scene *s);

/* Flows into port a of which source_send sends, at once, and lets the port's NAPI take them. */
struct source source_by_hand(struct scene *s, uint32_t flow, uint32_t flows);
void source_send(struct scene *s, struct source *source, uint32_t n);

/*
 * A handler in front of the scene's: learns the flows' hashes, and looks whether somebody comes for
 * every backlog before one is worked on.
 */
struct watcher {
	struct handler handler;
	struct scene *scene;
	_Atomic uint32_t hash[SCENE_FLOWS]; /* by flow */
	uint32_t forgotten;
};

void watch(struct watcher *watcher, struct scene *s);

#endif

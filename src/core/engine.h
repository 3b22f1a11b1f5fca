/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the engine. Everything here is control's, unless it says otherwise. */
#ifndef CORE_ENGINE_H
#define CORE_ENGINE_H

#include <napier/engine.h>

#include <core/counters.h>
#include <core/settings.h>
#include <core/steer.h>
#include <machine/lock.h>

struct softnet;
struct workqueue;

/* Bounds within which control calls return at saturation (I5). */
#define SWITCH_TIMEOUT (1 * NSEC_PER_SEC)
#define SET_TIMEOUT (5 * NSEC_PER_SEC) /* the switches of a set */
#define REMOVE_TIMEOUT (5 * NSEC_PER_SEC)
#define TICK (1 * NSEC_PER_SEC)
#define HANDLERS_MAX 16
#define ENGINE_PATH_MAX 256 /* with the terminating null */
#define CONTEXT_WORDS 16    /* 1024 contexts with an index of their own */

struct engine {
	struct engine_config config; /* defaults filled in */
	char name[32];
	struct machine *machine;
	struct pool *pool;
	struct counters_file *counters;
	char counters_path[ENGINE_PATH_MAX], restore_path[ENGINE_PATH_MAX]; /* empty: none */
	int64_t packet_ns, poll_ns;
	/* Read by who polls, set by control. */
	_Atomic uint32_t budget;    /* packets a softirq round */
	_Atomic uint32_t gro_batch; /* gro_normal_batch */
	_Atomic int64_t budget_ns;  /* of a round, and of what other pollers do at a stretch */
	_Atomic uint64_t context_indices[CONTEXT_WORDS]; /* a bit for each that is in use */

	struct lock context_lock; /* of the list */
	struct context *context_list;

	struct lock control; /* taken by engine_lock only */

	/* It works on config.cpus; the others' softnets are away. */
	struct cpuset cpus_all; /* those it was created with */
	uint32_t cpus;
	struct softnet *softnet; /* `cpus` of them */
	bool worker_cpus_own;	 /* else the workers' CPUs follow */

	struct workqueue *workqueue; /* while a NAPI uses it */
	struct automatic *automatic; /* while a NAPI's poller is auto */

	struct backlogs *backlogs; /* from the first queue that steers on */
	struct flow_hasher hasher;
	struct sock_flows sock_flows;
	uint8_t cpu_index[CPU_MAX]; /* of its backlog, or STEER_LOCAL */

	struct port **port; /* config.ports_max; each the start of a struct engine_port */
	struct settings settings;
	uint64_t *queue_ended; /* by record: the number of its queue's end; 0: never used */
	uint64_t queue_ends;

	struct handler *handler[HANDLERS_MAX]; /* all that were made for this engine */
	struct runner *tick;
	int64_t next_tick;
	struct context *context; /* control's own, under the lock */
};

/*
 * The control side is one at a time. A runner that comes to wait here (the control server's) counts
 * as between steps, so that the holder may quiesce.
 */
void engine_lock(struct engine *engine);
void engine_unlock(struct engine *engine);

__attribute__((format(printf, 3, 4))) void engine_log(struct engine *engine, enum log_level level,
						      const char *format, ...);

/* engine_port_add, lock held: for ports that the engine opens itself. */
int engine_port_add_locked(struct engine *engine, const struct port_config *config,
			   struct port **out, struct error *err);

/* The softnet of this engine CPU, or NULL: it is none, or away. */
struct softnet *engine_softnet(struct engine *engine, unsigned cpu);
/* Class and level: -EINVAL, -ERANGE. */
int placement_check(const struct placement *p, struct error *err);
/* -EINVAL: the process may not run on one of them. */
int engine_cpus_usable(struct engine *engine, const struct cpuset *cpus, struct error *err);
/* Any context. The i-th softnet. */
struct softnet *engine_softnet_at(struct engine *engine, uint32_t i);

static inline int64_t engine_budget_ns(const struct engine *engine)
{
	return atomic_load_explicit(&((struct engine *)engine)->budget_ns, memory_order_relaxed);
}

static inline uint32_t engine_gro_batch(const struct engine *engine)
{
	return atomic_load_explicit(&((struct engine *)engine)->gro_batch, memory_order_relaxed);
}

/* What is set of the engine and of its CPUs is in force from the start. */
void engine_settings_start(struct engine *engine);

/* Names the NAPIs that were scheduled at the last tick and have not been polled since. */
void engine_watch(struct engine *engine);

#endif

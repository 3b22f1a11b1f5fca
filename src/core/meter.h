/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What poller auto sees: the counters of NAPIs, the runners that poll them and the CPUs, each as
 * the difference from one look to the next. All of it is control's, engine lock held.
 */
#ifndef CORE_METER_H
#define CORE_METER_H

#include <core/choice.h>
#include <core/napi.h>

struct meter_reading {
	uint64_t received, polls, empty_polls, full_polls, poll_ns, empty_ns, wakes, wake_ns;
	int64_t ready_ns; /* of the runners that poll it */
};

/* Of a NAPI whose poller is chosen. */
struct meter_napi {
	struct meter_reading seen;
	struct meter_reading now; /* the difference, of this look */
	bool fresh;		  /* `seen` is of this poller */
};

/* Of an engine CPU. */
struct meter_cpu {
	int64_t idle_ns, busy_ns; /* so far: with nothing to run; CPU time of its busy/N */
	double idle;		  /* in this look, with what busy-poll spent on finding nothing */
};

struct meter {
	struct engine *engine;
	int64_t last;	   /* look */
	int64_t ns;	   /* it was after the one before */
	bool active;	   /* something came in it, or somebody spins */
	int64_t runner_ns; /* CPU time of all runners, at the last look; -1: not measured */
	uint64_t received; /* by all NAPIs */
	uint64_t all_packets;
	int64_t all_cpu_ns; /* as in struct choice_sample */
	unsigned machine_cpus;
	struct meter_cpu *cpu; /* one per engine CPU */
	int64_t *idle;	       /* by number of the CPU, for all up to the highest engine CPU */
	unsigned idle_n;
};

/* The first look, so what was before does not count. -ENOMEM. */
int meter_begin(struct meter *meter, struct engine *engine);
void meter_end(struct meter *meter);
/* What this NAPI had before does not count. */
void meter_napi_begin(struct meter_napi *meter, struct napi *napi);

/* A look at everything; at the runners' CPU time only where that is wanted. */
void meter_look(struct meter *meter, int64_t now, bool wants_cpu_time);

/* What the last look says of a NAPI whose poller is chosen; may_try is the caller's to add. */
void meter_sample(const struct meter *meter, const struct napi *napi, struct choice_sample *out);
/* The CPU that busy-poll would take: its own if that will do or was asked for, else the idlest. */
struct softnet *meter_spin_softnet(const struct meter *meter, const struct napi *napi);

#endif

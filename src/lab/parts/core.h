/* SPDX-License-Identifier: BSD-2-Clause */
/* core: the benchmark of the engine's own costs, part by part; no device, no link, no privileges.
 */
#ifndef LAB_PARTS_CORE_H
#define LAB_PARTS_CORE_H

#include "lab/parts/bench.h"

#include <napier/napier.h>

/* In order; NULL after the last. */
extern const struct bench_part *const core_parts[];
extern const struct bench_part core_event, core_gro, core_hash, core_packet, core_udp;

/* CPU time of this thread, ns: others that run meanwhile do not count. */
int64_t core_time(void);

/*
 * core_ring: mem -> bridge -> mem. The application's side, which is the calling thread, gives every
 * packet that comes out back in, so frames are in the cache: this is the engine's own cost, without
 * a device's and without cache misses on data.
 */
struct core_ring_config {
	enum poller poller;
	uint32_t weight;
	struct cpuset cpus; /* the engine's; empty: all */
	bool steered;	    /* to the backlogs of the engine's CPUs */
	uint32_t run;	    /* merged: so many packets of a flow follow on one another; 0: not */
	uint32_t batch;	    /* merged: they go on in vectors of so many */
};

struct core_ring {
	struct machine *machine;
	struct engine *engine;
	struct port *in, *out;
	struct context *context;
	struct core_ring_config config;
	uint64_t sent; /* into `in` */
};

/* The ring has the machine from here on, also when it fails. Packets circle when it returns. */
int core_ring_open(struct core_ring *ring, struct machine *machine,
		   const struct core_ring_config *config, struct error *err);
void core_ring_close(struct core_ring *ring);
/* What has come out goes back in. Returns how many. */
uint32_t core_ring_turn(struct core_ring *ring);
/*
 * Returns when `in` has received all that it was given and its last poll is over, so that its
 * counters are all of one moment; the packets wait at `out` then. Or after 10 s.
 */
void core_ring_settle(struct core_ring *ring);
/* ns in the polls of the port, and of the backlogs that its packets go through. */
uint64_t core_ring_poll_ns(const struct core_ring *ring);

#endif

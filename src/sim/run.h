/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random scenarios: the engine on the virtual machine, one seed each.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <napier/machine_virtual.h>

/* Faults by kind: the machine's, then those of the port, the pool and memory. */
enum sim_fault {
	SIM_RX_SHORT = VIRTUAL_FAULTS, /* a poll found less than there was */
	SIM_RING_FULL,		       /* a packet found no place in a receive ring */
	SIM_TX_FULL,		       /* a vector found no place in a transmit ring */
	SIM_POOL_EMPTY,		       /* a poll found no frames */
	SIM_STALL,		       /* a handler took its time */
	SIM_NO_MEMORY,		       /* an allocation failed */
	SIM_LINK_DOWN,		       /* a port went down */
	SIM_FAULTS
};

const char *sim_fault_name(unsigned fault);

struct sim_options {
	bool no_faults;
	/* NULL, or told of every event as one line without a newline. */
	void (*trace)(void *arg, const char *line);
	void *trace_arg;
};

struct sim_result {
	uint64_t seed;
	uint64_t hash;	    /* of all events: two runs of a seed have the same */
	int64_t virtual_ns; /* how long it was in the machine's time */
	uint64_t events, steps, polls;
	uint64_t arrived, out; /* packets */
	uint64_t operations, switches;
	uint64_t faults[SIM_FAULTS]; /* that happened */
	bool failed;
	char failure[256]; /* one line */
};

/*
 * Runs the seed's scenario. False: it failed, and result says how; then the process still holds all
 * that the scenario had, and should run no further one. One at a time in a process.
 */
bool sim_run(uint64_t seed, const struct sim_options *options, struct sim_result *result);

/* One line about the scenario itself: CPUs, ports, flows. Returns what snprintf would. */
int sim_describe(uint64_t seed, const struct sim_options *options, char *text, size_t size);

#endif

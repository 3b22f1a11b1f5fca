/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario: all of it is drawn from one seed, before anything runs. What is drawn while it runs
 * (the next operation, the next arrival) comes from seeds of its own, one per concern, so that an
 * operation more does not change the traffic.
 */
#ifndef SIM_SCENARIO_H
#define SIM_SCENARIO_H

#include <napier/napier.h>
#include <napier/machine_virtual.h>

#include <machine/random.h>

enum {
	SIM_CPUS = 8,
	SIM_PORTS = 6,
	SIM_QUEUES = 3, /* of a port */
	SIM_FLOWS = 10,
	SIM_HOGS = 3,
	SIM_POLL_APPS = 2,
	SIM_RING = 256,
	SIM_ENGINE_PORTS = 2 * SIM_PORTS + 1, /* with their TX ports, and the backlogs */
};

/* What becomes of a port's packets. */
enum sim_role {
	ROLE_CROSS,   /* out by the partner */
	ROLE_SLOW,    /* the same, after some time for each packet */
	ROLE_DROP,    /* dropped */
	ROLE_DELIVER, /* delivered, as to an application */
	ROLE_BRIDGE,  /* the bridge */
	ROLES,
};

const char *sim_role_name(enum sim_role role);

struct sim_port_plan {
	uint32_t queues;
	uint32_t rx_ring, tx_ring; /* packets; powers of two */
	int64_t wire_ns;	   /* a packet's time on the wire */
	int64_t moderation_ns;	   /* an interrupt this long after the first packet; 0: at once */
	bool tx_napi;
	bool supers;	  /* it sends super-packets in one piece */
	uint32_t pollers; /* that can poll it, a bit each; 0: all */
	bool poller_set;  /* its kind asks for one of those */
	enum poller poller;
	enum sim_role role;
	unsigned partner; /* for ROLE_CROSS and ROLE_SLOW */
};

enum sim_pattern { PATTERN_PACED, PATTERN_BURSTS, PATTERN_POISSON, PATTERNS };

/* Packets with consecutive numbers that come in by one queue. */
struct sim_flow_plan {
	unsigned port, queue;
	unsigned to; /* port whose address they have, for the bridge */
	enum sim_pattern pattern;
	int64_t interval_ns; /* between two packets on average; within a burst there is none */
	uint32_t burst;	     /* packets at once, PATTERN_BURSTS */
	uint32_t length;     /* bytes */
};

/* Somebody else's work beside the engine's. */
struct sim_hog_plan {
	struct placement placement;
	int64_t run_ns, rest_ns; /* FIFO ones rest, so that they starve nobody for good */
};

/* An application that polls. */
struct sim_poll_app_plan {
	struct busy_poll how;
	bool whole;	    /* a look is one step, else each poll of it */
	int64_t service_ns; /* its work for each packet */
	int64_t away_ns;    /* at most, after a look in vain */
};

struct scenario {
	uint64_t seed;
	struct virtual_config machine;
	struct engine_config engine;
	/*
	 * Runners of the engine may be FIFO. Those starve others under overload, by design; so then
	 * the traffic gives in when control has to wait for long, and no bound holds before.
	 */
	bool fifo;
	int64_t slow_ns; /* ROLE_SLOW, for a packet */
	unsigned ports, flows, hogs, poll_apps;
	struct sim_port_plan port[SIM_PORTS];
	struct sim_flow_plan flow[SIM_FLOWS];
	struct sim_hog_plan hog[SIM_HOGS];
	struct sim_poll_app_plan poll_app[SIM_POLL_APPS];
	/* An application sends by the first port so often on average; 0: there is none. */
	int64_t app_ns;
	unsigned operations;	      /* by control, one after the other */
	int64_t operation_ns;	      /* at most between two of them */
	struct virtual_faults faults; /* of the machine */
	uint32_t rx_short;	      /* chance that a poll finds less than there is */
	uint32_t stall;		      /* chance that a handler takes stall_ns more */
	int64_t stall_ns;
};

/* Concerns with draws of their own. */
enum sim_stream {
	STREAM_PLAN,
	STREAM_MACHINE,
	STREAM_CONTROL,
	STREAM_FAULTS,
	STREAM_APP,
	STREAM_FLOW,
	STREAM_POLL_APP = 1000, /* and one after it for each */
};

static inline struct random sim_stream(uint64_t seed, unsigned stream)
{
	return (struct random){random_mix(seed + UINT64_C(0x632be59bd9b4e019)) +
			       random_mix(stream)};
}

/* Any seed gives one. faults: with those, too. */
void scenario_draw(uint64_t seed, bool faults, struct scenario *out);

#endif

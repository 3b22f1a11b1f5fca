/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scenario while it runs, and what the files here know of each other.
 *
 *   draw.c      a scenario from a seed
 *   run.c       a scenario from beginning to end: a safety phase with faults, a liveness phase
 *   port.c      a kind of port: rings, wire, moderation
 *   flow.c      what arrives, and what has to come out
 *   handler.c   where packets go
 *   hog.c       others who want the CPUs
 *   app.c       an application that sends by itself
 *   poll_app.c  applications that poll
 *   control.c   one operation after the other
 *   asked.c     what was asked for, and whether it is so
 *   check.c     what always holds, looked at after every event
 *   check_softirq.c  the same for softirq
 *   census.c    where the tokens of the NAPIs are
 *   guard.c     who allocates, and allocations that fail
 *   trace.c     all that as a hash, and as text
 *   crew.c      many seeds over several processes
 *
 * What comes from outside of the engine (arrivals, the wire) happens in calls of the virtual
 * machine, between steps. A check that fails ends the scenario at once, from wherever it is.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <setjmp.h>

#include <core/busy_loop.h>
#include <core/engine.h>
#include <core/napi.h>

#include <sim/run.h>
#include <sim/scenario.h>

struct sim;

enum { SIM_PROBES = SIM_PORTS * SIM_QUEUES, SIM_APP = SIM_FLOWS + SIM_PROBES, SIM_NUMBERED };

/*
 * What was asked of a queue, and so has to be found, also when its port comes back. Keys that are
 * not set have the engine's default; the poller that of the moment at which the NAPI was made.
 */
struct sim_asked {
	struct queue_settings settings;
	bool disabled;
};

/* A packet that is not in a frame yet. */
struct sim_arrival {
	uint16_t flow;
	uint32_t number;
};

struct sim_queue {
	struct sim *sim;
	struct sim_port *port;
	unsigned index;
	struct port_queue *queue; /* NULL: the port is closed */

	struct sim_arrival rx[SIM_RING];
	uint32_t rx_put, rx_taken;
	bool raising;	 /* an interrupt comes when the moderation is over */
	bool raise_lost; /* by a fault, since it was last found empty: none is owed */

	struct packet *tx[SIM_RING];
	uint32_t tx_put, tx_kicked, tx_sent, tx_freed;
	bool wire_busy;

	/* Of its NAPI: a queue that comes back counts on. */
	bool counted; /* the add has succeeded */
	uint64_t received, transmitted_before, steered_before;
	/* The checks' own. */
	uint32_t event_polls; /* in the event that is happening */
	bool polled;	      /* in it: to be looked at after it */
	uint64_t seen_polls;
	int64_t waits_since; /* scheduled and not polled; TIME_NEVER: it is not */
	int busy_on;	     /* index of the engine CPU whose busy-poller has it; -1 */
};

struct sim_port {
	struct port_ops ops; /* a kind of its own: first, so that an open finds the rest */
	struct sim *sim;
	unsigned index;
	char name[8];
	struct port *port; /* NULL: removed */
	bool removing;	   /* control kicks what its TX NAPIs have not */
	struct sim_queue queue[SIM_QUEUES];
	enum sim_role role;
	char tx_name[12];
	struct sim_asked asked[SIM_QUEUES], tx_asked[SIM_QUEUES];
};

struct sim_flow {
	struct sim *sim;
	uint16_t id;
	struct sim_flow_plan plan;
	struct random random;
	uint32_t number;	  /* of the next packet */
	uint32_t next[SIM_PORTS]; /* the least number that may still come out there */
	uint64_t arrived;	  /* that the ring had room for */
	uint64_t out;
};

struct sim_hog {
	struct sim *sim;
	const struct sim_hog_plan *plan;
	struct runner *runner;
	int64_t used;
	bool stopped;
};

/* The softirq of an engine CPU. */
struct sim_round {
	uint64_t rounds; /* the number of this round */
	uint32_t packets;
	int64_t began;
	uint32_t polls; /* in the event that is happening */
	/* As it was before that. */
	uint64_t interrupts, left;
	int64_t looped_at;
};

struct sim {
	struct scenario plan;
	const struct sim_options *options;
	struct machine *machine;
	struct engine *engine;
	struct handler *handler[ROLES];
	struct sim_port port[SIM_PORTS];
	struct sim_flow flow[SIM_NUMBERED];
	struct sim_hog hog[SIM_HOGS];
	struct sim_app {
		struct sim *sim;
		struct runner *runner;
		struct context *context;
		struct random random;
	} app;
	struct sim_poll_app {
		struct sim *sim;
		const struct sim_poll_app_plan *plan;
		struct runner *runner;
		struct context *context;
		struct random random;
		struct busy_loop loop;
		bool looking; /* from one step to the next */
		bool stopped;
		char name[2];
	} poll_app[SIM_POLL_APPS];
	struct random control;
	bool traffic;	  /* flows go on */
	int64_t patience; /* with plan.fifo: they and the application pause after this time */
	bool faults;	  /* safety phase: things go wrong */
	struct random fault_random;
	/* What was asked of the engine. */
	enum poller poller_default;
	uint32_t weight_default;
	struct sim_asked backlog[SIM_CPUS];
	bool backlogs; /* they are there */

	struct context *thief; /* who takes frames, so that the pool runs empty */
	uint32_t stolen;
	struct packet **loot;

	/* By frame: SIM_FRAME_TX while a port has it, else the poll that last took it. */
	uint32_t *frame;
	uint32_t polls;

	struct sim_round round[SIM_CPUS];
	int64_t event_began; /* time of the first poll in this event; TIME_NEVER: none yet */
	uint64_t transmitted_closed, steered_closed; /* by NAPIs that are gone */
	uint64_t taken;				     /* by ports, to be sent */

	struct sim_result *result;
	jmp_buf over;
};

#define SIM_FRAME_TX UINT32_MAX

/* Ends the scenario as failed: what was to hold, and what was found. Does not return. */
__attribute__((format(printf, 2, 3), noreturn)) void sim_fail(struct sim *sim, const char *format,
							      ...);

/* port.c */
void sim_port_init(struct sim *sim, unsigned index);
/* A packet of the flow comes in on the wire. */
void sim_port_arrive(struct sim_queue *q, uint16_t flow, uint32_t number);
bool sim_queue_drained(const struct sim_queue *q);
static inline struct sim_queue *sim_queue_of(const struct port_queue *queue)
{
	return (struct sim_queue *)queue->private;
}

/* Its TX port; NULL: it has none now. */
struct port *sim_port_tx(const struct sim_port *p);

/* flow.c. Begins to arrive; writes a packet; a packet came out. */
void sim_flow_init(struct sim *sim, unsigned index);
void sim_flow_begin(struct sim_flow *flow);
void sim_flow_probe(struct sim *sim, struct sim_queue *q);
void sim_flow_write(struct sim *sim, const struct sim_arrival *a, struct packet *p);
void sim_flow_out(struct sim *sim, unsigned port, const struct packet *p);

/* handler.c. The second: the port is about to go; nobody's packets go there any more. */
void sim_handlers_create(struct sim *sim);
void sim_handlers_unlink(struct sim *sim, const struct port *port);

/* app.c */
void sim_app_start(struct sim *sim);
void sim_app_stop(struct sim *sim);

/* poll_app.c. The second: whether this is one of them. */
void sim_poll_apps_start(struct sim *sim);
bool sim_poll_app_is(const struct sim *sim, const struct runner *runner);
void sim_poll_apps_stop(struct sim *sim);

/* hog.c */
void sim_hogs_start(struct sim *sim);
void sim_hogs_calm(struct sim *sim); /* the FIFO ones rest for good */
void sim_hogs_stop(struct sim *sim);

/* control.c. The next operation; one that puts back whatever is off; all that was asked is so. */
void sim_control_operate(struct sim *sim);
void sim_control_set_any(struct sim *sim);
void sim_control_restore(struct sim *sim);
void sim_control_port_add(struct sim *sim, struct sim_port *p);
void sim_control_port_remove(struct sim *sim, struct sim_port *p);

/* asked.c. Adds what is set in `from`; the NAPIs of a port have just been made; all is so. */
void sim_asked_merge(struct sim_asked *to, const struct queue_settings *from);
/* plan NULL: no kind or port_config asks for a poller. */
void sim_asked_made(struct sim *sim, struct sim_asked *asked, const struct sim_port_plan *plan,
		    uint32_t queues, bool disabled);
void sim_asked_check(struct sim *sim, const char *after);

/* check.c */
void sim_check_event(void *sim);
void sim_check_poll(struct sim_queue *q, struct context *context, uint32_t n);
void sim_check_polled(struct sim_queue *q, uint32_t n);
/* Its port has been added, or is about to be closed. */
void sim_check_opened(struct sim_queue *q);
void sim_check_closed(struct sim_queue *q);
/* The counters of all NAPIs and ports agree. */
void sim_check_totals(struct sim *sim);

/* check_softirq.c. A poll begins, has taken n packets; the event is over. */
void sim_check_softirq_poll(struct sim *sim, const struct napi *napi,
			    const struct context *context);
void sim_check_softirq_polled(struct sim *sim, const struct napi *napi, uint32_t n);
void sim_check_softirq(struct sim *sim);

/* census.c */
void sim_census(struct sim *sim);

/* guard.c. In this thread from now on, or no more. */
void sim_guard_begin(bool begin);
/* The machine's memory. From here to sim_guard_leave the scenario itself allocates. */
void sim_guard_enter(void);
void sim_guard_leave(void);
/* Names the runner in whose step something was allocated, or NULL. */
const char *sim_guard_caught(void);
/* The n-th allocation from now fails, once; 0: none. Returns how many failed since. */
uint32_t sim_guard_fail(uint32_t n);

/* trace.c. An event of the scenario's own: into the hash, and as a line when one is wanted. */
__attribute__((format(printf, 4, 5))) void sim_note(struct sim *sim, const char *kind,
						    const char *name, const char *format, ...);
void sim_mix(struct sim *sim, uint64_t value);
void sim_fault(struct sim *sim, enum sim_fault fault, const char *name);

static inline bool sim_chance(struct sim *sim, uint32_t chance)
{
	return sim->faults && chance &&
	       random_below(&sim->fault_random, VIRTUAL_CHANCE_ONE) < chance;
}

/* Both phases end with the machine's time; this is how long something may take. */
#define SIM_BOUND (200 * NSEC_PER_MSEC)

#endif

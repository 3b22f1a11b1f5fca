/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene for tests of the engine: a machine, an engine, mem ports, sources of numbered packets and
 * sinks that check them. The same test bodies run over every poller and, where the test says so,
 * on both machines.
 */
#ifndef SCENE_H
#define SCENE_H

#include "../unit/test.h"

#include <napier/napier.h>

#define SCENE_FRAME 60 /* bytes of a test packet */
#define SCENE_LOG 16

struct scene {
	struct machine *machine;
	struct engine *engine;
	struct handler *cross; /* sends what comes in by one port out by its partner */
	struct port *a, *b;
	struct scene_app *app; /* NULL: there is none */
	uint32_t lines;
	char log[SCENE_LOG][256]; /* the last warnings */
};

/*
 * A virtual machine with this seed and two CPUs when `virtual`, else the host. Ports a and b, cross
 * handler between them.
 */
void scene_begin(struct scene *scene, bool virtual, uint64_t seed, enum poller poller);
/* As above, with what else is set in config; its machine, log and frames are the scene's. */
void scene_begin_with(struct scene *scene, bool virtual, uint64_t seed,
		      struct engine_config config);
/* The same on a virtual machine with so many CPUs (the host has those it has). */
void scene_begin_cpus(struct scene *scene, bool virtual, uint64_t seed, unsigned cpus,
		      struct engine_config config);
/*
 * With SCENE_HOST_ONLY in the environment, for a run that looks at threads, of which the virtual
 * machine has none: skips the rest of a test that has no part on the host.
 */
void scene_virtual_only(void);
/* On a virtual machine on which every cost is exact. */
void scene_begin_exact(struct scene *scene, struct engine_config config);
/* The next scene's virtual machine traces there. */
void scene_trace(void (*trace)(void *arg, const char *line), void *arg);
/* All packets must be free by then, or the test fails. */
void scene_end(struct scene *scene);
/*
 * While a scene is open on the host, a failure ends the program: the scene's threads would go on
 * in the next test, on a scene that is gone.
 */
void scene_failures_abort(bool abort);

/*
 * SCENE_TX_NAPI is in the environment: every port has TX NAPIs, with which the same bodies have to
 * come out right. They are on CPU 1, so that CPU 0 is what it is without them.
 */
bool scene_tx(void);

/*
 * SCENE_APP is in the environment: an application polls the ports of the cross handler whose poller
 * is app, in every scene. Without it nobody comes, and softirq polls them.
 */
bool scene_app(void);

/* Adds a mem port; partner NULL: none yet. */
struct port *scene_port(struct scene *scene, const char *name, struct port *partner);
/* What comes in by either goes out by the other. */
void scene_partner(struct scene *scene, struct port *a, struct port *b);
/*
 * Sets that for a queue of the port, or for all with -1; or for the engine. On the host it asks for
 * longer than a set may take: a busy one may not run a poller for a second, and then all is as it
 * was. What had lost its wake-up would fail for ever.
 */
void scene_set(struct scene *scene, const char *port, int queue, struct queue_settings settings);
void scene_set_engine(struct scene *scene, struct engine_settings settings);
/* The same for a port that goes, and for a NAPI: control waits for a poll of it to end. */
void scene_port_remove(struct port *port);
void scene_disable(struct napi *napi);
/* Lets time go on. */
void scene_run(struct scene *scene, int64_t ns);
/*
 * 0, or what machine_wait returned when it was not done within two minutes. They are made of
 * seconds, each begun when the one before is over: a machine that stands still, as a virtual one
 * does that is suspended, loses one of them and not the wait. Two, so that one thread may be kept
 * from its CPU for one, while others run.
 */
#define SCENE_PATIENCE 120
int scene_wait(struct machine *machine, bool (*done)(void *arg), void *arg);
/* The last warning that has this in it, or NULL. */
const char *scene_logged(struct scene *scene, const char *text);

#define SCENE_FLOWS 64

/* UDP over IPv4, a port per flow; then flow and number. GRO can merge those of one flow. */
void scene_datagram(struct packet *p, uint32_t flow, uint32_t number);

/*
 * Sends numbered packets into a mem port, at a pace, from a runner of its own: of one flow, or of
 * `flows` of them in turn, numbered each, as UDP over IPv4 (steering can tell those apart).
 */
struct source {
	struct scene *scene;
	struct port *port;
	uint32_t flow;	  /* its number, or the first one's */
	uint32_t flows;	  /* 0: one, without an IP header */
	uint32_t burst;	  /* packets each time */
	int64_t interval; /* ns between times */
	uint32_t count;	  /* in all; 0: until stopped */
	/* Not NULL: sends only while less than `window` of its packets have not come out there. */
	const struct sink *paced_by;
	uint32_t window;
	/* results */
	_Atomic uint32_t sent; /* accepted by the port */
	uint32_t full;	       /* times that the port or the pool was full */
	/* inside */
	struct runner *runner;
	struct context *context;
	int64_t next;
	bool stopped;
};

/* Takes what a mem port's engine side transmits, checks order, frees. */
struct sink {
	struct scene *scene;
	struct port *port;
	/* results */
	_Atomic uint32_t received;
	uint32_t disorder; /* packets whose number was not above the one before, in their flow */
	uint32_t missing;  /* numbers left out */
	uint32_t next[SCENE_FLOWS]; /* by flow */
	/* inside */
	struct runner *runner;
	struct context *context;
};

/* Fields above `results` are filled in. The runners are ordinary ones, on any CPU. */
void source_start(struct source *source);
void source_stop(struct source *source); /* waits until `count` have been sent, if one was given */
void sink_start(struct sink *sink);
void sink_stop(struct sink *sink); /* takes the rest first: drain before */

/* Sends all of the source's `count` into port a; the sink takes what comes out of port b. */
void scene_pass(struct scene *scene, struct source *source, struct sink *sink);

/* Sends all packets back into the mem port that they came in by, so that it is never empty. */
extern struct handler scene_again;
/* The same for handlers that do something else besides; drops what the port has no room for. */
void packets_return(struct context *context, struct port *in, struct packet **v, uint32_t n);
/*
 * Sends n packets into a port while it is not polled, since only one may send into a mem port at a
 * time, and its handler may. A port that was disabled stays so.
 */
void scene_fill(struct scene *scene, struct port *port, uint32_t n);
/* From now on so many circle there; and until now: they go out by its partner, or are dropped. */
void scene_circle(struct scene *scene, struct port *port, uint32_t n);
void scene_calm(struct scene *scene, struct port *port);

/* Sends n packets that bear the time of now, and reads what one of them bears. */
void stamped_send(struct port *port, struct context *context, uint32_t n);
int64_t stamped_at(const struct packet *p);

/* Waits until the port has been polled more often than that; fails when patience ends. */
void scene_polled(struct scene *scene, struct port *port, uint64_t before);
/* Waits until so many were dropped, or more, for this reason by what the port received. */
void scene_dropped(struct scene *scene, struct port *port, enum drop_reason reason, uint64_t n);
/* Waits until the port has received so many in all, and nothing is held; fails likewise. */
void scene_drain(struct scene *scene, struct port *port, uint64_t received);

/* received + cloned less what it became, over all NAPIs of the port. */
int64_t port_held(const struct port *port);
/* Packets that stand in backlogs. */
uint64_t backlogs_held(struct scene *scene);
uint64_t port_sum(const struct port *port, size_t counter_offset);
#define PORT_SUM(port, field) port_sum(port, offsetof(struct napi_counters, field))

/* Runs body once per poller, as separate cmocka assertions. */
typedef void (*scene_body)(enum poller poller);
void over_pollers(scene_body body);
/* The same, and with each deferral policy of softirq in every scene that sets none. */
void over_pollers_and_deferrals(scene_body body);

#endif

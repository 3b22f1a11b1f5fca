/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service: an engine made from a setup, with its run directory, its control runner (requests and
 * links) and its ports, those included whose device is away.
 *
 * The thread that opened it calls open, stop and close; everything else is called by the control
 * runner, or by that thread while the control runner does not run.
 */
#ifndef CONTROL_SERVICE_H
#define CONTROL_SERVICE_H

#include <jansson.h>

#include <control/hosted.h>
#include <control/monitor.h>
#include <control/request.h>
#include <control/rundir.h>
#include <control/server.h>
#include <control/setup.h>

#define SERVICE_RETRY NSEC_PER_SEC	   /* between two tries to open a port that is away */
#define SERVICE_ENDED (20 * NSEC_PER_MSEC) /* between two looks whether all input has ended */

struct service_port {
	struct setup_port *setup;
	struct port *port;	  /* NULL: absent */
	struct hosted *hosted;	  /* this host is behind it; NULL: a port of the handler's */
	struct watch watch;	  /* of its interface */
	enum port_state told;	  /* the last state that was logged */
	char why[ERROR_TEXT_MAX]; /* it is absent */
};

struct service {
	struct setup *setup;
	struct rundir rundir;
	struct machine *machine;
	struct engine *engine;
	struct handler *handler;
	struct handler *host;  /* of the interfaces that are hosted; NULL: there were none yet */
	struct runner *runner; /* the control runner */
	struct server *server;
	struct monitor *monitor;
	int done; /* eventfd */
	bool done_told;
	bool started;	    /* ports receive */
	_Atomic bool ready; /* the control runner may work */
	int64_t retry;	    /* when absent ports are tried next */
	struct service_port *ports[SETUP_PORTS_MAX];
	uint32_t ports_n;
};

/*
 * Starts everything; setup outlives the service, whose ports it then has no more. The log is called
 * from any thread. Nothing is left when it fails.
 */
int service_open(struct setup *setup, const char *run_base,
		 void (*log)(void *arg, enum log_level level, const char *line), void *log_arg,
		 struct service **out, struct error *err);

/* Becomes readable when somebody asked to stop, or all input has ended (finite ports only). */
int service_done_fd(const struct service *service);

/*
 * Ends control and polling: what was received has been sent, and the counters stand still. Waits
 * for the polls of the moment, 5 s a queue at most.
 */
void service_stop(struct service *service);

/* Frees everything, after service_stop. -EIO: packets are missing, which err tells. */
int service_close(struct service *service, struct error *err);

/* service_ports.c */

/* Takes `port` over when it succeeds. */
int service_port_add(struct service *service, struct setup_port *port, struct service_port **out,
		     struct error *err);
/* -ENOENT, -ETIMEDOUT */
int service_port_remove(struct service *service, const char *name, struct error *err);
/* Ports that are added from now on receive at once; those that are there, too. */
int service_ports_start(struct service *service, struct error *err);
/* monitor_report */
void service_link(void *arg, struct watch *watch, enum link_event event);
/* Tries the absent ports again when it is time; returns when that will be. */
int64_t service_ports_retry(struct service *service, int64_t now);
/* All that can be received ends by itself. */
bool service_ports_finite(const struct service *service);
/* Where that is so: it has. */
bool service_ports_ended(const struct service *service);
/* What is hosted goes back to its wires, while all is still polled. */
void service_ports_return(struct service *service);
/* Closes and frees all; for the end. */
void service_ports_free(struct service *service);

/* service_answer.c: server_answer */
char *service_answer(void *arg, const char *line, size_t n);
/* Makes the descriptor of service_done_fd readable. */
void service_done(struct service *service);

__attribute__((format(printf, 3, 4))) void
service_log(struct service *service, enum log_level level, const char *format, ...);

#endif

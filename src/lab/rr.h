/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rr: request and response over TCP, closed loop.
 *
 * A client has some flows, each a connection with one transaction outstanding: it sends a request
 * and waits for the whole response before it sends the next. The time in between is the latency,
 * never halved. Client and server tell each other their sizes first; a server refuses a client
 * whose sizes are not its own, so that no figure is of something else than was asked.
 *
 * A transaction is lost when its response does not come within the time-out, or its connection
 * breaks, or the response is not the one to its request; the flow then connects anew. TCP repairs
 * what the network loses, so `retransmits` (of both sides) is what tells of lost packets.
 *
 * Controlled by one thread. Functions return 0 or a negative errno and fill err.
 */
#ifndef LAB_RR_H
#define LAB_RR_H

#include <stdint.h>

#include <napier/error.h>
#include <napier/machine.h>

#include "lab/histogram.h"

enum {
	RR_SIZE_MAX = 1 << 20,
	RR_FLOWS_MAX = 4096,
	RR_THREADS_MAX = 64,
	RR_INTERVALS = 1200,
};

struct rr_config {
	int netns; /* descriptor of the namespace the sockets are made in; -1: the caller's */
	char address[64]; /* IPv4 or IPv6, of the server */
	uint16_t port;
	unsigned threads;		      /* flows and connections are spread over them */
	unsigned flows;			      /* the client's */
	uint32_t request_size, response_size; /* 1..RR_SIZE_MAX bytes */
	int64_t timeout;		      /* of a transaction, ns */
	int64_t interval;		      /* of rr_result.interval, ns; 0: 100 ms */
	struct cpuset cpus;		      /* its threads run there; empty: anywhere */
};

struct rr_result {
	/* From demo_client_start to demo_client_stop: started = completed + lost. */
	uint64_t started, completed, lost;
	uint64_t reconnects;
	uint64_t retransmits; /* TCP segments sent again by the client */
	/* From demo_client_measure to demo_client_drain, by completion. */
	uint64_t transactions;
	int64_t duration; /* ns */
	unsigned intervals;
	uint32_t interval[RR_INTERVALS]; /* transactions in each; the last one is cut off */
	struct histogram latency;	 /* ns */
};

struct rr_server_result {
	uint64_t transactions; /* responses sent whole */
	uint64_t connections;
	uint64_t refused;     /* connections whose parameters disagreed */
	uint64_t retransmits; /* TCP segments sent again by the server */
};

struct rr_client;
struct rr_server;

/* Listens when it returns. -EADDRINUSE and the like name the address. */
int demo_server_start(const struct rr_config *config, struct rr_server **out, struct error *err);
/* CPU time of its threads so far, ns. */
int64_t demo_server_cpu(const struct rr_server *server);
/* What it did, also while it runs; retransmits only of connections that have ended. */
void demo_server_read(const struct rr_server *server, struct rr_server_result *out);
/* Closes its connections; result may be NULL. */
void demo_server_stop(struct rr_server *server, struct rr_server_result *result);

/*
 * Connects all flows and starts them: unmeasured, as warm-up. -EPROTO: the server's sizes are not
 * ours, or it is not an rr server. -ETIMEDOUT: not all were connected within 5 s.
 */
int demo_client_start(const struct rr_config *config, struct rr_client **out, struct error *err);
/* From now on transactions are recorded. */
void demo_client_measure(struct rr_client *client);
/* No further: no request is sent after this, those under way are awaited up to the time-out. */
void demo_client_drain(struct rr_client *client);
int64_t demo_client_cpu(const struct rr_client *client);
/* Drains if need be; result (large: not on a stack) may be NULL. */
void demo_client_stop(struct rr_client *client, struct rr_result *result);

#endif

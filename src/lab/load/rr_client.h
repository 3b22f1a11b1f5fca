/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's threads of rr. Each has its flows, its requests and its figures; what they share is
 * the control block, which is written a few times in a run. No locks, no allocation a request.
 */
#ifndef LAB_LOAD_RR_CLIENT_H
#define LAB_LOAD_RR_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include <napier/counters.h>

#include "lab/clock.h"
#include "lab/load/rr.h"
#include "lab/load/rr_arrivals.h"
#include "lab/load/rr_stats.h"

enum rr_phase { RR_CONNECT, RR_RUN, RR_DRAIN };

enum {
	RR_NONE = UINT32_MAX,
	RR_TICK_MS = 10, /* time-outs, reconnecting */
	RR_CHUNK = 1 << 17,
	RR_CLIENT_VECTOR = 32,
};

/* One that has been sent, or is being sent, and has no answer yet. */
struct rr_request {
	int64_t due, sent;
	uint32_t next, previous; /* of its flow, in the order of sending; of the free ones */
	uint16_t flow;
	uint16_t sequence; /* of its flow */
	bool counted;	   /* it belongs to the run */
};

enum rr_flow_state {
	RR_FLOW_DOWN, /* connects anew at the next tick */
	RR_FLOW_CONNECTING,
	RR_FLOW_GREETING,
	RR_FLOW_UP,
};

struct rr_flow {
	int fd; /* -1: none. With `connect` one that is up has none while nothing is under way */
	uint8_t state;
	bool was_up;
	bool choked; /* UDP: no room in the send buffer */
	int away;    /* why it last went down, a negative errno; 0: it has answered since */
	uint16_t sequence;
	uint32_t first, last; /* requests; RR_NONE */
	uint32_t under_way;
	uint32_t unsent;	/* TCP: bytes of the last one */
	uint32_t got;		/* TCP: bytes of the response to the first one, or of the hello */
	int64_t since;		/* it has been connecting */
	uint32_t retransmitted; /* TCP: before the run began */
	struct rr_hello *hello; /* while it is greeting */
};

struct rr_worker {
	struct rr_client *client;
	unsigned number;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
	int epoll, ticks;
	int apart;   /* descriptor of its only flow, which it waits for without epoll; -1 */
	int64_t now; /* when it last received, or ticked */
	int64_t ticked;
	enum rr_phase phase; /* as it has seen it */
	unsigned flows;
	struct rr_flow *flow;
	unsigned connecting, turn;
	uint32_t requests; /* at most, under way */
	uint32_t under_way;
	struct rr_request *request;
	uint32_t idle; /* the first free one */
	uint32_t tag;  /* bytes */
	uint8_t *in, *out;
	struct rr_vector *vector; /* UDP, open loop */
	struct rr_arrivals arrivals;
	bool held; /* a request is due, and there is no room for it, since: */
	int64_t held_since;
	int64_t room_since; /* when there was room again */
	/*
	 * What it was held from sending takes time to be sent: as long as it was held is granted.
	 */
	int64_t catch_until;
	int64_t drain_end;
	uint64_t retransmits;
	bool in_run; /* the run has begun, as it has seen */
	struct rr_stats *stats;

	_Alignas(64) counter done, lost; /* for progress, since the start */
	counter connected;		 /* flows that were up once */
	counter running;		 /* 1: it has begun to send */
};

struct rr_client {
	struct load_config config;
	struct load_place place;
	struct sockaddr_storage address;
	socklen_t length;
	bool open, many;    /* open loop; several requests fit into a flow */
	_Atomic int failed; /* negative errno: it cannot work, and err says why */
	_Atomic bool failing;
	struct error err;
	int64_t interval;
	unsigned intervals;
	_Atomic int phase;
	/*
	 * The run's time; end first, so that who sees a begin sees its end. 0: not yet;
	 * RR_BEGINNING while it is chosen.
	 */
	_Atomic int64_t begin, end;
	struct rr_worker worker[];
};

#define RR_BEGINNING (-1)

/*
 * Waits while the time is chosen: control may be off its CPU in between, and what is due meanwhile
 * is of the run.
 */
static inline int64_t rr_begin(const struct rr_client *client)
{
	int64_t begin;

	while ((begin = atomic_load_explicit(&client->begin, memory_order_acquire)) == RR_BEGINNING)
		clock_sleep(NSEC_PER_MSEC / 20);
	return begin;
}

static inline int64_t rr_end(const struct rr_client *client)
{
	return atomic_load_explicit(&client->end, memory_order_relaxed);
}

static inline bool rr_within(const struct rr_client *client, int64_t at)
{
	int64_t begin = rr_begin(client);

	return begin && at >= begin && at < rr_end(client);
}

/* The first failure is told. */
__attribute__((format(printf, 3, 4))) void rr_client_fail(struct rr_client *client, int code,
							  const char *format, ...);

void *rr_worker_run(void *arg);
/* Time-outs, reconnecting, and what control has said meanwhile. */
void rr_worker_tick(struct rr_worker *w);

/* rr_request.c: the pool of requests, and what is recorded of each. */
/* One more of this flow, which has room; due 0: now. */
struct rr_request *rr_request_begin(struct rr_worker *w, struct rr_flow *f, int64_t due,
				    int64_t now);
/* Answered. */
void rr_request_end(struct rr_worker *w, struct rr_flow *f, struct rr_request *r, int64_t now);
/* Not answered, for this reason. */
void rr_request_lose(struct rr_worker *w, struct rr_flow *f, struct rr_request *r, int64_t now,
		     bool timeout);
/* It was not sent after all. */
void rr_request_undo(struct rr_worker *w, struct rr_flow *f, struct rr_request *r);
/* Due, and never sent. */
void rr_request_skip(struct rr_worker *w, int64_t due, int64_t now);
uint32_t rr_request_tag(const struct rr_worker *w, const struct rr_request *r);

/* rr_flow.c: what TCP and UDP have in common. */
bool rr_flow_room(const struct rr_worker *w, const struct rr_flow *f);
/* Of no more use: what is under way is lost; it connects anew at the next tick. */
void rr_flow_down(struct rr_worker *w, struct rr_flow *f, int why);
void rr_flow_close(struct rr_worker *w, struct rr_flow *f);
void rr_flow_up(struct rr_worker *w, struct rr_flow *f);
int rr_flow_socket(struct rr_worker *w, int type);
/* The flow has room for one: closed loop: sends the next. */
void rr_flow_next(struct rr_worker *w, struct rr_flow *f, int64_t now);
/* Sends one. False: the flow was choked, and nothing was begun. */
bool rr_flow_send(struct rr_worker *w, struct rr_flow *f, int64_t due, int64_t now);

/* rr_tcp.c */
void rr_tcp_connect(struct rr_worker *w, struct rr_flow *f, int64_t now);
void rr_tcp_event(struct rr_worker *w, struct rr_flow *f, uint32_t events);
/* Responses, until there are none; without MSG_DONTWAIT it waits for them. */
void rr_tcp_read(struct rr_worker *w, struct rr_flow *f, int flags, bool ending);
/* Sends what is unsent of the last request. */
void rr_tcp_push(struct rr_worker *w, struct rr_flow *f);

/* rr_udp.c */
int rr_udp_prepare(struct rr_worker *w);
void rr_udp_open(struct rr_worker *w, struct rr_flow *f, int64_t now);
void rr_udp_event(struct rr_worker *w, struct rr_flow *f, uint32_t events);
void rr_udp_read(struct rr_worker *w, struct rr_flow *f, int flags);
bool rr_udp_send(struct rr_worker *w, struct rr_flow *f, struct rr_request *r);

/*
 * rr_alone.c: a thread whose only flow has one request under way waits in recv for it: one system
 * call less a transaction than with epoll. False: it has to wait by epoll now.
 */
bool rr_alone_step(struct rr_worker *w);

/* rr_greet.c: the parameters are compared before there is traffic, where flows do not do it. */
int rr_greet(struct rr_client *client);

#endif

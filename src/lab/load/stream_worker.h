/* SPDX-License-Identifier: BSD-2-Clause */
/* stream_worker: the inside of a stream_end: its threads, and what they have of each flow. */
#ifndef LAB_LOAD_STREAM_WORKER_H
#define LAB_LOAD_STREAM_WORKER_H

#include <pthread.h>
#include <stdatomic.h>

#include <napier/counters.h>

#include "lab/clock.h"
#include "lab/histogram.h"
#include "lab/load/stream_end.h"
#include "lab/load/stream_series.h"
#include "lab/load/stream_track.h"

/* Of a group in a step. What is received: duplicates are in no other count. */
struct stream_counts {
	uint64_t messages, bytes;
	uint64_t late, late_bytes;
	uint64_t reordered, duplicated;
	uint64_t late_sends; /* sent STREAM_LATE after they should have been */
	uint64_t errors;     /* sends that the system refused */
};

/* What a thread has counted: of all its flows, or, when groups are counted apart, of one. */
struct stream_tally {
	struct stream_counts step[LOAD_SIZES_MAX];
	/* By when it was sent or received; datagrams, on both sides by when they were sent. */
	struct stream_series bytes, messages;
};

/* What a datagram begins with, in network order. */
struct stream_datagram {
	uint8_t magic;
	uint8_t step; /* STREAM_WARM: it is counted nowhere */
	uint16_t flow;
	uint32_t sequence; /* in its flow and step */
	int64_t time;	   /* ns since the steps began */
};

enum { STREAM_MAGIC = 0xd7, STREAM_WARM = 0xff, STREAM_BATCH_MAX = 64 };

#define STREAM_LATE INT64_C(100000)

/* A flow as the thread has it that sends on it ... */
struct stream_out {
	_Alignas(64) int fd;
	uint16_t flow;
	struct stream_tally *tally;
	bool broken;
	uint8_t step;	      /* of the last datagram */
	uint32_t sequence;    /* of the next one */
	uint32_t unsent;      /* of a TCP message */
	uint32_t retransmits; /* when the steps began */
};

/* ... and as the one that receives. */
struct stream_in {
	_Alignas(64) int fd;
	uint16_t flow;
	struct stream_tally *tally;
	bool ended;
	struct stream_track *track; /* of each step */
};

enum stream_phase { STREAM_IDLE, STREAM_RUN, STREAM_DRAIN, STREAM_END };

struct stream_worker {
	struct stream_end *end;
	unsigned number; /* among those that send, or receive */
	bool sends;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
	unsigned flows; /* of this client's */
	struct stream_out **out;
	struct stream_in **in;
	uint8_t *buffer;
	struct histogram *rtt;	    /* of TCP, as its sender estimates it; of the others NULL */
	uint64_t foreign;	    /* what came and was of no flow */
	int failed;		    /* negative errno: it could not begin */
	counter total, total_bytes; /* with the unmeasured ones */
	counter measured;	    /* datagrams of steps, without duplicates; of TCP all bytes */
	counter ended;		    /* TCP flows */
	counter arrivals;	    /* of anything: does anything come? */
};

struct stream_end {
	const struct stream_plan *plan;
	bool server;
	_Atomic int phase; /* enum stream_phase */
	/* Of the steps; written before `start`, which is 0 as long as there are none. */
	int64_t ends[LOAD_SIZES_MAX];
	int64_t duration;
	int64_t learned; /* when measure was called, */
	int64_t stopped; /* and send_stop: ns since start; at least 0, at most duration */
	_Atomic int64_t start;
	struct stream_out *out;
	struct stream_in *in;
	struct stream_track *track;
	struct stream_tally *tally;
	unsigned flows_there;
	uint32_t size_max, room; /* of messages, of a buffer that received ones are taken into */
	pthread_mutex_t lock;	 /* of what follows */
	pthread_cond_t change;
	unsigned run;		     /* counts clients */
	unsigned sending, receiving; /* threads at work */
	bool quit;
	unsigned workers;
	struct stream_worker worker[];
};

static inline enum stream_phase stream_phase(const struct stream_end *end)
{
	return (enum stream_phase)atomic_load_explicit(&end->phase, memory_order_acquire);
}

/* When it is: in which step, and how long since the beginning (negative before it). */
struct stream_moment {
	int64_t now, time;
	uint8_t step; /* STREAM_WARM: before the first one */
	bool over;    /* after the last one */
};

static inline void stream_moment(const struct stream_end *end, struct stream_moment *m)
{
	int64_t start = atomic_load_explicit(&end->start, memory_order_acquire);

	m->now = clock_now();
	m->time = start ? m->now - start : -1;
	m->over = false;
	if (m->time < 0) {
		m->step = STREAM_WARM;
		return;
	}
	for (m->step = 0; m->time >= end->ends[m->step]; m->step++) {
		if (m->step + 1u == end->plan->steps) {
			m->over = true;
			return;
		}
	}
}

/* Messages' size; before the first step they are as in it. */
static inline uint32_t stream_size(const struct stream_end *end, uint8_t step)
{
	return end->plan->size[step == STREAM_WARM ? 0 : step];
}

/* Until there is something else to do, but STREAM_LOOK_MS at most. */
void stream_rest(int64_t until);

/* The threads' work for one client; stream_udp.c, stream_tcp.c. */
void stream_udp_send(struct stream_worker *w);
void stream_udp_receive(struct stream_worker *w);
void stream_tcp_send(struct stream_worker *w);
void stream_tcp_receive(struct stream_worker *w);
/* Of a receiver with several flows: *epoll is for close() unless -1, also when it fails. */
int stream_receive_watch(const struct stream_worker *w, int *epoll);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's threads, and how they serve: TCP, UDP by the kernel's sockets or by an engine's. */
#ifndef LAB_LOAD_RR_SERVER_H
#define LAB_LOAD_RR_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include <napier/counters.h>

#include "lab/load/rr.h"

struct rr_connection;
struct rr_engine;

struct rr_server_worker {
	struct rr_server *server;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid;
	int64_t stall_next; /* ns of the clock; 0: it never stalls */
	/* TCP */
	int epoll;
	int listener; /* -1: none of its own */
	uint8_t *in, *out;
	pthread_mutex_t lock; /* of the list: thread 0 adds to all */
	struct rr_connection *connections;
	struct rr_connection *alone; /* it waits for this one without epoll; NULL */

	_Alignas(64) counter transactions;
	counter connected, refused, retransmits, bytes_in, bytes_out;
};

struct rr_server {
	struct load_config config;
	struct load_place place;
	int stop_event;
	_Atomic bool stop;
	_Atomic unsigned ready;
	_Atomic int failed; /* negative errno: of a thread that could not start, and err says why */
	struct error err;
	unsigned next_worker; /* thread 0's: who has the next connection */
	struct rr_engine *engine;
	struct rr_server_worker worker[];
};

enum { RR_SERVER_VECTOR = 64 };

/* In the thread, when it can answer. */
void rr_server_ready(struct rr_server_worker *w);
/* In the thread, after it has waited: sleeps while the server is meant to do nothing. */
void rr_server_stall(struct rr_server_worker *w);
/*
 * Works on a datagram of n bytes, which has room for an answer, of *size bytes. False: it is
 * neither a request nor a hello.
 */
bool rr_server_request(struct rr_server_worker *w, void *data, size_t n, uint32_t *size);
/* Uses so much CPU time. */
void rr_server_work(int64_t ns);

/* In the thread: until server->stop. 0, or a negative errno and server->err says why. */
int rr_server_tcp(struct rr_server_worker *w);
/* Control, once all threads have ended: thread 0 gives connections to all. */
void rr_server_tcp_close(struct rr_server_worker *w);
int rr_server_udp(struct rr_server_worker *w);
int rr_server_udp_engine(struct rr_server_worker *w);

/* Control: an engine with the place's port and a socket bound to the place's UDP port. */
int rr_engine_open(struct rr_server *server, struct error *err);
void rr_engine_close(struct rr_server *server);
void rr_engine_counts(const struct rr_server *server, uint64_t *polls, uint64_t *packets);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two kinds of udp_server share: what their threads and their ends are. */
#ifndef LAB_PARTS_UDP_SERVE_H
#define LAB_PARTS_UDP_SERVE_H

#include "lab/engine_socket.h"
#include "lab/parts/udp_server.h"

enum {
	UDP_SERVER_LOOK_MS = 50,      /* it looks so often whether it should stop */
	UDP_SERVER_BUSY_USECS = 1000, /* both kinds of socket look so long before they sleep */
	UDP_SERVER_VECTOR = 64,
	UDP_SERVER_SIZE = 2048,
};

struct udp_server {
	struct udp_server_config config;
	pthread_t thread;
	bool started;
	pid_t tid;
	_Atomic int state; /* 0: not yet, 1: works, negative: errno, and err says why */
	struct error err;
	_Atomic bool stop;
	_Atomic uint64_t count;
	struct engine_socket *engine; /* NULL: the kernel's socket */
};

static inline void udp_server_count(struct udp_server *server, unsigned n)
{
	atomic_fetch_add_explicit(&server->count, n, memory_order_relaxed);
}

/* In the server's thread: until server->stop. It sets state 1 when it receives. */
int udp_kernel_serve(struct udp_server *server);
int udp_engine_serve(struct udp_server *server);

/* Control: an engine with the near interface and a socket. */
int udp_engine_open(struct udp_server *server, struct error *err);
int udp_engine_close(struct udp_server *server, struct error *err);
void udp_engine_counts(const struct udp_server *server, struct udp_server_counts *out);

#endif

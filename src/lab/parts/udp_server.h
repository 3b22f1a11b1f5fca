/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_server: a program on the near host that takes UDP datagrams from a socket, the kernel's or
 * the engine's, in one thread; and sends them back, or counts them only.
 *
 * With the engine's it runs an engine in this process, which has the near interface for as long.
 * Controlled by one thread.
 */
#ifndef LAB_PARTS_UDP_SERVER_H
#define LAB_PARTS_UDP_SERVER_H

#include <stdatomic.h>
#include <pthread.h>

#include <napier/napi.h>

#include "lab/ends.h"

enum udp_server_work { UDP_COUNT, UDP_ECHO };

enum udp_server_kind {
	UDP_KERNEL_SLEEPS,    /* until there is something */
	UDP_KERNEL_SPINS,     /* asks the socket again and again */
	UDP_KERNEL_BUSY_POLL, /* SO_BUSY_POLL */
	UDP_KERNEL_PREFER,    /* and SO_PREFER_BUSY_POLL, with interrupts deferred */
	UDP_ENGINE,
	UDP_SERVER_KINDS
};

struct udp_server_config {
	const struct ends *ends;
	enum udp_server_work work;
	enum udp_server_kind kind;
	enum poller poller; /* the engine's; of app the program's thread polls */
	uint16_t port;
	int cpu;	/* of the program's thread */
	int engine_cpu; /* of the engine's own threads */
};

struct udp_server_counts {
	uint64_t datagrams; /* that the program had */
	/* The engine's: polls that found something, and packets that they found. */
	uint64_t polls, packets;
};

struct udp_server;

/* Receives when it returns. Nothing is left when it fails. */
int udp_server_start(const struct udp_server_config *config, struct udp_server **out,
		     struct error *err);
void udp_server_read(const struct udp_server *server, struct udp_server_counts *out);
/* The program's. */
pid_t udp_server_thread(const struct udp_server *server);
/* An error is the engine's, of packets that it lost. The near interface is as before. */
int udp_server_stop(struct udp_server *server, struct error *err);

#endif

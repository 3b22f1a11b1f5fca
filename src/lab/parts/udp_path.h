/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_path: a udp_server, and how the kernel treats the near interface for it.
 */
#ifndef LAB_PARTS_UDP_PATH_H
#define LAB_PARTS_UDP_PATH_H

#include "lab/parts/charge.h"
#include "lab/parts/udp_server.h"

enum udp_path_softirq {
	UDP_SOFTIRQ_HERE,     /* where packets are sent */
	UDP_SOFTIRQ_STEERED,  /* on the server's CPU, by RPS */
	UDP_SOFTIRQ_THREADED, /* in a thread of the kernel's on the server's CPU */
};

struct udp_path {
	const char *name; /* "kernel, sleeps" */
	enum udp_server_kind kind;
	enum udp_path_softirq softirq;
	enum poller poller; /* the engine's */
};

struct udp_path_run {
	const struct udp_path *path;
	struct udp_server_config config;
	struct udp_server *server;
};

/* -EOPNOTSUPP: it is not to be had here, and err says why. Nothing is left when it fails. */
int udp_path_start(const struct udp_path *path, const struct udp_server_config *config,
		   struct udp_path_run *out, struct error *err);
/* An error is of the engine's end. Then the near interface is as before. */
int udp_path_stop(struct udp_path_run *run, struct error *err);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topology: the namespaces, links and addresses of an experiment, made for it or given.
 *
 *   ends      client 10.78.0.1 ─────────────── server 10.78.0.2
 *   middle    client 10.78.0.1 ─── a [dut] b ─── server 10.78.0.2      (bridge)
 *             client 10.78.0.1 ─── .254 [dut] .254 ─── server 10.78.1.2 (router)
 *   -H HOST   client (here) ─── network ─── server (peer)
 */
#ifndef LAB_RUN_TOPOLOGY_H
#define LAB_RUN_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "lab/netlab.h"
#include "lab/spec/spec.h"

struct topology_end {
	int netns; /* descriptor; -1: the caller's */
	char netns_name[64];
	char interface[16], address[LOAD_ADDRESS_MAX];
	unsigned prefix;
	/* The rest is topology's. */
	unsigned ns; /* of the lab, where it was made */
	int ioctl;   /* a socket in the namespace */
	bool gro;    /* of given ones: as it was */
};

struct topology {
	const struct spec *spec;
	struct netlab *lab; /* NULL: nothing was made */
	bool remote;	    /* the server is another host */
	struct topology_end client, server;
	unsigned duts; /* interfaces under test: 1 (ends) or 2 (middle); 0: they are the peer's */
	struct topology_end dut[2];
	enum spec_handler arranged; /* made ones, middle: for a bridge or a router */
};

/* host NULL: no -H. -EPERM, -EEXIST (name or address in use), -ENODEV name the thing. */
int topology_open(const struct spec *spec, const char *host, const char *rundir,
		  struct topology *out, struct error *err);
/* Given interfaces are as they were. */
void topology_close(struct topology *topology);

/*
 * Before a system starts: addresses for what it does with packets, as many queues, offloads as at
 * first (a system that was before may have left others). -EOPNOTSUPP: given interfaces are
 * otherwise, and err says what would change that.
 */
int topology_arrange(struct topology *topology, enum spec_handler handler, unsigned queues,
		     struct error *err);

/* For the report: who is connected with whom, and `ip` commands that would make the same. */
json_t *topology_json(const struct topology *topology);

/* Of topology's own files. */
int topology_given(struct topology *topology, const char *host, struct error *err);
int topology_ethtool(const struct topology_end *end, uint32_t command, uint32_t *value);

#endif

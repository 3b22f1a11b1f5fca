/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forwarder: what carries frames between two interfaces of one namespace, and is compared: the
 * kernel's bridge, polled in softirq or in threads of its own, or napier's with one of its pollers.
 */
#ifndef LAB_PARTS_FORWARDER_H
#define LAB_PARTS_FORWARDER_H

#include "lab/engine_child.h"
#include "lab/netlab.h"

#include <napier/napi.h>

enum forwarder_kind {
	FORWARDER_NONE, /* nothing: for a cable that goes past the site */
	FORWARDER_KERNEL,
	FORWARDER_KERNEL_THREADED,
	FORWARDER_NAPIER_SOFTIRQ,
	FORWARDER_NAPIER_THREAD,
	FORWARDER_NAPIER_WORKQUEUE,
	FORWARDER_NAPIER_BUSY_POLL,
	FORWARDER_NAPIER_TX, /* thread, and TX NAPIs with threads of their own */
	FORWARDER_NAPIER_AUTO,
	FORWARDER_KINDS
};

/* "kernel bridge, threaded NAPI" */
const char *forwarder_name(enum forwarder_kind kind);
/* For JSON: "kernel-threaded" */
const char *forwarder_key(enum forwarder_kind kind);

/* Where it works; constant while it does. */
struct forwarder_site {
	struct netlab *lab;
	unsigned ns;
	char interface[2][16]; /* names that nobody else on the machine has (threads bear them) */
	const char *napier;    /* path of the program */
	const char *port;      /* kind of napier's ports: "xdp", "packet" */
	const char *rundir;    /* napier's run directories are made there */
	struct cpuset cpus;    /* of its threads; empty: any */
	/* The kernel's softirq works there too: by RPS on the first interface, on the first CPU. */
	bool steered;
	const char *settings;  /* of napier's engine, as in its configuration file; NULL: none */
	struct cpuset tx_cpus; /* of its TX NAPIs' threads; empty: the same */
};

struct forwarder {
	const struct forwarder_site *site;
	enum forwarder_kind kind;
	struct engine_child engine; /* napier's */
};

/*
 * Returns when frames pass. -EOPNOTSUPP: the kernel's NAPI cannot be threaded here, and err says
 * why. Nothing is left when it fails.
 */
int forwarder_start(const struct forwarder_site *site, enum forwarder_kind kind,
		    struct forwarder *out, struct error *err);
/* CPU time of the threads that are its own, ns; none for a bridge in softirq. */
int64_t forwarder_cpu(const struct forwarder *f);
/* Its process; 0: none. */
pid_t forwarder_pid(const struct forwarder *f);
/*
 * What napier's NAPIs have received, and in how many polls that found something. -EOPNOTSUPP: not
 * napier.
 */
int forwarder_polls(const struct forwarder *f, uint64_t *packets, uint64_t *polls);
/* An error is of napier's end: it failed, or lost packets. */
int forwarder_stop(struct forwarder *f, struct error *err);

#endif

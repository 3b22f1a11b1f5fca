/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * site: where benchmarks forward frames, and who forwards them.
 *
 *      gen ns            switch ns                  sink ns
 *      out ─────────── a [forwarder] b ─────────── in 10.78.0.2
 *      cable ───────────────────────────────────── cable
 */
#ifndef LAB_PARTS_SITE_H
#define LAB_PARTS_SITE_H

#include "lab/parts/forwarder.h"
#include "lab/parts/frames.h"

#define SITE_SINK_ADDRESS 0x0a4e0002u /* 10.78.0.2 */
#define SITE_SOURCE_ADDRESS 0x0a4e0001u

/* Locally administered; the sink's interface has it. */
extern const uint8_t site_source[6], site_sink[6];

struct site {
	struct netlab *lab;
	unsigned generator, sink; /* namespaces */
	struct forwarder_site at;
};

/* The program's path, and where run directories are made. -EPERM: not without root; err says why.
 */
int site_open(const char *napier, const char *rundir, struct site *site, struct error *err);
void site_close(struct site *site);

/* A forwarder and how it is set. */
struct contestant {
	enum forwarder_kind kind;
	const char *name;     /* "softirq" */
	const char *how;      /* "restart-limit"; "" */
	const char *settings; /* NULL: none */
	bool steered;
	int64_t settle; /* ns under load before it is measured: poller auto has to choose */
};

#define CONTESTANT_AUTO                                                                            \
	{                                                                                          \
		.kind = FORWARDER_NAPIER_AUTO, .name = "auto", .how = "",                          \
		.settle = 3 * NSEC_PER_SEC                                                         \
	}

/*
 * Starts it on these CPUs, and teaches the bridge where the sink is. -EOPNOTSUPP: it is not to be
 * had here, and err says why.
 */
int site_start(struct site *site, const struct contestant *who, const struct cpuset *cpus,
	       struct forwarder *f, struct error *err);
/* One frame from the sink's address, so that bridges know where it is. */
void site_teach(struct site *site);
/* And what live frames need of the interfaces is as before. */
int site_stop(struct site *site, struct forwarder *f, struct error *err);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busy-poll: a runner per engine CPU, busy/N, that polls the NAPIs of that CPU in turn and never
 * waits while it has one. Their interrupts stay masked. One poll each in turn is what makes it
 * fair.
 *
 * With idle_suspend, when none of them has had a packet for that long, all are completed, so their
 * interrupts are on again, and the runner waits; the first packet brings its NAPI back. They rest
 * together because nothing is saved by resting beside one that spins: the CPU is used anyway, and
 * an interrupt is seen between two steps only. One without idle_suspend keeps the others up.
 */
#ifndef POLLER_BUSY_POLL_H
#define POLLER_BUSY_POLL_H

#include <core/engine.h>
#include <poller/list.h>

struct busy {
	struct engine *engine;
	_Atomic uint32_t users; /* NAPIs that have it as their poller; control writes */
	struct runner *runner;
	struct context *context;
	struct napi_list list; /* tokens held */
	uint32_t held;	       /* so many, after the last round */
	int64_t idle_since;    /* the last packet of any of them, or when the first came back */
	_Alignas(64) struct napi_inbox inbox;
};

#endif

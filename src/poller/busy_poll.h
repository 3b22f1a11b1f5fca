/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busy-poll: a runner per engine CPU, busy/N, that polls the NAPIs of that CPU in turn and never
 * waits while it has one. Their interrupts stay masked. One poll each in turn is what makes it
 * fair.
 *
 * With idle_suspend, a NAPI that has had no packet for that long is completed, so its interrupts
 * are on again; the first packet brings it back, and without any left the runner waits.
 */
#ifndef POLLER_BUSY_POLL_H
#define POLLER_BUSY_POLL_H

#include <core/engine.h>
#include <poller/list.h>

struct busy {
	struct engine *engine;
	uint32_t users; /* NAPIs; control only */
	struct runner *runner;
	struct context *context;
	struct napi_list list; /* tokens held */
	_Alignas(64) struct napi_inbox inbox;
};

#endif

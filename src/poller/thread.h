/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef POLLER_THREAD_H
#define POLLER_THREAD_H

#include <core/napi.h>

struct poller_thread {
	struct napi *napi;
	struct runner *runner;
	struct context *context;
	bool holds;	      /* the token; only its own step looks */
	_Atomic bool granted; /* the token is here, to be picked up by the step */
	_Atomic bool yields;  /* of a class whose equals run only when it lets them */
};

/*
 * Control context. Places the NAPI's thread if it has one: what is set in `settings`, an empty CPU
 * set meaning the engine's; the rest stays as it is, also if it was changed from outside. What
 * runner_place says.
 */
int poller_thread_place(struct napi *napi, const struct queue_settings *settings);

#endif

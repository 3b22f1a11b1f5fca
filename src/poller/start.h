/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef POLLER_START_H
#define POLLER_START_H

#include <core/engine.h>

/*
 * Control context. As runner_start, with the class and level of `asked`, and on its CPUs if
 * config->placement names none. Where that class or niceness is not permitted the runner is started
 * as an ordinary one: it works then, with an ordinary one's latency. That is logged once, and
 * *asked changed to it, so that the next runner of the kind does not ask for what is refused.
 */
int poller_runner_start(struct engine *engine, struct runner_config *config,
			struct placement *asked, struct runner **out, struct error *err);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef POLLER_START_H
#define POLLER_START_H

#include <core/engine.h>

/*
 * Control context. As runner_start; where the class or niceness is not permitted the runner is
 * started as an ordinary one, and that is logged: it works then, with an ordinary one's latency.
 */
int poller_runner_start(struct engine *engine, const struct runner_config *config,
			struct runner **out, struct error *err);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* pollers: the benchmark of the pollers, part by part. */
#ifndef LAB_PARTS_POLLERS_H
#define LAB_PARTS_POLLERS_H

#include "lab/parts/bench.h"
#include "lab/parts/events.h"

/* In order; NULL after the last. */
extern const struct bench_part *const pollers_parts[];
extern const struct bench_part pollers_cost, pollers_flood, pollers_forward, pollers_scale,
	pollers_wake, pollers_workers;

/* An engine on the polling CPU, whose warnings become notes of the figures. */
struct events_config pollers_events(const struct bench_plan *plan, struct figures *f,
				    enum poller poller, unsigned napis);

#endif

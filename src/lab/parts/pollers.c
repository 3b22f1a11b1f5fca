/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/parts/pollers.h"

const struct bench_part *const pollers_parts[] = {
	&pollers_cost,	&pollers_wake,	  &pollers_scale, &pollers_forward,
	&pollers_flood, &pollers_workers, NULL,
};

static void warning_note(void *arg, enum log_level level, const char *line)
{
	if (level != LEVEL_INFO)
		figures_note(arg, "%.300s", line);
}

struct events_config pollers_events(const struct bench_plan *plan, struct figures *f,
				    enum poller poller, unsigned napis)
{
	struct events_config config = {
		.poller = poller,
		.napis = napis,
		.log = warning_note,
		.log_arg = f,
	};

	cpuset_add(&config.cpus, (unsigned)plan->cpu);
	return config;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include <napier/engine.h>

#include "lab/pollers.h"

const struct pollers_part *const pollers_parts[] = {
	&pollers_cost,	&pollers_wake,	  &pollers_scale, &pollers_forward,
	&pollers_flood, &pollers_workers, NULL,
};

void pollers_cpus(struct pollers_plan *plan)
{
	cpu_set_t set;
	int found[2] = {0, 0}, n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
		if (CPU_ISSET(cpu, &set))
			found[n++] = cpu;
	}
	plan->cpu = n > 1 ? found[1] : found[0];
	plan->apart = n > 1 ? found[0] : -1;
}

void pollers_progress(const struct pollers_plan *plan, unsigned done, unsigned total,
		      const char *format, ...)
{
	char text[96];
	va_list arguments;

	if (!plan->progress)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	plan->progress(plan->arg, text, done, total);
}

static void warning_note(void *arg, enum log_level level, const char *line)
{
	if (level != LEVEL_INFO)
		figures_note(arg, "%.300s", line);
}

struct events_config pollers_events(const struct pollers_plan *plan, struct figures *f,
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "lab/clock.h"
#include "lab/parts/bench.h"

void bench_cpus(struct bench_plan *plan)
{
	cpu_set_t set;
	int found[3] = {0}, n = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 3; cpu++) {
		if (CPU_ISSET(cpu, &set))
			found[n++] = cpu;
	}
	plan->cpu = n > 1 ? found[1] : found[0];
	plan->apart = n > 1 ? found[0] : -1;
	plan->spare = n > 2 ? found[2] : -1;
}

bool bench_await(uint64_t (*count)(void *of), void *of, uint64_t more_than)
{
	int64_t limit = clock_now() + BENCH_PATIENCE;

	while (count(of) <= more_than) {
		if (clock_now() > limit)
			return false;
		clock_sleep(NSEC_PER_MSEC);
	}
	return true;
}

void bench_progress(const struct bench_plan *plan, unsigned done, unsigned total,
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

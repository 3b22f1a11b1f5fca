/* SPDX-License-Identifier: BSD-2-Clause */
/* Somebody else's timer, every millisecond: how often it came, and how late at most. */
#ifndef TIMER_H
#define TIMER_H

#include "../unit/test.h"

#include <napier/machine.h>

struct timer {
	struct machine *machine;
	struct runner *runner;
	int64_t due, late;
	unsigned fired;
};

static inline struct step timer_step(void *arg)
{
	struct timer *timer = arg;
	int64_t now = machine_now(timer->machine);

	if (now >= timer->due) {
		if (now - timer->due > timer->late)
			timer->late = now - timer->due;
		timer->fired++;
		timer->due = now + NSEC_PER_MSEC;
	}
	return STEP_UNTIL(timer->due);
}

/* Ended by runner_stop(timer->runner). */
static inline void timer_start(struct timer *timer, struct machine *machine,
			       struct placement placement)
{
	struct runner_config config = {
		.name = "timer", .step = timer_step, .arg = timer, .placement = placement};

	*timer = (struct timer){.machine = machine, .due = machine_now(machine)};
	assert_int_equal(runner_start(machine, &config, &timer->runner, NULL), 0);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults: what goes wrong on purpose. Their draws are their own, so that with none of them a seed
 * gives the run that it gave before.
 */
#include <assert.h>

#include "machine/virtual.h"

static const char *const names[VIRTUAL_FAULTS] = {
	[VIRTUAL_IRQ_LOST] = "irq-lost",       [VIRTUAL_IRQ_LATE] = "irq-late",
	[VIRTUAL_IRQ_TWICE] = "irq-twice",     [VIRTUAL_TIMER_LATE] = "timer-late",
	[VIRTUAL_START_FAILS] = "start-fails",
};

const char *machine_virtual_fault_name(enum virtual_fault fault)
{
	return (unsigned)fault < VIRTUAL_FAULTS ? names[fault] : "unknown";
}

void machine_virtual_faults_set(struct machine *m, const struct virtual_faults *faults)
{
	struct virtual *v = (struct virtual *)m;

	v->faults = faults ? *faults : (struct virtual_faults){0};
	assert(v->faults.late_ns > 0 ||
	       !(v->faults.chance[VIRTUAL_IRQ_LATE] | v->faults.chance[VIRTUAL_IRQ_TWICE] |
		 v->faults.chance[VIRTUAL_TIMER_LATE]));
	v->fault_random.state = v->faults.seed;
}

static bool fault_drawn(struct virtual *v, enum virtual_fault fault)
{
	uint32_t chance = v->faults.chance[fault];

	if (fault == VIRTUAL_START_FAILS)
		return v->faults.start_fails && !--v->faults.start_fails;
	return chance && random_below(&v->fault_random, VIRTUAL_CHANCE_ONE) < chance;
}

bool virtual_fault(struct virtual *v, enum virtual_fault fault, const struct virtual_runner *r)
{
	if (!fault_drawn(v, fault))
		return false;
	v->stats.faults[fault]++;
	virtual_trace(v, TRACE_FAULT, NULL, r, fault, 0);
	return true;
}

int64_t virtual_fault_late(struct virtual *v)
{
	return 1 + (int64_t)random_below(&v->fault_random, (uint64_t)v->faults.late_ns);
}

int64_t virtual_fault_timer(struct virtual *v, const struct virtual_runner *r, int64_t when)
{
	return virtual_fault(v, VIRTUAL_TIMER_LATE, r) ? when + virtual_fault_late(v) : when;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the scenario, among those of the machine: as a hash, and on wish as a line of text. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <machine/virtual.h>

#include <sim/sim.h>

static const char *const fault_names[SIM_FAULTS - VIRTUAL_FAULTS] = {
	[SIM_RX_SHORT - VIRTUAL_FAULTS] = "rx-short",
	[SIM_RING_FULL - VIRTUAL_FAULTS] = "ring-full",
	[SIM_TX_FULL - VIRTUAL_FAULTS] = "tx-full",
	[SIM_POOL_EMPTY - VIRTUAL_FAULTS] = "pool-empty",
	[SIM_STALL - VIRTUAL_FAULTS] = "stall",
	[SIM_NO_MEMORY - VIRTUAL_FAULTS] = "no-memory",
	[SIM_LINK_DOWN - VIRTUAL_FAULTS] = "link-down",
};

const char *sim_fault_name(unsigned fault)
{
	if (fault < VIRTUAL_FAULTS)
		return machine_virtual_fault_name((enum virtual_fault)fault);
	return fault < SIM_FAULTS ? fault_names[fault - VIRTUAL_FAULTS] : "unknown";
}

void sim_mix(struct sim *sim, uint64_t value)
{
	sim->result->hash = random_mix(sim->result->hash ^ value);
}

/* The machine's form: "     12.345us cpu0 poll     p0/1             got 12". */
void sim_note(struct sim *sim, const char *kind, const char *name, const char *format, ...)
{
	int64_t now = machine_now(sim->machine);
	char line[256], cpu[8] = "-";
	va_list arguments;
	int used;

	sim_mix(sim, (uint64_t)now);
	if (!sim->options->trace)
		return;
	/* Not by runner_observe(), which accounts: a run with text has to be the same run. */
	if (runner_current())
		snprintf(cpu, sizeof(cpu), "cpu%u",
			 ((struct virtual_runner *)runner_current())->cpu->index);
	used = snprintf(line, sizeof(line), "%9" PRId64 ".%03dus %-4s %-8s %-*s ", now / 1000,
			(int)(now % 1000), cpu, kind, RUNNER_NAME_MAX, name);
	va_start(arguments, format);
	vsnprintf(line + used, sizeof(line) - (size_t)used, format, arguments);
	va_end(arguments);
	sim->options->trace(sim->options->trace_arg, line);
}

void sim_fault(struct sim *sim, enum sim_fault fault, const char *name)
{
	sim->result->faults[fault]++;
	sim_mix(sim, fault);
	sim_note(sim, "fault", name, "%s", sim_fault_name(fault));
}

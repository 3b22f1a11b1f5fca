/* SPDX-License-Identifier: BSD-2-Clause */
/* Others who want the CPUs. */
#include <stdio.h>

#include <sim/sim.h>

#define SLICE (20 * NSEC_PER_USEC)

static struct step hog_step(void *arg)
{
	struct sim_hog *hog = arg;
	struct machine *machine = hog->sim->machine;

	if (hog->stopped)
		return STEP(STEP_WAIT);
	/* In a step of its own: what ran before has taken longer than it was charged for. */
	if (hog->plan->rest_ns && hog->used >= hog->plan->run_ns) {
		hog->used = 0;
		return STEP_UNTIL(machine_now(machine) + hog->plan->rest_ns);
	}
	machine_charge(machine, SLICE);
	hog->used += SLICE;
	return STEP(STEP_AGAIN);
}

void sim_hogs_start(struct sim *sim)
{
	for (unsigned i = 0; i < sim->plan.hogs; i++) {
		struct sim_hog *hog = &sim->hog[i];
		struct runner_config config = {.step = hog_step, .arg = hog};

		hog->sim = sim;
		hog->plan = &sim->plan.hog[i];
		config.placement = hog->plan->placement;
		snprintf(config.name, sizeof(config.name), "hog/%u", i % SIM_HOGS);
		if (runner_start(sim->machine, &config, &hog->runner, NULL))
			sim_fail(sim, "a hog cannot be started");
	}
}

void sim_hogs_calm(struct sim *sim)
{
	for (unsigned i = 0; i < sim->plan.hogs; i++)
		if (sim->hog[i].plan->placement.class == RUNNER_FIFO)
			sim->hog[i].stopped = true;
}

void sim_hogs_stop(struct sim *sim)
{
	for (unsigned i = 0; i < sim->plan.hogs; i++) {
		if (sim->hog[i].runner)
			runner_stop(sim->hog[i].runner);
		sim->hog[i].runner = NULL;
	}
}

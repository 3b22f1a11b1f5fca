/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applications that poll: each takes a NAPI whose poller is app, looks for packets, works on what
 * there was, and comes back; or stays away for a while, which is all that one that has died does.
 * A whole look is one step, or each poll of it is: then it is preempted, or stalls, token in hand.
 */
#include <errno.h>
#include <string.h>

#include <core/busy_loop.h>
#include <core/engine_queue.h>

#include <sim/sim.h>

/* One that an application polls, or any: then it is told that it may not. */
static struct napi *napi_any(struct sim_poll_app *app)
{
	bool any = !random_below(&app->random, 8);
	struct napi_walk walk = {0};
	struct napi *napi, *chosen = NULL;
	uint64_t n = 0;

	while ((napi = napi_walk_next(app->sim->engine, &walk)))
		if ((any || napi_poller(napi) == POLLER_APP) && !random_below(&app->random, ++n))
			chosen = napi;
	return chosen;
}

static struct step away(struct sim_poll_app *app)
{
	int64_t ns = app->plan->away_ns;

	/* Now and then for long: others do its work meanwhile. */
	if (!random_below(&app->random, 16))
		ns *= 20;
	return STEP_UNTIL(machine_now(app->sim->machine) + 1 +
			  (int64_t)random_below(&app->random, (uint64_t)ns));
}

static struct step looked(struct sim_poll_app *app, int rc)
{
	struct sim *sim = app->sim;

	if (rc < 0 && rc != -EAGAIN && rc != -EOPNOTSUPP)
		sim_fail(sim, "I9: napi_busy_loop says %s", strerror(-rc));
	sim_note(sim, "app", app->name, "%s %d", "looked", rc);
	if (rc <= 0 || random_below(&app->random, 4) == 0)
		return away(app);
	machine_charge(sim->machine, app->plan->service_ns * rc);
	return STEP(STEP_YIELD);
}

static struct step poll_step(void *arg)
{
	struct sim_poll_app *app = arg;
	struct sim *sim = app->sim;
	bool more;

	if (!app->looking) {
		struct napi *napi = app->stopped ? NULL : napi_any(app);

		if (app->stopped)
			return STEP(STEP_WAIT);
		if (!napi)
			return away(app);
		if (app->plan->whole)
			return looked(app, napi_busy_loop(napi, app->context, &app->plan->how, NULL,
							  NULL));
		busy_loop_begin(&app->loop, napi, app->context, &app->plan->how, NULL, NULL);
		app->looking = true;
	}
	more = busy_loop_turn(&app->loop);
	if (app->loop.holds && sim_chance(sim, sim->plan.stall)) {
		machine_charge(sim->machine, sim->plan.stall_ns);
		sim_fault(sim, SIM_STALL, app->name);
	}
	/* Without the token it may be gone by the next step. */
	if (more && app->loop.holds && !app->stopped)
		return STEP(STEP_YIELD);
	app->looking = false;
	return looked(app, busy_loop_end(&app->loop));
}

void sim_poll_apps_start(struct sim *sim)
{
	for (unsigned i = 0; i < sim->plan.poll_apps; i++) {
		struct sim_poll_app *app = &sim->poll_app[i];
		struct runner_config config = {.name = "poll-app", .step = poll_step, .arg = app};

		app->sim = sim;
		app->plan = &sim->plan.poll_app[i];
		app->random = sim_stream(sim->plan.seed, STREAM_POLL_APP + i);
		config.name[4] = app->name[0] = (char)('a' + i);
		if (engine_context_open(sim->engine, &app->context) ||
		    runner_start(sim->machine, &config, &app->runner, NULL))
			sim_fail(sim, "no memory for the scenario itself");
	}
}

bool sim_poll_app_is(const struct sim *sim, const struct runner *runner)
{
	for (unsigned i = 0; i < sim->plan.poll_apps; i++)
		if (sim->poll_app[i].runner == runner)
			return true;
	return false;
}

static bool none_looks(void *arg)
{
	const struct sim *sim = arg;

	for (unsigned i = 0; i < sim->plan.poll_apps; i++)
		if (sim->poll_app[i].looking)
			return false;
	return true;
}

void sim_poll_apps_stop(struct sim *sim)
{
	for (unsigned i = 0; i < sim->plan.poll_apps; i++)
		sim->poll_app[i].stopped = true;
	if (machine_wait(sim->machine, none_looks, sim, machine_now(sim->machine) + SIM_BOUND))
		sim_fail(sim, "I5: an application's look does not end");
	for (unsigned i = 0; i < sim->plan.poll_apps; i++) {
		struct sim_poll_app *app = &sim->poll_app[i];

		if (!app->runner)
			continue;
		runner_stop(app->runner);
		sim->transmitted_closed += counter_read(&app->context->own.transmitted);
		engine_context_close(app->context);
		app->runner = NULL;
	}
}

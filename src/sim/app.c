/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application with a context of its own, which sends by the first port: into rings that NAPIs
 * send into as well, and with its own kick.
 */
#include <sim/sim.h>

static void app_send(struct sim_app *app)
{
	struct sim *sim = app->sim;
	struct sim_flow *flow = &sim->flow[SIM_APP];
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = 1 + (uint32_t)random_below(&app->random, 8);

	n = packet_alloc(&app->context->cache, v, n);
	for (uint32_t i = 0; i < n; i++) {
		struct sim_arrival a = {.flow = SIM_APP, .number = flow->number++};

		sim_flow_write(sim, &a, v[i]);
	}
	if (n)
		port_transmit(app->context, sim->port[0].port, v, n);
	context_kick(app->context);
}

static struct step app_step(void *arg)
{
	struct sim_app *app = arg;
	struct sim *sim = app->sim;

	if (!sim->traffic)
		return STEP(STEP_WAIT);
	if (!sim->plan.fifo || machine_now(sim->machine) <= sim->patience)
		app_send(app);
	return STEP_UNTIL(machine_now(sim->machine) +
			  (int64_t)random_below(&app->random, 2 * (uint64_t)sim->plan.app_ns));
}

/* Its port is there and stays. */
void sim_app_start(struct sim *sim)
{
	struct runner_config config = {.name = "app", .step = app_step, .arg = &sim->app};

	if (!sim->plan.app_ns || !sim->port[0].port)
		return;
	sim->app.sim = sim;
	sim->app.random = sim_stream(sim->plan.seed, STREAM_APP);
	if (engine_context_open(sim->engine, &sim->app.context) ||
	    runner_start(sim->machine, &config, &sim->app.runner, NULL))
		sim_fail(sim, "no memory for the scenario itself");
}

void sim_app_stop(struct sim *sim)
{
	if (!sim->app.context)
		return;
	runner_stop(sim->app.runner);
	sim->transmitted_closed += counter_read(&sim->app.context->own.transmitted);
	engine_context_close(sim->app.context);
	sim->app.context = NULL;
}

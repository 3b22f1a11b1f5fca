/* SPDX-License-Identifier: BSD-2-Clause */
/* One scenario, from beginning to end. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <core/backlog.h>
#include <core/engine_queue.h>
#include <core/gro.h>
#include <machine/current.h>

#include <sim/sim.h>

void sim_fail(struct sim *sim, const char *format, ...)
{
	struct sim_result *result = sim->result;
	va_list arguments;

	result->failed = true;
	va_start(arguments, format);
	vsnprintf(result->failure, sizeof(result->failure), format, arguments);
	va_end(arguments);
	if (sim->machine)
		sim_note(sim, "FAILED", "", "%s", result->failure);
	longjmp(sim->over, 1);
}

static void must(struct sim *sim, int rc, const struct error *err)
{
	if (rc)
		sim_fail(sim, "the scenario cannot be set up: %s", err->text);
}

static void sim_begin(struct sim *sim)
{
	struct scenario *plan = &sim->plan;
	struct virtual_config machine = plan->machine;
	struct engine_config engine = plan->engine;
	struct error err = {0};

	machine.trace = sim->options->trace;
	machine.trace_arg = sim->options->trace_arg;
	machine.watch = sim_check_event;
	machine.watch_arg = sim;
	if (machine_virtual_create(&machine, &sim->machine))
		sim_fail(sim, "no virtual machine");
	engine.machine = sim->machine;
	must(sim, engine_create(&engine, &sim->engine, &err), &err);
	sim->frame = calloc(sim->engine->pool->frames, sizeof(*sim->frame));
	sim->loot = calloc(sim->engine->pool->frames, sizeof(struct packet *));
	if (!sim->frame || !sim->loot || engine_context_open(sim->engine, &sim->thief))
		sim_fail(sim, "no memory for the scenario itself");
	sim_handlers_create(sim);
	for (unsigned i = 0; i < SIM_NUMBERED; i++)
		sim_flow_init(sim, i);
	for (unsigned i = 0; i < plan->ports; i++) {
		sim_port_init(sim, i);
		for (unsigned k = 0; k < SIM_QUEUES; k++) {
			sim->port[i].asked[k].settings.idle_suspend_usecs =
				engine.idle_suspend_usecs;
			sim->port[i].tx_asked[k] = sim->port[i].asked[k];
		}
	}
	for (unsigned i = 0; i < SIM_CPUS; i++)
		sim->backlog[i].settings.idle_suspend_usecs = engine.idle_suspend_usecs;
	sim->weight_default = engine.weight;
	sim->poller_default = engine.poller;
	sim->patience = TIME_NEVER;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void sim_wait(struct sim *sim, int64_t ns)
{
	machine_wait(sim->machine, never, NULL, machine_now(sim->machine) + ns);
}

/* Everything at once, and faults: what always holds has to hold. */
static void phase_safety(struct sim *sim)
{
	struct scenario *plan = &sim->plan;

	sim_note(sim, "phase", "safety", "%u operations", plan->operations);
	for (unsigned i = 0; i < plan->ports; i++)
		sim_control_port_add(sim, &sim->port[i]);
	sim->faults = !sim->options->no_faults;
	if (sim->faults)
		machine_virtual_faults_set(sim->machine, &plan->faults);
	sim_hogs_start(sim);
	sim_app_start(sim);
	sim_poll_apps_start(sim);
	sim->traffic = true;
	for (unsigned i = 0; i < plan->flows; i++)
		sim_flow_begin(&sim->flow[i]);
	for (unsigned i = 0; i < plan->operations; i++) {
		sim_wait(sim, (int64_t)random_below(&sim->control, (uint64_t)plan->operation_ns));
		sim_control_operate(sim);
	}
}

static bool drained(struct sim *sim, bool lost_too)
{
	const struct backlogs *backlogs = sim->engine->backlogs;

	for (uint32_t i = 0; backlogs && i < backlogs->n; i++)
		if (backlogs->backlog[i].put != backlogs->backlog[i].taken)
			return false;
	for (unsigned i = 0; i < sim->plan.ports; i++)
		for (unsigned k = 0; k < SIM_QUEUES; k++) {
			const struct sim_queue *q = &sim->port[i].queue[k];

			if (q->queue && !sim_queue_drained(q) && (lost_too || !q->raise_lost))
				return false;
			if (q->queue && gro_held(q->queue->napi->gro))
				return false;
		}
	return true;
}

static bool drained_owed(void *arg)
{
	return drained(arg, false);
}

static bool drained_all(void *arg)
{
	return drained(arg, true);
}

static void must_drain(struct sim *sim, bool (*done)(void *arg), const char *after)
{
	int64_t until = machine_now(sim->machine) + SIM_BOUND;

	if (!machine_wait(sim->machine, done, sim, until))
		return;
	for (unsigned i = 0; i < sim->plan.ports; i++)
		for (unsigned k = 0; k < SIM_QUEUES; k++) {
			struct sim_queue *q = &sim->port[i].queue[k];

			if (q->queue && !sim_queue_drained(q))
				sim_fail(sim,
					 "I2: %s/%u: %s, %u packets wait to be received and %u to "
					 "be sent; poller %s",
					 q->port->name, q->index, after, q->rx_put - q->rx_taken,
					 q->tx_put - q->tx_sent,
					 poller_name(napi_poller(q->queue->napi)));
		}
	sim_fail(sim, "I2: %s, it does not drain", after);
}

/* Its thread never rests, or another's that it shares. */
static bool may_spin(const struct sim *sim, const struct napi *napi)
{
	struct napi_walk walk = {0};
	const struct napi *other;

	if (napi_poller(napi) != POLLER_BUSY_POLL)
		return false;
	while ((other = napi_walk_next(sim->engine, &walk)))
		if (other->softnet == napi->softnet && napi_poller(other) == POLLER_BUSY_POLL &&
		    !other->idle_suspend && !napi_disabled(other))
			return true;
	return false;
}

static void idle_check(struct sim *sim, const struct napi *napi, uint64_t polls)
{
	if (polls && !may_spin(sim, napi))
		sim_fail(sim, "I6: %s/%u is polled %" PRIu64 " times without traffic; poller %s",
			 napi->queue->port->name, napi->queue->index, polls,
			 poller_name(napi_poller(napi)));
}

/* I6: with no traffic only a busy-poller polls, and that one not if all that it polls may rest. */
static void must_be_idle(struct sim *sim)
{
	uint64_t polls[SIM_ENGINE_PORTS][SIM_CPUS] = {0};

	for (int look = 0; look < 2; look++) {
		/* What is late may still come, and what may rest comes to rest. */
		sim_wait(sim, 3 * NSEC_PER_MSEC);
		for (uint32_t i = 0; i < SIM_ENGINE_PORTS; i++) {
			struct port *port = engine_port_at(sim->engine, i);

			for (uint32_t k = 0; port && k < port->queues; k++) {
				const struct napi *napi = port->queue[k].napi;
				uint64_t now = counter_read(&napi->record->napi.polls);

				if (look)
					idle_check(sim, napi, now - polls[i][k]);
				polls[i][k] = now;
			}
		}
	}
}

/* Faults have stopped: what is owed has to come. */
static void phase_liveness(struct sim *sim)
{
	sim_note(sim, "phase", "liveness", " ");
	sim->faults = false;
	machine_virtual_faults_set(sim->machine, NULL);
	sim_hogs_calm(sim);
	sim_control_restore(sim);
	for (unsigned i = 0; i < 8; i++) {
		sim_wait(sim,
			 (int64_t)random_below(&sim->control, (uint64_t)sim->plan.operation_ns));
		sim_control_set_any(sim);
	}
	sim->traffic = false;
	must_drain(sim, drained_owed, "after the traffic");
	for (unsigned i = 0; i < sim->plan.ports; i++)
		for (unsigned k = 0; k < sim->port[i].port->queues; k++)
			sim_flow_probe(sim, &sim->port[i].queue[k]);
	sim_wait(sim, 1);
	must_drain(sim, drained_all, "after one packet more");
	sim_check_totals(sim);
	sim_hogs_stop(sim);
	sim_poll_apps_stop(sim);
	must_be_idle(sim);
}

/* What the machine tells of the run. */
static void machine_read(struct sim *sim)
{
	struct virtual_stats stats;

	sim->result->virtual_ns = machine_now(sim->machine);
	machine_virtual_stats(sim->machine, &stats);
	sim->result->events = stats.events;
	sim->result->steps = stats.steps;
	sim_mix(sim, stats.trace_hash);
	for (unsigned i = 0; i < VIRTUAL_FAULTS; i++)
		sim->result->faults[i] = stats.faults[i];
}

static void sim_end(struct sim *sim)
{
	struct error err = {0};

	sim_note(sim, "phase", "end", " ");
	sim_app_stop(sim);
	for (unsigned i = 0; i < sim->plan.ports; i++)
		sim_control_port_remove(sim, &sim->port[i]);
	sim_check_totals(sim);
	engine_context_close(sim->thief);
	if (engine_check(sim->engine, &err))
		sim_fail(sim, "I3: %s", err.text);
	engine_destroy(sim->engine);
	machine_read(sim);
	machine_destroy(sim->machine);
	free(sim->frame);
	free(sim->loot);
}

bool sim_run(uint64_t seed, const struct sim_options *options, struct sim_result *result)
{
	struct sim *sim = calloc(1, sizeof(*sim));

	*result = (struct sim_result){.seed = seed};
	if (!sim) {
		result->failed = true;
		snprintf(result->failure, sizeof(result->failure), "no memory for a scenario");
		return false;
	}
	sim->options = options;
	sim->result = result;
	sim->control = sim_stream(seed, STREAM_CONTROL);
	sim->fault_random = sim_stream(seed, STREAM_FAULTS);
	scenario_draw(seed, !options->no_faults, &sim->plan);
	sim_guard_begin(true);
	if (!setjmp(sim->over)) {
		sim_begin(sim);
		phase_safety(sim);
		phase_liveness(sim);
		sim_end(sim);
		free(sim);
	} else if (sim->machine) {
		machine_read(sim);
	}
	runner_current_set(NULL); /* it may have ended inside a step */
	sim_guard_begin(false);
	return !result->failed;
}

int sim_describe(uint64_t seed, const struct sim_options *options, char *text, size_t size)
{
	struct scenario s;

	scenario_draw(seed, !options->no_faults, &s);
	return snprintf(text, size,
			"%u CPUs, %u ports, %u flows, %u hogs; weight %u, budget %u, %u us; %u "
			"operations",
			s.machine.cpus, s.ports, s.flows, s.hogs, s.engine.weight, s.engine.budget,
			s.engine.budget_usecs, s.operations);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* I9: what was asked of each queue, and whether that is what the engine and its records say. */
#include <string.h>

#include <core/backlog.h>
#include <poller/softirq.h>
#include <poller/thread.h>

#include <sim/sim.h>

void sim_asked_merge(struct sim_asked *asked, const struct queue_settings *from)
{
	struct queue_settings *to = &asked->settings;

	if (from->poller_set) {
		to->poller_set = true;
		to->poller = from->poller;
	}
	if (from->weight_set) {
		to->weight_set = true;
		to->weight = from->weight;
	}
	if (from->idle_suspend_set)
		to->idle_suspend_usecs = from->idle_suspend_usecs;
	if (from->napi_defer_hard_irqs_set)
		to->napi_defer_hard_irqs = from->napi_defer_hard_irqs;
	if (from->gro_flush_timeout_set)
		to->gro_flush_timeout = from->gro_flush_timeout;
	if (from->irq_suspend_timeout_set)
		to->irq_suspend_timeout = from->irq_suspend_timeout;
	if (from->gro_set)
		to->gro = from->gro;
	if (from->cpu_set) {
		to->cpu_set = true;
		to->cpu = from->cpu;
	}
	if (from->cpus_set) {
		to->cpus_set = true;
		to->placement = from->placement;
	}
	if (from->rps_cpus_set)
		to->rps_cpus = from->rps_cpus;
	if (from->rps_flow_set)
		to->rps_flow_cnt = from->rps_flow_cnt;
}

static enum poller poller_wished(const struct sim *sim, const struct sim_port_plan *plan)
{
	enum poller poller = sim->poller_default;

	if (plan && plan->poller_set)
		return plan->poller;
	if (plan && plan->pollers && !(plan->pollers >> poller & 1))
		return (enum poller)__builtin_ctz(plan->pollers);
	return poller;
}

void sim_asked_made(struct sim *sim, struct sim_asked *asked, const struct sim_port_plan *plan,
		    uint32_t queues, bool disabled)
{
	for (uint32_t k = 0; k < queues; k++) {
		if (!asked[k].settings.poller_set)
			asked[k].settings.poller = poller_wished(sim, plan);
		asked[k].disabled = disabled;
	}
}

static bool placement_same(const struct placement *a, const struct placement *b)
{
	return a->class == b->class && a->level == b->level &&
	       !memcmp(&a->cpus, &b->cpus, sizeof(a->cpus));
}

/* Of the NAPI's thread, which is there with that poller and no other. */
static bool thread_fits(struct sim *sim, const struct napi *napi,
			const struct queue_settings *asked)
{
	struct placement wanted = asked->placement;
	struct runner_observation seen;

	if (!napi->thread || asked->poller != POLLER_THREAD)
		return !napi->thread && asked->poller != POLLER_THREAD;
	if (!asked->cpus_set)
		return true;
	if (cpuset_empty(&wanted.cpus))
		wanted.cpus = sim->engine->config.cpus;
	runner_observe(napi->thread->runner, &seen);
	return placement_same(&seen.placement, &wanted);
}

/* What is not as asked, or NULL. */
static const char *wrong(struct sim *sim, const struct napi *napi, const struct sim_asked *a)
{
	const struct queue_settings *asked = &a->settings;
	const struct queue_record *record = napi->record;
	uint32_t weight = asked->weight_set ? asked->weight : sim->weight_default;
	unsigned cpu = softnet_cpu(napi->softnet);

	if (record->poller_asked != asked->poller)
		return "poller asked";
	if (!napi->automatic != (asked->poller != POLLER_AUTO))
		return "poller auto";
	/* With auto the engine may be about to switch it. */
	if (!napi->automatic &&
	    (napi_poller(napi) != asked->poller || record->poller_observed != asked->poller))
		return "poller";
	if (napi_weight(napi) != weight || record->weight != weight)
		return "weight";
	if (record->idle_suspend != asked->idle_suspend_usecs ||
	    napi->idle_suspend != asked->idle_suspend_usecs * NSEC_PER_USEC)
		return "idle_suspend";
	if (napi->defer_hard_irqs != asked->napi_defer_hard_irqs ||
	    napi->gro_flush_timeout != asked->gro_flush_timeout ||
	    napi->irq_suspend_timeout != asked->irq_suspend_timeout)
		return "deferral";
	if (napi->gro && (record->gro_asked != asked->gro || record->gro != napi->gro_types ||
			  (asked->gro == GRO_ON && !napi->gro_types) ||
			  (asked->gro == GRO_OFF && napi->gro_types)))
		return "gro";
	if (record->cpu != cpu ||
	    (asked->cpu_set && cpuset_has(&sim->engine->config.cpus, asked->cpu) &&
	     cpu != asked->cpu))
		return "cpu";
	if (napi_disabled(napi) != a->disabled || record->disabled != a->disabled)
		return "disabled";
	if (memcmp(&napi->rps_cpus, &asked->rps_cpus, sizeof(napi->rps_cpus)))
		return "rps_cpus";
	if (napi->rps_flow_cnt != asked->rps_flow_cnt ||
	    record->rps_flow_cnt != asked->rps_flow_cnt)
		return "rps_flow_cnt";
	return napi->automatic || thread_fits(sim, napi, asked) ? NULL : "thread";
}

static void port_check(struct sim *sim, const struct port *port, const struct sim_asked *asked,
		       const char *after)
{
	for (uint32_t k = 0; port && k < port->queues; k++) {
		const char *what = wrong(sim, port->queue[k].napi, &asked[k]);

		if (what)
			sim_fail(sim, "I9: after %s, %s/%u: %s is not as asked", after, port->name,
				 k, what);
	}
}

void sim_asked_check(struct sim *sim, const char *after)
{
	const struct backlogs *backlogs = sim->engine->backlogs;

	if (backlogs && !sim->backlogs) {
		sim->backlogs = true;
		sim_asked_made(sim, sim->backlog, NULL, sim->engine->cpus, false);
	}
	for (unsigned i = 0; i < sim->plan.ports; i++) {
		port_check(sim, sim->port[i].port, sim->port[i].asked, after);
		port_check(sim, sim_port_tx(&sim->port[i]), sim->port[i].tx_asked, after);
	}
	if (backlogs)
		port_check(sim, backlogs->port, sim->backlog, after);
}

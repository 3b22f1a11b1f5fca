/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control: one operation after the other, while everything runs. Each is checked at once (I9): what
 * was asked is so, in the engine and in its records, or it failed for a reason that the scenario
 * made and everything is as before.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/thread.h>
#include <poller/workqueue.h>

#include <sim/sim.h>

/* Traffic pauses when an operation takes longer; see plan.fifo. */
#define PATIENCE (500 * NSEC_PER_USEC)

static uint32_t below(struct sim *sim, uint32_t n)
{
	return (uint32_t)random_below(&sim->control, n);
}

static struct sim_port *port_any(struct sim *sim)
{
	return &sim->port[below(sim, sim->plan.ports)];
}

/* A fault for this operation alone: memory that is not there, a thread that cannot be made. */
static void fault_arm(struct sim *sim)
{
	struct virtual_faults faults = sim->plan.faults;

	if (!sim->faults || below(sim, 4))
		return;
	if (below(sim, 2)) {
		sim_guard_fail(1 + below(sim, 6));
		return;
	}
	faults.start_fails = 1 + below(sim, 3);
	faults.seed = random_next(&sim->control);
	machine_virtual_faults_set(sim->machine, &faults);
}

static void fault_disarm(struct sim *sim)
{
	struct virtual_faults faults = sim->plan.faults;

	for (uint32_t failed = sim_guard_fail(0); failed; failed--)
		sim_fault(sim, SIM_NO_MEMORY, "control");
	if (!sim->faults)
		return;
	faults.seed = random_next(&sim->control);
	machine_virtual_faults_set(sim->machine, &faults);
}

struct attempt {
	const char *what;
	uint64_t failures;
	int64_t began;
};

/* Faults so far that make an operation fail. */
static uint64_t failures(struct sim *sim)
{
	struct virtual_stats stats;

	machine_virtual_stats(sim->machine, &stats);
	return stats.faults[VIRTUAL_START_FAILS] + sim->result->faults[SIM_NO_MEMORY];
}

/* Without a fault of its own. */
static struct attempt attempt_time(struct sim *sim, const char *what, const char *name)
{
	struct attempt a = {.what = what, .failures = failures(sim)};

	a.began = machine_now(sim->machine);
	sim->patience = a.began + PATIENCE;
	sim->result->operations++;
	sim_note(sim, "control", name, "%s", what);
	return a;
}

static struct attempt attempt_begin(struct sim *sim, const char *what, const char *name)
{
	struct attempt a = attempt_time(sim, what, name);

	fault_arm(sim);
	return a;
}

/* It has returned rc. True: done; false: it failed, as it had to. */
static bool attempt_end(struct sim *sim, const struct attempt *a, int rc, const struct error *err,
			const char *name)
{
	int64_t took = machine_now(sim->machine) - a->began;
	bool excused;

	sim->patience = TIME_NEVER;
	fault_disarm(sim);
	excused = failures(sim) != a->failures;
	sim_note(sim, "control", name, "%s: %s", a->what, rc ? strerror(-rc) : "done");
	if (rc && !excused)
		sim_fail(sim, "I9: %s of %s fails: %s", a->what, name, err ? err->text : "");
	if (took > SIM_BOUND)
		sim_fail(sim, "I5: %s of %s takes %" PRId64 " us", a->what, name, took / 1000);
	return !rc;
}

static struct placement placement_any(struct sim *sim)
{
	struct placement p = {.class = RUNNER_FAIR, .level = (int)below(sim, 7) - 3};

	if (sim->plan.fifo && !below(sim, 3))
		p = (struct placement){.class = RUNNER_FIFO, .level = 1 + (int)below(sim, 50)};
	for (unsigned n = below(sim, 3); n; n--)
		cpuset_add(&p.cpus, below(sim, sim->plan.machine.cpus));
	return p;
}

static unsigned cpu_any(struct sim *sim)
{
	const struct cpuset *on = &sim->engine->config.cpus;
	unsigned cpu = cpuset_next(on, 0);

	for (uint32_t n = below(sim, cpuset_count(on)); n; n--)
		cpu = cpuset_next(on, cpu + 1);
	return cpu;
}

/* Short enough for what is deferred to be over before anything is said to be stuck. */
static void deferral_any(struct sim *sim, int queue, struct queue_settings *s)
{
	s->irq_suspend_timeout_set = !below(sim, 3);
	s->irq_suspend_timeout = below(sim, 3) * (1 + below(sim, 400)) * (uint32_t)NSEC_PER_USEC;
	if (queue >= 0) /* the other two are of the whole port */
		return;
	s->napi_defer_hard_irqs_set = !below(sim, 3);
	s->napi_defer_hard_irqs = below(sim, 4);
	s->gro_flush_timeout_set = !below(sim, 3);
	s->gro_flush_timeout = below(sim, 3) * (1 + below(sim, 200)) * (uint32_t)NSEC_PER_USEC;
}

static struct queue_settings settings_any(struct sim *sim, int queue)
{
	struct queue_settings s = {.poller_set = below(sim, 4)};

	s.poller = below(sim, 8) ? (enum poller)below(sim, POLLER_MAX) : POLLER_AUTO;
	s.weight_set = !below(sim, 4);
	s.weight = 1 + below(sim, NAPI_WEIGHT_MAX);
	s.cpu_set = !below(sim, 3);
	s.cpu = cpu_any(sim);
	s.idle_suspend_set = !below(sim, 5);
	s.idle_suspend_usecs = below(sim, 2) * (1 + below(sim, 100));
	/* Both together: what is left of a placement that was half set is the thread's own. */
	s.cpus_set = s.class_set = !below(sim, 4);
	s.placement = placement_any(sim);
	s.rps_cpus_set = below(sim, 2);
	for (unsigned n = below(sim, 3); s.rps_cpus_set && n; n--)
		cpuset_add(&s.rps_cpus, cpu_any(sim));
	s.rps_flow_set = !below(sim, 3);
	s.rps_flow_cnt = below(sim, 2) ? 1u << below(sim, 6) : 0;
	s.gro_set = !below(sim, 3);
	s.gro = (enum gro_setting)below(sim, GRO_SETTING_MAX);
	deferral_any(sim, queue, &s);
	return s;
}

static void set(struct sim *sim, const char *name, int queue, const struct queue_settings *s,
		struct sim_asked *asked, uint32_t queues)
{
	struct error err = {0};
	struct attempt a;
	char what[80];
	int rc;

	snprintf(what, sizeof(what), "set /%d%s%s%s%s%s%s%s", queue,
		 s->poller_set ? " poller=" : "", s->poller_set ? poller_name(s->poller) : "",
		 s->weight_set ? " weight" : "", s->cpu_set ? " cpu" : "",
		 s->rps_cpus_set ? " rps_cpus" : "", s->rps_flow_set ? " rps_flow_cnt" : "",
		 s->gro_set ? " gro" : "");
	a = attempt_begin(sim, what, name);
	rc = engine_queue_set(sim->engine, name, queue, s, NULL, &err);
	if (!attempt_end(sim, &a, rc, &err, name))
		return;
	for (unsigned k = 0; k < queues; k++)
		if (queue < 0 || queue == (int)k)
			sim_asked_merge(&asked[k], s);
}

/* Otherwise it would fail now, or later, when the port is added. */
static bool can_poll(const struct sim *sim, const struct sim_port *p,
		     const struct queue_settings *s)
{
	uint32_t pollers = sim->plan.port[p->index].pollers;

	return !s->poller_set || s->poller == POLLER_AUTO || !pollers || pollers >> s->poller & 1;
}

static void wrong(struct sim *sim, struct sim_port *p, const struct queue_settings *s)
{
	struct error err = {0};

	if (!p->port)
		return;
	sim_note(sim, "control", p->name, "set what is wrong");
	if (!engine_queue_set(sim->engine, p->name, -1, s, NULL, &err) || !err.text[0])
		sim_fail(sim, "I9: a wrong setting is accepted");
}

static void operate_set(struct sim *sim)
{
	struct sim_port *p = port_any(sim);
	uint32_t queues = sim->plan.port[p->index].queues;
	int queue = below(sim, 2) ? -1 : (int)below(sim, queues);
	struct queue_settings s = settings_any(sim, queue);

	if (can_poll(sim, p, &s))
		set(sim, p->name, queue, &s, p->asked, queues);
	else
		wrong(sim, p, &s);
}

/* TX NAPIs are polled by whom one likes; nothing is received there to be steered. */
static void operate_tx(struct sim *sim)
{
	struct sim_port *p = port_any(sim);
	uint32_t queues = sim->plan.port[p->index].queues;
	int queue = below(sim, 2) ? -1 : (int)below(sim, queues);
	struct queue_settings s = settings_any(sim, queue);

	s.rps_cpus_set = s.rps_flow_set = s.gro_set = false;
	set(sim, p->tx_name, queue, &s, p->tx_asked, queues);
}

/* Backlogs are polled by whom one likes, but neither moved nor steered. */
static void operate_backlog(struct sim *sim)
{
	int queue = below(sim, 2) ? -1 : (int)below(sim, sim->engine->cpus);
	struct queue_settings s = settings_any(sim, queue);

	s.cpu_set = s.rps_cpus_set = s.rps_flow_set = s.gro_set = false;
	set(sim, "backlog", queue, &s, sim->backlog, sim->engine->cpus);
}

/* One key of two is wrong: neither is in force. */
static void operate_wrong(struct sim *sim)
{
	struct queue_settings s = settings_any(sim, -1);
	struct sim_port *p = port_any(sim);

	s.poller_set = true;
	if (below(sim, 2)) {
		s.weight_set = true;
		s.weight = below(sim, 2) ? 0 : NAPI_WEIGHT_MAX + 1;
	} else {
		s.cpu_set = true;
		s.cpu = sim->plan.machine.cpus;
	}
	wrong(sim, p, &s);
}

static void operate_disable(struct sim *sim)
{
	struct sim_port *p = port_any(sim);
	unsigned k = below(sim, sim->plan.port[p->index].queues);
	struct port *tx = below(sim, 3) ? NULL : sim_port_tx(p);
	struct port *port = tx ? tx : p->port;
	struct attempt a;
	bool *disabled;
	int rc;

	if (!port)
		return;
	disabled = tx ? &p->tx_asked[k].disabled : &p->asked[k].disabled;
	a = attempt_begin(sim, *disabled ? "enable" : "disable", port->name);
	rc = *disabled ? napi_enable(port->queue[k].napi)
		       : napi_disable(port->queue[k].napi, NSEC_PER_SEC);
	if (attempt_end(sim, &a, rc, NULL, port->name))
		*disabled = !*disabled;
}

void sim_control_port_remove(struct sim *sim, struct sim_port *p)
{
	struct attempt a = attempt_begin(sim, "remove", p->name);
	struct error err = {0};

	sim_handlers_unlink(sim, p->port);
	p->removing = true;
	if (!attempt_end(sim, &a, engine_port_remove(sim->engine, p->port, &err), &err, p->name))
		sim_fail(sim, "I9: %s cannot be removed: %s", p->name, err.text);
	p->port = NULL;
	p->removing = false;
}

void sim_control_port_add(struct sim *sim, struct sim_port *p)
{
	const struct sim_port_plan *plan = &sim->plan.port[p->index];
	struct port_config config = {
		.ops = &p->ops,
		.disabled = sim->faults && !below(sim, 4),
		.tx_napi = plan->tx_napi,
	};
	struct handler *handler = sim->handler[p->role];
	struct error err = {0};
	struct attempt a;

	snprintf(config.name, sizeof(config.name), "%s", p->name);
	a = attempt_begin(sim, "add", p->name);
	if (!attempt_end(sim, &a, engine_port_add(sim->engine, &config, &p->port, &err), &err,
			 p->name)) {
		if (engine_port_find(sim->engine, p->name))
			sim_fail(sim, "I9: %s is there, though adding it failed", p->name);
		p->port = NULL;
		return;
	}
	sim_asked_made(sim, p->asked, plan, plan->queues, config.disabled);
	sim_asked_made(sim, p->tx_asked, NULL, plan->queues, false);
	for (unsigned k = 0; k < p->port->queues; k++)
		sim_check_opened(&p->queue[k]);
	if (!handler)
		return;
	/* What it received meanwhile without one may be in GRO: this waits for its poll as well. */
	a = attempt_time(sim, sim_role_name(p->role), p->name);
	attempt_end(sim, &a, engine_handler_set(sim->engine, p->port, handler, &err), &err,
		    p->name);
}

static void operate_port(struct sim *sim)
{
	struct sim_port *p = port_any(sim);

	/* The one by which an application sends has to stay. */
	if (p->port && sim->app.context && !p->index)
		return;
	if (p->port)
		sim_control_port_remove(sim, p);
	else
		sim_control_port_add(sim, p);
}

static void operate_handler(struct sim *sim)
{
	struct sim_port *p = port_any(sim);
	enum sim_role role = (enum sim_role)below(sim, ROLES);
	struct error err = {0};
	struct attempt a;

	if (!p->port || !sim->handler[role])
		return;
	a = attempt_begin(sim, sim_role_name(role), p->name);
	if (attempt_end(sim, &a, engine_handler_set(sim->engine, p->port, sim->handler[role], &err),
			&err, p->name))
		p->role = role;
}

static void operate_default(struct sim *sim)
{
	enum poller poller = (enum poller)below(sim, POLLER_MAX);
	struct attempt a = attempt_begin(sim, poller_name(poller), "default");

	if (attempt_end(sim, &a, engine_poller_default_set(sim->engine, poller), NULL, "default"))
		sim->poller_default = poller;
}

/* Keys of the engine and of its CPUs. */
static void operate_engine(struct sim *sim)
{
	struct engine_settings s = {
		.weight_set = !below(sim, 3),
		.budget_set = below(sim, 2),
		.budget_usecs_set = below(sim, 2),
		.weight = 1 + below(sim, NAPI_WEIGHT_MAX),
		.budget = 1 + below(sim, 300),
		.budget_usecs = 10 + below(sim, 300),
	};
	struct cpu_settings cpu = {.deferral_set = true};
	struct error err = {0};
	struct attempt a = attempt_begin(sim, "set", "engine");

	cpu.deferral = (enum deferral)below(sim, DEFERRAL_MAX);
	cpu.looped_ticks = 1 + below(sim, 4);
	if (!attempt_end(sim, &a, engine_set(sim->engine, &s, &err), &err, "engine"))
		return;
	if (s.weight_set)
		sim->weight_default = s.weight;
	a = attempt_begin(sim, deferral_name(cpu.deferral), "cpu");
	attempt_end(sim, &a, engine_cpu_set(sim->engine, cpu_any(sim), &cpu, &err), &err, "cpu");
}

/* Engine CPUs go away, or come back. */
static void operate_cpus(struct sim *sim)
{
	const struct cpuset *all = &sim->engine->cpus_all;
	struct engine_settings s = {.on_cpus_set = true};
	struct error err = {0};
	struct attempt a;

	for (unsigned cpu = cpuset_next(all, 0); cpu < CPU_MAX; cpu = cpuset_next(all, cpu + 1))
		if (below(sim, 2))
			cpuset_add(&s.on_cpus, cpu);
	a = attempt_begin(sim, "cpus", "engine");
	attempt_end(sim, &a, engine_set(sim->engine, &s, &err), &err, "engine");
}

/* Nothing says that a runner is woken for a reason only. */
static void operate_wake(struct sim *sim)
{
	struct softnet *softnet = engine_softnet(sim->engine, cpu_any(sim));
	struct workqueue *wq = sim->engine->workqueue;
	struct sim_port *p = port_any(sim);
	struct runner *runner = below(sim, 2) ? softnet->irq : softnet->ksoftirqd;

	switch (below(sim, 4)) {
	case 0:
		runner = softnet->busy ? softnet->busy->runner : runner;
		break;
	case 1:
		runner = wq ? wq->worker[below(sim, wq->workers)].runner : runner;
		break;
	case 2:
		if (p->port && p->port->queue[0].napi->thread)
			runner = p->port->queue[0].napi->thread->runner;
		break;
	}
	runner_wake(runner);
}

static void operate_link(struct sim *sim)
{
	struct sim_port *p = port_any(sim);

	if (!p->port)
		return;
	if (p->port->state == PORT_UP)
		sim_fault(sim, SIM_LINK_DOWN, p->name);
	port_state_set(p->port, p->port->state == PORT_UP ? PORT_DOWN : PORT_UP);
}

/* Takes frames until only a few are left, or gives them all back. */
static void operate_steal(struct sim *sim)
{
	uint32_t leave = below(sim, 200), available = pool_available(sim->engine->pool);

	if (sim->stolen) {
		packet_free(&sim->thief->cache, sim->loot, sim->stolen);
		sim->stolen = 0;
		pool_cache_drain(&sim->thief->cache);
		return;
	}
	while (available > leave) {
		uint32_t n = available - leave;
		uint32_t got = packet_alloc(&sim->thief->cache, sim->loot + sim->stolen,
					    n < PACKET_VECTOR_MAX ? n : PACKET_VECTOR_MAX);

		if (!got)
			break;
		sim->stolen += got;
		available -= got;
	}
	pool_cache_drain(&sim->thief->cache);
	sim_note(sim, "control", "pool", "%u frames are taken away", sim->stolen);
}

void sim_control_operate(struct sim *sim)
{
	static void (*const operations[])(struct sim * sim) = {
		operate_set,	 operate_set,	 operate_set,	  operate_set,	   operate_disable,
		operate_backlog, operate_engine, operate_tx,	  operate_disable, operate_disable,
		operate_port,	 operate_port,	 operate_handler, operate_wrong,   operate_default,
		operate_link,	 operate_wake,	 operate_cpus,	  operate_steal,
	};

	operations[below(sim, sizeof(operations) / sizeof(*operations))](sim);
	sim_asked_check(sim, "an operation");
	sim_check_totals(sim);
}

void sim_control_set_any(struct sim *sim)
{
	operate_set(sim);
	sim_asked_check(sim, "a setting");
}

void sim_control_restore(struct sim *sim)
{
	if (sim->stolen)
		operate_steal(sim);
	for (unsigned i = 0; i < sim->plan.ports; i++) {
		struct sim_port *p = &sim->port[i];

		if (!p->port)
			sim_control_port_add(sim, p);
		port_state_set(p->port, PORT_UP);
		for (unsigned k = 0; k < p->port->queues; k++) {
			napi_enable(p->port->queue[k].napi);
			if (sim_port_tx(p))
				napi_enable(sim_port_tx(p)->queue[k].napi);
			p->asked[k].disabled = p->tx_asked[k].disabled = false;
		}
	}
	sim_asked_check(sim, "all is put back");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings for queues: checked, kept and applied, all of them or none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <core/automatic.h>
#include <core/engine_cpus.h>
#include <core/engine_queue.h>
#include <core/engine_steer.h>
#include <poller/softirq.h>
#include <poller/thread.h>

int placement_check(const struct placement *p, struct error *err)
{
	if (p->class == RUNNER_FIFO)
		return p->level >= 1 && p->level <= 99
			       ? 0
			       : error_set(err, -ERANGE, "priority %d: must be 1 to 99", p->level);
	if (p->class != RUNNER_FAIR)
		return error_set(err, -EINVAL, "no such class; there are: fair, fifo");
	return p->level >= -20 && p->level <= 19
		       ? 0
		       : error_set(err, -ERANGE, "nice %d: must be -20 to 19", p->level);
}

int engine_cpus_usable(struct engine *engine, const struct cpuset *cpus, struct error *err)
{
	struct cpuset may;
	char there[128];
	unsigned cpu = 0;

	machine_cpus(engine->machine, &may);
	while ((cpu = cpuset_next(cpus, cpu)) < CPU_MAX && cpuset_has(&may, cpu))
		cpu++;
	cpuset_format(&may, there, sizeof(there));
	if (cpu < CPU_MAX)
		return error_set(err, -EINVAL,
				 "cpus: CPU %u cannot be used: this process may run on CPUs %s",
				 cpu, there);
	return 0;
}

/* What a set would do, checked before any of it is done. */
static int settings_check(struct engine *engine, const char *port, const struct queue_settings *s,
			  struct error *err)
{
	const struct port *opened = engine_port_find(engine, port);
	char there[128];

	if (s->poller_set && !poller_valid(s->poller))
		return error_set(err, -EINVAL, "no such poller; there are: %s", poller_list());
	if (s->poller_set && opened) {
		int rc = port_poller_check(opened, s->poller, err);

		if (rc)
			return rc;
	}
	if (s->weight_set && (!s->weight || s->weight > NAPI_WEIGHT_MAX))
		return error_set(err, -ERANGE, "weight %u: must be 1 to %u", s->weight,
				 NAPI_WEIGHT_MAX);
	if (s->class_set) {
		int rc = placement_check(&s->placement, err);

		if (rc)
			return rc;
	}
	if (s->cpus_set) {
		int rc = engine_cpus_usable(engine, &s->placement.cpus, err);

		if (rc)
			return rc;
	}
	if (s->napi_defer_hard_irqs_set && s->napi_defer_hard_irqs > NAPI_DEFER_HARD_IRQS_MAX)
		return error_set(err, -ERANGE, "napi_defer_hard_irqs %u: must be 0 to %u",
				 s->napi_defer_hard_irqs, NAPI_DEFER_HARD_IRQS_MAX);
	if (s->gro_flush_timeout_set && s->gro_flush_timeout > GRO_FLUSH_TIMEOUT_MAX)
		return error_set(err, -ERANGE, "gro_flush_timeout %u: must be 0 to %u ns",
				 s->gro_flush_timeout, GRO_FLUSH_TIMEOUT_MAX);
	if (s->irq_suspend_timeout_set && s->irq_suspend_timeout > IRQ_SUSPEND_TIMEOUT_MAX)
		return error_set(err, -ERANGE, "irq_suspend_timeout %u: must be 0 to %u ns",
				 s->irq_suspend_timeout, IRQ_SUSPEND_TIMEOUT_MAX);
	engine_cpus_text(engine, there, sizeof(there));
	if (s->cpu_set && !engine_softnet(engine, s->cpu))
		return error_set(err, -EINVAL, "cpu %u: not an engine CPU; those are %s", s->cpu,
				 there);
	if (s->gro_set && (unsigned)s->gro >= GRO_SETTING_MAX)
		return error_set(err, -EINVAL, "no such gro; there are: auto, on, off");
	if (s->gro_set && (!strcmp(port, BACKLOG_PORT) || (opened && opened->ops->poll)))
		return error_set(
			err, -EINVAL,
			"%s: nothing is received there that could be merged: set gro for the "
			"ports that receive",
			port);
	return steer_check(engine, port, s, err);
}

/* With poller auto the one of the moment stays. */
static int queue_poller_apply(struct napi *napi, const struct queue_settings *s, int64_t timeout,
			      int64_t *took, struct error *err)
{
	bool manual = s->poller_set && s->poller != POLLER_AUTO;
	struct softnet *softnet;
	int rc;

	napi_settle(napi); /* before it is said what is there now */
	softnet = s->cpu_set ? engine_softnet(napi->engine, s->cpu) : napi->softnet;
	rc = napi_switch(napi, manual ? s->poller : napi_poller(napi), softnet, timeout, took, err);
	if (!rc && s->poller_set && !manual)
		rc = automatic_begin(napi, err);
	return rc;
}

/*
 * Nothing can fail any more. Until then poller auto keeps what it has found out, which it would
 * have to begin anew with when the set is undone.
 */
static void queue_poller_settle(struct napi *napi, const struct queue_settings *s)
{
	if (s->poller_set && s->poller != POLLER_AUTO)
		automatic_end(napi);
	else if (s->cpu_set)
		automatic_home(napi);
	if (s->poller_set)
		atomic_store(&napi->record->poller_asked, (uint32_t)s->poller);
}

static int queue_apply(struct engine *engine, struct napi *napi, const struct queue_settings *s,
		       int64_t deadline, int64_t *took, struct error *err)
{
	int64_t left = deadline - machine_now(engine->machine);
	int64_t one;
	int rc;

	rc = poller_thread_place(napi, s);
	if (rc)
		return error_set(err, rc, "%s/%u: its thread cannot be placed so: %s%s",
				 napi->queue->port->name, napi->queue->index, strerror(-rc),
				 rc == -EPERM ? " (it takes CAP_SYS_NICE)" : "");
	if (left > SWITCH_TIMEOUT)
		left = SWITCH_TIMEOUT;
	rc = queue_poller_apply(napi, s, left > 0 ? left : 0, &one, err);
	if (rc)
		return rc;
	if (one > *took)
		*took = one;
	left = deadline - machine_now(engine->machine);
	if (left > SWITCH_TIMEOUT)
		left = SWITCH_TIMEOUT;
	rc = steer_apply(napi, s, left > 0 ? left : 0, err);
	if (rc)
		return rc;
	if (s->weight_set)
		napi_weight_set(napi, s->weight);
	if (s->idle_suspend_set)
		napi_idle_suspend_set(napi, s->idle_suspend_usecs);
	if (s->gro_set)
		queue_gro(napi);
	queue_deferral(napi);
	if (s->napi_defer_hard_irqs_set || s->gro_flush_timeout_set)
		return queue_tell(napi, err);
	return 0;
}

/* Of a queue, to go back to. */
struct queue_before {
	struct queue_settings settings; /* in the keys of the set; poller: the observed one */
	bool automatic;
};

static struct queue_before queue_now(struct napi *napi, const struct queue_settings *keys,
				     const struct queue_settings *kept)
{
	struct queue_settings now = *keys;

	napi_settle(napi); /* poller auto may have begun a switch, whose holder writes these */
	now.poller = napi_poller(napi);
	now.weight = napi_weight(napi);
	now.gro = (enum gro_setting)atomic_load(&napi->record->gro_asked);
	now.idle_suspend_usecs = atomic_load(&napi->record->idle_suspend);
	now.cpu = softnet_cpu(napi->softnet);
	now.placement = kept->placement;
	now.rps_cpus = napi->rps_cpus;
	now.rps_flow_cnt = napi->rps_flow_cnt;
	return (struct queue_before){.settings = now, .automatic = napi->automatic};
}

static void queues_restore(struct engine *engine, struct port *port, uint32_t first, uint32_t end,
			   const struct queue_before *before)
{
	int64_t deadline = machine_now(engine->machine) + SET_TIMEOUT;
	struct error err;

	for (uint32_t i = first; i < end; i++) {
		struct napi *napi = port->queue[i].napi;
		int64_t ignored = 0;

		if (queue_apply(engine, napi, &before[i].settings, deadline, &ignored, &err))
			engine_log(engine, LEVEL_WARNING,
				   "a set that failed could not be undone: %s", err.text);
		if (!before[i].automatic)
			automatic_end(napi);
	}
}

/* When it fails all is as it was, `old` first: a thread that is made again finds itself there. */
static int queues_apply(struct engine *engine, struct port *port, int queue,
			const struct queue_settings *settings, const struct settings *old,
			int64_t *took, struct error *err)
{
	int64_t deadline = machine_now(engine->machine) + SET_TIMEOUT;
	uint32_t first = queue < 0 ? 0 : (uint32_t)queue;
	uint32_t end = queue < 0 ? port->queues : (uint32_t)queue + 1;
	struct queue_before before[PORT_QUEUES_MAX];

	for (uint32_t i = first; i < end && i < port->queues; i++) {
		struct queue_settings kept;
		int rc;

		settings_find(old, port->name, (int)i, &kept);
		before[i] = queue_now(port->queue[i].napi, settings, &kept);
		rc = queue_apply(engine, port->queue[i].napi, settings, deadline, took, err);
		if (!rc)
			continue;
		engine->settings = *old;
		queues_restore(engine, port, first, i + 1, before);
		return rc;
	}
	for (uint32_t i = first; i < end && i < port->queues; i++)
		queue_poller_settle(port->queue[i].napi, settings);
	return 0;
}

static bool port_there(void *engine, const char *name)
{
	return engine_port_find(engine, name);
}

/*
 * Ports come and go under ever new names: what was kept the longest for one that is away gives way.
 * Its name, or none, is in `forgotten`, for a set that succeeds.
 */
static int setting_keep(struct engine *engine, const char *name, int queue,
			const struct queue_settings *settings, char forgotten[PORT_NAME_MAX],
			struct error *err)
{
	int rc = settings_keep(&engine->settings, name, queue, settings);

	if (rc && settings_evict(&engine->settings, port_there, engine, forgotten))
		rc = settings_keep(&engine->settings, name, queue, settings);
	if (rc)
		error_set(err, rc, "no room for another setting; %d are kept", SETTINGS_MAX);
	return rc;
}

int engine_queue_move(struct engine *engine, const char *name, uint32_t queue, unsigned cpu,
		      int64_t *took, struct error *err)
{
	struct queue_settings settings = {.cpu_set = true, .cpu = cpu};
	struct port *port;
	int rc;

	engine_lock(engine);
	port = engine_port_find(engine, name);
	if (port && queue < port->queues)
		rc = settings_check(engine, name, &settings, err);
	else
		rc = error_set(err, -ENOENT, "no queue %.31s/%u", name, queue);
	if (!rc)
		rc = queue_poller_apply(port->queue[queue].napi, &settings, SWITCH_TIMEOUT, took,
					err);
	if (!rc)
		queue_poller_settle(port->queue[queue].napi, &settings);
	engine_unlock(engine);
	return rc;
}

int engine_queue_set(struct engine *engine, const char *name, int queue,
		     const struct queue_settings *settings, int64_t *took, struct error *err)
{
	char forgotten[PORT_NAME_MAX] = "";
	int64_t longest = 0;
	struct settings *kept;
	struct port *port;
	int rc;

	if (queue < 0)
		queue = -1;
	if (strlen(name) >= PORT_NAME_MAX)
		return error_set(err, -EINVAL, "port name '%.40s': longer than %d bytes", name,
				 PORT_NAME_MAX - 1);
	if (queue >= PORT_QUEUES_MAX)
		return error_set(err, -EINVAL, "%s/%d: queues are numbered 0 to %d", name, queue,
				 PORT_QUEUES_MAX - 1);
	if (queue >= 0 && (settings->napi_defer_hard_irqs_set || settings->gro_flush_timeout_set))
		return error_set(err, -EINVAL,
				 "%s/%d: napi_defer_hard_irqs and gro_flush_timeout are of the "
				 "whole interface: napier set %s …",
				 name, queue, name);
	kept = malloc(sizeof(*kept));
	if (!kept)
		return error_set(err, -ENOMEM, "no memory for settings");
	engine_lock(engine);
	*kept = engine->settings;
	rc = settings_check(engine, name, settings, err);
	/* Kept first: a thread that is made now finds its placement there. */
	if (!rc)
		rc = setting_keep(engine, name, queue, settings, forgotten, err);
	port = engine_port_find(engine, name);
	if (!rc && port)
		rc = queues_apply(engine, port, queue, settings, kept, &longest, err);
	if (rc)
		engine->settings = *kept;
	for (uint32_t i = 0; !rc && port && i < port->queues; i++)
		queue_record_placement(port->queue[i].napi);
	if (!rc && forgotten[0])
		engine_log(engine, LEVEL_WARNING,
			   "%d settings are kept: one for %s, which is not there, is forgotten",
			   SETTINGS_MAX, forgotten);
	engine_unlock(engine);
	free(kept);
	if (took)
		*took = longest;
	return rc;
}

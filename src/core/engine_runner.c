/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of the engine's own runners, live: irq/N, ksoftirqd/N, busy/N and the workers. */
#include <errno.h>
#include <string.h>

#include <core/engine.h>
#include <core/engine_cpus.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/workqueue.h>

static const char *const roles[] = {
	[ROLE_IRQ] = "irq",
	[ROLE_KSOFTIRQD] = "ksoftirqd",
	[ROLE_BUSY] = "busy",
	[ROLE_KWORKER] = "kworker",
};

const char *runner_role_name(enum runner_role role)
{
	return (unsigned)role < ROLE_MAX ? roles[role] : "unknown";
}

int runner_role_parse(const char *name, enum runner_role *out)
{
	for (unsigned i = 0; i < ROLE_MAX; i++) {
		if (!strcmp(name, roles[i])) {
			*out = (enum runner_role)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* What is asked of this runner of the softnet, and the runner, if it is there. */
static struct placement *softnet_role(struct softnet *softnet, enum runner_role role,
				      struct runner **runner)
{
	switch (role) {
	case ROLE_IRQ:
		*runner = softnet->irq;
		return &softnet->irq_asked;
	case ROLE_KSOFTIRQD:
		*runner = softnet->ksoftirqd;
		return &softnet->ksoftirqd_asked;
	default:
		*runner = softnet->busy ? softnet->busy->runner : NULL;
		return &softnet->busy_asked;
	}
}

/* What is set changes; the rest stays as it is, also if it was changed from outside. */
static int runner_change(struct runner *runner, const struct runner_settings *s,
			 struct placement *before)
{
	struct runner_observation seen;

	runner_observe(runner, &seen);
	*before = seen.placement;
	if (s->cpus_set)
		seen.placement.cpus = s->placement.cpus;
	if (s->class_set) {
		seen.placement.class = s->placement.class;
		seen.placement.level = s->placement.level;
	}
	return runner_place(runner, &seen.placement);
}

static void asked_change(struct placement *asked, const struct runner_settings *s)
{
	if (s->cpus_set)
		asked->cpus = s->placement.cpus;
	if (s->class_set) {
		asked->class = s->placement.class;
		asked->level = s->placement.level;
	}
}

/* All workers, or none. */
static int workers_set(struct engine *engine, const struct runner_settings *settings)
{
	struct workqueue *wq = engine->workqueue;
	struct runner_settings s = *settings;
	struct placement before[WORKERS_MAX];

	if (s.cpus_set && cpuset_empty(&s.placement.cpus))
		s.placement.cpus = engine->config.cpus;
	for (uint32_t i = 0; wq && i < wq->workers; i++) {
		int rc = runner_change(wq->worker[i].runner, &s, &before[i]);

		if (!rc)
			continue;
		while (i--)
			runner_place(wq->worker[i].runner, &before[i]);
		return rc;
	}
	asked_change(&engine->config.worker, &s);
	if (s.cpus_set)
		engine->worker_cpus_own = !cpuset_empty(&settings->placement.cpus);
	workqueue_record_placement(engine);
	return 0;
}

static int cpu_runner_set(struct engine *engine, enum runner_role role, unsigned cpu,
			  const struct runner_settings *s, struct error *err)
{
	struct softnet *softnet = engine_softnet(engine, cpu);
	struct placement *asked, before;
	struct runner *runner;
	char there[128];
	int rc = 0;

	engine_cpus_text(engine, there, sizeof(there));
	if (!softnet)
		return error_set(err, -ENODEV, "%s/%u: not an engine CPU; those are %s",
				 roles[role], cpu, there);
	if (s->cpus_set)
		return error_set(err, -EINVAL,
				 "%s/%u: cpus: it is the thread of CPU %u; move NAPIs with cpu=",
				 roles[role], cpu, cpu);
	asked = softnet_role(softnet, role, &runner);
	if (runner)
		rc = runner_change(runner, s, &before);
	if (rc)
		return rc;
	asked_change(asked, s);
	softnet->placed = true;
	softnet_record_placement(softnet);
	return 0;
}

int engine_runner_set(struct engine *engine, enum runner_role role, unsigned cpu,
		      const struct runner_settings *settings, struct error *err)
{
	struct error inner = {0};
	int rc;

	if ((unsigned)role >= ROLE_MAX)
		return error_set(err, -EINVAL,
				 "no such thread; there are irq/N, ksoftirqd/N, "
				 "busy/N, kworker");
	rc = settings->class_set ? placement_check(&settings->placement, err) : 0;
	if (!rc && settings->cpus_set)
		rc = engine_cpus_usable(engine, &settings->placement.cpus, err);
	if (rc)
		return rc;
	engine_lock(engine);
	rc = role == ROLE_KWORKER ? workers_set(engine, settings)
				  : cpu_runner_set(engine, role, cpu, settings, &inner);
	engine_unlock(engine);
	if (rc && inner.code)
		return error_set(err, rc, "%s", inner.text);
	if (rc)
		error_set(err, rc, "%s cannot be placed so: %s%s", roles[role], strerror(-rc),
			  rc == -EPERM ? " (it takes CAP_SYS_NICE)" : "");
	return rc;
}

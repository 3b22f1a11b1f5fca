/* SPDX-License-Identifier: BSD-2-Clause */
/* Start and stop of an engine CPU's two runners. */
#include <stdio.h>

#include <core/context.h>
#include <poller/softirq.h>
#include <poller/start.h>

static int runner_begin(struct softnet *softnet, const char *name, struct step (*step)(void *),
			struct placement *asked, struct runner **out, struct error *err)
{
	struct runner_config config = {.step = step, .arg = softnet};

	snprintf(config.name, sizeof(config.name), "%s/%u", name, softnet->cpu);
	cpuset_add(&config.placement.cpus, softnet->cpu);
	return poller_runner_start(softnet->engine, &config, asked, out, err);
}

static void deferral_store(struct softnet *softnet, enum deferral deferral, uint32_t looped_ticks)
{
	/* Pairs with ksoftirqd_gives_back. */
	atomic_store(&softnet->deferral, DEFERRAL_WORD(deferral, looped_ticks));
	atomic_store(&softnet->record->deferral, deferral);
	atomic_store(&softnet->record->looped_ticks, looped_ticks);
}

/* What was not asked of this CPU's in particular is the engine's, which learns what is refused. */
static int runner_asked(struct softnet *softnet, const char *name, struct step (*step)(void *),
			struct placement *engines, struct placement *own, struct runner **out,
			struct error *err)
{
	bool particular = softnet->placed;
	int rc = runner_begin(softnet, name, step, particular ? own : engines, out, err);

	if (!particular)
		*own = *engines;
	return rc;
}

void softnet_init(struct softnet *softnet, struct engine *engine, unsigned cpu,
		  struct cpu_record *record)
{
	softnet->engine = engine;
	softnet->cpu = cpu;
	softnet->record = record;
	list_init(&softnet->list);
	softnet->looped_at = -1;
	softnet->ksoftirqd_asked = engine->config.ksoftirqd;
	softnet->irq_asked = engine->config.interrupt;
	deferral_store(softnet, engine->config.deferral, engine->config.looped_ticks);
	record->cpu = cpu;
	softnet_record_placement(softnet);
	atomic_store(&record->in_use, 1);
}

int softnet_start(struct softnet *softnet, struct error *err)
{
	struct cpu_record *record = softnet->record;
	struct runner_observation seen;
	int rc = context_create(softnet->engine, &softnet->context);

	if (rc)
		return error_set(err, rc, "no memory for engine CPU %u", softnet->cpu);
	softnet->wakes = softnet->rested = 0;
	rc = runner_asked(softnet, "ksoftirqd", softirq_ksoftirqd_step,
			  &softnet->engine->config.ksoftirqd, &softnet->ksoftirqd_asked,
			  &softnet->ksoftirqd, err);
	if (!rc)
		rc = runner_asked(softnet, "irq", softirq_irq_step,
				  &softnet->engine->config.interrupt, &softnet->irq_asked,
				  &softnet->irq, err);
	if (rc) {
		softnet_stop(softnet);
		return rc;
	}
	runner_observe(softnet->irq, &seen);
	atomic_store(&record->irq_tid, seen.tid);
	runner_observe(softnet->ksoftirqd, &seen);
	atomic_store(&record->ksoftirqd_tid, seen.tid);
	softnet_record_placement(softnet);
	return 0;
}

void softnet_deferral_set(struct softnet *softnet, enum deferral deferral, uint32_t looped_ticks)
{
	deferral_store(softnet, deferral, looped_ticks);
	/* What ksoftirqd holds now is not to wait for its turn any longer. */
	if (deferral == DEFERRAL_NEVER && softnet->irq)
		runner_wake(softnet->irq);
}

void softnet_away_set(struct softnet *softnet, bool away)
{
	struct cpu_record *record = softnet->record;

	softnet->away = away;
	atomic_store(&record->away, away);
	if (!away) {
		deferral_store(softnet, (enum deferral)record->deferral, record->looped_ticks);
	} else if (softnet->irq) {
		atomic_store(&softnet->deferral, DEFERRAL_WORD(DEFERRAL_NEVER, 0));
		runner_wake(softnet->irq);
	}
}

void softnet_record_placement(struct softnet *softnet)
{
	struct cpu_record *record = softnet->record;

	atomic_store(&record->irq_class, (int32_t)softnet->irq_asked.class);
	atomic_store(&record->irq_level, softnet->irq_asked.level);
	atomic_store(&record->ksoftirqd_class, (int32_t)softnet->ksoftirqd_asked.class);
	atomic_store(&record->ksoftirqd_level, softnet->ksoftirqd_asked.level);
	atomic_store(&record->busy_class, (int32_t)softnet->busy_asked.class);
	atomic_store(&record->busy_level, softnet->busy_asked.level);
}

void softnet_stop(struct softnet *softnet)
{
	if (softnet->irq)
		runner_stop(softnet->irq);
	if (softnet->ksoftirqd)
		runner_stop(softnet->ksoftirqd);
	context_destroy(softnet->context);
	atomic_store(&softnet->record->irq_tid, 0);
	atomic_store(&softnet->record->ksoftirqd_tid, 0);
	softnet->irq = softnet->ksoftirqd = NULL;
	softnet->context = NULL;
}

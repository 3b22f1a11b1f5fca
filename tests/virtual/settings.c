/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of the engine as a whole and of its CPUs: all or nothing, live, observed. */
#include "scene.h"

#include <core/engine.h>
#include <poller/busy_poll.h>
#include <poller/softirq.h>
#include <poller/workqueue.h>

static const struct cpu_record *cpu_record(struct scene *s, uint32_t i)
{
	return counters_cpu(s->engine->counters, i);
}

static void refuses(void **state)
{
	struct engine_settings wrong[] = {
		{.weight_set = true, .weight = 65},
		{.weight_set = true},
		{.budget_set = true},
		{.budget_set = true, .budget = ENGINE_BUDGET_MAX + 1},
		{.budget_usecs_set = true},
		{.cpus = {.deferral_set = true, .deferral = DEFERRAL_MAX}},
	};
	static const char *const says[] = {
		"dev_weight 65: must be 1 to 64",
		"dev_weight 0: must be 1 to 64",
		"netdev_budget 0: must be 1 to 1000000",
		"netdev_budget 1000001: must be 1 to 1000000",
		"netdev_budget_usecs 0: must be 1 to 1000000",
		"no such deferral; the policies are never, restart-limit, looped:TICKS, "
		"ksoftirqd-running",
	};
	const struct cpu_settings never = {.deferral_set = true, .deferral = DEFERRAL_NEVER};
	const struct counters_file *file;
	struct error err;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	file = engine_counters(s.engine);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct engine_settings *w = &wrong[i];

		/* Something right beside what is wrong: nothing of it may be done. */
		if (!w->budget_set)
			w->budget_set = true, w->budget = 7;
		else
			w->weight_set = true, w->weight = 7;
		assert_int_not_equal(engine_set(s.engine, w, &err), 0);
		assert_string_equal(err.text, says[i]);
		assert_int_equal(file->weight, 64);
		assert_int_equal(file->budget, 300);
		assert_int_equal(file->budget_usecs, 2000);
		assert_int_equal(cpu_record(&s, 0)->deferral, DEFERRAL_RESTART_LIMIT);
		assert_int_equal(napi_weight(s.a->queue[0].napi), 64);
	}
	assert_int_equal(engine_cpu_set(s.engine, 2, &never, &err), -ENODEV);
	assert_string_equal(err.text, "cpu/2: not an engine CPU; those are 0-1");
	scene_end(&s);
}

/* A weight of a queue's own stays; the others', and those of queues to come, follow. */
static void weights(void **state)
{
	const struct queue_settings own = {.weight_set = true, .weight = 16};
	struct engine_settings settings = {.weight_set = true, .weight = 8};
	struct port *late;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_queue_set(s.engine, "b", -1, &own, NULL, NULL), 0);
	assert_int_equal(engine_set(s.engine, &settings, NULL), 0);
	late = scene_port(&s, "late", NULL);
	assert_int_equal(napi_weight(s.a->queue[0].napi), 8);
	assert_int_equal(napi_weight(s.b->queue[0].napi), 16);
	assert_int_equal(napi_weight(late->queue[0].napi), 8);
	assert_int_equal(engine_counters(s.engine)->weight, 8);
	scene_end(&s);
}

/* One after the other for each engine CPU, or all at once. */
static void of_cpus(void **state)
{
	const struct cpu_settings never = {.deferral_set = true, .deferral = DEFERRAL_NEVER};
	struct engine_settings all = {.cpus = {.deferral_set = true}};
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_cpu_set(s.engine, 1, &never, NULL), 0);
	assert_int_equal(cpu_record(&s, 0)->deferral, DEFERRAL_RESTART_LIMIT);
	assert_int_equal(cpu_record(&s, 1)->deferral, DEFERRAL_NEVER);
	all.cpus.deferral = DEFERRAL_RESTART_LIMIT;
	assert_int_equal(engine_set(s.engine, &all, NULL), 0);
	assert_int_equal(cpu_record(&s, 1)->deferral, DEFERRAL_RESTART_LIMIT);
	scene_end(&s);

	scene_begin_with(&s, true, 1, (struct engine_config){.deferral = DEFERRAL_NEVER});
	assert_int_equal(cpu_record(&s, 0)->deferral, DEFERRAL_NEVER);
	assert_int_equal(cpu_record(&s, 1)->deferral, DEFERRAL_NEVER);
	scene_end(&s);
}

/* Every key changes many times under load: nothing is lost, and what was set last holds. */
static void live(enum poller poller)
{
	struct source source = {.burst = 64, .interval = 20 * NSEC_PER_USEC, .count = 50000};
	struct sink sink = {0};
	struct scene s;

	scene_begin(&s, true, 5, poller);
	source.scene = sink.scene = &s;
	source.port = s.a;
	sink.port = s.b;
	sink_start(&sink);
	source_start(&source);
	for (uint32_t i = 1; i <= 200; i++) {
		const struct engine_settings settings = {
			.weight_set = true,
			.weight = 1 + i % 64,
			.budget_set = true,
			.budget = 1 + i % 300,
			.budget_usecs_set = true,
			.budget_usecs = 1 + i % 7,
			.cpus = {.deferral_set = true,
				 .deferral = i % DEFERRAL_MAX,
				 .looped_ticks = 1 + i % 3},
		};

		assert_int_equal(engine_set(s.engine, &settings, NULL), 0);
		scene_run(&s, 50 * NSEC_PER_USEC);
	}
	source_stop(&source);
	scene_drain(&s, s.a, 50000);
	scene_run(&s, NSEC_PER_MSEC);
	sink_stop(&sink);
	assert_int_equal(sink.received, 50000);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(engine_counters(s.engine)->budget, 201);
	assert_int_equal(engine_counters(s.engine)->budget_usecs, 5);
	assert_int_equal(napi_weight(s.a->queue[0].napi), 9);
	scene_end(&s);
}

static void live_under_load(void **state)
{
	(void)state;
	over_pollers(live);
}

static struct runner_settings fifo(int level)
{
	return (struct runner_settings){.class_set = true,
					.placement = {.class = RUNNER_FIFO, .level = level}};
}

static int level_of(struct runner *runner)
{
	struct runner_observation seen;

	runner_observe(runner, &seen);
	return seen.placement.class == RUNNER_FIFO ? seen.placement.level : 0;
}

/* The engine's threads: those that are there, and those that come later, or come again. */
static void of_threads(void **state)
{
	struct queue_settings busy = {.poller_set = true, .poller = POLLER_BUSY_POLL};
	struct engine_settings one = {.on_cpus_set = true}, both = {.on_cpus_set = true};
	struct runner_settings wrong = fifo(100), any = {.cpus_set = true}, set;
	struct error err;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_runner_set(s.engine, ROLE_BUSY, 0, &wrong, &err), -ERANGE);
	assert_string_equal(err.text, "priority 100: must be 1 to 99");
	assert_int_equal(engine_runner_set(s.engine, ROLE_KWORKER, 0, &wrong, &err), -ERANGE);
	assert_int_equal(engine_runner_set(s.engine, ROLE_IRQ, 0, &any, &err), -EINVAL);
	set = fifo(20);
	assert_int_equal(engine_runner_set(s.engine, ROLE_IRQ, 2, &set, &err), -ENODEV);
	assert_int_equal(cpu_record(&s, 0)->busy_level, 0);

	assert_int_equal(engine_runner_set(s.engine, ROLE_IRQ, 1, &set, &err), 0);
	assert_int_equal(level_of(s.engine->softnet[1].irq), 20);
	assert_int_equal(cpu_record(&s, 1)->irq_level, 20);
	assert_int_not_equal(cpu_record(&s, 0)->irq_level, 20);
	set = fifo(30);
	assert_int_equal(engine_runner_set(s.engine, ROLE_BUSY, 1, &set, &err), 0);
	set = fifo(10);
	assert_int_equal(engine_runner_set(s.engine, ROLE_KWORKER, 0, &set, &err), 0);
	busy.cpu_set = true;
	busy.cpu = 1;
	busy.idle_suspend_set = true; /* what never rests leaves nothing to others of CPU 1 */
	busy.idle_suspend_usecs = 1;
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &busy, NULL, &err), 0);
	assert_int_equal(level_of(s.engine->softnet[1].busy->runner), 30);
	busy = (struct queue_settings){.poller_set = true, .poller = POLLER_WORKQUEUE};
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &busy, NULL, &err), 0);
	for (uint32_t i = 0; i < s.engine->workqueue->workers; i++)
		assert_int_equal(level_of(s.engine->workqueue->worker[i].runner), 10);

	cpuset_add(&one.on_cpus, 0);
	assert_int_equal(engine_set(s.engine, &one, &err), 0);
	assert_int_equal(engine_runner_set(s.engine, ROLE_IRQ, 1, &set, &err), -ENODEV);
	assert_int_equal(engine_set(s.engine, &both, &err), 0);
	assert_int_equal(level_of(s.engine->softnet[1].irq), 20);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),    cmocka_unit_test(weights),
		cmocka_unit_test(of_cpus),    cmocka_unit_test(live_under_load),
		cmocka_unit_test(of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

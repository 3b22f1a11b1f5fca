/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case 18: engine CPUs are taken away and come back while the others enqueue to them. Exact
 * conservation, order, no kick and no runner left behind; what is set holds again.
 */
#include "scene.h"

#include <core/backlog.h>
#include <core/engine.h>
#include <core/napi.h>
#include <poller/softirq.h>
#include <poller/workqueue.h>

#define CPUS 4

/* Empty: all that there are. */
static struct engine_settings on_cpus(const char *list)
{
	struct engine_settings settings = {.on_cpus_set = true};

	if (*list)
		assert_int_equal(cpuset_parse(list, &settings.on_cpus), 0);
	return settings;
}

static int cpus_set(struct scene *s, const char *list, struct error *err)
{
	const struct engine_settings settings = on_cpus(list);

	return engine_set(s->engine, &settings, err);
}

static void cpus_are(struct scene *s, const char *list)
{
	scene_set_engine(s, on_cpus(list));
}

/* Which CPUs have runners, and that the records say so. */
static void runners_are(struct scene *s, const char *list)
{
	struct cpuset cpus;

	assert_int_equal(cpuset_parse(list, &cpus), 0);
	for (uint32_t i = 0; i < s->engine->cpus; i++) {
		const struct softnet *softnet = &s->engine->softnet[i];
		bool there = cpuset_has(&cpus, softnet->cpu);

		assert_int_equal(there, softnet->irq != NULL);
		assert_int_equal(there, softnet->ksoftirqd != NULL);
		assert_int_equal(!there, softnet->record->away);
		assert_null(softnet->list.first);
		if (!there)
			assert_null(atomic_load(&softnet->inbox.last));
	}
}

static unsigned cpu_of(const struct port *port)
{
	const struct napi *napi = port->queue[0].napi;

	assert_int_equal(napi->record->cpu, softnet_cpu(napi->softnet));
	return napi->record->cpu;
}

static void refuses(void **state)
{
	struct error err;
	struct scene s;

	(void)state;
	scene_begin_cpus(&s, true, 1, CPUS, (struct engine_config){0});
	assert_int_equal(cpus_set(&s, "0,4", &err), -EINVAL);
	assert_string_equal(err.text, "cpus: the engine was not started with CPU 4; those that can "
				      "be given are 0-3");
	runners_are(&s, "0-3");
	cpus_are(&s, "0-1");
	assert_int_equal(engine_queue_set(s.engine, "a", -1,
					  &(struct queue_settings){.cpu_set = true, .cpu = 3}, NULL,
					  &err),
			 -EINVAL);
	assert_string_equal(err.text, "cpu 3: not an engine CPU; those are 0-1 (away: 2-3)");
	cpus_are(&s, "");
	runners_are(&s, "0-3");
	scene_end(&s);
}

/* Set for a CPU before it goes, while it is away, for a port that comes meanwhile: all holds. */
static void settings_hold(enum poller poller)
{
	const struct queue_settings on_2 = {.cpu_set = true, .cpu = 2};
	const struct cpu_settings never = {.deferral_set = true, .deferral = DEFERRAL_NEVER};
	unsigned a_was, b_was;
	struct port *late;
	struct scene s;

	scene_begin_cpus(&s, true, 2, CPUS, (struct engine_config){.poller = poller});
	b_was = cpu_of(s.b);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &on_2, NULL, NULL), 0);
	assert_int_equal(engine_queue_set(s.engine, "late", -1, &on_2, NULL, NULL), 0);
	a_was = cpu_of(s.a);
	assert_int_equal(a_was, 2);
	cpus_are(&s, "3");
	runners_are(&s, "3");
	assert_int_equal(cpu_of(s.a), 3);
	assert_int_equal(cpu_of(s.b), 3);
	late = scene_port(&s, "late", NULL);
	assert_int_equal(cpu_of(late), 3);
	assert_int_equal(engine_cpu_set(s.engine, 2, &never, NULL), 0);
	cpus_are(&s, "2-3");
	runners_are(&s, "2-3");
	assert_int_equal(cpu_of(s.a), 2);
	assert_int_equal(cpu_of(late), 2);
	assert_int_equal(s.engine->softnet[2].record->deferral, DEFERRAL_NEVER);
	assert_int_equal(DEFERRAL_POLICY(atomic_load(&s.engine->softnet[2].deferral)),
			 DEFERRAL_NEVER);
	cpus_are(&s, "");
	assert_int_equal(cpu_of(s.b), b_was);
	assert_int_equal(napi_poller(s.a->queue[0].napi), poller);
	scene_end(&s);
}

static void settings_hold_over_pollers(void **state)
{
	(void)state;
	over_pollers(settings_hold);
}

static void runner_is_on(struct runner *runner, const char *list)
{
	struct runner_observation seen;
	char text[64];

	runner_observe(runner, &seen);
	cpuset_format(&seen.placement.cpus, text, sizeof(text));
	assert_string_equal(text, list);
}

static struct runner *thread_of(const struct port *port)
{
	return poller_ops(POLLER_THREAD)->runner(port->queue[0].napi);
}

static void threads_are_on(struct scene *s, const char *list)
{
	runner_is_on(thread_of(s->a), list);
	for (uint32_t i = 0; i < s->engine->workqueue->workers; i++)
		runner_is_on(s->engine->workqueue->worker[i].runner, list);
}

/* Threads that no CPUs are set for run on the engine's, whichever those are; others stay. */
static void threads_follow(void **state)
{
	struct queue_settings on_1 = {.cpus_set = true};
	struct port *placed;
	struct scene s;

	(void)state;
	scene_begin_cpus(&s, true, 3, CPUS, (struct engine_config){.poller = POLLER_THREAD});
	cpuset_add(&on_1.placement.cpus, 1);
	assert_int_equal(engine_queue_set(s.engine, "placed", -1, &on_1, NULL, NULL), 0);
	placed = scene_port(&s, "placed", NULL);
	assert_int_equal(
		napi_poller_set(s.b->queue[0].napi, POLLER_WORKQUEUE, NSEC_PER_SEC, NULL, NULL), 0);
	threads_are_on(&s, "0-3");
	cpus_are(&s, "2-3");
	threads_are_on(&s, "2-3");
	runner_is_on(thread_of(placed), "1");
	cpus_are(&s, "");
	threads_are_on(&s, "0-3");
	runner_is_on(thread_of(placed), "1");
	scene_end(&s);
}

/* A random set of CPUs that is not empty. */
static void draw_cpus(struct scene *s, char *list)
{
	struct cpuset cpus = {.bits = {1 + machine_virtual_draw(s->machine, (1 << CPUS) - 1)}};

	cpuset_format(&cpus, list, 32);
}

struct flood {
	struct source source[2];
	struct sink sink[2];
};

static void flood_start(struct scene *s, struct flood *f, uint32_t count)
{
	memset(f, 0, sizeof(*f));
	for (int i = 0; i < 2; i++) {
		f->source[i] = (struct source){.scene = s,
					       .port = i ? s->b : s->a,
					       .flow = (uint32_t)i,
					       .burst = 16,
					       .interval = 11 * NSEC_PER_USEC,
					       .count = count};
		f->sink[!i] = (struct sink){.scene = s, .port = i ? s->a : s->b};
		sink_start(&f->sink[!i]);
		source_start(&f->source[i]);
	}
}

/* Everything that was received is accounted, by NAPI; what went through came in order. */
static void flood_end(struct scene *s, struct flood *f, uint32_t count)
{
	uint64_t dropped = 0;

	for (int i = 0; i < 2; i++)
		source_stop(&f->source[i]);
	scene_drain(s, s->a, count);
	scene_drain(s, s->b, count);
	scene_run(s, 10 * NSEC_PER_MSEC);
	for (int i = 0; i < 2; i++)
		sink_stop(&f->sink[i]);
	for (uint32_t i = 0; i < 64; i++) {
		struct port *port = engine_port_at(s->engine, i);

		for (int reason = 0; port && reason < DROP_MAX; reason++)
			dropped += PORT_SUM(port, dropped[reason]);
	}
	assert_int_equal(f->sink[0].received + f->sink[1].received + dropped, 2 * count);
	assert_int_equal(f->sink[0].disorder + f->sink[1].disorder, 0);
}

static void each_backlog_is_empty(struct scene *s)
{
	struct backlogs *backlogs = s->engine->backlogs;

	for (uint32_t i = 0; backlogs && i < backlogs->n; i++) {
		assert_int_equal(backlogs->backlog[i].put, backlogs->backlog[i].taken);
		assert_true(backlog_passed(&backlogs->backlog[i], backlogs->backlog[i].put));
	}
}

/* For so long nothing comes to CPUs that are away. */
static void away_left_alone(struct scene *s, int64_t ns)
{
	struct backlogs *backlogs = s->engine->backlogs;
	uint64_t put[CPUS] = {0};

	for (uint32_t i = 0; backlogs && i < CPUS; i++)
		put[i] = backlogs->backlog[i].put;
	scene_run(s, ns);
	for (uint32_t i = 0; i < CPUS; i++) {
		const struct softnet *softnet = &s->engine->softnet[i];

		if (!softnet->away)
			continue;
		assert_null(softnet->irq);
		assert_null(softnet->busy);
		assert_null(softnet->list.first);
		assert_null(atomic_load(&softnet->inbox.last));
		if (backlogs) {
			assert_int_equal(backlogs->backlog[i].put, put[i]);
			assert_int_equal(backlogs->backlog[i].taken, put[i]);
		}
	}
}

/* Random sets of CPUs, under load, with packets steered to all of them. */
static void taken_away(enum poller poller, uint64_t seed, bool steered, uint32_t flows)
{
	struct queue_settings steering = {.rps_cpus_set = steered, .rps_flow_set = flows > 0};
	const struct queue_settings polled = {.poller_set = true, .poller = poller};
	struct flood flood;
	struct scene s;
	char list[32];

	scene_begin_cpus(&s, true, seed, CPUS,
			 (struct engine_config){.poller = poller, .sock_flow_entries = flows});
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		cpuset_add(&steering.rps_cpus, cpu);
	steering.rps_flow_cnt = flows;
	if (steered || flows) {
		assert_int_equal(engine_queue_set(s.engine, "a", -1, &steering, NULL, NULL), 0);
		assert_int_equal(engine_queue_set(s.engine, "b", -1, &steering, NULL, NULL), 0);
		assert_int_equal(engine_queue_set(s.engine, "backlog", -1, &polled, NULL, NULL), 0);
	}
	flood_start(&s, &flood, 20000);
	for (int i = 0; i < 30; i++) {
		draw_cpus(&s, list);
		cpus_are(&s, list);
		away_left_alone(&s, machine_virtual_draw(s.machine, 400 * NSEC_PER_USEC));
	}
	flood_end(&s, &flood, 20000);
	each_backlog_is_empty(&s);
	cpus_are(&s, "");
	scene_end(&s);
}

static void case_18(enum poller poller)
{
	for (uint64_t seed = 1; seed <= 2; seed++) {
		taken_away(poller, seed, false, 0);
		taken_away(poller, seed, true, 0);
		taken_away(poller, seed, true, 64);
		taken_away(poller, seed, false, 64);
	}
}

static void case_18_cpu_taken_away(void **state)
{
	(void)state;
	over_pollers(case_18);
}

static struct step hog_step(void *arg)
{
	machine_charge(((struct scene *)arg)->machine, 100 * NSEC_PER_USEC);
	return STEP(STEP_AGAIN);
}

/*
 * A hog keeps CPU 1, on which are a backlog and a port, from ksoftirqd/1, which has just got what
 * they hold; at a higher level also from irq/1. Then CPU 1 is taken away.
 */
static void hogged(enum deferral deferral, int level)
{
	struct runner_config config = {.name = "hog", .step = hog_step};
	struct queue_settings to_1 = {.rps_cpus_set = true, .weight_set = true, .weight = 1};
	const struct queue_settings on_1 = {
		.cpu_set = true, .cpu = 1, .weight_set = true, .weight = 1};
	struct source source = {.burst = 50, .interval = 10 * NSEC_PER_USEC, .count = 100};
	struct sink sink = {0};
	struct runner *hog;
	struct error err = {0};
	struct scene s;

	scene_begin_cpus(&s, true, 7, CPUS,
			 (struct engine_config){.deferral = deferral, .looped_ticks = 9});
	cpuset_add(&to_1.rps_cpus, 1);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &to_1, NULL, NULL), 0);
	assert_int_equal(engine_queue_set(s.engine, "b", -1, &on_1, NULL, NULL), 0);
	assert_int_equal(engine_queue_set(s.engine, "backlog", 1,
					  &(struct queue_settings){.weight_set = true, .weight = 1},
					  NULL, NULL),
			 0);
	config.arg = &s;
	config.placement = (struct placement){.class = RUNNER_FIFO, .level = level};
	cpuset_add(&config.placement.cpus, 1);
	assert_int_equal(runner_start(s.machine, &config, &hog, NULL), 0);
	source.scene = sink.scene = &s;
	source.port = s.a;
	sink.port = s.b;
	sink_start(&sink);
	source_start(&source);
	source_stop(&source);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(s.a, steered), 100);
	assert_true(sink.received < 100);
	if (level < 50) {
		cpus_are(&s, "0,2-3");
		scene_run(&s, NSEC_PER_MSEC);
		runners_are(&s, "0,2-3");
		assert_int_equal(sink.received, 100);
	} else {
		/* Nobody can be asked to give up what it holds: it fails, and all is as it was. */
		assert_int_equal(cpus_set(&s, "0,2-3", &err), -ETIMEDOUT);
		assert_memory_equal(err.text, "cpus stay 0-3: ", 15);
		runners_are(&s, "0-3");
		assert_int_equal(cpu_of(s.b), 1);
	}
	runner_stop(hog);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_int_equal(sink.received, 100);
	assert_int_equal(sink.disorder, 0);
	sink_stop(&sink);
	cpus_are(&s, "");
	assert_int_equal(DEFERRAL_POLICY(atomic_load(&s.engine->softnet[1].deferral)), deferral);
	scene_end(&s);
}

static void from_a_hog(void **state)
{
	(void)state;
	for (unsigned policy = 0; policy < DEFERRAL_MAX; policy++) {
		if (policy != DEFERRAL_NEVER)
			hogged((enum deferral)policy, 40);
		hogged((enum deferral)policy, 90);
	}
}

/* On the host, with threads: two CPUs, in turn, under load. */
static void on_the_host(void **state)
{
	struct queue_settings steering = {.rps_cpus_set = true};
	struct flood flood;
	struct cpuset there;
	unsigned first, second;
	struct scene s;

	(void)state;
	scene_begin(&s, false, 0, POLLER_SOFTIRQ);
	machine_cpus(s.machine, &there);
	first = cpuset_next(&there, 0);
	second = cpuset_next(&there, first + 1);
	if (second < CPU_MAX) {
		cpuset_add(&steering.rps_cpus, first);
		cpuset_add(&steering.rps_cpus, second);
		scene_set(&s, "a", -1, steering);
		flood_start(&s, &flood, 20000);
		for (int i = 0; i < 40; i++) {
			char list[16];

			snprintf(list, sizeof(list), "%u", i % 4 < 2 ? first : second);
			cpus_are(&s, i % 2 ? list : "");
			scene_run(&s, NSEC_PER_MSEC);
		}
		flood_end(&s, &flood, 20000);
	}
	cpus_are(&s, "");
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),	  cmocka_unit_test(settings_hold_over_pollers),
		cmocka_unit_test(threads_follow), cmocka_unit_test(case_18_cpu_taken_away),
		cmocka_unit_test(from_a_hog),	  cmocka_unit_test(on_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets and removals that fail: within their bounds, and with everything as it was. */
#include "scene.h"

#include <core/automatic.h>
#include <core/engine.h>

static struct step hog_step(void *arg)
{
	struct scene *s = arg;

	machine_charge(s->machine, 100 * NSEC_PER_USEC);
	return STEP(STEP_AGAIN);
}

/* Keeps an engine CPU from everybody: what is scheduled there is not polled. */
static struct runner *hog_start(struct scene *s, unsigned cpu)
{
	struct runner_config config = {
		.name = "hog",
		.step = hog_step,
		.arg = s,
		.placement = {.class = RUNNER_FIFO, .level = 90},
	};
	struct runner *hog;

	cpuset_add(&config.placement.cpus, cpu);
	assert_int_equal(runner_start(s->machine, &config, &hog, NULL), 0);
	scene_run(s, NSEC_PER_MSEC);
	return hog;
}

static struct port *port_of(struct scene *s, const char *spec)
{
	struct port_config config;
	struct error err = {0};
	struct port *port;

	assert_int_equal(port_config_parse(spec, &config, &err), 0);
	if (engine_port_add(s->engine, &config, &port, &err))
		fail_msg("%s", err.text);
	return port;
}

/* The last of four queues is not polled, so a set of all of them fails: then none has changed. */
static void second_queue(enum poller from, enum poller to)
{
	struct queue_settings on_cpu = {.cpu_set = true};
	struct queue_settings settings = {
		.poller_set = true,
		.poller = to,
		.weight_set = true,
		.weight = 7,
		.idle_suspend_set = true,
		.idle_suspend_usecs = 70,
	};
	struct error err = {0};
	struct runner *hog;
	struct port *port;
	struct scene s;
	int64_t start;

	scene_begin_with(&s, true, 1, (struct engine_config){.poller = from});
	port = port_of(&s, "mem:m,queues=4");
	for (int q = 0; q < 4; q++) {
		on_cpu.cpu = q == 3;
		assert_int_equal(engine_queue_set(s.engine, "m", q, &on_cpu, NULL, NULL), 0);
	}
	hog = hog_start(&s, 1);
	napi_schedule(port->queue[3].napi);
	start = machine_now(s.machine);
	assert_int_equal(engine_queue_set(s.engine, "m", -1, &settings, NULL, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "m/3: "));
	assert_true(machine_now(s.machine) - start < 2 * NSEC_PER_SEC);
	for (int q = 0; q < 4; q++) {
		assert_int_equal(napi_poller(port->queue[q].napi), from);
		assert_int_equal(napi_weight(port->queue[q].napi), NAPI_WEIGHT_DEFAULT);
	}
	assert_null(scene_logged(&s, "could not be undone"));
	runner_stop(hog);
	scene_run(&s, NSEC_PER_SEC);
	/* Nothing of it is kept either: the port comes back as it was. */
	assert_int_equal(engine_port_remove(s.engine, port, NULL), 0);
	port = port_of(&s, "mem:m,queues=4");
	for (int q = 0; q < 4; q++) {
		assert_int_equal(napi_poller(port->queue[q].napi), from);
		assert_int_equal(napi_weight(port->queue[q].napi), NAPI_WEIGHT_DEFAULT);
	}
	assert_int_equal(engine_queue_set(s.engine, "m", -1, &settings, NULL, NULL), 0);
	for (int q = 0; q < 4; q++) {
		assert_int_equal(napi_poller(port->queue[q].napi), to);
		assert_int_equal(napi_weight(port->queue[q].napi), 7);
	}
	scene_end(&s);
}

static void a_failing_queue_undoes_the_others(void **state)
{
	(void)state;
	second_queue(POLLER_SOFTIRQ, POLLER_THREAD);
	second_queue(POLLER_SOFTIRQ, POLLER_WORKQUEUE);
	second_queue(POLLER_SOFTIRQ, POLLER_BUSY_POLL);
	second_queue(POLLER_BUSY_POLL, POLLER_SOFTIRQ);
}

/* Poller auto goes on where it was: with its poller, its home, and what it has found out. */
static void a_failing_set_leaves_auto_alone(void **state)
{
	struct queue_settings on_cpu = {.cpu_set = true};
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct queue_settings automatic = {.poller_set = true, .poller = POLLER_AUTO};
	struct queue_settings settings = {
		.poller_set = true, .poller = POLLER_WORKQUEUE, .cpu_set = true, .cpu = 1};
	struct automatic_napi before;
	struct runner *hog;
	struct port *port;
	struct napi *napi;
	struct scene s;

	(void)state;
	scene_begin_with(&s, true, 6, (struct engine_config){.poller = POLLER_SOFTIRQ});
	port = port_of(&s, "mem:m,queues=2");
	for (int q = 0; q < 2; q++) {
		on_cpu.cpu = (unsigned)q;
		assert_int_equal(engine_queue_set(s.engine, "m", q, &on_cpu, NULL, NULL), 0);
	}
	assert_int_equal(engine_queue_set(s.engine, "m", 0, &thread, NULL, NULL), 0);
	assert_int_equal(engine_queue_set(s.engine, "m", 0, &automatic, NULL, NULL), 0);
	napi = port->queue[0].napi;
	napi->automatic->choice.held[POLLER_BUSY_POLL] = 100;
	hog = hog_start(&s, 1);
	napi_schedule(port->queue[1].napi);
	before = *napi->automatic;
	assert_int_equal(engine_queue_set(s.engine, "m", -1, &settings, NULL, NULL), -ETIMEDOUT);
	assert_non_null(napi->automatic);
	assert_memory_equal(&napi->automatic->choice, &before.choice, sizeof(before.choice));
	assert_ptr_equal(napi->automatic->home, before.home);
	assert_int_equal(napi_poller(napi), POLLER_THREAD);
	assert_int_equal(napi->record->poller_asked, POLLER_AUTO);
	assert_null(scene_logged(&s, "could not be undone"));
	/* The other way round: one that was to be auto's is not. */
	runner_stop(hog);
	scene_run(&s, NSEC_PER_SEC);
	assert_int_equal(engine_queue_set(s.engine, "m", 0, &thread, NULL, NULL), 0);
	hog = hog_start(&s, 1);
	napi_schedule(port->queue[1].napi);
	settings = automatic;
	settings.cpu_set = true;
	assert_int_equal(engine_queue_set(s.engine, "m", -1, &settings, NULL, NULL), -ETIMEDOUT);
	for (int q = 0; q < 2; q++)
		assert_null(port->queue[q].napi->automatic);
	assert_int_equal(napi->record->poller_asked, POLLER_THREAD);
	runner_stop(hog);
	scene_end(&s);
}

/* The place that a set took from an absent port is given back, and nothing is said of it. */
static void a_failing_set_forgets_nobody(void **state)
{
	struct queue_settings weight = {.weight_set = true, .weight = 3};
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct runner *hog[2];
	struct port *port;
	struct scene s;
	char name[16];

	(void)state;
	scene_begin(&s, true, 2, POLLER_SOFTIRQ);
	for (int i = 0; i < 1024; i++) {
		snprintf(name, sizeof(name), "gone%d", i);
		assert_int_equal(engine_queue_set(s.engine, name, -1, &weight, NULL, NULL), 0);
	}
	hog[0] = hog_start(&s, 0);
	hog[1] = hog_start(&s, 1);
	napi_schedule(s.a->queue[0].napi);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &thread, NULL, NULL), -ETIMEDOUT);
	assert_null(scene_logged(&s, "is forgotten"));
	runner_stop(hog[0]);
	runner_stop(hog[1]);
	port = port_of(&s, "mem:gone0");
	assert_int_equal(napi_weight(port->queue[0].napi), 3);
	scene_end(&s);
}

/* Each poll takes 2 s, one after the other: four of them are more than a removal waits for. */
static void removal_is_bounded_over_all_queues(void **state)
{
	struct engine_config config = {.poller = POLLER_SOFTIRQ, .poll_ns = 2 * NSEC_PER_SEC};
	struct error err = {0};
	struct port *port;
	struct scene s;
	int64_t start;

	(void)state;
	cpuset_add(&config.cpus, 0);
	scene_begin_with(&s, true, 3, config);
	scene_run(&s, 20 * NSEC_PER_SEC);
	port = port_of(&s, "mem:m,queues=4");
	start = machine_now(s.machine);
	assert_int_equal(engine_port_remove(s.engine, port, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "port m: a poll of queue "));
	assert_true(machine_now(s.machine) - start < 7 * NSEC_PER_SEC);
	/* It is there, disabled as far as that got; and goes when its polls have ended. */
	assert_ptr_equal(engine_port_find(s.engine, "m"), port);
	assert_true(napi_disabled(port->queue[0].napi));
	assert_false(napi_disabled(port->queue[3].napi));
	scene_run(&s, 20 * NSEC_PER_SEC);
	assert_int_equal(engine_port_remove(s.engine, port, NULL), 0);
	scene_end(&s);
}

/*
 * A port whose TX NAPIs cannot be made is taken back, also while a backlog that its packets would
 * go to cannot be asked for them.
 */
static void a_refused_port_leaves_nothing(void **state)
{
	struct queue_settings steered = {.rps_cpus_set = true};
	struct port_config config;
	struct error err = {0};
	struct runner *hog;
	struct port *port;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 5, POLLER_SOFTIRQ);
	cpuset_add(&steered.rps_cpus, 1);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &steered, NULL, NULL), 0);
	assert_int_equal(port_config_parse("mem:m,name=a-name-of-twenty-nine-bytes-in,tx_napi=yes",
					   &config, NULL),
			 0);
	assert_int_equal(engine_queue_set(s.engine, config.name, -1, &steered, NULL, NULL), 0);
	hog = hog_start(&s, 1);
	napi_schedule(engine_port_find(s.engine, "backlog")->queue[1].napi);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "with tx_napi=yes a name has"));
	for (uint32_t i = 0; i < 64; i++)
		if (engine_port_at(s.engine, i))
			assert_string_not_equal(engine_port_at(s.engine, i)->name, config.name);
	runner_stop(hog);
	scene_end(&s);
}

/* Each wrong value beside a right one: it is named, and the right one is not in force either. */
static void names_wrong_values(void **state)
{
	struct queue_settings wrong[] = {
		{.weight_set = true, .weight = 0},
		{.weight_set = true, .weight = 65},
		{.poller_set = true, .poller = POLLER_MAX},
		{.poller_set = true, .poller = (enum poller) - 1},
		{.cpu_set = true, .cpu = 77},
		{.cpus_set = true},
		{.class_set = true, .placement = {.class = RUNNER_FIFO}},
		{.class_set = true, .placement = {.class = RUNNER_FIFO, .level = 100}},
		{.class_set = true, .placement = {.class = RUNNER_FAIR, .level = 20}},
		{.class_set = true, .placement = {.class = RUNNER_FAIR, .level = -21}},
		{.class_set = true, .placement = {.class = (enum runner_class)7}},
	};
	static const struct {
		int rc;
		const char *says;
	} wanted[] = {
		{-ERANGE, "weight 0: must be 1 to 64"},
		{-ERANGE, "weight 65: must be 1 to 64"},
		{-EINVAL, "no such poller; there are: "},
		{-EINVAL, "no such poller; there are: "},
		{-EINVAL, "cpu 77: not an engine CPU; those are 0-1"},
		{-EINVAL, "cpus: CPU 9 cannot be used: this process may run on CPUs 0-1"},
		{-ERANGE, "priority 0: must be 1 to 99"},
		{-ERANGE, "priority 100: must be 1 to 99"},
		{-ERANGE, "nice 20: must be -20 to 19"},
		{-ERANGE, "nice -21: must be -20 to 19"},
		{-EINVAL, "no such class; there are: fair, fifo"},
	};
	struct port *port;
	struct scene s;

	(void)state;
	cpuset_add(&wrong[5].placement.cpus, 1);
	cpuset_add(&wrong[5].placement.cpus, 9);
	scene_begin(&s, true, 4, POLLER_SOFTIRQ);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		static const char *const ports[] = {"a", "absent"};
		struct queue_settings set = wrong[i];

		set.idle_suspend_set = true;
		set.idle_suspend_usecs = 123;
		for (int k = 0; k < 2; k++) {
			struct error err = {0};

			assert_int_equal(engine_queue_set(s.engine, ports[k], -1, &set, NULL, &err),
					 wanted[i].rc);
			assert_memory_equal(err.text, wanted[i].says, strlen(wanted[i].says));
		}
	}
	port = port_of(&s, "mem:absent");
	for (int k = 0; k < 2; k++) {
		const struct queue_record *record =
			(const void *)((const char *)(k ? port : s.a)->queue[0].transmit -
				       offsetof(struct queue_record, transmit));

		assert_int_equal(record->idle_suspend, 0);
		assert_int_equal(record->weight, NAPI_WEIGHT_DEFAULT);
	}
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failing_queue_undoes_the_others),
		cmocka_unit_test(a_failing_set_leaves_auto_alone),
		cmocka_unit_test(a_failing_set_forgets_nobody),
		cmocka_unit_test(removal_is_bounded_over_all_queues),
		cmocka_unit_test(a_refused_port_leaves_nothing),
		cmocka_unit_test(names_wrong_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

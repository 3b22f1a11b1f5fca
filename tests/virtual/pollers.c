/* SPDX-License-Identifier: BSD-2-Clause */
/* What is particular to a poller: the workqueue's isolation, busy-poll's fairness and rest. */
#include "scene.h"

#include <core/napi.h>
#include <napier/busy_poll.h>
#include <poller/workqueue.h>

/* A port that always has full polls. */
static struct port *saturated(struct scene *s, const char *name)
{
	struct port *port = scene_port(s, name, NULL);

	scene_circle(s, port, 256);
	return port;
}

/* More saturated ports than workers, or than busy runners: all get their turn. */
static void fair_among_ports(enum poller poller)
{
	uint64_t before[5], least = UINT64_MAX, most = 0;
	struct port *port[5];
	struct scene s;

	/* All on one engine CPU and with two workers, so that they have to share. */
	scene_begin_with(&s, true, 1, (struct engine_config){.poller = poller, .workers = 2});
	for (int i = 0; i < 5; i++) {
		struct queue_settings on_cpu_0 = {.cpu_set = true};
		char name[4];

		snprintf(name, sizeof(name), "c%d", i);
		assert_int_equal(engine_queue_set(s.engine, name, -1, &on_cpu_0, NULL, NULL), 0);
		port[i] = saturated(&s, name);
	}
	scene_run(&s, 20 * NSEC_PER_MSEC);
	for (int i = 0; i < 5; i++)
		before[i] = PORT_SUM(port[i], received);
	scene_run(&s, 200 * NSEC_PER_MSEC);
	for (int i = 0; i < 5; i++) {
		uint64_t received = PORT_SUM(port[i], received) - before[i];

		least = received < least ? received : least;
		most = received > most ? received : most;
	}
	assert_true(least > 0);
	assert_true(most - least <= most / 10);
	for (int i = 0; i < 5; i++)
		scene_calm(&s, port[i]);
	scene_end(&s);
}

static void turns_are_fair(void **state)
{
	(void)state;
	fair_among_ports(POLLER_SOFTIRQ);
	fair_among_ports(POLLER_WORKQUEUE);
	fair_among_ports(POLLER_BUSY_POLL);
}

/* The time from a packet's way in at a to its way out at b. */
static int64_t latency(struct scene *s, struct context *context)
{
	int64_t sent = machine_now(s->machine), took;
	struct packet *p;

	assert_int_equal(packet_alloc(&context->cache, &p, 1), 1);
	memset(p->data, 2, 60);
	p->len = 60;
	assert_int_equal(mem_port_send(s->a, &p, 1), 1);
	while (!mem_port_receive(s->b, &p, 1)) {
		scene_run(s, NSEC_PER_USEC);
		assert_true(machine_now(s->machine) - sent < NSEC_PER_SEC);
	}
	took = machine_now(s->machine) - sent;
	packet_free(&context->cache, &p, 1);
	return took;
}

/* The worst of 500, on a port with little to do. */
static int64_t worst_latency(enum poller poller, bool beside_a_saturated_one)
{
	struct port *busy = NULL;
	struct context *context;
	int64_t worst = 0;
	struct scene s;

	scene_begin_with(&s, true, 2, (struct engine_config){.poller = poller, .workers = 2});
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	if (beside_a_saturated_one)
		busy = saturated(&s, "busy");
	for (int i = 0; i < 500; i++) {
		int64_t took = latency(&s, context);

		if (took > worst)
			worst = took;
		scene_run(&s, 37 * NSEC_PER_USEC);
	}
	engine_context_close(context);
	if (busy)
		scene_calm(&s, busy);
	scene_end(&s);
	return worst;
}

/*
 * Isolation. The other port's packets wait for one poll of the saturated one (64 packets at 100 ns)
 * at most, plus the wake-ups that both have.
 */
static void workqueue_isolates_ports(void **state)
{
	int64_t alone = worst_latency(POLLER_WORKQUEUE, false);
	int64_t beside = worst_latency(POLLER_WORKQUEUE, true);

	(void)state;
	print_message("  worst: alone %ld us, beside a saturated port %ld us\n",
		      (long)(alone / NSEC_PER_USEC), (long)(beside / NSEC_PER_USEC));
	assert_true(beside <= 2 * alone + 10 * NSEC_PER_USEC);
}

/* An ordinary program beside as many saturated ports as there are workers, on the same CPUs. */
static struct step program_step(void *arg)
{
	uint64_t *steps = arg;

	++*steps;
	return STEP(STEP_YIELD);
}

static void workqueue_leaves_time_for_programs(void **state)
{
	struct runner_config config = {.name = "program", .step = program_step};
	struct runner *program;
	struct port *port[2];
	uint64_t steps = 0;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 3, POLLER_WORKQUEUE);
	port[0] = saturated(&s, "c0");
	port[1] = saturated(&s, "c1");
	config.arg = &steps;
	assert_int_equal(runner_start(s.machine, &config, &program, NULL), 0);
	scene_run(&s, 200 * NSEC_PER_MSEC);
	/* A step takes 500 ns and up to 20% more; a fifth of one CPU at least. */
	print_message("  the program had %lu%% of a CPU\n", (unsigned long)(steps * 600 / 2000000));
	assert_true(steps * 600 >= 200 * NSEC_PER_MSEC / 5);
	runner_stop(program);
	scene_calm(&s, port[0]);
	scene_calm(&s, port[1]);
	scene_end(&s);
}

/* Workers are there while a NAPI uses them, and as many as asked. */
static void workers_come_and_go(void **state)
{
	struct scene s;

	(void)state;
	scene_begin_with(&s, true, 4, (struct engine_config){.workers = 3});
	for (int i = 0; i < 100; i++) {
		assert_int_equal(napi_poller_set(s.a->queue[0].napi, POLLER_WORKQUEUE, NSEC_PER_SEC,
						 NULL, NULL),
				 0);
		assert_int_equal(napi_poller_set(s.b->queue[0].napi, POLLER_WORKQUEUE, NSEC_PER_SEC,
						 NULL, NULL),
				 0);
		scene_run(&s, i * NSEC_PER_USEC);
		assert_int_equal(napi_poller_set(s.a->queue[0].napi, POLLER_SOFTIRQ, NSEC_PER_SEC,
						 NULL, NULL),
				 0);
		assert_int_equal(napi_poller_set(s.b->queue[0].napi, POLLER_BUSY_POLL, NSEC_PER_SEC,
						 NULL, NULL),
				 0);
	}
	scene_end(&s); /* the machine refuses to end with runners left */
}

/*
 * A worker that went idle while the other took both saturated NAPIs, which are not dispatched
 * again: the one that is put back has to wake it. It happens between two instructions, so here it
 * is done by hand: the worker is not in `idle` while the second NAPI is dispatched.
 */
static void an_idle_worker_takes_over(void **state)
{
	struct engine_config config = {.poller = POLLER_WORKQUEUE, .workers = 2};
	struct runner_usage before[2], after[2];
	struct port *port[2];
	struct workqueue *wq;
	struct scene s;
	uint64_t idle;

	(void)state;
	scene_begin_with(&s, true, 6, config);
	wq = s.engine->workqueue;
	port[0] = saturated(&s, "c0");
	scene_run(&s, NSEC_PER_MSEC);
	idle = atomic_exchange(&wq->idle, 0);
	assert_int_equal(__builtin_popcountll(idle), 1);
	port[1] = saturated(&s, "c1");
	scene_run(&s, 20 * NSEC_PER_MSEC);
	assert_true(PORT_SUM(port[1], polls) > 10);
	atomic_fetch_or(&wq->idle, idle);
	for (int i = 0; i < 2; i++)
		runner_usage(wq->worker[i].runner, &before[i]);
	scene_run(&s, 50 * NSEC_PER_MSEC);
	for (int i = 0; i < 2; i++) {
		runner_usage(wq->worker[i].runner, &after[i]);
		assert_true(after[i].cpu_time - before[i].cpu_time > 10 * NSEC_PER_MSEC);
	}
	scene_calm(&s, port[0]);
	scene_calm(&s, port[1]);
	scene_end(&s);
}

/* Without idle_suspend it polls on and on; with it, it rests, and the first packet wakes it. */
static void busy_poll_rests(void **state)
{
	struct queue_settings suspend = {.idle_suspend_set = true, .idle_suspend_usecs = 500};
	struct source source = {.burst = 1, .interval = NSEC_PER_MSEC, .count = 50};
	struct sink sink = {0};
	struct scene s;
	uint64_t before;

	(void)state;
	scene_begin(&s, true, 5, POLLER_BUSY_POLL);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	before = PORT_SUM(s.a, polls);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_true(PORT_SUM(s.a, polls) - before > 1000);

	assert_int_equal(engine_queue_set(s.engine, "a", -1, &suspend, NULL, NULL), 0);
	assert_int_equal(engine_queue_set(s.engine, "b", -1, &suspend, NULL, NULL), 0);
	scene_run(&s, 5 * NSEC_PER_MSEC);
	before = PORT_SUM(s.a, polls);
	scene_run(&s, NSEC_PER_SEC);
	assert_int_equal(PORT_SUM(s.a, polls), before);
	assert_int_equal(napi_poller(s.a->queue[0].napi), POLLER_BUSY_POLL);

	/* A packet a millisecond: it polls for half of it, and rests for the other half. */
	scene_pass(&s, &source, &sink);
	assert_int_equal(sink.received, 50);
	assert_in_range(PORT_SUM(s.a, completes), 45, 60);
	scene_end(&s);
}

/*
 * An interrupt for busy/N is seen between its steps, which are 2 ms long while something polls. So
 * nobody rests beside one that does not, and who has got up first looks after those that still
 * rest.
 */
static void busy_poll_rests_as_one(void **state)
{
	struct engine_config config = {.poller = POLLER_BUSY_POLL, .idle_suspend_usecs = 100};
	struct queue_settings on_cpu_0 = {.cpu_set = true};
	struct source source = {.burst = 1, .interval = 5 * NSEC_PER_USEC};
	struct context *context;
	struct scene s;
	uint64_t rests;

	(void)state;
	scene_begin_with(&s, true, 7, config);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	source.scene = &s;
	source.port = scene_port(&s, "c", NULL);
	for (int i = 0; i < 3; i++) {
		const char name[] = {"abc"[i], 0};

		assert_int_equal(engine_queue_set(s.engine, name, -1, &on_cpu_0, NULL, NULL), 0);
	}
	source_start(&source);
	scene_run(&s, 20 * NSEC_PER_USEC);
	latency(&s, context);
	rests = PORT_SUM(s.a, completes);
	for (int i = 0; i < 50; i++) {
		scene_run(&s, NSEC_PER_MSEC);
		assert_in_range(latency(&s, context), 0, 50 * NSEC_PER_USEC);
	}
	assert_int_equal(PORT_SUM(s.a, completes), rests);
	source_stop(&source);
	for (int i = 0; i < 50; i++) {
		scene_run(&s, NSEC_PER_MSEC);
		assert_true(PORT_SUM(s.a, completes) > rests);
		rests = PORT_SUM(s.a, completes);
		source_start(&source);
		scene_run(&s, 20 * NSEC_PER_USEC);
		assert_in_range(latency(&s, context), 0, 50 * NSEC_PER_USEC);
		source_stop(&source);
	}
	engine_context_close(context);
	scene_end(&s);
}

static bool not_mine(void *arg)
{
	(void)arg;
	return false;
}

/*
 * Ten packets come, and an application looks once, for `budget` of them. When the NAPI is polled
 * should it not come back, in ns.
 */
static int64_t looks(struct scene *s, uint32_t budget, bool (*loop_end)(void *arg))
{
	const struct busy_poll how = {.budget = budget, .prefer = true};
	struct napi *napi = s->a->queue[0].napi;
	struct packet *v[PACKET_VECTOR_MAX];
	struct context *context;
	int64_t when;

	assert_int_equal(engine_context_open(s->engine, &context), 0);
	stamped_send(s->a, context, 10);
	assert_int_equal(napi_busy_loop(napi, context, &how, loop_end, NULL),
			 budget < 10 ? budget : 10);
	when = atomic_load(&napi->timer_at) - machine_now(s->machine);
	assert_true(napi->irq_masked);
	scene_run(s, 100 * NSEC_PER_MSEC);
	assert_false(napi->irq_masked);
	packet_free(&context->cache, v, mem_port_receive(s->b, v, PACKET_VECTOR_MAX));
	engine_context_close(context);
	return when;
}

/* Interrupts are suspended for who has got something; who has not goes to sleep. */
static void app_suspends_with_what_it_wants(void **state)
{
	const struct queue_settings settings = {
		.napi_defer_hard_irqs_set = true,
		.napi_defer_hard_irqs = 2,
		.gro_flush_timeout_set = true,
		.gro_flush_timeout = NSEC_PER_MSEC,
		.irq_suspend_timeout_set = true,
		.irq_suspend_timeout = 20 * NSEC_PER_MSEC,
	};
	struct scene s;

	(void)state;
	scene_virtual_only();
	scene_begin(&s, true, 9, POLLER_APP);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
	scene_run(&s, 100 * NSEC_PER_MSEC);
	assert_int_equal(looks(&s, 64, NULL), 20 * NSEC_PER_MSEC);
	assert_int_equal(looks(&s, 64, not_mine), NSEC_PER_MSEC);
	assert_int_equal(looks(&s, 64, NULL), 20 * NSEC_PER_MSEC);
	/* With packets left, too: it is expected back. */
	assert_int_equal(looks(&s, 4, NULL), 20 * NSEC_PER_MSEC);
	assert_int_equal(looks(&s, 4, not_mine), NSEC_PER_MSEC);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_fair),
		cmocka_unit_test(workqueue_isolates_ports),
		cmocka_unit_test(workqueue_leaves_time_for_programs),
		cmocka_unit_test(workers_come_and_go),
		cmocka_unit_test(an_idle_worker_takes_over),
		cmocka_unit_test(busy_poll_rests),
		cmocka_unit_test(busy_poll_rests_as_one),
		cmocka_unit_test(app_suspends_with_what_it_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

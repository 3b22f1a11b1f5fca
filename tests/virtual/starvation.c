/* SPDX-License-Identifier: BSD-2-Clause */
/* Starvation and stalls: cases 9 to 12 and 15, softirq's limits and its hand-over to ksoftirqd. */
#include "scene.h"

static const struct cpu_counters *cpu_counters(struct scene *s, uint32_t i)
{
	const struct counters_file *file = engine_counters(s->engine);
	const struct cpu_record *record =
		(const struct cpu_record *)((const char *)file + file->cpu_offset);

	return &record[i].counters;
}

static uint64_t cpu_sum(struct scene *s, size_t offset)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < engine_counters(s->engine)->cpus; i++)
		sum += counter_read((const counter *)((const char *)cpu_counters(s, i) + offset));
	return sum;
}
#define CPU_SUM(s, field) cpu_sum(s, offsetof(struct cpu_counters, field))

/*
 * A handler whose packets come straight back: every poll finds `refill` more, so there is always
 * work, and with less than the weight the budget never runs out.
 */
struct endless {
	struct handler handler;
	int64_t packet_ns; /* what one costs, on top */
};

static void endless_input(struct handler *handler, struct context *context, struct port *in,
			  struct packet **v, uint32_t n)
{
	struct endless *endless = (struct endless *)handler;
	uint32_t back;

	machine_charge(in->machine, endless->packet_ns * n);
	back = mem_port_send(in, v, n);
	counter_add(&context->counters->transmitted, back);
	packet_drop(context, v + back, n - back, DROP_TX_FULL);
}

static const struct handler_ops endless_ops = {.name = "endless", .input = endless_input};

static void set_poller(struct scene *s, enum poller poller)
{
	assert_int_equal(napi_poller_set(s->a->queue[0].napi, poller, NSEC_PER_SEC, NULL, NULL), 0);
}

/* `packets` go round in port a for ever; the control side stays within its bound (I5). */
static void endless_work(enum poller poller, uint32_t packets, int64_t packet_ns, int64_t bound)
{
	struct endless endless = {.handler.ops = &endless_ops, .packet_ns = packet_ns};
	struct source source = {.burst = 1, .interval = 1, .count = packets};
	struct scene s;
	int64_t before;

	scene_begin(&s, true, packets, poller);
	source.scene = &s;
	source.port = s.a;
	assert_int_equal(engine_handler_set(s.engine, s.a, &endless.handler, NULL), 0);
	source_start(&source);
	source_stop(&source);
	scene_run(&s, 20 * NSEC_PER_MSEC);
	assert_true(PORT_SUM(s.a, received) > packets);

	before = machine_now(s.machine);
	assert_int_equal(napi_disable(s.a->queue[0].napi, NSEC_PER_SEC), 0);
	assert_true(machine_now(s.machine) - before <= bound);
	assert_int_equal(napi_enable(s.a->queue[0].napi), 0);
	scene_run(&s, NSEC_PER_MSEC);
	for (unsigned to = 0; to < POLLER_MAX; to++) {
		before = machine_now(s.machine);
		set_poller(&s, (enum poller)to);
		assert_true(machine_now(s.machine) - before <= bound);
		scene_run(&s, NSEC_PER_MSEC);
	}
	assert_int_equal(engine_handler_set(s.engine, s.a, s.cross, NULL), 0);
	scene_end(&s);
}

/* Case 9: just under the weight. */
static void under_the_weight(enum poller poller)
{
	endless_work(poller, 63, 0, 3 * NSEC_PER_MSEC);
}

static void case_9_never_a_full_budget(void **state)
{
	(void)state;
	over_pollers(under_the_weight);
}

/* Case 10: endless full budgets. */
static void full_budgets(enum poller poller)
{
	endless_work(poller, 640, 0, 3 * NSEC_PER_MSEC);
}

static void case_10_always_a_full_budget(void **state)
{
	(void)state;
	over_pollers(full_budgets);
}

/*
 * Case 11: 1 ms a packet. A poll is up to 64 ms then, and ends a round by time: the bound is one
 * poll beyond the round's limit, not 300 packets.
 */
static void slow_handler(enum poller poller)
{
	endless_work(poller, 64, NSEC_PER_MSEC, 2 * 64 * NSEC_PER_MSEC + 20 * NSEC_PER_MSEC);
}

static void case_11_slow_handler(void **state)
{
	(void)state;
	over_pollers(slow_handler);
}

/* Case 12: a bridge whose two ports are wired together. An ordinary application goes on. */
static struct step application_step(void *arg)
{
	uint64_t *steps = arg;

	++*steps;
	return STEP(STEP_YIELD);
}

static void looped(enum poller poller)
{
	struct runner_config config = {.name = "application", .step = application_step};
	struct source source = {.burst = 64, .interval = 1, .count = 512};
	struct runner *runner;
	uint64_t steps = 0, before;
	struct scene s;

	scene_begin(&s, true, 12, poller);
	source.scene = &s;
	source.port = s.a;
	config.arg = &steps;
	assert_int_equal(mem_port_wire(s.a, s.b), 0);
	assert_int_equal(runner_start(s.machine, &config, &runner, NULL), 0);
	source_start(&source);
	source_stop(&source);
	scene_run(&s, 50 * NSEC_PER_MSEC);
	before = steps;
	scene_run(&s, 100 * NSEC_PER_MSEC);
	/* It has at least a fifth of one of the two CPUs: 500 ns a step. */
	assert_true(steps - before > 100 * 1000 * 2 / 5);
	assert_true(PORT_SUM(s.a, received) > 10000);
	set_poller(&s, (enum poller)((poller + 1) % POLLER_MAX));
	runner_stop(runner);
	assert_int_equal(engine_handler_set(s.engine, s.a, NULL, NULL), 0);
	scene_end(&s);
}

static void case_12_packet_loop(void **state)
{
	(void)state;
	over_pollers(looped);
}

/* Case 15: what keeps its CPU is of a higher class, so the NAPI's runner never runs. */
static struct step hog_step(void *arg)
{
	struct scene *s = arg;

	machine_charge(s->machine, 100 * NSEC_PER_USEC);
	return STEP(STEP_AGAIN);
}

static uint64_t stuck_count(struct scene *s)
{
	const struct counters_file *file = engine_counters(s->engine);
	const struct queue_record *record =
		(const struct queue_record *)((const char *)file + file->queue_offset);

	assert_string_equal(record->port_name, "a");
	return counter_read(&record->stuck);
}

static void stuck(enum poller poller)
{
	struct runner_config config = {.name = "hog", .step = hog_step};
	struct queue_settings on_cpu_0 = {.cpu_set = true, .cpus_set = true};
	struct source source = {.burst = 1, .interval = 10 * NSEC_PER_USEC, .count = 5};
	struct runner *hog;
	struct scene s;

	scene_begin(&s, true, 15, poller);
	cpuset_add(&on_cpu_0.placement.cpus, 0);
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &on_cpu_0, NULL, NULL), 0);
	source.scene = &s;
	source.port = s.a;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, 5);
	scene_run(&s, 3 * NSEC_PER_SEC);
	assert_null(scene_logged(&s, "not polled")); /* idle is not stuck */

	config.arg = &s;
	config.placement = on_cpu_0.placement;
	config.placement.class = RUNNER_FIFO;
	config.placement.level = 90;
	assert_int_equal(runner_start(s.machine, &config, &hog, NULL), 0);
	scene_run(&s, NSEC_PER_MSEC);
	napi_schedule(s.a->queue[0].napi);
	scene_run(&s, 3 * NSEC_PER_SEC);
	assert_int_equal(stuck_count(&s), 1); /* said once, not every second */
	assert_non_null(scene_logged(&s, "a/0: scheduled, but not polled"));
	assert_non_null(scene_logged(&s, poller == POLLER_THREAD ? "poller thread, runner napi/a-0"
								 : "poller softirq, runner irq/0"));
	runner_stop(hog);
	scene_run(&s, 3 * NSEC_PER_SEC);
	assert_int_equal(stuck_count(&s), 1);
	scene_end(&s);
}

static void case_15_watchdog(void **state)
{
	(void)state;
	over_pollers(stuck);
}

/*
 * Softirq's limits, exactly. One NAPI that always has a full vector: a round is 300 packets, so
 * five polls (320); ten rounds, then ksoftirqd has it.
 */
static void rounds_and_restarts(void **state)
{
	struct endless endless = {.handler.ops = &endless_ops};
	struct source source = {.burst = 64, .interval = 1, .count = 640};
	struct scene s;

	(void)state;
	scene_begin(&s, true, 20, POLLER_SOFTIRQ);
	source.scene = &s;
	source.port = s.a;
	assert_int_equal(napi_disable(s.a->queue[0].napi, NSEC_PER_SEC), 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, &endless.handler, NULL), 0);
	source_start(&source);
	source_stop(&source);
	assert_int_equal(napi_enable(s.a->queue[0].napi), 0);
	/* 5 polls of 64 packets at 100 ns are 32 us: ten rounds end before 2 ms. */
	scene_run(&s, 320 * NSEC_PER_USEC);
	assert_int_equal(CPU_SUM(&s, rounds), 1 + 10); /* one when it was first enabled, empty */
	assert_int_equal(PORT_SUM(s.a, polls), 1 + 50);
	assert_int_equal(PORT_SUM(s.a, received), 50 * 64);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_BUDGET]), 10);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_TIME]), 0);
	assert_int_equal(PORT_SUM(s.a, squeezed[SQUEEZE_BUDGET]), 10);
	assert_int_equal(CPU_SUM(&s, restarts), 9);
	assert_int_equal(CPU_SUM(&s, punted), 1);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_true(CPU_SUM(&s, ksoftirqd_rounds) > 1);
	/* Masked while ksoftirqd has it: no interrupt has taken it back. */
	assert_int_equal(CPU_SUM(&s, punted), 1);
	assert_int_equal(engine_handler_set(s.engine, s.a, s.cross, NULL), 0);
	scene_drain(&s, s.a, PORT_SUM(s.a, received));
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_9_never_a_full_budget),
		cmocka_unit_test(case_10_always_a_full_budget),
		cmocka_unit_test(case_11_slow_handler),
		cmocka_unit_test(case_12_packet_loop),
		cmocka_unit_test(case_15_watchdog),
		cmocka_unit_test(rounds_and_restarts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

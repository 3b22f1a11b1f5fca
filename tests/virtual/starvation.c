/* SPDX-License-Identifier: BSD-2-Clause */
/* Starvation and stalls: cases 9 to 12, 14 and 15, softirq's limits and its hand-over to ksoftirqd.
 */
#include "scene.h"

#include "timer.h"

static const struct cpu_counters *cpu_counters(struct scene *s, uint32_t i)
{
	return &counters_cpu_at(engine_counters(s->engine), i)->counters;
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
	int64_t packet_ns;	    /* what one costs, on top */
	uint64_t before[8], rounds; /* see endless_ports */
};

static void endless_input(struct handler *handler, struct context *context, struct port *in,
			  struct packet **v, uint32_t n)
{
	struct endless *endless = (struct endless *)handler;

	machine_charge(in->machine, endless->packet_ns * n);
	packets_return(context, in, v, n);
}

static const struct handler_ops endless_ops = {.name = "endless", .input = endless_input};

static void set_poller(struct scene *s, enum poller poller)
{
	struct napi *tx = s->a->queue[0].tx;

	assert_int_equal(napi_poller_set(s->a->queue[0].napi, poller, NSEC_PER_SEC, NULL, NULL), 0);
	if (tx)
		assert_int_equal(napi_poller_set(tx, poller, NSEC_PER_SEC, NULL, NULL), 0);
}

/*
 * A thread or a worker goes where the scheduler puts it. It may have to share a CPU with the
 * busy-poller that port b has: then a step of that one, 2 ms, comes in between.
 */
static int64_t bound_beside(const struct scene *s, int64_t bound)
{
	enum poller poller = napi_poller(s->a->queue[0].napi);
	bool roams = poller == POLLER_THREAD || poller == POLLER_WORKQUEUE;

	if (roams && napi_poller(s->b->queue[0].napi) == POLLER_BUSY_POLL)
		bound += 2 * NSEC_PER_MSEC;
	return bound;
}

/* The control side stays within its bound, whatever port a does (I5). */
static void control_is_bounded(struct scene *s, int64_t bound)
{
	int64_t before = machine_now(s->machine), most = bound_beside(s, bound);

	assert_int_equal(napi_disable(s->a->queue[0].napi, NSEC_PER_SEC), 0);
	assert_true(machine_now(s->machine) - before <= most);
	assert_int_equal(napi_enable(s->a->queue[0].napi), 0);
	scene_run(s, NSEC_PER_MSEC);
	for (unsigned to = 0; to < POLLER_MAX; to++) {
		before = machine_now(s->machine);
		most = bound_beside(s, bound); /* of who has to let it go */
		set_poller(s, (enum poller)to);
		/* Two switches, where the port has TX NAPIs. */
		assert_true(machine_now(s->machine) - before <= (scene_tx() ? 2 : 1) * most);
		scene_run(s, NSEC_PER_MSEC);
	}
}

/* `packets` go round in port a for ever. */
static void endless_work(enum poller poller, uint32_t packets, int64_t packet_ns, int64_t bound)
{
	struct endless endless = {.handler.ops = &endless_ops, .packet_ns = packet_ns};
	struct scene s;

	scene_begin(&s, true, packets, poller);
	assert_int_equal(engine_handler_set(s.engine, s.a, &endless.handler, NULL), 0);
	scene_fill(&s, s.a, packets);
	scene_run(&s, 100 * NSEC_PER_MSEC);
	assert_true(PORT_SUM(s.a, received) > packets);

	control_is_bounded(&s, bound);
	scene_calm(&s, s.a);
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
	over_pollers_and_deferrals(under_the_weight);
}

/* Case 10: endless full budgets. */
static void full_budgets(enum poller poller)
{
	endless_work(poller, 640, 0, 3 * NSEC_PER_MSEC);
}

static void case_10_always_a_full_budget(void **state)
{
	(void)state;
	over_pollers_and_deferrals(full_budgets);
}

/* And with nothing to be found, which busy-poll goes on looking for. */
static void nothing_there(enum poller poller)
{
	struct scene s;

	scene_begin(&s, true, 1, poller);
	scene_run(&s, 100 * NSEC_PER_MSEC);
	if (poller == POLLER_BUSY_POLL)
		assert_true(PORT_SUM(s.a, empty_polls) > 1000);
	control_is_bounded(&s, 3 * NSEC_PER_MSEC);
	scene_end(&s);
}

static void case_10_empty_queue(void **state)
{
	(void)state;
	over_pollers(nothing_there);
}

/*
 * Case 11: 1 ms a packet. A poll is up to 64 ms then, and ends a round by time: the bound is one
 * poll beyond the round's limit, not 300 packets.
 */
static void slow_handler(enum poller poller)
{
	endless_work(poller, 64, NSEC_PER_MSEC, 10 * NSEC_PER_MSEC);
}

static void case_11_slow_handler(void **state)
{
	(void)state;
	over_pollers_and_deferrals(slow_handler);
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
	struct runner *runner;
	uint64_t steps = 0, before;
	struct scene s;

	scene_begin(&s, true, 12, poller);
	config.arg = &steps;
	assert_int_equal(mem_port_wire(s.a, s.b), 0);
	assert_int_equal(runner_start(s.machine, &config, &runner, NULL), 0);
	scene_fill(&s, s.a, 512);
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
	over_pollers_and_deferrals(looped);
}

/*
 * Case 14: a timer of somebody else's on each CPU while polls find packets without end; how late it
 * comes is bounded, and control goes on.
 */
static void beside_endless_polls(enum poller poller)
{
	struct timer timer[2];
	struct scene s;
	uint64_t before;

	scene_begin(&s, true, 14, poller);
	scene_circle(&s, s.a, 640);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		struct placement there = {0};

		cpuset_add(&there.cpus, cpu);
		timer_start(&timer[cpu], s.machine, there);
	}
	before = PORT_SUM(s.a, full_polls);
	scene_run(&s, 200 * NSEC_PER_MSEC);
	assert_true(PORT_SUM(s.a, full_polls) > before + 1000);
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		print_message("    CPU %u: %u times, %lld us late at most\n", cpu, timer[cpu].fired,
			      (long long)(timer[cpu].late / NSEC_PER_USEC));
		assert_true(timer[cpu].fired > 40);
		assert_true(timer[cpu].late <= 5 * NSEC_PER_MSEC);
	}
	control_is_bounded(&s, 10 * NSEC_PER_MSEC);
	for (unsigned cpu = 0; cpu < 2; cpu++)
		runner_stop(timer[cpu].runner);
	scene_calm(&s, s.a);
	scene_end(&s);
}

static void case_14_other_work(void **state)
{
	(void)state;
	over_pollers(beside_endless_polls);
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
	const struct queue_record *record = counters_queue_at(engine_counters(s->engine), 0);

	assert_string_equal(record->port_name, "a");
	return counter_read(&record->stuck);
}

static void stuck(enum poller poller)
{
	static const char *const named[POLLER_MAX] = {
		[POLLER_SOFTIRQ] = "poller softirq, runner irq/0",
		[POLLER_THREAD] = "poller thread, runner napi/a-0",
		[POLLER_WORKQUEUE] = "poller workqueue, runner kworker",
		[POLLER_BUSY_POLL] = "poller busy-poll, runner busy/0",
		[POLLER_APP] = "poller app, runner irq/0", /* no application comes */
	};
	struct runner_config config = {.name = "hog", .step = hog_step};
	struct queue_settings on_cpu_0 = {.cpu_set = true, .cpus_set = true};
	struct source source = {.burst = 1, .interval = 10 * NSEC_PER_USEC, .count = 5};
	struct runner *hog;
	struct scene s;

	cpuset_add(&on_cpu_0.placement.cpus, 0);
	scene_begin_with(&s, true, 15,
			 (struct engine_config){.poller = poller, .worker = on_cpu_0.placement});
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
	assert_non_null(scene_logged(&s, named[poller]));
	runner_stop(hog);
	scene_run(&s, 3 * NSEC_PER_SEC);
	assert_int_equal(stuck_count(&s), 1);
	scene_end(&s);
}

static void case_15_watchdog(void **state)
{
	(void)state;
	over_pollers_and_deferrals(stuck);
}

/*
 * `ports` mem ports on engine CPU 0 with a full vector each, going round for ever, are enabled;
 * then time goes on for `ns`. Port i is named c<i>.
 */
static void endless_ports(struct scene *s, struct endless *endless, struct port **port,
			  unsigned ports, int64_t ns)
{
	struct queue_settings on_cpu_0 = {.cpu_set = true, .poller_set = true};

	endless->handler.ops = &endless_ops;
	scene_begin(s, true, 20, POLLER_SOFTIRQ);
	for (unsigned i = 0; i < ports; i++) {
		char name[8];

		snprintf(name, sizeof(name), "c%u", i);
		assert_int_equal(engine_queue_set(s->engine, name, -1, &on_cpu_0, NULL, NULL), 0);
		port[i] = scene_port(s, name, NULL);
		assert_int_equal(napi_disable(port[i]->queue[0].napi, NSEC_PER_SEC), 0);
		engine_handler_set(s->engine, port[i], &endless->handler, NULL);
		scene_fill(s, port[i], 64);
	}
	scene_run(s, 10 * NSEC_PER_MSEC);
	memset(endless->before, 0, sizeof(endless->before));
	for (unsigned i = 0; i < ports; i++)
		endless->before[i] = PORT_SUM(port[i], polls);
	endless->rounds = CPU_SUM(s, rounds);
	for (unsigned i = 0; i < ports; i++)
		assert_int_equal(napi_enable(port[i]->queue[0].napi), 0);
	scene_run(s, ns);
}

static void endless_end(struct scene *s, struct port **port, unsigned ports)
{
	for (unsigned i = 0; i < ports; i++)
		scene_calm(s, port[i]);
	scene_run(s, 10 * NSEC_PER_MSEC);
	scene_end(s);
}

/*
 * Softirq's limits, exactly. A round polls each NAPI once; one that is always full is polled in ten
 * rounds, and then ksoftirqd has it and keeps it.
 */
static void restart_limit(void **state)
{
	struct endless endless = {0};
	struct port *port[1];
	struct scene s;

	(void)state;
	endless_ports(&s, &endless, port, 1, 30 * NSEC_PER_USEC); /* ten polls of 64 take 64 us */
	assert_int_equal(CPU_SUM(&s, rounds) - endless.rounds, 10);
	assert_int_equal(PORT_SUM(port[0], polls) - endless.before[0], 10);
	assert_int_equal(PORT_SUM(port[0], received), 10 * 64);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_BUDGET]), 0);
	assert_int_equal(CPU_SUM(&s, restarts), 9);
	assert_int_equal(CPU_SUM(&s, punted[PUNT_RESTARTS]), 1);
	assert_int_equal(CPU_SUM(&s, ksoftirqd_rounds), 0);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_true(CPU_SUM(&s, ksoftirqd_rounds) > 100);
	assert_int_equal(CPU_SUM(&s, punted[PUNT_RESTARTS]),
			 1); /* masked: no interrupt has taken it back */
	endless_end(&s, port, 1);
}

/* Six full NAPIs: the budget of 300 ends each round after five, and the order is fair. */
static void budget_squeeze(void **state)
{
	struct endless endless = {0};
	struct port *port[6];
	uint64_t least = UINT64_MAX, most = 0;
	struct scene s;

	(void)state;
	endless_ports(&s, &endless, port, 6, 150 * NSEC_PER_USEC);
	assert_int_equal(CPU_SUM(&s, rounds) - endless.rounds, 10);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_BUDGET]), 10);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_TIME]), 0);
	for (int i = 0; i < 6; i++) {
		uint64_t polls = PORT_SUM(port[i], polls) - endless.before[i];

		least = polls < least ? polls : least;
		most = polls > most ? polls : most;
		assert_int_equal(PORT_SUM(port[i], squeezed[SQUEEZE_BUDGET]), 10);
	}
	assert_int_equal(least, 8); /* fifty polls over six */
	assert_int_equal(most, 9);
	endless_end(&s, port, 6);
}

/* Two NAPIs whose polls take longer than a round may: each round ends after one, by time. */
static void time_squeeze(void **state)
{
	struct endless endless = {.packet_ns = 100 * NSEC_PER_USEC};
	struct port *port[2];
	struct scene s;

	(void)state;
	endless_ports(&s, &endless, port, 2, NSEC_PER_MSEC);
	assert_int_equal(CPU_SUM(&s, rounds) - endless.rounds, 1);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_TIME]), 1);
	assert_int_equal(CPU_SUM(&s, time_squeeze[SQUEEZE_BUDGET]), 0);
	assert_int_equal(PORT_SUM(port[0], polls) - endless.before[0], 1);
	assert_int_equal(PORT_SUM(port[1], polls) - endless.before[1], 0);
	assert_int_equal(PORT_SUM(port[1], squeezed[SQUEEZE_TIME]), 1);
	/* From then on a poll is as long as a round may be: 20 packets, not 64. */
	scene_run(&s, 40 * NSEC_PER_MSEC);
	assert_in_range(PORT_SUM(port[1], received) /
				(PORT_SUM(port[1], polls) - endless.before[1]),
			15, 25);
	endless_end(&s, port, 2);
}

/*
 * Pollers of a real-time class on one CPU, with full polls for ever: those of the same priority
 * take turns. Port a by this poller, b by another one; both and their runners have priority 50.
 */
static void equals_take_turns(enum poller poller, enum poller other)
{
	const struct placement fifo = {.class = RUNNER_FIFO, .level = 50};
	struct engine_config config = {.poller = poller, .interrupt = fifo, .worker = fifo};
	struct queue_settings settings = {
		.class_set = true, .cpus_set = true, .placement = fifo, .cpu_set = true};
	uint64_t before[3];
	struct port *port[3];
	struct scene s;

	cpuset_add(&config.worker.cpus, 0);
	scene_begin_with(&s, true, 1, config);
	port[0] = s.a;
	port[1] = scene_port(&s, "c", NULL);
	port[2] = s.b;
	cpuset_add(&settings.placement.cpus, 0);
	for (int i = 0; i < 3; i++) {
		settings.poller_set = true;
		settings.poller = i < 2 ? poller : other;
		assert_int_equal(
			engine_queue_set(s.engine, port[i]->name, -1, &settings, NULL, NULL), 0);
	}
	for (int i = 0; i < 3; i++)
		scene_circle(&s, port[i], 256);
	for (int k = 0; k < 3; k++) {
		for (int i = 0; i < 3; i++)
			before[i] = PORT_SUM(port[i], received);
		scene_run(&s, 50 * NSEC_PER_MSEC);
		for (int i = 0; i < 3; i++)
			assert_true(PORT_SUM(port[i], received) > before[i]);
	}
	for (int i = 0; i < 3; i++)
		scene_calm(&s, port[i]);
	scene_end(&s);
}

/* A worker's turn is as long as netdev_budget_usecs says now, also when it began under a longer
 * one. */
static void a_shorter_turn_holds_at_once(void **state)
{
	struct placement fifo = {.class = RUNNER_FIFO, .level = 50};
	struct engine_config config = {.poller = POLLER_WORKQUEUE, .worker = fifo};
	struct engine_settings budget = {.budget_usecs_set = true};
	struct port *port[3];
	struct timer timer;
	struct scene s;

	(void)state;
	cpuset_add(&config.worker.cpus, 0);
	cpuset_add(&fifo.cpus, 0);
	scene_begin_with(&s, true, 1, config);
	port[0] = s.a;
	port[1] = s.b;
	port[2] = scene_port(&s, "c", NULL);
	for (int i = 0; i < 3; i++)
		scene_circle(&s, port[i], 256);
	scene_run(&s, 5 * NSEC_PER_MSEC);
	/* More NAPIs than workers, so a step is one poll, and the rest of this is in one turn. */
	budget.budget_usecs = 500000;
	assert_int_equal(engine_set(s.engine, &budget, NULL), 0);
	scene_run(&s, 20 * NSEC_PER_MSEC);
	budget.budget_usecs = 1000;
	assert_int_equal(engine_set(s.engine, &budget, NULL), 0);
	timer_start(&timer, s.machine, fifo);
	scene_run(&s, 100 * NSEC_PER_MSEC);
	assert_true(timer.fired > 20);
	assert_true(timer.late <= 5 * NSEC_PER_MSEC);
	runner_stop(timer.runner);
	for (int i = 0; i < 3; i++)
		scene_calm(&s, port[i]);
	scene_end(&s);
}

static void real_time_equals_take_turns(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_RUNNER_MAX; poller++) {
		/* irq/0 leaves what is saturated to ksoftirqd, which is of no real-time class. */
		if (poller == POLLER_SOFTIRQ || poller == POLLER_BUSY_POLL)
			continue;
		print_message("  with poller %s\n", poller_name((enum poller)poller));
		equals_take_turns((enum poller)poller, POLLER_THREAD);
		equals_take_turns((enum poller)poller, POLLER_WORKQUEUE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_9_never_a_full_budget),
		cmocka_unit_test(case_10_always_a_full_budget),
		cmocka_unit_test(case_10_empty_queue),
		cmocka_unit_test(case_11_slow_handler),
		cmocka_unit_test(case_12_packet_loop),
		cmocka_unit_test(case_14_other_work),
		cmocka_unit_test(case_15_watchdog),
		cmocka_unit_test(real_time_equals_take_turns),
		cmocka_unit_test(a_shorter_turn_holds_at_once),
		cmocka_unit_test(restart_limit),
		cmocka_unit_test(budget_squeeze),
		cmocka_unit_test(time_squeeze),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

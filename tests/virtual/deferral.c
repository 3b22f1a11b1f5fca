/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferral policies of softirq: who polls what, packet by packet, in exact virtual time.
 *
 * Port `loops` has weight 1, so each packet is a full poll and makes a round be restarted; port
 * `probe` has the usual one, so what little comes there is polled without. Both are on engine CPU
 * 0.
 */
#include "scene.h"

#include <core/engine.h>
#include <poller/softirq.h>

#define TICK_NS (4 * NSEC_PER_MSEC)
#define LEAD (2 * NSEC_PER_USEC)    /* from a packet to the step of an idle irq/N */
#define POLL_NS 300		    /* of one packet */
#define HOG_NS (10 * NSEC_PER_USEC) /* a step */

static struct scene s;
static struct port *loops, *probe;
static struct context *context;
static bool never_within; /* the next step of ksoftirqd */

/* Each packet as who polled it: i, irq/0; k, ksoftirqd/0. */
static char polled_by[4096];
static size_t polled;
static int64_t last_polled, longest;

/*
 * As irq/0 finds it that was woken for the policy and has preempted ksoftirqd/0 in a step, which on
 * the virtual machine cannot be: it ends having done nothing.
 */
static void never_from_now(void)
{
	struct softnet *softnet = &s.engine->softnet[0];

	never_within = false;
	atomic_store(&softnet->deferral, DEFERRAL_WORD(DEFERRAL_NEVER, 0));
	assert_int_equal(softirq_irq_step(softnet).verdict, STEP_WAIT);
}

static void log_input(struct handler *handler, struct context *c, struct port *in,
		      struct packet **v, uint32_t n)
{
	const char *name = runner_current()->name;
	int64_t now = machine_now(in->machine);

	(void)handler;
	for (uint32_t i = 0; i < n; i++) {
		if (now - stamped_at(v[i]) > longest)
			longest = now - stamped_at(v[i]);
		assert_true(polled + 1 < sizeof(polled_by));
		polled_by[polled++] = strcmp(name, "irq/0") ? *name : 'i';
	}
	last_polled = now;
	if (never_within && *name == 'k')
		never_from_now();
	packet_drop(c, v, n, DROP_HANDLER);
}

static const struct handler_ops log_ops = {.name = "log", .input = log_input};
static struct handler log_handler = {.ops = &log_ops};

static struct port *port_on_cpu_0(const char *name, uint32_t weight)
{
	const struct queue_settings settings = {
		.cpu_set = true, .weight_set = true, .weight = weight};
	struct port *port;

	assert_int_equal(engine_queue_set(s.engine, name, -1, &settings, NULL, NULL), 0);
	port = scene_port(&s, name, NULL);
	assert_int_equal(engine_handler_set(s.engine, port, &log_handler, NULL), 0);
	return port;
}

static void begin(enum deferral deferral, uint32_t ticks, uint32_t hz)
{
	scene_begin_exact(
		&s, (struct engine_config){.deferral = deferral, .looped_ticks = ticks, .hz = hz});
	loops = port_on_cpu_0("loops", 1);
	probe = port_on_cpu_0("probe", 64);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	scene_run(&s, NSEC_PER_MSEC);
	polled = 0;
	longest = 0;
}

static void end(void)
{
	engine_context_close(context);
	scene_end(&s);
}

static void send_now(struct port *port, uint32_t n)
{
	stamped_send(port, context, n);
}

/* n packets at this time, as irq/0 sees it. */
static void send_at(int64_t when, struct port *port, uint32_t n)
{
	scene_run(&s, when - LEAD - machine_now(s.machine));
	send_now(port, n);
}

/* All packets since the last call; nothing is left to be polled. */
static void expect(const char *text)
{
	scene_run(&s, 100 * NSEC_PER_USEC);
	polled_by[polled] = '\0';
	assert_string_equal(polled_by, text);
	polled = 0;
}

static uint64_t punts(enum punt cause)
{
	return counter_read(&counters_cpu(s.engine->counters, 0)->counters.punted[cause]);
}

static void expect_punts(uint64_t restarts, uint64_t time, uint64_t looped, uint64_t running)
{
	assert_int_equal(punts(PUNT_RESTARTS), restarts);
	assert_int_equal(punts(PUNT_TIME), time);
	assert_int_equal(punts(PUNT_LOOPED), looped);
	assert_int_equal(punts(PUNT_RUNNING), running);
}

static void deferral_set(enum deferral deferral, uint32_t ticks)
{
	const struct cpu_settings settings = {
		.deferral_set = true, .deferral = deferral, .looped_ticks = ticks};

	assert_int_equal(engine_cpu_set(s.engine, 0, &settings, NULL), 0);
}

static int64_t hog_charge; /* of a step of the hog */

/* Keeps CPU 0 from ksoftirqd/0, but not from irq/0. */
static struct step hog_step(void *arg)
{
	(void)arg;
	machine_charge(s.machine, hog_charge);
	return STEP(STEP_YIELD);
}

static struct runner *hog_start(enum runner_class class, int64_t charge)
{
	struct runner_config config = {.name = "hog", .step = hog_step};
	struct runner *hog;

	hog_charge = charge;
	config.placement = (struct placement){.class = class, .level = class ? 40 : 0};
	cpuset_add(&config.placement.cpus, 0);
	assert_int_equal(runner_start(s.machine, &config, &hog, NULL), 0);
	return hog;
}

/* Ten rounds, and ksoftirqd has the rest; what comes then is irq's at once, and all of it. */
static void restart_limit(void **state)
{
	struct runner *hog;

	(void)state;
	begin(DEFERRAL_RESTART_LIMIT, 0, 0);
	send_now(loops, 9);
	expect("iiiiiiiii");
	expect_punts(0, 0, 0, 0);
	send_now(loops, 10); /* the poll that finds the queue empty is the eleventh */
	expect("iiiiiiiiii");
	expect_punts(1, 0, 0, 0);
	send_now(loops, 13);
	expect("iiiiiiiiiikkk");
	expect_punts(2, 0, 0, 0);

	hog = hog_start(RUNNER_FIFO, HOG_NS);
	send_now(loops, 13);
	expect("iiiiiiiiii");
	send_now(probe, 2);
	expect("iiiii"); /* and what ksoftirqd had */
	runner_stop(hog);
	expect("");
	expect_punts(3, 0, 0, 0);
	end();
}

/* It goes on by itself, in bounded steps: others of its class and level get in between. */
static void never(void **state)
{
	struct placement same = {0};
	struct runner *hog;

	(void)state;
	begin(DEFERRAL_NEVER, 0, 0);
	send_now(loops, 35);
	expect("iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii");
	expect_punts(0, 0, 0, 0);
	assert_int_equal(counters_cpu(s.engine->counters, 0)->counters.ksoftirqd_rounds, 0);

	/* Of the same level as irq/0: one step each. 35 packets take four. */
	hog = hog_start(RUNNER_FIFO, HOG_NS);
	same.class = RUNNER_FIFO;
	same.level = 50;
	cpuset_add(&same.cpus, 0);
	assert_int_equal(runner_place(hog, &same), 0);
	scene_run(&s, NSEC_PER_MSEC);
	send_now(loops, 35);
	expect("iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii");
	assert_in_range(longest, 3 * HOG_NS, 7 * HOG_NS);
	runner_stop(hog);
	end();
}

/* A round is restarted at this time exactly. */
static void loop_at(int64_t when)
{
	send_at(when - POLL_NS, loops, 1);
	scene_run(&s, LEAD + NSEC_PER_USEC);
	assert_int_equal(last_polled, when - POLL_NS);
	assert_int_equal(s.engine->softnet[0].looped_at, when);
	polled = 0;
}

/* Who polls a packet that irq/0 sees at this time. */
static void probe_at(int64_t when, const char *who)
{
	send_at(when, probe, 1);
	scene_run(&s, 2 * LEAD);
	expect(who);
}

/*
 * A window of w ticks: after a restart in tick t all is left to ksoftirqd up to the last nanosecond
 * of tick t + w - 1, wherever in tick t that was, and nothing from the next one on.
 */
static void window(uint32_t ticks, uint32_t hz)
{
	const int64_t tick = NSEC_PER_SEC / (hz ? hz : 250);
	const int64_t within[] = {0, tick / 3, tick - 10 * NSEC_PER_USEC};
	uint64_t handed = 0;

	begin(DEFERRAL_LOOPED, ticks, hz);
	for (int i = 0; i < 3; i++) {
		int64_t t = (machine_now(s.machine) / tick + 2 + ticks) * tick;

		loop_at(t + within[i]);
		probe_at(t + within[i] + 5 * NSEC_PER_USEC, "k");
		probe_at(t + ticks * tick, "i");
		t += 2 * ticks * tick;
		loop_at(t + within[i]);
		probe_at(t + ticks * tick - 1, "k");
		handed += 2;
		expect_punts(0, 0, handed, 0);
	}
	end();
}

static void looped(void **state)
{
	(void)state;
	for (uint32_t ticks = 1; ticks <= 7; ticks++)
		window(ticks, 0);
	window(1, 1000);
	window(2, 1000);
	window(25, 100);
	window(LOOPED_TICKS_MAX, HZ_MAX);
}

/* Rounds that ksoftirqd restarts count too, so under load it keeps the work; then it ends. */
static void looped_in_ksoftirqd(void **state)
{
	int64_t t;

	(void)state;
	for (uint32_t ticks = 1; ticks <= 2; ticks++) {
		begin(DEFERRAL_LOOPED, ticks, 0);
		probe_at(20 * TICK_NS, "i"); /* it has never looped */
		t = 25 * TICK_NS;
		loop_at(t);
		for (int i = 1; i <= 100; i++) { /* eight a tick */
			send_at(t + i * (TICK_NS - 20 * NSEC_PER_USEC) / 8, loops, 3);
			scene_run(&s, 20 * NSEC_PER_USEC);
		}
		polled_by[polled] = '\0';
		assert_int_equal(polled, 300);
		/* With one tick, the first of each is irq's again; with two, none is. */
		for (size_t i = 0; i < polled; i += 3)
			assert_true(!memcmp(polled_by + i, "kkk", 3) ||
				    (ticks == 1 && !memcmp(polled_by + i, "iii", 3)));
		expect_punts(0, 0, ticks == 1 ? 88 : 100, 0);
		end();
	}
}

/* From its waking until it has gone to sleep, everything is ksoftirqd's. */
static void running(void **state)
{
	struct runner *hog;

	(void)state;
	begin(DEFERRAL_KSOFTIRQD_RUNNING, 0, 0);
	send_now(loops, 9);
	expect("iiiiiiiii"); /* it sleeps */
	send_now(loops, 13);
	expect("iiiiiiiiiikkk");
	send_now(probe, 1);
	expect("i"); /* it sleeps again */
	expect_punts(1, 0, 0, 0);

	hog = hog_start(RUNNER_FIFO, HOG_NS);
	send_now(loops, 13);
	expect("iiiiiiiiii");
	send_now(probe, 1); /* it has been woken, and has not yet run */
	expect("");
	send_now(probe, 1); /* masked: no interrupt, no hand-over */
	expect("");
	expect_punts(2, 0, 0, 1);
	runner_stop(hog);
	expect("kkkkk");
	send_now(probe, 1);
	expect("i");
	end();
}

/*
 * While ksoftirqd holds work and cannot run, the policy changes: nothing is stuck with any of them.
 * `never` takes it back at once; with the others it is polled at the next interrupt, or by
 * ksoftirqd.
 */
static void change_while_held(enum deferral from, enum deferral to)
{
	struct runner *hog;
	bool at_once = to == DEFERRAL_LOOPED || to == DEFERRAL_KSOFTIRQD_RUNNING;

	begin(from, 1, 0);
	scene_run(&s, 10 * TICK_NS - machine_now(s.machine));
	hog = hog_start(RUNNER_FIFO, HOG_NS);
	send_now(loops, 13);
	expect(from == DEFERRAL_NEVER ? "iiiiiiiiiiiii" : "iiiiiiiiii");
	deferral_set(to, 1);
	if (from == DEFERRAL_NEVER) {
		send_now(probe, 1);
		/* It has looped in this tick, but ksoftirqd was never woken. */
		expect(to == DEFERRAL_LOOPED ? "" : "i");
	} else {
		expect(to == DEFERRAL_NEVER ? "iii" : "");
		send_now(probe, 1);
		expect(at_once ? "" : to == DEFERRAL_NEVER ? "i" : "iiii");
	}
	runner_stop(hog);
	scene_run(&s, NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(loops, received), 13);
	assert_int_equal(PORT_SUM(probe, received), 1);
	end();
}

static void changes_while_held(void **state)
{
	(void)state;
	for (unsigned from = 0; from < DEFERRAL_MAX; from++)
		for (unsigned to = 0; to < DEFERRAL_MAX; to++)
			change_while_held((enum deferral)from, (enum deferral)to);
}

/* Also from the middle of a step, which still ends as one. */
static void never_takes_back_from_a_step(void **state)
{
	(void)state;
	begin(DEFERRAL_RESTART_LIMIT, 0, 0);
	never_within = true;
	send_now(loops, 32);
	expect("iiiiiiiiiikkkkkkkkkkiiiiiiiiiiii");
	expect_punts(1, 0, 0, 0);
	assert_int_equal(counters_cpu(s.engine->counters, 0)->counters.ksoftirqd_rounds, 1);
	send_now(loops, 13);
	expect("iiiiiiiiiiiii");
	end();
}

/* A window that is made longer or shorter holds for the restart that was before. */
static void window_changes(void **state)
{
	int64_t t;

	(void)state;
	begin(DEFERRAL_LOOPED, 1, 0);
	t = 10 * TICK_NS;
	loop_at(t);
	probe_at(t + TICK_NS, "i");
	deferral_set(DEFERRAL_LOOPED, 3);
	probe_at(t + 2 * TICK_NS, "k");
	deferral_set(DEFERRAL_RESTART_LIMIT, 0);
	probe_at(t + 2 * TICK_NS + TICK_NS / 2, "i");
	deferral_set(DEFERRAL_LOOPED, 3);
	probe_at(t + 3 * TICK_NS - 1, "k");
	deferral_set(DEFERRAL_LOOPED, 4);
	probe_at(t + 4 * TICK_NS - 1, "k");
	deferral_set(DEFERRAL_LOOPED, 3);
	probe_at(t + 4 * TICK_NS + NSEC_PER_MSEC, "i");
	end();
}

/* A thousand changes on both CPUs under load beside a hog: all that was sent comes, in order. */
static void changes_under_load(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct source source[2] = {
			{.burst = 64, .interval = 9 * NSEC_PER_USEC, .count = 60000},
			{.burst = 3, .interval = 7 * NSEC_PER_USEC, .count = 3000}};
		struct sink sink[2] = {0};
		struct runner *hog;

		scene_begin(&s, true, seed, POLLER_SOFTIRQ);
		for (int i = 0; i < 2; i++) {
			source[i].scene = sink[i].scene = &s;
			source[i].port = sink[!i].port = i ? s.b : s.a;
			sink_start(&sink[i]);
			source_start(&source[i]);
		}
		hog = hog_start(RUNNER_FAIR, 50 * NSEC_PER_USEC);
		for (int i = 0; i < 1000; i++) {
			const struct cpu_settings settings = {
				.deferral_set = true,
				.deferral = machine_virtual_draw(s.machine, DEFERRAL_MAX),
				.looped_ticks = 1 + machine_virtual_draw(s.machine, 3)};
			unsigned cpu = machine_virtual_draw(s.machine, 2);

			assert_int_equal(engine_cpu_set(s.engine, cpu, &settings, NULL), 0);
			scene_run(&s, machine_virtual_draw(s.machine, 20 * NSEC_PER_USEC));
		}
		for (int i = 0; i < 2; i++)
			source_stop(&source[i]);
		scene_drain(&s, s.a, 60000);
		scene_drain(&s, s.b, 3000);
		runner_stop(hog);
		scene_run(&s, NSEC_PER_MSEC);
		for (int i = 0; i < 2; i++) {
			sink_stop(&sink[i]);
			assert_int_equal(sink[i].disorder, 0);
		}
		assert_int_equal(sink[0].received, 60000);
		assert_int_equal(sink[1].received, 3000);
		scene_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(restart_limit),
		cmocka_unit_test(never),
		cmocka_unit_test(looped),
		cmocka_unit_test(looped_in_ksoftirqd),
		cmocka_unit_test(running),
		cmocka_unit_test(changes_while_held),
		cmocka_unit_test(never_takes_back_from_a_step),
		cmocka_unit_test(window_changes),
		cmocka_unit_test(changes_under_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

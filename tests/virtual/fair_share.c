/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case 13: a CPU hog of ordinary priority beside ksoftirqd. What softirq leaves to ksoftirqd waits
 * for its fair share of the CPU, and each deferral policy has its price, in exact virtual time.
 *
 * On CPU 0 are the hog, and a port on which packets go round for ever, so that softirq always has
 * work that it restarts for. Now and then one packet comes in by another port of that CPU; measured
 * is how long it waits until it is polled.
 */
#include "scene.h"

#include <core/engine.h>

#define TICK_NS (4 * NSEC_PER_MSEC) /* the machine's scheduler's, and that of `looped` */
#define PROBES 1000
#define INTERVAL (997 * NSEC_PER_USEC) /* falls everywhere in a tick */

struct outcome {
	int64_t latency[PROBES]; /* sorted */
	uint64_t hog_permille;	 /* of CPU 0 */
	uint64_t endless;	 /* packets of the endless port */
	uint64_t punted[PUNT_MAX];
};

static struct scene s;
static struct context *context;
static int64_t latency[PROBES], hog_ns;
static uint32_t probes;

static void probe_input(struct handler *handler, struct context *c, struct port *in,
			struct packet **v, uint32_t n)
{
	(void)handler;
	for (uint32_t i = 0; i < n; i++) {
		assert_true(probes < PROBES);
		latency[probes++] = machine_now(in->machine) - stamped_at(v[i]);
	}
	packet_drop(c, v, n, DROP_HANDLER);
}

static const struct handler_ops probe_ops = {.name = "probe", .input = probe_input};

static struct step hog_step(void *arg)
{
	(void)arg;
	machine_charge(s.machine, 20 * NSEC_PER_USEC);
	hog_ns += 20 * NSEC_PER_USEC + 500;
	return STEP(STEP_AGAIN);
}

static struct port *port_on_cpu_0(const char *name, struct handler *handler)
{
	const struct queue_settings on_cpu_0 = {.cpu_set = true};
	struct port *port;

	assert_int_equal(engine_queue_set(s.engine, name, -1, &on_cpu_0, NULL, NULL), 0);
	port = scene_port(&s, name, NULL);
	assert_int_equal(engine_handler_set(s.engine, port, handler, NULL), 0);
	return port;
}

static int later(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(enum deferral deferral, uint32_t ticks, struct outcome *out)
{
	struct handler probe_handler = {.ops = &probe_ops};
	struct runner_config config = {.name = "hog", .step = hog_step};
	const struct cpu_counters *counters;
	struct port *endless, *probe;
	struct runner *hog;
	int64_t start;
	char text[40];

	probes = 0;
	hog_ns = 0;
	scene_begin_exact(&s, (struct engine_config){.deferral = deferral, .looped_ticks = ticks});
	counters = &counters_cpu(s.engine->counters, 0)->counters;
	endless = port_on_cpu_0("endless", &scene_again);
	probe = port_on_cpu_0("probe", &probe_handler);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	cpuset_add(&config.placement.cpus, 0);
	assert_int_equal(runner_start(s.machine, &config, &hog, NULL), 0);
	stamped_send(endless, context, PACKET_VECTOR_MAX);
	start = machine_now(s.machine);
	for (uint32_t i = 0; i < PROBES; i++) {
		scene_run(&s, INTERVAL);
		stamped_send(probe, context, 1);
	}
	scene_run(&s, 2 * TICK_NS);
	out->hog_permille = (uint64_t)(hog_ns * 1000 / (machine_now(s.machine) - start));
	out->endless = PORT_SUM(endless, received);
	for (int i = 0; i < PUNT_MAX; i++)
		out->punted[i] = counter_read(&counters->punted[i]);
	runner_stop(hog);
	engine_context_close(context);
	scene_calm(&s, endless);
	scene_end(&s);

	assert_int_equal(probes, PROBES);
	qsort(latency, PROBES, sizeof(*latency), later);
	memcpy(out->latency, latency, sizeof(latency));
	deferral_format(deferral, ticks, text, sizeof(text));
	print_message("  %-18s p50 %8.1f us  p99 %8.1f us  max %8.1f us  hog %3lu permille, "
		      "%lu polled\n",
		      text, (double)latency[PROBES / 2] / 1e3,
		      (double)latency[PROBES * 99 / 100] / 1e3, (double)latency[PROBES - 1] / 1e3,
		      (unsigned long)out->hog_permille, (unsigned long)out->endless);
}

/* Bounded by the fair share: half of the packets come while it is ksoftirqd's turn. */
static void waits_its_turn(const struct outcome *o)
{
	assert_true(o->latency[PROBES / 3] < 20 * NSEC_PER_USEC);
	assert_in_range(o->latency[PROBES - 1], TICK_NS * 9 / 10, TICK_NS + 50 * NSEC_PER_USEC);
	assert_in_range(o->hog_permille, 450, 500);
}

static void case_13_hog_beside_ksoftirqd(void **state)
{
	static struct outcome limit, never, looped_1, looped_2, running;

	(void)state;
	measure(DEFERRAL_RESTART_LIMIT, 0, &limit);
	measure(DEFERRAL_NEVER, 0, &never);
	measure(DEFERRAL_LOOPED, 1, &looped_1);
	measure(DEFERRAL_LOOPED, 2, &looped_2);
	measure(DEFERRAL_KSOFTIRQD_RUNNING, 0, &running);

	/* An interrupt is served at once, in a few microseconds; the hog has its half. */
	assert_true(limit.latency[PROBES - 1] < 20 * NSEC_PER_USEC);
	assert_in_range(limit.hog_permille, 450, 500);
	assert_int_equal(limit.punted[PUNT_RUNNING] + limit.punted[PUNT_LOOPED], 0);
	/* The hog pays: nothing of ordinary priority runs there any more. */
	assert_true(never.latency[PROBES - 1] < 100 * NSEC_PER_USEC);
	assert_int_equal(never.hog_permille, 0);
	for (int i = 0; i < PUNT_MAX; i++)
		assert_int_equal(never.punted[i], 0);
	/* Its price: a turn of the hog, which is a tick, and no more than that. */
	waits_its_turn(&running);
	assert_true(running.punted[PUNT_RUNNING] > PROBES / 3);
	waits_its_turn(&looped_1);
	waits_its_turn(&looped_2);
	assert_true(looped_1.punted[PUNT_LOOPED] > PROBES / 3);
	assert_true(looped_2.punted[PUNT_LOOPED] > looped_1.punted[PUNT_LOOPED]);
	/* With one tick, what comes first in a tick is served at once. */
	assert_true(looped_2.punted[PUNT_RESTARTS] < looped_1.punted[PUNT_RESTARTS]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_13_hog_beside_ksoftirqd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

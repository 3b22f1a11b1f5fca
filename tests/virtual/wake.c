/* SPDX-License-Identifier: BSD-2-Clause */
/* Wake latency: from being scheduled to the first poll after that, in every poller. */
#include "scene.h"

static uint64_t in_buckets(const struct napi_counters *c)
{
	uint64_t sum = 0;

	for (int i = 0; i < WAKE_BUCKETS; i++)
		sum += counter_read(&c->wake[i]);
	return sum;
}

/* 100 packets, 1 ms apart: one wake each, all of them counted, none long on idle CPUs. */
static void counts_each(enum poller poller)
{
	struct source source = {.burst = 1, .interval = NSEC_PER_MSEC, .count = 100};
	struct queue_settings rest = {.idle_suspend_set = true, .idle_suspend_usecs = 100};
	const struct napi_counters *c;
	struct sink sink = {0};
	struct scene s;
	uint64_t wakes;

	scene_begin(&s, true, 1, poller);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &rest, NULL, NULL), 0);
	scene_run(&s, NSEC_PER_MSEC);
	c = napi_counters(s.a->queue[0].napi);
	wakes = counter_read(&c->wakes);
	scene_pass(&s, &source, &sink);
	assert_int_equal(counter_read(&c->wakes) - wakes, 100);
	assert_int_equal(in_buckets(c), counter_read(&c->wakes));
	assert_true(counter_read(&c->wake_ns) <=
		    counter_read(&c->wakes) * counter_read(&c->wake_max_ns));
	assert_in_range(counter_read(&c->wake_max_ns), 0, 20 * NSEC_PER_USEC);
	scene_end(&s);
}

static void counts_wakes(void **state)
{
	(void)state;
	over_pollers(counts_each);
}

/* Takes both CPUs for 3 ms, then leaves them for 3 ms. */
static struct step hog_step(void *arg)
{
	struct machine *machine = arg;

	machine_charge(machine, 3 * NSEC_PER_MSEC);
	return STEP_UNTIL(machine_now(machine) + 3 * NSEC_PER_MSEC);
}

/*
 * Behind hogs of class FIFO a worker or a busy-polling thread, which are ordinary, cannot run: what
 * the interrupt scheduled waits, and that is seen. softirq and thread take their interrupt
 * themselves, and are scheduled when they run.
 */
static void sees_delays(void **state)
{
	struct runner *hog[2];
	struct context *context;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 2, POLLER_WORKQUEUE);
	for (unsigned i = 0; i < 2; i++) {
		struct runner_config config = {.name = "hog", .step = hog_step, .arg = s.machine};

		config.placement.class = RUNNER_FIFO;
		config.placement.level = 40;
		cpuset_add(&config.placement.cpus, i);
		assert_int_equal(runner_start(s.machine, &config, &hog[i], NULL), 0);
	}
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	/* From outside: a runner that sends would wait for the hogs itself. */
	for (uint32_t i = 0; i < 200; i++) {
		struct packet *p;

		assert_int_equal(packet_alloc(&context->cache, &p, 1), 1);
		scene_datagram(p, 0, i);
		assert_int_equal(mem_port_send(s.a, &p, 1), 1);
		scene_run(&s, 700 * NSEC_PER_USEC);
	}
	engine_context_close(context);
	assert_in_range(counter_read(&napi_counters(s.a->queue[0].napi)->wake_max_ns),
			100 * NSEC_PER_USEC, 10 * NSEC_PER_MSEC);
	for (unsigned i = 0; i < 2; i++)
		runner_stop(hog[i]);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_wakes),
		cmocka_unit_test(sees_delays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

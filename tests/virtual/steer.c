/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering: to which backlogs flows go, whichever poller works on those. */
#include "steer_scene.h"

static void flows_spread_with(enum poller poller, bool virtual)
{
	uint32_t count = virtual ? 20000 : 50000;
	uint64_t steered, received = 0;
	struct scene s;
	struct load load;
	unsigned cpus;

	steer_begin(&s, virtual, 1, poller);
	cpus = engine_counters(s.engine)->cpus;
	scene_set(&s, "a", -1, rps(virtual ? "0-3" : "0-1"));
	load_start(&load, &s, (struct source){.count = count});
	load_end(&load, &s);
	steered = PORT_SUM(s.a, steered);
	assert_int_equal(steered, PORT_SUM(s.a, received));
	for (unsigned i = 0; i < cpus; i++) {
		uint64_t n = counter_read(&backlog_counters(&s, i)->received);

		received += n;
		if (i < (virtual ? 4 : 2))
			assert_true(n > 0);
	}
	assert_int_equal(received, steered);
	assert_int_equal(PORT_SUM(backlog_port(&s), transmitted), steered);
	scene_end(&s);
}

static void flows_spread(enum poller poller)
{
	flows_spread_with(poller, true);
}

static void flows_spread_over_backlogs(void **state)
{
	(void)state;
	over_pollers(flows_spread);
}

static void flows_spread_on_host(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++)
		flows_spread_with((enum poller)poller, false);
}

/* Each pair: who polls the port, who polls the backlogs. */
static void any_poller_on_a_backlog(void **state)
{
	(void)state;
	for (unsigned port = 0; port < POLLER_MAX; port++) {
		for (unsigned on = 0; on < POLLER_MAX; on++) {
			struct queue_settings poller = {.poller_set = true,
							.poller = (enum poller)on};
			struct scene s;
			struct load load;

			steer_begin(&s, true, port * POLLER_MAX + on, (enum poller)port);
			/* Kept for when they are opened. */
			scene_set(&s, "backlog", -1, poller);
			scene_set(&s, "a", -1, rps("1,3"));
			for (unsigned i = 0; i < CPUS; i++)
				assert_int_equal(napi_poller(backlog_port(&s)->queue[i].napi), on);
			load_start(&load, &s, (struct source){.count = 4000});
			load_end(&load, &s);
			assert_int_equal(counter_read(&backlog_counters(&s, 0)->received), 0);
			assert_int_equal(counter_read(&backlog_counters(&s, 1)->received) +
						 counter_read(&backlog_counters(&s, 3)->received),
					 4000);
			scene_end(&s);
		}
	}
}

/* Neighbouring ports differ in a few bits: with no key do they all go to the same CPUs. */
static void neighbours_spread(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct source source;
		struct scene s;

		steer_begin(&s, true, seed, POLLER_SOFTIRQ);
		scene_set(&s, "a", -1, rps("0-3"));
		source = source_by_hand(&s, 0, FLOWS);
		source_send(&s, &source, FLOWS);
		for (unsigned i = 0; i < CPUS; i++)
			assert_true(counter_read(&backlog_counters(&s, i)->received) > 0);
		scene_end(&s);
	}
}

/* A flow goes to where it was read, and moves when the CPU before has drained what it held. */
static void rfs_follows(enum poller poller)
{
	struct engine_config config = {.poller = poller, .sock_flow_entries = 1024};
	struct queue_settings table = {.rps_flow_set = true, .rps_flow_cnt = 64};
	struct watcher watcher;
	struct source source;
	struct scene s;
	struct sink sink = {.scene = &s};
	uint32_t hash;

	scene_begin_cpus(&s, true, 7, CPUS, config);
	watch(&watcher, &s);
	sink.port = s.b;
	sink_start(&sink);
	scene_set(&s, "a", -1, table);
	source = source_by_hand(&s, 3, 1);
	source_send(&s, &source, 100);
	assert_int_equal(PORT_SUM(s.a, steered), 0);
	hash = watcher.hash[3];
	assert_int_not_equal(hash, 0);
	flow_record(s.engine, hash, 77); /* no such CPU */
	source_send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 0);
	flow_record(s.engine, hash, 2);
	source_send(&s, &source, 100);
	assert_int_equal(counter_read(&backlog_counters(&s, 2)->received), 100);
	backlog_disable(&s, 2);
	source_send(&s, &source, 50);
	flow_record(s.engine, hash, 3);
	source_send(&s, &source, 50);
	assert_int_equal(cpu_record(&s, 2)->backlog.length, 100);
	assert_int_equal(counter_read(&backlog_counters(&s, 3)->received), 0);
	backlog_enable(&s, 2);
	scene_run(&s, SETTLE);
	source_send(&s, &source, 50);
	assert_int_equal(counter_read(&backlog_counters(&s, 2)->received), 200);
	assert_int_equal(counter_read(&backlog_counters(&s, 3)->received), 50);
	scene_set_engine(&s, (struct engine_settings){.sock_flow_entries_set = true});
	source_send(&s, &source, 30);
	assert_int_equal(PORT_SUM(s.a, steered), 250);
	sink_stop(&sink);
	assert_int_equal(sink.received, source.sent);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	scene_end(&s);
}

static void rfs_follows_when_drained(void **state)
{
	(void)state;
	over_pollers(rfs_follows);
}

/* A flow that was read on a CPU that has been taken away is as one that was read nowhere. */
static void rfs_forgets_away(enum poller poller)
{
	struct engine_config config = {.poller = poller, .sock_flow_entries = 1024};
	struct queue_settings table = {.rps_flow_set = true, .rps_flow_cnt = 64};
	struct engine_settings cpus = {.on_cpus_set = true};
	struct watcher watcher;
	struct source source;
	struct scene s;

	scene_begin_cpus(&s, true, 14, CPUS, config);
	watch(&watcher, &s);
	scene_set(&s, "a", -1, table);
	source = source_by_hand(&s, 3, 1);
	source_send(&s, &source, 1);
	flow_record(s.engine, watcher.hash[3], 2);
	source_send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 10);
	assert_int_equal(cpuset_parse("0-1,3", &cpus.on_cpus), 0);
	scene_set_engine(&s, cpus);
	source_send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 10);
	cpus.on_cpus = (struct cpuset){0};
	scene_set_engine(&s, cpus);
	source_send(&s, &source, 10);
	assert_int_equal(PORT_SUM(s.a, steered), 20);
	scene_end(&s);
}

static void rfs_forgets_who_is_away(void **state)
{
	(void)state;
	over_pollers(rfs_forgets_away);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows_spread_over_backlogs),
		cmocka_unit_test(flows_spread_on_host),
		cmocka_unit_test(any_poller_on_a_backlog),
		cmocka_unit_test(neighbours_spread),
		cmocka_unit_test(rfs_follows_when_drained),
		cmocka_unit_test(rfs_forgets_who_is_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

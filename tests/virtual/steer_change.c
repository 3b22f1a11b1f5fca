/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering that changes while packets are on their way, and changes that are refused. */
#include "steer_scene.h"

#include <core/engine.h>
#include <core/napi.h>
#include <machine/random.h>

/* Turned on and off, and other masks, while packets flow: none is lost, no flow changes order. */
static void disturb(struct scene *s, struct watcher *watcher, struct random *random)
{
	struct engine_settings settings = {0};

	switch (random_below(random, 6)) {
	case 0:
		settings.sock_flow_entries_set = true;
		settings.sock_flow_entries = 1u << random_below(random, 8);
		break;
	case 1:
		settings.symmetric_hash_set = true;
		settings.symmetric_hash = random_below(random, 2);
		break;
	case 2:
		settings.max_backlog_set = true;
		settings.max_backlog = 800 + (uint32_t)random_below(random, 5000);
		break;
	default:
		for (uint64_t n = random_below(random, 20); n; n--)
			flow_record(s->engine,
				    atomic_load(&watcher->hash[random_below(random, FLOWS)]),
				    (unsigned)random_below(random, CPUS + 1));
		return;
	}
	scene_set_engine(s, settings);
}

/* Returns how many packets GRO has merged meanwhile. */
static uint64_t case_20_seed(enum poller poller, bool virtual, uint64_t seed)
{
	static const char *const masks[] = {"none", "0", "1", "0-1", "0-3", "2", "1,3"};
	struct random random = {seed};
	struct watcher watcher;
	struct scene s;
	struct load load;
	uint64_t polls, merged;

	steer_begin(&s, virtual, seed, poller);
	watch(&watcher, &s);
	load_start(&load, &s,
		   (struct source){.burst = 1 + (uint32_t)random_below(&random, 40),
				   .flows = 1 + (uint32_t)random_below(&random, FLOWS),
				   .interval = 10 * NSEC_PER_USEC +
					       (int64_t)random_below(&random, 20000)});
	for (int i = 0; i < 12; i++) {
		const char *mask = masks[random_below(&random, virtual ? 7 : 4)];
		struct queue_settings settings = strcmp(mask, "none") ? rps(mask) : rps_none;

		if (!random_below(&random, 3)) {
			settings.rps_flow_set = true;
			settings.rps_flow_cnt = 1u << random_below(&random, 6);
		}
		settings.gro_set = !random_below(&random, 3);
		settings.gro = random_below(&random, 3) ? GRO_ON : GRO_OFF;
		scene_set(&s, "a", -1, settings);
		disturb(&s, &watcher, &random);
		polls = PORT_SUM(s.a, polls);
		scene_run(&s, (int64_t)random_below(&random, 400000));
		if (!random_below(&random, 4))
			scene_polled(&s, s.a, polls);
	}
	load_end(&load, &s);
	merged = PORT_SUM(s.a, merged);
	scene_end(&s);
	return merged;
}

static void case_20_virtual(enum poller poller)
{
	uint64_t merged = 0;

	for (uint64_t seed = 0; seed < 40; seed++)
		merged += case_20_seed(poller, true, seed);
	assert_true(merged > 0);
}

static void case_20_changes_under_load(void **state)
{
	(void)state;
	over_pollers(case_20_virtual);
}

static void case_20_on_host(void **state)
{
	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++)
		case_20_seed((enum poller)poller, false, 100 + poller);
}

/* Both directions of one UDP flow have the same hash. */
static bool directions_agree(struct scene *s)
{
	uint8_t there[42] = {
		[12] = 8, [14] = 0x45, [23] = 17, [29] = 9, [33] = 2, [35] = 7, [37] = 5};
	uint8_t back[42] = {
		[12] = 8, [14] = 0x45, [23] = 17, [29] = 2, [33] = 9, [35] = 5, [37] = 7};

	return flow_hash(&s->engine->hasher, there, sizeof(there)) ==
	       flow_hash(&s->engine->hasher, back, sizeof(back));
}

/* The hash changes while the engine runs, but not while packets that it placed are on their way. */
static void symmetric_set_live(enum poller poller)
{
	struct engine_settings on = {.symmetric_hash_set = true, .symmetric_hash = true};
	struct engine_settings off = {.symmetric_hash_set = true};
	struct source source;
	struct error err = {0};
	struct scene s;

	steer_begin(&s, true, 13, poller);
	assert_false(directions_agree(&s));
	scene_set(&s, "a", -1, rps("1"));
	scene_set_engine(&s, on);
	assert_true(directions_agree(&s));
	backlog_disable(&s, 1);
	source = source_by_hand(&s, 0, FLOWS);
	source_send(&s, &source, 20);
	assert_int_equal(engine_set(s.engine, &off, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "symmetric_hash stays as it was"));
	assert_true(directions_agree(&s));
	assert_false(napi_disabled(s.a->queue[0].napi));
	backlog_enable(&s, 1);
	scene_run(&s, SETTLE);
	scene_set_engine(&s, off);
	assert_false(directions_agree(&s));
	scene_end(&s);
}

static void symmetric_hash_is_live(void **state)
{
	(void)state;
	over_pollers(symmetric_set_live);
}

/* A backlog that does not pass: the change fails in its time, and all is as it was. */
static void timed_out(enum poller poller)
{
	struct queue_settings both = rps("2");
	struct source source;
	struct sink sink;
	struct scene s;
	int64_t start;

	steer_begin(&s, true, 9, poller);
	scene_set(&s, "a", -1, rps("1"));
	backlog_disable(&s, 1);
	source = source_by_hand(&s, 0, FLOWS);
	source_send(&s, &source, 20);
	start = machine_now(s.machine);
	steer_refused(&s, "a", rps("2"), -ETIMEDOUT, "a/0: steering stays as it was");
	assert_true(machine_now(s.machine) - start < 3 * NSEC_PER_SEC);
	/* Also what had been done for this queue before that failed. */
	both.poller_set = true;
	both.poller = poller == POLLER_THREAD ? POLLER_SOFTIRQ : POLLER_THREAD;
	steer_refused(&s, "a", both, -ETIMEDOUT, "a/0: steering stays as it was");
	assert_int_equal(napi_poller(s.a->queue[0].napi), poller);
	assert_false(napi_disabled(s.a->queue[0].napi));
	source_send(&s, &source, 20);
	assert_int_equal(cpu_record(&s, 1)->backlog.length, 40);
	sink = (struct sink){.scene = &s, .port = s.b};
	sink_start(&sink);
	backlog_enable(&s, 1);
	scene_set(&s, "a", -1, rps("2"));
	source_send(&s, &source, 20);
	sink_stop(&sink);
	assert_int_equal(counter_read(&backlog_counters(&s, 1)->received), 40);
	assert_int_equal(counter_read(&backlog_counters(&s, 2)->received), 20);
	assert_int_equal(sink.received, 60);
	assert_int_equal(sink.disorder, 0);
	scene_end(&s);
}

static void change_times_out(void **state)
{
	(void)state;
	over_pollers(timed_out);
}

/* Errors name what is wrong and what is right; nothing has changed then. */
static void refusals(void **state)
{
	struct queue_settings s7 = {.rps_flow_set = true, .rps_flow_cnt = 7};
	struct queue_settings cpu = {.cpu_set = true, .cpu = 1};
	struct port_config config;
	struct error err = {0};
	struct port *port;
	struct scene s;

	(void)state;
	steer_begin(&s, true, 1, POLLER_SOFTIRQ);
	steer_refused(&s, "a", rps("1,4"), -EINVAL, "CPU 4 is not an engine CPU; those are 0-3");
	steer_refused(&s, "a", s7, -EINVAL, "rps_flow_cnt 7: must be a power of two");
	steer_refused(&s, "backlog", rps("1"), -EINVAL, "backlog of engine CPU N");
	steer_refused(&s, "backlog", cpu, -EINVAL, "rps_cpus");
	steer_refused_engine(&s, (struct engine_settings){.max_backlog_set = true}, -ERANGE,
			     "netdev_max_backlog 0: must be 1 to 1048576");
	steer_refused_engine(&s, (struct engine_settings){.flow_limit_set = true, .flow_limit = 1},
			     -EINVAL, "flow_limit 1: must be a power of two, 2 to 65536");
	steer_refused_engine(
		&s, (struct engine_settings){.sock_flow_entries_set = true, .sock_flow_entries = 3},
		-EINVAL, "rps_sock_flow_entries 3: must be a power of two");
	assert_null(engine_port_find(s.engine, "backlog"));
	assert_int_equal(port_config_parse("mem:backlog", &config, &err), 0);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EINVAL);
	assert_non_null(strstr(err.text, "the engine's own"));
	scene_set(&s, "a", -1, rps("1"));
	assert_int_equal(engine_handler_set(s.engine, backlog_port(&s), s.cross, &err), -EINVAL);
	assert_int_equal(engine_port_remove(s.engine, backlog_port(&s), &err), -EBUSY);
	assert_non_null(strstr(err.text, "rps_cpus=none"));
	scene_set(&s, "a", -1, rps_none);
	assert_int_equal(engine_port_remove(s.engine, backlog_port(&s), &err), 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_20_changes_under_load),
		cmocka_unit_test(case_20_on_host),
		cmocka_unit_test(symmetric_hash_is_live),
		cmocka_unit_test(change_times_out),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

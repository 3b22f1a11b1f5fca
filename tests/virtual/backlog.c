/* SPDX-License-Identifier: BSD-2-Clause */
/* Backlogs: kicks, what is dropped where, several ports in one, and what a port leaves there. */
#include "steer_scene.h"

#define WAKES 64
struct wakes {
	char name[WAKES][16];
	uint32_t n;
};

static void wake_note(void *arg, const char *line)
{
	struct wakes *wakes = arg;
	const char *at = strstr(line, "napi/backlog-");

	if (at && strstr(line, " wake ") && wakes->n < WAKES)
		snprintf(wakes->name[wakes->n++], sizeof(wakes->name[0]), "%.15s", at);
}

/* All that one poll has put into backlogs is kicked once each after it, the own CPU's last. */
static void case_17_own_last(void **state)
{
	struct queue_settings thread = {.poller_set = true, .poller = POLLER_THREAD};
	struct wakes wakes = {.n = 0};
	struct source source;
	struct scene s;

	(void)state;
	for (unsigned own = 0; own < CPUS; own++) {
		char last[16];

		scene_trace(wake_note, &wakes);
		steer_begin(&s, true, 11, POLLER_SOFTIRQ);
		scene_set(&s, "backlog", -1, thread);
		scene_set(&s, "a", 0, (struct queue_settings){.cpu_set = true, .cpu = own});
		scene_set(&s, "a", -1, rps("0-3"));
		scene_run(&s, SETTLE);
		wakes.n = 0;
		source = source_by_hand(&s, 0, FLOWS);
		source_send(&s, &source, 64);
		assert_int_equal(wakes.n, CPUS);
		snprintf(last, sizeof(last), "napi/backlog-%u", own);
		assert_int_equal(strncmp(wakes.name[CPUS - 1], last, strlen(last)), 0);
		for (unsigned i = 0; i < CPUS; i++)
			assert_int_equal(cpu_record(&s, i)->backlog.received_rps, i != own);
		scene_end(&s);
	}
}

/* No backlog is worked on while another, with packets in it, has been left to nobody. */
static void case_17_seed(enum poller poller)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct watcher watcher;
		struct scene s;
		struct load load;

		steer_begin(&s, true, seed, poller);
		watch(&watcher, &s);
		scene_set(&s, "a", -1, rps("0-3"));
		load_start(&load, &s, (struct source){.count = 3000, .burst = 40});
		load_end(&load, &s);
		assert_int_equal(watcher.forgotten, 0);
		scene_end(&s);
	}
}

static void case_17_remote_first(void **state)
{
	(void)state;
	over_pollers(case_17_seed);
}

/* A full backlog: exactly what fits is in it, the rest is counted twice, where and by whom. */
static void case_19_full(enum poller poller)
{
	struct engine_config config = {.poller = poller, .max_backlog = 100};
	struct source source;
	struct scene s;

	scene_begin_cpus(&s, true, 5, CPUS, config);
	scene_set(&s, "a", -1, rps("2"));
	backlog_disable(&s, 2);
	source = source_by_hand(&s, 0, FLOWS);
	source_send(&s, &source, 99);
	assert_int_equal(backlogs_held(&s), 99);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 0);
	source_send(&s, &source, 1);
	assert_int_equal(backlogs_held(&s), 100);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 0);
	source_send(&s, &source, 150);
	assert_int_equal(backlogs_held(&s), 100);
	assert_int_equal(PORT_SUM(s.a, steered), 100);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 150);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 0);
	assert_int_equal(port_held(s.a), 0);
	for (unsigned i = 0; i < CPUS; i++) {
		assert_int_equal(cpu_record(&s, i)->backlog.dropped, i == 2 ? 150 : 0);
		assert_int_equal(cpu_record(&s, i)->backlog.flow_limit, 0);
		assert_int_equal(cpu_record(&s, i)->backlog.length, i == 2 ? 100 : 0);
	}
	backlog_enable(&s, 2);
	scene_run(&s, SETTLE);
	assert_int_equal(backlogs_held(&s), 0);
	assert_int_equal(PORT_SUM(backlog_port(&s), transmitted), 100);
	scene_end(&s);
}

static void case_19_drops_are_counted(void **state)
{
	(void)state;
	over_pollers(case_19_full);
}

/* What did get in is kicked, also when the rest of its vector was dropped. */
static void kicked_though_dropped(enum poller poller)
{
	struct engine_config config = {.poller = poller, .max_backlog = 10};
	struct source source;
	struct sink sink;
	struct scene s;

	scene_begin_cpus(&s, true, 5, CPUS, config);
	scene_set(&s, "a", -1, rps("2"));
	sink = (struct sink){.scene = &s, .port = s.b};
	sink_start(&sink);
	source = source_by_hand(&s, 0, FLOWS);
	for (int i = 1; i <= 5; i++) {
		source_send(&s, &source, 64);
		assert_int_equal(backlogs_held(&s), 0);
		assert_true(PORT_SUM(s.a, steered) >= 10 * (uint64_t)i);
	}
	assert_true(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]) > 0);
	sink_stop(&sink);
	assert_int_equal(sink.received, PORT_SUM(s.a, steered));
	scene_end(&s);
}

static void what_got_in_is_kicked(void **state)
{
	(void)state;
	over_pollers(kicked_though_dropped);
}

/* Half full: a flow that has more than half of the last 128 packets loses its next ones. */
static void case_19_limit(enum poller poller)
{
	struct engine_config config = {.poller = poller, .max_backlog = 200, .flow_limit = 4096};
	struct source large, small;
	struct scene s;

	scene_begin_cpus(&s, true, 5, CPUS, config);
	scene_set(&s, "a", -1, rps("2"));
	backlog_disable(&s, 2);
	large = source_by_hand(&s, 1, 1);
	small = source_by_hand(&s, 2, 1);
	source_send(&s, &large, 100);
	source_send(&s, &large, 64);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 0);
	source_send(&s, &large, 6);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 6);
	source_send(&s, &small, 30);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 6);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 0);
	assert_int_equal(cpu_record(&s, 2)->backlog.flow_limit, 6);
	assert_int_equal(cpu_record(&s, 2)->backlog.dropped, 0);
	assert_int_equal(backlogs_held(&s), 194);
	assert_int_equal(port_held(s.a), 0);
	/* Off, live: then only what there is room for counts. */
	scene_set_engine(&s, (struct engine_settings){.flow_limit_set = true});
	source_send(&s, &large, 10);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_FLOW_LIMIT]), 6);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 4);
	backlog_enable(&s, 2);
	scene_run(&s, SETTLE);
	scene_end(&s);
}

static void case_19_flow_limit(void **state)
{
	(void)state;
	over_pollers(case_19_limit);
}

/* netdev_max_backlog while packets stand there: what is there stays, and what comes counts. */
static void max_backlog_is_live(enum poller poller)
{
	struct source source;
	struct sink sink;
	struct scene s;

	steer_begin(&s, true, 6, poller);
	scene_set(&s, "a", -1, rps("2"));
	backlog_disable(&s, 2);
	source = source_by_hand(&s, 0, FLOWS);
	source_send(&s, &source, 500);
	scene_set_engine(&s, (struct engine_settings){.max_backlog_set = true, .max_backlog = 10});
	source_send(&s, &source, 5);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 5);
	assert_int_equal(backlogs_held(&s), 500);
	scene_set_engine(&s,
			 (struct engine_settings){.max_backlog_set = true, .max_backlog = 2000});
	source_send(&s, &source, 700);
	assert_int_equal(backlogs_held(&s), 1200);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_BACKLOG_FULL]), 5);
	sink = (struct sink){.scene = &s, .port = s.b};
	sink_start(&sink);
	backlog_enable(&s, 2);
	scene_run(&s, SETTLE);
	sink_stop(&sink);
	/* Its port has room for 1024. */
	assert_int_equal(sink.received + PORT_SUM(backlog_port(&s), dropped[DROP_TX_FULL]), 1200);
	assert_int_equal(sink.disorder, 0);
	scene_end(&s);
}

static void max_backlog_changes(void **state)
{
	(void)state;
	over_pollers(max_backlog_is_live);
}

/* Two ports share a backlog: each one's packets go its way, by the transmit queue they had before.
 */
static void ports_share(enum poller poller)
{
	struct source first, second;
	struct sink sink, wide;
	struct scene s;
	struct port *c, *d;

	steer_begin(&s, true, 12, poller);
	d = scene_port(&s, "d,queues=4", NULL);
	c = scene_port(&s, "c", d);
	scene_set(&s, "a", -1, rps("3"));
	scene_set(&s, "c", -1, rps("3"));
	backlog_disable(&s, 3);
	first = source_by_hand(&s, 0, FLOWS);
	second = source_by_hand(&s, 0, FLOWS);
	second.port = c;
	for (int i = 0; i < 5; i++) {
		source_send(&s, &first, 11);
		source_send(&s, &second, 13);
	}
	sink = (struct sink){.scene = &s, .port = s.b};
	wide = (struct sink){.scene = &s, .port = d}; /* takes from its queue 0 */
	sink_start(&sink);
	sink_start(&wide);
	backlog_enable(&s, 3);
	scene_run(&s, SETTLE);
	sink_stop(&sink);
	sink_stop(&wide);
	assert_int_equal(sink.received, 55);
	assert_int_equal(wide.received, 65);
	assert_int_equal(sink.disorder + wide.disorder, 0);
	scene_end(&s);
}

static void ports_share_a_backlog(void **state)
{
	(void)state;
	over_pollers(ports_share);
}

/* A port that is removed leaves nothing in the backlogs; what others put there stays. */
static void purged(enum poller poller)
{
	struct source gone, stays;
	struct sink sink;
	struct scene s;
	struct port *c, *d;

	steer_begin(&s, true, 8, poller);
	d = scene_port(&s, "d", NULL);
	c = scene_port(&s, "c", d);
	scene_set(&s, "a", -1, rps("1"));
	scene_set(&s, "c", -1, rps("1,2"));
	backlog_disable(&s, 1);
	backlog_disable(&s, 2);
	gone = source_by_hand(&s, 0, FLOWS);
	stays = source_by_hand(&s, 0, FLOWS);
	stays.port = c;
	for (int i = 0; i < 4; i++) {
		source_send(&s, &stays, 30);
		source_send(&s, &gone, 25);
	}
	assert_int_equal(backlogs_held(&s), 220);
	assert_int_equal(engine_port_remove(s.engine, s.a, NULL), 0);
	assert_int_equal(counter_read(&backlog_counters(&s, 1)->dropped[DROP_PORT_REMOVED]), 100);
	assert_int_equal(port_held(backlog_port(&s)), 0);
	assert_true(napi_disabled(backlog_port(&s)->queue[1].napi));
	sink = (struct sink){.scene = &s, .port = d};
	sink_start(&sink);
	backlog_enable(&s, 1);
	backlog_enable(&s, 2);
	scene_run(&s, SETTLE);
	sink_stop(&sink);
	assert_int_equal(backlogs_held(&s), 0);
	assert_int_equal(sink.received, 120);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	/* What was set for it holds again when it comes back. */
	s.a = scene_port(&s, "a", s.b);
	gone.port = s.a;
	source_send(&s, &gone, 10);
	assert_int_equal(counter_read(&backlog_counters(&s, 1)->received) +
				 counter_read(&backlog_counters(&s, 2)->received),
			 230);
	scene_end(&s);
}

static void removal_purges(void **state)
{
	(void)state;
	over_pollers(purged);
}

/* Removed while everybody works: nothing is lost track of. */
static void removed_at_work(enum poller poller)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct load load;
		struct scene s;
		uint64_t out = 0;

		steer_begin(&s, true, seed, poller);
		scene_set(&s, "a", -1, rps("0-3"));
		load_start(&load, &s, (struct source){.count = 2000, .burst = 1 + seed % 60});
		source_stop(&load.source);
		assert_int_equal(engine_port_remove(s.engine, s.a, NULL), 0);
		scene_run(&s, SETTLE);
		sink_stop(&load.sink);
		assert_int_equal(load.sink.disorder, 0);
		assert_int_equal(backlogs_held(&s), 0);
		for (unsigned i = 0; i < CPUS; i++)
			out += counter_read(&backlog_counters(&s, i)->dropped[DROP_PORT_REMOVED]);
		assert_true(load.sink.received + out <= load.source.sent);
		scene_end(&s);
	}
}

static void removal_at_work(void **state)
{
	(void)state;
	over_pollers(removed_at_work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_17_own_last),
		cmocka_unit_test(case_17_remote_first),
		cmocka_unit_test(case_19_drops_are_counted),
		cmocka_unit_test(what_got_in_is_kicked),
		cmocka_unit_test(case_19_flow_limit),
		cmocka_unit_test(max_backlog_changes),
		cmocka_unit_test(ports_share_a_backlog),
		cmocka_unit_test(removal_purges),
		cmocka_unit_test(removal_at_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What every poller has to do, on both machines: packets through, in order, counted exactly. */
#include "scene.h"

static void through(bool virtual, enum poller poller)
{
	struct scene s;
	struct source source = {.scene = &s, .burst = 10, .interval = 20 * NSEC_PER_USEC};
	struct source back = {.scene = &s, .burst = 3, .interval = 7 * NSEC_PER_USEC, .flow = 1};
	struct sink sink = {.scene = &s}, sink_back = {.scene = &s};

	scene_begin(&s, virtual, 1, poller);
	source.port = sink_back.port = s.a;
	back.port = sink.port = s.b;
	source.count = 5000;
	back.count = 3000;
	sink_start(&sink);
	sink_start(&sink_back);
	source_start(&source);
	source_start(&back);
	source_stop(&source);
	source_stop(&back);
	scene_drain(&s, s.a, source.sent);
	scene_drain(&s, s.b, back.sent);
	sink_stop(&sink);
	sink_stop(&sink_back);

	assert_int_equal(PORT_SUM(s.a, received), 5000);
	assert_int_equal(PORT_SUM(s.a, received_bytes), 5000 * SCENE_FRAME);
	assert_int_equal(PORT_SUM(s.b, received), 3000);
	assert_int_equal(PORT_SUM(s.a, transmitted) + PORT_SUM(s.a, dropped[DROP_TX_FULL]), 5000);
	assert_int_equal(sink.received, PORT_SUM(s.a, transmitted));
	assert_int_equal(sink_back.received, PORT_SUM(s.b, transmitted));
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink_back.disorder, 0);
	/* After the last that came through there may be more that did not. */
	assert_int_equal(sink.missing + 5000 - sink.next[source.flow],
			 PORT_SUM(s.a, dropped[DROP_TX_FULL]));
	assert_int_equal(napi_poller(s.a->queue[0].napi), poller);
	scene_end(&s);
}

static void through_virtual(enum poller poller)
{
	through(true, poller);
}

static void through_host(enum poller poller)
{
	through(false, poller);
}

static void on_the_virtual_machine(void **state)
{
	(void)state;
	over_pollers(through_virtual);
}

static void on_the_host(void **state)
{
	(void)state;
	over_pollers(through_host);
}

static uint64_t hash_of_run(uint64_t seed, enum poller poller)
{
	struct virtual_stats stats;
	struct scene s;
	struct source source = {.scene = &s, .burst = 5, .interval = 9 * NSEC_PER_USEC};

	scene_begin(&s, true, seed, poller);
	source.port = s.a;
	source.count = 2000;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, 2000);
	machine_virtual_stats(s.machine, &stats);
	/* Nobody took them: what did not fit into the ring was dropped and counted. */
	assert_true(PORT_SUM(s.a, dropped[DROP_TX_FULL]) > 0);
	scene_end(&s);
	return stats.trace_hash;
}

static void one_seed_one_run(enum poller poller)
{
	assert_true(hash_of_run(7, poller) == hash_of_run(7, poller));
	assert_true(hash_of_run(7, poller) != hash_of_run(8, poller));
}

static void a_seed_replays(void **state)
{
	(void)state;
	over_pollers(one_seed_one_run);
}

/* No handler: everything is counted as that, nothing is sent. */
static void without_handler(enum poller poller)
{
	struct scene s;
	struct source source = {.scene = &s, .burst = 64, .interval = NSEC_PER_USEC};

	scene_begin(&s, true, 3, poller);
	assert_int_equal(engine_handler_set(s.engine, s.a, NULL, NULL), 0);
	source.port = s.a;
	source.count = 1000;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, 1000);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_NO_HANDLER]), 1000);
	assert_int_equal(PORT_SUM(s.a, transmitted), 0);
	scene_end(&s);
}

static void drops_without_handler(void **state)
{
	(void)state;
	over_pollers(without_handler);
}

/* What a thread of the application's own sends goes out at its kick. */
static void own_context(enum poller poller)
{
	struct context *context;
	struct packet *p;
	struct scene s;

	scene_begin(&s, true, 4, poller);
	assert_int_equal(mem_port_wire(s.a, s.b), 0);
	assert_int_equal(engine_handler_set(s.engine, s.b, NULL, NULL), 0);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	scene_run(&s, NSEC_PER_MSEC);
	assert_int_equal(packet_alloc(&context->cache, &p, 1), 1);
	memset(p->data, 0, SCENE_FRAME);
	p->len = p->total = SCENE_FRAME;
	port_transmit(context, s.a, &p, 1);
	if (poller != POLLER_BUSY_POLL) { /* which looks anyway */
		scene_run(&s, NSEC_PER_MSEC);
		assert_int_equal(PORT_SUM(s.b, received), 0);
	}
	context_kick(context);
	scene_drain(&s, s.b, 1);
	assert_int_equal(PORT_SUM(s.b, dropped[DROP_NO_HANDLER]), 1);
	engine_context_close(context);
	scene_end(&s);
}

static void sends_from_a_context_of_its_own(void **state)
{
	(void)state;
	over_pollers(own_context);
}

static void send_through(struct scene *s, struct port *port, uint32_t count, uint64_t received)
{
	struct source source = {
		.scene = s, .port = port, .burst = 10, .interval = NSEC_PER_USEC, .count = count};

	source_start(&source);
	source_stop(&source);
	scene_drain(s, port, received);
}

/* A port that goes and comes back counts on, at both of its ends; another one begins at 0. */
static void comes_back(enum poller poller)
{
	struct scene s;
	struct port *other;

	scene_begin(&s, true, 5, poller);
	send_through(&s, s.a, 100, 100);
	assert_int_equal(s.b->queue[0].transmit->packets, 100);
	assert_int_equal(engine_port_remove(s.engine, s.a, NULL), 0);
	assert_int_equal(engine_port_remove(s.engine, s.b, NULL), 0);
	other = scene_port(&s, "c", NULL);
	assert_int_equal(PORT_SUM(other, received), 0);
	s.b = scene_port(&s, "b", NULL);
	s.a = scene_port(&s, "a", s.b);
	assert_int_equal(PORT_SUM(s.a, received), 100);
	assert_int_equal(s.b->queue[0].transmit->packets, 100);
	send_through(&s, s.a, 50, 150);
	assert_int_equal(PORT_SUM(s.a, received), 150);
	assert_int_equal(PORT_SUM(s.a, transmitted), 150);
	assert_int_equal(PORT_SUM(s.a, received_bytes), 150 * SCENE_FRAME);
	assert_int_equal(s.b->queue[0].transmit->packets, 150);
	scene_end(&s);
}

static void counts_on_when_it_comes_back(void **state)
{
	(void)state;
	over_pollers(comes_back);
}

/* Names come and go for ever: there is always room, and the latest are remembered. */
static void forgets_the_oldest_counters(void **state)
{
	struct port *port;
	struct scene s;
	char name[16];

	(void)state;
	scene_begin(&s, true, 6, POLLER_SOFTIRQ);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "p%d", i);
		port = scene_port(&s, name, NULL);
		assert_int_equal(PORT_SUM(port, received), 0);
		send_through(&s, port, 10, 10);
		assert_int_equal(engine_port_remove(s.engine, port, NULL), 0);
	}
	for (int i = 299; i >= 200; i--) {
		snprintf(name, sizeof(name), "p%d", i);
		port = scene_port(&s, name, NULL);
		assert_int_equal(PORT_SUM(port, received), 10);
		assert_int_equal(engine_port_remove(s.engine, port, NULL), 0);
	}
	port = scene_port(&s, "p0", NULL);
	assert_int_equal(PORT_SUM(port, received), 0);
	scene_end(&s);
}

/* Whichever of its runners cannot be started: nothing is left, and the next attempt succeeds. */
static void starts_or_leaves_nothing(void **state)
{
	bool started = false;

	(void)state;
	for (uint32_t n = 1; !started && n < 32; n++) {
		struct virtual_config config = {.cpus = 3};
		struct virtual_faults faults = {.start_fails = n};
		struct engine_config engine_config = {.name = "fails"};
		struct engine *engine;
		struct error err = {0};

		assert_int_equal(machine_virtual_create(&config, &engine_config.machine), 0);
		machine_virtual_faults_set(engine_config.machine, &faults);
		started = !engine_create(&engine_config, &engine, &err);
		if (!started) {
			assert_true(err.text[0]);
			assert_int_equal(engine_create(&engine_config, &engine, &err), 0);
		}
		engine_destroy(engine);
		machine_destroy(engine_config.machine);
	}
	assert_true(started);
}

/* A path that does not fit is refused, and the longest that does is the one that is opened. */
static void paths_are_not_cut(void **state)
{
	struct virtual_config machine = {.cpus = 1};
	struct engine_config config = {.name = "paths"};
	struct engine *engine;
	struct error err = {0};
	char path[257];

	(void)state;
	assert_int_equal(machine_virtual_create(&machine, &config.machine), 0);
	memset(path, '/', 256);
	path[256] = '\0';
	config.counters_path = path;
	assert_int_equal(engine_create(&config, &engine, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "counters_path has 256 bytes: it must be at most 255"));
	config.counters_path = path + 1;
	assert_int_equal(engine_create(&config, &engine, &err), -EEXIST);
	config.counters_path = NULL;
	config.restore_path = path;
	assert_int_equal(engine_create(&config, &engine, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.text, "restore_path"));
	machine_destroy(config.machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_virtual_machine),
		cmocka_unit_test(on_the_host),
		cmocka_unit_test(a_seed_replays),
		cmocka_unit_test(drops_without_handler),
		cmocka_unit_test(sends_from_a_context_of_its_own),
		cmocka_unit_test(counts_on_when_it_comes_back),
		cmocka_unit_test(forgets_the_oldest_counters),
		cmocka_unit_test(starts_or_leaves_nothing),
		cmocka_unit_test(paths_are_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge while its ports come and go under traffic, on both machines. */
#include "scene.h"

#define ROUNDS 40

static struct port *bridged(struct scene *s, struct handler *bridge, const char *name)
{
	struct port *port = scene_port(s, name, NULL);

	assert_int_equal(engine_handler_set(s->engine, port, bridge, NULL), 0);
	return port;
}

struct traffic {
	const struct source *source, *back;
	const struct port *a;
	struct handler *bridge;
};

/* Both have sent, some of it was flooded to the guest too, and the address has moved. */
static bool flows(void *arg)
{
	const struct traffic *t = arg;
	struct bridge_stats stats;

	bridge_stats_read(t->bridge, &stats);
	return t->source->sent && t->back->sent && PORT_SUM(t->a, cloned) && stats.moved;
}

/*
 * Both sources use one address, so it moves with every vector, from two runners; nobody answers, so
 * all is flooded, to a port that is taken away and comes back all the time.
 */
static void come_and_go(bool virtual, enum poller poller)
{
	struct scene s;
	struct source source = {.scene = &s, .burst = 40, .interval = 50 * NSEC_PER_USEC};
	struct source back = {.scene = &s, .burst = 7, .interval = 30 * NSEC_PER_USEC, .flow = 1};
	struct sink sink = {.scene = &s}, sink_back = {.scene = &s};
	struct bridge_config config = {0};
	struct bridge_stats stats;
	struct traffic traffic;
	struct handler *bridge;
	struct port *guest;

	scene_begin(&s, virtual, 11, poller);
	assert_int_equal(bridge_create(s.engine, &config, &bridge, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, bridge, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, s.b, bridge, NULL), 0);
	source.port = sink_back.port = s.a;
	back.port = sink.port = s.b;
	sink_start(&sink);
	sink_start(&sink_back);
	source_start(&source);
	source_start(&back);
	/* On a busy host not even their runners may have begun when all rounds are over. */
	guest = bridged(&s, bridge, "guest");
	traffic = (struct traffic){&source, &back, s.a, bridge};
	assert_int_equal(scene_wait(s.machine, flows, &traffic), 0);
	scene_port_remove(guest);
	for (int i = 0; i < ROUNDS; i++) {
		guest = bridged(&s, bridge, "guest");
		scene_run(&s, NSEC_PER_MSEC);
		/* By its handler's being taken away, or altogether. */
		if (i % 2)
			assert_int_equal(engine_handler_set(s.engine, guest, NULL, NULL), 0);
		scene_port_remove(guest);
		/* The same to one that is being polled all the time. */
		if (i % 5 == 4) {
			assert_int_equal(engine_handler_set(s.engine, s.a, NULL, NULL), 0);
			scene_run(&s, 100 * NSEC_PER_USEC);
			assert_int_equal(engine_handler_set(s.engine, s.a, bridge, NULL), 0);
			scene_run(&s, NSEC_PER_MSEC);
		}
	}
	source_stop(&source);
	source_stop(&back);
	scene_drain(&s, s.a, source.sent);
	scene_drain(&s, s.b, back.sent);
	sink_stop(&sink);
	sink_stop(&sink_back);

	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink_back.disorder, 0);
	bridge_stats_read(bridge, &stats);
	assert_true(stats.learned <= 1 + ROUNDS / 5);
	assert_true(stats.entries <= 1);
	scene_end(&s);
}

static void come_and_go_virtual(enum poller poller)
{
	come_and_go(true, poller);
}

static void come_and_go_host(enum poller poller)
{
	come_and_go(false, poller);
}

static void on_the_virtual_machine(void **state)
{
	(void)state;
	over_pollers(come_and_go_virtual);
}

static void on_the_host(void **state)
{
	(void)state;
	over_pollers(come_and_go_host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_the_virtual_machine),
		cmocka_unit_test(on_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The host handler's pairs, on both machines: mem ports stand for wires and TAPs. */
#include "scene.h"

#include <errno.h>

#include <core/napi.h>

static struct port *hosted(struct scene *s, struct handler *host, const char *name)
{
	struct port *port = scene_port(s, name, NULL);

	assert_int_equal(engine_handler_set(s->engine, port, host, NULL), 0);
	return port;
}

static struct handler *host_begin(struct scene *s, bool virtual, enum poller poller)
{
	struct handler *host;

	scene_begin(s, virtual, 5, poller);
	assert_int_equal(host_create(s->engine, &host), 0);
	assert_int_equal(engine_handler_set(s->engine, s->a, host, NULL), 0);
	assert_int_equal(engine_handler_set(s->engine, s->b, host, NULL), 0);
	return host;
}

/* What a port receives goes out by its own other end, in order, and by no other. */
static void pairs(bool virtual, enum poller poller)
{
	struct scene s;
	struct handler *host = host_begin(&s, virtual, poller);
	struct port *c = hosted(&s, host, "c"), *d = hosted(&s, host, "d");
	struct sink at_a = {.scene = &s, .port = s.a}, at_b = {.scene = &s, .port = s.b};
	struct sink at_c = {.scene = &s, .port = c}, at_d = {.scene = &s, .port = d};
	struct source to_b = {.scene = &s,
			      .port = s.a,
			      .burst = 9,
			      .interval = 50000,
			      .count = 2000,
			      .paced_by = &at_b,
			      .window = 100};
	struct source to_a = {.scene = &s,
			      .port = s.b,
			      .burst = 5,
			      .interval = 30000,
			      .count = 1000,
			      .paced_by = &at_a,
			      .window = 100};
	struct source to_d = {.scene = &s,
			      .port = c,
			      .burst = 3,
			      .interval = 40000,
			      .count = 500,
			      .paced_by = &at_d,
			      .window = 100};

	assert_int_equal(host_pair(host, s.a, s.b, NULL), 0);
	assert_int_equal(host_pair(host, c, d, NULL), 0);
	sink_start(&at_a);
	sink_start(&at_b);
	sink_start(&at_c);
	sink_start(&at_d);
	source_start(&to_b);
	source_start(&to_a);
	source_start(&to_d);
	source_stop(&to_b);
	source_stop(&to_a);
	source_stop(&to_d);
	scene_drain(&s, s.a, 2000);
	scene_drain(&s, s.b, 1000);
	scene_drain(&s, c, 500);
	sink_stop(&at_a);
	sink_stop(&at_b);
	sink_stop(&at_c);
	sink_stop(&at_d);
	assert_int_equal(at_b.received, 2000);
	assert_int_equal(at_a.received, 1000);
	assert_int_equal(at_d.received, 500);
	assert_int_equal(at_c.received, 0);
	assert_int_equal(at_a.disorder + at_b.disorder + at_d.disorder, 0);
	scene_end(&s);
}

/* The other end goes and comes under traffic; what cannot go there is dropped and counted. */
static void other_end_comes_and_goes(bool virtual, enum poller poller)
{
	struct scene s;
	struct handler *host = host_begin(&s, virtual, poller);
	struct sink sink = {.scene = &s, .port = s.a};
	struct source source = {.scene = &s, .port = s.a, .burst = 20, .interval = 50000};

	sink_start(&sink);
	source_start(&source);
	for (int i = 0; i < 20; i++) {
		struct port *tap = hosted(&s, host, "tap");

		assert_int_equal(host_pair(host, s.a, tap, NULL), 0);
		scene_run(&s, NSEC_PER_MSEC);
		if (i % 2)
			assert_int_equal(engine_handler_set(s.engine, tap, NULL, NULL), 0);
		scene_port_remove(tap);
		/* On a busy host the source may not have run since. */
		scene_dropped(&s, s.a, DROP_TX_DOWN, PORT_SUM(s.a, dropped[DROP_TX_DOWN]) + 1);
	}
	source_stop(&source);
	scene_drain(&s, s.a, source.sent);
	sink_stop(&sink);
	assert_int_equal(port_held(s.a), 0);
	scene_end(&s);
}

/* A port merges what its other end takes in one piece, as long as it has that. */
static void merges_for_its_other_end(void **state)
{
	struct handler *host;
	struct scene s;

	(void)state;
	host = host_begin(&s, true, POLLER_SOFTIRQ);
	s.b->features |= PORT_TX_CSUM | PORT_TX_GSO;
	assert_int_equal(atomic_load(&s.a->queue[0].napi->gro_types), 0);
	assert_int_equal(host_pair(host, s.a, s.b, NULL), 0);
	assert_int_equal(atomic_load(&s.a->queue[0].napi->gro_types), GRO_TCP);
	assert_int_equal(atomic_load(&s.b->queue[0].napi->gro_types), 0);
	assert_int_equal(engine_handler_set(s.engine, s.b, NULL, NULL), 0);
	assert_int_equal(atomic_load(&s.a->queue[0].napi->gro_types), 0);
	scene_end(&s);
}

static void pairs_virtual(enum poller poller)
{
	pairs(true, poller);
}

static void pairs_host(enum poller poller)
{
	pairs(false, poller);
}

static void goes_virtual(enum poller poller)
{
	other_end_comes_and_goes(true, poller);
}

static void goes_host(enum poller poller)
{
	other_end_comes_and_goes(false, poller);
}

static void pairs_on_both(void **state)
{
	(void)state;
	over_pollers(pairs_virtual);
	over_pollers(pairs_host);
}

static void goes_on_both(void **state)
{
	(void)state;
	over_pollers(goes_virtual);
	over_pollers(goes_host);
}

static void refuses(void **state)
{
	struct error err;
	struct scene s;
	struct handler *host = host_begin(&s, true, POLLER_THREAD);
	struct port *c = hosted(&s, host, "c"), *stranger = scene_port(&s, "stranger", NULL);

	(void)state;
	assert_int_equal(host_pair(host, s.a, s.a, &err), -EINVAL);
	assert_int_equal(host_pair(host, s.a, stranger, &err), -EINVAL);
	assert_non_null(strstr(err.text, "stranger"));
	assert_int_equal(host_pair(host, s.a, s.b, &err), 0);
	assert_int_equal(host_pair(host, c, s.b, &err), -EBUSY);
	assert_int_equal(host_pair(host, s.a, c, &err), -EBUSY);
	/* Free again once its other end has left. */
	assert_int_equal(engine_handler_set(s.engine, s.b, NULL, NULL), 0);
	assert_int_equal(host_pair(host, s.a, c, &err), 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_on_both),
		cmocka_unit_test(goes_on_both),
		cmocka_unit_test(refuses),
		cmocka_unit_test(merges_for_its_other_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GRO's way through the engine: what is merged, where it is asked for, and how it goes out. Over
 * all pollers.
 */
#include "gro_scene.h"

#include <core/engine.h>
#include <core/gro.h>
#include <core/napi.h>

/* Trains of eight flows: fewer packets go on than came, and out go those that came. */
static void merged(enum poller poller)
{
	struct source source = {
		.flows = 8, .burst = 64, .interval = 50 * NSEC_PER_USEC, .count = 6400};
	struct sink sink = {0};
	struct scene s;

	scene_one(&s, poller);
	merge_on(&s, 0);
	scene_pass(&s, &source, &sink);
	assert_int_equal(sink.received, 6400);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	assert_in_range(PORT_SUM(s.a, merged), 3200, 6400);
	assert_int_equal(PORT_SUM(s.a, cloned), PORT_SUM(s.a, merged));
	assert_int_equal(PORT_SUM(s.a, transmitted), 6400);
	scene_end(&s);
}

static void merges_and_gives_back(void **state)
{
	(void)state;
	over_pollers(merged);
}

/* A port that takes super-packets gets them, one for many, with one header. */
static void taken_whole(enum poller poller)
{
	struct source source = {.flow = 5, .flows = 1, .burst = 32, .count = 32, .interval = 1000};
	struct packet *v[PACKET_VECTOR_MAX];
	struct context *context;
	struct scene s;
	uint32_t n, frames = 0;

	scene_one(&s, poller);
	s.b->features |= PORT_TX_CSUM | PORT_TX_GSO | PORT_TX_USO;
	merge_on(&s, 0);
	source.scene = &s;
	source.port = s.a;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, 32);
	n = mem_port_receive(s.b, v, PACKET_VECTOR_MAX);
	assert_in_range(n, 1, 8);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(v[i]->flags & PACKET_FRAMES, 0);
		for (const struct packet *p = v[i]; p; p = p->next)
			frames++;
	}
	assert_int_equal(frames, 32);
	assert_int_equal(PORT_SUM(s.a, merged), 32 - n);
	assert_int_equal(PORT_SUM(s.a, transmitted), n);
	assert_int_equal(PORT_SUM(s.a, cloned), 0);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	packet_free(&context->cache, v, n);
	engine_context_close(context);
	scene_end(&s);
}

/* UDP in one piece is not for each that takes TCP so: then out goes what came. */
static void taken_apart(enum poller poller)
{
	struct source source = {.flow = 5, .flows = 1, .burst = 32, .count = 32, .interval = 1000};
	struct sink sink = {0};
	struct scene s;

	scene_one(&s, poller);
	s.b->features |= PORT_TX_CSUM | PORT_TX_GSO;
	merge_on(&s, 0);
	scene_pass(&s, &source, &sink);
	assert_int_equal(sink.received, 32);
	assert_int_equal(sink.missing, 0);
	assert_true(PORT_SUM(s.a, merged) > 16);
	assert_int_equal(PORT_SUM(s.a, cloned), PORT_SUM(s.a, merged));
	scene_end(&s);
}

static void goes_out_apart(void **state)
{
	(void)state;
	over_pollers(taken_apart);
}

static void goes_out_whole(void **state)
{
	(void)state;
	over_pollers(taken_whole);
}

/* Off again under load: in order, and no more is merged. */
static void turned_off(enum poller poller)
{
	struct source source = {.flows = 4, .burst = 16, .interval = 20 * NSEC_PER_USEC};
	struct queue_settings off = {.gro_set = true, .gro = GRO_OFF};
	struct sink sink = {0};
	uint64_t before;
	struct scene s;

	scene_one(&s, poller);
	merge_on(&s, 50 * NSEC_PER_USEC);
	source.scene = sink.scene = &s;
	source.port = s.a;
	sink.port = s.b;
	sink_start(&sink);
	source_start(&source);
	for (int i = 0; i < 20; i++) {
		scene_run(&s, NSEC_PER_MSEC);
		off.gro = i % 2 ? GRO_ON : GRO_OFF;
		assert_int_equal(engine_queue_set(s.engine, "a", -1, &off, NULL, NULL), 0);
	}
	assert_true(PORT_SUM(s.a, merged) > 0);
	off.gro = GRO_OFF;
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &off, NULL, NULL), 0);
	scene_run(&s, NSEC_PER_MSEC);
	before = PORT_SUM(s.a, merged);
	scene_run(&s, 5 * NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(s.a, merged), before);
	source_stop(&source);
	scene_drain(&s, s.a, source.sent);
	sink_stop(&sink);
	assert_int_equal(sink.received, source.sent);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	scene_end(&s);
}

static void on_and_off_under_load(void **state)
{
	(void)state;
	over_pollers(turned_off);
}

/* Steering is after GRO: a super-packet is put into a backlog as one. */
static void steered(enum poller poller)
{
	struct source source = {
		.flows = 8, .burst = 64, .interval = 50 * NSEC_PER_USEC, .count = 6400};
	struct queue_settings settings = {.rps_cpus_set = true};
	struct sink sink = {0};
	struct scene s;

	scene_one(&s, poller);
	merge_on(&s, 0);
	cpuset_add(&settings.rps_cpus, 0);
	cpuset_add(&settings.rps_cpus, 1);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
	scene_pass(&s, &source, &sink);
	assert_int_equal(sink.received, 6400);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(sink.missing, 0);
	assert_in_range(PORT_SUM(s.a, merged), 3200, 6400);
	assert_int_equal(PORT_SUM(s.a, steered), 6400 - PORT_SUM(s.a, merged));
	scene_end(&s);
}

static void merged_before_steering(void **state)
{
	(void)state;
	over_pollers(steered);
}

/* Each of the ports that it floods to gets what came: a copy of the chain for one of them. */
static void flooded(enum poller poller)
{
	struct source source = {
		.flows = 4, .burst = 64, .interval = 50 * NSEC_PER_USEC, .count = 1280};
	static const struct bridge_config plain;
	struct sink b = {0}, c = {0};
	struct handler *bridge;
	struct scene s;

	scene_one(&s, poller);
	assert_int_equal(bridge_create(s.engine, &plain, &bridge, NULL), 0);
	c.port = scene_port(&s, "c", NULL);
	assert_int_equal(engine_handler_set(s.engine, s.a, bridge, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, s.b, bridge, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, c.port, bridge, NULL), 0);
	merge_on(&s, 0);
	c.scene = &s;
	sink_start(&c);
	scene_pass(&s, &source, &b);
	sink_stop(&c);
	assert_int_equal(b.received, 1280);
	assert_int_equal(c.received, 1280);
	assert_int_equal(b.disorder + c.disorder, 0);
	assert_int_equal(b.missing + c.missing, 0);
	assert_true(PORT_SUM(s.a, merged) > 640);
	scene_end(&s);
}

static void floods(void **state)
{
	(void)state;
	over_pollers(flooded);
}

static uint32_t types_of(const struct port *port)
{
	return atomic_load(&port->queue[0].napi->record->gro);
}

static unsigned merges_udp(struct handler *handler, struct port *in)
{
	(void)handler;
	(void)in;
	return GRO_UDP;
}

/* What is asked and what is in force, by setting and handler; kept for a port that comes again. */
static void asked_and_in_force(void **state)
{
	static const struct handler_ops udp_ops = {.name = "udp", .merges = merges_udp};
	static const struct bridge_config plain;
	struct handler udp = {.ops = &udp_ops}, *bridge;
	struct queue_settings settings = {.gro_set = true, .gro = GRO_SETTING_MAX};
	struct error err;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(types_of(s.a), 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, &udp, NULL), 0);
	assert_int_equal(types_of(s.a), GRO_UDP);
	assert_int_equal(atomic_load(&s.a->queue[0].napi->record->gro_asked), GRO_AUTO);
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &settings, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "no such gro; there are: auto, on, off");
	settings.gro = GRO_OFF;
	assert_int_equal(engine_queue_set(s.engine, "a", 0, &settings, NULL, NULL), 0);
	assert_int_equal(types_of(s.a), 0);
	settings.gro = GRO_ON;
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
	assert_int_equal(types_of(s.a), GRO_TCP | GRO_UDP);
	assert_int_equal(engine_port_remove(s.engine, s.a, NULL), 0);
	s.a = scene_port(&s, "a", s.b);
	assert_int_equal(types_of(s.a), GRO_TCP | GRO_UDP);
	settings.gro = GRO_AUTO;
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &settings, NULL, NULL), 0);
	assert_int_equal(types_of(s.a), 0);

	/* The bridge: for as long as another of its ports takes super-packets. */
	assert_int_equal(bridge_create(s.engine, &plain, &bridge, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, bridge, NULL), 0);
	assert_int_equal(types_of(s.a), 0);
	s.b->features |= PORT_TX_GSO;
	assert_int_equal(engine_handler_set(s.engine, s.b, bridge, NULL), 0);
	assert_int_equal(types_of(s.a), GRO_TCP);
	assert_int_equal(types_of(s.b), 0);
	assert_int_equal(engine_port_remove(s.engine, s.b, NULL), 0);
	assert_int_equal(types_of(s.a), 0);
	scene_end(&s);
}

static void normal_batch(void **state)
{
	struct engine_settings settings = {.gro_normal_batch_set = true, .gro_normal_batch = 65};
	struct source source = {
		.flows = 8, .burst = 64, .interval = 50 * NSEC_PER_USEC, .count = 640};
	struct sink sink = {0};
	struct error err;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_counters(s.engine)->gro_normal_batch, GRO_NORMAL_BATCH);
	assert_int_equal(engine_set(s.engine, &settings, &err), -ERANGE);
	assert_string_equal(err.text, "gro_normal_batch 65: must be 1 to 64");
	settings.gro_normal_batch = 1;
	assert_int_equal(engine_set(s.engine, &settings, NULL), 0);
	assert_int_equal(engine_counters(s.engine)->gro_normal_batch, 1);
	merge_on(&s, 0);
	scene_pass(&s, &source, &sink);
	assert_int_equal(sink.received, 640);
	assert_int_equal(sink.disorder, 0);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merges_and_gives_back),  cmocka_unit_test(goes_out_apart),
		cmocka_unit_test(goes_out_whole),	  cmocka_unit_test(on_and_off_under_load),
		cmocka_unit_test(merged_before_steering), cmocka_unit_test(floods),
		cmocka_unit_test(asked_and_in_force),	  cmocka_unit_test(normal_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

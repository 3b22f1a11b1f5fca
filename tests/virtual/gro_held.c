/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What GRO holds: when it goes on, and that nothing stays behind. Over all pollers; times are
 * virtual, and exact.
 */
#include "gro_scene.h"

#include <core/engine.h>
#include <core/gro.h>
#include <core/napi.h>
#include <napier/busy_poll.h>

#define TICK_250 (4 * NSEC_PER_MSEC)
/* From the end of a wait to the poll and out of it again. */
#define SLACK (300 * NSEC_PER_USEC)
/* A ring full of elephants before it, at 1 us each, and what a softirq leaves to others. */
#define QUEUED (2 * NSEC_PER_MSEC)

/* One packet of a flow of its own, and when it has come out. */
struct mouse {
	struct scene *scene;
	struct context *context;
	int64_t sent, seen;
};

static void mouse_send(struct mouse *mouse)
{
	struct packet *p;

	assert_int_equal(engine_context_open(mouse->scene->engine, &mouse->context), 0);
	assert_int_equal(packet_alloc(&mouse->context->cache, &p, 1), 1);
	scene_datagram(p, 40, 0);
	for (int i = 0; !mem_port_send(mouse->scene->a, &p, 1); i++) {
		assert_true(i < 100000);
		scene_run(mouse->scene, 100);
	}
	mouse->sent = machine_now(mouse->scene->machine);
}

/* Among others of whichever flow; those are freed. */
static bool mouse_out(void *arg)
{
	struct mouse *mouse = arg;
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = mem_port_receive(mouse->scene->b, v, PACKET_VECTOR_MAX);

	for (uint32_t i = 0; i < n; i++)
		if (v[i]->data[12] == 0x08 && v[i]->data[42] == 40)
			mouse->seen = machine_now(mouse->scene->machine);
	packet_free(&mouse->context->cache, v, n);
	return mouse->seen;
}

static void mouse_wait(struct mouse *mouse, int64_t ns)
{
	int64_t end = machine_now(mouse->scene->machine) + ns;

	while (!mouse->seen && machine_now(mouse->scene->machine) < end)
		machine_wait(mouse->scene->machine, mouse_out, mouse, end);
}

static void mouse_end(struct mouse *mouse)
{
	engine_context_close(mouse->context);
}

static bool mouse_sunk(void *arg)
{
	const struct sink *sink = arg;

	return sink->next[40];
}

/* One flow from a to b that merges and fills every poll. */
static void elephants_begin(struct scene *s, struct source *elephant, struct sink *sink,
			    enum poller poller, uint32_t timeout_ns)
{
	scene_begin_with(
		s, true, 7,
		(struct engine_config){.poller = poller, .packet_ns = 1000, .budget_usecs = 200});
	merge_on(s, timeout_ns);
	*sink = (struct sink){.scene = s, .port = s->b};
	*elephant = (struct source){.scene = s,
				    .port = s->a,
				    .flow = 3,
				    .flows = 1,
				    .burst = 64,
				    .interval = NSEC_PER_USEC,
				    .paced_by = sink,
				    .window = 900};
	sink_start(sink);
	source_start(elephant);
}

/*
 * A full poll follows on another, and each has packets of the same flow: a packet of another one
 * that came with the first is not held until they end.
 */
static void mouse_among_elephants(enum poller poller, uint32_t timeout_ns, int64_t bound)
{
	struct source elephant;
	struct sink sink;
	struct mouse mouse = {0};
	uint64_t polls, full;
	struct scene s;

	elephants_begin(&s, &elephant, &sink, poller, timeout_ns);
	mouse.scene = &s;
	scene_run(&s, 20 * NSEC_PER_MSEC);
	polls = PORT_SUM(s.a, polls);
	full = PORT_SUM(s.a, full_polls);
	mouse_send(&mouse);
	machine_wait(s.machine, mouse_sunk, &sink, mouse.sent + NSEC_PER_SEC);
	mouse.seen = machine_now(s.machine);
	polls = PORT_SUM(s.a, polls) - polls;
	full = PORT_SUM(s.a, full_polls) - full;
	/* Endless: there was none that would have let it go by itself. */
	assert_int_equal(full, polls);
	assert_true(polls > 10);
	assert_in_range(mouse.seen - mouse.sent, bound, bound + QUEUED);
	source_stop(&elephant);
	scene_drain(&s, s.a, elephant.sent + 1u);
	sink_stop(&sink);
	assert_int_equal(sink.disorder, 0);
	mouse_end(&mouse);
	scene_end(&s);
}

static void mouse_in_time(enum poller poller)
{
	mouse_among_elephants(poller, NSEC_PER_MSEC, NSEC_PER_MSEC);
	mouse_among_elephants(poller, 0, TICK_250);
}

static void case_16_mouse_among_full_polls(void **state)
{
	(void)state;
	over_pollers(mouse_in_time);
}

/* With a timeout it waits for more of its flow that long, and the timer brings it out. */
static void held_for(enum poller poller)
{
	const uint32_t timeout = 10 * NSEC_PER_MSEC;
	struct mouse mouse = {0};
	struct scene s;

	scene_one(&s, poller);
	merge_on(&s, timeout);
	mouse.scene = &s;
	scene_run(&s, NSEC_PER_MSEC);
	mouse_send(&mouse);
	mouse_wait(&mouse, NSEC_PER_SEC);
	assert_true(mouse.seen);
	assert_in_range(mouse.seen - mouse.sent, timeout - SLACK, timeout + SLACK);
	mouse_end(&mouse);
	scene_end(&s);
}

static void flush_timeout(void **state)
{
	(void)state;
	over_pollers(held_for);
}

/* What may happen to a NAPI while it holds a packet that waits for a second. */
enum event {
	DISABLE,
	SWITCH,
	MOVE,
	HANDLER,
	REMOVE,
	STEER,
	OFF_HANDLER, /* no longer merged, and another handler before the next poll */
	TIMEOUT_OFF, /* with the next poll */
	EVENTS
};

static void event_make(struct scene *s, enum event event)
{
	struct napi *napi = s->a->queue[0].napi;
	enum poller other = (enum poller)((napi_poller(napi) + 1) % POLLER_RUNNER_MAX);
	struct queue_settings settings = {0};

	switch (event) {
	case DISABLE:
		assert_int_equal(napi_disable(napi, NSEC_PER_SEC), 0);
		break;
	case SWITCH:
		assert_int_equal(napi_poller_set(napi, other, NSEC_PER_SEC, NULL, NULL), 0);
		break;
	case MOVE:
		assert_int_equal(engine_queue_move(s->engine, "a", 0,
						   1 - atomic_load(&napi->record->cpu), NULL, NULL),
				 0);
		break;
	case HANDLER:
		assert_int_equal(engine_handler_set(s->engine, s->a, NULL, NULL), 0);
		break;
	case OFF_HANDLER:
		settings.gro_set = true;
		settings.gro = GRO_OFF;
		settings.gro_flush_timeout_set = true;
		assert_int_equal(engine_queue_set(s->engine, "a", -1, &settings, NULL, NULL), 0);
		assert_int_equal(port_held(s->a), 1);
		assert_int_equal(engine_handler_set(s->engine, s->a, NULL, NULL), 0);
		break;
	case REMOVE:
		assert_int_equal(engine_port_remove(s->engine, s->a, NULL), 0);
		break;
	case STEER:
		settings.rps_cpus_set = true;
		cpuset_add(&settings.rps_cpus, 1);
		assert_int_equal(engine_queue_set(s->engine, "a", -1, &settings, NULL, NULL), 0);
		break;
	default:
		settings.gro_flush_timeout_set = true;
		assert_int_equal(engine_queue_set(s->engine, "a", -1, &settings, NULL, NULL), 0);
		irq_raise(&s->a->queue[0].irq);
		scene_run(s, NSEC_PER_MSEC);
	}
}

static void leaves_with(enum poller poller, enum event event)
{
	struct mouse mouse = {0};
	struct scene s;

	scene_one(&s, poller);
	merge_on(&s, NSEC_PER_SEC);
	mouse.scene = &s;
	scene_run(&s, NSEC_PER_MSEC);
	mouse_send(&mouse);
	mouse_wait(&mouse, 5 * NSEC_PER_MSEC);
	assert_false(mouse.seen);
	assert_int_equal(PORT_SUM(s.a, received), 1);
	assert_int_equal(port_held(s.a), 1);
	event_make(&s, event);
	assert_true(mouse_out(&mouse));
	mouse_end(&mouse);
	scene_end(&s);
}

static void leaves(enum poller poller)
{
	for (int event = 0; event < EVENTS; event++)
		leaves_with(poller, (enum event)event);
}

static void nothing_stays_behind(void **state)
{
	(void)state;
	over_pollers(leaves);
}

/*
 * Nothing is merged any more, which the next poll would see; but before that another handler comes.
 * What was held amid full polls goes to the one that it was received for, in order.
 */
static void off_amid_full_polls(enum poller poller)
{
	const struct queue_settings off = {.gro_set = true, .gro = GRO_OFF};
	struct source elephant;
	struct sink sink;
	struct mouse mouse = {0};
	struct napi *napi;
	uint64_t held;
	struct scene s;

	elephants_begin(&s, &elephant, &sink, poller, 0);
	napi = s.a->queue[0].napi;
	mouse.scene = &s;
	scene_run(&s, 20 * NSEC_PER_MSEC);
	mouse_send(&mouse);
	/* It comes behind what is queued, and is held for a tick. */
	scene_run(&s, QUEUED);
	held = gro_held(napi->gro);
	assert_true(held && !sink.next[40]);
	assert_int_equal(engine_queue_set(s.engine, "a", -1, &off, NULL, NULL), 0);
	assert_int_equal(gro_held(napi->gro), held);
	assert_int_equal(engine_handler_set(s.engine, s.a, NULL, NULL), 0);
	assert_int_equal(gro_held(napi->gro), 0);
	source_stop(&elephant);
	machine_wait(s.machine, mouse_sunk, &sink, machine_now(s.machine) + NSEC_PER_SEC);
	assert_true(sink.next[40]);
	sink_stop(&sink);
	assert_int_equal(sink.disorder, 0);
	mouse_end(&mouse);
	scene_end(&s);
}

static void off_then_another_handler(void **state)
{
	(void)state;
	over_pollers(off_amid_full_polls);
}

/* Control lets go what is held, in a context that nothing has told the time for long. */
static void control_knows_the_time(void **state)
{
	static const struct bridge_config plain;
	struct bridge_entry entry;
	struct mouse mouse = {0};
	struct handler *bridge;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(bridge_create(s.engine, &plain, &bridge, NULL), 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, bridge, NULL), 0);
	merge_on(&s, NSEC_PER_SEC);
	scene_run(&s, 100 * NSEC_PER_SEC);
	mouse.scene = &s;
	mouse_send(&mouse);
	scene_run(&s, NSEC_PER_MSEC);
	assert_int_equal(port_held(s.a), 1);
	assert_int_equal(napi_disable(s.a->queue[0].napi, NSEC_PER_SEC), 0);
	assert_int_equal(port_held(s.a), 0);
	assert_int_equal(bridge_entries(bridge, &entry, 1), 1);
	assert_in_range(entry.age_seconds, 0, 1);
	mouse_end(&mouse);
	scene_end(&s);
}

/* When an application's look is over it has all that came, also what GRO could hold for longer. */
static void a_look_has_it_all(void **state)
{
	const struct busy_poll how = {.budget = 64};
	struct packet *v[10];
	struct context *context;
	struct napi *napi;
	struct scene s;

	(void)state;
	scene_virtual_only();
	scene_begin(&s, true, 7, POLLER_APP);
	merge_on(&s, 100 * NSEC_PER_MSEC);
	napi = s.a->queue[0].napi;
	scene_run(&s, NSEC_PER_MSEC);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	assert_int_equal(packet_alloc(&context->cache, v, 10), 10);
	for (uint32_t i = 0; i < 10; i++)
		scene_datagram(v[i], 3, i);
	assert_int_equal(mem_port_send(s.a, v, 10), 10);
	assert_int_equal(napi_busy_loop(napi, context, &how, NULL, NULL), 10);
	assert_int_equal(gro_held(napi->gro), 0);
	assert_int_equal(PORT_SUM(s.a, merged), 9);
	assert_int_equal(mem_port_receive(s.b, v, 10), 10);
	packet_free(&context->cache, v, 10);
	engine_context_close(context);
	scene_end(&s);
}

static bool token_free(void *arg)
{
	const struct napi *napi = arg;

	return !(napi_state_load(napi) & NAPI_SCHED);
}

/* An application is given the token amid full polls: nothing is held until it comes for it. */
static void nothing_waits_for_who_asked(void **state)
{
	struct source elephant;
	struct sink sink;
	struct napi *napi;
	struct scene s;

	(void)state;
	scene_virtual_only();
	elephants_begin(&s, &elephant, &sink, POLLER_APP, 0);
	napi = s.a->queue[0].napi;
	for (int i = 0; i < 20; i++) {
		int64_t limit;

		scene_run(&s, NSEC_PER_MSEC);
		assert_int_equal(napi_take(napi, true), -EAGAIN);
		limit = machine_now(s.machine) + NSEC_PER_SEC;
		assert_int_equal(machine_wait(s.machine, token_free, napi, limit), 0);
		assert_int_equal(gro_held(napi->gro), 0);
	}
	source_stop(&elephant);
	scene_drain(&s, s.a, elephant.sent);
	sink_stop(&sink);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_16_mouse_among_full_polls),
		cmocka_unit_test(flush_timeout),
		cmocka_unit_test(nothing_stays_behind),
		cmocka_unit_test(off_then_another_handler),
		cmocka_unit_test(control_knows_the_time),
		cmocka_unit_test(a_look_has_it_all),
		cmocka_unit_test(nothing_waits_for_who_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

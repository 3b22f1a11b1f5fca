/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TX NAPIs: what a port's queues have sent is kicked by NAPIs of their own, by any poller on any
 * CPU. (Switching, disabling, removing, starvation: the bodies of cases 1 to 12 and 15 run once
 * more with TX NAPIs on every port, see meson.build.)
 */
#include "scene.h"

#include <core/napi.h>

/* A mem port that knows who kicked it last. */
static struct port_ops told_ops;
static _Atomic uint64_t kicks_by_others;
static _Atomic uint64_t kicks_seen;
static const char *kicker; /* the beginning of the name of the runner that should kick */

static void told_kick(struct port_queue *queue, struct context *context)
{
	const struct runner *runner = runner_current();

	atomic_fetch_add(&kicks_seen, 1);
	if (!runner || strncmp(runner->name, kicker, strlen(kicker)))
		atomic_fetch_add(&kicks_by_others, 1);
	port_kind_find("mem")->kick(queue, context);
}

static void told_begin(const char *who)
{
	told_ops = *port_kind_find("mem");
	told_ops.kick = told_kick;
	kicker = who;
	kicks_seen = kicks_by_others = 0;
}

/* The one that b's packets go to, of this kind, with TX NAPIs. */
static struct port *port_add(struct scene *s, const char *name, const struct port_ops *ops)
{
	struct port_config config;
	struct error err = {0};
	struct port *port;
	char text[64];

	snprintf(text, sizeof(text), "mem:%s,tx_napi=yes", name);
	assert_int_equal(port_config_parse(text, &config, &err), 0);
	assert_true(config.tx_napi);
	if (ops)
		config.ops = ops;
	if (engine_port_add(s->engine, &config, &port, &err))
		fail_msg("%s", err.text);
	assert_int_equal(engine_handler_set(s->engine, port, s->cross, &err), 0);
	scene_partner(s, s->b, port);
	return port;
}

static void poller_set(struct scene *s, const char *port, enum poller poller, unsigned cpu)
{
	struct queue_settings settings = {
		.poller_set = true, .poller = poller, .cpu_set = true, .cpu = cpu};

	scene_set(s, port, -1, settings);
}

static const char *runner_of(enum poller poller, char text[16])
{
	static const char *const names[] = {
		[POLLER_SOFTIRQ] = "irq/1", /* not saturated: ksoftirqd has no part in it */
		[POLLER_THREAD] = "napi/out-tx-0",
		[POLLER_WORKQUEUE] = "kworker/",
		[POLLER_BUSY_POLL] = "busy/1",
		[POLLER_APP] = "irq/1", /* no application comes */
	};

	snprintf(text, 16, "%s", names[poller]);
	return text;
}

/* Every poller receiving, on CPU 0, with every poller sending, on CPU 1: only the latter kicks. */
static void pair(enum poller rx, enum poller tx)
{
	struct source source = {.burst = 4, .interval = 20 * NSEC_PER_USEC, .count = 4000};
	struct sink sink = {0};
	struct scene s;
	char name[16];

	told_begin(runner_of(tx, name));
	scene_begin(&s, true, rx * 16 + tx, rx);
	poller_set(&s, "b", rx, 0);
	poller_set(&s, "out", rx, 0);
	poller_set(&s, "out-tx", tx, 1);
	source.scene = sink.scene = &s;
	source.port = s.b;
	sink.port = port_add(&s, "out", &told_ops);
	sink_start(&sink);
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.b, source.count);
	scene_run(&s, NSEC_PER_MSEC);
	sink_stop(&sink);
	assert_int_equal(sink.received, source.count);
	assert_int_equal(sink.disorder, 0);
	assert_true(kicks_seen > 0);
	assert_int_equal(kicks_by_others, 0);
	assert_true(kicks_seen <= PORT_SUM(s.b, polls));
	scene_end(&s);
}

static void any_poller_kicks(void **state)
{
	(void)state;
	for (unsigned rx = 0; rx < POLLER_MAX; rx++)
		for (unsigned tx = 0; tx < POLLER_MAX; tx++)
			pair((enum poller)rx, (enum poller)tx);
}

/* It looks for something to kick, and kicks nothing. */
static void quiet_one_does_not_kick(void **state)
{
	struct scene s;
	struct port *out;

	(void)state;
	told_begin("busy/");
	scene_begin(&s, true, 1, POLLER_BUSY_POLL);
	out = port_add(&s, "out", &told_ops);
	scene_run(&s, NSEC_PER_MSEC);
	assert_int_equal(kicks_seen, 0);
	assert_true(counter_read(&napi_counters(out->queue[0].tx)->polls) > 100);
	scene_end(&s);
}

/* While packets go there: from then on who sends kicks, and nothing is left behind or lost. */
static void taken_away_under_load(enum poller poller)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct source source = {.burst = 3, .interval = 5 * NSEC_PER_USEC};
		struct sink sink = {0};
		struct port *out, *tx;
		struct scene s;

		scene_begin(&s, true, seed, poller);
		source.scene = sink.scene = &s;
		source.port = s.b;
		sink.port = out = port_add(&s, "out", NULL);
		tx = engine_port_find(s.engine, "out-tx");
		assert_non_null(tx);
		sink_start(&sink);
		source_start(&source);
		scene_run(&s, NSEC_PER_MSEC + (int64_t)seed * 777);
		assert_ptr_equal(out->queue[0].tx, tx->queue[0].napi);
		assert_int_equal(engine_port_remove(s.engine, tx, NULL), 0);
		assert_null(out->queue[0].tx);
		assert_null(engine_port_find(s.engine, "out-tx"));
		scene_run(&s, NSEC_PER_MSEC);
		source_stop(&source);
		scene_drain(&s, s.b, source.sent);
		sink_stop(&sink);
		assert_int_equal(sink.received, source.sent);
		assert_int_equal(sink.disorder, 0);
		scene_end(&s);
	}
}

static void can_be_taken_away(void **state)
{
	(void)state;
	over_pollers(taken_away_under_load);
}

/* What a port has sent to its peer is kicked there, too: with a wire, nobody looks but when told.
 */
static void nothing_stays_unkicked(enum poller poller)
{
	struct source source = {.burst = 1, .interval = 20 * NSEC_PER_USEC, .count = 2000};
	struct port *out, *peer;
	struct scene s;

	scene_begin(&s, true, 3, poller);
	source.scene = &s;
	source.port = s.b;
	out = port_add(&s, "out", NULL);
	peer = scene_port(&s, "peer", NULL);
	assert_int_equal(mem_port_wire(out, peer), 0);
	source_start(&source);
	for (unsigned i = 0; i < 100; i++) {
		poller_set(&s, "out-tx", (enum poller)(i % POLLER_MAX), i / 4 % 2);
		scene_run(&s, 300 * NSEC_PER_USEC);
		assert_int_equal(napi_disable(out->queue[0].tx, NSEC_PER_SEC), 0);
		scene_run(&s, 10 * NSEC_PER_USEC);
		assert_int_equal(napi_enable(out->queue[0].tx), 0);
	}
	source_stop(&source);
	scene_drain(&s, peer, source.count);
	assert_int_equal(PORT_SUM(peer, received), source.count);
	scene_end(&s);
}

static void last_packet_goes_out(void **state)
{
	(void)state;
	over_pollers(nothing_stays_unkicked);
}

/* Scheduled, and taken away before it was polled. */
static void a_due_kick_is_made_up_for(void **state)
{
	struct source source = {.burst = 1, .interval = 1, .count = 1};
	struct port *out, *peer;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 6, POLLER_SOFTIRQ);
	source.scene = &s;
	source.port = s.b;
	out = port_add(&s, "out", NULL);
	peer = scene_port(&s, "peer", NULL);
	assert_int_equal(mem_port_wire(out, peer), 0);
	assert_int_equal(napi_disable(out->queue[0].tx, NSEC_PER_SEC), 0);
	source_start(&source);
	source_stop(&source);
	scene_run(&s, 10 * NSEC_PER_MSEC);
	assert_int_equal(PORT_SUM(s.b, transmitted), 1);
	assert_int_equal(PORT_SUM(peer, received), 0);
	assert_int_equal(engine_port_remove(s.engine, engine_port_find(s.engine, "out-tx"), NULL),
			 0);
	scene_drain(&s, peer, 1);
	scene_end(&s);
}

/* What the application sends by a port, and what comes out of it. */
static void application_send(struct context *context, struct port *out)
{
	struct packet *p;

	assert_int_equal(packet_alloc(&context->cache, &p, 1), 1);
	p->len = p->total = SCENE_FRAME;
	port_transmit(context, out, &p, 1);
	context_kick(context);
}

static void application_take(struct context *context, struct port *out)
{
	struct packet *p;

	assert_int_equal(mem_port_receive(out, &p, 1), 1);
	packet_free(&context->cache, &p, 1);
}

/* A thread of the application's own only raises the TX NAPI's interrupt. */
static void application_sends(void **state)
{
	struct context *context;
	struct port *out;
	struct scene s;

	(void)state;
	told_begin("irq/");
	scene_begin(&s, true, 4, POLLER_SOFTIRQ);
	out = port_add(&s, "out", &told_ops);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	for (int i = 0; i < 10; i++) {
		application_send(context, out);
		scene_run(&s, NSEC_PER_MSEC);
		assert_int_equal(kicks_seen, i + 1);
		application_take(context, out);
	}
	assert_int_equal(kicks_by_others, 0);
	engine_context_close(context);
	scene_end(&s);
}

/*
 * Nor does it while that is scheduled anyway: interrupts would keep their CPU from the fair runner
 * that polls it.
 */
static void application_interrupts_once(void **state)
{
	struct port *out, *tx;
	struct context *context;
	struct scene s;
	uint32_t idle;

	(void)state;
	told_begin("busy/1");
	scene_begin(&s, true, 4, POLLER_SOFTIRQ);
	out = port_add(&s, "out", &told_ops);
	tx = engine_port_find(s.engine, "out-tx");
	poller_set(&s, "out-tx", POLLER_BUSY_POLL, 1);
	assert_int_equal(engine_context_open(s.engine, &context), 0);
	scene_run(&s, NSEC_PER_MSEC);
	idle = atomic_load(&tx->queue[0].irq.state);
	for (int i = 0; i < 10; i++) {
		application_send(context, out);
		assert_int_equal(atomic_load(&tx->queue[0].irq.state), idle);
		scene_run(&s, 5 * NSEC_PER_MSEC);
		application_take(context, out);
	}
	assert_int_equal(kicks_by_others, 0);
	engine_context_close(context);
	scene_end(&s);
}

static void refuses(void **state)
{
	struct port_config config;
	struct error err = {0};
	struct scene s;
	struct port *port;

	(void)state;
	scene_begin(&s, true, 5, POLLER_SOFTIRQ);
	assert_int_equal(port_config_parse("mem:x,tx_napi=1", &config, &err), -EINVAL);
	assert_string_equal(err.text, "mem:x: tx_napi=1: must be yes or no");
	assert_int_equal(port_config_parse("mem:x,tx_napi=no", &config, &err), 0);
	assert_false(config.tx_napi);
	assert_int_equal(port_config_parse("pcap:x.pcap,tx_napi=yes", &config, &err), 0);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EINVAL);
	assert_string_equal(err.text,
			    "pcap:x.pcap: tx_napi=yes: this kind sends without a kick, so "
			    "there is nothing to do for TX NAPIs");
	assert_int_equal(port_config_parse("mem:x,tx_napi=yes,name=abcdefghijklmnopqrstuvwxyz0123",
					   &config, &err),
			 0);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EINVAL);
	assert_string_equal(err.text, "abcdefghijklmnopqrstuvwxyz0123: with tx_napi=yes a name has "
				      "28 bytes at most: give another with name=");
	assert_null(engine_port_find(s.engine, "abcdefghijklmnopqrstuvwxyz0123"));
	/* Its place is taken: neither is left. */
	scene_port(&s, "x-tx", NULL);
	assert_int_equal(port_config_parse("mem:x,tx_napi=yes", &config, &err), 0);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EEXIST);
	assert_null(engine_port_find(s.engine, "x"));
	scene_end(&s);
}

/* Nothing is received there: no handler, no steering, neither now nor kept from before. */
static void receives_nothing(void **state)
{
	struct queue_settings steered = {.rps_cpus_set = true};
	struct error err = {0};
	struct port *tx;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 1, POLLER_SOFTIRQ);
	cpuset_add(&steered.rps_cpus, 1);
	assert_int_equal(engine_queue_set(s.engine, "out-tx", -1, &steered, NULL, NULL), 0);
	port_add(&s, "out", NULL);
	tx = engine_port_find(s.engine, "out-tx");
	assert_null(tx->queue[0].napi->steer);
	assert_string_equal(tx->queue[0].napi->record->rps_cpus, "");
	assert_int_equal(engine_queue_set(s.engine, "out-tx", -1, &steered, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "out-tx: nothing is received there"));
	assert_int_equal(engine_handler_set(s.engine, tx, s.cross, &err), -EINVAL);
	assert_non_null(strstr(err.text, "port out-tx takes no handler"));
	assert_null(tx->handler);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_poller_kicks),
		cmocka_unit_test(quiet_one_does_not_kick),
		cmocka_unit_test(can_be_taken_away),
		cmocka_unit_test(last_packet_goes_out),
		cmocka_unit_test(a_due_kick_is_made_up_for),
		cmocka_unit_test(application_sends),
		cmocka_unit_test(application_interrupts_once),
		cmocka_unit_test(refuses),
		cmocka_unit_test(receives_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

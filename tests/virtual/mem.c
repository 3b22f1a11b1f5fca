/* SPDX-License-Identifier: BSD-2-Clause */
/* mem ports and their peers: named by text, in any order, coming and going. */
#include "scene.h"

static int add(struct scene *s, const char *spec, struct port **out, struct error *err)
{
	struct port_config config;

	assert_int_equal(port_config_parse(spec, &config, err), 0);
	return engine_port_add(s->engine, &config, out, err);
}

static struct port *added(struct scene *s, const char *spec)
{
	struct error err = {0};
	struct port *port;

	if (add(s, spec, &port, &err))
		fail_msg("%s", err.text);
	return port;
}

static const char *state_shown(struct scene *s, const char *name)
{
	const struct counters_file *file = engine_counters(s->engine);

	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *record = counters_queue_at(file, i);

		if (record->in_use && !strcmp(record->port_name, name))
			return record->state;
	}
	return "none";
}

static void send_one(struct scene *s, struct port *port)
{
	struct context *context;
	struct packet *p;

	assert_int_equal(engine_context_open(s->engine, &context), 0);
	assert_int_equal(packet_alloc(&context->cache, &p, 1), 1);
	memset(p->data, 0, SCENE_FRAME);
	p->len = p->total = SCENE_FRAME;
	port_transmit(context, port, &p, 1);
	engine_context_close(context);
}

/* Up while both are there, and packets go from one to the other; down without. */
static void with_a_peer(enum poller poller)
{
	struct port *x, *y;
	struct scene s;

	scene_begin(&s, true, 1, poller);
	x = added(&s, "mem:x,peer=y,queues=2");
	assert_int_equal(x->state, PORT_DOWN);
	assert_string_equal(state_shown(&s, "x"), "down");
	send_one(&s, x); /* dropped, and not kept */
	assert_int_equal(x->queue[0].transmit->packets, 0);
	y = added(&s, "mem:y,queues=2");
	assert_int_equal(x->state, PORT_UP);
	assert_string_equal(state_shown(&s, "x"), "up");
	assert_string_equal(state_shown(&s, "y"), "up");
	send_one(&s, x);
	scene_drain(&s, y, 1);
	send_one(&s, y);
	scene_drain(&s, x, 1);

	/* y goes and returns, now as the one that names the other. */
	assert_int_equal(engine_port_remove(s.engine, y, NULL), 0);
	assert_int_equal(x->state, PORT_DOWN);
	send_one(&s, x);
	y = added(&s, "mem:y,peer=x,queues=2");
	assert_int_equal(x->state, PORT_UP);
	send_one(&s, x);
	scene_drain(&s, y, 2);

	/* And the one that was named. */
	assert_int_equal(engine_port_remove(s.engine, x, NULL), 0);
	assert_int_equal(y->state, PORT_DOWN);
	x = added(&s, "mem:elsewhere,name=x,queues=2");
	assert_int_equal(y->state, PORT_UP);
	send_one(&s, y);
	scene_drain(&s, x, 2);
	scene_end(&s);
}

static void is_up_with_its_peer(void **state)
{
	(void)state;
	over_pollers(with_a_peer);
}

/* One that a program has: up by itself, as ever; wired or not. */
static void is_up_for_a_program(void **state)
{
	struct scene s;

	(void)state;
	scene_begin(&s, true, 2, POLLER_SOFTIRQ);
	assert_int_equal(s.a->state, PORT_UP);
	assert_true(s.a->features & PORT_INSIDE);
	assert_int_equal(mem_port_wire(s.a, s.b), 0);
	assert_int_equal(mem_port_wire(s.a, s.b), -EBUSY);
	assert_int_equal(engine_port_remove(s.engine, s.b, NULL), 0);
	assert_int_equal(s.a->state, PORT_DOWN);
	s.b = scene_port(&s, "b", s.a);
	assert_int_equal(mem_port_wire(s.a, s.b), 0);
	assert_int_equal(s.a->state, PORT_UP);
	scene_end(&s);
}

/* A kind of its own, which is no mem port. */
static int odd_open(struct port *port, struct port_config *config, struct error *err)
{
	(void)config;
	(void)err;
	return port_queues_alloc(port, 1);
}

static uint32_t odd_receive(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	(void)queue;
	(void)context;
	(void)v;
	(void)n;
	return 0;
}

static uint32_t odd_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	(void)queue;
	packet_drop(context, v, n, DROP_HANDLER);
	return n;
}

static void odd_close(struct port *port, struct context *context)
{
	(void)port;
	(void)context;
}

static const struct port_ops odd_ops = {
	.kind = "odd",
	.open = odd_open,
	.receive = odd_receive,
	.transmit = odd_transmit,
	.close = odd_close,
};

static void refuses_peers(void **state)
{
	static const struct {
		const char *spec;
		int rc;
		const char *says;
	} wrong[] = {
		{"mem:p,peer=p", -EINVAL, "mem port p: peer=p: that is itself"},
		{"mem:p,peer=odd", -EINVAL, "mem port p: peer=odd: that is no mem port"},
		{"mem:p,peer=x", -EBUSY, "mem port p: peer=x: that has a peer already"},
		{"mem:p,peer=a,queues=3", -EINVAL, "mem port p: its peer a has 1 queue: queues=1"},
		{"mem:p,peer=", -EINVAL, "mem:p: peer=: the name of a port, of 1 to 31 bytes"},
		{"mem:p,peer=12345678901234567890123456789012", -EINVAL,
		 "mem:p: peer=: the name of a port, of 1 to 31 bytes"},
	};
	struct port_config config = {.ops = &odd_ops, .name = "odd"};
	struct error err = {0};
	struct port *port;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 3, POLLER_SOFTIRQ);
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), 0);
	added(&s, "mem:x");
	added(&s, "mem:y,peer=x");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(add(&s, wrong[i].spec, &port, &err), wrong[i].rc);
		assert_string_equal(err.text, wrong[i].says);
		assert_null(engine_port_find(s.engine, "p"));
	}
	assert_int_equal(s.a->state, PORT_UP);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_up_with_its_peer),
		cmocka_unit_test(is_up_for_a_program),
		cmocka_unit_test(refuses_peers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

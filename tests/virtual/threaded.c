/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who polls a port for which nothing is set: what its author asks for. And which pollers a kind of
 * port can do with at all.
 */
#include "scene.h"

/* A kind that receives a packet for each time that it is raised. */
static int own_open(struct port *port, struct port_config *config, struct error *err)
{
	(void)err;
	return port_queues_alloc(port, config->queues ? config->queues : 1);
}

static uint32_t own_receive(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	(void)n;
	/* The queue's own word is all that this kind needs. */
	if (!atomic_exchange((_Atomic bool *)&queue->private, false) ||
	    !packet_alloc(&context->cache, v, 1))
		return 0;
	memset(v[0]->data, 0, SCENE_FRAME);
	v[0]->len = v[0]->total = SCENE_FRAME;
	return 1;
}

static void own_raise(struct port_queue *queue)
{
	atomic_store((_Atomic bool *)&queue->private, true);
	irq_raise(&queue->irq);
}

static uint32_t own_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	(void)queue;
	packet_drop(context, v, n, DROP_HANDLER);
	return n;
}

static void own_close(struct port *port, struct context *context)
{
	(void)port;
	(void)context;
}

#define OWN(...)                                                                                   \
	{                                                                                          \
		.kind = "own", .open = own_open, .receive = own_receive, .transmit = own_transmit, \
		.close = own_close, __VA_ARGS__                                                    \
	}

static const struct port_ops plain = OWN();
static const struct port_ops long_polls = OWN(.poller_set = true, .poller = POLLER_WORKQUEUE);
static const struct port_ops no_softirq =
	OWN(.pollers = 1 << POLLER_THREAD | 1 << POLLER_BUSY_POLL);
static const struct port_ops busy_only = OWN(.pollers = 1 << POLLER_BUSY_POLL);
static const struct port_ops confused =
	OWN(.poller_set = true, .poller = POLLER_THREAD, .pollers = 1 << POLLER_SOFTIRQ);

static struct port_config config_of(const struct port_ops *ops, const char *name)
{
	struct port_config config = {.ops = ops};

	snprintf(config.name, sizeof(config.name), "%s", name);
	return config;
}

static struct port *added(struct scene *s, const struct port_config *config)
{
	struct error err = {0};
	struct port *port;

	if (engine_port_add(s->engine, config, &port, &err))
		fail_msg("%s", err.text);
	return port;
}

static enum poller poller_of(const struct port *port)
{
	return napi_poller(port->queue[0].napi);
}

static int set(struct scene *s, const char *port, enum poller poller, struct error *err)
{
	struct queue_settings settings = {.poller_set = true, .poller = poller};

	return engine_queue_set(s->engine, port, -1, &settings, NULL, err);
}

/* It works there, too. */
static void assert_polled(struct scene *s, struct port *port)
{
	own_raise(&port->queue[0]);
	scene_drain(s, port, 1);
	assert_int_equal(PORT_SUM(port, dropped[DROP_NO_HANDLER]), 1);
}

/* What a person sets, what the call asks for, what the kind asks for, the default: in this order.
 */
static void asked(enum poller poller)
{
	enum poller other = (enum poller)((poller + 1) % POLLER_MAX);
	struct port_config config;
	struct port *port;
	struct scene s;

	scene_begin(&s, true, 1, poller);
	config = config_of(&plain, "plain");
	port = added(&s, &config);
	assert_int_equal(poller_of(port), poller);
	assert_polled(&s, port);

	config = config_of(&long_polls, "kind");
	port = added(&s, &config);
	assert_int_equal(poller_of(port), POLLER_WORKQUEUE);
	assert_polled(&s, port);

	config = config_of(&long_polls, "config");
	config.poller_set = true;
	config.poller = POLLER_BUSY_POLL;
	port = added(&s, &config);
	assert_int_equal(poller_of(port), POLLER_BUSY_POLL);
	assert_polled(&s, port);

	assert_int_equal(set(&s, "person", other, NULL), 0);
	strcpy(config.name, "person");
	port = added(&s, &config);
	assert_int_equal(poller_of(port), other);
	assert_polled(&s, port);
	/* It comes back as it was asked, and can be set to any other. */
	assert_int_equal(engine_port_remove(s.engine, engine_port_find(s.engine, "kind"), NULL), 0);
	config = config_of(&long_polls, "kind");
	port = added(&s, &config);
	assert_int_equal(poller_of(port), POLLER_WORKQUEUE);
	assert_int_equal(set(&s, "kind", poller, NULL), 0);
	assert_int_equal(poller_of(port), poller);
	scene_end(&s);
}

static void asks_for_a_poller(void **state)
{
	(void)state;
	over_pollers(asked);
}

/* The sibling call: workqueue for a port of any kind, unless a person has said otherwise. */
static void threaded(enum poller poller)
{
	struct port_config config = config_of(&plain, "x");
	struct port *port;
	struct scene s;

	scene_begin(&s, true, 2, poller);
	assert_int_equal(engine_port_add_threaded(s.engine, &config, &port, NULL), 0);
	assert_int_equal(poller_of(port), POLLER_WORKQUEUE);
	assert_polled(&s, port);
	assert_true(engine_port_config(port)->poller_set);
	assert_int_equal(port_config_parse("mem:y", &config, NULL), 0);
	assert_int_equal(engine_port_add_threaded(s.engine, &config, &port, NULL), 0);
	assert_int_equal(poller_of(port), POLLER_WORKQUEUE);
	assert_int_equal(set(&s, "z", poller, NULL), 0);
	config = config_of(&plain, "z");
	assert_int_equal(engine_port_add_threaded(s.engine, &config, &port, NULL), 0);
	assert_int_equal(poller_of(port), poller);
	assert_polled(&s, port);
	scene_end(&s);
}

static void is_added_threaded(void **state)
{
	(void)state;
	over_pollers(threaded);
}

/* A set that asks for what the port cannot do names both, and what it can; nothing changes. */
static void refuses_pollers(void **state)
{
	static const char says[] = "port x: poller workqueue cannot poll own ports: "
				   "poller=thread, busy-poll";
	struct queue_settings both = {
		.poller_set = true, .poller = POLLER_WORKQUEUE, .weight_set = true, .weight = 5};
	struct port_config config = config_of(&no_softirq, "x");
	struct error err = {0};
	struct port *port;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 3, POLLER_BUSY_POLL);
	config.queues = 2;
	port = added(&s, &config);
	assert_int_equal(engine_queue_set(s.engine, "x", -1, &both, NULL, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, says);
	assert_int_equal(
		napi_poller_set(port->queue[0].napi, POLLER_WORKQUEUE, NSEC_PER_SEC, NULL, &err),
		-EOPNOTSUPP);
	assert_string_equal(err.text, says);
	for (int q = 0; q < 2; q++) {
		assert_int_equal(napi_poller(port->queue[q].napi), POLLER_BUSY_POLL);
		assert_int_equal(napi_weight(port->queue[q].napi), NAPI_WEIGHT_DEFAULT);
	}
	assert_int_equal(set(&s, "x", POLLER_THREAD, &err), 0);
	assert_polled(&s, port);
	scene_end(&s);
}

/* Set before it is there: then it cannot be opened, and says why. A default gives way. */
static void opens_with_what_it_can(void **state)
{
	struct port_config config = config_of(&no_softirq, "x");
	struct error err = {0};
	struct port *port;
	struct scene s;

	(void)state;
	scene_begin(&s, true, 4, POLLER_SOFTIRQ);
	port = added(&s, &config);
	assert_int_equal(poller_of(port), POLLER_THREAD);
	assert_polled(&s, port);
	config = config_of(&busy_only, "busy");
	port = added(&s, &config);
	assert_int_equal(poller_of(port), POLLER_BUSY_POLL);
	assert_polled(&s, port);

	assert_int_equal(set(&s, "y", POLLER_SOFTIRQ, NULL), 0);
	config = config_of(&no_softirq, "y");
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "port y: poller softirq cannot poll own ports: "
				      "poller=thread, busy-poll");
	assert_null(engine_port_find(s.engine, "y"));
	config = config_of(&busy_only, "z");
	assert_int_equal(engine_port_add_threaded(s.engine, &config, &port, &err), -EOPNOTSUPP);
	config = config_of(&confused, "z");
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "port z: poller thread cannot poll own ports: "
				      "poller=softirq");
	config = config_of(&plain, "z");
	config.poller_set = true;
	config.poller = POLLER_MAX;
	assert_int_equal(engine_port_add(s.engine, &config, &port, &err), -EINVAL);
	assert_int_equal(set(&s, "y", POLLER_THREAD, NULL), 0);
	config = config_of(&no_softirq, "y");
	port = added(&s, &config);
	assert_polled(&s, port);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_for_a_poller),
		cmocka_unit_test(is_added_threaded),
		cmocka_unit_test(refuses_pollers),
		cmocka_unit_test(opens_with_what_it_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

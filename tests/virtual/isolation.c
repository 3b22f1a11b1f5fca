/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Saturated ports and a quiet one share the two workers of the workqueue. One saturated port does
 * not double the quiet one's wait, and more than there are workers take their turn with it. Exact,
 * in virtual time.
 */
#include "scene.h"

#include <napier/machine_virtual.h>

enum { QUIET = 1000, CIRCLING = 640, SATURATED_MAX = 3 };

#define APART (97 * NSEC_PER_USEC) /* between packets of the quiet port */

/* Drops what comes in by the quiet port, noting how long it took; the rest goes round for ever. */
struct isolation {
	struct handler handler;
	struct scene scene;
	struct port *busy[SATURATED_MAX];
	struct context *context;
	int64_t sent;
	uint32_t n;
	int64_t waited[QUIET];
};

static void isolation_input(struct handler *handler, struct context *context, struct port *in,
			    struct packet **v, uint32_t n)
{
	struct isolation *t = (struct isolation *)handler;

	if (in == t->scene.a) {
		t->waited[t->n++] = machine_now(in->machine) - t->sent;
		packet_drop(context, v, n, DROP_HANDLER);
		return;
	}
	packets_return(context, in, v, n);
}

static const struct handler_ops isolation_ops = {.name = "isolation", .input = isolation_input};

static void packets_send(struct isolation *t, struct port *port, uint32_t n)
{
	struct packet *p;

	while (n--) {
		assert_int_equal(packet_alloc(&t->context->cache, &p, 1), 1);
		p->len = p->total = SCENE_FRAME;
		assert_int_equal(mem_port_send(port, &p, 1), 1);
	}
}

/* The device, at its time. */
static void packet_arrives(void *arg)
{
	struct isolation *t = arg;

	t->sent = machine_now(t->scene.machine);
	packets_send(t, t->scene.a, 1);
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void saturate(struct isolation *t, unsigned saturated)
{
	char name[8];

	for (unsigned i = 0; i < saturated; i++) {
		snprintf(name, sizeof(name), "busy%u", i);
		t->busy[i] = scene_port(&t->scene, name, NULL);
		assert_int_equal(engine_handler_set(t->scene.engine, t->busy[i], &t->handler, NULL),
				 0);
		packets_send(t, t->busy[i], CIRCLING);
	}
}

/* Waits of the quiet port, sorted. */
static void waits_take(struct isolation *t, unsigned saturated)
{
	struct engine_config config = {.poller = POLLER_WORKQUEUE, .workers = 2};
	struct machine *m;

	memset(t, 0, sizeof(*t));
	t->handler.ops = &isolation_ops;
	scene_begin_exact(&t->scene, config);
	m = t->scene.machine;
	assert_int_equal(engine_context_open(t->scene.engine, &t->context), 0);
	assert_int_equal(engine_handler_set(t->scene.engine, t->scene.a, &t->handler, NULL), 0);
	saturate(t, saturated);
	for (int i = 1; i <= QUIET; i++)
		machine_virtual_call_at(m, machine_now(m) + i * APART, packet_arrives, t);
	scene_run(&t->scene, (QUIET + 2) * APART);
	assert_int_equal(t->n, QUIET);
	qsort(t->waited, QUIET, sizeof(t->waited[0]), ascending);
	/* What circles comes to rest. */
	for (unsigned i = 0; i < saturated; i++) {
		assert_true(PORT_SUM(t->busy[i], full_polls) > QUIET);
		assert_int_equal(
			engine_handler_set(t->scene.engine, t->busy[i], t->scene.cross, NULL), 0);
	}
	assert_int_equal(engine_handler_set(t->scene.engine, t->scene.a, t->scene.cross, NULL), 0);
	scene_run(&t->scene, NSEC_PER_MSEC);
	engine_context_close(t->context);
	scene_end(&t->scene);
}

static void check(unsigned saturated, int64_t p50, int64_t p99, int64_t most)
{
	struct isolation *t = calloc(1, sizeof(*t));

	waits_take(t, saturated);
	assert_int_equal(t->waited[QUIET / 2 - 1], p50);
	assert_int_equal(t->waited[QUIET * 99 / 100 - 1], p99);
	assert_int_equal(t->waited[QUIET - 1], most);
	free(t);
}

/* The other worker takes it; what it waits longer is that CPU's switch to it. */
static void one_saturated_port(void **state)
{
	(void)state;
	check(0, 2000, 2000, 2000);
	check(1, 3500, 3500, 3500);
}

/* Both workers are busy: it waits for its turn, a poll of 64 packets of each that is before it. */
static void more_than_workers(void **state)
{
	(void)state;
	check(3, 21700, 25500, 25500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_saturated_port),
		cmocka_unit_test(more_than_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

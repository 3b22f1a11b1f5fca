/* SPDX-License-Identifier: BSD-2-Clause */
/* Where packets leave a handler: what cannot be sent, and which queue each runner sends on. */
#include "scene.h"

/* Hands its vector, with a checksum left in each, to the other port; some say a place outside. */
struct partial {
	struct handler handler;
	struct port *out;
	uint16_t start[PACKET_VECTOR_MAX];
	uint16_t offset[PACKET_VECTOR_MAX];
};

static void partial_input(struct handler *handler, struct context *context, struct port *in,
			  struct packet **v, uint32_t n)
{
	struct partial *partial = (struct partial *)handler;

	(void)in;
	for (uint32_t i = 0; i < n; i++) {
		v[i]->flags |= PACKET_CSUM_PARTIAL;
		v[i]->csum_start = partial->start[v[i]->data[20]];
		v[i]->csum_offset = partial->offset[v[i]->data[20]];
	}
	port_transmit(context, partial->out, v, n);
}

static const struct handler_ops partial_ops = {.name = "partial", .input = partial_input};

/* Those are dropped under their own reason; the others go out, in order and completed. */
static void outside(enum poller poller)
{
	static const struct {
		uint16_t start, offset;
		bool good;
	} places[] = {
		{40, 16, true}, /* the last that fits into 60 bytes ends at 58 */
		{40, 18, true},	   {40, 19, false},	  {59, 0, false},
		{60, 0, false},	   {34, 6, true},	  {65535, 0, false},
		{0, 65535, false}, {65532, 65532, false}, {34, 16, true},
	};
	enum { N = sizeof(places) / sizeof(*places) };
	struct partial partial = {.handler.ops = &partial_ops};
	struct source source = {.burst = N, .interval = NSEC_PER_USEC, .count = N};
	struct sink sink = {0};
	unsigned good = 0;
	struct scene s;

	for (unsigned i = 0; i < N; i++) {
		partial.start[i] = places[i].start;
		partial.offset[i] = places[i].offset;
		good += places[i].good;
	}
	scene_begin(&s, true, 1, poller);
	partial.out = s.b;
	assert_int_equal(engine_handler_set(s.engine, s.a, &partial.handler, NULL), 0);
	scene_pass(&s, &source, &sink);
	assert_int_equal(PORT_SUM(s.a, dropped[DROP_CHECKSUM]), N - good);
	assert_int_equal(PORT_SUM(s.a, transmitted), good);
	assert_int_equal(sink.received, good);
	assert_int_equal(sink.disorder, 0);
	assert_int_equal(engine_handler_set(s.engine, s.a, NULL, NULL), 0);
	scene_end(&s);
}

static void drops_checksums_outside_of_the_packet(void **state)
{
	(void)state;
	over_pollers(outside);
}

/* However many have come and gone, those that are there spread as the first ones did. */
static void indices_stay_dense(void **state)
{
	enum { N = 40 };
	struct context *context[N], *one;
	struct scene s;
	uint32_t first;

	(void)state;
	scene_begin(&s, true, 2, POLLER_SOFTIRQ);
	assert_int_equal(engine_context_open(s.engine, &one), 0);
	first = one->index;
	engine_context_close(one);
	for (unsigned i = 0; i < 3000; i++) {
		struct queue_settings set = {
			.poller_set = true,
			.poller = i % 2 ? POLLER_SOFTIRQ : POLLER_THREAD,
		};

		assert_int_equal(engine_queue_set(s.engine, "a", -1, &set, NULL, NULL), 0);
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(engine_context_open(s.engine, &context[i]), 0);
		assert_int_equal(context[i]->index, first + i);
	}
	/* A gap is the next one's. */
	engine_context_close(context[7]);
	engine_context_close(context[3]);
	assert_int_equal(engine_context_open(s.engine, &context[3]), 0);
	assert_int_equal(context[3]->index, first + 3);
	assert_int_equal(engine_context_open(s.engine, &context[7]), 0);
	assert_int_equal(context[7]->index, first + 7);
	for (uint32_t i = 0; i < N; i++)
		engine_context_close(context[i]);
	scene_end(&s);
}

/* There may be more contexts than indices: then some share one. */
static void indices_may_run_out(void **state)
{
	enum { N = 1500 };
	static struct context *context[N];
	struct scene s;

	(void)state;
	scene_begin(&s, true, 3, POLLER_SOFTIRQ);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(engine_context_open(s.engine, &context[i]), 0);
	assert_true(context[N - 1]->index <= 1024);
	for (uint32_t i = N; i-- > 0;)
		engine_context_close(context[i]);
	assert_int_equal(engine_context_open(s.engine, &context[0]), 0);
	assert_true(context[0]->index < 16);
	engine_context_close(context[0]);
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drops_checksums_outside_of_the_packet),
		cmocka_unit_test(indices_stay_dense),
		cmocka_unit_test(indices_may_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What streams are made of: which datagrams came, sums by time, lines, plans. */
#include "test.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <lab/load/stream_line.h>
#include <lab/load/stream_plan.h>
#include <lab/load/stream_result.h>
#include <lab/load/stream_series.h>
#include <lab/load/stream_track.h>

static struct stream_track track;
static struct stream_series series, other;

static int track_clear(void **state)
{
	(void)state;
	memset(&track, 0, sizeof(track));
	return 0;
}

static void in_order(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3 * STREAM_WINDOW; i++)
		assert_int_equal(stream_track_add(&track, i), STREAM_IN_ORDER);
	assert_int_equal(track.next, 3 * STREAM_WINDOW);
}

static void a_gap_is_filled_once(void **state)
{
	(void)state;
	assert_int_equal(stream_track_add(&track, 0), STREAM_IN_ORDER);
	assert_int_equal(stream_track_add(&track, 3), STREAM_IN_ORDER);
	assert_int_equal(stream_track_add(&track, 2), STREAM_REORDERED);
	assert_int_equal(stream_track_add(&track, 2), STREAM_DUPLICATE);
	assert_int_equal(stream_track_add(&track, 3), STREAM_DUPLICATE);
	assert_int_equal(stream_track_add(&track, 1), STREAM_REORDERED);
	assert_int_equal(stream_track_add(&track, 0), STREAM_DUPLICATE);
	assert_int_equal(stream_track_add(&track, 4), STREAM_IN_ORDER);
}

/* What used the same bits before must not be taken for what has not come. */
static void bits_are_used_again(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < STREAM_WINDOW; i++)
		stream_track_add(&track, i);
	assert_int_equal(stream_track_add(&track, STREAM_WINDOW + 9), STREAM_IN_ORDER);
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(stream_track_add(&track, STREAM_WINDOW + i), STREAM_REORDERED);
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(stream_track_add(&track, STREAM_WINDOW + i), STREAM_DUPLICATE);
	assert_int_equal(stream_track_add(&track, 10), STREAM_DUPLICATE);
	/* So old that it is not known any more. */
	assert_int_equal(stream_track_add(&track, 9), STREAM_REORDERED);
	assert_int_equal(stream_track_add(&track, 9), STREAM_REORDERED);
}

static void a_leap_forgets_all(void **state)
{
	const uint64_t far = UINT64_C(1) << 33;

	(void)state;
	for (uint64_t i = 0; i < STREAM_WINDOW; i++)
		stream_track_add(&track, i);
	assert_int_equal(stream_track_add(&track, far), STREAM_IN_ORDER);
	for (uint64_t i = 1; i < STREAM_WINDOW; i++) {
		assert_int_equal(stream_track_add(&track, far - i), STREAM_REORDERED);
		assert_int_equal(stream_track_add(&track, far - i), STREAM_DUPLICATE);
	}
}

static void sums_are_by_interval(void **state)
{
	(void)state;
	stream_series_reset(&series, 100);
	stream_series_add(&series, -1, 1000);
	stream_series_add(&series, 0, 1);
	stream_series_add(&series, 99, 2);
	stream_series_add(&series, 100, 4);
	stream_series_add(&series, 550, 8);
	stream_series_add(&series, 20, 16);
	assert_int_equal(series.n, 6);
	assert_int_equal(series.sum[0], 19);
	assert_int_equal(series.sum[1], 4);
	assert_int_equal(series.sum[4], 0);
	assert_int_equal(series.sum[5], 8);
}

static void intervals_widen(void **state)
{
	uint64_t sum = 0;

	(void)state;
	stream_series_reset(&series, 10);
	for (int64_t i = 0; i < STREAM_INTERVALS; i++)
		stream_series_add(&series, i * 10, 1);
	assert_int_equal(series.interval, 10);
	stream_series_add(&series, STREAM_INTERVALS * 10, 1);
	assert_int_equal(series.interval, 20);
	assert_int_equal(series.n, STREAM_INTERVALS / 2 + 1);
	assert_int_equal(series.sum[0], 2);
	assert_int_equal(series.sum[STREAM_INTERVALS / 2], 1);
	/* Also what goes into an interval that there was before. */
	stream_series_add(&series, 15, 5);
	assert_int_equal(series.sum[0], 7);
	stream_series_add(&series, INT64_C(10) << 40, 1);
	for (unsigned i = 0; i < series.n; i++)
		sum += series.sum[i];
	assert_int_equal(sum, STREAM_INTERVALS + 7);
	assert_true(series.n <= STREAM_INTERVALS);
}

static void series_merge(void **state)
{
	json_t *o;

	(void)state;
	stream_series_reset(&series, 10);
	stream_series_reset(&other, 10);
	for (int64_t i = 0; i < 7; i++)
		stream_series_add(&series, i * 10, 1);
	for (int64_t i = 0; i < 9; i++)
		stream_series_add(&other, i * 10, 100);
	stream_series_widen(&series, 40);
	stream_series_merge(&other, &series);
	assert_int_equal(other.interval, 40);
	assert_int_equal(other.n, 3);
	assert_int_equal(other.sum[0], 404);
	assert_int_equal(other.sum[1], 403);
	assert_int_equal(other.sum[2], 100);
	stream_series_reset(&series, 10);
	stream_series_add(&series, 25, 7);
	stream_series_merge(&other, &series);
	assert_int_equal(other.sum[0], 411);
	o = stream_series_json(&other);
	assert_int_equal(stream_series_read(o, &series), 0);
	assert_int_equal(series.interval, 40);
	assert_int_equal(series.n, 3);
	assert_memory_equal(series.sum, other.sum, sizeof(series.sum));
	json_object_set_new(o, "interval_ns", json_integer(0));
	assert_int_equal(stream_series_read(o, &series), -EINVAL);
	json_decref(o);
	assert_int_equal(stream_series_read(NULL, &series), -EINVAL);
}

static void lines_come_whole(void **state)
{
	static char text[20000];
	struct stream_line a, b;
	json_t *o = NULL;
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	stream_line_open(&a, fd[0]);
	stream_line_open(&b, fd[1]);
	assert_int_equal(stream_line_receive(&b, 0, &o), -ETIMEDOUT);
	assert_int_equal(stream_line_send(&a, json_pack("{si}", "n", 1)), 0);
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(stream_line_send(&a, json_pack("{ss}", "text", text)), 0);
	assert_int_equal(stream_line_receive(&b, 0, &o), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "n")), 1);
	json_decref(o);
	assert_int_equal(stream_line_receive(&b, 0, &o), 0);
	assert_string_equal(json_string_value(json_object_get(o, "text")), text);
	json_decref(o);
	/* In pieces. */
	assert_int_equal(send(a.peer.fd, "{\"n\":", 5, 0), 5);
	assert_int_equal(stream_line_receive(&b, 0, &o), -ETIMEDOUT);
	assert_int_equal(send(a.peer.fd, "2}\n[]\n", 6, 0), 6);
	assert_int_equal(stream_line_receive(&b, 0, &o), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "n")), 2);
	json_decref(o);
	assert_int_equal(stream_line_receive(&b, 0, &o), -EPROTO);
	stream_line_close(&a);
	assert_int_equal(stream_line_receive(&b, 0, &o), -ECONNRESET);
	assert_int_equal(stream_line_send(&b, json_object()), -ECONNRESET);
	stream_line_close(&b);
	assert_int_equal(stream_line_send(&b, json_object()), -ECONNRESET);
}

static void who_reads_nothing_is_given_up(void **state)
{
	struct stream_line a;
	json_t *much = json_array();
	int fd[2], small = 4096;

	(void)state;
	for (int i = 0; i < 100000; i++)
		json_array_append_new(much, json_integer(i));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	stream_line_open(&a, fd[0]);
	close(fd[1]);
	assert_int_equal(stream_line_send(&a, json_pack("{so}", "much", much)), -ECONNRESET);
	stream_line_close(&a);
}

static void steps_share_the_duration(void **state)
{
	struct load_config config = {
		.kind = LOAD_STREAM, .flows = 1, .sizes = 3, .size = {1, 2, 3}};
	struct stream_plan plan;
	int64_t end[LOAD_SIZES_MAX];

	(void)state;
	stream_plan_make(&config, &plan);
	stream_plan_ends(&plan, 1000, end);
	assert_int_equal(plan.steps, 3);
	assert_int_equal(end[0], 333);
	assert_int_equal(end[1], 666);
	assert_int_equal(end[2], 1000);
	stream_plan_ends(&plan, INT64_MAX, end);
	assert_true(end[2] == INT64_MAX);
	assert_true(stream_plan_sends(&plan, 0, false));
	assert_false(stream_plan_sends(&plan, 0, true));
}

static void rrul_has_flows_of_each_class_both_ways(void **state)
{
	static const uint8_t tos[] = {0, 0x20, 0xa0, 0xb8};
	struct load_config config = {.kind = LOAD_RRUL, .tcp_flows = 5, .sizes = 1, .size = {1000}};
	struct stream_plan plan;
	int64_t end[LOAD_SIZES_MAX];

	(void)state;
	stream_plan_make(&config, &plan);
	assert_int_equal(plan.protocol, LOAD_TCP);
	assert_int_equal(plan.flows, 10);
	assert_int_equal(plan.groups, 10);
	assert_int_equal(plan.size[0], 0);
	assert_int_equal(plan.size[1], 1000);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(stream_plan_sends(&plan, i, false), i < 5);
		assert_int_equal(stream_plan_sends(&plan, i, true), i >= 5);
		assert_int_equal(stream_plan_tos(&plan, i), tos[i % 5 % 4]);
	}
	stream_plan_ends(&plan, 1000, end);
	assert_int_equal(end[0], 250);
	assert_int_equal(end[1], 1000);
	config.idle = 600;
	stream_plan_ends(&plan, 1000, end);
	assert_int_equal(end[0], 600);
	stream_plan_ends(&plan, 500, end);
	assert_int_equal(end[0], 500);
}

/* What one side has counted of a second, in which there was one step: 1000 messages of 125 bytes.
 */
static json_t *report(const char *way, int64_t from, int64_t duration)
{
	return json_pack("{sI sI sI s{s[{s[{si si}] s{sI s[iii]} s{sI s[iii]}}]}}", "from_ns",
			 (json_int_t)from, "until_ns", (json_int_t)duration, "duration_ns",
			 (json_int_t)duration, way, "groups", "steps", "messages", 1000, "bytes",
			 125000, "bytes", "interval_ns", (json_int_t)NSEC_PER_SEC / 2, "sum", 50000,
			 50000, 25000, "messages", "interval_ns", (json_int_t)NSEC_PER_SEC / 2,
			 "sum", 400, 400, 200);
}

/* Of the last call, whose parameters it points to. */
static struct stream_plan plan_of(enum load_protocol protocol, enum load_direction direction)
{
	static struct load_config config;
	struct stream_plan plan;

	config = (struct load_config){.kind = LOAD_STREAM,
				      .protocol = protocol,
				      .direction = direction,
				      .flows = direction == LOAD_BOTH ? 2 : 1,
				      .threads = 1,
				      .server_threads = 1,
				      .interval = NSEC_PER_SEC / 2,
				      .sizes = 1,
				      .size = {125}};
	stream_plan_make(&config, &plan);
	return plan;
}

static json_t *result(enum load_protocol protocol, int64_t knew, int64_t duration)
{
	json_t *client = report("tx", 0, duration), *server = report("rx", knew, duration), *o;
	struct stream_plan plan = plan_of(protocol, LOAD_UP);

	o = stream_result(&plan, client, server, NULL);
	json_decref(client);
	json_decref(server);
	return o;
}

static double in(const json_t *o, const char *group, const char *key)
{
	return json_number_value(json_object_get(json_object_get(o, group), key));
}

/*
 * A server that has no time hears late that it is measured. Datagrams from before that are counted,
 * by the step that is in them; TCP's bytes are not.
 */
static void a_server_that_knew_late_is_no_faster(void **state)
{
	json_t *o = result(LOAD_UDP, NSEC_PER_SEC / 5, NSEC_PER_SEC);

	(void)state;
	assert_true(in(o, "rates", "received_datagrams") == 1000);
	assert_true(in(o, "rates", "received_mbit") == 1);
	assert_true(json_is_true(json_object_get(o, "valid")));
	json_decref(o);
	/* Of so little of it that is said, and it is taken again. */
	o = result(LOAD_TCP, NSEC_PER_SEC / 5, NSEC_PER_SEC);
	assert_float_equal(in(o, "rates", "received_mbit"), 1 / 0.8, 1e-6);
	assert_true(json_is_false(json_object_get(o, "valid")));
	assert_true(json_is_true(json_object_get(o, "late")));
	assert_non_null(strstr(json_string_value(json_object_get(o, "invalid")),
			       "the server was late: it heard after 0.200 s of 1.000 s"));
	json_decref(o);
	o = result(LOAD_TCP, NSEC_PER_SEC / 20, NSEC_PER_SEC);
	assert_true(json_is_true(json_object_get(o, "valid")));
	json_decref(o);
}

/* Both ways: what a side has counted in less time is not divided by the other's. */
static void rates_of_both_ways_are_added(void **state)
{
	json_t *client = report("tx", 0, NSEC_PER_SEC);
	json_t *server = report("tx", NSEC_PER_SEC / 2, NSEC_PER_SEC), *o;
	struct stream_plan plan = plan_of(LOAD_TCP, LOAD_BOTH);

	(void)state;
	json_object_set(client, "rx", json_object_get(client, "tx"));
	json_object_set(server, "rx", json_object_get(server, "tx"));
	o = stream_result(&plan, client, server, NULL);
	assert_float_equal(in(o, "rates", "up_received_mbit"), 2, 1e-6);
	assert_float_equal(in(o, "rates", "down_received_mbit"), 1, 1e-6);
	assert_float_equal(in(o, "rates", "received_mbit"), 3, 1e-6);
	assert_float_equal(in(o, "rates", "sent_mbit"), 3, 1e-6);
	json_decref(o);
	/* It never heard: half of a sum is no sum. */
	json_object_set_new(server, "from_ns", json_integer(NSEC_PER_SEC));
	o = stream_result(&plan, client, server, NULL);
	assert_true(json_is_null(json_object_get(json_object_get(o, "rates"), "received_mbit")));
	assert_true(
		json_is_number(json_object_get(json_object_get(o, "rates"), "down_received_mbit")));
	json_decref(o);
	json_decref(client);
	json_decref(server);
}

/* 1.25 s in intervals of half a second; of the last one a rate is not twice too low. */
static void a_short_interval_has_its_own_length(void **state)
{
	json_t *o = result(LOAD_UDP, 0, NSEC_PER_SEC * 5 / 4), *values;

	(void)state;
	values = json_object_get(json_object_get(o, "series"), "received_mbit");
	assert_int_equal(json_array_size(values), 3);
	assert_float_equal(json_number_value(json_array_get(values, 0)), 0.8, 1e-6);
	assert_float_equal(json_number_value(json_array_get(values, 2)), 0.8, 1e-6);
	json_decref(o);
	/* So little of one is not known. */
	o = result(LOAD_UDP, 0, NSEC_PER_SEC + NSEC_PER_MSEC);
	values = json_object_get(json_object_get(o, "series"), "sent_mbit");
	assert_int_equal(json_array_size(values), 3);
	assert_true(json_is_null(json_array_get(values, 2)));
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(in_order, track_clear),
		cmocka_unit_test_setup(a_gap_is_filled_once, track_clear),
		cmocka_unit_test_setup(bits_are_used_again, track_clear),
		cmocka_unit_test_setup(a_leap_forgets_all, track_clear),
		cmocka_unit_test(sums_are_by_interval),
		cmocka_unit_test(intervals_widen),
		cmocka_unit_test(series_merge),
		cmocka_unit_test(lines_come_whole),
		cmocka_unit_test(who_reads_nothing_is_given_up),
		cmocka_unit_test(steps_share_the_duration),
		cmocka_unit_test(rrul_has_flows_of_each_class_both_ways),
		cmocka_unit_test(a_server_that_knew_late_is_no_faster),
		cmocka_unit_test(rates_of_both_ways_are_added),
		cmocka_unit_test(a_short_interval_has_its_own_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

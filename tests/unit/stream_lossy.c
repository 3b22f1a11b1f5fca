/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream over a path that drops, doubles and swaps datagrams: each is counted as what it is. */
#include "test.h"

#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/load.h>
#include <lab/load/stream_worker.h>

#include "loopback.h"
#include "lossy.h"

static struct load_place place = {.netns = -1};
static void *server, *client;
static struct lossy *lossy;
static json_t *result;

/* What the path did to datagrams of steps. */
struct done {
	uint64_t n, dropped, doubled, swapped;
	struct {
		bool held;
		uint8_t step;
	} flow[64][2];
	enum { EVERY_TENTH, DROP_ALL, PASS_ALL } way;
};

static enum lossy_fate fate_of(struct done *d)
{
	if (d->way == PASS_ALL)
		return LOSSY_PASS;
	if (d->way == DROP_ALL)
		return LOSSY_DROP;
	switch (d->n % 10) {
	case 3:
		return LOSSY_DROP;
	case 5:
		return LOSSY_TWICE;
	case 8:
		return LOSSY_LATER;
	default:
		return LOSSY_PASS;
	}
}

static enum lossy_fate judge(void *arg, unsigned flow, bool up, const uint8_t *data, size_t size)
{
	struct done *d = arg;
	struct stream_datagram head;
	enum lossy_fate fate;

	if (!data)
		d->flow[flow][up].held = false;
	if (size < sizeof(head))
		return LOSSY_PASS;
	memcpy(&head, data, sizeof(head));
	if (head.magic != STREAM_MAGIC || head.step == STREAM_WARM)
		return LOSSY_PASS;
	fate = fate_of(d);
	d->n++;
	d->dropped += fate == LOSSY_DROP;
	d->doubled += fate == LOSSY_TWICE;
	if (fate == LOSSY_LATER && !d->flow[flow][up].held) {
		d->flow[flow][up].held = true;
		d->flow[flow][up].step = head.step;
	} else if (fate != LOSSY_DROP && d->flow[flow][up].held) {
		/* This one goes first. Behind one of the next step it is in order all the same. */
		d->swapped += d->flow[flow][up].step == head.step;
		d->flow[flow][up].held = false;
	}
	return fate;
}

static uint64_t count(const json_t *o, const char *key)
{
	const json_t *value = json_object_get(json_object_get(o, "counts"), key);

	assert_true(json_is_integer(value));
	return (uint64_t)json_integer_value(value);
}

static int run_stop(void **state)
{
	(void)state;
	if (client)
		load_stream.client_stop(client, NULL, NULL);
	if (lossy)
		lossy_stop(lossy);
	if (server)
		load_stream.server_stop(server, NULL);
	client = server = lossy = NULL;
	json_decref(result);
	result = NULL;
	return 0;
}

static uint64_t drops; /* the kernel's, in the last run */

static void run(struct load_config *config, int64_t duration, struct done *done)
{
	struct load_place through;
	struct error err = {0};
	int ret;

	drops = loopback_drops();
	assert_int_equal(load_stream.check(config, &err), 0);
	while ((ret = load_stream.server_start(config, &place, &server, &err)) == -EADDRINUSE)
		place.port += 8;
	assert_int_equal(ret, 0);
	through = place;
	do
		through.port++;
	while (!(lossy = lossy_start(through.port, place.port, judge, done)));
	if (load_stream.client_start(config, &through, &client, &err))
		fail_msg("%s", err.text);
	load_stream.client_measure(client, duration);
	clock_sleep(duration);
	if (load_stream.client_stop(client, &result, &err))
		fail_msg("%s", err.text);
	client = NULL;
	/* Nothing is on its way any more when it has ended. */
	lossy_stop(lossy);
	lossy = NULL;
	drops = loopback_drops() - drops;
}

/* What this path has done, give or take what the kernel has dropped, which it counts. */
static void assert_done(const char *key, uint64_t done)
{
	assert_true(count(result, key) + drops >= done);
	assert_true(count(result, key) <= done + drops);
}

static bool is_number(const char *rate)
{
	return json_is_number(json_object_get(json_object_get(result, "rates"), rate));
}

/*
 * On a busy machine little may be sent in so short a time, and the server may hear too late that it
 * is to send, which says nothing: then again, for twice as long.
 */
static void run_enough(struct load_config *config, struct done *done)
{
	int64_t duration = 300 * NSEC_PER_MSEC;

	for (int i = 0; i < 6; i++, duration *= 2) {
		*done = (struct done){.way = done->way};
		run_stop(NULL);
		run(config, duration, done);
		if (is_number("sent_mbit") && is_number("received_mbit") && done->n &&
		    (done->way == DROP_ALL || (done->dropped && done->doubled && done->swapped)))
			break;
	}
}

static struct load_config config_of(enum load_direction direction)
{
	return (struct load_config){
		.kind = LOAD_STREAM,
		.protocol = LOAD_UDP,
		.direction = direction,
		.flows = 4,
		.threads = 2,
		.timeout = 8 * NSEC_PER_SEC, /* a quarter of it may be silent */
		.interval = 10 * NSEC_PER_MSEC,
		.rate = 1000,
		.sizes = 3,
		.size = {18, 100, 1472},
	};
}

static void each_is_counted_as_what_it_is(void **state)
{
	static const enum load_direction directions[] = {LOAD_UP, LOAD_DOWN, LOAD_BOTH};

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct load_config config = config_of(directions[i]);
		struct done done = {.way = EVERY_TENTH};
		uint64_t lost = 0;
		size_t k;
		json_t *value;

		run_enough(&config, &done);
		assert_true(done.dropped > 0 && done.doubled > 0 && done.swapped > 0);
		assert_done("sent", done.n);
		assert_done("lost", done.dropped);
		assert_int_equal(count(result, "received"),
				 count(result, "sent") - count(result, "lost"));
		assert_done("duplicated", done.doubled);
		assert_done("reordered", done.swapped);
		/* By interval, too. */
		json_array_foreach(json_object_get(json_object_get(result, "series"), "lost"), k,
				   value) lost += (uint64_t)json_integer_value(value);
		assert_int_equal(lost, count(result, "lost"));
		run_stop(NULL);
	}
}

static void a_path_that_drops_all_parks_nothing(void **state)
{
	struct load_config config = config_of(LOAD_BOTH);
	struct done done = {.way = DROP_ALL};
	const json_t *rates;

	(void)state;
	config.timeout = 400 * NSEC_PER_MSEC;
	run_enough(&config, &done);
	assert_true(count(result, "sent") > 0);
	assert_done("sent", done.n);
	assert_int_equal(count(result, "received"), 0);
	assert_int_equal(count(result, "lost"), count(result, "sent"));
	assert_int_equal(count(result, "bytes_received"), 0);
	rates = json_object_get(result, "rates");
	assert_true(json_real_value(json_object_get(rates, "received_mbit")) == 0);
	assert_true(json_real_value(json_object_get(rates, "sent_mbit")) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(each_is_counted_as_what_it_is, run_stop),
		cmocka_unit_test_teardown(a_path_that_drops_all_parks_nothing, run_stop),
	};

	loopback_address(place.address, sizeof(place.address));
	loopback_pin(&place);
	place.port = (uint16_t)(20000 + getpid() % 10000);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

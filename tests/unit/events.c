/* SPDX-License-Identifier: BSD-2-Clause */
/* The lab's events: every event is polled once and counted once, by every poller. */
#include "test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <lab/parts/events.h>

enum { EVENTS = 100 };

static struct events *begin(enum poller poller, unsigned napis, bool descriptor)
{
	struct events_config config = {.poller = poller, .napis = napis, .descriptor = descriptor};
	struct events *events;
	struct error err;

	if (events_open(&config, &events, &err))
		fail_msg("%s", err.text);
	return events;
}

static void each_is_polled_once(void **state)
{
	struct histogram *latency = malloc(sizeof(*latency));
	struct events_single how = {
		.duration = 60 * NSEC_PER_SEC,
		.most = EVENTS,
		.cpu = -1,
		.latency = latency,
	};

	(void)state;
	for (unsigned i = 0; i < 4 * POLLER_RUNNER_MAX; i++) {
		struct events *events = begin(i / 4, i % 4 < 2 ? 1 : 70, i % 2);
		struct events_sample s;
		struct error err;

		histogram_reset(latency);
		assert_int_equal(events_single(events, &how, &s, &err), 0);
		assert_int_equal(s.events, EVENTS);
		assert_int_equal(latency->n, EVENTS);
		assert_true(s.cpu > 0 && s.wall > 0);
		/* A busy-poller's poll that is under way at either end counts before or after. */
		assert_true(s.polls + (i / 4 == POLLER_BUSY_POLL) >= EVENTS);
		/* An event may come before the poll of the one before has completed, each time. */
		if (i / 4 != POLLER_BUSY_POLL)
			assert_in_range(s.completes, 1, s.polls);
		events_close(events);
	}
	free(latency);
}

/* All samples begin and end when nothing is scheduled, so each event has a poll that completes. */
static void each_completes(void **state)
{
	struct events_single one = {.duration = 60 * NSEC_PER_SEC, .most = 1, .cpu = -1};

	(void)state;
	for (unsigned i = 0; i < 2 * POLLER_RUNNER_MAX; i++) {
		struct events *events;
		struct error err;

		if (i / 2 == POLLER_BUSY_POLL) /* completes nothing */
			continue;
		events = begin(i / 2, 3, i % 2);
		for (unsigned k = 0; k < EVENTS / 5; k++) {
			struct events_sample s;

			if (events_single(events, &one, &s, &err))
				fail_msg("%s", err.text);
			assert_int_equal(s.events, 1);
			assert_in_range(s.completes, 1, s.polls);
		}
		events_close(events);
	}
}

static void all_circle(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLLER_RUNNER_MAX; i++) {
		struct events *events = begin(i, 70, false);
		struct events_sample s;
		struct error err;

		assert_int_equal(events_circle(events, 20 * NSEC_PER_MSEC, &s, &err), 0);
		assert_true(s.events > 0 && s.cpu > 0);
		events_close(events);
	}
}

static void names_the_limit(void **state)
{
	struct events_config config = {.poller = POLLER_THREAD, .napis = EVENTS_NAPIS_MAX};
	struct rlimit before, low = {100, 100};
	struct events *events;
	struct error err;

	(void)state;
	/* Root may raise it again. */
	getrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(events_open(&config, &events, &err), -EMFILE);
	assert_non_null(strstr(err.text, "1024 NAPIs need 2176 open files, the limit is 100"));
	setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_polled_once),
		cmocka_unit_test(each_completes),
		cmocka_unit_test(all_circle),
		cmocka_unit_test(names_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

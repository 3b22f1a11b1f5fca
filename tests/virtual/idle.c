/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case 21: without traffic an engine uses under 0.1% of one core, in every poller; busy-poll with
 * idle_suspend. On the host.
 */
#include "scene.h"

#include <sys/resource.h>
#include <time.h>

static int64_t cpu_time(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
}

static void idle(enum poller poller)
{
	struct scene s;
	struct source source = {.scene = &s, .burst = 64, .interval = NSEC_PER_USEC, .count = 1000};
	int64_t before, used, least = INT64_MAX;

	scene_begin_with(&s, false, 0,
			 (struct engine_config){.poller = poller, .idle_suspend_usecs = 200});
	/* After some traffic: whoever polled has to have gone back to sleep. */
	source.port = s.a;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, 1000);
	/* Twice in vain is an accident of the clock that counts it; three times is not. */
	for (int i = 0; i < 3 && least > 3 * NSEC_PER_MSEC; i++) {
		before = cpu_time();
		for (int k = 0; k < 3; k++) {
			struct timespec second = {.tv_sec = 1};

			nanosleep(&second, NULL);
		}
		used = cpu_time() - before;
		least = used < least ? used : least;
	}
	print_message("  %ld us of CPU in 3 s\n", (long)(least / NSEC_PER_USEC));
	assert_true(least <= 3 * NSEC_PER_MSEC);
	scene_end(&s);
}

static void case_21_idle(void **state)
{
	(void)state;
	over_pollers(idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_21_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

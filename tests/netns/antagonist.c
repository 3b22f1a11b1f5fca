/* SPDX-License-Identifier: BSD-2-Clause */
/* What runs beside a measurement: where it was told to, and it works. */
#include "netns.h"
#include "test.h"

#include <sched.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/cputime.h>
#include <lab/ends.h>
#include <lab/run/antagonist.h>
#include <lab/run/place.h>

enum { PORT = 7100 };

#define PATIENCE (60 * INT64_C(1000000000)) /* only against hanging */

static char rundir[] = "/tmp/napier-antagonist-XXXXXX";
static struct ends ends;

static int setup(void **state)
{
	struct error err = {0};

	(void)state;
	if (!mkdtemp(rundir))
		return -1;
	assert_int_equal(ends_open(rundir, &ends, &err), 0);
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	ends_close(&ends);
	return rmdir(rundir);
}

static void place_at(unsigned ns, struct load_place *place)
{
	*place = (struct load_place){.netns = ends.lab->namespace[ns].fd, .port = PORT};
	snprintf(place->address, sizeof(place->address), "10.78.0.1");
}

static struct antagonist *started(const struct spec_antagonist *spec)
{
	struct load_place server, client;
	struct antagonist *a = NULL;
	struct error err = {0};

	place_at(ends.far_ns, &server);
	place_at(ends.near_ns, &client);
	if (antagonist_start(spec, &server, &client, &a, &err))
		fail_msg("%s", err.text);
	return a;
}

/* The last CPU that we may use. */
static unsigned cpu_last(void)
{
	unsigned last = 0;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu++)
		if (CPU_ISSET(cpu, &set))
			last = cpu;
	return last;
}

static void hogs_use_the_cpus_they_are_given(void **state)
{
	struct spec_antagonist spec = {.key = "hog", .kind = SPEC_HOG, .threads = 2, .nice = 4};
	int64_t limit = clock_now() + PATIENCE;
	pid_t tids[LOAD_TIDS_MAX];
	struct antagonist *a;
	char cpus[16];
	json_t *did;

	(void)state;
	cpuset_add(&spec.cpus, cpu_last());
	snprintf(cpus, sizeof(cpus), "%u", cpu_last());
	a = started(&spec);
	assert_int_equal(antagonist_threads(a, tids), 2);
	for (int i = 0; i < 2; i++) {
		json_t *seen = place_observe(tids[i]);
		int64_t had = cputime_thread(tids[i]); /* some of it before it was counted */

		assert_string_equal(json_string_value(json_object_get(seen, "cpus")), cpus);
		assert_int_equal(json_integer_value(json_object_get(seen, "nice")), 4);
		json_decref(seen);
		while (cputime_thread(tids[i]) < had + 2000000)
			assert_true(clock_now() < limit);
	}
	antagonist_stop(a, &did);
	assert_string_equal(json_string_value(json_object_get(did, "kind")), "hog");
	assert_true(json_real_value(json_object_get(did, "cpu_s")) > 0.001);
	assert_true(json_real_value(json_object_get(did, "duration_s")) > 0);
	json_decref(did);
	for (int i = 0; i < 2; i++)
		assert_true(netns_thread_goes(tids[i]));
}

/* On each CPU, and in nobody's way. */
static void awake_is_of_class_idle(void **state)
{
	struct spec_antagonist spec = {.key = "awake", .kind = SPEC_AWAKE};
	struct antagonist *a = started(&spec);
	pid_t tids[LOAD_TIDS_MAX];
	unsigned n = antagonist_threads(a, tids);
	int64_t limit = clock_now() + PATIENCE;
	struct cpuset seen = {0};
	cpu_set_t usable, own;
	json_t *did;

	(void)state;
	sched_getaffinity(0, sizeof(usable), &usable);
	assert_int_equal(n, CPU_COUNT(&usable));
	for (unsigned i = 0; i < n; i++) {
		int64_t had = cputime_thread(tids[i]);

		assert_int_equal(sched_getscheduler(tids[i]), SCHED_IDLE);
		assert_int_equal(sched_getaffinity(tids[i], sizeof(own), &own), 0);
		assert_int_equal(CPU_COUNT(&own), 1);
		for (unsigned cpu = 0; cpu < CPU_MAX; cpu++)
			if (CPU_ISSET(cpu, &own))
				cpuset_add(&seen, cpu);
		while (cputime_thread(tids[i]) == had && clock_now() < limit)
			usleep(1000);
		assert_true(cputime_thread(tids[i]) > had);
	}
	assert_int_equal(cpuset_count(&seen), n);
	antagonist_stop(a, &did);
	assert_string_equal(json_string_value(json_object_get(did, "kind")), "awake");
	assert_int_equal(json_integer_value(json_object_get(did, "threads")), n);
	json_decref(did);
}

/* CPU time so far of both its sides together. */
static int64_t used(const struct antagonist *a)
{
	pid_t tids[LOAD_TIDS_MAX];
	unsigned n = antagonist_threads(a, tids);
	int64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += cputime_thread(tids[i]);
	return sum;
}

static void background_is_traffic_at_another_port(void **state)
{
	struct spec_antagonist spec = {
		.key = "flows",
		.kind = SPEC_BACKGROUND,
		.nice = 2,
		.load = {.kind = LOAD_RR,
			 .protocol = LOAD_TCP,
			 .flows = 8,
			 .threads = 1,
			 .request_size = 100,
			 .response_size = 100},
	};
	int64_t limit = clock_now() + PATIENCE, had[2];
	struct antagonist *a[2];
	json_t *did;

	(void)state;
	/* Two beside each other do not meet. */
	for (int i = 0; i < 2; i++) {
		a[i] = started(&spec);
		had[i] = used(a[i]);
	}
	/* Connected as they are, they have nothing else to do than transactions. */
	for (int i = 0; i < 2; i++) {
		while (used(a[i]) < had[i] + 20000000) {
			assert_true(clock_now() < limit);
			clock_sleep(1000000);
		}
	}
	for (int i = 0; i < 2; i++) {
		json_t *counts;

		antagonist_stop(a[i], &did);
		assert_string_equal(json_string_value(json_object_get(did, "load")), "rr");
		assert_int_not_equal(json_integer_value(json_object_get(did, "port")), PORT);
		counts = json_object_get(did, "counts");
		if (!json_integer_value(json_object_get(counts, "transactions")))
			fail_msg("%s", json_dumps(did, 0));
		json_decref(did);
	}
	antagonist_stop(started(&spec), NULL);
}

static void what_cannot_start_is_said(void **state)
{
	struct spec_antagonist spec = {.key = "hog", .kind = SPEC_HOG, .threads = 5000};
	struct load_place place;
	struct antagonist *a;
	struct error err = {0};

	(void)state;
	place_at(ends.near_ns, &place);
	assert_int_equal(antagonist_start(&spec, &place, &place, &a, &err), -EINVAL);
	assert_non_null(strstr(err.text, "5000"));
	/* Nobody has that address here. */
	spec = (struct spec_antagonist){.key = "flows", .kind = SPEC_BACKGROUND};
	snprintf(place.address, sizeof(place.address), "192.0.2.1");
	assert_true(antagonist_start(&spec, &place, &place, &a, &err) < 0);
	assert_non_null(strstr(err.text, "192.0.2.1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hogs_use_the_cpus_they_are_given),
		cmocka_unit_test(awake_is_of_class_idle),
		cmocka_unit_test(background_is_traffic_at_another_port),
		cmocka_unit_test(what_cannot_start_is_said),
	};

	netns_require();
	return cmocka_run_group_tests(tests, setup, cleanup);
}

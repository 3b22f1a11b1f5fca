/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a thread of our own runs: set, read back, and what cannot be. */
#include "test.h"

#include <sched.h>
#include <unistd.h>

#include <lab/run/place.h>

static cpu_set_t allowed;

static int setup(void **state)
{
	(void)state;
	return sched_getaffinity(0, sizeof(allowed), &allowed);
}

static int back(void **state)
{
	(void)state;
	return sched_setaffinity(0, sizeof(allowed), &allowed);
}

static unsigned cpu_first(void)
{
	unsigned cpu = 0;

	while (!CPU_ISSET(cpu, &allowed))
		cpu++;
	return cpu;
}

static const char *text_of(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static long long number_of(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void is_observed_as_set(void **state)
{
	struct spec_placement placement = {.nice = 19}; /* not placed: nice stays */
	struct error err = {0};
	char cpus[16];
	json_t *seen;
	int nice_before;

	(void)state;
	seen = place_observe(gettid());
	assert_non_null(seen);
	nice_before = (int)number_of(seen, "nice");
	json_decref(seen);

	cpuset_add(&placement.cpus, cpu_first());
	snprintf(cpus, sizeof(cpus), "%u", cpu_first());
	assert_int_equal(place_thread(gettid(), &placement, &err), 0);
	seen = place_observe(gettid());
	assert_string_equal(text_of(seen, "cpus"), cpus);
	assert_string_equal(text_of(seen, "name"), "unit-place");
	assert_int_equal(number_of(seen, "tid"), gettid());
	assert_int_equal(number_of(seen, "cpu"), cpu_first());
	assert_int_equal(number_of(seen, "nice"), nice_before);
	json_decref(seen);

	/* Nicer one may always be; and no CPUs: where it was. */
	placement = (struct spec_placement){.nice = 19, .placed = true};
	assert_int_equal(place_thread(gettid(), &placement, &err), 0);
	seen = place_observe(gettid());
	assert_string_equal(text_of(seen, "cpus"), cpus);
	assert_string_equal(text_of(seen, "class"), "fair");
	assert_int_equal(number_of(seen, "nice"), 19);
	json_decref(seen);
}

static void what_cannot_be_is_said(void **state)
{
	struct spec_placement placement = {0};
	struct error err = {0};

	(void)state;
	/* One that is not there, or not for us. */
	cpuset_add(&placement.cpus, CPU_MAX - 1);
	assert_int_equal(place_thread(gettid(), &placement, &err), -EINVAL);
	assert_non_null(strstr(err.text, "CPUs 1023"));
	/* Some of them are: what is read back is not what was set. */
	cpuset_add(&placement.cpus, cpu_first());
	assert_int_equal(place_thread(gettid(), &placement, &err), -EIO);
	assert_non_null(strstr(err.text, "read back"));
	assert_null(place_observe(0x7ffffff0));
	assert_int_equal(place_kernel_napi("no_such", &placement, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no_such"));
	assert_int_equal(place_restore(&err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(is_observed_as_set, back),
		cmocka_unit_test_teardown(what_cannot_be_is_said, back),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}

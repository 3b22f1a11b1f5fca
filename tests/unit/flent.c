/* SPDX-License-Identifier: BSD-2-Clause */
/* What is in the files for flent; whether flent itself reads them is in flent_opens.c. */
#include "test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "lab/report/report.h"

#include "flent_fixture.h"

static char top[] = "/tmp/napier-flent-XXXXXX", directory[64];

static int written(void **state)
{
	json_t *results = flent_fixture();
	struct error err = {0};

	(void)state;
	assert_non_null(results);
	assert_non_null(mkdtemp(top));
	snprintf(directory, sizeof(directory), "%s/flent", top);
	if (report_flent(results, directory, &err))
		fail_msg("%s", err.text);
	json_decref(results);
	return 0;
}

static int removed(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

static json_t *file_json(const char *name)
{
	static char text[1 << 16];
	char path[256];
	json_error_t wrong;
	json_t *o;
	gzFile file;
	int n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = gzopen(path, "r");
	if (!file)
		fail_msg("%s is not there", path);
	assert_false(gzdirect(file));
	n = gzread(file, text, sizeof(text));
	assert_in_range(n, 1, sizeof(text) - 1);
	assert_int_equal(gzclose(file), Z_OK);
	o = json_loadb(text, (size_t)n, 0, &wrong);
	if (!o)
		fail_msg("%s: %s", name, wrong.text);
	return o;
}

static unsigned files_count(void)
{
	DIR *d = opendir(directory);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static const char *meta(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(json_object_get(o, "metadata"), key));
}

static double number(const json_t *array, size_t i)
{
	return json_number_value(json_array_get(array, i));
}

/* One file for each valid run with something in it; no shell's characters in a name. */
static void one_for_a_run(void **state)
{
	static const struct {
		const char *file, *test;
	} wanted[] = {
		{"k-rrul-1.flent.gz", "rrul"},	   {"k-rrul-3.flent.gz", "rrul"},
		{"k-up-1.flent.gz", "tcp_upload"}, {"k-both-1.flent.gz", "tcp_bidirectional"},
		{"k-udp-1.flent.gz", "udp_flood"}, {"__n-rr-3.flent.gz", "ping"},
		{"k-tcp-rr-1.flent.gz", "ping"},
	};

	(void)state;
	assert_int_equal(files_count(), sizeof(wanted) / sizeof(*wanted));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		json_t *o = file_json(wanted[i].file);

		assert_string_equal(meta(o, "NAME"), wanted[i].test);
		assert_int_equal(json_integer_value(json_object_get(o, "version")), 4);
		json_decref(o);
	}
}

static void says_what_it_is(void **state)
{
	json_t *o = file_json("k-rrul-1.flent.gz");
	const json_t *m = json_object_get(o, "metadata");

	(void)state;
	assert_string_equal(meta(o, "TITLE"), "the kernel, rrul");
	/* The beginning, and so long after it. */
	assert_string_equal(meta(o, "T0"), "2026-11-30T18:00:01.250000Z");
	assert_string_equal(meta(o, "KERNEL_RELEASE"), "6.18.0");
	assert_non_null(strstr(meta(o, "NOTE"), "system k, workload rrul, repeat 1"));
	assert_true(json_number_value(json_object_get(m, "STEP_SIZE")) == 0.2);
	assert_true(json_number_value(json_object_get(m, "TOTAL_LENGTH")) == 0.2 * FLENT_POINTS);
	json_decref(o);
}

static void has_every_value(void **state)
{
	json_t *o = file_json("k-rrul-1.flent.gz");
	const json_t *results = json_object_get(o, "results"), *raw_values, *raw, *x, *values;

	(void)state;
	x = json_object_get(o, "x_values");
	assert_int_equal(json_array_size(x), FLENT_POINTS);
	assert_true(number(x, 0) == 0.1);
	assert_int_equal(json_object_size(results), 12);
	values = json_object_get(results, "TCP download EF");
	assert_int_equal(json_array_size(values), FLENT_POINTS);
	assert_true(number(values, 3) == 83);
	/* Milliseconds; what was lost is null, and in raw_values not there. */
	values = json_object_get(results, "Ping (ms) UDP BK");
	assert_int_equal(json_array_size(values), FLENT_POINTS);
	assert_true(json_is_null(json_array_get(values, 2)));
	assert_true(number(values, 0) > 1.9999 && number(values, 0) < 2.0001);
	raw_values = json_object_get(o, "raw_values");
	assert_int_equal(json_object_size(raw_values), 12);
	raw = json_object_get(raw_values, "Ping (ms) UDP BK");
	assert_int_equal(json_array_size(raw), FLENT_POINTS - 3);
	/* 2026-11-30 18:00:01.25, the fourth interval of 0.2 s, its middle. */
	assert_true(json_number_value(json_object_get(json_array_get(raw, 2), "t")) ==
		    1796061601.25 + 3.5 * 0.2);
	assert_true(json_object_get(json_object_get(json_object_get(o, "metadata"), "SERIES_META"),
				    "Ping (ms) ICMP"));
	json_decref(o);
}

/* Nine intervals of 0.02 s: five, and the four that are left, for a stream; a probe keeps its own.
 */
static void streams_are_of_longer_times(void **state)
{
	json_t *o = file_json("k-rrul-3.flent.gz");
	const json_t *results = json_object_get(o, "results"), *x = json_object_get(o, "x_values");
	const json_t *raw = json_object_get(o, "raw_values"), *stream, *probe;

	(void)state;
	assert_int_equal(json_array_size(x), 2);
	assert_true(number(x, 0) == 0.05);
	stream = json_object_get(results, "TCP upload BE");
	assert_int_equal(json_array_size(stream), 2);
	assert_true(number(stream, 0) == 12 && number(stream, 1) == 16.5);
	assert_int_equal(json_array_size(json_object_get(raw, "TCP upload BE")), 2);
	assert_int_equal(json_array_size(json_object_get(results, "Ping (ms) UDP BE")), 2);
	probe = json_object_get(raw, "Ping (ms) UDP BE");
	assert_int_equal(json_array_size(probe), FLENT_POINTS - 3);
	json_decref(o);
}

/* Two intervals and a half: of the last one, the middle and the weight are those of the half. */
static void a_short_interval_at_the_end(void **state)
{
	json_t *results = flent_fixture(), *o;
	json_t *run = json_array_get(json_object_get(results, "runs"), 3);
	const json_t *m, *x, *values;
	struct error err;

	(void)state;
	json_object_set_new(run, "duration_s", json_real(0.125));
	json_object_set_new(run, "series",
			    json_pack("{s:f, s:[f, f, f]}", "interval_s", 0.05, "received_mbit",
				      5.0, 6.0, 9.0));
	json_object_set_new(run, "repeat", json_integer(6));
	assert_int_equal(report_flent(results, directory, &err), 0);
	o = file_json("k-up-7.flent.gz");
	m = json_object_get(o, "metadata");
	x = json_object_get(o, "x_values");
	values = json_object_get(json_object_get(o, "results"), "TCP upload");
	assert_true(json_number_value(json_object_get(m, "LENGTH")) == 0.125);
	assert_int_equal(json_array_size(x), 2);
	assert_true(number(x, 0) == 0.05 && number(x, 1) == 0.1125);
	assert_true(number(values, 0) == 5.5 && number(values, 1) == 9);
	json_decref(o);
	/* All in one of flent's. */
	json_object_set_new(json_object_get(run, "series"), "interval_s", json_real(0.04));
	json_object_set_new(run, "duration_s", json_real(0.1));
	assert_int_equal(report_flent(results, directory, &err), 0);
	o = file_json("k-up-7.flent.gz");
	values = json_object_get(json_object_get(o, "results"), "TCP upload");
	assert_float_equal(number(values, 0), (5 + 6 + 9 * 0.5) / 2.5, 1e-6);
	json_decref(o);
	json_decref(results);
}

static void nothing_for_it(void **state)
{
	json_t *results = json_pack("{s:[], s:[], s:[]}", "systems", "workloads", "runs");
	char path[128];
	struct error err = {0};
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/none", top);
	assert_int_equal(report_flent(results, path, &err), -EOPNOTSUPP);
	assert_int_equal(stat(path, &st), -1);
	json_decref(results);
}

static void cannot_be_written(void **state)
{
	json_t *results = flent_fixture();
	struct error err = {0};

	(void)state;
	assert_int_equal(report_flent(results, "/proc/napier", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/napier"));
	json_decref(results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_for_a_run),
		cmocka_unit_test(says_what_it_is),
		cmocka_unit_test(has_every_value),
		cmocka_unit_test(streams_are_of_longer_times),
		cmocka_unit_test(a_short_interval_at_the_end),
		cmocka_unit_test(nothing_for_it),
		cmocka_unit_test(cannot_be_written),
	};

	return cmocka_run_group_tests(tests, written, removed);
}

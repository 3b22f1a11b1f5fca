/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flent's data files, version 4 of the format: gzip'd JSON of metadata, x_values (s), results (a
 * value for each x, by series) and raw_values (the same with their times, without what is not
 * there). Series that flent computes of others (sums, averages) it adds when it opens a file.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ZLIB_CONST
#include <zlib.h>

#include "lab/report/file.h"
#include "lab/report/report.h"
#include "lab/report/words.h"

enum { FORMAT_VERSION = 4, SERIES_MAX = 12, NAME_MAX_HERE = 200 };

struct flent_series {
	const char *ours, *theirs;
	double scale; /* ours to theirs */
};

/* flent's own step is 0.2 s; shorter ones are made this long, in seconds. */
#define STEP 0.1

#define MBIT 1.0
#define MS 1e-6

/* What of ours has a place in which of flent's tests. */
static const struct flent_test {
	const char *kind, *protocol, *direction; /* of a workload; NULL: any */
	const char *name;
	struct flent_series series[SERIES_MAX + 1];
} tests[] = {
	{"rrul",
	 NULL,
	 NULL,
	 "rrul",
	 {{"up_be_mbit", "TCP upload BE", MBIT},
	  {"up_bk_mbit", "TCP upload BK", MBIT},
	  {"up_cs5_mbit", "TCP upload CS5", MBIT},
	  {"up_ef_mbit", "TCP upload EF", MBIT},
	  {"down_be_mbit", "TCP download BE", MBIT},
	  {"down_bk_mbit", "TCP download BK", MBIT},
	  {"down_cs5_mbit", "TCP download CS5", MBIT},
	  {"down_ef_mbit", "TCP download EF", MBIT},
	  {"udp_be_ns", "Ping (ms) UDP BE", MS},
	  {"udp_bk_ns", "Ping (ms) UDP BK", MS},
	  {"udp_ef_ns", "Ping (ms) UDP EF", MS},
	  {"icmp_ns", "Ping (ms) ICMP", MS}}},
	{"stream", "tcp", "up", "tcp_upload", {{"received_mbit", "TCP upload", MBIT}}},
	{"stream", "tcp", "down", "tcp_download", {{"received_mbit", "TCP download", MBIT}}},
	{"stream",
	 "tcp",
	 "both",
	 "tcp_bidirectional",
	 {{"up_received_mbit", "TCP upload", MBIT}, {"down_received_mbit", "TCP download", MBIT}}},
	{"stream", "udp", "up", "udp_flood", {{"received_mbit", "UDP upload", MBIT}}},
	/* The median of an interval's transactions; flent's plots know of UDP only. */
	{"rr", "udp", NULL, "ping", {{"p50_ns", "Ping (ms) UDP", MS}}},
	{"rr", "tcp", NULL, "ping", {{"p50_ns", "Ping (ms) TCP", MS}}},
};

static bool fits(const char *wanted, const json_t *o, const char *key)
{
	return !wanted || !strcmp(wanted, text_of(o, key));
}

static const struct flent_test *test_of(const json_t *workload)
{
	const json_t *parameters = json_object_get(workload, "parameters");

	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		const struct flent_test *t = &tests[i];

		if (fits(t->kind, workload, "kind") && fits(t->protocol, parameters, "protocol") &&
		    fits(t->direction, parameters, "direction"))
			return t;
	}
	return NULL;
}

/* Seconds since 1970; 0 when it is not known. */
static double time_of(const json_t *results, const json_t *run)
{
	double after = 0;
	struct tm tm = {0};
	const char *end = strptime(text_of(results, "started"), "%Y-%m-%dT%H:%M:%S", &tm);

	path_number(run, "started_s", &after);
	return end ? (double)timegm(&tm) + after : after;
}

static json_t *time_json(double seconds)
{
	time_t whole = (time_t)seconds;
	char text[64];
	struct tm tm;

	gmtime_r(&whole, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	return json_sprintf("%s.%06uZ", text, (unsigned)((seconds - (double)whole) * 1e6));
}

struct flent_run {
	const json_t *results, *run, *system, *workload;
	const struct flent_test *test;
	double interval, t0;
	double duration; /* the last interval may be a short one */
	size_t points;	 /* of ours */
	size_t step;	 /* of ours in one of flent's, which are alike for all series */
};

/* Since the beginning, of n intervals' middle. */
static double middle_of(const struct flent_run *f, size_t from, size_t n)
{
	return ((double)from * f->interval + fmin((double)(from + n) * f->interval, f->duration)) /
	       2;
}

/* Of an interval: 1, or less of a short one. */
static double share_of(const struct flent_run *f, size_t i)
{
	double left = (f->duration - (double)i * f->interval) / f->interval;

	return left < 1 - 1e-6 ? fmax(left, 0) : 1;
}

/* The mean of some values, without those that are null; NULL: all are. For json_decref. */
static json_t *mean_json(const struct flent_run *f, const json_t *values, size_t from, size_t n,
			 double scale)
{
	double sum = 0, known = 0;

	for (size_t i = from; i < from + n; i++) {
		const json_t *value = json_array_get(values, i);

		sum += json_number_value(value) * share_of(f, i);
		known += json_is_number(value) ? share_of(f, i) : 0;
	}
	return known > 0 ? json_real(sum / known * scale) : NULL;
}

/* Means of n values each, of which those that are null are left out; with the middle's time. */
static json_t *raw_json(const struct flent_run *f, const json_t *values, size_t n, double scale)
{
	json_t *raw = json_array();

	for (size_t i = 0; i < f->points; i += n) {
		size_t size = i + n < f->points ? n : f->points - i;
		json_t *mean = mean_json(f, values, i, size, scale);

		if (mean)
			json_array_append_new(raw, json_pack("{s:f, s:o}", "t",
							     f->t0 + middle_of(f, i, size), "val",
							     mean));
	}
	return raw;
}

/*
 * False: it has no value at all. Throughput in the short intervals that probes are wanted in would
 * be a series of bursts and gaps.
 */
static bool series_put(const struct flent_run *f, const struct flent_series *s, json_t *out)
{
	const json_t *values = json_object_get(json_object_get(f->run, "series"), s->ours);
	json_t *raw = raw_json(f, values, s->scale == MBIT ? f->step : 1, s->scale);
	json_t *results, *meta;

	if (!json_array_size(raw)) {
		json_decref(raw);
		return false;
	}
	results = json_array();
	for (size_t i = 0; i < f->points; i += f->step) {
		size_t size = i + f->step < f->points ? f->step : f->points - i;
		json_t *mean = mean_json(f, values, i, size, s->scale);

		json_array_append_new(results, mean ? mean : json_null());
	}
	json_object_set_new(json_object_get(out, "results"), s->theirs, results);
	json_object_set_new(json_object_get(out, "raw_values"), s->theirs, raw);
	meta = json_object_get(json_object_get(out, "metadata"), "SERIES_META");
	json_object_set_new(meta, s->theirs,
			    json_pack("{s:s}", "UNITS", s->scale == MBIT ? "Mbits/s" : "ms"));
	return true;
}

/* The longest, which all others have to be as long as. */
static size_t points_of(const json_t *series, const struct flent_test *test)
{
	size_t n = 0;

	for (const struct flent_series *s = test->series; s->ours; s++) {
		size_t size = json_array_size(json_object_get(series, s->ours));

		n = size > n ? size : n;
	}
	return n;
}

static json_t *metadata_json(const struct flent_run *f)
{
	const json_t *kernel = path_get(f->results, "environment.kernel.release");
	double length = fmin(f->interval * (double)f->points, f->duration);
	json_t *o = json_pack(
		"{s:s, s:o, s:o, s:o, s:s, s:[s], s:s, s:f, s:f, s:f, s:{}, s:{}, s:i, s:s, s:s}",
		"NAME", f->test->name, "TITLE",
		json_sprintf("%s, %s", system_name(f->system), workload_name(f->workload)), "TIME",
		time_json(f->t0), "T0", time_json(f->t0), "HOST", "server", "HOSTS", "server",
		"LOCAL_HOST", "client", "LENGTH", length, "TOTAL_LENGTH", length, "STEP_SIZE",
		f->interval * (double)f->step, "TEST_PARAMETERS", "SERIES_META", "IP_VERSION", 4,
		"BATCH_NAME", text_of(f->results, "name"), "NAPIER_VERSION",
		text_of(f->results, "napier"));

	json_object_set_new(
		o, "NOTE",
		json_sprintf("napier bench %s: system %s, workload %s, repeat %lld; values "
			     "are of %g s",
			     text_of(f->results, "name"), text_of(f->run, "system"),
			     text_of(f->run, "workload"),
			     (long long)json_integer_value(json_object_get(f->run, "repeat")) + 1,
			     f->interval));
	json_object_set_new(o, "KERNEL_NAME", json_string("Linux"));
	if (json_is_string(kernel))
		json_object_set(o, "KERNEL_RELEASE", (json_t *)kernel);
	return o;
}

/* For json_decref; NULL: nothing in it for flent. */
static json_t *flent_json(struct flent_run *f)
{
	const json_t *series = json_object_get(f->run, "series");
	bool some = false;
	json_t *o, *x;

	f->t0 = time_of(f->results, f->run);
	f->points = points_of(series, f->test);
	if (!f->points || !path_number(series, "interval_s", &f->interval) || f->interval <= 0)
		return NULL;
	if (!path_number(f->run, "duration_s", &f->duration) || f->duration <= 0)
		f->duration = INFINITY;
	f->step = f->interval < STEP ? (size_t)ceil(STEP / f->interval - 1e-9) : 1;
	x = json_array();
	for (size_t i = 0; i < f->points; i += f->step) {
		size_t size = i + f->step < f->points ? f->step : f->points - i;

		json_array_append_new(x, json_real(middle_of(f, i, size)));
	}
	o = json_pack("{s:i, s:o, s:o, s:{}, s:{}}", "version", FORMAT_VERSION, "metadata",
		      metadata_json(f), "x_values", x, "results", "raw_values");
	for (const struct flent_series *s = f->test->series; s->ours; s++)
		if (json_array_size(json_object_get(series, s->ours)) == f->points)
			some |= series_put(f, s, o);
	if (some)
		return o;
	json_decref(o);
	return NULL;
}

/* *out is for free. */
static int gzip(const char *text, size_t size, void **out, size_t *out_size)
{
	enum { GZIP = 16 };
	z_stream z = {0};

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	*out_size = deflateBound(&z, size);
	*out = malloc(*out_size);
	if (*out) {
		z.next_in = (const Bytef *)text;
		z.avail_in = (uInt)size;
		z.next_out = *out;
		z.avail_out = (uInt)*out_size;
		/* With room for all of it that is one step. */
		if (deflate(&z, Z_FINISH) != Z_STREAM_END) {
			free(*out);
			*out = NULL;
		}
		*out_size = z.total_out;
	}
	deflateEnd(&z);
	return *out ? 0 : -ENOMEM;
}

static int flent_write(const json_t *o, const char *path, struct error *err)
{
	char *text = json_dumps(o, JSON_COMPACT);
	void *data = NULL;
	size_t size;
	int rc = text ? gzip(text, strlen(text), &data, &size) : -ENOMEM;

	free(text);
	if (rc)
		return error_set(err, rc, "%s: no memory", path);
	rc = file_write(path, data, size, err);
	free(data);
	return rc;
}

/* Keys may have characters that a shell takes for others. */
static void name_make(const json_t *run, char name[NAME_MAX_HERE])
{
	snprintf(name, NAME_MAX_HERE, "%.80s-%.80s-%lld", text_of(run, "system"),
		 text_of(run, "workload"),
		 (long long)json_integer_value(json_object_get(run, "repeat")) + 1);
	for (char *at = name; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_",
			    *at))
			*at = '_';
}

static const json_t *by_key(const json_t *array, const char *key)
{
	const json_t *o;
	size_t i;

	json_array_foreach(array, i, o)
	{
		if (!strcmp(text_of(o, "key"), key))
			return o;
	}
	return NULL;
}

static int run_write(const json_t *results, const json_t *run, const char *directory,
		     unsigned *written, struct error *err)
{
	struct flent_run f = {
		.results = results,
		.run = run,
		.system = by_key(json_object_get(results, "systems"), text_of(run, "system")),
		.workload = by_key(json_object_get(results, "workloads"), text_of(run, "workload")),
	};
	char name[NAME_MAX_HERE], path[PATH_MAX];
	json_t *o = NULL;
	int rc = 0;

	f.test = f.workload ? test_of(f.workload) : NULL;
	if (run_valid(run) && f.test && f.system)
		o = flent_json(&f);
	if (!o)
		return 0;
	if (!(*written)++ && mkdir(directory, 0777) && errno != EEXIST)
		rc = error_set(err, -errno, "%s: %s", directory, strerror(errno));
	name_make(run, name);
	if (!rc &&
	    (size_t)snprintf(path, sizeof(path), "%s/%s.flent.gz", directory, name) >= sizeof(path))
		rc = error_set(err, -ENAMETOOLONG, "%s: too long a path", directory);
	if (!rc)
		rc = flent_write(o, path, err);
	json_decref(o);
	return rc;
}

int report_flent(const json_t *results, const char *directory, struct error *err)
{
	const json_t *run;
	unsigned written = 0;
	size_t i;

	json_array_foreach(json_object_get(results, "runs"), i, run)
	{
		int rc = run_write(results, run, directory, &written, err);

		if (rc)
			return rc;
	}
	return written ? 0
		       : error_set(err, -EOPNOTSUPP,
				   "nothing in these results that flent has a "
				   "place for");
}

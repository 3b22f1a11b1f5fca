/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/measure/latency.h"
#include "lab/report/results.h"

enum { VALUES_MAX = 64, KEY_MAX = 512 };

const char *text_of(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text ? text : "";
}

const char *results_build(const json_t *results)
{
	const char *build = json_string_value(path_get(results, "environment.versions.build"));

	return build ? build : "unknown";
}

static const json_t *element_find(const json_t *array, const char *name, size_t length)
{
	const json_t *element;
	size_t i;

	json_array_foreach(array, i, element)
	{
		const char *of = text_of(element, "name");

		if (!*of)
			of = text_of(element, "key");
		if (strlen(of) == length && !memcmp(of, name, length))
			return element;
	}
	return NULL;
}

static const json_t *member_find(const json_t *o, const char *name, size_t length)
{
	return json_is_array(o) ? element_find(o, name, length) : json_object_getn(o, name, length);
}

/* Keys have dots in them ("p99.9"), so the longest that is there is taken. */
const json_t *path_get(const json_t *o, const char *path)
{
	size_t length = strlen(path);

	if (!length)
		return json_is_null(o) ? NULL : o;
	while (o && length) {
		const json_t *member = member_find(o, path, length);

		if (member && path[length])
			member = path_get(member, path + length + 1);
		if (member)
			return json_is_null(member) ? NULL : member;
		do
			length--;
		while (length && path[length] != '.');
	}
	return NULL;
}

bool path_number(const json_t *o, const char *path, double *out)
{
	const json_t *value = path_get(o, path);

	if (!json_is_number(value) || !isfinite(json_number_value(value)))
		return false;
	*out = json_number_value(value);
	return true;
}

bool run_valid(const json_t *run)
{
	const json_t *error = json_object_get(run, "error");

	return json_is_true(json_object_get(run, "valid")) && (!error || json_is_null(error));
}

bool run_wall(const json_t *run, double *out)
{
	return (path_number(run, "cpu.wall_s", out) || path_number(run, "duration_s", out)) &&
	       *out > 0;
}

/* They have to differ by more than both. */
#define CORES_SHARE 0.1
#define CORES_LEAST 0.1

bool cores_differ(double a, double b)
{
	double difference = fabs(a - b);

	return difference > CORES_LEAST && difference > CORES_SHARE * fmax(a, b);
}

static const char *key_of(char key[KEY_MAX], const char *system, const char *workload,
			  const char *metric)
{
	snprintf(key, KEY_MAX, "%s\x1f%s\x1f%s", system, workload, metric);
	return key;
}

/* By system, workload and metric; the first of two alike. */
static json_t *index_make(const json_t *array)
{
	json_t *index = json_object();
	const json_t *o;
	char key[KEY_MAX];
	size_t i;

	json_array_foreach(array, i, o)
	{
		key_of(key, text_of(o, "system"), text_of(o, "workload"), text_of(o, "metric"));
		if (!json_object_get(index, key))
			json_object_set(index, key, (json_t *)o);
	}
	return index;
}

static json_t *runs_index(const json_t *runs)
{
	json_t *index = json_object();
	const json_t *run;
	char key[KEY_MAX];
	size_t i;

	json_array_foreach(runs, i, run)
	{
		json_t *of;

		key_of(key, text_of(run, "system"), text_of(run, "workload"), "");
		of = json_object_get(index, key);
		if (!of) {
			json_object_set_new(index, key, json_array());
			of = json_object_get(index, key);
		}
		json_array_append(of, (json_t *)run);
	}
	return index;
}

const json_t *results_runs(const struct results *results, const char *system, const char *workload)
{
	char key[KEY_MAX];

	return json_object_get(results->runs, key_of(key, system, workload, ""));
}

const json_t *results_comparison(const struct results *results, const char *system,
				 const char *workload, const char *path)
{
	char key[KEY_MAX];

	return json_object_get(results->comparisons, key_of(key, system, workload, path));
}

const json_t *results_summary(const struct results *results, const char *system,
			      const char *workload, const char *path)
{
	char key[KEY_MAX];

	return json_object_get(results->summary, key_of(key, system, workload, path));
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Without a summary of it: the median, and the ends. */
static bool metric_measure(const json_t *runs, const char *path, struct metric *out)
{
	double value[VALUES_MAX];
	const json_t *run;
	unsigned n = 0;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		if (n < VALUES_MAX && run_valid(run) && path_number(run, path, &value[n]))
			n++;
	}
	if (!n)
		return false;
	qsort(value, n, sizeof(*value), ascending);
	*out = (struct metric){
		.median = (value[(n - 1) / 2] + value[n / 2]) / 2,
		.low = value[0],
		.high = value[n - 1],
		.n = n,
	};
	return true;
}

static bool is_longest(const char *path)
{
	size_t n = strlen(path);

	return n > 4 && !strcmp(path + n - 4, ".max") && strstr(path, "latency.");
}

/* Else it could be less than a percentile of all repeats beside it. */
static bool longest_measure(const json_t *runs, const char *path, struct metric *out)
{
	if (!metric_measure(runs, path, out))
		return false;
	out->median = out->low = out->high;
	out->pooled = true;
	return true;
}

bool results_metric(const struct results *results, const char *system, const char *workload,
		    const char *path, struct metric *out)
{
	const json_t *o = results_summary(results, system, workload, path);
	double n = 0;

	memset(out, 0, sizeof(*out));
	if (is_longest(path))
		return longest_measure(results_runs(results, system, workload), path, out);
	if (!path_number(o, "median", &out->median))
		return metric_measure(results_runs(results, system, workload), path, out);
	path_number(o, "n", &n);
	out->n = n > 0 ? (unsigned)n : 1;
	out->pooled = json_is_true(json_object_get(o, "pooled"));
	out->lowered = !strcmp(text_of(o, "better"), "lower");
	if (!path_number(o, "low", &out->low) || !path_number(o, "high", &out->high)) {
		out->low = out->high = out->median;
		out->pooled = true;
	}
	return true;
}

const json_t *results_typical(const struct results *results, const char *system,
			      const struct group *group)
{
	const json_t *runs = results_runs(results, system, text_of(group->workload, "key"));
	const json_t *run, *best = NULL;
	struct metric rate;
	double value, least = INFINITY;
	size_t i;

	if (!*group->rate || !metric_measure(runs, group->rate, &rate))
		rate.n = 0;
	json_array_foreach(runs, i, run)
	{
		double distance = 0;

		if (!run_valid(run))
			continue;
		if (rate.n && path_number(run, group->rate, &value))
			distance = fabs(value - rate.median);
		if (distance < least) {
			least = distance;
			best = run;
		}
	}
	return best;
}

bool results_latency(const struct results *results, const char *system, const char *workload,
		     const char *path, struct histogram *out)
{
	const json_t *runs = results_runs(results, system, workload), *run;
	struct histogram *one = malloc(sizeof(*one));
	size_t i;

	histogram_reset(out);
	json_array_foreach(runs, i, run)
	{
		if (one && run_valid(run) && !latency_read(path_get(run, path), one))
			histogram_merge(out, one);
	}
	free(one);
	return out->n;
}

static void losses_count(const json_t *runs, struct row *row)
{
	const json_t *run;
	double value;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		const json_t *error = json_object_get(run, "error");

		if (error && !json_is_null(error))
			row->failed++;
		else if (!run_valid(run))
			row->invalid++;
		else {
			row->valid++;
			if (path_number(run, "counts.lost", &value)) {
				row->counted = true;
				row->lost += value;
			}
			if (path_number(run, "counts.started", &value) ||
			    path_number(run, "counts.sent", &value))
				row->of += value;
		}
	}
}

/* napier's own where it is the device, else the kernel's: whose poller is measured. */
static bool polling_metric(const struct results *results, const json_t *system,
			   const char *workload, const char *what, struct metric *out)
{
	static const char *const from[] = {"cpu.napier.", "cpu.", "cpu.kernel."};
	bool napier = !strcmp(text_of(system, "dut"), "napier");
	char path[RESULTS_PATH_MAX];

	for (unsigned i = napier ? 0 : 1; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", from[i], what);
		if (results_metric(results, text_of(system, "key"), workload, path, out))
			return true;
	}
	return false;
}

void results_row(const struct results *results, const struct group *group, const json_t *system,
		 struct row *out)
{
	const char *workload = text_of(group->workload, "key"), *key = text_of(system, "key");
	const struct {
		const char *path;
		struct metric *metric;
	} latencies[] = {{"p50", &out->p50},
			 {"p90", &out->p90},
			 {"p99", &out->p99},
			 {"p99.9", &out->p999},
			 {"max", &out->max}};
	char path[RESULTS_PATH_MAX + 16];

	memset(out, 0, sizeof(*out));
	losses_count(results_runs(results, key, workload), out);
	if (*group->rate)
		results_metric(results, key, workload, group->rate, &out->rate);
	for (unsigned i = 0; *group->latency && i < sizeof(latencies) / sizeof(*latencies); i++) {
		snprintf(path, sizeof(path), "%s.%s", group->latency, latencies[i].path);
		results_metric(results, key, workload, path, latencies[i].metric);
	}
	results_metric(results, key, workload, "cpu.cores_used", &out->cores);
	results_metric(results, key, workload, "cpu.ns_per_operation.total", &out->cost);
	polling_metric(results, system, workload, "packets_per_poll", &out->polled);
	polling_metric(results, system, workload, "gro_ratio", &out->gro);
}

/* The rate of a group is the first of these that a valid run of it has. */
static void rate_choose(const json_t *run, struct group *group)
{
	static const char *const paths[] = {
		"rates.transactions",	    "rates.received_mbit", "rates.down_mbit",
		"rates.received_datagrams", "rates.sent_mbit",
	};
	double value;

	for (unsigned i = 0; !*group->rate && i < sizeof(paths) / sizeof(*paths); i++) {
		if (path_number(run, paths[i], &value))
			snprintf(group->rate, sizeof(group->rate), "%s", paths[i]);
	}
}

/* The response time where there is one: it knows what waited before it was sent. */
static void latency_choose(const json_t *run, struct group *group)
{
	static const char *const names[] = {"response", "service", "icmp"};
	const json_t *latencies = json_object_get(run, "latency"), *latency;
	const char *name = NULL, *key;
	double n;

	for (unsigned i = 0; !name && i < sizeof(names) / sizeof(*names); i++) {
		if (path_number(json_object_get(latencies, names[i]), "n", &n) && n > 0)
			name = names[i];
	}
	json_object_foreach((json_t *)latencies, key, latency)
	{
		if (!name && path_number(latency, "n", &n) && n > 0)
			name = key;
	}
	if (name && !*group->latency)
		snprintf(group->latency, sizeof(group->latency), "latency.%.*s", 100, name);
}

static void group_choose(const struct results *results, struct group *group)
{
	const char *workload = text_of(group->workload, "key");

	for (unsigned s = 0; s < group->systems; s++) {
		const json_t *run;
		size_t i;

		json_array_foreach(
			results_runs(results, text_of(group->system[s], "key"), workload), i, run)
		{
			if (!run_valid(run))
				continue;
			rate_choose(run, group);
			latency_choose(run, group);
		}
		if (!group->base && json_is_true(json_object_get(group->system[s], "base")))
			group->base = group->system[s];
	}
	if (!group->base && group->systems)
		group->base = group->system[0];
}

static struct group *group_find(struct results *results, const json_t *workload,
				const char *scenario)
{
	struct group *group;

	for (unsigned i = 0; i < results->groups; i++) {
		group = &results->group[i];
		if (group->workload == workload && !strcmp(group->scenario, scenario))
			return group;
	}
	group = realloc(results->group, (results->groups + 1) * sizeof(*group));
	if (!group)
		return NULL;
	results->group = group;
	group += results->groups++;
	memset(group, 0, sizeof(*group));
	group->workload = workload;
	group->scenario = scenario;
	return group;
}

static int groups_make(struct results *results)
{
	const json_t *workload, *system;
	size_t w, s;

	json_array_foreach(json_object_get(results->json, "workloads"), w, workload)
	{
		json_array_foreach(json_object_get(results->json, "systems"), s, system)
		{
			struct group *group;

			if (!results_runs(results, text_of(system, "key"),
					  text_of(workload, "key")))
				continue;
			group = group_find(results, workload, text_of(system, "scenario"));
			if (!group)
				return -ENOMEM;
			if (group->systems < RESULTS_SYSTEMS_MAX)
				group->system[group->systems++] = system;
		}
	}
	for (unsigned i = 0; i < results->groups; i++)
		group_choose(results, &results->group[i]);
	return 0;
}

int results_open(const json_t *json, struct results *out)
{
	int rc;

	*out = (struct results){
		.json = json,
		.summary = index_make(json_object_get(json, "summary")),
		.comparisons = index_make(json_object_get(json, "comparisons")),
		.runs = runs_index(json_object_get(json, "runs")),
	};
	rc = out->summary && out->comparisons && out->runs ? groups_make(out) : -ENOMEM;
	if (rc)
		results_close(out);
	return rc;
}

void results_close(struct results *results)
{
	json_decref(results->summary);
	json_decref(results->comparisons);
	json_decref(results->runs);
	free(results->group);
	*results = (struct results){0};
}

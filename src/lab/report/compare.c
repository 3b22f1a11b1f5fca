/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two results: what both measured, metric by metric, and all that was not alike when they did. They
 * were not measured in turn, so that whatever changed in between is in the difference as well.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/report.h"
#include "lab/report/summary.h"
#include "lab/report/words.h"

struct comparing {
	const json_t *a, *b;
	json_t *warnings, *metrics, *unequal, *only_a, *only_b, *environment;
};

__attribute__((format(printf, 2, 3))) static void warn(struct comparing *c, const char *format, ...)
{
	char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) >= 0)
		json_array_append_new(c->warnings, json_string(text));
	va_end(arguments);
	free(text);
}

static const json_t *by_key(const json_t *results, const char *array, const char *key)
{
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(results, array), i, o)
	{
		if (!strcmp(text_of(o, "key"), key))
			return o;
	}
	return NULL;
}

static bool alike(const json_t *a, const json_t *b)
{
	if (!a || !b)
		return (!a || json_is_null(a)) && (!b || json_is_null(b));
	return json_equal(a, b);
}

static void text_short(const json_t *value, char text[RESULTS_PATH_MAX])
{
	char *dumped = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	snprintf(text, RESULTS_PATH_MAX, "%.60s", dumped ? dumped : "nothing");
	free(dumped);
}

/* What makes two experiments different ones, though they have one name. */
static void heads_compare(struct comparing *c)
{
	static const struct {
		const char *key, *said;
	} keys[] = {
		{"name", "They are of different specifications"},
		{"specification", "The specification's text is not the same"},
		{"set", "Other values were --set"},
		{"length", "Their lengths differ"},
		{"scaled", "They were made to fit the machine in different ways"},
		{"antagonists", "Other antagonists ran beside"},
		{"napier", "They were measured by different versions of napier"},
	};
	char a[RESULTS_PATH_MAX], b[RESULTS_PATH_MAX];

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const json_t *of_a = json_object_get(c->a, keys[i].key);
		const json_t *of_b = json_object_get(c->b, keys[i].key);

		if (alike(of_a, of_b))
			continue;
		text_short(of_a, a);
		text_short(of_b, b);
		if (strcmp(keys[i].key, "specification") && strlen(a) < 50 && strlen(b) < 50)
			warn(c, "%s: A %s, B %s.", keys[i].said, a, b);
		else
			warn(c, "%s.", keys[i].said);
	}
	/* Of one version there are many. */
	if (alike(json_object_get(c->a, "napier"), json_object_get(c->b, "napier")) &&
	    strcmp(results_build(c->a), results_build(c->b)))
		warn(c, "They were measured by different builds of napier: A %.60s, B %.60s.",
		     results_build(c->a), results_build(c->b));
	if (json_is_true(json_object_get(c->a, "partial")))
		warn(c, "A was stopped before its end.");
	if (json_is_true(json_object_get(c->b, "partial")))
		warn(c, "B was stopped before its end.");
}

/* What decides most of a figure, of all that an environment has. */
static void machines_compare(struct comparing *c, const char *environment, const char *whose)
{
	static const struct {
		const char *path, *said;
	} keys[] = {
		{"kernel.release", "Another kernel"},
		{"cpu.model", "Another CPU"},
		{"cpu.online_n", "Another number of CPUs"},
		{"allowed", "Other CPUs that may be used"},
		{"hypervisor", "Another hypervisor"},
	};
	const json_t *a = json_object_get(c->a, environment);
	const json_t *b = json_object_get(c->b, environment);
	char text_a[RESULTS_PATH_MAX], text_b[RESULTS_PATH_MAX];

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const json_t *of_a = path_get(a, keys[i].path), *of_b = path_get(b, keys[i].path);

		if (alike(of_a, of_b))
			continue;
		text_short(of_a, text_a);
		text_short(of_b, text_b);
		warn(c, "%s%s: A %s, B %s.", keys[i].said, whose, text_a, text_b);
	}
}

/* Interfaces that were made for a run have its process's number in their names. */
static void topologies_compare(struct comparing *c)
{
	static const char *const keys[] = {"kind", "made", "remote", "text"};
	const json_t *a = json_object_get(c->a, "topology");
	const json_t *b = json_object_get(c->b, "topology");
	unsigned n = json_is_true(json_object_get(a, "made")) ? 3 : 4;

	for (unsigned i = 0; i < n; i++) {
		if (alike(json_object_get(a, keys[i]), json_object_get(b, keys[i])))
			continue;
		warn(c, "Client and server were connected differently.");
		return;
	}
}

/* Each key in which two objects differ. */
static void parameters_compare(struct comparing *c, const char *what, const char *of,
			       const json_t *a, const json_t *b)
{
	char text_a[RESULTS_PATH_MAX], text_b[RESULTS_PATH_MAX];
	const json_t *value;
	const char *key;

	json_object_foreach((json_t *)a, key, value)
	{
		const json_t *other = json_object_get(b, key);

		if (alike(value, other))
			continue;
		text_short(value, text_a);
		text_short(other, text_b);
		warn(c, "%s %s: %s is %s in A, and %s in B.", what, of, key, text_a, text_b);
	}
	json_object_foreach((json_t *)b, key, value)
	{
		if (json_object_get(a, key))
			continue;
		text_short(value, text_b);
		warn(c, "%s %s: %s is nothing in A, and %s in B.", what, of, key, text_b);
	}
}

static void workloads_compare(struct comparing *c)
{
	const json_t *workload, *other;
	size_t i;

	json_array_foreach(json_object_get(c->a, "workloads"), i, workload)
	{
		other = by_key(c->b, "workloads", text_of(workload, "key"));
		if (other)
			parameters_compare(c, "Workload", workload_name(workload),
					   json_object_get(workload, "parameters"),
					   json_object_get(other, "parameters"));
	}
}

static void systems_compare(struct comparing *c)
{
	static const char *const keys[] = {"dut", "handler", "poller", "scenario"};
	const json_t *system, *other;
	size_t i;

	json_array_foreach(json_object_get(c->a, "systems"), i, system)
	{
		const char *name = system_name(system);

		other = by_key(c->b, "systems", text_of(system, "key"));
		if (!other)
			continue;
		for (unsigned k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
			if (strcmp(text_of(system, keys[k]), text_of(other, keys[k])))
				warn(c, "System %s: %s is \"%s\" in A, and \"%s\" in B.", name,
				     keys[k], text_of(system, keys[k]), text_of(other, keys[k]));
		}
		parameters_compare(c, "Setting of", name, json_object_get(system, "settings"),
				   json_object_get(other, "settings"));
		if (!alike(json_object_get(system, "placement"),
			   json_object_get(other, "placement")))
			warn(c, "System %s: its threads and interrupts were placed differently.",
			     name);
	}
}

/* What differs between any two moments says nothing. */
static bool is_momentary(const char *key)
{
	static const char *const keys[] = {"time",	"uptime_s",	   "load",
					   "processes", "available_bytes", "mhz"};

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!strcmp(key, keys[i]))
			return true;
	}
	return false;
}

static void environment_compare(struct comparing *c, const char *path, const json_t *a,
				const json_t *b)
{
	char inside[RESULTS_PATH_MAX];
	const json_t *value;
	const char *key;

	if (json_is_object(a) && json_is_object(b)) {
		json_object_foreach((json_t *)a, key, value)
		{
			if (is_momentary(key))
				continue;
			snprintf(inside, sizeof(inside), "%.100s%s%.50s", path, *path ? "." : "",
				 key);
			environment_compare(c, inside, value, json_object_get(b, key));
		}
		json_object_foreach((json_t *)b, key, value)
		{
			if (is_momentary(key) || json_object_get(a, key))
				continue;
			snprintf(inside, sizeof(inside), "%.100s%s%.50s", path, *path ? "." : "",
				 key);
			environment_compare(c, inside, NULL, value);
		}
		return;
	}
	if (!alike(a, b))
		json_array_append_new(c->environment,
				      json_pack("{s:s, s:O?, s:O?}", "key", path, "a", a, "b", b));
}

static unsigned values_read(const json_t *entry, double value[INTERVAL_VALUES_MAX])
{
	const json_t *each;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(entry, "values"), i, each)
	{
		if (n < INTERVAL_VALUES_MAX && json_is_number(each))
			value[n++] = json_number_value(each);
	}
	return n;
}

static json_t *side_json(const json_t *entry)
{
	static const char *const keys[] = {"median", "low", "high", "n"};
	json_t *o = json_object();

	for (unsigned i = 0; i < 4; i++) {
		const json_t *value = json_object_get(entry, keys[i]);

		json_object_set(o, keys[i], value ? (json_t *)value : json_null());
	}
	return o;
}

/* As two sets that have nothing to do with each other: they were not measured in turn. */
static const char *verdict_find(const json_t *a, const json_t *b, struct interval *ratio)
{
	double of_a[INTERVAL_VALUES_MAX], of_b[INTERVAL_VALUES_MAX];
	unsigned n_a = values_read(a, of_a), n_b = values_read(b, of_b);
	bool pooled = json_is_true(json_object_get(a, "pooled")) ||
		      json_is_true(json_object_get(b, "pooled"));
	bool lower = !strcmp(text_of(a, "better"), "lower");
	bool known = !pooled && interval_ratio_apart(of_b, of_a, n_b, n_a, ratio);
	int side;

	if (!known)
		ratio->n = 0;
	if (pooled || n_a < 2 || n_b < 2)
		return verdict_names[VERDICT_UNKNOWN];
	if (!known) {
		side = interval_side(of_b, of_a, n_b, n_a);
		return verdict_names[!side		   ? VERDICT_NONE
				     : (side < 0) == lower ? VERDICT_BETTER
							   : VERDICT_WORSE];
	}
	if ((ratio->low <= 1 && ratio->high >= 1) || !interval_apart(of_a, of_b, n_a, n_b))
		return verdict_names[VERDICT_NONE];
	return verdict_names[(ratio->median < 1) == lower ? VERDICT_BETTER : VERDICT_WORSE];
}

static void metric_compare(struct comparing *c, const json_t *a, const json_t *b)
{
	struct interval ratio;
	const char *verdict = verdict_find(a, b, &ratio);
	double of_a = json_number_value(json_object_get(a, "median"));
	double of_b = json_number_value(json_object_get(b, "median"));
	bool interval = ratio.n > 1;

	if (!ratio.n)
		ratio.median = of_a != 0 ? of_b / of_a : 0;
	json_array_append_new(
		c->metrics,
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "system",
			  text_of(a, "system"), "workload", text_of(a, "workload"), "metric",
			  text_of(a, "metric"), "unit", text_of(a, "unit"), "better",
			  text_of(a, "better"), "a", side_json(a), "b", side_json(b), "ratio",
			  of_a != 0 ? json_real(ratio.median) : json_null(), "low",
			  interval ? json_real(ratio.low) : json_null(), "high",
			  interval ? json_real(ratio.high) : json_null(), "verdict", verdict));
}

/* Their ratios say what more cores, or fewer, give as well. */
static void cores_compare(struct comparing *c, const json_t *a, const json_t *b)
{
	double of_a, of_b;

	if (strcmp(text_of(a, "metric"), "cpu.cores_used") || !path_number(a, "median", &of_a) ||
	    !path_number(b, "median", &of_b) || !cores_differ(of_a, of_b))
		return;
	json_array_append_new(c->unequal,
			      json_pack("{s:s, s:s, s:f, s:f}", "system", text_of(a, "system"),
					"workload", text_of(a, "workload"), "a", of_a, "b", of_b));
}

static bool has_median(const json_t *entry)
{
	double median;

	return path_number(entry, "median", &median);
}

static void metrics_compare(struct comparing *c, const struct results *b)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(json_object_get(c->a, "summary"), i, entry)
	{
		const json_t *other =
			results_summary(b, text_of(entry, "system"), text_of(entry, "workload"),
					text_of(entry, "metric"));

		if (!has_median(entry) || !has_median(other))
			continue;
		metric_compare(c, entry, other);
		cores_compare(c, entry, other);
	}
}

/* Systems under workloads that only one of them has runs of. */
static void only_find(const struct results *has, const struct results *other, json_t *only)
{
	for (unsigned g = 0; g < has->groups; g++) {
		const struct group *group = &has->group[g];

		for (unsigned s = 0; s < group->systems; s++) {
			const char *system = text_of(group->system[s], "key");
			const char *workload = text_of(group->workload, "key");

			if (!results_runs(other, system, workload))
				json_array_append_new(only,
						      json_pack("{s:s, s:s}", "system", system,
								"workload", workload));
		}
	}
}

static json_t *names_make(const struct comparing *c, const char *array)
{
	json_t *names = json_object();
	const json_t *o;
	size_t i;

	json_array_foreach(json_object_get(c->a, array), i, o)
		json_object_set_new(names, text_of(o, "key"), json_string(system_name(o)));
	return names;
}

static json_t *side_head(const json_t *results)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", text_of(results, "name"), "started",
			 text_of(results, "started"), "napier", text_of(results, "napier"), "build",
			 results_build(results), "length", text_of(results, "length"));
}

/* What is most likely the reason is said as well. */
static int nothing_say(const struct comparing *c, struct error *err)
{
	const char *a = text_of(c->a, "name"), *b = text_of(c->b, "name");
	bool other = strcmp(a, b);

	return error_set(err, -ENODATA,
			 "nothing is in both: they have no system under a workload with a valid "
			 "run in common%s%.60s%s%.60s%s",
			 other ? " (A is of the specification \"" : "", other ? a : "",
			 other ? "\", B of \"" : "", other ? b : "", other ? "\")" : "");
}

int report_compare(const json_t *a, const json_t *b, json_t **out, struct error *err)
{
	struct comparing c = {
		.a = a,
		.b = b,
		.warnings = json_array(),
		.metrics = json_array(),
		.unequal = json_array(),
		.only_a = json_array(),
		.only_b = json_array(),
		.environment = json_array(),
	};
	struct results of_a, of_b;
	int rc = results_open(a, &of_a);

	if (!rc) {
		rc = results_open(b, &of_b);
		if (rc)
			results_close(&of_a);
	}
	if (!rc) {
		heads_compare(&c);
		machines_compare(&c, "environment", "");
		machines_compare(&c, "peer_environment", " of the server's host");
		topologies_compare(&c);
		workloads_compare(&c);
		systems_compare(&c);
		environment_compare(&c, "", json_object_get(a, "environment"),
				    json_object_get(b, "environment"));
		environment_compare(&c, "peer", json_object_get(a, "peer_environment"),
				    json_object_get(b, "peer_environment"));
		metrics_compare(&c, &of_b);
		only_find(&of_a, &of_b, c.only_a);
		only_find(&of_b, &of_a, c.only_b);
		results_close(&of_a);
		results_close(&of_b);
		if (!json_array_size(c.metrics))
			rc = nothing_say(&c, err);
	} else {
		error_set(err, rc, "no memory for a comparison");
	}
	if (!rc)
		*out = json_pack("{s:o, s:o, s:o, s:o, s:O, s:O, s:O, s:O, s:O, s:O}", "a",
				 side_head(a), "b", side_head(b), "systems",
				 names_make(&c, "systems"), "workloads",
				 names_make(&c, "workloads"), "warnings", c.warnings, "metrics",
				 c.metrics, "unequal", c.unequal, "only_a", c.only_a, "only_b",
				 c.only_b, "environment", c.environment);
	json_decref(c.warnings);
	json_decref(c.metrics);
	json_decref(c.unequal);
	json_decref(c.only_a);
	json_decref(c.only_b);
	json_decref(c.environment);
	return rc;
}

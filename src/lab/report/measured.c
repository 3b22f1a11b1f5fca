/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/measure/latency.h"
#include "lab/report/measured.h"

/* What of a value's kind is the same for all: its unit, and which way is better. */
struct kind {
	const char *unit;
	bool higher, percentile, compared;
};

static struct measured_metric *metric_have(struct measured *measured, const char *path,
					   const struct kind *kind)
{
	struct measured_metric *m;

	for (unsigned i = 0; i < measured->metrics; i++)
		if (!strcmp(measured->metric[i].path, path))
			return &measured->metric[i];
	if (measured->metrics == measured->room) {
		unsigned room = measured->room ? 2 * measured->room : 64;

		m = realloc(measured->metric, room * sizeof(*m));
		if (!m) {
			measured->failed = true;
			return NULL;
		}
		measured->metric = m;
		measured->room = room;
	}
	m = &measured->metric[measured->metrics++];
	*m = (struct measured_metric){
		.unit = kind->unit,
		.higher = kind->higher,
		.percentile = kind->percentile,
		.compared = kind->compared,
	};
	snprintf(m->path, sizeof(m->path), "%s", path);
	return m;
}

/* prefix is "" or ends in a dot. */
static void value_add(struct measured *measured, const json_t *run, const char *prefix,
		      const char *key, const json_t *value, const struct kind *kind)
{
	char path[MEASURED_PATH_MAX];
	struct measured_metric *m;

	if ((!json_is_number(value) && !json_is_null(value)) ||
	    snprintf(path, sizeof(path), "%s%s", prefix, key) >= (int)sizeof(path))
		return;
	m = metric_have(measured, path, kind);
	if (!m)
		return;
	if (json_is_null(value) || !isfinite(json_number_value(value))) {
		m->missing++;
	} else if (m->n < INTERVAL_VALUES_MAX) {
		m->repeat[m->n] = json_integer_value(json_object_get(run, "repeat"));
		m->value[m->n++] = json_number_value(value);
	}
}

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length >= n && !strcmp(text + length - n, end);
}

static void rates_add(struct measured *measured, const json_t *run, const char *prefix,
		      const json_t *rates)
{
	const json_t *value;
	const char *key;

	json_object_foreach((json_t *)rates, key, value)
	{
		struct kind kind = {.unit = ends_in(key, "mbit") ? "Mbit/s" : "1/s",
				    .higher = true,
				    .compared = true};

		/* That is asked for, not measured. */
		if (strcmp(key, "offered"))
			value_add(measured, run, prefix, key, value, &kind);
	}
}

static void latency_add(struct measured *measured, const json_t *run, const char *prefix,
			const json_t *latency)
{
	static const struct kind percentile = {"ns", .percentile = true, .compared = true};
	static const struct kind mean = {"ns", .compared = true}, most = {"ns"};

	for (unsigned i = 0; i < LATENCY_PERCENTILES; i++) {
		const char *key = latency_percentiles[i].key;

		value_add(measured, run, prefix, key, json_object_get(latency, key), &percentile);
	}
	value_add(measured, run, prefix, "mean", json_object_get(latency, "mean"), &mean);
	value_add(measured, run, prefix, "max", json_object_get(latency, "max"), &most);
}

static void latencies_add(struct measured *measured, const json_t *run, const char *prefix,
			  const json_t *latencies)
{
	char below[MEASURED_PATH_MAX];
	const json_t *latency;
	const char *key;

	json_object_foreach((json_t *)latencies, key, latency)
	{
		if (snprintf(below, sizeof(below), "%s%s.", prefix, key) < (int)sizeof(below))
			latency_add(measured, run, below, latency);
	}
}

/* Of counts only what went wrong: the rest are rates, or say how long it was. */
static void counts_add(struct measured *measured, const json_t *run, const char *prefix,
		       const json_t *counts)
{
	static const char *const wrong[] = {"lost",	 "timeouts",   "retransmits", "reconnects",
					    "reordered", "duplicated", "late"};
	static const struct kind kind = {.unit = "", .compared = true};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		value_add(measured, run, prefix, wrong[i], json_object_get(counts, wrong[i]),
			  &kind);
}

static void parties_add(struct measured *measured, const json_t *run, const json_t *parties)
{
	static const struct {
		const char *key;
		struct kind kind;
	} keys[] = {
		{"total_s", {"s"}},	{"voluntary", {""}},  {"involuntary", {""}},
		{"wakeups", {""}},	{"migrations", {""}}, {"cycles", {"cycles"}},
		{"instructions", {""}},
	};
	char prefix[MEASURED_PATH_MAX];
	const json_t *party;
	const char *name;

	json_object_foreach((json_t *)parties, name, party)
	{
		if (snprintf(prefix, sizeof(prefix), "cpu.parties.%s.", name) >=
		    (int)sizeof(prefix))
			continue;
		for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++)
			value_add(measured, run, prefix, keys[i].key,
				  json_object_get(party, keys[i].key), &keys[i].kind);
	}
}

static void cpu_add(struct measured *measured, const json_t *run, const char *prefix,
		    const json_t *cpu)
{
	static const struct {
		const char *key;
		struct kind kind;
	} keys[] = {
		{"total_s", {"s", .compared = true}},
		{"cores_used", {"cores", .compared = true}},
		{"cores_busy", {"cores"}},
		{"cycles", {"cycles", .compared = true}},
		{"instructions", {"", .compared = true}},
	};
	static const struct kind each = {"ns", .compared = true};
	const json_t *value;
	const char *name;
	char below[64];

	for (unsigned i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		value_add(measured, run, prefix, keys[i].key, json_object_get(cpu, keys[i].key),
			  &keys[i].kind);
	snprintf(below, sizeof(below), "%sns_per_operation.", prefix);
	json_object_foreach((json_t *)json_object_get(cpu, "ns_per_operation"), name, value)
		value_add(measured, run, below, name, value, &each);
}

/* Packets per poll are no merit: they say how loaded it was. */
static void polls_add(struct measured *measured, const json_t *run, const char *who)
{
	static const struct kind kind = {"packets", .higher = true};
	const json_t *polls = json_object_get(json_object_get(run, "cpu"), who);
	char prefix[64];

	snprintf(prefix, sizeof(prefix), "cpu.%s.", who);
	value_add(measured, run, prefix, "packets_per_poll",
		  json_object_get(polls, "packets_per_poll"), &kind);
	value_add(measured, run, prefix, "gro_ratio", json_object_get(polls, "gro_ratio"), &kind);
}

/* A part of the whole, or the whole. */
static void part_add(struct measured *measured, const json_t *run, const char *prefix,
		     const json_t *part)
{
	char below[MEASURED_PATH_MAX];

	snprintf(below, sizeof(below), "%.64srates.", prefix);
	rates_add(measured, run, below, json_object_get(part, "rates"));
	snprintf(below, sizeof(below), "%.64slatency.", prefix);
	latencies_add(measured, run, below, json_object_get(part, "latency"));
	snprintf(below, sizeof(below), "%.64scounts.", prefix);
	counts_add(measured, run, below, json_object_get(part, "counts"));
}

void measured_add(struct measured *measured, const json_t *run)
{
	const json_t *step;
	size_t i;

	part_add(measured, run, "", run);
	json_array_foreach(json_object_get(run, "steps"), i, step)
	{
		const char *name = json_string_value(json_object_get(step, "name"));
		char prefix[64];

		if (name && snprintf(prefix, sizeof(prefix), "steps.%s.", name) < 64)
			part_add(measured, run, prefix, step);
	}
	cpu_add(measured, run, "cpu.", json_object_get(run, "cpu"));
	parties_add(measured, run, json_object_get(json_object_get(run, "cpu"), "parties"));
	polls_add(measured, run, "napier");
	polls_add(measured, run, "kernel");
	cpu_add(measured, run, "peer_cpu.", json_object_get(run, "peer_cpu"));
}

void measured_free(struct measured *measured)
{
	free(measured->metric);
	*measured = (struct measured){0};
}

const struct measured_metric *measured_find(const struct measured *measured, const char *path)
{
	for (unsigned i = 0; i < measured->metrics; i++)
		if (!strcmp(measured->metric[i].path, path))
			return &measured->metric[i];
	return NULL;
}

/* Of a percentile's path, "latency.response.p99.9", the latency's, and which it is. */
static const struct latency_percentile *percentile_split(const char *path,
							 char latency[MEASURED_PATH_MAX])
{
	for (unsigned i = LATENCY_PERCENTILES; i--;) {
		char end[16];

		snprintf(end, sizeof(end), ".%s", latency_percentiles[i].key);
		if (!ends_in(path, end))
			continue;
		snprintf(latency, MEASURED_PATH_MAX, "%.*s", (int)(strlen(path) - strlen(end)),
			 path);
		return &latency_percentiles[i];
	}
	return NULL;
}

bool measured_pooled(struct measured_pool *pool, const json_t *runs, const char *path, double *out)
{
	char latency[MEASURED_PATH_MAX];
	const struct latency_percentile *which = percentile_split(path, latency);
	const json_t *run;
	uint64_t value;
	size_t i;

	if (!which)
		return false;
	if (strcmp(pool->latency, latency)) {
		histogram_reset(&pool->all);
		json_array_foreach(runs, i, run)
		{
			if (!latency_read(path_get(run, latency), &pool->one))
				histogram_merge(&pool->all, &pool->one);
		}
		strcpy(pool->latency, latency);
	}
	if (!histogram_percentile(&pool->all, which->millionths, &value))
		return false;
	*out = (double)value;
	return true;
}

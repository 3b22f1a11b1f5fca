/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include <lab/report/summary.h>
#include <lab/report/words.h>

#include <cmd/bench_table.h>
#include <cmd/lines.h>
#include <cmd/table.h>

enum { NAME_MOST = 36, ENVIRONMENT_MOST = 24 };

/* What people ask for; all others are in the JSON. */
static bool metric_shown(const char *path)
{
	static const char *const latencies[] = {".p50", ".p99", ".p99.9"};
	const char *name;

	if (!strcmp(path, "cpu.cores_used") || !strcmp(path, "cpu.ns_per_operation.total"))
		return true;
	if (!strncmp(path, "rates.", 6))
		return strcmp(path, "rates.offered") != 0;
	if (strncmp(path, "latency.", 8))
		return false;
	name = strchr(path + 8, '.');
	for (unsigned i = 0; name && i < 3; i++) {
		if (!strcmp(name, latencies[i]))
			return true;
	}
	return false;
}

/* With its latency's name: results may have several. */
static const char *shown_name(const char *path, char text[WORDS_MAX])
{
	if (strncmp(path, "latency.", 8))
		return metric_name(path, text);
	snprintf(text, WORDS_MAX, "%.47s", path + 8);
	if (strchr(text, '.'))
		*strchr(text, '.') = ' ';
	return text;
}

static void side_cell(struct table *table, const json_t *side, const char *path)
{
	char text[WORDS_MAX], spread[WORDS_MAX];
	struct metric m = {.n = (unsigned)json_integer_value(json_object_get(side, "n"))};

	path_number(side, "median", &m.median);
	m.pooled = !path_number(side, "low", &m.low) || !path_number(side, "high", &m.high);
	table_cell(table, COLOUR_NONE, "%s%s", metric_text(path, m.median, text),
		   spread_text(&m, spread));
}

static void ratio_cells(struct table *table, const json_t *metric)
{
	enum verdict verdict = verdict_of(metric);
	char ratio[WORDS_MAX], low[WORDS_MAX], high[WORDS_MAX];
	double value, from, to;

	if (path_number(metric, "ratio", &value))
		table_cell(table, COLOUR_NONE, "%s", ratio_text(value, ratio));
	else
		table_cell(table, COLOUR_NONE, "-");
	if (path_number(metric, "low", &from) && path_number(metric, "high", &to))
		table_cell(table, COLOUR_NONE, "%s..%s", ratio_text(from, low),
			   ratio_text(to, high));
	else
		table_cell(table, COLOUR_NONE, "-");
	table_cell(table, verdict == VERDICT_WORSE ? COLOUR_BAD : COLOUR_NONE, "%s",
		   verdict_names[verdict]);
}

static const char *name_of(const json_t *comparison, const char *kind, const char *key)
{
	const char *name = text_of(json_object_get(comparison, kind), key);

	return *name ? name : key;
}

/* "Not equal cores: kernel, softirq (0.98 in A, 1.52 in B); … . No comparison of equals." */
static void unequal_print(const json_t *comparison, const char *workload, unsigned columns,
			  FILE *out)
{
	char *text = NULL;
	size_t size, i;
	FILE *line = open_memstream(&text, &size);
	unsigned n = 0;
	const json_t *o;

	json_array_foreach(json_object_get(comparison, "unequal"), i, o)
	{
		if (line && !strcmp(text_of(o, "workload"), workload))
			fprintf(line, "%s%s (%.2f in A, %.2f in B)", n++ ? "; " : "",
				name_of(comparison, "systems", text_of(o, "system")),
				json_number_value(json_object_get(o, "a")),
				json_number_value(json_object_get(o, "b")));
	}
	if (line && !fclose(line) && n)
		lines_say(out, columns, 0, "Not equal cores: %s. No comparison of equals.", text);
	free(text);
}

/* One for each workload. */
static void workload_print(const json_t *comparison, const char *workload, unsigned columns,
			   FILE *out)
{
	static const char *const titles[] = {"<system", "<metric", "A",	      "B",
					     "B to A",	"95%",	   "<verdict"};
	struct table *table = table_create(7, titles);
	char name[256], text[WORDS_MAX];
	const char *last = "";
	const json_t *metric;
	size_t i;

	fprintf(out, "%s\n", name_of(comparison, "workloads", workload));
	json_array_foreach(json_object_get(comparison, "metrics"), i, metric)
	{
		const char *path = text_of(metric, "metric"), *system = text_of(metric, "system");

		if (!table || strcmp(text_of(metric, "workload"), workload) || !metric_shown(path))
			continue;
		table_cell(table, COLOUR_NONE, "%s",
			   strcmp(last, system) ? lines_cut(name_of(comparison, "systems", system),
							    NAME_MOST, name, sizeof(name))
						: "");
		last = system;
		table_cell(table, COLOUR_NONE, "%s", shown_name(path, text));
		side_cell(table, json_object_get(metric, "a"), path);
		side_cell(table, json_object_get(metric, "b"), path);
		ratio_cells(table, metric);
	}
	table_print(table, out);
	unequal_print(comparison, workload, columns, out);
	fputc('\n', out);
}

static void workloads_print(const json_t *comparison, unsigned columns, FILE *out)
{
	json_t *seen = json_object();
	const json_t *metric;
	size_t i;

	json_array_foreach(json_object_get(comparison, "metrics"), i, metric)
	{
		const char *workload = text_of(metric, "workload");

		if (json_object_get(seen, workload))
			continue;
		json_object_set_new(seen, workload, json_true());
		workload_print(comparison, workload, columns, out);
	}
	json_decref(seen);
}

static void only_print(const json_t *only, const char *side, unsigned columns, FILE *out)
{
	const json_t *o;
	size_t i;

	json_array_foreach(only, i, o) lines_say(out, columns, 2, "Only in %s: %s under %s.", side,
						 text_of(o, "system"), text_of(o, "workload"));
}

static const char *value_short(const json_t *value, char *text, size_t size)
{
	char *dumped = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	lines_cut(dumped ? dumped : "-", 44, text, size);
	free(dumped);
	return text;
}

static void environment_print(const json_t *environment, unsigned columns, FILE *out)
{
	size_t n = json_array_size(environment), i;
	const json_t *o;

	if (!n)
		return;
	lines_say(out, columns, 0, "The machines, or what was set on them, differ in:");
	json_array_foreach(environment, i, o)
	{
		char a[256], b[256];

		if (i == ENVIRONMENT_MOST)
			break;
		lines_say(out, columns, 4, "  %s: A %s, B %s", text_of(o, "key"),
			  value_short(json_object_get(o, "a"), a, sizeof(a)),
			  value_short(json_object_get(o, "b"), b, sizeof(b)));
	}
	if (n > ENVIRONMENT_MOST)
		fprintf(out, "  and %zu more (--json has all)\n", n - ENVIRONMENT_MOST);
	fputc('\n', out);
}

static void side_print(const json_t *comparison, const char *key, const char *name,
		       unsigned columns, FILE *out)
{
	const json_t *side = json_object_get(comparison, key);

	lines_say(out, columns, 3, "%s: %s, %s length, %s, napier %s, build %s", name,
		  text_of(side, "name"), text_of(side, "length"), text_of(side, "started"),
		  text_of(side, "napier"), text_of(side, "build"));
}

/* The least number of repeats that has an interval. */
static json_int_t repeats_least(const json_t *metric, json_int_t least)
{
	static const char *const sides[] = {"a", "b"};

	for (unsigned i = 0; i < 2 && json_is_number(json_object_get(metric, "low")); i++) {
		json_int_t n =
			json_integer_value(json_object_get(json_object_get(metric, sides[i]), "n"));

		least = n < least ? n : least;
	}
	return least;
}

static void verdicts_print(const json_t *comparison, unsigned columns, FILE *out)
{
	unsigned count[4] = {0}, all = 0;
	json_int_t least = REPEATS_ENOUGH;
	const json_t *metric;
	size_t i;

	json_array_foreach(json_object_get(comparison, "metrics"), i, metric)
	{
		if (!metric_shown(text_of(metric, "metric")) ||
		    !strcmp(text_of(metric, "metric"), "cpu.cores_used"))
			continue;
		count[verdict_of(metric)]++;
		all++;
		least = repeats_least(metric, least);
	}
	lines_say(out, columns, 2,
		  "Of %u metrics of systems under workloads, %u are better in B, %u worse, %u show "
		  "no "
		  "difference, and of %u it is not known. A and B were not measured in turn: what "
		  "changed on the machine in between is in the difference.",
		  all, count[VERDICT_BETTER], count[VERDICT_WORSE], count[VERDICT_NONE],
		  count[VERDICT_UNKNOWN]);
	if (least < REPEATS_ENOUGH)
		lines_say(out, columns, 2, "With %lld repeats an interval covers less than 95%%.",
			  (long long)least);
	all = (unsigned)json_array_size(json_object_get(comparison, "unequal"));
	if (all)
		lines_say(out, columns, 2,
			  "%u system%s under a workload did not use as many cores in B as in A: "
			  "what those gained or lost is not only what A and B differ in.",
			  all, all == 1 ? "" : "s");
}

void report_compare_table(const json_t *comparison, FILE *out)
{
	unsigned columns = lines_columns(out);
	const json_t *warning;
	size_t i;

	side_print(comparison, "a", "A", columns, out);
	side_print(comparison, "b", "B", columns, out);
	fputc('\n', out);
	json_array_foreach(json_object_get(comparison, "warnings"), i, warning)
		lines_say(out, columns, 2, "WARNING: %s", json_string_value(warning));
	if (i)
		fputc('\n', out);
	environment_print(json_object_get(comparison, "environment"), columns, out);
	workloads_print(comparison, columns, out);
	only_print(json_object_get(comparison, "only_a"), "A", columns, out);
	only_print(json_object_get(comparison, "only_b"), "B", columns, out);
	verdicts_print(comparison, columns, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What a row of the table has no room for: message sizes one by one, and latencies idle and loaded.
 */
#include <string.h>

#include <lab/report/words.h>

#include <cmd/bench_table.h>
#include <cmd/lines.h>
#include <cmd/table.h>

/* With more steps than SHARED there is no room for shares. */
enum { STEPS_MAX = TABLE_COLUMNS_MAX - 1, SHARED = 8, NAME_MOST = 28 };

static const json_t *first_run(const struct results *results, const struct group *group)
{
	for (unsigned s = 0; s < group->systems; s++) {
		const json_t *run =
			results_typical(results, text_of(group->system[s], "key"), group);

		if (run)
			return run;
	}
	return NULL;
}

static void step_cell(struct table *table, const struct results *results, const struct group *group,
		      const json_t *system, const char *step, bool shared)
{
	const char *workload = text_of(group->workload, "key"), *key = text_of(system, "key");
	char path[RESULTS_PATH_MAX], text[WORDS_MAX];
	struct metric received, sent;
	double share;

	snprintf(path, sizeof(path), "steps.%.80s.rates.received_mbit", step);
	if (!results_metric(results, key, workload, path, &received)) {
		table_cell(table, COLOUR_NONE, "-");
		return;
	}
	snprintf(path, sizeof(path), "steps.%.80s.rates.sent_mbit", step);
	if (!results_metric(results, key, workload, path, &sent) || sent.median <= 0 || !shared) {
		table_cell(table, COLOUR_NONE, "%s", count_text(received.median, text));
		return;
	}
	share = 100 * received.median / sent.median;
	table_cell(table, share < 99 ? COLOUR_WARN : COLOUR_NONE, "%s %.0f%%",
		   count_text(received.median, text), share);
}

static void steps_print(const struct results *results, const struct group *group,
			const json_t *steps, FILE *out)
{
	const char *titles[STEPS_MAX + 1] = {"<Mbit/s, and share of sent"};
	struct table *table;
	const json_t *step;
	unsigned n = 1;
	double value;
	size_t i;

	json_array_foreach(steps, i, step)
	{
		if (n <= STEPS_MAX && path_number(step, "rates.received_mbit", &value))
			titles[n++] = text_of(step, "name");
	}
	if (n <= 2)
		return;
	table = table_create(n, titles);
	for (unsigned s = 0; table && s < group->systems; s++) {
		char name[4 * NAME_MOST];

		table_cell(table, COLOUR_NONE, "%s",
			   lines_cut(system_name(group->system[s]), NAME_MOST, name, sizeof(name)));
		for (unsigned c = 1; c < n; c++)
			step_cell(table, results, group, group->system[s], titles[c],
				  n <= SHARED + 1);
	}
	table_print(table, out);
}

static bool idle_metric(const struct results *results, const struct group *group,
			const json_t *system, const char *name, const char *percentile, bool idle,
			struct metric *out)
{
	char path[RESULTS_PATH_MAX];

	snprintf(path, sizeof(path), "latency.%s%.80s.%s", idle ? "idle_" : "", name, percentile);
	return results_metric(results, text_of(system, "key"), text_of(group->workload, "key"),
			      path, out);
}

/* Idle, loaded, and what the load has added. */
static void idle_cells(struct table *table, const struct results *results,
		       const struct group *group, const json_t *system, const char *name,
		       const char *percentile)
{
	struct metric idle, loaded;
	bool has_idle = idle_metric(results, group, system, name, percentile, true, &idle);
	bool has_loaded = idle_metric(results, group, system, name, percentile, false, &loaded);
	char text[WORDS_MAX];

	table_cell(table, COLOUR_NONE, "%s", has_idle ? latency_text(idle.median, text) : "-");
	table_cell(table, COLOUR_NONE, "%s", has_loaded ? latency_text(loaded.median, text) : "-");
	table_cell(table, COLOUR_NONE, "%s",
		   has_idle && has_loaded ? latency_text(loaded.median - idle.median, text) : "-");
}

static void idle_print(const struct results *results, const struct group *group,
		       const json_t *latencies, FILE *out)
{
	static const char *const titles[] = {"<system", "<latency of", "p50 idle", "loaded",
					     "added",	"p99 idle",    "loaded",   "added"};
	struct table *table = table_create(8, titles);
	const json_t *latency;
	char cut[4 * NAME_MOST];
	const char *name;

	for (unsigned s = 0; table && s < group->systems; s++) {
		if (!results_typical(results, text_of(group->system[s], "key"), group))
			continue;
		json_object_foreach((json_t *)latencies, name, latency)
		{
			if (strncmp(name, "idle_", 5))
				continue;
			table_cell(table, COLOUR_NONE, "%s",
				   lines_cut(system_name(group->system[s]), NAME_MOST, cut,
					     sizeof(cut)));
			table_cell(table, COLOUR_NONE, "%s", name + 5);
			idle_cells(table, results, group, group->system[s], name + 5, "p50");
			idle_cells(table, results, group, group->system[s], name + 5, "p99");
		}
	}
	table_print(table, out);
}

void report_steps_table(const struct results *results, const struct group *group, FILE *out)
{
	const json_t *run = first_run(results, group);

	if (json_array_size(json_object_get(run, "steps")) > 1)
		steps_print(results, group, json_object_get(run, "steps"), out);
	idle_print(results, group, json_object_get(run, "latency"), out);
}

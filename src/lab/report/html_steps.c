/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the duration (message sizes; idle and load), and latencies beside the one of the table.
 */
#include <string.h>

#include "lab/report/html.h"

/* Of the group's first valid run that has some. */
static const json_t *run_with(const struct page *page, const struct group *group, const char *key)
{
	for (unsigned s = 0; s < group->systems; s++) {
		const json_t *run =
			results_typical(page->results, text_of(group->system[s], "key"), group);
		const json_t *o = json_object_get(run, key);

		if (json_array_size(o) || json_object_size(o))
			return run;
	}
	return NULL;
}

static void value_put(const struct page *page, const struct group *group, const json_t *system,
		      const char *path)
{
	char text[WORDS_MAX];
	struct metric m;

	if (results_metric(page->results, text_of(system, "key"), text_of(group->workload, "key"),
			   path, &m)) {
		fprintf(page->out, "<td data-v=\"%.9g\">", m.median);
		html_figure(page->out, metric_text(path, m.median, text));
	} else {
		fputs("<td class=\"none\">–", page->out);
	}
}

/* Received, and how much of what was sent that is. */
static void step_rate(const struct page *page, const struct group *group, const json_t *system,
		      const char *step)
{
	const char *workload = text_of(group->workload, "key"), *key = text_of(system, "key");
	char path[RESULTS_PATH_MAX + 64];
	struct metric sent, received;

	snprintf(path, sizeof(path), "steps.%.80s.rates.received_mbit", step);
	value_put(page, group, system, path);
	if (results_metric(page->results, key, workload, path, &received)) {
		snprintf(path, sizeof(path), "steps.%.80s.rates.sent_mbit", step);
		if (results_metric(page->results, key, workload, path, &sent) && sent.median > 0) {
			double share = 100 * received.median / sent.median;

			fprintf(page->out, "<small%s>%.0f%% of sent</small>",
				share < 99 ? " class=\"worse\"" : "", share);
		}
	}
	fputs("</td>", page->out);
}

static void step_rates(const struct page *page, const struct group *group, const json_t *steps)
{
	const json_t *step;
	unsigned n = 0;
	double value;
	size_t i;

	json_array_foreach(steps, i, step) n += path_number(step, "rates.received_mbit", &value);
	if (n < 2)
		return;
	fputs("<h4>Received, by step (for a stream the message's bytes)</h4>"
	      "<div class=\"scroll\"><table class=\"figures\"><thead><tr><th>system</th>",
	      page->out);
	json_array_foreach(steps, i, step) html_element(page->out, "th", text_of(step, "name"));
	fputs("</tr></thead><tbody>\n", page->out);
	for (unsigned s = 0; s < group->systems; s++) {
		fputs("<tr><td>", page->out);
		html_system(page, group->system[s]);
		fputs("</td>", page->out);
		json_array_foreach(steps, i, step)
			step_rate(page, group, group->system[s], text_of(step, "name"));
		fputs("</tr>\n", page->out);
	}
	fputs("</tbody></table></div>\n", page->out);
}

/* Rows: systems and latencies; columns: percentiles, of each part. prefix: "" or "steps.load." */
static void latencies_put(const struct page *page, const struct group *group,
			  const json_t *latencies, const char *prefix, const char *title)
{
	static const char *const percentiles[] = {"p50", "p90", "p99", "p99.9", "max"};
	const json_t *latency;
	const char *name;

	fputs("<h4>Latency", page->out);
	html_text(page->out, title);
	fputs("</h4><div class=\"scroll\"><table "
	      "class=\"figures\"><thead><tr><th>system</th><th>of</th>"
	      "<th>samples</th><th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>longest</th></"
	      "tr>"
	      "</thead><tbody>\n",
	      page->out);
	for (unsigned s = 0; s < group->systems; s++) {
		if (!results_typical(page->results, text_of(group->system[s], "key"), group))
			continue;
		json_object_foreach((json_t *)latencies, name, latency)
		{
			char path[RESULTS_PATH_MAX + 256];

			fputs("<tr><td>", page->out);
			html_system(page, group->system[s]);
			fputs("</td>", page->out);
			html_element(page->out, "td", name);
			snprintf(path, sizeof(path), "%.80slatency.%.80s.n", prefix, name);
			value_put(page, group, group->system[s], path);
			fputs("</td>", page->out);
			for (unsigned i = 0; i < 5; i++) {
				snprintf(path, sizeof(path), "%.80slatency.%.80s.%s", prefix, name,
					 percentiles[i]);
				value_put(page, group, group->system[s], path);
				fputs("</td>", page->out);
			}
			fputs("</tr>\n", page->out);
		}
	}
	fputs("</tbody></table></div>\n", page->out);
}

static void rate_name_put(FILE *out, const char *name)
{
	bool mbit = strstr(name, "_mbit");

	fputs("<th>", out);
	for (; *name && strcmp(name, "_mbit"); name++) {
		const char letter[2] = {*name == '_' ? ' ' : *name, 0};

		html_text(out, letter);
	}
	fputs(mbit ? "<br/>Mbit/s</th>" : "<br/>a second</th>", out);
}

/* Its unit is above it. */
static void rate_put(const struct page *page, const struct group *group, const json_t *system,
		     const char *path)
{
	char text[WORDS_MAX];
	struct metric m;

	if (!results_metric(page->results, text_of(system, "key"), text_of(group->workload, "key"),
			    path, &m)) {
		fputs("<td class=\"none\">–</td>", page->out);
		return;
	}
	fprintf(page->out, "<td data-v=\"%.9g\">%s</td>", m.median, count_text(m.median, text));
}

/* Each direction and class of its own. */
static void rates_put(const struct page *page, const struct group *group, const json_t *rates)
{
	const json_t *rate;
	const char *name;

	fputs("<h4>Rates, each of them</h4><div class=\"scroll\"><table "
	      "class=\"figures\"><thead><tr>"
	      "<th>system</th>",
	      page->out);
	json_object_foreach((json_t *)rates, name, rate) rate_name_put(page->out, name);
	fputs("</tr></thead><tbody>\n", page->out);
	for (unsigned s = 0; s < group->systems; s++) {
		fputs("<tr><td>", page->out);
		html_system(page, group->system[s]);
		fputs("</td>", page->out);
		json_object_foreach((json_t *)rates, name, rate)
		{
			char path[RESULTS_PATH_MAX];

			snprintf(path, sizeof(path), "rates.%.80s", name);
			rate_put(page, group, group->system[s], path);
		}
		fputs("</tr>\n", page->out);
	}
	fputs("</tbody></table></div>\n", page->out);
}

static void added_put(const struct page *page, const struct group *group, const json_t *system,
		      const char *name, const char *percentile)
{
	const char *key = text_of(system, "key"), *workload = text_of(group->workload, "key");
	char idle_path[RESULTS_PATH_MAX], path[RESULTS_PATH_MAX], text[WORDS_MAX];
	struct metric idle, loaded;

	snprintf(idle_path, sizeof(idle_path), "latency.idle_%.80s.%s", name, percentile);
	snprintf(path, sizeof(path), "latency.%.80s.%s", name, percentile);
	value_put(page, group, system, idle_path);
	fputs("</td>", page->out);
	value_put(page, group, system, path);
	fputs("</td>", page->out);
	if (!results_metric(page->results, key, workload, idle_path, &idle) ||
	    !results_metric(page->results, key, workload, path, &loaded)) {
		fputs("<td class=\"none\">–</td>", page->out);
		return;
	}
	fprintf(page->out, "<td data-v=\"%.9g\">", loaded.median - idle.median);
	html_figure(page->out, latency_text(loaded.median - idle.median, text));
	fputs("</td>", page->out);
}

/* What the load has added to each latency that was also measured without it. */
static void idle_put(const struct page *page, const struct group *group, const json_t *latencies)
{
	const json_t *latency;
	const char *name;

	fputs("<h4>Latency idle and under load, and what the load adds</h4>"
	      "<div class=\"scroll\"><table class=\"figures\"><thead><tr><th>system</th><th>of</th>"
	      "<th>p50 idle</th><th>loaded</th><th>added</th><th>p99 idle</th><th>loaded</th>"
	      "<th>added</th></tr></thead><tbody>\n",
	      page->out);
	for (unsigned s = 0; s < group->systems; s++) {
		if (!results_typical(page->results, text_of(group->system[s], "key"), group))
			continue;
		json_object_foreach((json_t *)latencies, name, latency)
		{
			if (strncmp(name, "idle_", 5))
				continue;
			fputs("<tr><td>", page->out);
			html_system(page, group->system[s]);
			fputs("</td>", page->out);
			html_element(page->out, "td", name + 5);
			added_put(page, group, group->system[s], name + 5, "p50");
			added_put(page, group, group->system[s], name + 5, "p99");
			fputs("</tr>\n", page->out);
		}
	}
	fputs("</tbody></table></div>\n", page->out);
}

static bool has_idle(const json_t *latencies)
{
	const json_t *latency;
	const char *name;

	json_object_foreach((json_t *)latencies, name, latency)
	{
		if (!strncmp(name, "idle_", 5))
			return true;
	}
	return false;
}

/* Many of them: for who looks for one. */
static void all_latencies_put(const struct page *page, const struct group *group,
			      const json_t *latencies, const json_t *steps)
{
	bool many = json_object_size(latencies) > 2;
	const json_t *step;
	size_t i;

	if (many)
		fputs("<details><summary>Every latency that was measured</summary>\n", page->out);
	if (json_object_size(latencies) > 1)
		latencies_put(page, group, latencies, "", ", each of them");
	json_array_foreach(steps, i, step)
	{
		char prefix[RESULTS_PATH_MAX], title[RESULTS_PATH_MAX];

		if (!json_object_size(json_object_get(step, "latency")))
			continue;
		snprintf(prefix, sizeof(prefix), "steps.%.80s.", text_of(step, "name"));
		snprintf(title, sizeof(title), " in the step %.80s", text_of(step, "name"));
		latencies_put(page, group, json_object_get(step, "latency"), prefix, title);
	}
	if (many)
		fputs("</details>\n", page->out);
}

void html_steps(const struct page *page, const struct group *group)
{
	const json_t *steps = json_object_get(run_with(page, group, "steps"), "steps");
	const json_t *latencies = json_object_get(run_with(page, group, "latency"), "latency");
	const json_t *rates = json_object_get(run_with(page, group, "rates"), "rates");

	/* Not those of one direction and protocol. */
	if (json_object_size(rates) > 5)
		rates_put(page, group, rates);
	if (json_array_size(steps))
		step_rates(page, group, steps);
	if (has_idle(latencies))
		idle_put(page, group, latencies);
	all_latencies_put(page, group, latencies, steps);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A section for each workload, in it one for each scenario: words, table, plots, CPU. */
#include <string.h>

#include "lab/report/html.h"

/* With the number that it is sorted by. */
static void cell_begin(FILE *out, const struct metric *m)
{
	if (m->n)
		fprintf(out, "<td data-v=\"%.9g\">", m->median);
	else
		fputs("<td class=\"none\">–", out);
}

/* "84.5 – 102 µs": a unit that both have is said once. */
static void interval_put(FILE *out, const struct metric *m,
			 const char *(*say)(double value, char text[WORDS_MAX]))
{
	char low[WORDS_MAX], high[WORDS_MAX];
	const char *unit, *other;

	if (m->n < 2)
		return;
	if (m->pooled) {
		fputs("<small>all repeats</small>", out);
		return;
	}
	say(m->low, low);
	say(m->high, high);
	unit = strchr(low, ' ');
	other = strchr(high, ' ');
	if (unit && other && !strcmp(unit, other))
		low[unit - low] = 0;
	fputs("<small>", out);
	html_figure(out, low);
	fputs(" – ", out);
	html_figure(out, high);
	fputs("</small>", out);
}

/* Against the base: a line of its own below the figure. */
static void verdict_put(const struct page *page, const struct group *group, const json_t *system,
			const char *path)
{
	const json_t *comparison = results_comparison(page->results, text_of(system, "key"),
						      text_of(group->workload, "key"), path);
	const char *verdict = verdict_names[verdict_of(comparison)];
	char text[WORDS_MAX], low[WORDS_MAX], high[WORDS_MAX];
	double ratio, from, to;

	if (system == group->base)
		fputs("<small>base</small>", page->out);
	if (system == group->base || !path_number(comparison, "ratio", &ratio))
		return;
	fprintf(page->out, "<small class=\"%s\"", verdict);
	if (path_number(comparison, "low", &from) && path_number(comparison, "high", &to))
		fprintf(page->out, " title=\"95%%: %s to %s\"", ratio_text(from, low),
			ratio_text(to, high));
	fputs(">", page->out);
	html_figure(page->out, ratio_text(ratio, text));
	fprintf(page->out, " %s</small>", verdict);
}

static void metric_cell(FILE *out, const struct metric *m,
			const char *(*say)(double value, char text[WORDS_MAX]))
{
	char text[WORDS_MAX];

	cell_begin(out, m);
	if (m->n)
		html_figure(out, say(m->median, text));
	fputs("</td>", out);
}

/* With its interval, and how it compares where it is compared (path not NULL). */
static void compared_cell(const struct page *page, const struct group *group, const json_t *system,
			  const struct metric *m, const char *path,
			  const char *(*say)(double value, char text[WORDS_MAX]))
{
	char text[WORDS_MAX];

	cell_begin(page->out, m);
	if (m->n) {
		html_figure(page->out, say(m->median, text));
		interval_put(page->out, m, say);
	}
	if (path)
		verdict_put(page, group, system, path);
	fputs("</td>", page->out);
}

static const char *two_digits(double value, char text[WORDS_MAX])
{
	snprintf(text, WORDS_MAX, "%.2f", value);
	return text;
}

static const char *one_digit(double value, char text[WORDS_MAX])
{
	snprintf(text, WORDS_MAX, "%.1f", value);
	return text;
}

static void lost_cell(FILE *out, const struct row *row)
{
	char text[WORDS_MAX];

	if (!row->counted) {
		fputs("<td class=\"none\">–</td>", out);
		return;
	}
	fprintf(out, "<td data-v=\"%.9g\"%s>%s</td>", row->of > 0 ? row->lost / row->of : 0,
		row->lost > 0 ? " class=\"loss\"" : "", lost_text(row, text));
}

static void runs_cell(FILE *out, const struct row *row)
{
	unsigned wrong = row->invalid + row->failed;

	fprintf(out, "<td data-v=\"%u\">%u", row->valid, row->valid);
	if (wrong)
		fprintf(out, "<small class=\"worse\">of %u</small>", row->valid + wrong);
	fputs("</td>", out);
}

static void table_head(const struct page *page, const struct group *group)
{
	fputs("<div class=\"scroll\"><table class=\"figures\"><thead><tr><th>system</th>",
	      page->out);
	if (*group->rate)
		html_element(page->out, "th", rate_title(group->rate));
	if (*group->latency)
		fputs("<th>p50</th><th>p90</th><th>p99</th><th>p99.9</th><th>longest</th>",
		      page->out);
	fputs("<th>lost</th><th>cores</th><th>CPU/op</th><th>packets<br/>a poll</th><th>GRO</th>",
	      page->out);
	fputs("<th>n</th></tr></thead><tbody>\n", page->out);
}

static void table_row(const struct page *page, const struct group *group, const json_t *system)
{
	char path[RESULTS_PATH_MAX + 8];
	FILE *out = page->out;
	struct row row;

	results_row(page->results, group, system, &row);
	fputs("<tr><td>", out);
	html_system(page, system);
	fputs("</td>", out);
	if (*group->rate)
		compared_cell(page, group, system, &row.rate, group->rate, count_text);
	if (*group->latency) {
		snprintf(path, sizeof(path), "%s.p99", group->latency);
		compared_cell(page, group, system, &row.p50, NULL, latency_text);
		metric_cell(out, &row.p90, latency_text);
		compared_cell(page, group, system, &row.p99, path, latency_text);
		compared_cell(page, group, system, &row.p999, NULL, latency_text);
		metric_cell(out, &row.max, latency_text);
	}
	lost_cell(out, &row);
	metric_cell(out, &row.cores, two_digits);
	compared_cell(page, group, system, &row.cost, "cpu.ns_per_operation.total", latency_text);
	metric_cell(out, &row.polled, one_digit);
	metric_cell(out, &row.gro, one_digit);
	runs_cell(out, &row);
	fputs("</tr>\n", out);
}

static const char *latency_said(const struct group *group)
{
	if (!strcmp(group->latency, "latency.response"))
		return "Latency is response time: from when a request should have been sent.";
	if (!strcmp(group->latency, "latency.service"))
		return "Latency is service time: from when a request was sent, which in a closed "
		       "loop is "
		       "when it could be.";
	return NULL;
}

static void group_put(const struct page *page, unsigned g)
{
	const struct group *group = &page->results->group[g];
	json_t *sentences = group_sentences(page->results, group);
	const char *latency = latency_said(group);

	fputs("<section class=\"group\">", page->out);
	if (*group->scenario)
		html_element(page->out, "h3", group->scenario);
	fputs("<ul>\n", page->out);
	html_lines(page->out, sentences, "li");
	fputs("</ul>\n", page->out);
	json_decref(sentences);
	table_head(page, group);
	for (unsigned s = 0; s < group->systems; s++)
		table_row(page, group, group->system[s]);
	fputs("</tbody></table></div>\n", page->out);
	if (latency)
		html_element(page->out, "p class=\"soft\"", latency);
	html_steps(page, group);
	html_group_plots(page, g);
	html_bars(page, group);
	fputs("</section>\n", page->out);
}

static void parameter_put(FILE *out, const char *key, const json_t *value)
{
	size_t n = strlen(key);
	char text[WORDS_MAX];

	if (n > 3 && !strcmp(key + n - 3, "_ns") && json_is_number(value)) {
		fprintf(out, "%.*s ", (int)n - 3, key);
		html_figure(out, latency_text(json_number_value(value), text));
		return;
	}
	html_text(out, key);
	fputc(' ', out);
	html_json(out, value);
}

/* What is 0, no or empty is as if it were not there. */
static bool parameter_said(const json_t *value)
{
	return json_is_array(value)    ? json_array_size(value)
	       : json_is_string(value) ? *json_string_value(value)
	       : json_is_number(value) ? json_number_value(value) != 0
				       : json_is_true(value);
}

static void workload_head(const struct page *page, const json_t *workload)
{
	const json_t *parameters = json_object_get(workload, "parameters"), *value;
	const char *key, *between = "";

	html_element(page->out, "h2", workload_name(workload));
	fputs("<p class=\"soft\">", page->out);
	html_text(page->out, text_of(workload, "kind"));
	fputs(": ", page->out);
	json_object_foreach((json_t *)parameters, key, value)
	{
		if (!parameter_said(value) || !strcmp(key, "kind"))
			continue;
		fputs(between, page->out);
		parameter_put(page->out, key, value);
		between = ", ";
	}
	fputs(".</p>\n", page->out);
}

void html_groups(const struct page *page)
{
	const json_t *last = NULL;

	for (unsigned g = 0; g < page->results->groups; g++) {
		const json_t *workload = page->results->group[g].workload;

		if (workload != last) {
			fputs(last ? "</section>\n" : "", page->out);
			fprintf(page->out, "<section id=\"workload-%u\">", g);
			workload_head(page, workload);
		}
		last = workload;
		group_put(page, g);
	}
	fputs(last ? "</section>\n" : "", page->out);
	if (*page->undrawn) {
		fputs("<p class=\"soft\">There are no plots: ", page->out);
		html_text(page->out, page->undrawn);
		fputs(". All figures are in the tables; napier bench report makes the page "
		      "again.</p>\n",
		      page->out);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What was found, first in words, then each verdict at a glance. */
#include <string.h>

#include "lab/report/html.h"

/* The first thing to be seen: the findings, and beside them what they are worth. */
void html_summary(const struct page *page)
{
	json_t *findings = results_findings(page->results);
	json_t *trust = results_trust(page->results);

	fputs("<section id=\"summary\">\n", page->out);
	if (json_is_true(json_object_get(page->results->json, "partial")))
		fputs("<p class=\"banner\">Stopped before its end: not all was measured as often "
		      "as "
		      "meant.</p>\n",
		      page->out);
	fputs("<div class=\"answer\">\n", page->out);
	if (json_array_size(findings)) {
		fputs("<div><h2>What it showed</h2>\n<ul>\n", page->out);
		html_lines(page->out, findings, "li");
		fputs("</ul></div>\n", page->out);
	}
	fputs("<div><h2>How far to believe it</h2>\n<ul>\n", page->out);
	html_lines(page->out, trust, "li");
	html_lines(page->out, json_object_get(page->results->json, "notes"), "li");
	fputs("</ul></div>\n</div>\n", page->out);
	html_facts(page);
	fputs("</section>\n", page->out);
	json_decref(findings);
	json_decref(trust);
}

static const struct group *group_of(const struct results *results, const json_t *workload,
				    const json_t *system)
{
	for (unsigned g = 0; g < results->groups; g++) {
		const struct group *group = &results->group[g];

		for (unsigned s = 0; group->workload == workload && s < group->systems; s++) {
			if (group->system[s] == system)
				return group;
		}
	}
	return NULL;
}

static void verdict_line(const struct page *page, const char *name, const json_t *comparison)
{
	const char *verdict = verdict_names[verdict_of(comparison)];
	char ratio[WORDS_MAX];
	double value;

	if (!path_number(comparison, "ratio", &value))
		return;
	fprintf(page->out, "<div class=\"v\"><span>%s</span><span>", name);
	html_figure(page->out, ratio_text(value, ratio));
	fprintf(page->out, "</span><span class=\"%s\">%s</span></div>", verdict, verdict);
}

static void glance_cell(const struct page *page, const json_t *workload, const json_t *system)
{
	const struct group *group = group_of(page->results, workload, system);
	char path[KEY_METRICS_MAX][RESULTS_PATH_MAX];
	unsigned n = group ? key_metrics(group, path) : 0;

	fputs("<td>", page->out);
	if (!group)
		fputs("<span class=\"none\">–</span>", page->out);
	else if (group->base == system)
		fputs("<span class=\"none\">base</span>", page->out);
	else if (!results_typical(page->results, text_of(system, "key"), group))
		fputs("<span class=\"none\">no valid run</span>", page->out);
	for (unsigned i = 0; i < n && group->base != system; i++) {
		const char *name = strstr(path[i], "latency.")	 ? "p99"
				   : !strncmp(path[i], "cpu", 3) ? "CPU"
								 : "rate";

		verdict_line(page, name,
			     results_comparison(page->results, text_of(system, "key"),
						text_of(workload, "key"), path[i]));
	}
	fputs("</td>", page->out);
}

void html_glance(const struct page *page)
{
	const json_t *workloads = json_object_get(page->results->json, "workloads"), *workload;
	const json_t *system;
	const char *scenario = NULL;
	size_t s, w;

	if (!json_object_size(page->results->comparisons))
		return;
	fputs("<section id=\"glance\"><h2>At a glance</h2>\n<p>Each against the base of its "
	      "scenario: "
	      "the ratio of the medians. p99 is of latency and CPU is time per operation: less is "
	      "better; of rate more is. <em>None</em>: the interval of the ratio has 1 in it, or "
	      "repeats are few (less than five) and not clearly apart. –: "
	      "was not run.</p>\n"
	      "<div class=\"scroll\"><table class=\"glance\"><thead><tr><th>system</th>",
	      page->out);
	json_array_foreach(workloads, w, workload)
		html_element(page->out, "th", workload_name(workload));
	fputs("</tr></thead><tbody>\n", page->out);
	json_array_foreach(json_object_get(page->results->json, "systems"), s, system)
	{
		const char *of = text_of(system, "scenario");

		if (*text_of(system, "skipped"))
			continue;
		if (*of && (!scenario || strcmp(scenario, of))) {
			fprintf(page->out, "<tr class=\"scenario\"><th colspan=\"%zu\">",
				json_array_size(workloads) + 1);
			html_text(page->out, of);
			fputs("</th></tr>\n", page->out);
		}
		scenario = of;
		fputs("<tr><td>", page->out);
		html_system(page, system);
		fputs("</td>", page->out);
		json_array_foreach(workloads, w, workload) glance_cell(page, workload, system);
		fputs("</tr>\n", page->out);
	}
	fputs("</tbody></table></div></section>\n", page->out);
}

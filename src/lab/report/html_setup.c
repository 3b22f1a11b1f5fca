/* SPDX-License-Identifier: BSD-2-Clause */
/* How each system was set up: asked and observed, and the commands that do the same by hand. */
#include <string.h>

#include "lab/report/html.h"

/* Values may be texts or numbers. */
static void value_text(const json_t *value, char text[RESULTS_PATH_MAX])
{
	if (json_is_string(value))
		snprintf(text, RESULTS_PATH_MAX, "%.150s", json_string_value(value));
	else if (json_is_number(value))
		snprintf(text, RESULTS_PATH_MAX, "%.12g", json_number_value(value));
	else
		snprintf(text, RESULTS_PATH_MAX, "%s",
			 json_is_true(value)	? "yes"
			 : json_is_false(value) ? "no"
						: "");
}

static void settings_put(FILE *out, const json_t *settings)
{
	char asked[RESULTS_PATH_MAX], observed[RESULTS_PATH_MAX];
	const json_t *setting;
	const char *key;

	if (!json_object_size(settings))
		return;
	fputs("<h4>Settings</h4><div class=\"scroll\"><table "
	      "class=\"plain\"><thead><tr><th>setting</th>"
	      "<th>asked</th><th>observed</th></tr></thead><tbody>\n",
	      out);
	json_object_foreach((json_t *)settings, key, setting)
	{
		value_text(json_object_get(setting, "asked"), asked);
		value_text(json_object_get(setting, "observed"), observed);
		fputs("<tr>", out);
		html_element(out, "td", key);
		html_element(out, "td", asked);
		html_element(out,
			     *observed && strcmp(asked, observed) ? "td class=\"differs\"" : "td",
			     *observed ? observed : "not read");
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

static void placement_put(FILE *out, const json_t *placement)
{
	const json_t *place;
	size_t i;

	if (!json_array_size(placement))
		return;
	fputs("<h4>Placement asked for</h4><div class=\"scroll\"><table class=\"plain\"><thead><tr>"
	      "<th>who</th><th>CPUs</th><th>by</th></tr></thead><tbody>\n",
	      out);
	json_array_foreach(placement, i, place)
	{
		fputs("<tr>", out);
		html_element(out, "td", text_of(place, "who"));
		html_element(out, "td", text_of(place, "asked"));
		html_element(out, "td", text_of(place, "by"));
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

/* Of any valid run: every run is placed alike. */
static const json_t *threads_find(const struct results *results, const json_t *system)
{
	for (unsigned g = 0; g < results->groups; g++) {
		const json_t *run =
			results_typical(results, text_of(system, "key"), &results->group[g]);
		const json_t *threads = json_object_get(run, "threads");

		if (json_array_size(threads))
			return threads;
	}
	return NULL;
}

static void threads_put(FILE *out, const json_t *threads)
{
	static const char *const columns[] = {"name",  "tid",  "party",	   "cpus",
					      "class", "nice", "priority", "cpu"};
	static const char *const titles[] = {"thread", "tid",  "of",	   "may run on",
					     "class",  "nice", "priority", "was on"};
	const json_t *thread;
	size_t i;

	if (!threads)
		return;
	fputs("<h4>Threads as observed in mid-run</h4><div class=\"scroll\"><table class=\"plain\">"
	      "<thead><tr>",
	      out);
	for (unsigned c = 0; c < 8; c++)
		html_element(out, "th", titles[c]);
	fputs("</tr></thead><tbody>\n", out);
	json_array_foreach(threads, i, thread)
	{
		fputs("<tr>", out);
		for (unsigned c = 0; c < 8; c++) {
			fputs("<td>", out);
			html_json(out, json_object_get(thread, columns[c]));
			fputs("</td>", out);
		}
		fputs("</tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

/* What it is, in the specification's words. */
static void kind_put(FILE *out, const json_t *system)
{
	static const char *const keys[] = {"key", "dut", "handler", "poller"};
	const char *between = "<p class=\"soft\">";

	for (unsigned i = 0; i < 4; i++) {
		if (!*text_of(system, keys[i]))
			continue;
		fprintf(out, "%s%s ", between, keys[i]);
		html_text(out, text_of(system, keys[i]));
		between = ", ";
	}
	fputs("</p>\n", out);
}

void html_systems(const struct page *page)
{
	const json_t *system;
	size_t i;

	fputs("<section id=\"systems\"><h2>How each system was set up</h2>\n", page->out);
	json_array_foreach(json_object_get(page->results->json, "systems"), i, system)
	{
		const json_t *commands = json_object_get(system, "commands");

		if (*text_of(system, "skipped"))
			continue;
		fputs("<details><summary>", page->out);
		html_system(page, system);
		if (*text_of(system, "scenario")) {
			fputs(" <span class=\"soft\">", page->out);
			html_text(page->out, text_of(system, "scenario"));
			fputs("</span>", page->out);
		}
		fputs("</summary>\n", page->out);
		kind_put(page->out, system);
		if (json_array_size(commands)) {
			fputs("<h4>Commands</h4>", page->out);
			html_commands(page->out, commands);
		}
		settings_put(page->out, json_object_get(system, "settings"));
		placement_put(page->out, json_object_get(system, "placement"));
		threads_put(page->out, threads_find(page->results, system));
		fputs("</details>\n", page->out);
	}
	fputs("</section>\n", page->out);
}

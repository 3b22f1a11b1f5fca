/* SPDX-License-Identifier: BSD-2-Clause */
/* What was not measured, where it was measured, and how it is measured again. */
#include <string.h>

#include "lab/report/html.h"

static void skipped_put(const struct page *page)
{
	const json_t *system;
	size_t i;

	json_array_foreach(json_object_get(page->results->json, "systems"), i, system)
	{
		const char *why = text_of(system, "skipped");

		if (!*why)
			continue;
		fputs("<tr><td>", page->out);
		html_system(page, system);
		fputs("</td><td>all workloads</td><td>skipped</td>", page->out);
		html_element(page->out, "td", why);
		fputs("</tr>\n", page->out);
	}
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

static void run_fault_put(const struct page *page, const json_t *run)
{
	const json_t *results = page->results->json;
	const json_t *system = by_key(json_object_get(results, "systems"), text_of(run, "system"));
	const json_t *workload =
		by_key(json_object_get(results, "workloads"), text_of(run, "workload"));
	const char *why = text_of(run, "error");
	bool failed = *why;

	if (!failed)
		why = text_of(run, "invalid");
	fputs("<tr><td>", page->out);
	if (system)
		html_system(page, system);
	fputs("</td>", page->out);
	html_element(page->out, "td",
		     workload ? workload_name(workload) : text_of(run, "workload"));
	fprintf(page->out, "<td>repeat %lld %s</td>",
		(long long)json_integer_value(json_object_get(run, "repeat")) + 1,
		failed ? "failed" : "is invalid");
	html_element(page->out, "td", *why ? why : "it is not said why");
	fputs("</tr>\n", page->out);
}

void html_faults(const struct page *page)
{
	const json_t *run;
	size_t i;

	fputs("<section id=\"faults\"><h2>What was not measured</h2>\n", page->out);
	fputs("<p>A run that is invalid or failed counts for no figure above.</p>\n"
	      "<div class=\"scroll\"><table "
	      "class=\"plain\"><thead><tr><th>system</th><th>workload</th>"
	      "<th>what</th><th>why</th></tr></thead><tbody>\n",
	      page->out);
	skipped_put(page);
	json_array_foreach(json_object_get(page->results->json, "runs"), i, run)
	{
		if (!run_valid(run))
			run_fault_put(page, run);
	}
	fputs("</tbody></table></div></section>\n", page->out);
}

static void environment_put(const struct page *page, const char *key, const char *title)
{
	const json_t *environment = json_object_get(page->results->json, key);

	if (!environment || json_is_null(environment))
		return;
	fprintf(page->out, "<details><summary>%s</summary>\n", title);
	html_json(page->out, environment);
	fputs("</details>\n", page->out);
}

static void topology_put(const struct page *page)
{
	const json_t *topology = json_object_get(page->results->json, "topology"), *value;
	const char *key;

	if (!json_object_size(topology))
		return;
	fputs("<h3>Topology</h3>\n", page->out);
	if (*text_of(topology, "text"))
		html_element(page->out, "pre", text_of(topology, "text"));
	fputs("<details><summary>Interfaces, and commands that make the same</summary>\n",
	      page->out);
	fputs("<table class=\"keys\"><tbody>", page->out);
	json_object_foreach((json_t *)topology, key, value)
	{
		if (!strcmp(key, "commands") || !strcmp(key, "text"))
			continue;
		fputs("<tr>", page->out);
		html_element(page->out, "th", key);
		fputs("<td>", page->out);
		html_json(page->out, value);
		fputs("</td></tr>", page->out);
	}
	fputs("</tbody></table>\n", page->out);
	html_commands(page->out, json_object_get(topology, "commands"));
	fputs("</details>\n", page->out);
}

void html_machine(const struct page *page)
{
	const json_t *results = page->results->json;
	const json_t *antagonists = json_object_get(results, "antagonists");

	fputs("<section id=\"machine\"><h2>Where it was measured</h2>\n", page->out);
	topology_put(page);
	if (json_array_size(antagonists)) {
		fputs("<h3>What else ran</h3>\n", page->out);
		html_json(page->out, antagonists);
	}
	fputs("<h3>Environment</h3>\n", page->out);
	environment_put(page, "environment", "All that was read of this machine");
	environment_put(page, "peer_environment", "All that was read of the other machine");
	fputs("</section>\n", page->out);
}

/* As a shell takes it. */
static void word_put(FILE *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_./=:,+@%";

	if (*word && word[strspn(word, plain)] == 0) {
		html_text(out, word);
		return;
	}
	html_text(out, "'");
	for (; *word; word++) {
		char letter[2] = {*word, 0};

		html_text(out, *word == '\'' ? "'\\''" : letter);
	}
	html_text(out, "'");
}

static void command_put(FILE *out, const json_t *command)
{
	const json_t *word;
	size_t i;

	fputs("<pre>", out);
	json_array_foreach(command, i, word)
	{
		fputs(i ? " " : "", out);
		if (json_is_string(word))
			word_put(out, json_string_value(word));
	}
	fputs("\n</pre>\n", out);
}

static void others_put(const struct page *page)
{
	const json_t *workload;
	bool any = false;
	size_t i;

	json_array_foreach(json_object_get(page->results->json, "workloads"), i, workload)
	{
		const json_t *commands = json_object_get(workload, "commands");

		if (!json_array_size(commands))
			continue;
		if (!any)
			fputs("<h3>The same workloads by other tools</h3>\n", page->out);
		any = true;
		html_element(page->out, "h4", workload_name(workload));
		html_commands(page->out, commands);
	}
}

void html_repeat(const struct page *page)
{
	const json_t *results = page->results->json, *scaled = json_object_get(results, "scaled");
	const char *text = text_of(results, "specification");

	fputs("<section id=\"repeat\"><h2>How to repeat it</h2>\n", page->out);
	fputs("<p>As root, with napier ", page->out);
	html_text(page->out, text_of(results, "napier"));
	fputs(":</p>\n", page->out);
	command_put(page->out, json_object_get(results, "command"));
	fputs("<p>A file of one's own with the specification below is measured by <code>napier "
	      "bench "
	      "FILE.conf</code>; two results are compared by <code>napier bench compare A "
	      "B</code>.</p>\n",
	      page->out);
	if (json_array_size(scaled)) {
		fputs("<h3>Made to fit this machine</h3>\n<ul>\n", page->out);
		html_lines(page->out, scaled, "li");
		fputs("</ul>\n", page->out);
	}
	fputs("<h3>The specification</h3>\n", page->out);
	if (*text_of(results, "specification_path"))
		html_element(page->out, "p class=\"soft\"", text_of(results, "specification_path"));
	html_element(page->out, "pre", text);
	if (json_object_size(json_object_get(results, "set"))) {
		fputs("<p>With these changed:</p>\n", page->out);
		html_json(page->out, json_object_get(results, "set"));
	}
	others_put(page);
	fputs("</section>\n", page->out);
}

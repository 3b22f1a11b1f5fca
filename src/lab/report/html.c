/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/file.h"
#include "lab/report/html.h"
#include "lab/report/report.h"

/* Nothing is loaded from anywhere, and no script runs but the page's own. */
static void head_put(const struct page *page)
{
	const json_t *results = page->results->json;

	fprintf(page->out,
		"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'; img-src data:; script-src '%s'\"/>\n"
		"<link rel=\"icon\" href=\"data:,\"/>\n<title>",
		page_script_hash);
	html_text(page->out, text_of(results, "name"));
	if (*text_of(results, "title")) {
		fputs(": ", page->out);
		html_text(page->out, text_of(results, "title"));
	}
	fprintf(page->out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", page_style);
}

static void fact_put(FILE *out, const char *what, const char *text)
{
	if (!*text)
		return;
	fprintf(out, "<div><dt>%s</dt><dd>", what);
	html_figure(out, text);
	fputs("</dd></div>\n", out);
}

/* The first of these paths that the environment has, as text. */
static void environment_fact(const struct page *page, const char *what, const char *const *paths)
{
	const json_t *environment = json_object_get(page->results->json, "environment");

	for (; *paths; paths++) {
		const json_t *value = path_get(environment, *paths);
		char text[RESULTS_PATH_MAX];

		if (json_is_string(value))
			snprintf(text, sizeof(text), "%.150s", json_string_value(value));
		else if (json_is_number(value))
			snprintf(text, sizeof(text), "%g", json_number_value(value));
		else
			continue;
		fact_put(page->out, what, text);
		return;
	}
}

void html_facts(const struct page *page)
{
	static const char *const cpu[] = {"cpu.model", "cpu.name", NULL};
	static const char *const cpus[] = {"cpu.online_n", "cpu.cpus", NULL};
	static const char *const kernel[] = {"kernel.release", "kernel", NULL};
	static const char *const hypervisor[] = {"hypervisor", "cpu.hypervisor", NULL};
	static const char *const governor[] = {"cpu.governor", "governor", NULL};
	const json_t *results = page->results->json;
	char text[RESULTS_PATH_MAX];
	double seconds;

	fputs("<dl class=\"facts\">\n", page->out);
	snprintf(text, sizeof(text), "%.60s", text_of(results, "started"));
	if (strlen(text) > 16 && text[10] == 'T')
		snprintf(text, sizeof(text), "%.10s %.5s UTC", text_of(results, "started"),
			 text_of(results, "started") + 11);
	fact_put(page->out, "measured", text);
	if (path_number(results, "duration_s", &seconds)) {
		if (seconds < 60)
			snprintf(text, sizeof(text), "%.0f s, %.20s length", seconds,
				 text_of(results, "length"));
		else
			snprintf(text, sizeof(text), "%d min %d s, %.20s length", (int)seconds / 60,
				 (int)seconds % 60, text_of(results, "length"));
		fact_put(page->out, "in", text);
	}
	environment_fact(page, "CPU", cpu);
	environment_fact(page, "CPUs", cpus);
	environment_fact(page, "kernel", kernel);
	environment_fact(page, "hypervisor", hypervisor);
	environment_fact(page, "governor", governor);
	snprintf(text, sizeof(text), "%.40s, build %.60s", text_of(results, "napier"),
		 results_build(results));
	fact_put(page->out, "napier", text);
	fputs("</dl>\n", page->out);
}

static void nav_put(const struct page *page)
{
	const json_t *last = NULL;

	fputs("<nav><a href=\"#summary\">Summary</a> <a href=\"#glance\">At a glance</a> ",
	      page->out);
	for (unsigned g = 0; g < page->results->groups; g++) {
		const json_t *workload = page->results->group[g].workload;

		if (workload == last)
			continue;
		last = workload;
		fprintf(page->out, "<a href=\"#workload-%u\">", g);
		html_text(page->out, workload_name(workload));
		fputs("</a> ", page->out);
	}
	fputs("<a href=\"#faults\">Not measured</a> <a href=\"#systems\">Set-up</a> "
	      "<a href=\"#machine\">Machine</a> <a href=\"#repeat\">Repeat it</a></nav>\n",
	      page->out);
}

static void header_put(const struct page *page)
{
	const json_t *results = page->results->json;
	const char *title = text_of(results, "title");

	fputs("<header>\n", page->out);
	html_element(page->out, "h1", *title ? title : text_of(results, "name"));
	if (*text_of(results, "question"))
		html_element(page->out, "p class=\"question\"", text_of(results, "question"));
	if (*text_of(results, "source"))
		html_element(page->out, "p class=\"source\"", text_of(results, "source"));
	nav_put(page);
	fputs("</header>\n<main>\n", page->out);
}

static void footer_put(const struct page *page)
{
	fputs("</main>\n<footer><p>How to read it: figures are medians over the valid repeats, "
	      "with 95% "
	      "bootstrap intervals below them. A percentile with fewer than 10 samples above it is "
	      "not "
	      "given. Systems took turns, forth and back, so that drift falls on all alike. "
	      "Round-trip "
	      "times are never halved. CPU is of all who worked for the traffic: both ends, the "
	      "device "
	      "under test, softirq and the kernel's threads; each bit is charged once.</p>\n"
	      "<p>Made by napier bench from results.json, which has every figure of this page and "
	      "more."
	      "</p></footer>\n",
	      page->out);
	fprintf(page->out, "<script>%s</script>\n</body>\n</html>\n", page_script);
}

static void page_put(const struct page *page)
{
	head_put(page);
	header_put(page);
	html_summary(page);
	html_glance(page);
	html_groups(page);
	html_faults(page);
	html_systems(page);
	html_machine(page);
	html_repeat(page);
	footer_put(page);
}

int report_html(const json_t *results, const char *path, struct error *err)
{
	struct results of;
	struct page page = {.results = &of};
	char *text = NULL;
	size_t size;
	int rc;

	if (results_open(results, &of))
		return error_set(err, -ENOMEM, "%s: no memory for the report", path);
	page.out = open_memstream(&text, &size);
	page_plots_draw(&page);
	if (page.out)
		page_put(&page);
	rc = !page.out || fclose(page.out)
		     ? error_set(err, -ENOMEM, "%s: no memory for the report", path)
		     : file_write(path, text, size, err);
	page_plots_close(&page);
	results_close(&of);
	free(text);
	return rc;
}

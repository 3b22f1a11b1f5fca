/* SPDX-License-Identifier: BSD-2-Clause */
/* Who used how much CPU, of the repeat whose rate is nearest to the median. */
#include <stdlib.h>
#include <string.h>

#include "lab/report/html.h"

enum { SEGMENTS_MAX = 24 };

struct segment {
	const char *party, *part; /* part: "user", "system", or "" */
	double cores;
};

static const char *class_of(const char *party)
{
	static const char *const known[] = {"client", "server", "napier", "softirq"};

	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (!strcmp(party, known[i]))
			return known[i];
	}
	return strstr(party, "kernel") ? "kernel" : "other";
}

/* In the way of a packet, and the kernel's part last; the same in every bar. */
static unsigned order_of(const struct segment *segment)
{
	static const char *const order[] = {"client",  "server",	 "napier",
					    "command", "kernel threads", "softirq"};
	unsigned i = 0;

	while (i < sizeof(order) / sizeof(*order) && strcmp(segment->party, order[i]))
		i++;
	return 4 * i + (*segment->part == 0 ? 0 : *segment->part == 'u' ? 1 : 2);
}

static int in_order(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;
	unsigned of_x = order_of(x), of_y = order_of(y);

	if (of_x == of_y)
		return strcmp(x->party, y->party);
	return of_x < of_y ? -1 : 1;
}

static void segment_add(struct segment *segment, unsigned *n, const char *party, const char *part,
			double cores)
{
	if (*n < SEGMENTS_MAX && cores > 0)
		segment[(*n)++] = (struct segment){party, part, cores};
}

static unsigned segments_of(const json_t *run, struct segment segment[SEGMENTS_MAX])
{
	const json_t *parties = path_get(run, "cpu.parties"), *party;
	double duration, user, system, total;
	const char *name;
	unsigned n = 0;

	if (!run_wall(run, &duration))
		return 0;
	json_object_foreach((json_t *)parties, name, party)
	{
		if (path_number(party, "user_s", &user) &&
		    path_number(party, "system_s", &system)) {
			segment_add(segment, &n, name, "user", user / duration);
			segment_add(segment, &n, name, "system", system / duration);
		} else if (path_number(party, "total_s", &total)) {
			segment_add(segment, &n, name, "", total / duration);
		}
	}
	qsort(segment, n, sizeof(*segment), in_order);
	return n;
}

static double cores_of(const struct segment *segment, unsigned n)
{
	double all = 0;

	for (unsigned i = 0; i < n; i++)
		all += segment[i].cores;
	return all;
}

static void segment_title(FILE *out, const struct segment *segment)
{
	html_text(out, segment->party);
	if (*segment->part)
		fprintf(out, ", %s", segment->part);
}

static void bar_put(const struct page *page, const struct group *group, const json_t *system,
		    double most)
{
	const json_t *run = results_typical(page->results, text_of(system, "key"), group);
	struct segment segment[SEGMENTS_MAX];
	unsigned n = segments_of(run, segment);
	char cost[WORDS_MAX];
	double value;

	if (!n)
		return;
	fputs("<div class=\"who\">", page->out);
	html_system(page, system);
	fputs("</div><div class=\"bar\">", page->out);
	for (unsigned i = 0; i < n; i++) {
		fprintf(page->out, "<i class=\"%s%s\" style=\"width:%.2f%%\" title=\"",
			class_of(segment[i].party),
			!strcmp(segment[i].part, "system") ? " sys" : "",
			100 * segment[i].cores / most);
		segment_title(page->out, &segment[i]);
		fprintf(page->out, ": %.2f cores\"></i>", segment[i].cores);
	}
	fprintf(page->out, "</div><div class=\"what\">%.2f cores", cores_of(segment, n));
	if (path_number(run, "cpu.ns_per_operation.total", &value)) {
		fputs(", ", page->out);
		html_figure(page->out, latency_text(value, cost));
		fputs(" per operation", page->out);
	}
	fputs("</div>\n", page->out);
}

/* Of all that anybody here has, each once. */
static unsigned parts_gather(const struct page *page, const struct group *group,
			     struct segment known[SEGMENTS_MAX])
{
	struct segment segment[SEGMENTS_MAX];
	unsigned all = 0;

	for (unsigned s = 0; s < group->systems; s++) {
		unsigned n = segments_of(
			results_typical(page->results, text_of(group->system[s], "key"), group),
			segment);

		for (unsigned i = 0; i < n; i++) {
			unsigned k = 0;

			while (k < all && (strcmp(known[k].party, segment[i].party) ||
					   strcmp(known[k].part, segment[i].part)))
				k++;
			if (k == all && all < SEGMENTS_MAX)
				known[all++] = segment[i];
		}
	}
	qsort(known, all, sizeof(*known), in_order);
	return all;
}

static void key_put(const struct page *page, const struct group *group)
{
	struct segment known[SEGMENTS_MAX];
	unsigned n = parts_gather(page, group, known);

	fputs("<p class=\"key\">", page->out);
	for (unsigned i = 0; i < n; i++) {
		fprintf(page->out, "<span><i class=\"%s%s\"></i>", class_of(known[i].party),
			!strcmp(known[i].part, "system") ? " sys" : "");
		segment_title(page->out, &known[i]);
		fputs("</span>", page->out);
	}
	fputs("</p>\n", page->out);
}

/* The same in figures, for who cannot see bars. */
static void parties_put(const struct page *page, const struct group *group)
{
	fputs("<details><summary>The same in figures, and how threads were scheduled</summary>"
	      "<div class=\"scroll\"><table class=\"figures\"><thead><tr><th>system</th>"
	      "<th>party</th><th>user</th><th>system</th><th>cores</th><th>voluntary<br/>switches</"
	      "th>"
	      "<th>involuntary</th><th>wake-ups</th><th>migrations</th></tr></thead><tbody>\n",
	      page->out);
	for (unsigned s = 0; s < group->systems; s++) {
		static const char *const keys[] = {"user_s",	"system_s",    "total_s",
						   "voluntary", "involuntary", "wakeups",
						   "migrations"};
		const json_t *run =
			results_typical(page->results, text_of(group->system[s], "key"), group);
		const json_t *party;
		double duration = 0, value;
		const char *name;

		run_wall(run, &duration);
		json_object_foreach((json_t *)path_get(run, "cpu.parties"), name, party)
		{
			fputs("<tr><td>", page->out);
			html_system(page, group->system[s]);
			fputs("</td>", page->out);
			html_element(page->out, "td", name);
			for (unsigned k = 0; k < 7; k++) {
				if (!path_number(party, keys[k], &value) || duration <= 0)
					fputs("<td class=\"none\">–</td>", page->out);
				else if (k < 3)
					fprintf(page->out, "<td>%.3f</td>", value / duration);
				else
					fprintf(page->out, "<td>%.0f/s</td>", value / duration);
			}
			fputs("</tr>\n", page->out);
		}
	}
	fputs("</tbody></table></div></details>\n", page->out);
}

void html_bars(const struct page *page, const struct group *group)
{
	struct segment segment[SEGMENTS_MAX];
	double most = 0;

	for (unsigned s = 0; s < group->systems; s++) {
		const json_t *run =
			results_typical(page->results, text_of(group->system[s], "key"), group);
		double cores = cores_of(segment, segments_of(run, segment));

		most = cores > most ? cores : most;
	}
	if (most <= 0)
		return;
	fputs("<h4>CPU, by who used it</h4>\n", page->out);
	key_put(page, group);
	fputs("<div class=\"bars\">\n", page->out);
	for (unsigned s = 0; s < group->systems; s++)
		bar_put(page, group, group->system[s], most);
	fputs("</div>\n", page->out);
	parties_put(page, group);
}

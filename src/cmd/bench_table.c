/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <lab/report/words.h>

#include <cmd/bench_table.h>
#include <cmd/lines.h>
#include <cmd/table.h>

enum {
	COLUMNS_WIDE = 150, /* from here on there is room for more */
	NAME_LEAST = 12,
	CELL_MAX = 64,
	GAP = 2, /* as table_print has it */
};

/* A column: its title, and what it says of a system. */
struct place {
	const struct results *results;
	const struct group *group;
	const json_t *system;
	struct row row;
};

struct column {
	const char *title;
	void (*cell)(const struct place *place, char text[CELL_MAX], enum colour *colour);
};

__attribute__((format(printf, 2, 3))) static void cell_say(char text[CELL_MAX], const char *format,
							   ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, CELL_MAX, format, arguments);
	va_end(arguments);
}

static void cell_rate(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	const struct metric *m = &place->row.rate;
	char value[WORDS_MAX], spread[WORDS_MAX];

	(void)colour;
	if (m->n)
		cell_say(text, "%s%s", count_text(m->median, value), spread_text(m, spread));
}

static void cell_interval(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	const struct metric *m = &place->row.rate;
	char low[WORDS_MAX], high[WORDS_MAX];

	(void)colour;
	if (m->n > 1 && !m->pooled)
		cell_say(text, "%s..%s", count_text(m->low, low), count_text(m->high, high));
}

/* In us, so that a column can be compared by eye. */
static void cell_latency(const struct metric *m, char text[CELL_MAX])
{
	double us = m->median / 1e3;

	if (m->n)
		cell_say(text, "%.*f", us < 99.95 ? 1 : 0, us);
}

static void cell_p50(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	cell_latency(&place->row.p50, text);
}

static void cell_p90(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	cell_latency(&place->row.p90, text);
}

static void cell_p99(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	cell_latency(&place->row.p99, text);
}

static void cell_p999(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	cell_latency(&place->row.p999, text);
}

static void cell_max(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	cell_latency(&place->row.max, text);
}

static void cell_lost(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	char lost[WORDS_MAX];

	if (!place->row.counted)
		return;
	cell_say(text, "%s", lost_text(&place->row, lost));
	*colour = place->row.lost > 0 ? COLOUR_WARN : COLOUR_NONE;
}

static void cell_cores(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	if (place->row.cores.n)
		cell_say(text, "%.2f", place->row.cores.median);
}

static void cell_cost(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	char value[WORDS_MAX];

	(void)colour;
	if (place->row.cost.n)
		cell_say(text, "%s", count_text(place->row.cost.median, value));
}

static void cell_polled(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	if (place->row.polled.n)
		cell_say(text, "%.1f", place->row.polled.median);
}

static void cell_gro(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	(void)colour;
	if (place->row.gro.n)
		cell_say(text, "%.1f", place->row.gro.median);
}

static void cell_verdict(const struct place *place, const char *path, char text[CELL_MAX],
			 enum colour *colour)
{
	const json_t *comparison = results_comparison(place->results, text_of(place->system, "key"),
						      text_of(place->group->workload, "key"), path);
	enum verdict verdict = verdict_of(comparison);
	char ratio[WORDS_MAX];
	double value;

	if (place->system == place->group->base)
		cell_say(text, "base");
	else if (path_number(comparison, "ratio", &value))
		cell_say(text, "%s %s", ratio_text(value, ratio), verdict_names[verdict]);
	*colour = verdict == VERDICT_WORSE && comparison ? COLOUR_BAD : COLOUR_NONE;
}

static void cell_rate_verdict(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	if (*place->group->rate)
		cell_verdict(place, place->group->rate, text, colour);
}

static void cell_p99_verdict(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	char path[RESULTS_PATH_MAX + 8];

	if (!*place->group->latency)
		return;
	snprintf(path, sizeof(path), "%s.p99", place->group->latency);
	cell_verdict(place, path, text, colour);
}

static void cell_cost_verdict(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	cell_verdict(place, "cpu.ns_per_operation.total", text, colour);
}

static void cell_runs(const struct place *place, char text[CELL_MAX], enum colour *colour)
{
	const struct row *row = &place->row;
	unsigned wrong = row->invalid + row->failed;

	if (wrong)
		cell_say(text, "%u/%u", row->valid, row->valid + wrong);
	else
		cell_say(text, "%u", row->valid);
	*colour = wrong ? COLOUR_WARN : COLOUR_NONE;
}

/* Where there is room: */
enum wanted { ALWAYS, WIDE };

static const struct {
	enum wanted wanted;
	struct column column;
} columns_all[] = {
	{ALWAYS, {"", cell_rate}}, /* the title is the rate's own */
	{WIDE, {"95%", cell_interval}},
	{ALWAYS, {"p50", cell_p50}},
	{WIDE, {"p90", cell_p90}},
	{ALWAYS, {"p99", cell_p99}},
	{ALWAYS, {"p99.9", cell_p999}},
	{WIDE, {"max", cell_max}},
	{ALWAYS, {"lost", cell_lost}},
	{ALWAYS, {"cores", cell_cores}},
	{ALWAYS, {"ns/op", cell_cost}},
	{ALWAYS, {"p/poll", cell_polled}},
	{ALWAYS, {"GRO", cell_gro}},
	{ALWAYS, {"<rate", cell_rate_verdict}},
	{ALWAYS, {"<p99", cell_p99_verdict}},
	{WIDE, {"<CPU", cell_cost_verdict}},
	{ALWAYS, {"n", cell_runs}},
};

enum { CELLS = sizeof(columns_all) / sizeof(*columns_all) };

/* Of one table: all cells, in the order of rows. */
struct sheet {
	unsigned rows, runs; /* runs: as many for each row, or 0 */
	bool lossless;
	struct line {
		const char *name;
		char cell[CELLS][CELL_MAX];
		enum colour colour[CELLS];
	} * line;
	bool shown[CELLS];
	char title[CELLS][CELL_MAX];
};

/* Short ones, for a terminal. */
static const char *title_of(const struct group *group)
{
	return strstr(group->rate, "transactions") ? "trans/s"
	       : strstr(group->rate, "_mbit")	   ? "Mbit/s"
						   : "a second";
}

/* What is alike in all rows is said above the table. */
static void sheet_shorten(struct sheet *sheet)
{
	for (unsigned c = 0; c < CELLS; c++) {
		if (columns_all[c].column.cell == cell_lost && sheet->lossless)
			sheet->shown[c] = false;
		if (columns_all[c].column.cell == cell_runs && sheet->runs)
			sheet->shown[c] = false;
	}
}

/* A column in which nobody has anything is left out. */
static void sheet_fill(const struct results *results, const struct group *group, bool wide,
		       struct sheet *sheet)
{
	for (unsigned c = 0; c < CELLS; c++)
		snprintf(sheet->title[c], CELL_MAX, "%s",
			 c ? columns_all[c].column.title : title_of(group));
	sheet->lossless = true;
	for (unsigned s = 0; s < group->systems; s++) {
		struct place place = {results, group, group->system[s], {.valid = 0}};
		struct line *line = &sheet->line[sheet->rows++];

		results_row(results, group, group->system[s], &place.row);
		line->name = system_name(group->system[s]);
		sheet->lossless &= place.row.lost <= 0 && place.row.counted;
		if (!s)
			sheet->runs = place.row.valid;
		if (place.row.invalid || place.row.failed || sheet->runs != place.row.valid)
			sheet->runs = 0;
		for (unsigned c = 0; c < CELLS; c++) {
			columns_all[c].column.cell(&place, line->cell[c], &line->colour[c]);
			/* That one is the base is no news alone. */
			sheet->shown[c] |= *line->cell[c] && strcmp(line->cell[c], "base") &&
					   (wide || columns_all[c].wanted == ALWAYS);
			if (!*line->cell[c])
				cell_say(line->cell[c], "-");
		}
	}
	sheet_shorten(sheet);
}

static unsigned sheet_width(const struct sheet *sheet)
{
	unsigned all = 0;

	for (unsigned c = 0; c < CELLS; c++) {
		const char *title = sheet->title[c];
		unsigned width = lines_width(title + (*title == '<'));

		if (!sheet->shown[c])
			continue;
		for (unsigned r = 0; r < sheet->rows; r++) {
			unsigned n = lines_width(sheet->line[r].cell[c]);

			width = n > width ? n : width;
		}
		all += width + GAP;
	}
	return all;
}

static void sheet_print(const struct sheet *sheet, unsigned columns, FILE *out)
{
	const char *titles[CELLS + 1] = {"<system"};
	unsigned n = 1, width = sheet_width(sheet);
	unsigned room = columns > width + NAME_LEAST ? columns - width : NAME_LEAST;
	struct table *table;
	char name[256];

	for (unsigned c = 0; c < CELLS; c++) {
		if (sheet->shown[c])
			titles[n++] = sheet->title[c];
	}
	table = table_create(n, titles);
	for (unsigned r = 0; table && r < sheet->rows; r++) {
		table_cell(table, COLOUR_NONE, "%s",
			   lines_cut(sheet->line[r].name, room, name, sizeof(name)));
		for (unsigned c = 0; c < CELLS; c++) {
			if (sheet->shown[c])
				table_cell(table, sheet->line[r].colour[c], "%s",
					   sheet->line[r].cell[c]);
		}
	}
	table_print(table, out);
}

static const char *last_name(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : path;
}

static void alike_print(const struct group *group, const struct sheet *sheet, FILE *out)
{
	const char *between = "  (";

	if (*group->latency) {
		fprintf(out, "%s%s time in us", between, last_name(group->latency));
		between = ", ";
	}
	if (sheet->runs) {
		fprintf(out, "%s%u repeat%s", between, sheet->runs, sheet->runs == 1 ? "" : "s");
		between = ", ";
	}
	if (sheet->lossless) {
		fprintf(out, "%snone lost", between);
		between = ", ";
	}
	fprintf(out, "%s\n", *between == ',' ? ")" : "");
}

/* The last of a group's sentences, on cores, is what the table does not say. */
static void group_print(const struct results *results, const struct group *group, unsigned columns,
			FILE *out)
{
	struct sheet sheet = {.line = calloc(group->systems, sizeof(*sheet.line))};
	bool coloured = colour_wanted(out);
	json_t *sentences = group_sentences(results, group);
	const char *last =
		json_string_value(json_array_get(sentences, json_array_size(sentences) - 1));

	fprintf(out, "%s%s%s%s%s", coloured ? "\033[1m" : "", workload_name(group->workload),
		*group->scenario ? " · " : "", group->scenario, coloured ? "\033[0m" : "");
	if (sheet.line) {
		sheet_fill(results, group, columns >= COLUMNS_WIDE, &sheet);
		alike_print(group, &sheet, out);
		sheet_print(&sheet, columns, out);
	}
	report_steps_table(results, group, out);
	if (last && strstr(last, "qual cores"))
		lines_say(out, columns, 0, "%s", last);
	fputc('\n', out);
	json_decref(sentences);
	free(sheet.line);
}

static void skipped_print(const json_t *results, unsigned columns, FILE *out)
{
	const json_t *system;
	size_t i;

	json_array_foreach(json_object_get(results, "systems"), i, system)
	{
		if (*text_of(system, "skipped"))
			lines_say(out, columns, 2, "Skipped: %s: %s.", system_name(system),
				  text_of(system, "skipped"));
	}
}

static void lines_print(const json_t *lines, const char *lead, unsigned columns, FILE *out)
{
	const json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		const char *text = json_string_value(line);

		if (text)
			lines_say(out, columns, 2, "%s%s", lead, text);
	}
}

static void head_print(const json_t *results, unsigned columns, FILE *out)
{
	const char *title = text_of(results, "title"), *question = text_of(results, "question");

	lines_say(out, columns, 0, "%s%s%s (%s length)", text_of(results, "name"),
		  *title ? ": " : "", title, text_of(results, "length"));
	if (*question)
		lines_say(out, columns, 0, "%s", question);
	fputc('\n', out);
}

static const char legend[] =
	"rate, p99: the ratio to the base, and whether that is better or worse; none: no "
	"difference; "
	"unknown: one repeat, or too few samples in each. cores: CPUs' worth that all parties "
	"used; "
	"ns/op: their CPU time per operation; p/poll: packets a poll; -: not measured, or too few "
	"samples.";

void report_table(const json_t *results, FILE *out)
{
	unsigned columns = lines_columns(out);
	struct results of;
	json_t *findings, *trust;

	if (results_open(results, &of)) {
		fputs("(out of memory: no table)\n", out);
		return;
	}
	head_print(results, columns, out);
	for (unsigned g = 0; g < of.groups; g++)
		group_print(&of, &of.group[g], columns, out);
	if (of.groups)
		lines_say(out, columns, 2, "%s", legend);
	skipped_print(results, columns, out);
	lines_print(json_object_get(results, "scaled"), "Scaled: ", columns, out);
	lines_print(json_object_get(results, "notes"), "Note: ", columns, out);
	fputc('\n', out);
	findings = results_findings(&of);
	trust = results_trust(&of);
	lines_print(findings, "", columns, out);
	lines_print(trust, "", columns, out);
	json_decref(findings);
	json_decref(trust);
	results_close(&of);
}

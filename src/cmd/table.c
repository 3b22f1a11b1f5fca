/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmd/table.h>

#define GAP 2 /* blanks between columns */

struct cell {
	char *text;
	enum colour colour;
};

struct table {
	unsigned columns;
	const char *const *titles;
	struct cell *cells;
	size_t n, room;
	bool short_of_memory;
};

bool colour_wanted(FILE *out)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb");
}

struct table *table_create(unsigned columns, const char *const *titles)
{
	struct table *table = calloc(1, sizeof(*table));

	if (table) {
		table->columns = columns;
		table->titles = titles;
	}
	return table;
}

void table_cell(struct table *table, enum colour colour, const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	if (table->n == table->room) {
		size_t room = table->room * 2 + 64;
		struct cell *cells = realloc(table->cells, room * sizeof(*cells));

		if (!cells) {
			table->short_of_memory = true;
			return;
		}
		table->cells = cells;
		table->room = room;
	}
	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	table->short_of_memory |= !text;
	table->cells[table->n++] = (struct cell){text, colour};
}

static const char *title(const struct table *table, unsigned column)
{
	const char *text = table->titles[column];

	return text + (*text == '<');
}

/* Characters, not bytes: those that go on one are 10xxxxxx. */
static size_t text_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void cell_print(const struct table *table, unsigned column, const char *text, int width,
		       enum colour colour, bool coloured, FILE *out)
{
	static const char *const start[] = {
		[COLOUR_NONE] = "",
		[COLOUR_HEAD] = "\033[1m",
		[COLOUR_WARN] = "\033[33m",
		[COLOUR_BAD] = "\033[31m",
	};
	bool left = *table->titles[column] == '<';
	bool last = column + 1 == table->columns;
	int pad = width - (int)text_width(text);

	coloured = coloured && colour != COLOUR_NONE;
	fprintf(out, "%*s%s%s%s", left ? 0 : pad, "", coloured ? start[colour] : "", text,
		coloured ? "\033[0m" : "");
	if (last)
		fputc('\n', out);
	else
		fprintf(out, "%*s", (left ? pad : 0) + GAP, "");
}

static int column_width(const struct table *table, unsigned column)
{
	size_t width = text_width(title(table, column));

	for (size_t i = column; i < table->n; i += table->columns) {
		size_t n = table->cells[i].text ? text_width(table->cells[i].text) : 0;

		width = n > width ? n : width;
	}
	return (int)width;
}

static bool titled(const struct table *table)
{
	for (unsigned c = 0; c < table->columns; c++)
		if (*title(table, c))
			return true;
	return false;
}

static void rows_print(const struct table *table, FILE *out)
{
	bool coloured = colour_wanted(out);
	int width[TABLE_COLUMNS_MAX];

	for (unsigned c = 0; c < table->columns; c++)
		width[c] = column_width(table, c);
	for (unsigned c = 0; c < table->columns && titled(table); c++)
		cell_print(table, c, title(table, c), width[c], COLOUR_HEAD, coloured, out);
	for (size_t i = 0; i < table->n; i++) {
		unsigned c = (unsigned)(i % table->columns);
		const char *text = table->cells[i].text;

		cell_print(table, c, text ? text : "", width[c], table->cells[i].colour, coloured,
			   out);
	}
}

void table_print(struct table *table, FILE *out)
{
	if (!table)
		return;
	if (table->n)
		rows_print(table, out);
	if (table->short_of_memory)
		fputs("(out of memory: not all is shown)\n", out);
	for (size_t i = 0; i < table->n; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
}

const char *duration_text(int64_t ns, char text[DURATION_MAX])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = (double)ns;
	unsigned unit = 0;

	while (value >= 1000 && unit < 3) {
		value /= 1000;
		unit++;
	}
	snprintf(text, DURATION_MAX, "%.*f %s", value < 10 && unit > 1 ? 2 : 0, value, units[unit]);
	return text;
}

const char *size_text(uint64_t bytes, char text[SIZE_MAX_TEXT])
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 1000 && unit < 6) {
		value /= 1000;
		unit++;
	}
	snprintf(text, SIZE_MAX_TEXT, "%.*f %s", unit ? 1 : 0, value, units[unit]);
	return text;
}

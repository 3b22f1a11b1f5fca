/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lab/report/html.h"

static const char *entity_of(char c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

/* Control characters have no place in a page, and some end it. */
static void letter_put(FILE *out, char c)
{
	const char *entity = entity_of(c);

	if (entity)
		fputs(entity, out);
	else if ((unsigned char)c >= ' ' || c == '\n' || c == '\t')
		fputc(c, out);
}

void html_text(FILE *out, const char *text)
{
	for (; *text; text++)
		letter_put(out, *text);
}

/* One that stands alone: after it comes no letter. */
static bool unit_ends(const char *at)
{
	return strchr(",;. )", *at);
}

/* How many letters of text are a unit behind its blank, or 0. */
static size_t unit_length(const char *text)
{
	static const char *const units[] = {" ns", " us", " ms", " s", " Mbit/s"};

	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++) {
		size_t n = strlen(units[i]);

		if (!strncmp(text, units[i], n) && unit_ends(text + n))
			return n;
	}
	return 0;
}

void html_figure(FILE *out, const char *text)
{
	bool digit = false; /* just before */

	while (*text) {
		size_t unit = digit ? unit_length(text) : 0;

		if (unit) {
			if (text[1] == 'u')
				fputs("\u00a0µs", out);
			else
				fprintf(out, "\u00a0%.*s", (int)unit - 1, text + 1);
			text += unit;
			digit = false;
		} else if (digit && *text == 'x' && unit_ends(text + 1)) {
			fputs("×", out);
			text++;
		} else {
			digit = *text >= '0' && *text <= '9';
			letter_put(out, *text++);
		}
	}
}

void html_element(FILE *out, const char *tag, const char *text)
{
	fprintf(out, "<%s>", tag);
	html_text(out, text);
	fprintf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

static bool is_flat(const json_t *o)
{
	return !json_is_object(o) && !json_is_array(o);
}

static void scalar_put(FILE *out, const json_t *o)
{
	if (json_is_string(o))
		html_text(out, json_string_value(o));
	else if (json_is_integer(o))
		fprintf(out, "%lld", (long long)json_integer_value(o));
	else if (json_is_real(o))
		fprintf(out, "%.6g", json_real_value(o));
	else if (json_is_boolean(o))
		fputs(json_is_true(o) ? "yes" : "no", out);
	else
		fputs("<span class=\"unknown\">not known</span>", out);
}

static bool all_flat(const json_t *array)
{
	const json_t *element;
	size_t i;

	json_array_foreach(array, i, element)
	{
		if (!is_flat(element))
			return false;
	}
	return true;
}

/* Objects in which nothing is nested, with the keys of the first: rows. */
static bool is_tabular(const json_t *array)
{
	const json_t *element, *value;
	const char *key;
	size_t i;

	json_array_foreach(array, i, element)
	{
		if (!json_is_object(element) || !json_object_size(element))
			return false;
		json_object_foreach((json_t *)element, key, value)
		{
			if (!is_flat(value) && !(json_is_array(value) && all_flat(value)))
				return false;
		}
	}
	return json_array_size(array);
}

static void list_put(FILE *out, const json_t *array)
{
	const json_t *element;
	size_t i;

	json_array_foreach(array, i, element)
	{
		fputs(i ? ", " : "", out);
		scalar_put(out, element);
	}
	if (!json_array_size(array))
		fputs("none", out);
}

static void rows_put(FILE *out, const json_t *array)
{
	const json_t *row, *value, *first = json_array_get(array, 0);
	const char *key;
	size_t i;

	fputs("<div class=\"scroll\"><table class=\"plain\"><thead><tr>", out);
	json_object_foreach((json_t *)first, key, value) html_element(out, "th", key);
	fputs("</tr></thead><tbody>", out);
	json_array_foreach(array, i, row)
	{
		fputs("<tr>", out);
		json_object_foreach((json_t *)first, key, value)
		{
			fputs("<td>", out);
			html_json(out, json_object_get(row, key));
			fputs("</td>", out);
		}
		fputs("</tr>", out);
	}
	fputs("</tbody></table></div>", out);
}

static void object_put(FILE *out, const json_t *o)
{
	const json_t *value;
	const char *key;

	fputs("<table class=\"keys\"><tbody>", out);
	json_object_foreach((json_t *)o, key, value)
	{
		fputs("<tr>", out);
		html_element(out, "th", key);
		fputs("<td>", out);
		html_json(out, value);
		fputs("</td></tr>", out);
	}
	fputs("</tbody></table>", out);
}

void html_json(FILE *out, const json_t *o)
{
	const json_t *element;
	size_t i;

	if (json_is_object(o)) {
		object_put(out, o);
	} else if (!json_is_array(o)) {
		scalar_put(out, o);
	} else if (all_flat(o)) {
		list_put(out, o);
	} else if (is_tabular(o)) {
		rows_put(out, o);
	} else {
		json_array_foreach(o, i, element) html_json(out, element);
	}
}

void html_lines(FILE *out, const json_t *lines, const char *tag)
{
	const json_t *line;
	size_t i;

	json_array_foreach(lines, i, line)
	{
		if (!json_is_string(line))
			continue;
		fprintf(out, "<%s>", tag);
		html_figure(out, json_string_value(line));
		fprintf(out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
	}
}

void html_commands(FILE *out, const json_t *commands)
{
	const json_t *command;
	size_t i;

	fputs("<pre>", out);
	json_array_foreach(commands, i, command)
	{
		if (json_is_string(command)) {
			html_text(out, json_string_value(command));
			fputc('\n', out);
		}
	}
	fputs("</pre>\n", out);
}

unsigned system_number(const struct results *results, const json_t *system)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(results->json, "systems"), i, one)
	{
		if (one == system)
			return (unsigned)i;
	}
	return 0;
}

void html_system_class(FILE *out, unsigned number)
{
	fprintf(out, "c%u d%u", number % PLOT_COLOURS, number / PLOT_COLOURS % 4);
}

void html_system(const struct page *page, const json_t *system)
{
	unsigned number = system_number(page->results, system);

	fputs("<span class=\"chip ", page->out);
	html_system_class(page->out, number);
	fprintf(page->out, "\">%u</span> ", number + 1);
	html_text(page->out, system_name(system));
}

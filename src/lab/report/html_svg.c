/* SPDX-License-Identifier: BSD-2-Clause */
/* What gnuplot drew, made part of a page: the page's colours, no ids, and what things are called.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/report/html.h"

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Behind `end`, or the end of the text. */
static const char *behind(const char *text, const char *end)
{
	const char *found = strstr(text, end);

	return found ? found + strlen(end) : text + strlen(text);
}

/* Groups that hold nothing are half of what gnuplot writes. */
static const char *empty_skip(const char *at)
{
	const char *inside = strchr(at, '>');

	if (!inside)
		return NULL;
	inside++;
	inside += strspn(inside, "\n\t ");
	return begins(inside, "</g>") ? inside + 4 : NULL;
}

/* "rgb( 16,  16,  16)", or without blanks. */
static const char *colour_put(FILE *out, const char *at)
{
	long number = strtol(at + 4, NULL, 10);

	if (number == PLOT_INK)
		fputs("var(--ink-soft)", out);
	else if (number == PLOT_GRID)
		fputs("var(--grid)", out);
	else if (number >= PLOT_COLOUR && number < PLOT_COLOUR + PLOT_COLOURS)
		fprintf(out, "var(--c%ld)", number - PLOT_COLOUR);
	else
		fputs("var(--ink)", out);
	return behind(at, ")");
}

/* <g id="p3_plot_2" ><title>…</title> */
static const char *curve_put(FILE *out, const char *at, const struct curves *curves)
{
	const char *number = strstr(at, "_plot_");
	unsigned long i = number ? strtoul(number + 6, NULL, 10) - 1 : curves->n;

	if (i >= curves->n) {
		fputs("<g>", out);
	} else {
		fprintf(out, "<g class=\"curve of%u\"><title>", curves->curve[i].number);
		html_text(out, curves->curve[i].name);
		fputs(curves->curve[i].service ? ", service time</title>" : "</title>", out);
	}
	return behind(at, "</title>");
}

static const char *root_put(FILE *out, const char *at, const char *title)
{
	const char *box = strstr(at, "viewBox=\""), *end;

	fputs("<svg role=\"img\" aria-label=\"", out);
	html_text(out, title);
	fputs("\" ", out);
	if (box) {
		end = behind(box + 9, "\"");
		fwrite(box, 1, (size_t)(end - box), out);
	}
	fputs(">\n", out);
	return behind(at, ">");
}

void html_svg(FILE *out, const char *svg, const char *title, const struct curves *curves)
{
	const char *at = root_put(out, svg, title), *next;

	while (*at) {
		if (begins(at, "<defs>"))
			at = behind(at, "</defs>");
		else if (begins(at, "<desc>"))
			at = behind(at, "</desc>");
		else if (begins(at, "<title>"))
			at = behind(at, "</title>");
		else if (begins(at, "<g id=\"gnuplot_canvas\"")) {
			fputs("<g>", out);
			at = behind(at, ">");
		} else if (begins(at, "<g id=\"p"))
			at = curve_put(out, at, curves);
		else if (begins(at, "<g ") && (next = empty_skip(at)))
			at = next;
		else if (begins(at, "rgb("))
			at = colour_put(out, at);
		else if (*at == '\t' || (*at == '\n' && at[1] == '\n'))
			at++;
		else
			fputc(*at++, out);
	}
	fputc('\n', out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * html: the parts of report.html. Whatever is of the results goes out by html_text, so that a name
 * is never taken for a tag.
 */
#ifndef LAB_REPORT_HTML_H
#define LAB_REPORT_HTML_H

#include <stdio.h>

#include "lab/report/plot.h"
#include "lab/report/results.h"
#include "lab/report/words.h"

/* A line of a plot. */
struct curve {
	const char *name;
	unsigned number; /* the system's */
	bool service;	 /* its service time, beside its response time */
};

struct curves {
	unsigned n;
	struct curve *curve;
};

/* A page that is made. */
struct page {
	FILE *out;
	const struct results *results;
	struct plots plots;
	struct curves *curves;	      /* of each plot */
	char undrawn[ERROR_TEXT_MAX]; /* why there are no plots; "": there are */
	struct {
		unsigned latency, rate, tail; /* or NO_PLOT */
		const char *tail_caption;
	} * plot; /* of each group */
};

#define NO_PLOT (~0u)

/* Escaped, for text and for attributes in quotes; "us" becomes "µs" in html_figure. */
void html_text(FILE *out, const char *text);
void html_figure(FILE *out, const char *text);
/* <tag>text</tag>; tag may have attributes: "td class=\"n\"". */
void html_element(FILE *out, const char *tag, const char *text);
/* Any JSON, as nested tables; what is null is "not known". */
void html_json(FILE *out, const json_t *o);
/* A list of paragraphs or commands. */
void html_lines(FILE *out, const json_t *lines, const char *tag);
void html_commands(FILE *out, const json_t *commands);

/* By its place in the results, so that a system looks the same wherever it is. */
unsigned system_number(const struct results *results, const json_t *system);
void html_system(const struct page *page, const json_t *system);
/* "c3 d1": its colour and its dashes. */
void html_system_class(FILE *out, unsigned number);

/* html_svg.c: one that gnuplot drew, with its curves' systems in their order. */
void html_svg(FILE *out, const char *svg, const char *title, const struct curves *curves);

/* html_plots.c */
void page_plots_draw(struct page *page);
void html_group_plots(const struct page *page, unsigned group);
void page_plots_close(struct page *page);

/* page.css and page.js, and the script's hash for the page's policy: made by embed. */
extern const char page_style[], page_script[], page_script_hash[];

/* Sections, in the page's order. */
void html_summary(const struct page *page);			     /* html_summary.c */
void html_facts(const struct page *page);			     /* html.c: when and where */
void html_glance(const struct page *page);			     /* html_summary.c */
void html_groups(const struct page *page);			     /* html_tables.c */
void html_bars(const struct page *page, const struct group *group);  /* html_bars.c */
void html_steps(const struct page *page, const struct group *group); /* html_steps.c */
void html_faults(const struct page *page);  /* html_details.c: skipped, invalid, failed */
void html_systems(const struct page *page); /* html_setup.c: how each was set up */
void html_machine(const struct page *page); /* html_details.c: environment, topology */
void html_repeat(const struct page *page);  /* html_details.c: specification, commands */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plot: drawings by gnuplot, as SVG to be put into a page. One child draws all of them; it is told
 * numbers only, never a name of anything.
 */
#ifndef LAB_REPORT_PLOT_H
#define LAB_REPORT_PLOT_H

#include <stdio.h>

#include <napier/error.h>

/* Colours by which a script says what the page's style decides: "#010101" and so on. */
enum {
	PLOT_INK = 1, /* axes and what is written on them */
	PLOT_GRID = 2,
	PLOT_COLOUR = 16, /* and on: colours of systems, PLOT_COLOURS of them */
	PLOT_COLOURS = 10,
};

struct plots {
	FILE *script;
	char *text;
	size_t size;
	unsigned n;
	char **svg; /* of each; NULL before plots_draw */
};

/* 0, or -ENOMEM. */
int plots_open(struct plots *plots);
/*
 * The next one's number, from 0; what describes it goes to script until the next. Its ids begin
 * with "pN"; it is `width` by `height`.
 */
unsigned plot_begin(struct plots *plots, unsigned width, unsigned height);
/*
 * Without anything to draw: 0. -ENOENT: gnuplot is not installed. -ETIMEDOUT, -EIO: it hung or said
 * what is in err. Nothing is left of it.
 */
int plots_draw(struct plots *plots, struct error *err);
void plots_close(struct plots *plots);

/* The program that draws, and how long it may take. For tests. */
extern const char *plot_program;
extern unsigned plot_limit_s;

#endif

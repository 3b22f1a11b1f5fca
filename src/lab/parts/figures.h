/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * figures: a table of what was measured. Rows say what was varied (their labels), columns what was
 * measured; each cell is a series over the rounds, so each figure has its spread.
 */
#ifndef LAB_PARTS_FIGURES_H
#define LAB_PARTS_FIGURES_H

#include <stdbool.h>

#include "lab/histogram.h"
#include "lab/series.h"

enum {
	FIGURES_COLUMNS_MAX = 12,
	FIGURES_LABELS_MAX = 3,
	FIGURES_LABEL_MAX = 40,
	FIGURES_ROWS_MAX = 48,
	FIGURES_NOTES_MAX = 12,
	FIGURES_NOTE_MAX = 320,
};

struct figures_column {
	const char *key;   /* for JSON: "cpu_ns_per_event" */
	const char *title; /* for people: "CPU ns/event" */
	unsigned decimals;
};

/* What is measured, and in words. Constant; it outlives the figures made of it. */
struct figures_form {
	const char *key;
	const char *title; /* lines above the table */
	struct {
		const char *key, *title;
	} label[FIGURES_LABELS_MAX];
	struct figures_column column[FIGURES_COLUMNS_MAX]; /* up to one without a key */
};

struct figure {
	struct series series;
	/* A percentile of all rounds together: one round alone may have too few samples for it. */
	bool pooled;
	double value;
};

struct figures_row {
	char label[FIGURES_LABELS_MAX][FIGURES_LABEL_MAX];
	struct figure cell[FIGURES_COLUMNS_MAX];
};

struct figures {
	const struct figures_form *form;
	unsigned rows;
	struct figures_row row[FIGURES_ROWS_MAX];
	unsigned notes;
	char note[FIGURES_NOTES_MAX][FIGURES_NOTE_MAX];
};

/* For free(). NULL: no memory. */
struct figures *figures_create(const struct figures_form *form);
/* The row with these labels ("" for those that the form has not), made when it is not there. */
struct figures_row *figures_row(struct figures *f, const char *a, const char *b, const char *c);
void figures_add(struct figures *f, struct figures_row *row, const char *column, double value);
/* The percentile of this round, where it has enough samples, scaled. */
void figures_add_percentile(struct figures *f, struct figures_row *row, const char *column,
			    const struct histogram *round, uint32_t millionths, double scale);
/* The same of all rounds together: the figure that is shown. */
void figures_pool_percentile(struct figures *f, struct figures_row *row, const char *column,
			     const struct histogram *all, uint32_t millionths, double scale);
/* A line below the table. The same one twice is one. */
__attribute__((format(printf, 2, 3))) void figures_note(struct figures *f, const char *format, ...);

/* False: nothing was measured there. */
bool figure_value(const struct figure *figure, double *out);

#endif

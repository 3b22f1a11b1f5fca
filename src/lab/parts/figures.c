/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/parts/figures.h"

struct figures *figures_create(const struct figures_form *form)
{
	struct figures *f = calloc(1, sizeof(*f));

	if (f)
		f->form = form;
	return f;
}

struct figures_row *figures_row(struct figures *f, const char *a, const char *b, const char *c)
{
	const char *const label[FIGURES_LABELS_MAX] = {a, b, c};
	struct figures_row *row;

	for (unsigned i = 0; i < f->rows; i++) {
		row = &f->row[i];
		if (!strcmp(row->label[0], a) && !strcmp(row->label[1], b) &&
		    !strcmp(row->label[2], c))
			return row;
	}
	assert(f->rows < FIGURES_ROWS_MAX); /* forms are made so that their rows fit */
	row = &f->row[f->rows++];
	for (unsigned i = 0; i < FIGURES_LABELS_MAX; i++)
		snprintf(row->label[i], FIGURES_LABEL_MAX, "%s", label[i]);
	return row;
}

static struct figure *cell_of(struct figures *f, struct figures_row *row, const char *column)
{
	for (unsigned i = 0; i < FIGURES_COLUMNS_MAX && f->form->column[i].key; i++) {
		if (!strcmp(f->form->column[i].key, column))
			return &row->cell[i];
	}
	assert(!"a column of the form");
	return &row->cell[0];
}

void figures_add(struct figures *f, struct figures_row *row, const char *column, double value)
{
	series_add(&cell_of(f, row, column)->series, value);
}

void figures_add_percentile(struct figures *f, struct figures_row *row, const char *column,
			    const struct histogram *round, uint32_t millionths, double scale)
{
	uint64_t value;

	if (histogram_percentile(round, millionths, &value))
		figures_add(f, row, column, (double)value * scale);
}

void figures_pool_percentile(struct figures *f, struct figures_row *row, const char *column,
			     const struct histogram *all, uint32_t millionths, double scale)
{
	struct figure *cell = cell_of(f, row, column);
	uint64_t value;

	if (!histogram_percentile(all, millionths, &value))
		return;
	cell->pooled = true;
	cell->value = (double)value * scale;
}

void figures_note(struct figures *f, const char *format, ...)
{
	char text[FIGURES_NOTE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (unsigned i = 0; i < f->notes; i++) {
		if (!strcmp(f->note[i], text))
			return;
	}
	if (f->notes < FIGURES_NOTES_MAX)
		strcpy(f->note[f->notes++], text);
}

bool figure_value(const struct figure *figure, double *out)
{
	*out = figure->pooled ? figure->value : series_median(&figure->series);
	return figure->pooled || figure->series.n;
}

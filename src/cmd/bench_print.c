/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmd/bench_print.h>
#include <cmd/table.h>

static unsigned labels_count(const struct figures_form *form)
{
	unsigned n = 0;

	while (n < FIGURES_LABELS_MAX && form->label[n].key)
		n++;
	return n;
}

static unsigned columns_count(const struct figures_form *form)
{
	unsigned n = 0;

	while (n < FIGURES_COLUMNS_MAX && form->column[n].key)
		n++;
	return n;
}

/* Half of what lies between the ends of the rounds, in percent of the median; 999 at most. */
static double spread_of(const struct series *s)
{
	double median = series_median(s);
	double spread = median > 0 ? 50 * (series_max(s) - series_min(s)) / median : 0;

	return spread < 999 ? spread : 999;
}

/* "412 ±3%" */
static void figure_cell(struct table *table, const struct figures_column *column,
			const struct figure *figure)
{
	const struct series *s = &figure->series;
	int decimals = (int)column->decimals;
	double value;

	if (!figure_value(figure, &value))
		table_cell(table, COLOUR_NONE, "n/a");
	else if (s->n)
		table_cell(table, COLOUR_NONE, "%.*f ±%.0f%%", decimals, value, spread_of(s));
	else
		table_cell(table, COLOUR_NONE, "%.*f", decimals, value);
}

void bench_print(const struct figures *f, FILE *out)
{
	unsigned labels = labels_count(f->form), columns = columns_count(f->form);
	char left[FIGURES_LABELS_MAX][FIGURES_LABEL_MAX];
	const char *titles[FIGURES_LABELS_MAX + FIGURES_COLUMNS_MAX];
	struct table *table;

	for (unsigned i = 0; i < labels; i++) {
		snprintf(left[i], sizeof(left[i]), "<%s", f->form->label[i].title);
		titles[i] = left[i];
	}
	for (unsigned i = 0; i < columns; i++)
		titles[labels + i] = f->form->column[i].title;
	fprintf(out, "%s\n\n", f->form->title);
	table = table_create(labels + columns, titles);
	for (unsigned r = 0; table && r < f->rows; r++) {
		for (unsigned i = 0; i < labels; i++)
			table_cell(table, COLOUR_NONE, "%s", f->row[r].label[i]);
		for (unsigned i = 0; i < columns; i++)
			figure_cell(table, &f->form->column[i], &f->row[r].cell[i]);
	}
	table_print(table, out);
	for (unsigned i = 0; i < f->notes; i++)
		fprintf(out, "%s\n", f->note[i]);
}

static json_t *figure_json(const struct figure *figure)
{
	json_t *rounds = json_array();
	double value;

	for (unsigned i = 0; i < figure->series.n; i++)
		json_array_append_new(rounds, json_real(figure->series.value[i]));
	if (!figure_value(figure, &value)) {
		json_decref(rounds);
		return json_null();
	}
	return json_pack("{s:f, s:f, s:f, s:o}", "value", value, "min", series_min(&figure->series),
			 "max", series_max(&figure->series), "rounds", rounds);
}

json_t *bench_json(const struct figures *f)
{
	json_t *rows = json_array(), *notes = json_array();

	for (unsigned r = 0; r < f->rows; r++) {
		json_t *row = json_object();

		for (unsigned i = 0; i < labels_count(f->form); i++)
			json_object_set_new(row, f->form->label[i].key,
					    json_string(f->row[r].label[i]));
		for (unsigned i = 0; i < columns_count(f->form); i++)
			json_object_set_new(row, f->form->column[i].key,
					    figure_json(&f->row[r].cell[i]));
		json_array_append_new(rows, row);
	}
	for (unsigned i = 0; i < f->notes; i++)
		json_array_append_new(notes, json_string(f->note[i]));
	return json_pack("{s:s, s:s, s:o, s:o}", "part", f->form->key, "title", f->form->title,
			 "rows", rows, "notes", notes);
}

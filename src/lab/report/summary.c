/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/cell.h"
#include "lab/report/trouble.h"

struct summary {
	const json_t *systems, *workloads;
	size_t n, m;
	struct cell *cell; /* by system, then workload */
	json_t *summary, *comparisons, *notes;
};

static struct cell *cell_at(const struct summary *s, size_t system, size_t workload)
{
	return &s->cell[system * s->m + workload];
}

static int cells_make(struct summary *s, const json_t *results)
{
	s->cell = calloc(s->n * s->m + 1, sizeof(*s->cell));
	if (!s->cell)
		return -ENOMEM;
	for (size_t i = 0; i < s->n * s->m; i++) {
		int ret = cell_make(results, json_array_get(s->systems, i / s->m),
				    json_array_get(s->workloads, i % s->m), &s->cell[i]);

		if (ret)
			return ret;
	}
	return 0;
}

/* Among those of a scenario that ran: the one that says that it is, or else the first. */
static const struct cell *base_find(const struct summary *s, const char *scenario, size_t workload)
{
	const struct cell *first = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct cell *cell = cell_at(s, i, workload);

		if (!cell->total || strcmp(text_of(cell->system, "scenario"), scenario))
			continue;
		if (json_is_true(json_object_get(cell->system, "base")))
			return cell;
		if (!first)
			first = cell;
	}
	return first;
}

static void workload_compare(const struct summary *s, size_t workload)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct cell *cell = cell_at(s, i, workload);
		const struct cell *base = base_find(s, text_of(cell->system, "scenario"), workload);

		if (base && base != cell)
			cell_compare(cell, base, s->comparisons);
	}
}

static json_t *notes_have(json_t *results)
{
	json_t *notes = json_object_get(results, "notes");

	if (json_is_array(notes))
		return notes;
	json_object_set_new(results, "notes", json_array());
	return json_object_get(results, "notes");
}

/*
 * An interval of a median is from one of the values to another. The median is outside all of them,
 * on one side, as often as n coins fall alike.
 */
static void repeats_note(const struct summary *s)
{
	size_t least = SIZE_MAX, single = 0, cells = 0;
	json_t *text;

	for (size_t i = 0; i < s->n * s->m; i++) {
		size_t n = json_array_size(s->cell[i].valid);

		cells += n > 0;
		single += n == 1;
		least = n > 1 && n < least ? n : least;
	}
	if (single && single == cells)
		cell_note_once(s->notes, "With one repeat there is no interval: what differs by "
					 "chance is not known.");
	else if (single)
		cell_note_once(s->notes, "Where there is one valid repeat of a system under a "
					 "workload there is no interval: what differs by chance "
					 "is not known.");
	if (least >= REPEATS_ENOUGH)
		return;
	text = json_sprintf("With %zu repeats an interval has the median in it in %.0f%% "
			    "of all cases at most, not in 95%%.",
			    least, 100 * (1 - 2 / (double)(1u << least)));
	cell_note_once(s->notes, json_string_value(text));
	json_decref(text);
}

static void troubles_note(const struct summary *s, size_t workload)
{
	const struct cell **cells = calloc(s->n + 1, sizeof(*cells));

	for (size_t i = 0; cells && i < s->n; i++)
		cells[i] = cell_at(s, i, workload);
	if (cells)
		trouble_notes(cells, s->n, s->notes);
	free(cells);
}

static int summary_make(struct summary *s, json_t *results)
{
	int ret = cells_make(s, results);

	s->summary = json_array();
	s->comparisons = json_array();
	s->notes = notes_have(results);
	if (ret || !s->summary || !s->comparisons || !s->notes)
		return -ENOMEM;
	for (size_t i = 0; i < s->n * s->m; i++)
		cell_summary(&s->cell[i], s->summary);
	for (size_t i = 0; i < s->m; i++) {
		troubles_note(s, i);
		workload_compare(s, i);
	}
	repeats_note(s);
	json_object_set(results, "summary", s->summary);
	json_object_set(results, "comparisons", s->comparisons);
	return 0;
}

int summary_add(json_t *results, struct error *err)
{
	struct summary s = {
		.systems = json_object_get(results, "systems"),
		.workloads = json_object_get(results, "workloads"),
	};
	int ret;

	if (!json_is_array(s.systems) || !json_is_array(s.workloads) ||
	    !json_is_array(json_object_get(results, "runs")))
		return error_set(err, -EINVAL,
				 "these are no results: systems, workloads and runs are missing");
	s.n = json_array_size(s.systems);
	s.m = json_array_size(s.workloads);
	ret = summary_make(&s, results);
	for (size_t i = 0; s.cell && i < s.n * s.m; i++)
		cell_free(&s.cell[i]);
	free(s.cell);
	json_decref(s.summary);
	json_decref(s.comparisons);
	return ret ? error_set(err, ret, "no memory for a summary") : 0;
}

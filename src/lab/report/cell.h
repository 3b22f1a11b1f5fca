/* SPDX-License-Identifier: BSD-2-Clause */
/* cell: a system under a workload: its valid runs and what they measured. */
#ifndef LAB_REPORT_CELL_H
#define LAB_REPORT_CELL_H

#include "lab/report/measured.h"

struct cell {
	const json_t *system, *workload;
	unsigned total, invalid, failed; /* runs */
	json_t *valid;
	json_t *why_invalid, *why_failed; /* each reason once */
	struct measured measured;
};

/* -ENOMEM. */
int cell_make(const json_t *results, const json_t *system, const json_t *workload,
	      struct cell *out);
void cell_free(struct cell *cell);

/* Of a system or a workload, for people: its name, else its key. */
const char *cell_name(const json_t *o);

/* Unless it is there already, or empty. */
void cell_note_once(json_t *notes, const char *text);

/* {"system", "workload", "metric", "unit", …} of each metric. */
void cell_summary(const struct cell *cell, json_t *summary);

/* {"scenario", "workload", "metric", "base", "system", "ratio", …} of each that both have. */
void cell_compare(const struct cell *cell, const struct cell *base, json_t *comparisons);

#endif

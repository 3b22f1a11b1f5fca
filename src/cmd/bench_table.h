/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_table: results, and what differs between two of them, on a terminal or in a file. */
#ifndef CMD_BENCH_TABLE_H
#define CMD_BENCH_TABLE_H

#include <stdio.h>

#include <jansson.h>

#include <lab/report/results.h>

/*
 * A table for each workload and scenario, then what was skipped and why, notes, and a few
 * sentences. As wide as the terminal, or else $COLUMNS, or 120, which is enough for all that
 * matters; from 150 on more is shown.
 */
void report_table(const json_t *results, FILE *out);

/* Below the table of a group: its message sizes, its latencies idle and loaded, where it has them.
 */
void report_steps_table(const struct results *results, const struct group *group, FILE *out);

/* What report_compare made. */
void report_compare_table(const json_t *comparison, FILE *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* words: figures as a reader wants them, and sentences that are built from nothing but figures. */
#ifndef LAB_REPORT_WORDS_H
#define LAB_REPORT_WORDS_H

#include "lab/report/results.h"

enum { WORDS_MAX = 48 };

/* Into text, which they return. Three digits say what a measurement knows. */
const char *count_text(double value, char text[WORDS_MAX]);	       /* "812", "24.1k", "2.19M" */
const char *latency_text(double ns, char text[WORDS_MAX]);	       /* "41.2 us", "1.25 ms" */
const char *ratio_text(double ratio, char text[WORDS_MAX]);	       /* "0.75x", "162x" */
const char *spread_text(const struct metric *m, char text[WORDS_MAX]); /* " ±3%"; "" without */
/* "0", "3", "0.25%": of what was begun. */
const char *lost_text(const struct row *row, char text[WORDS_MAX]);
/* By what the path ends in or has in it: "p99", "transactions/s", "CPU ns/operation" …. */
const char *metric_name(const char *path, char text[WORDS_MAX]);
/* A value with its unit, as the path has it. */
const char *metric_text(const char *path, double value, char text[WORDS_MAX]);
/* "/s", " Mbit/s": of a rate's path. */
const char *rate_unit(const char *path);
/* "transactions/s", "Mbit/s received". */
const char *rate_title(const char *path);

/* "TCP_RR, 1 flow": its name, or else its key; with the scenario where there is one. */
const char *workload_name(const json_t *workload);
const char *system_name(const json_t *system);

/* "better", "worse", "none", "unknown". */
enum verdict { VERDICT_UNKNOWN, VERDICT_NONE, VERDICT_BETTER, VERDICT_WORSE };
enum verdict verdict_of(const json_t *comparison);
extern const char *const verdict_names[];

/* What is compared for a group, best first: its p99, rate, CPU. Returns how many. */
enum { KEY_METRICS_MAX = 4 };
unsigned key_metrics(const struct group *group, char path[KEY_METRICS_MAX][RESULTS_PATH_MAX]);

/*
 * Arrays of sentences, for json_decref. Of a group: what is better and worse than its base, at
 * which cost, and whether as many cores were used. Of all: what was found, the most striking
 * first; and how much was measured, and what speaks against it.
 */
json_t *group_sentences(const struct results *results, const struct group *group);
json_t *results_findings(const struct results *results);
json_t *results_trust(const struct results *results);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_output: the directory that a report goes to, which may have an earlier one in it. */
#ifndef CMD_BENCH_OUTPUT_H
#define CMD_BENCH_OUTPUT_H

#include <limits.h>
#include <stdbool.h>

#include <jansson.h>

struct bench_output {
	const char *name;  /* of the specification, for a directory of our own choice */
	const char *asked; /* -o; NULL: our own choice, which is never one that is there */
	bool replace;	   /* --replace */
	bool made;	   /* by bench_output_open */
	char path[PATH_MAX];
};

/* Whether there are results in it already. */
bool bench_output_has(const char *directory);
/*
 * Makes the directory, before there is anything for it: hours of measuring end in one that can be
 * written to. DONE, or FAILED after a complaint, also when it has results that are not to be
 * replaced. name, asked and replace are the caller's.
 */
int bench_output_open(struct bench_output *output);
/*
 * Writes the report. What takes the place of earlier results does so whole, or not at all; what is
 * less than they are (`lesser`: of a run that was interrupted, or has nothing valid) goes to a
 * directory of our own choice instead, and so does it where somebody else's results are by now.
 * DONE, or FAILED after a complaint; path is where it is.
 */
int bench_output_write(struct bench_output *output, json_t *results, bool lesser);
/* There are no results: takes away what open made. */
void bench_output_drop(const struct bench_output *output);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of napier bench: a quick run of one part, and what its table has to be in any case. */
#ifndef BENCH_RIG_H
#define BENCH_RIG_H

#include "lab_run.h"

/*
 * "napier bench BENCH -j --only PART", which takes more than half a minute: interrupted before
 * that, it is so in mid-run. Then everything is gone, as lab_run_interrupt says.
 */
void bench_interrupt(const char *bench, const char *part, int after_ms);
/* The part's object; the caller gives *whole back. */
json_t *bench_part_run(const char *bench, const char *part, json_t **whole);
/*
 * How many rows have the key. There are at most so many rows, and with those that were left out or
 * in which nothing happened, which a note tells, as many. Every value is a finite number.
 */
unsigned bench_rows_with(const json_t *part, size_t rows, const char *key);
/* -1: that row has none. */
double bench_value(const json_t *part, size_t row, const char *key);

#endif

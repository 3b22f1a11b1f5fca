/* SPDX-License-Identifier: BSD-2-Clause */
/* How `napier bench` shows its figures. */
#ifndef CMD_BENCH_PRINT_H
#define CMD_BENCH_PRINT_H

#include <stdio.h>

#include <jansson.h>

#include <lab/parts/figures.h>

/* The table, with its title and notes. */
void bench_print(const struct figures *f, FILE *out);
/* The same as an object; NULL: no memory. */
json_t *bench_json(const struct figures *f);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables on a terminal or in a file: aligned columns, colour only where it helps a person.
 */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum colour { COLOUR_NONE, COLOUR_HEAD, COLOUR_WARN, COLOUR_BAD };

/* A terminal that can, and whose user did not say NO_COLOR. */
bool colour_wanted(FILE *out);

#define TABLE_COLUMNS_MAX 20

struct table;

/* Titles of the columns; one that starts with '<' is aligned left. NULL: no memory. */
struct table *table_create(unsigned columns, const char *const *titles);

/* The next cell, row by row. Memory that is lacking makes table_print say so. */
__attribute__((format(printf, 3, 4))) void table_cell(struct table *table, enum colour colour,
						      const char *format, ...);

/* Prints and frees. Without rows it prints nothing. */
void table_print(struct table *table, FILE *out);

/* "41 us", "1.25 ms", "3 s": into text, which it returns. */
#define DURATION_MAX 24
const char *duration_text(int64_t ns, char text[DURATION_MAX]);
/* "1.2 GB", in powers of 1000. */
#define SIZE_MAX_TEXT 24
const char *size_text(uint64_t bytes, char text[SIZE_MAX_TEXT]);

#endif

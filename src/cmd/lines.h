/* SPDX-License-Identifier: BSD-2-Clause */
/* lines: sentences, broken where the terminal ends. */
#ifndef CMD_LINES_H
#define CMD_LINES_H

#include <stddef.h>
#include <stdio.h>

/* Of the terminal, or else $COLUMNS, or 120; at least 60. */
unsigned lines_columns(FILE *out);

/* Characters, not bytes. */
unsigned lines_width(const char *text);

/* Broken at blanks; from the second line on behind `indent` blanks. */
__attribute__((format(printf, 4, 5))) void lines_say(FILE *out, unsigned columns, unsigned indent,
						     const char *format, ...);

/* At most `width` characters of text into out; "…" in the place of the rest. Returns out. */
const char *lines_cut(const char *text, unsigned width, char *out, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What `napier demo` tells of its figures. */
#ifndef CMD_DEMO_PRINT_H
#define CMD_DEMO_PRINT_H

#include <stdio.h>

#include <lab/parts/compare.h>

#define DEMO_NOTES_MAX 8

struct demo {
	struct compare_plan plan;
	const struct compare_result *result;
	bool quick;			   /* as asked, with fewer samples */
	const char *notes[DEMO_NOTES_MAX]; /* what was left out, and why */
	unsigned notes_n;
};

void demo_print(const struct demo *demo, FILE *out);
/* One object. 0, or -ENOMEM. */
int demo_print_json(const struct demo *demo, FILE *out);

#endif

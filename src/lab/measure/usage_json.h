/* SPDX-License-Identifier: BSD-2-Clause */
/* usage_json: an account as results have it, "cpu" of docs/results.md. */
#ifndef LAB_MEASURE_USAGE_JSON_H
#define LAB_MEASURE_USAGE_JSON_H

#include "lab/measure/account.h"
#include "lab/measure/counters.h"

enum usage_event { USAGE_CYCLES, USAGE_INSTRUCTIONS, USAGE_EVENTS };

struct usage_view {
	const struct moment_site *site;
	const struct moment *begin, *end;
	const struct account *account;
	const struct counters *counters; /* NULL: there are none */
	double operations;
	json_t *notes; /* some may be added; it is taken over */
};

/* For json_decref; NULL: no memory. */
json_t *usage_json(const struct usage_view *view);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* summary: medians, intervals and comparisons, from runs. */
#ifndef LAB_REPORT_SUMMARY_H
#define LAB_REPORT_SUMMARY_H

#include <jansson.h>

#include <napier/error.h>

struct interval {
	double median, low, high;
	unsigned n;
};

/*
 * Of the median, by bootstrap: 2000 samples with a fixed seed, 95%. n = 1: low = high = median, and
 * that is said where it is printed. False: n = 0.
 */
int interval_median(const double *value, unsigned n, struct interval *out);
/* Of the ratio of two medians; paired (round by round) when both have the same n. */
int interval_ratio(const double *value, const double *base, unsigned n, unsigned n_base,
		   struct interval *out);

/* Adds "summary" and "comparisons" to results, replacing what is there. -EINVAL: not results. */
int summary_add(json_t *results, struct error *err);

#endif

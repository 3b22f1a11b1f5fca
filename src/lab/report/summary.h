/* SPDX-License-Identifier: BSD-2-Clause */
/* summary: medians, intervals and comparisons, from runs. */
#ifndef LAB_REPORT_SUMMARY_H
#define LAB_REPORT_SUMMARY_H

#include <stdbool.h>

#include <jansson.h>

#include <napier/error.h>

struct interval {
	double median, low, high;
	unsigned n;
};

enum { INTERVAL_VALUES_MAX = 32, INTERVAL_RESAMPLES = 2000 };

/*
 * Of the median, by bootstrap: 2000 samples with a fixed seed, 95%. n = 1: low = high = median, and
 * that is said where it is printed. False: n = 0, or more than INTERVAL_VALUES_MAX, or a value is
 * no number.
 */
bool interval_median(const double *value, unsigned n, struct interval *out);
/*
 * Of the ratio of two medians; paired (round by round) when both have the same n. n is the lesser
 * one. False: also when a median of the base is 0, so that there is no ratio.
 */
bool interval_ratio(const double *value, const double *base, unsigned n, unsigned n_base,
		    struct interval *out);
/* The same, never paired: when equal numbers are not of the same rounds. */
bool interval_ratio_apart(const double *value, const double *base, unsigned n, unsigned n_base,
			  struct interval *out);

/*
 * Whether so few values may show a difference that their interval shows; of five and more of each
 * the interval is enough.
 */
bool interval_apart(const double *value, const double *base, unsigned n, unsigned n_base);
/* Repeats from which on an interval of their median can have it in 95% of all cases. */
enum { REPEATS_ENOUGH = 6 };

/*
 * Without a ratio, as of losses where the base has none: 1 when they are above those of the base,
 * -1 below; 0 when they or their intervals are not apart.
 */
int interval_side(const double *value, const double *base, unsigned n, unsigned n_base);

/*
 * Adds "summary" and "comparisons" to results, replacing what is there, and to "notes" which runs
 * are in neither. -EINVAL: not results.
 */
int summary_add(json_t *results, struct error *err);

#endif

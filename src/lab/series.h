/* SPDX-License-Identifier: BSD-2-Clause */
/* series: one value per round of a measurement; what is printed of it is the median and the ends.
 */
#ifndef LAB_SERIES_H
#define LAB_SERIES_H

enum { SERIES_MAX = 16 };

struct series {
	unsigned n;
	double value[SERIES_MAX];
};

/* Beyond SERIES_MAX values: no effect. */
void series_add(struct series *s, double value);

/* Of an empty series: 0. */
double series_median(const struct series *s);
double series_min(const struct series *s);
double series_max(const struct series *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "lab/series.h"

void series_add(struct series *s, double value)
{
	if (s->n < SERIES_MAX)
		s->value[s->n++] = value;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double series_median(const struct series *s)
{
	struct series sorted = *s;

	if (!s->n)
		return 0;
	qsort(sorted.value, s->n, sizeof(double), ascending);
	return (sorted.value[(s->n - 1) / 2] + sorted.value[s->n / 2]) / 2;
}

double series_min(const struct series *s)
{
	double least = s->n ? s->value[0] : 0;

	for (unsigned i = 1; i < s->n; i++)
		least = s->value[i] < least ? s->value[i] : least;
	return least;
}

double series_max(const struct series *s)
{
	double most = s->n ? s->value[0] : 0;

	for (unsigned i = 1; i < s->n; i++)
		most = s->value[i] > most ? s->value[i] : most;
	return most;
}

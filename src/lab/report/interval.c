/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "lab/report/summary.h"

/* Of 2000, so many are left out at either end: 95% are between. */
enum { OUTSIDE = INTERVAL_RESAMPLES / 40 };

#define SEED UINT64_C(0x9e3779b97f4a7c15)

/* SplitMix64: any seed will do. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += SEED;

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static unsigned random_below(uint64_t *state, unsigned n)
{
	return (unsigned)((random_next(state) >> 32) * n >> 32);
}

/* Few values, thousands of times: faster than to call a function for each comparison. */
static void sort(double *value, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		double v = value[i];
		unsigned k = i;

		for (; k && value[k - 1] > v; k--)
			value[k] = value[k - 1];
		value[k] = v;
	}
}

static double median(const double *value, unsigned n)
{
	double sorted[INTERVAL_VALUES_MAX];

	memcpy(sorted, value, n * sizeof(*sorted));
	sort(sorted, n);
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* The k-th least, from 0, by Hoare's selection; reorders. */
static double select_from(double *value, unsigned n, unsigned k)
{
	long low = 0, high = (long)n - 1;

	while (low < high) {
		double pivot = value[(low + high) / 2];
		long i = low, j = high;

		while (i <= j) {
			while (value[i] < pivot)
				i++;
			while (value[j] > pivot)
				j--;
			if (i <= j) {
				double v = value[i];

				value[i++] = value[j];
				value[j--] = v;
			}
		}
		if ((long)k <= j)
			high = j;
		else if ((long)k >= i)
			low = i;
		else
			break;
	}
	return value[k];
}

/* With replacement; which ones, so that a pair's other half can be the same. */
static void draw(uint64_t *state, unsigned n, unsigned drawn[INTERVAL_VALUES_MAX])
{
	for (unsigned i = 0; i < n; i++)
		drawn[i] = random_below(state, n);
}

static double median_of(const double *value, const unsigned *drawn, unsigned n)
{
	double picked[INTERVAL_VALUES_MAX];

	for (unsigned i = 0; i < n; i++)
		picked[i] = value[drawn[i]];
	sort(picked, n);
	return (picked[(n - 1) / 2] + picked[n / 2]) / 2;
}

static bool are_numbers(const double *value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!isfinite(value[i]))
			return false;
	return n > 0 && n <= INTERVAL_VALUES_MAX;
}

static void ends_find(double resampled[INTERVAL_RESAMPLES], struct interval *out)
{
	out->low = select_from(resampled, INTERVAL_RESAMPLES, OUTSIDE - 1);
	out->high = select_from(resampled, INTERVAL_RESAMPLES, INTERVAL_RESAMPLES - OUTSIDE);
}

bool interval_median(const double *value, unsigned n, struct interval *out)
{
	double resampled[INTERVAL_RESAMPLES];
	unsigned drawn[INTERVAL_VALUES_MAX];
	uint64_t state = SEED;

	if (!are_numbers(value, n))
		return false;
	out->median = median(value, n);
	out->n = n;
	for (unsigned i = 0; i < INTERVAL_RESAMPLES; i++) {
		draw(&state, n, drawn);
		resampled[i] = median_of(value, drawn, n);
	}
	ends_find(resampled, out);
	return true;
}

static bool ratio_make(const double *value, const double *base, unsigned n, unsigned n_base,
		       bool paired, struct interval *out)
{
	unsigned drawn[INTERVAL_VALUES_MAX], drawn_base[INTERVAL_VALUES_MAX];
	double resampled[INTERVAL_RESAMPLES];
	uint64_t state = SEED;

	if (!are_numbers(value, n) || !are_numbers(base, n_base))
		return false;
	out->median = median(value, n) / median(base, n_base);
	out->n = n < n_base ? n : n_base;
	for (unsigned i = 0; i < INTERVAL_RESAMPLES; i++) {
		draw(&state, n, drawn);
		if (paired)
			memcpy(drawn_base, drawn, sizeof(drawn_base));
		else
			draw(&state, n_base, drawn_base);
		resampled[i] = median_of(value, drawn, n) / median_of(base, drawn_base, n_base);
		if (!isfinite(resampled[i]))
			return false;
	}
	ends_find(resampled, out);
	return isfinite(out->median);
}

bool interval_ratio(const double *value, const double *base, unsigned n, unsigned n_base,
		    struct interval *out)
{
	return ratio_make(value, base, n, n_base, n == n_base, out);
}

bool interval_ratio_apart(const double *value, const double *base, unsigned n, unsigned n_base,
			  struct interval *out)
{
	return ratio_make(value, base, n, n_base, false, out);
}

/*
 * Of two alike, three rounds go the same way in one case of four. So of so few the values have to
 * be apart as well, which three and three are by chance in one case of ten, four and four in 3%.
 * Two and two are in one case of three, and with a gap that is wider than both of them in 9%.
 */
enum { FEW = 5, FEWEST = 2 };

bool interval_apart(const double *value, const double *base, unsigned n, unsigned n_base)
{
	double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY}, gap, range;

	if (n >= FEW && n_base >= FEW)
		return true;
	for (unsigned i = 0; i < n; i++) {
		low[0] = fmin(low[0], value[i]);
		high[0] = fmax(high[0], value[i]);
	}
	for (unsigned i = 0; i < n_base; i++) {
		low[1] = fmin(low[1], base[i]);
		high[1] = fmax(high[1], base[i]);
	}
	gap = fmax(low[0] - high[1], low[1] - high[0]);
	range = fmax(high[0] - low[0], high[1] - low[1]);
	return n <= FEWEST || n_base <= FEWEST ? gap > range : gap > 0;
}

int interval_side(const double *value, const double *base, unsigned n, unsigned n_base)
{
	struct interval a, b;

	if (!interval_median(value, n, &a) || !interval_median(base, n_base, &b) ||
	    !interval_apart(value, base, n, n_base))
		return 0;
	return (a.low > b.high) - (a.high < b.low);
}

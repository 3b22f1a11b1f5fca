/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "lab/report/trouble.h"

enum { NAMED = 3, NAMES = 4 * 80 };

/* Runs that failed, or are invalid. */
struct trouble {
	const struct cell *const *cell;
	size_t n;
	bool failed;
};

static unsigned count(const struct trouble *t, size_t i)
{
	return t->failed ? t->cell[i]->failed : t->cell[i]->invalid;
}

static const json_t *reasons(const struct trouble *t, size_t i)
{
	return t->failed ? t->cell[i]->why_failed : t->cell[i]->why_invalid;
}

static const char *reason(const struct trouble *t, size_t i)
{
	const char *text = json_string_value(json_array_get(reasons(t, i), 0));

	return text ? text : "";
}

static bool alike(const struct trouble *t, size_t a, size_t b)
{
	size_t length = strcspn(reason(t, a), ":");

	return length == strcspn(reason(t, b), ":") && !strncmp(reason(t, a), reason(t, b), length);
}

/* An earlier one has told it. */
static bool is_told(const struct trouble *t, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (count(t, k) && alike(t, k, i))
			return true;
	}
	return false;
}

/* "A; B; C and 2 others": names have commas in them. */
static void names_join(const struct trouble *t, const size_t *which, size_t n, char text[NAMES])
{
	size_t length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n && i < NAMED && length < NAMES; i++)
		length += (size_t)snprintf(text + length, NAMES - length, "%s%s",
					   !i		? ""
					   : i + 1 == n ? " and "
							: "; ",
					   cell_name(t->cell[which[i]]->system));
	if (n > NAMED && length < NAMES)
		snprintf(text + length, NAMES - length, " and %zu other%s", n - NAMED,
			 n - NAMED == 1 ? "" : "s");
}

/* All that is like the i-th. */
static void tell(const struct trouble *t, size_t i, json_t *notes)
{
	size_t which[64], like = 0;
	unsigned bad = 0, total = 0;
	bool several = false;
	char names[NAMES];
	json_t *text;

	for (size_t k = i; k < t->n && like < sizeof(which) / sizeof(*which); k++) {
		if (!count(t, k) || !alike(t, i, k))
			continue;
		which[like++] = k;
		bad += count(t, k);
		total += t->cell[k]->total;
		several = several || json_array_size(reasons(t, k)) > 1 ||
			  strcmp(reason(t, k), reason(t, i));
	}
	names_join(t, which, like, names);
	text = json_sprintf("%u of %u runs of %s under %s %s%s%s%s.", bad, total, names,
			    cell_name(t->cell[i]->workload),
			    t->failed  ? "failed"
			    : bad == 1 ? "is invalid"
				       : "are invalid",
			    *reason(t, i) ? ": " : "", reason(t, i),
			    several ? " (the first of several such reasons)" : "");
	cell_note_once(notes, json_string_value(text));
	json_decref(text);
}

void trouble_notes(const struct cell *const *cell, size_t n, json_t *notes)
{
	for (int failed = 0; failed <= 1; failed++) {
		struct trouble t = {.cell = cell, .n = n, .failed = failed};

		for (size_t i = 0; i < n; i++) {
			if (count(&t, i) && !is_told(&t, i))
				tell(&t, i, notes);
		}
	}
}

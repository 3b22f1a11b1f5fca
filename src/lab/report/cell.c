/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/cell.h"

static bool has_text(const json_t *array, const char *text)
{
	const json_t *value;
	size_t i;

	json_array_foreach(array, i, value)
	{
		if (!strcmp(json_string_value(value) ?: "", text))
			return true;
	}
	return false;
}

void cell_note_once(json_t *array, const char *text)
{
	if (text && *text && !has_text(array, text))
		json_array_append_new(array, json_string(text));
}

static void run_take(struct cell *cell, const json_t *run)
{
	const json_t *error = json_object_get(run, "error");

	cell->total++;
	if (error && !json_is_null(error)) {
		cell->failed++;
		cell_note_once(cell->why_failed, json_string_value(error));
	} else if (!run_valid(run)) {
		cell->invalid++;
		cell_note_once(cell->why_invalid, text_of(run, "invalid"));
	} else {
		json_array_append(cell->valid, (json_t *)run);
		measured_add(&cell->measured, run);
	}
}

int cell_make(const json_t *results, const json_t *system, const json_t *workload, struct cell *out)
{
	const json_t *run;
	size_t i;

	*out = (struct cell){
		.system = system,
		.workload = workload,
		.valid = json_array(),
		.why_invalid = json_array(),
		.why_failed = json_array(),
	};
	json_array_foreach(json_object_get(results, "runs"), i, run)
	{
		if (!strcmp(text_of(run, "system"), text_of(system, "key")) &&
		    !strcmp(text_of(run, "workload"), text_of(workload, "key")))
			run_take(out, run);
	}
	return out->measured.failed || !out->valid || !out->why_invalid || !out->why_failed
		       ? -ENOMEM
		       : 0;
}

void cell_free(struct cell *cell)
{
	json_decref(cell->valid);
	json_decref(cell->why_invalid);
	json_decref(cell->why_failed);
	measured_free(&cell->measured);
}

const char *cell_name(const json_t *o)
{
	const char *name = text_of(o, "name");

	return *name ? name : text_of(o, "key");
}

static json_t *values_json(const struct measured_metric *m)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < m->n; i++)
		json_array_append_new(all, json_real(m->value[i]));
	return all;
}

static json_t *metric_json(const struct cell *cell, const struct measured_metric *m, double median,
			   unsigned n)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:n, s:n, s:i, s:o}", "system",
			 text_of(cell->system, "key"), "workload", text_of(cell->workload, "key"),
			 "metric", m->path, "unit", m->unit, "better",
			 m->higher ? "higher" : "lower", "median", median, "low", "high", "n",
			 (int)n, "values", values_json(m));
}

/* Where a single repeat has too few samples for it, it is of all of them together. */
static bool is_pooled(const struct measured_metric *m)
{
	return m->percentile && m->missing;
}

void cell_summary(const struct cell *cell, json_t *summary)
{
	struct measured_pool *pool = calloc(1, sizeof(*pool));
	struct interval interval;
	double median;

	for (unsigned i = 0; pool && i < cell->measured.metrics; i++) {
		const struct measured_metric *m = &cell->measured.metric[i];
		json_t *o;

		if (is_pooled(m)) {
			if (!measured_pooled(pool, cell->valid, m->path, &median))
				continue;
			o = metric_json(cell, m, median, m->n + m->missing);
			json_object_set_new(o, "pooled", json_true());
		} else if (interval_median(m->value, m->n, &interval)) {
			o = metric_json(cell, m, interval.median, interval.n);
			json_object_set_new(o, "low", json_real(interval.low));
			json_object_set_new(o, "high", json_real(interval.high));
		} else {
			continue;
		}
		json_array_append_new(summary, o);
	}
	free(pool);
}

/* ---- with another system's ---- */

static bool are_paired(const struct measured_metric *m, const struct measured_metric *base)
{
	if (m->n != base->n)
		return false;
	for (unsigned i = 0; i < m->n; i++)
		if (m->repeat[i] != base->repeat[i])
			return false;
	return true;
}

static const char *verdict(bool higher, bool more)
{
	return higher == more ? "better" : "worse";
}

static const char *apart_verdict(const struct measured_metric *m,
				 const struct measured_metric *base)
{
	int side = interval_side(m->value, base->value, m->n, base->n);

	if (m->n < 2 || base->n < 2)
		return "unknown";
	return side ? verdict(m->higher, side > 0) : "none";
}

static void ratio_put(json_t *o, const struct measured_metric *m,
		      const struct measured_metric *base)
{
	struct interval r;
	bool known = are_paired(m, base)
			     ? interval_ratio(m->value, base->value, m->n, base->n, &r)
			     : interval_ratio_apart(m->value, base->value, m->n, base->n, &r);
	const char *what = "unknown";

	if (!known)
		what = apart_verdict(m, base);
	else if (r.n > 1 && ((r.low <= 1 && r.high >= 1) ||
			     !interval_apart(m->value, base->value, m->n, base->n)))
		what = "none";
	else if (r.n > 1)
		what = verdict(m->higher, r.low > 1);
	json_object_set_new(o, "ratio", known ? json_real(r.median) : json_null());
	/* Of one value there is none. */
	json_object_set_new(o, "low", known && r.n > 1 ? json_real(r.low) : json_null());
	json_object_set_new(o, "high", known && r.n > 1 ? json_real(r.high) : json_null());
	json_object_set_new(o, "n", json_integer(m->n < base->n ? m->n : base->n));
	json_object_set_new(o, "verdict", json_string(what));
}

/* What is of all repeats together has no interval, so there is no verdict. */
static void pooled_put(json_t *o, const struct cell *cell, const struct cell *base,
		       const char *path, struct measured_pool pool[2])
{
	double value, of;
	bool known = measured_pooled(&pool[0], cell->valid, path, &value) &&
		     measured_pooled(&pool[1], base->valid, path, &of) && of > 0;

	json_object_set_new(o, "ratio", known ? json_real(value / of) : json_null());
	json_object_set_new(o, "low", json_null());
	json_object_set_new(o, "high", json_null());
	json_object_set_new(o, "n", json_integer(1));
	json_object_set_new(o, "pooled", json_true());
	json_object_set_new(o, "verdict", json_string("unknown"));
}

static bool cores_of(const struct cell *cell, double *out)
{
	const struct measured_metric *m = measured_find(&cell->measured, "cpu.cores_used");
	struct interval interval;

	if (!m || !interval_median(m->value, m->n, &interval))
		return false;
	*out = interval.median;
	return true;
}

static json_t *cores_note(const struct cell *cell, const struct cell *base)
{
	double ours, theirs;

	if (!cores_of(cell, &ours) || !cores_of(base, &theirs) || !cores_differ(ours, theirs))
		return json_null();
	return json_sprintf("%s uses %.2f cores where its base %s uses %.2f: not equals.",
			    cell_name(cell->system), ours, cell_name(base->system), theirs);
}

static json_t *cores_json(const struct cell *cell)
{
	double cores;

	return cores_of(cell, &cores) ? json_real(cores) : json_null();
}

void cell_compare(const struct cell *cell, const struct cell *base, json_t *comparisons)
{
	struct measured_pool *pool = calloc(2, sizeof(*pool)); /* ours, the base's */
	json_t *note_of_cores = cores_note(cell, base);

	for (unsigned i = 0; pool && i < cell->measured.metrics; i++) {
		const struct measured_metric *m = &cell->measured.metric[i];
		const struct measured_metric *of = measured_find(&base->measured, m->path);
		json_t *o;

		if (!m->compared || !of)
			continue;
		o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "scenario",
			      text_of(cell->system, "scenario"), "workload",
			      text_of(cell->workload, "key"), "metric", m->path, "base",
			      text_of(base->system, "key"), "system", text_of(cell->system, "key"));
		if (is_pooled(m) || is_pooled(of))
			pooled_put(o, cell, base, m->path, pool);
		else
			ratio_put(o, m, of);
		json_object_set_new(o, "cores_base", cores_json(base));
		json_object_set_new(o, "cores", cores_json(cell));
		json_object_set(o, "note", note_of_cores);
		/* Nothing was measured at either. */
		if ((m->n && of->n) || !json_is_null(json_object_get(o, "ratio")))
			json_array_append_new(comparisons, o);
		else
			json_decref(o);
	}
	json_decref(note_of_cores);
	free(pool);
}

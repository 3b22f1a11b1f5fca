/* SPDX-License-Identifier: BSD-2-Clause */
/* How long after an interrupt a NAPI is polled, with its CPU idle and beside a hog. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/hog.h"
#include "lab/parts/pollers.h"

#define GAP (100 * NSEC_PER_USEC)

enum { P50 = 500000, P99 = 990000, P999 = 999000 };

static const struct figures_form form = {
	.key = "wake",
	.title =
		"Wake-up latency: from a device's interrupt (its descriptor is written) to the "
		"poll, one event\nat a time, some 100 us apart. Hog: a thread of ordinary priority "
		"that never sleeps, on the\nsame CPU. A percentile is of all rounds together, its "
		"spread that of single rounds.",
	.label = {{"poller", "poller"}, {"beside", "beside"}},
	.column =
		{
			{"p50_us", "p50 us", 1},
			{"p99_us", "p99 us", 1},
			{"p99.9_us", "p99.9 us", 1},
			{"max_us", "max us", 0},
			{"cpu_us_per_event", "CPU us/event", 1},
			{"events", "events", 0},
		},
};

struct wake {
	const struct bench_plan *plan;
	struct figures *figures;
	struct histogram *round, *all[POLLER_RUNNER_MAX][2];
};

static int latency_take(struct wake *w, struct events *events, enum poller poller, bool beside,
			struct error *err)
{
	struct events_single how = {
		.duration = (w->plan->quick ? 30 : 1200) * NSEC_PER_MSEC,
		.gap = GAP,
		.sleeps = true,
		.cpu = w->plan->apart,
		.latency = w->round,
	};
	struct figures_row *row =
		figures_row(w->figures, poller_name(poller), beside ? "hog" : "idle", "");
	struct events_sample s;
	int rc;

	histogram_reset(w->round);
	rc = events_single(events, &how, &s, err);
	if (rc || !s.events)
		return rc;
	figures_add_percentile(w->figures, row, "p50_us", w->round, P50, 1e-3);
	figures_add_percentile(w->figures, row, "p99_us", w->round, P99, 1e-3);
	figures_add_percentile(w->figures, row, "p99.9_us", w->round, P999, 1e-3);
	figures_add(w->figures, row, "max_us", (double)w->round->max * 1e-3);
	figures_add(w->figures, row, "cpu_us_per_event", (double)s.cpu * 1e-3 / (double)s.events);
	figures_add(w->figures, row, "events", (double)s.events);
	histogram_merge(w->all[poller][beside], w->round);
	return 0;
}

static int poller_measure(struct wake *w, enum poller poller, bool beside, struct error *err)
{
	struct events_config config = pollers_events(w->plan, w->figures, poller, 1);
	struct hog *hog = NULL;
	struct events *events;
	int rc;

	config.descriptor = true;
	rc = events_open(&config, &events, err);
	if (rc)
		return rc;
	if (beside)
		rc = hog_start(w->plan->cpu, &hog, err);
	if (!rc)
		rc = latency_take(w, events, poller, beside, err);
	if (hog)
		hog_stop(hog);
	events_close(events);
	return rc;
}

static int rounds_run(struct wake *w, struct error *err)
{
	const unsigned cells = 2 * POLLER_RUNNER_MAX;
	int rc = 0;

	for (unsigned i = 0; i < w->plan->rounds * cells && !rc; i++) {
		unsigned turn = bench_turn(i / cells, i % cells, cells);

		bench_progress(w->plan, i, w->plan->rounds * cells, "wake: %s%s",
			       poller_name(turn / 2), turn % 2 ? ", beside a hog" : "");
		rc = poller_measure(w, turn / 2, turn % 2, err);
	}
	return rc;
}

static void percentiles_pool(struct wake *w)
{
	for (unsigned i = 0; i < 2 * POLLER_RUNNER_MAX; i++) {
		const struct histogram *all = w->all[i / 2][i % 2];
		struct figures_row *row =
			figures_row(w->figures, poller_name(i / 2), i % 2 ? "hog" : "idle", "");

		figures_pool_percentile(w->figures, row, "p50_us", all, P50, 1e-3);
		figures_pool_percentile(w->figures, row, "p99_us", all, P99, 1e-3);
		figures_pool_percentile(w->figures, row, "p99.9_us", all, P999, 1e-3);
	}
}

static int wake_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct histogram *h = malloc((2 * POLLER_RUNNER_MAX + 1) * sizeof(*h));
	struct wake w = {.plan = plan, .figures = f, .round = h};
	int rc;

	if (!h)
		return error_set(err, -ENOMEM, "no memory for histograms");
	for (unsigned i = 0; i < 2 * POLLER_RUNNER_MAX; i++) {
		w.all[i / 2][i % 2] = &h[i + 1];
		histogram_reset(&h[i + 1]);
	}
	rc = rounds_run(&w, err);
	if (!rc)
		percentiles_pool(&w);
	if (plan->apart < 0)
		figures_note(f, "There is one CPU only: who makes the events shares it.");
	free(h);
	return rc;
}

const struct bench_part pollers_wake = {
	.key = "wake",
	.summary = "from an interrupt to the poll, idle and beside a CPU hog",
	.form = &form,
	.run = wake_run,
};

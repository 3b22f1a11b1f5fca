/* SPDX-License-Identifier: BSD-2-Clause */
/* What an event costs when there are 1 to 1024 NAPIs. */
#include <errno.h>
#include <stdio.h>

#include "lab/parts/pollers.h"

static const unsigned counts[] = {1, 4, 16, 64, 256, 1024};

enum { COUNTS = sizeof(counts) / sizeof(*counts), SINGLE_EVENTS = 4096 };

/* Long enough that whoever has polled sleeps again. */
#define GAP (30 * NSEC_PER_USEC)

static const struct figures_form form = {
	.key = "scale",
	.title = "CPU ns an event with so many NAPIs on one CPU. all: each always has an event.\n"
		 "one: a single event at a time, 30 us apart, to each in turn, with its wake-up.",
	.label = {{"poller", "poller"}, {"events", "events"}},
	.column =
		{
			{"1", "1", 0},
			{"4", "4", 0},
			{"16", "16", 0},
			{"64", "64", 0},
			{"256", "256", 0},
			{"1024", "1024", 0},
			{"ratio", "1024:1", 2},
		},
};

static int single_measure(const struct bench_plan *plan, struct events *events,
			  struct events_sample *s, struct error *err)
{
	struct events_single how = {
		.duration = (plan->quick ? 20 : 400) * NSEC_PER_MSEC,
		.most = plan->quick ? 0 : SINGLE_EVENTS,
		.gap = GAP,
		.cpu = plan->apart,
	};

	return events_single(events, &how, s, err);
}

static int cell_measure(const struct bench_plan *plan, struct figures *f, enum poller poller,
			bool single, unsigned napis, double *cost, struct error *err)
{
	struct events_config config = pollers_events(plan, f, poller, napis);
	struct events_sample s;
	struct events *events;
	int rc;

	*cost = 0;
	rc = events_open(&config, &events, err);
	if (rc == -EMFILE) {
		figures_note(f, "%s: %s", poller_name(poller), err->text);
		return 0;
	}
	if (rc)
		return rc;
	if (single)
		rc = single_measure(plan, events, &s, err);
	else
		rc = events_circle(events, (plan->quick ? 10 : 100) * NSEC_PER_MSEC, &s, err);
	events_close(events);
	if (!rc && s.events)
		*cost = (double)s.cpu / (double)s.events;
	return rc;
}

/* One poller, one load, all counts: next to each other in time, as their ratio is what matters. */
static int row_measure(const struct bench_plan *plan, struct figures *f, enum poller poller,
		       bool single, unsigned round, struct error *err)
{
	struct figures_row *row = figures_row(f, poller_name(poller), single ? "one" : "all", "");
	double cost[COUNTS];

	for (unsigned i = 0; i < COUNTS; i++) {
		unsigned at = bench_turn(round, i, COUNTS);
		int rc = cell_measure(plan, f, poller, single, counts[at], &cost[at], err);

		if (rc)
			return rc;
	}
	for (unsigned i = 0; i < COUNTS; i++) {
		char key[12];

		if (!(cost[i] > 0))
			continue;
		snprintf(key, sizeof(key), "%u", counts[i]);
		figures_add(f, row, key, cost[i]);
	}
	if (cost[0] > 0 && cost[COUNTS - 1] > 0)
		figures_add(f, row, "ratio", cost[COUNTS - 1] / cost[0]);
	return 0;
}

static int scale_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	const unsigned rows = 2 * POLLER_RUNNER_MAX;

	for (unsigned i = 0; i < plan->rounds * rows; i++) {
		unsigned turn = bench_turn(i / rows, i % rows, rows);
		int rc;

		/* It never sleeps: of single events it only tells how far apart they are. */
		if (turn / 2 == POLLER_BUSY_POLL && turn % 2)
			continue;
		bench_progress(plan, i, plan->rounds * rows, "scale: %s", poller_name(turn / 2));
		rc = row_measure(plan, f, turn / 2, turn % 2, i / rows, err);
		if (rc)
			return rc;
	}
	return 0;
}

const struct bench_part pollers_scale = {
	.key = "scale",
	.summary = "1 to 1024 NAPIs",
	.form = &form,
	.run = scale_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How urgent workers should be: before others of the CPU, to be in time, but not so that those who
 * consume the packets get none of it.
 */
#include <errno.h>
#include <stdlib.h>

#include "lab/parts/flood.h"
#include "lab/hog.h"

#define GAP (100 * NSEC_PER_USEC)

enum { P50 = 500000, P99 = 990000 };

static const struct figures_form form = {
	.key = "workers",
	.title = "Priority of the workqueue's threads, all on one CPU. wake: from an interrupt to "
		 "the "
		 "poll, beside a\nhog of ordinary priority. The rest with a consumer there: "
		 "capacity, "
		 "what of it is kept at twice the\nload, and how old a datagram is when it is "
		 "consumed, at half the load.",
	.label = {{"worker", "kworker/N"}},
	.column =
		{
			{"wake_p50_us", "wake p50 us", 1},
			{"wake_p99_us", "wake p99 us", 1},
			{"capacity_per_second", "capacity/s", 0},
			{"kept_percent", "kept %", 1},
			{"age_p50_us", "age p50 us", 1},
			{"age_p99_us", "age p99 us", 1},
		},
};

#define WORKER(text, class_, level_, setting)                                                      \
	{                                                                                          \
		{                                                                                  \
			.kind = FORWARDER_NAPIER_WORKQUEUE,                                        \
			.name = text,                                                              \
			.how = "",                                                                 \
			.settings = "worker = { " setting " };",                                   \
		},                                                                                 \
			{.class = class_, .level = level_},                                        \
	}

static const struct {
	struct contestant who;
	struct placement worker;
} levels[] = {
	WORKER("nice 0", RUNNER_FAIR, 0, "class = \"fair\"; nice = 0;"),
	WORKER("nice -5", RUNNER_FAIR, -5, "class = \"fair\"; nice = -5;"),
	WORKER("nice -10", RUNNER_FAIR, -10, "class = \"fair\"; nice = -10;"),
	WORKER("nice -20", RUNNER_FAIR, -20, "class = \"fair\"; nice = -20;"),
	WORKER("fifo 1", RUNNER_FIFO, 1, "class = \"fifo\"; priority = 1;"),
};

enum { LEVELS = sizeof(levels) / sizeof(*levels) };

struct workers {
	struct flood flood;
	struct figures *figures;
	struct histogram *round;
	struct histogram *wake[LEVELS], *age[LEVELS];
};

static struct figures_row *row_of(struct workers *w, unsigned level)
{
	return figures_row(w->figures, levels[level].who.name, "", "");
}

static int wake_measure(struct workers *w, unsigned level, struct error *err)
{
	const struct bench_plan *plan = w->flood.plan;
	struct events_config config = pollers_events(plan, w->figures, POLLER_WORKQUEUE, 1);
	struct events_single how = {
		.duration = (plan->quick ? 30 : 1000) * NSEC_PER_MSEC,
		.gap = GAP,
		.sleeps = true,
		.cpu = plan->apart,
		.latency = w->round,
	};
	struct events_sample s;
	struct events *events;
	struct hog *hog;
	int rc;

	config.descriptor = true;
	config.worker = levels[level].worker;
	rc = events_open(&config, &events, err);
	if (rc)
		return rc;
	rc = hog_start(plan->cpu, &hog, err);
	if (!rc) {
		histogram_reset(w->round);
		rc = events_single(events, &how, &s, err);
		hog_stop(hog);
	}
	events_close(events);
	if (rc)
		return rc;
	figures_add_percentile(w->figures, row_of(w, level), "wake_p50_us", w->round, P50, 1e-3);
	figures_add_percentile(w->figures, row_of(w, level), "wake_p99_us", w->round, P99, 1e-3);
	histogram_merge(w->wake[level], w->round);
	return 0;
}

static int consumer_measure(struct workers *w, unsigned level, struct error *err)
{
	struct flood_result result = {.ages = w->round};
	struct figures_row *row = row_of(w, level);
	int rc = flood_measure(&w->flood, &levels[level].who, &result, err);

	if (rc == -ENODATA) {
		figures_note(w->figures, "%.200s.", err->text);
		return 0;
	}
	if (rc)
		return rc;
	figures_add(w->figures, row, "capacity_per_second", result.capacity);
	figures_add(w->figures, row, "kept_percent", 100 * result.consumed / result.capacity);
	figures_add_percentile(w->figures, row, "age_p50_us", w->round, P50, 1e-3);
	figures_add_percentile(w->figures, row, "age_p99_us", w->round, P99, 1e-3);
	histogram_merge(w->age[level], w->round);
	return 0;
}

static int rounds_run(struct workers *w, struct error *err)
{
	const struct bench_plan *plan = w->flood.plan;
	int rc = 0;

	for (unsigned i = 0; i < plan->rounds * LEVELS && !rc; i++) {
		unsigned level = bench_turn(i / LEVELS, i % LEVELS, LEVELS);

		bench_progress(plan, i, plan->rounds * LEVELS, "workers: %s",
			       levels[level].who.name);
		rc = wake_measure(w, level, err);
		if (!rc)
			rc = consumer_measure(w, level, err);
	}
	for (unsigned i = 0; i < LEVELS && !rc; i++) {
		struct figures_row *row = row_of(w, i);

		figures_pool_percentile(w->figures, row, "wake_p50_us", w->wake[i], P50, 1e-3);
		figures_pool_percentile(w->figures, row, "wake_p99_us", w->wake[i], P99, 1e-3);
		figures_pool_percentile(w->figures, row, "age_p50_us", w->age[i], P50, 1e-3);
		figures_pool_percentile(w->figures, row, "age_p99_us", w->age[i], P99, 1e-3);
	}
	return rc;
}

static int workers_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct histogram *h = malloc((2 * LEVELS + 1) * sizeof(*h));
	struct workers w = {
		.flood = {.plan = plan, .window = (plan->quick ? 60 : 400) * NSEC_PER_MSEC},
		.figures = f,
		.round = h,
	};
	int rc;

	if (!h)
		return error_set(err, -ENOMEM, "no memory for histograms");
	for (unsigned i = 0; i < LEVELS; i++) {
		w.wake[i] = &h[1 + i];
		w.age[i] = &h[1 + LEVELS + i];
		histogram_reset(w.wake[i]);
		histogram_reset(w.age[i]);
	}
	rc = site_open(plan->napier, plan->rundir, &w.flood.site, err);
	if (!rc) {
		rc = rounds_run(&w, err);
		site_close(&w.flood.site);
	}
	free(h);
	return rc;
}

const struct bench_part pollers_workers = {
	.key = "workers",
	.summary = "priority of the workqueue's threads, a consumer beside them",
	.form = &form,
	.run = workers_run,
};

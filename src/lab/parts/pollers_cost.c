/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one event costs a poller: its interrupt is taken, the NAPI is scheduled, polled, completed.
 * Events circle, so nobody waits and nothing else is in the figure.
 */
#include "lab/parts/pollers.h"

enum { NAPIS = 8 };

static const struct figures_form form = {
	.key = "cost",
	.title = "Cost of an event: schedule, poll without a packet's work, complete; 8 NAPIs that "
		 "always\nhave one, on one CPU; ratios are of CPU. busy-poll neither schedules nor "
		 "completes.",
	.label = {{"poller", "poller"}},
	.column =
		{
			{"ns_per_event", "ns/event", 0},
			{"cpu_ns_per_event", "CPU ns/event", 0},
			{"ratio_to_softirq", "x softirq", 2},
			{"completes_per_event", "completes/event", 2},
		},
};

static int poller_measure(const struct bench_plan *plan, struct figures *f, enum poller poller,
			  double *cpu, struct error *err)
{
	struct figures_row *row = figures_row(f, poller_name(poller), "", "");
	struct events_config config = pollers_events(plan, f, poller, NAPIS);
	struct events_sample s;
	struct events *events;
	int rc;

	rc = events_open(&config, &events, err);
	if (rc)
		return rc;
	rc = events_circle(events, (plan->quick ? 10 : 100) * NSEC_PER_MSEC, &s, err);
	events_close(events);
	if (rc || !s.events)
		return rc;
	*cpu = (double)s.cpu / (double)s.events;
	figures_add(f, row, "ns_per_event", (double)s.wall / (double)s.events);
	figures_add(f, row, "cpu_ns_per_event", *cpu);
	figures_add(f, row, "completes_per_event", (double)s.completes / (double)s.circled);
	return 0;
}

static int cost_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	for (unsigned round = 0; round < plan->rounds; round++) {
		double cpu[POLLER_RUNNER_MAX] = {0};

		for (unsigned i = 0; i < POLLER_RUNNER_MAX; i++) {
			enum poller poller = bench_turn(round, i, POLLER_RUNNER_MAX);
			int rc;

			bench_progress(plan, round * POLLER_RUNNER_MAX + i,
				       plan->rounds * POLLER_RUNNER_MAX, "cost: %s",
				       poller_name(poller));
			rc = poller_measure(plan, f, poller, &cpu[poller], err);
			if (rc)
				return rc;
		}
		for (unsigned p = 0; p < POLLER_RUNNER_MAX && cpu[POLLER_SOFTIRQ] > 0; p++)
			figures_add(f, figures_row(f, poller_name(p), "", ""), "ratio_to_softirq",
				    cpu[p] / cpu[POLLER_SOFTIRQ]);
	}
	return 0;
}

const struct bench_part pollers_cost = {
	.key = "cost",
	.summary = "schedule, poll and complete, per event",
	.form = &form,
	.run = cost_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive livelock: twice as many UDP packets as forwarder and consumer together can take, on one
 * CPU. Who polls before everything else delivers nothing to a consumer that it leaves no CPU.
 */
#include <errno.h>

#include "lab/parts/flood.h"

static const struct figures_form form = {
	.key = "flood",
	.title = "UDP through a bridge to a consumer on the same CPU, 82 bytes a datagram. "
		 "Capacity: the "
		 "most that\nit consumes at any rate. Delivered: of twice that, what it still "
		 "consumes; 50% is all that could be,\nand kept says how much of the capacity is "
		 "left. The kernel's softirq is put on that CPU by RPS.",
	.label = {{"poller", "poller"}, {"deferral", "deferral"}},
	.column =
		{
			{"capacity_per_second", "capacity/s", 0},
			{"delivered_percent", "delivered %", 1},
			{"kept_percent", "kept %", 1},
			{"sent_per_second", "sent/s", 0},
		},
};

#define SOFTIRQ(policy)                                                                            \
	{                                                                                          \
		.kind = FORWARDER_NAPIER_SOFTIRQ, .name = "softirq", .how = policy,                \
		.settings = "deferral = \"" policy "\";"                                           \
	}

static const struct contestant contestants[] = {
	{.kind = FORWARDER_KERNEL, .name = "kernel, softirq", .steered = true, .how = ""},
	{.kind = FORWARDER_KERNEL_THREADED, .name = "kernel, threaded NAPI", .how = ""},
	SOFTIRQ("never"),
	SOFTIRQ("restart-limit"),
	SOFTIRQ("looped:1"),
	SOFTIRQ("looped:2"),
	SOFTIRQ("ksoftirqd-running"),
	{.kind = FORWARDER_NAPIER_THREAD, .name = "thread", .how = ""},
	{.kind = FORWARDER_NAPIER_WORKQUEUE, .name = "workqueue", .how = ""},
	{.kind = FORWARDER_NAPIER_BUSY_POLL, .name = "busy-poll", .how = ""},
};

enum { CONTESTANTS = sizeof(contestants) / sizeof(*contestants) };

static int contestant_run(struct flood *b, struct figures *f, const struct contestant *who,
			  struct error *err)
{
	struct flood_result result = {0};
	struct figures_row *row;
	int ret = flood_measure(b, who, &result, err);

	if (ret == -EOPNOTSUPP || ret == -ENODATA) {
		figures_note(f, "Left out: %.200s.", err->text);
		return 0;
	}
	if (ret)
		return ret;
	row = figures_row(f, who->name, who->how, "");
	figures_add(f, row, "capacity_per_second", result.capacity);
	figures_add(f, row, "sent_per_second", result.sent);
	figures_add(f, row, "delivered_percent",
		    result.sent > 0 ? 100 * result.consumed / result.sent : 0);
	figures_add(f, row, "kept_percent", 100 * result.consumed / result.capacity);
	return 0;
}

static int flood_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct flood b = {
		.plan = plan,
		.window = (plan->quick ? 60 : 400) * NSEC_PER_MSEC,
	};
	int ret = site_open(plan->napier, plan->rundir, &b.site, err);

	if (ret)
		return ret;
	for (unsigned i = 0; i < plan->rounds * CONTESTANTS && !ret; i++) {
		const struct contestant *who =
			&contestants[bench_turn(i / CONTESTANTS, i % CONTESTANTS, CONTESTANTS)];

		bench_progress(plan, i, plan->rounds * CONTESTANTS, "flood: %s %s", who->name,
			       who->how);
		ret = contestant_run(&b, f, who, err);
	}
	if (plan->apart < 0)
		figures_note(f, "There is one CPU only: who sends shares it.");
	site_close(&b.site);
	return ret;
}

const struct bench_part pollers_flood = {
	.key = "flood",
	.summary = "UDP at twice the capacity, the consumer on the same CPU",
	.form = &form,
	.run = flood_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive livelock: twice as many UDP packets as forwarder and consumer together can take, on one
 * CPU. Who polls before everything else delivers nothing to a consumer that it leaves no CPU.
 */
#include <errno.h>
#include <string.h>

#include "lab/clock.h"
#include "lab/consumer.h"
#include "lab/pollers_site.h"

enum { FRAME = 124, PORT = 9, FIRST_RATE = 20000, STEPS = 16 };
/* From one rate to the next, and what still counts as all. */
#define STEP_UP 1.5
#define ALL 0.95

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

struct flood {
	const struct pollers_plan *plan;
	struct figures *figures;
	struct site site;
	int64_t window;
};

struct outcome {
	double sent, consumed; /* a second */
};

static int rate_run(struct flood *b, struct consumer *consumer, double rate, int64_t window,
		    struct outcome *out, struct error *err)
{
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = b->site.lab->namespace[b->site.generator].path,
		.interface = "out",
		.frame = frame,
		.length = FRAME,
		.rate = (uint64_t)rate,
		.cpu = b->plan->apart < 0 ? b->plan->cpu : b->plan->apart,
	};
	struct frames_generator *g;
	int64_t duration;
	int ret;

	frames_udp(frame, site_sink, site_source, SITE_SINK_ADDRESS, SITE_SOURCE_ADDRESS, PORT,
		   FRAME);
	ret = frames_generator_start(&config, &g, err);
	if (ret)
		return ret;
	clock_sleep(window / 4); /* so that what fills up is full */
	out->sent = -(double)frames_generator_sent(g);
	out->consumed = -(double)consumer_count(consumer);
	duration = -clock_now();
	clock_sleep(window);
	out->sent += (double)frames_generator_sent(g);
	out->consumed += (double)consumer_count(consumer);
	duration += clock_now();
	frames_generator_stop(g);
	out->sent *= 1e9 / (double)duration;
	out->consumed *= 1e9 / (double)duration;
	return 0;
}

/* Upwards until it does not keep up, twice: once may have been another program. */
static int capacity_find(struct flood *b, struct consumer *consumer, double *capacity,
			 struct error *err)
{
	double rate = FIRST_RATE;
	unsigned behind = 0;

	*capacity = 0;
	for (unsigned i = 0; i < STEPS && behind < 2; i++, rate *= STEP_UP) {
		struct outcome o;
		int ret = rate_run(b, consumer, rate, b->window / 2, &o, err);

		if (ret)
			return ret;
		if (o.consumed > *capacity)
			*capacity = o.consumed;
		behind = o.consumed < ALL * o.sent ? behind + 1 : 0;
	}
	return 0;
}

static int figures_take(struct flood *b, const struct contestant *who, struct consumer *consumer,
			struct error *err)
{
	struct figures_row *row = figures_row(b->figures, who->name, who->how, "");
	struct outcome o;
	double capacity;
	int ret = capacity_find(b, consumer, &capacity, err);

	if (!ret && !(capacity > 0)) {
		figures_note(b->figures, "%s: no datagram came through.", who->name);
		return 0;
	}
	if (!ret)
		ret = rate_run(b, consumer, 2 * capacity, b->window, &o, err);
	if (ret)
		return ret;
	figures_add(b->figures, row, "capacity_per_second", capacity);
	figures_add(b->figures, row, "sent_per_second", o.sent);
	figures_add(b->figures, row, "delivered_percent",
		    o.sent > 0 ? 100 * o.consumed / o.sent : 0);
	figures_add(b->figures, row, "kept_percent", 100 * o.consumed / capacity);
	return 0;
}

static int contestant_run(struct flood *b, const struct contestant *who, struct error *err)
{
	struct cpuset cpus = {0};
	struct consumer *consumer;
	struct forwarder f;
	int ret;

	cpuset_add(&cpus, (unsigned)b->plan->cpu);
	ret = site_start(&b->site, who, &cpus, &f, err);
	if (ret == -EOPNOTSUPP) {
		figures_note(b->figures, "Left out: %s: %.200s.", who->name, err->text);
		return 0;
	}
	if (ret)
		return ret;
	ret = consumer_start(b->site.lab, b->site.sink, PORT, b->plan->cpu, &consumer, err);
	if (!ret) {
		ret = figures_take(b, who, consumer, err);
		consumer_stop(consumer);
	}
	if (ret)
		site_stop(&b->site, &f, NULL);
	else
		ret = site_stop(&b->site, &f, err);
	return ret;
}

static int flood_run(const struct pollers_plan *plan, struct figures *f, struct error *err)
{
	struct flood b = {
		.plan = plan,
		.figures = f,
		.window = (plan->quick ? 60 : 400) * NSEC_PER_MSEC,
	};
	int ret = site_open(plan, &b.site, err);

	if (ret)
		return ret;
	for (unsigned i = 0; i < plan->rounds * CONTESTANTS && !ret; i++) {
		const struct contestant *who =
			&contestants[pollers_turn(i / CONTESTANTS, i % CONTESTANTS, CONTESTANTS)];

		pollers_progress(plan, i, plan->rounds * CONTESTANTS, "flood: %s %s", who->name,
				 who->how);
		ret = contestant_run(&b, who, err);
	}
	if (plan->apart < 0)
		figures_note(f, "There is one CPU only: who sends shares it.");
	site_close(&b.site);
	return ret;
}

const struct pollers_part pollers_flood = {
	.key = "flood",
	.summary = "UDP at twice the capacity, the consumer on the same CPU",
	.form = &form,
	.run = flood_run,
};

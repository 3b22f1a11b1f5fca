/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "lab/clock.h"
#include "lab/parts/consumer.h"
#include "lab/parts/flood.h"

enum { FRAME = 124, PORT = 9, FIRST_RATE = 20000, STEPS = 16, STALE = 3 };
#define STEP_UP 1.5 /* from one rate to the next */

struct outcome {
	double sent, consumed; /* a second */
};

static uint64_t datagrams(void *consumer)
{
	return consumer_count(consumer);
}

/* patient: one datagram at least is awaited, as less than that says nothing of what could be. */
static int rate_run(struct flood *b, struct consumer *consumer, double rate, int64_t window,
		    bool patient, struct outcome *out, struct error *err)
{
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = b->site.lab->namespace[b->site.generator].path,
		.interface = "out",
		.frame = frame,
		.length = FRAME,
		.rate = (uint64_t)rate,
		.cpu = bench_apart(b->plan),
	};
	struct frames_generator *g;
	uint64_t before;
	int64_t duration;
	int ret;

	frames_udp(frame, site_sink, site_source, SITE_SINK_ADDRESS, SITE_SOURCE_ADDRESS, PORT,
		   FRAME);
	ret = frames_generator_start(&config, &g, err);
	if (ret)
		return ret;
	clock_sleep(window / 4); /* so that what fills up is full */
	out->sent = -(double)frames_generator_sent(g);
	before = consumer_count(consumer);
	duration = -clock_now();
	clock_sleep(window);
	if (patient)
		bench_await(datagrams, consumer, before);
	out->sent += (double)frames_generator_sent(g);
	out->consumed = (double)(consumer_count(consumer) - before);
	duration += clock_now();
	frames_generator_stop(g);
	out->sent *= 1e9 / (double)duration;
	out->consumed *= 1e9 / (double)duration;
	return 0;
}

/* Upwards until higher rates bring no more: three times, as one may have been another program. */
static int capacity_find(struct flood *b, struct consumer *consumer, double *capacity,
			 struct error *err)
{
	double rate = FIRST_RATE;
	unsigned stale = 0;

	*capacity = 0;
	for (unsigned i = 0; i < STEPS && stale < STALE; i++, rate *= STEP_UP) {
		struct outcome o;
		int ret = rate_run(b, consumer, rate, b->window / 2, !*capacity, &o, err);

		if (ret)
			return ret;
		stale = o.consumed > *capacity ? 0 : stale + 1;
		if (o.consumed > *capacity)
			*capacity = o.consumed;
	}
	return 0;
}

static int result_take(struct flood *b, const struct contestant *who, struct consumer *consumer,
		       struct flood_result *out, struct error *err)
{
	struct outcome o;
	int ret = capacity_find(b, consumer, &out->capacity, err);

	if (!ret && !(out->capacity > 0))
		return error_set(err, -ENODATA, "%s%s%s: no datagram came through", who->name,
				 *who->how ? " " : "", who->how);
	if (!ret)
		ret = rate_run(b, consumer, 2 * out->capacity, b->window, false, &o, err);
	if (ret)
		return ret;
	out->sent = o.sent;
	out->consumed = o.consumed;
	if (!out->ages)
		return 0;
	histogram_reset(out->ages);
	consumer_ages(consumer, out->ages);
	ret = rate_run(b, consumer, out->capacity / 2, b->window, true, &o, err);
	consumer_ages(consumer, NULL);
	return ret;
}

int flood_measure(struct flood *b, const struct contestant *who, struct flood_result *out,
		  struct error *err)
{
	struct cpuset cpus = {0};
	struct consumer *consumer;
	struct forwarder f;
	int ret;

	cpuset_add(&cpus, (unsigned)b->plan->cpu);
	ret = site_start(&b->site, who, &cpus, &f, err);
	if (ret)
		return ret;
	ret = consumer_start(b->site.lab, b->site.sink, PORT, b->plan->cpu, &consumer, err);
	if (!ret) {
		ret = result_take(b, who, consumer, out, err);
		consumer_stop(consumer);
	}
	if (ret)
		site_stop(&b->site, &f, NULL);
	else
		ret = site_stop(&b->site, &f, err);
	return ret;
}

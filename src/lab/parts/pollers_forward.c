/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames through a bridge on two veth: napier's pollers against the kernel's modes, same links,
 * same load, and what all of it cost.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/cputime.h"
#include "lab/napi_watch.h"
#include "lab/parts/pollers.h"
#include "lab/parts/site.h"

enum { FRAME = 60, STEADY = 100000, KSOFTIRQD_MAX = 256 };

static const struct figures_form form = {
	.key = "forward",
	.title =
		"64-byte frames through a bridge on two veth, one direction. Mframe/s: more come "
		"than "
		"it can carry.\nThe others at 100 000 a second, as long as it can carry that: CPU "
		"of "
		"the whole machine a frame,\nless what a cable takes (generator and sink), and "
		"parts "
		"of it: threads of the forwarder's own,\nksoftirqd, the generator's thread with "
		"all "
		"softirq on its back. The kernel's bridge in softirq\nruns on the generator's CPU, "
		"all others on the polling one.",
	.label = {{"forwarder", "forwarder"}},
	.column =
		{
			{"mframes_per_second", "Mframe/s", 3},
			{"packets_per_poll_saturated", "pkts/poll", 1},
			{"cpu_ns_per_frame", "CPU ns/frame", 0},
			{"own_cpu_ns_per_frame", "own", 0},
			{"ksoftirqd_cpu_ns_per_frame", "ksoftirqd", 0},
			{"generator_cpu_ns_per_frame", "generator", 0},
			{"packets_per_poll", "pkts/poll", 1},
			{"loss_percent", "lost %", 2},
		},
};

static const struct contestant contestants[] = {
	{.kind = FORWARDER_NONE, .name = "cable, no forwarder"},
	{.kind = FORWARDER_KERNEL, .name = "kernel, softirq"},
	{.kind = FORWARDER_KERNEL_THREADED, .name = "kernel, threaded NAPI"},
	{.kind = FORWARDER_NAPIER_SOFTIRQ, .name = "softirq"},
	{.kind = FORWARDER_NAPIER_THREAD, .name = "thread"},
	{.kind = FORWARDER_NAPIER_WORKQUEUE, .name = "workqueue"},
	{.kind = FORWARDER_NAPIER_BUSY_POLL, .name = "busy-poll"},
	CONTESTANT_AUTO,
};

enum { CONTESTANTS = sizeof(contestants) / sizeof(*contestants) };

struct forward {
	const struct bench_plan *plan;
	struct figures *figures;
	struct site site;
	int64_t window;
	double cable; /* CPU ns a frame, of this round */
};

struct window {
	double sent, received, own, ksoftirqd, generator;
	struct cputime_span span;
};

/* The kernel's, all CPUs', ns. */
static int64_t ksoftirqd_cpu(void)
{
	pid_t pids[KSOFTIRQD_MAX];
	unsigned n = cputime_threads_find("ksoftirqd/", pids, KSOFTIRQD_MAX);
	int64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += cputime_process(pids[i]);
	return sum;
}

static void window_add(struct window *w, double sign, const struct forwarder *f,
		       const struct frames_generator *g, struct frames_sink *sink)
{
	w->sent += sign * (double)frames_generator_sent(g);
	w->received += sign * (double)frames_sink_count(sink);
	w->own += sign * (double)forwarder_cpu(f);
	w->ksoftirqd += sign * (double)ksoftirqd_cpu();
	w->generator += sign * (double)frames_generator_cpu(g);
}

static int window_take(const struct forward *b, const struct forwarder *f,
		       const struct frames_generator *g, struct frames_sink *sink, struct window *w)
{
	pid_t ours[] = {getpid(), forwarder_pid(f)};
	struct cputime begin;
	int ret;

	frames_sink_await(sink, frames_sink_count(sink));
	*w = (struct window){0};
	clock_sleep(b->window / 4);
	ret = cputime_begin(&begin, ours, 2);
	window_add(w, -1, f, g, sink);
	clock_sleep(b->window);
	frames_sink_await(sink, (uint64_t)-w->received);
	window_add(w, 1, f, g, sink);
	return ret ? ret : cputime_end(&begin, ours, 2, &w->span);
}

/* Of who forwards, which says it itself, or of the kernel, which is watched. */
struct polled {
	const struct forwarder *forwarder;
	const char *interface;
	struct napi_watch *watch; /* NULL: it says it itself */
	uint64_t packets, polls;
};

static uint64_t polls_read(void *of)
{
	struct polled *p = of;
	struct napi_watched watched = {0};

	if (!p->watch) {
		forwarder_polls(p->forwarder, &p->packets, &p->polls);
		return p->polls;
	}
	napi_watch_read(p->watch, p->interface, &watched);
	p->packets = watched.packets;
	p->polls = watched.polls;
	return p->polls;
}

/* Of polls that found something; 0: not to be known. In a window of its own, as looking costs. */
static double per_poll(struct forward *b, const struct forwarder *f)
{
	struct polled p = {.forwarder = f, .interface = b->site.at.interface[0]};
	uint64_t packets, polls;
	struct error err;
	bool any;

	if (f->kind == FORWARDER_NONE)
		return 0;
	if (forwarder_polls(f, &p.packets, &p.polls) == -EOPNOTSUPP &&
	    napi_watch_open(&p.interface, 1, &p.watch, &err)) {
		figures_note(b->figures, "The kernel's packets a poll are not known: %.200s.",
			     err.text);
		return 0;
	}
	packets = p.packets;
	polls = p.polls;
	clock_sleep(b->window / 2);
	any = bench_await(polls_read, &p, polls);
	if (p.watch)
		napi_watch_close(p.watch);
	return any ? (double)(p.packets - packets) / (double)(p.polls - polls) : 0;
}

static void figures_take(struct forward *b, const struct contestant *who, const struct window *w,
			 double packets)
{
	struct figures_row *row = figures_row(b->figures, who->name, "", "");
	double cost = (double)w->span.cost / w->received;

	if (who->kind == FORWARDER_NONE)
		b->cable = cost;
	figures_add(b->figures, row, "loss_percent",
		    w->sent > w->received ? 100 * (1 - w->received / w->sent) : 0);
	figures_add(b->figures, row, "own_cpu_ns_per_frame", w->own / w->received);
	figures_add(b->figures, row, "ksoftirqd_cpu_ns_per_frame", w->ksoftirqd / w->received);
	figures_add(b->figures, row, "generator_cpu_ns_per_frame", w->generator / w->received);
	if (packets > 0)
		figures_add(b->figures, row, "packets_per_poll", packets);
	/* What is left when others used most of the machine is no measurement. */
	if (b->cable > 0 && w->span.others < w->span.busy / 2)
		figures_add(b->figures, row, "cpu_ns_per_frame",
			    who->kind == FORWARDER_NONE ? cost : cost - b->cable);
}

static int loads_run(struct forward *b, const struct contestant *who, const struct forwarder *f,
		     struct frames_sink *sink, struct error *err)
{
	struct figures_row *row = figures_row(b->figures, who->name, "", "");
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = b->site.lab->namespace[b->site.generator].path,
		.interface = who->kind == FORWARDER_NONE ? "cable" : "out",
		.frame = frame,
		.length = FRAME,
		.cpu = bench_apart(b->plan),
	};

	frames_plain(frame, site_sink, site_source, FRAME);
	for (unsigned load = 0; load < 2; load++) {
		struct frames_generator *g;
		struct window w;
		double packets;
		int ret;

		config.rate = load ? STEADY : 0;
		ret = frames_generator_start(&config, &g, err);
		if (ret)
			return ret;
		clock_sleep(b->plan->quick ? who->settle / 5 : who->settle);
		ret = window_take(b, f, g, sink, &w);
		packets = ret ? 0 : per_poll(b, f);
		frames_generator_stop(g);
		if (ret)
			return error_set(err, ret, "reading /proc: %s", strerror(-ret));
		if (!(w.received > 0)) {
			figures_note(b->figures, "%s: no frame came through.", who->name);
			continue;
		}
		if (load) {
			figures_take(b, who, &w, packets);
			continue;
		}
		figures_add(b->figures, row, "mframes_per_second",
			    w.received * 1e3 / (double)w.span.duration);
		if (packets > 0)
			figures_add(b->figures, row, "packets_per_poll_saturated", packets);
	}
	return 0;
}

static int contestant_run(struct forward *b, const struct contestant *who, struct error *err)
{
	struct cpuset cpus = {0};
	struct frames_sink *sink;
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
	ret = frames_sink_open(b->site.lab->namespace[b->site.sink].path,
			       who->kind == FORWARDER_NONE ? "cable" : "in", &sink, err);
	if (!ret) {
		ret = loads_run(b, who, &f, sink, err);
		frames_sink_close(sink);
	}
	if (ret)
		site_stop(&b->site, &f, NULL);
	else
		ret = site_stop(&b->site, &f, err);
	return ret;
}

static int rounds_run(struct forward *b, struct error *err)
{
	for (unsigned round = 0; round < b->plan->rounds; round++) {
		for (unsigned i = 0; i < CONTESTANTS; i++) {
			/* The cable first, as the others are told less it. */
			const struct contestant *who =
				&contestants[i ? 1 + bench_turn(round, i - 1, CONTESTANTS - 1) : 0];
			int ret;

			bench_progress(b->plan, round * CONTESTANTS + i,
				       b->plan->rounds * CONTESTANTS, "forward: %s", who->name);
			ret = contestant_run(b, who, err);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int forward_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct forward b = {
		.plan = plan,
		.figures = f,
		.window = (plan->quick ? 60 : 400) * NSEC_PER_MSEC,
	};
	int ret = site_open(plan->napier, plan->rundir, &b.site, err);

	if (ret)
		return ret;
	ret = rounds_run(&b, err);
	site_close(&b.site);
	return ret;
}

const struct bench_part pollers_forward = {
	.key = "forward",
	.summary = "frames/s and CPU a frame on veth, and the kernel's modes",
	.form = &form,
	.run = forward_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 64-byte UDP frames from a generator into a socket: how many a program takes, and what that costs
 * it, the kernel's share included.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/parts/delivery.h"
#include "lab/parts/frames.h"
#include "lab/parts/udp_path.h"

enum { FRAME = 60, PORT = 9, STEADY = 100000, STEPS = 14, STALE = 3 };

#define STEP_UP 1.4 /* from one rate to the next */

static const char title[] =
	"64-byte UDP frames over veth into a socket. M/s: the most that the program takes at any\n"
	"rate; M/CPU s: there, in a second of CPU of all that receives; x kernel: that against\n"
	"the best of the kernel's in the same round. CPU ns a frame, there: the program, the\n"
	"engine, and the kernel: softirq for the near interface wherever it ran, and its NAPI\n"
	"threads. Then all of it at 100 000 frames a second, as long as it can take those.\n"
	"CPUs: generator / kernel's softirq for the near interface / engine / "
	"program.";

static const struct figures_form form = {
	.key = "rate",
	.title = title,
	.label = {{"socket", "socket"}, {"cpus", "CPUs"}},
	.column =
		{
			{"mframes_per_second", "M/s", 3},
			{"mframes_per_cpu_second", "M/CPU s", 3},
			{"ratio_to_kernel", "x kernel", 2},
			{"program_cpu_ns_per_frame", "program", 0},
			{"engine_cpu_ns_per_frame", "engine", 0},
			{"kernel_cpu_ns_per_frame", "kernel", 0},
			{"packets_per_poll", "pkts/poll", 1},
			{"lost_percent", "lost %", 1},
			{"steady_cpu_ns_per_frame", "CPU ns/frame", 0},
			{"steady_lost_percent", "lost %", 2},
		},
};

static const struct udp_path paths[] = {
	{.name = "kernel, recvmmsg", .kind = UDP_KERNEL_SLEEPS},
	{.name = "kernel, recvmmsg, RPS",
	 .kind = UDP_KERNEL_SLEEPS,
	 .softirq = UDP_SOFTIRQ_STEERED},
	{.name = "kernel, recvmmsg, threaded NAPI",
	 .kind = UDP_KERNEL_SLEEPS,
	 .softirq = UDP_SOFTIRQ_THREADED},
	{.name = "kernel, recvmmsg, prefers", .kind = UDP_KERNEL_PREFER},
	{.name = "app", .kind = UDP_ENGINE, .poller = POLLER_APP},
	{.name = "softirq", .kind = UDP_ENGINE, .poller = POLLER_SOFTIRQ},
	{.name = "thread", .kind = UDP_ENGINE, .poller = POLLER_THREAD},
	{.name = "busy-poll", .kind = UDP_ENGINE, .poller = POLLER_BUSY_POLL},
};

enum { PATHS = sizeof(paths) / sizeof(*paths) };

struct rate {
	const struct bench_plan *plan;
	struct figures *figures;
	struct ends ends;
	struct napi_watch *watch;
	int64_t window;
	double efficiency[PATHS]; /* of this round, M/CPU s; 0: not measured */
};

struct moment {
	int64_t when;
	uint64_t sent;
	struct udp_server_counts server;
	uint64_t polls, packets;
	int64_t cpu[CHARGE_PARTIES];
};

static int program_cpu(const struct rate *r, const struct udp_path *path)
{
	if (path->kind == UDP_ENGINE && path->poller == POLLER_BUSY_POLL)
		return r->plan->spare;
	return r->plan->cpu;
}

static void cpus_format(const struct rate *r, const struct udp_path *path, char *text, size_t size)
{
	const struct bench_plan *plan = r->plan;
	int softirq = path->softirq == UDP_SOFTIRQ_HERE && path->kind != UDP_KERNEL_PREFER
			      ? bench_apart(plan)
			      : plan->cpu;
	char engine[16] = "-";

	if (path->kind == UDP_ENGINE)
		snprintf(engine, sizeof(engine), "%d", plan->cpu);
	snprintf(text, size, "%d/%d/%s/%d", bench_apart(plan), softirq, engine,
		 program_cpu(r, path));
}

struct measured {
	const struct rate *rate;
	const struct udp_path_run *run;
	const struct frames_generator *generator;
};

/* The kernel's part is what it does for the near interface: the rest is the generator's. */
static void moment_read(void *arg, void *moment)
{
	const struct measured *m = arg;
	const struct rate *r = m->rate;
	const struct udp_path_run *run = m->run;
	const struct frames_generator *g = m->generator;
	struct moment *out = moment;
	bool engine = run->path->kind == UDP_ENGINE;
	struct charge_config charge = {
		.watch = r->watch,
		.sender = frames_generator_thread(g),
		.receiver = udp_server_thread(run->server),
		.engine = engine ? getpid() : 0,
		.interface = {r->ends.near, run->path->softirq == UDP_SOFTIRQ_STEERED ? "" : NULL},
		.threaded = run->path->softirq == UDP_SOFTIRQ_THREADED,
		.theirs = true,
	};
	struct napi_watched near;

	out->when = clock_now();
	out->sent = frames_generator_sent(g);
	udp_server_read(run->server, &out->server);
	charge_read(&charge, out->cpu);
	napi_watch_read(r->watch, r->ends.near, &near);
	out->polls = engine ? out->server.polls : near.polls;
	out->packets = engine ? out->server.packets : near.packets;
}

static void moment_take(struct measured *m, struct moment *out)
{
	charge_moment(moment_read, m, out, sizeof(*out));
}

static uint64_t datagrams(void *server)
{
	struct udp_server_counts counts;

	udp_server_read(server, &counts);
	return counts.datagrams;
}

static void window_take(const struct rate *r, const struct udp_path_run *run,
			const struct frames_generator *g, struct moment *from, struct moment *to)
{
	struct measured m = {.rate = r, .run = run, .generator = g};

	bench_await(datagrams, run->server, datagrams(run->server));
	clock_sleep(r->window / 4);
	moment_take(&m, from);
	clock_sleep(r->window);
	bench_await(datagrams, run->server, from->server.datagrams);
	moment_take(&m, to);
}

static void figures_take(struct rate *r, unsigned which, bool steady, const struct moment *from,
			 const struct moment *to)
{
	static const char *const parties[CHARGE_PARTIES] = {
		[CHARGE_RECEIVER] = "program_cpu_ns_per_frame",
		[CHARGE_ENGINE] = "engine_cpu_ns_per_frame",
		[CHARGE_KERNEL] = "kernel_cpu_ns_per_frame",
	};
	double taken = (double)(to->server.datagrams - from->server.datagrams);
	double sent = (double)(to->sent - from->sent), all = 0;
	double lost = sent > taken ? 100 * (1 - taken / sent) : 0;
	char cpus[FIGURES_LABEL_MAX];
	struct figures_row *row;

	cpus_format(r, &paths[which], cpus, sizeof(cpus));
	row = figures_row(r->figures, paths[which].name, cpus, "");
	figures_add(r->figures, row, steady ? "steady_lost_percent" : "lost_percent", lost);
	for (unsigned i = 0; i < CHARGE_PARTIES; i++) {
		double cpu = (double)(to->cpu[i] - from->cpu[i]);

		if (!parties[i])
			continue;
		all += cpu;
		if (!steady)
			figures_add(r->figures, row, parties[i], cpu / taken);
	}
	if (steady) {
		figures_add(r->figures, row, "steady_cpu_ns_per_frame", all / taken);
		return;
	}
	r->efficiency[which] = taken * 1e3 / all;
	figures_add(r->figures, row, "mframes_per_second",
		    taken * 1e3 / (double)(to->when - from->when));
	figures_add(r->figures, row, "mframes_per_cpu_second", r->efficiency[which]);
	if (to->polls > from->polls)
		figures_add(r->figures, row, "packets_per_poll",
			    (double)(to->packets - from->packets) /
				    (double)(to->polls - from->polls));
}

/* At one rate. */
static int rate_measure(const struct rate *r, const struct udp_path_run *run, double rate,
			struct moment *from, struct moment *to, struct error *err)
{
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = r->ends.lab->namespace[r->ends.far_ns].path,
		.interface = r->ends.far,
		.frame = frame,
		.length = FRAME,
		.rate = (uint64_t)rate,
		.cpu = bench_apart(r->plan),
	};
	struct frames_generator *g;
	int ret;

	frames_udp(frame, ends_near_mac, ends_far_mac, ENDS_NEAR_ADDRESS, ENDS_FAR_ADDRESS, PORT,
		   FRAME);
	ret = frames_generator_start(&config, &g, err);
	if (ret)
		return ret;
	window_take(r, run, g, from, to);
	frames_generator_stop(g);
	return 0;
}

static double speed(const struct moment *from, const struct moment *to)
{
	return (double)(to->server.datagrams - from->server.datagrams) /
	       (double)(to->when - from->when);
}

/* Upwards until higher rates bring no more: three times, as one may have been another program. */
static int loads_run(struct rate *r, unsigned which, const struct udp_path_run *run,
		     struct error *err)
{
	struct moment from, to, best[2] = {0};
	double rate = STEADY, most = 0;
	int ret = rate_measure(r, run, rate, &from, &to, err);

	if (!ret && speed(&from, &to) > 0)
		figures_take(r, which, true, &from, &to);
	for (unsigned i = 0, stale = 0; i < STEPS && stale < STALE && !ret; i++) {
		stale = speed(&from, &to) > most ? 0 : stale + 1;
		if (!stale) {
			most = speed(&from, &to);
			best[0] = from;
			best[1] = to;
		}
		rate *= STEP_UP;
		ret = rate_measure(r, run, rate, &from, &to, err);
	}
	if (!ret && most > 0)
		figures_take(r, which, false, &best[0], &best[1]);
	if (!ret && !(most > 0))
		figures_note(r->figures, "%s: the program got nothing.", paths[which].name);
	return ret;
}

static int path_run(struct rate *r, unsigned which, struct error *err)
{
	const struct udp_path *path = &paths[which];
	struct udp_server_config config = {
		.ends = &r->ends,
		.work = UDP_COUNT,
		.port = PORT,
		.cpu = program_cpu(r, path),
		.engine_cpu = r->plan->cpu,
	};
	struct udp_path_run run;
	int ret;

	if (config.cpu < 0) {
		figures_note(r->figures,
			     "Left out: %s: it, the program and the generator have a CPU each, and "
			     "there are not as many.",
			     path->name);
		return 0;
	}
	ret = udp_path_start(path, &config, &run, err);
	if (ret == -EOPNOTSUPP) {
		figures_note(r->figures, "Left out: %s: %.200s.", path->name, err->text);
		return 0;
	}
	if (ret)
		return ret;
	ret = loads_run(r, which, &run, err);
	if (ret)
		udp_path_stop(&run, NULL);
	else
		ret = udp_path_stop(&run, err);
	return ret;
}

/* Against the kernel's best of the round. */
static void ratios_take(struct rate *r)
{
	double best = 0;

	for (unsigned i = 0; i < PATHS; i++) {
		if (paths[i].kind != UDP_ENGINE && r->efficiency[i] > best)
			best = r->efficiency[i];
	}
	for (unsigned i = 0; i < PATHS && best > 0; i++) {
		char cpus[FIGURES_LABEL_MAX];

		if (!(r->efficiency[i] > 0))
			continue;
		cpus_format(r, &paths[i], cpus, sizeof(cpus));
		figures_add(r->figures, figures_row(r->figures, paths[i].name, cpus, ""),
			    "ratio_to_kernel", r->efficiency[i] / best);
	}
}

static int rounds_run(struct rate *r, struct error *err)
{
	for (unsigned round = 0; round < r->plan->rounds; round++) {
		memset(r->efficiency, 0, sizeof(r->efficiency));
		for (unsigned i = 0; i < PATHS; i++) {
			unsigned which = bench_turn(round, i, PATHS);
			int ret;

			bench_progress(r->plan, round * PATHS + i, r->plan->rounds * PATHS,
				       "rate: %s", paths[which].name);
			ret = path_run(r, which, err);
			if (ret)
				return ret;
		}
		ratios_take(r);
	}
	return 0;
}

static int rate_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct rate r = {
		.plan = plan,
		.figures = f,
		.window = (plan->quick ? 30 : 200) * NSEC_PER_MSEC,
	};
	const char *watched[2] = {r.ends.near, ""};
	int ret = ends_open(plan->rundir, &r.ends, err);

	if (ret)
		return ret;
	ret = napi_watch_open(watched, 2, &r.watch, err);
	if (!ret) {
		ret = rounds_run(&r, err);
		napi_watch_close(r.watch);
	}
	if (plan->apart < 0)
		figures_note(f, "There is one CPU only: the generator shares it.");
	ends_close(&r.ends);
	return ret;
}

const struct bench_part delivery_rate = {
	.key = "rate",
	.summary = "64-byte UDP frames received a second, and per CPU second",
	.form = &form,
	.run = rate_run,
};

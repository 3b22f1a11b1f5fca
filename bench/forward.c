/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forward: 64-byte frames in one direction through napier and its peers, as ratios of one run.
 *
 *      generator ─── a [forwarder] b ─── sink          cable: generator ─── sink
 *
 * Two figures of each: frames a second when more come than it can carry, and CPU time a frame at a
 * rate that all can carry. Forwarders take turns, forth and back (ABBA); medians are printed.
 *
 * The generator has the first CPU for itself. What runs in softirq runs where the frames arrive,
 * which is there, so the kernel's unthreaded bridge always shares it. All others are measured
 * twice: on the second CPU, and on the generator's.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <lab/clock.h>
#include <lab/compare.h>
#include <lab/frames.h>
#include <lab/site.h>

#define RUNDIR "/run/napier"
#define SETTLE (200 * NSEC_PER_MSEC)
#define READY_TIMEOUT (10 * NSEC_PER_SEC)

enum { FRAME = 60, STEADY_RATE = 100000 };

enum forward_contestant {
	CABLE,
	KERNEL,
	KERNEL_THREADED,
	XDP_LOOP,
	DPDK,
	NAPIER_SOFTIRQ,
	NAPIER_THREAD,
	NAPIER_TX,
	CONTESTANTS
};

enum place { APART, TOGETHER, PLACES };

static const struct contestant_form {
	const char *name, *key;
	enum forwarder_kind kind; /* FORWARDER_NONE: a program of its own */
	bool peer;
} contestants[CONTESTANTS] = {
	[CABLE] = {"cable, no forwarder", "cable", FORWARDER_NONE, false},
	[KERNEL] = {"kernel bridge", "kernel", FORWARDER_KERNEL, true},
	[KERNEL_THREADED] = {"kernel bridge, threaded NAPI", "kernel-threaded",
			     FORWARDER_KERNEL_THREADED, true},
	[XDP_LOOP] = {"bare AF_XDP loop", "xdp-loop", FORWARDER_NONE, true},
	[DPDK] = {"DPDK on AF_XDP", "dpdk", FORWARDER_NONE, true},
	[NAPIER_SOFTIRQ] = {"napier, poller softirq", "napier-softirq", FORWARDER_NAPIER_SOFTIRQ,
			    false},
	[NAPIER_THREAD] = {"napier, poller thread", "napier-thread", FORWARDER_NAPIER_THREAD,
			   false},
	[NAPIER_TX] = {"napier, TX NAPIs on other CPU", "napier-tx", FORWARDER_NAPIER_TX, false},
};

struct figures {
	struct series rate;   /* frames a second, saturated */
	struct series loss;   /* share of the frames sent, at the steady rate */
	struct series cost;   /* ns of CPU a frame at the steady rate, of all CPUs */
	struct series others; /* CPUs used by other programs meanwhile */
};

struct bench {
	const char *programs[CONTESTANTS]; /* NULL: not built */
	struct site site;
	const char *napier;
	int cpu[PLACES]; /* of the forwarder */
	unsigned rounds;
	int64_t window;
	struct figures figures[CONTESTANTS][PLACES];
	char skipped[CONTESTANTS][ERROR_TEXT_MAX];
};

static int program_start(struct bench *b, enum forward_contestant who, const struct cpuset *cpus,
			 struct child *child, struct error *err)
{
	const char *netns = b->site.lab->namespace[b->site.at.ns].path;
	char cpu_text[12];
	const char *loop[] = {b->programs[who],	       "--netns", netns, b->site.at.interface[0],
			      b->site.at.interface[1], NULL};
	const char *dpdk[] = {b->programs[who],
			      "--netns",
			      netns,
			      "--cpu",
			      cpu_text,
			      b->site.at.interface[0],
			      b->site.at.interface[1],
			      NULL};
	int ret;

	snprintf(cpu_text, sizeof(cpu_text), "%u", cpuset_next(cpus, 0));
	ret = child_start(child, who == DPDK ? dpdk : loop, cpus, -1, err);
	if (!ret)
		ret = child_ready(child, READY_TIMEOUT, err);
	if (ret)
		child_stop(child, NULL);
	return ret;
}

struct window {
	double sent, received; /* frames */
	struct cputime_span span;
};

static int window_measure(struct bench *b, const char *out, uint64_t rate, pid_t forwarder,
			  struct frames_sink *sink, struct window *w, struct error *err)
{
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = b->site.lab->namespace[b->site.generator].path,
		.interface = out,
		.frame = frame,
		.length = FRAME,
		.rate = rate,
		.cpu = b->cpu[TOGETHER],
	};
	pid_t ours[] = {getpid(), forwarder};
	struct frames_generator *g;
	struct cputime begin;
	int ret;

	frames_plain(frame, site_sink, site_source, FRAME);
	ret = frames_generator_start(&config, &g, err);
	if (ret)
		return ret;
	clock_sleep(SETTLE);
	ret = cputime_begin(&begin, ours, 2);
	w->sent = -(double)frames_generator_sent(g);
	w->received = -(double)frames_sink_count(sink);
	clock_sleep(b->window);
	w->sent += (double)frames_generator_sent(g);
	w->received += (double)frames_sink_count(sink);
	if (!ret)
		ret = cputime_end(&begin, ours, 2, &w->span);
	frames_generator_stop(g);
	return ret;
}

static int figures_take(struct bench *b, enum forward_contestant who, enum place place,
			pid_t forwarder, struct error *err)
{
	struct figures *f = &b->figures[who][place];
	const char *out = who == CABLE ? "cable" : "out", *in = who == CABLE ? "cable" : "in";
	struct frames_sink *sink;
	struct window w;
	int ret = frames_sink_open(b->site.lab->namespace[b->site.sink].path, in, &sink, err);

	if (ret)
		return ret;
	ret = window_measure(b, out, 0, forwarder, sink, &w, err);
	if (!ret) {
		series_add(&f->rate, w.received * 1e9 / (double)w.span.duration);
		series_add(&f->others, (double)w.span.others / (double)w.span.duration);
		ret = window_measure(b, out, STEADY_RATE, forwarder, sink, &w, err);
	}
	if (!ret && w.sent > 0 && w.received > 0) {
		series_add(&f->loss, w.sent > w.received ? 1 - w.received / w.sent : 0);
		series_add(&f->cost, (double)w.span.cost / w.received);
		series_add(&f->others, (double)w.span.others / (double)w.span.duration);
	}
	frames_sink_close(sink);
	return ret;
}

/* The kernel lets go of the AF_XDP sockets of a process some time after its end. */
static int contestant_start(struct bench *b, enum forward_contestant who, const struct cpuset *cpus,
			    struct forwarder *f, struct child *child, struct error *err)
{
	const struct contestant_form *form = &contestants[who];
	int64_t deadline = clock_now() + READY_TIMEOUT;
	int ret;

	if (form->kind != FORWARDER_NONE || who == CABLE)
		return site_start(&b->site, &(struct contestant){.kind = form->kind}, cpus, f, err);
	while ((ret = program_start(b, who, cpus, child, err)) == -ECHILD && clock_now() < deadline)
		clock_sleep(SETTLE);
	if (!ret)
		site_teach(&b->site);
	return ret;
}

static int contestant_run(struct bench *b, enum forward_contestant who, enum place place,
			  struct error *err)
{
	struct child child = CHILD_NONE;
	struct cpuset cpus = {0};
	struct forwarder f;
	int ret;

	/* Where softirq runs is not ours to choose. */
	if (b->skipped[who][0] || ((who == CABLE || who == KERNEL) && place == APART))
		return 0;
	cpuset_add(&cpus, (unsigned)b->cpu[place]);
	b->site.at.tx_cpus = (struct cpuset){0};
	if (who == NAPIER_TX)
		cpuset_add(&b->site.at.tx_cpus, (unsigned)b->cpu[!place]);
	ret = contestant_start(b, who, &cpus, &f, &child, err);
	if (ret == -EOPNOTSUPP) {
		snprintf(b->skipped[who], sizeof(b->skipped[who]), "%s", err->text);
		return 0;
	}
	if (ret)
		return ret;
	if (child.pid) {
		ret = figures_take(b, who, place, child.pid, err);
		child_stop(&child, NULL);
		return ret;
	}
	ret = figures_take(b, who, place, forwarder_pid(&f), err);
	if (ret)
		site_stop(&b->site, &f, NULL);
	else
		ret = site_stop(&b->site, &f, err);
	return ret;
}

static int rounds_run(struct bench *b, struct error *err)
{
	bool tty = isatty(STDERR_FILENO);
	int ret = 0;

	for (unsigned i = 0; i < b->rounds * CONTESTANTS * PLACES && !ret; i++) {
		unsigned round = i / (CONTESTANTS * PLACES), turn = i % (CONTESTANTS * PLACES);

		if (round % 2)
			turn = CONTESTANTS * PLACES - 1 - turn;
		if (tty)
			fprintf(stderr, "\r\033[Kround %u of %u: %s", round + 1, b->rounds,
				contestants[turn / PLACES].name);
		ret = contestant_run(b, turn / PLACES, turn % PLACES, err);
	}
	if (tty)
		fprintf(stderr, "\r\033[K");
	return ret;
}

static bool figures_have(const struct figures *f)
{
	return f->rate.n > 0;
}

/* Of all peers, the best at this place; the kernel's softirq bridge counts at either. */
static enum forward_contestant best_peer(const struct bench *b, enum place place)
{
	enum forward_contestant best = KERNEL;
	double most = series_median(&b->figures[KERNEL][TOGETHER].rate);

	for (unsigned who = 0; who < CONTESTANTS; who++) {
		double rate = series_median(&b->figures[who][place].rate);

		if (contestants[who].peer && rate > most) {
			most = rate;
			best = who;
		}
	}
	return best;
}

static void row_print(const struct bench *b, enum forward_contestant who, enum place place)
{
	const struct figures *f = &b->figures[who][place];
	enum forward_contestant best = best_peer(b, place);
	double top = series_median(&b->figures[best][best == KERNEL ? TOGETHER : place].rate);
	double cable = series_median(&b->figures[CABLE][TOGETHER].cost);

	printf("%-30s %8.3f %7.3f-%-6.3f %6.2f %10.0f %8.2f%%\n", contestants[who].name,
	       series_median(&f->rate) / 1e6, series_min(&f->rate) / 1e6,
	       series_max(&f->rate) / 1e6, top > 0 ? series_median(&f->rate) / top : 0,
	       series_median(&f->cost) - (who == CABLE ? 0 : cable), series_median(&f->loss) * 100);
}

static void place_print(const struct bench *b, enum place place)
{
	printf("\n%s: generator on CPU %d, %s CPU %d\n",
	       place == APART ? "A CPU of its own" : "The generator's CPU", b->cpu[TOGETHER],
	       place == APART ? "forwarder on" : "forwarder too on", b->cpu[place]);
	printf("%-30s %8s %14s %6s %10s %9s\n", "forwarder", "Mframe/s", "min-max", "ratio",
	       "ns/frame", "loss");
	for (unsigned who = 0; who < CONTESTANTS; who++) {
		if (who == KERNEL && place == APART)
			row_print(b, who, TOGETHER);
		else if (figures_have(&b->figures[who][place]))
			row_print(b, who, place);
	}
}

static void figures_print(const struct bench *b)
{
	double others = 0;

	printf("%u-byte frames, one direction, over veth; %u rounds in turn, medians.\n"
	       "Mframe/s: when more come than it can carry; ratio: to the best peer of the table.\n"
	       "ns/frame and loss: at %u frames/s; all CPU time of the machine, less that of the\n"
	       "cable (generator and sink). The kernel's bridge in softirq runs on the "
	       "generator's CPU\nin both tables.\n",
	       FRAME + 4, b->rounds, STEADY_RATE);
	if (b->cpu[APART] != b->cpu[TOGETHER])
		place_print(b, APART);
	place_print(b, TOGETHER);
	for (unsigned who = 0; who < CONTESTANTS; who++) {
		if (b->skipped[who][0])
			printf("Left out: %s: %s\n", contestants[who].name, b->skipped[who]);
		for (unsigned place = 0; place < PLACES; place++) {
			double used = series_max(&b->figures[who][place].others);

			others = used > others ? used : others;
		}
	}
	if (others > 0.1)
		printf("Other programs used up to %.1f CPUs meanwhile: the figures are "
		       "disturbed.\n",
		       others);
}

static json_t *series_json(const struct series *s)
{
	json_t *values = json_array();

	for (unsigned i = 0; i < s->n; i++)
		json_array_append_new(values, json_real(s->value[i]));
	return json_pack("{s:f, s:o}", "median", series_median(s), "values", values);
}

static void figures_print_json(const struct bench *b)
{
	json_t *rows = json_array();

	for (unsigned who = 0; who < CONTESTANTS; who++) {
		for (unsigned place = 0; place < PLACES; place++) {
			const struct figures *f = &b->figures[who][place];

			if (!figures_have(f))
				continue;
			json_array_append_new(
				rows,
				json_pack("{s:s, s:i, s:i, s:o, s:o, s:o}", "forwarder",
					  contestants[who].key, "generator_cpu", b->cpu[TOGETHER],
					  "forwarder_cpu", b->cpu[place], "frames_per_second",
					  series_json(&f->rate), "cpu_ns_per_frame",
					  series_json(&f->cost), "loss", series_json(&f->loss)));
		}
	}
	json_dumpf(json_pack("{s:i, s:i, s:o}", "frame", FRAME + 4, "steady_rate", STEADY_RATE,
			     "rows", rows),
		   stdout, JSON_INDENT(2));
	putchar('\n');
}

/* The first two CPUs that we may use; on a machine of one, both places are the same. */
static void cpus_choose(struct bench *b)
{
	cpu_set_t set;
	int found = 0;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
		if (CPU_ISSET(cpu, &set))
			b->cpu[found++ ? APART : TOGETHER] = cpu;
	}
	if (found < 2)
		b->cpu[APART] = b->cpu[TOGETHER];
}

static int bench_run(struct bench *b, struct error *err)
{
	int ret = site_open(b->napier, RUNDIR, &b->site, err);

	if (ret)
		return ret;
	ret = rounds_run(b, err);
	site_close(&b->site);
	return ret;
}

int main(int argc, char **argv)
{
	static struct bench b = {.rounds = 4, .window = 400 * NSEC_PER_MSEC};
	bool json = false;
	struct error err;
	int option;

	while ((option = getopt(argc, argv, "jr:")) != -1) {
		if (option == 'j')
			json = true;
		else if (option == 'r' && atoi(optarg) >= 1 && atoi(optarg) <= SERIES_MAX)
			b.rounds = (unsigned)atoi(optarg);
		else
			optind = argc;
	}
	if (argc - optind < 2) {
		fprintf(stderr, "usage: forward [-j] [-r ROUNDS] NAPIER XDP_LOOP [DPDK_FORWARD]\n");
		return 2;
	}
	if (geteuid()) {
		printf("skipped: AF_XDP and network namespaces need root\n");
		return 77;
	}
	b.napier = argv[optind];
	b.programs[XDP_LOOP] = argv[optind + 1];
	b.programs[DPDK] = argv[optind + 2];
	if (!b.programs[DPDK])
		snprintf(b.skipped[DPDK], sizeof(b.skipped[DPDK]), "libdpdk is not installed");
	cpus_choose(&b);
	if (bench_run(&b, &err)) {
		fprintf(stderr, "forward: %s\n", err.text);
		return 1;
	}
	if (json)
		figures_print_json(&b);
	else
		figures_print(&b);
	return 0;
}

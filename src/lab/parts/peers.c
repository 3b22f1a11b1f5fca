/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *      generator ─── a [forwarder] b ─── sink          cable: generator ─── sink
 *
 * The generator has the first CPU for itself. What runs in softirq runs where the frames arrive,
 * which is there, so the kernel's unthreaded bridge always shares it. All others are measured
 * twice: on the second CPU, and on the generator's.
 */
#include "lab/parts/peers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/cputime.h"
#include "lab/parts/site.h"

#define READY_TIMEOUT (10 * NSEC_PER_SEC)
#define AGAIN (200 * NSEC_PER_MSEC)

enum { FRAME = 60, STEADY_RATE = 100000 };

enum where { APART, TOGETHER, WHERES };

/* A kind of forwarder, or a program of its own. */
static const struct peer {
	const char *name;
	enum forwarder_kind kind;
	const char *program; /* NULL: none */
	const char *needs;   /* to be built */
	bool peer;	     /* napier is compared with it */
	bool softirq;	     /* where it runs is not ours to choose */
	bool takes_cpu;	     /* --cpu */
} peers[] = {
	{.name = "cable, no forwarder", .softirq = true},
	{.name = "kernel bridge", .kind = FORWARDER_KERNEL, .peer = true, .softirq = true},
	{.name = "kernel bridge, threaded", .kind = FORWARDER_KERNEL_THREADED, .peer = true},
	{.name = "bare AF_XDP loop", .program = "xdp_loop", .needs = "libxdp", .peer = true},
	{.name = "DPDK on AF_XDP",
	 .program = "dpdk_forward",
	 .needs = "libdpdk (Debian: libdpdk-dev)",
	 .peer = true,
	 .takes_cpu = true},
	{.name = "napier, softirq", .kind = FORWARDER_NAPIER_SOFTIRQ},
	{.name = "napier, thread", .kind = FORWARDER_NAPIER_THREAD},
	{.name = "napier, workqueue", .kind = FORWARDER_NAPIER_WORKQUEUE},
	{.name = "napier, busy-poll", .kind = FORWARDER_NAPIER_BUSY_POLL},
	{.name = "napier, TX on other CPU", .kind = FORWARDER_NAPIER_TX},
};

enum { PEERS = sizeof(peers) / sizeof(*peers), CELLS = PEERS * WHERES, CABLE = 0 };

static const struct figures_form form = {
	.key = "peers",
	.title =
		"64-byte frames in one direction over veth. Mframe/s: more come than it can carry; "
		"ratio: to the\nbest of what napier is compared with, on the same CPU, in the same "
		"round. The others at 100 000\na second: CPU of the whole machine a frame, less "
		"that of the cable (generator and sink), and\nwhat was lost. The kernel's bridge "
		"in softirq runs on the generator's CPU, and counts for both.",
	.label = {{"forwarder", "forwarder"}, {"cpu", "CPU"}},
	.column =
		{
			{"mframes_per_second", "Mframe/s", 3},
			{"ratio_to_best_peer", "x best peer", 2},
			{"cpu_ns_per_frame", "CPU ns/frame", 0},
			{"loss_percent", "lost %", 2},
		},
};

struct bench {
	const struct bench_plan *plan;
	struct figures *figures;
	struct site site;
	int cpu[WHERES];
	int64_t settle, window;
	double cable;		    /* CPU ns a frame, of this round */
	double rate[WHERES][PEERS]; /* frames/s, of this round */
};

/* A forwarder under test, of either kind. */
struct running {
	struct forwarder forwarder;
	struct child child;
	bool is_child;
};

struct window {
	double sent, received; /* frames */
	struct cputime_span span;
};

bool peers_find(const char *napier, const char *program, char path[PEERS_PATH_MAX])
{
	const char *slash = strrchr(napier, '/');
	int length = slash ? (int)(slash - napier) : 0;
	/* Beside what was built; installed, also in another place than it was built for. */
	static const char *const places[] = {"/../../bench", "/../libexec/napier"};
	char there[PEERS_PATH_MAX];

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(there, sizeof(there), "%.*s%s/%s", length, napier, places[i], program);
		if (!access(there, X_OK)) {
			memcpy(path, there, sizeof(there));
			return true;
		}
	}
	snprintf(there, sizeof(there), PEERS_DIRECTORY "/%s", program);
	memcpy(path, there, sizeof(there));
	return !access(there, X_OK);
}

static const char *where_name(enum where where)
{
	return where == APART ? "own" : "generator's";
}

static struct figures_row *row_of(struct bench *b, const struct peer *who, enum where where)
{
	return figures_row(b->figures, who->name, where_name(where), "");
}

static bool skips(const struct bench *b, const struct peer *who, enum where where)
{
	/* With one CPU both are the same; a quick run is to show that it works. */
	if (b->cpu[APART] == b->cpu[TOGETHER] || who->softirq)
		return where == APART;
	return b->plan->quick && where == TOGETHER;
}

static int program_start(struct bench *b, const struct peer *who, const struct cpuset *cpus,
			 struct child *child, struct error *err)
{
	const char *a = b->site.at.interface[0], *z = b->site.at.interface[1];
	const char *netns = b->site.lab->namespace[b->site.at.ns].path;
	char path[PEERS_PATH_MAX], cpu[12];
	const char *argv[8] = {path, "--netns", netns, a, z, NULL};
	int ret;

	if (!peers_find(b->plan->napier, who->program, path))
		return error_set(err, -EOPNOTSUPP, "%s is not there; it is built with %s", path,
				 who->needs);
	if (who->takes_cpu) {
		snprintf(cpu, sizeof(cpu), "%u", cpuset_next(cpus, 0));
		argv[3] = "--cpu";
		argv[4] = cpu;
		argv[5] = a;
		argv[6] = z;
		argv[7] = NULL;
	}
	ret = child_start(child, argv, cpus, -1, err);
	if (!ret)
		ret = child_ready(child, READY_TIMEOUT, err);
	if (ret)
		child_stop(child, NULL);
	return ret;
}

static int running_start(struct bench *b, const struct peer *who, enum where where,
			 struct running *r, struct error *err)
{
	const struct contestant contestant = {.kind = who->kind, .name = who->name, .how = ""};
	int64_t limit = clock_now() + READY_TIMEOUT;
	struct cpuset cpus = {0};
	int ret;

	*r = (struct running){.child = CHILD_NONE, .is_child = who->program};
	cpuset_add(&cpus, (unsigned)b->cpu[where]);
	b->site.at.tx_cpus = (struct cpuset){0};
	if (who->kind == FORWARDER_NAPIER_TX)
		cpuset_add(&b->site.at.tx_cpus, (unsigned)b->cpu[!where]);
	if (!r->is_child)
		return site_start(&b->site, &contestant, &cpus, &r->forwarder, err);
	/* The kernel lets go of the AF_XDP sockets of a process some time after its end. */
	while ((ret = program_start(b, who, &cpus, &r->child, err)) == -ECHILD &&
	       clock_now() < limit)
		clock_sleep(AGAIN);
	if (!ret)
		site_teach(&b->site);
	return ret;
}

static int running_stop(struct bench *b, struct running *r, struct error *err)
{
	if (!r->is_child)
		return site_stop(&b->site, &r->forwarder, err);
	child_stop(&r->child, NULL);
	return 0;
}

static int window_take(struct bench *b, bool cable, uint64_t rate, pid_t forwarder,
		       struct frames_sink *sink, struct window *w, struct error *err)
{
	uint8_t frame[FRAME];
	struct frames_config config = {
		.netns = b->site.lab->namespace[b->site.generator].path,
		.interface = cable ? "cable" : "out",
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
	frames_sink_await(sink, frames_sink_count(sink));
	clock_sleep(b->settle);
	ret = cputime_begin(&begin, ours, 2);
	w->sent = -(double)frames_generator_sent(g);
	w->received = -(double)frames_sink_count(sink);
	clock_sleep(b->window);
	frames_sink_await(sink, (uint64_t)-w->received);
	w->sent += (double)frames_generator_sent(g);
	w->received += (double)frames_sink_count(sink);
	if (!ret)
		ret = cputime_end(&begin, ours, 2, &w->span);
	frames_generator_stop(g);
	return ret ? error_set(err, ret, "reading /proc: %s", strerror(-ret)) : 0;
}

static void steady_add(struct bench *b, const struct peer *who, enum where where,
		       const struct window *w)
{
	double cost = (double)w->span.cost / w->received;
	bool cable = who == &peers[CABLE];

	if (cable)
		b->cable = cost;
	figures_add(b->figures, row_of(b, who, where), "loss_percent",
		    w->sent > w->received ? 100 * (1 - w->received / w->sent) : 0);
	/* What is left when others used most of the machine is no measurement. */
	if (b->cable > 0 && w->span.others < w->span.busy / 2)
		figures_add(b->figures, row_of(b, who, where), "cpu_ns_per_frame",
			    cable ? cost : cost - b->cable);
}

static int loads_run(struct bench *b, const struct peer *who, enum where where, pid_t forwarder,
		     struct error *err)
{
	bool cable = who == &peers[CABLE];
	struct frames_sink *sink;
	struct window w;
	int ret = frames_sink_open(b->site.lab->namespace[b->site.sink].path,
				   cable ? "cable" : "in", &sink, err);

	if (ret)
		return ret;
	ret = window_take(b, cable, 0, forwarder, sink, &w, err);
	if (!ret && w.received > 0) {
		double rate = w.received * 1e9 / (double)w.span.duration;

		b->rate[where][who - peers] = rate;
		figures_add(b->figures, row_of(b, who, where), "mframes_per_second", rate / 1e6);
	} else if (!ret) {
		figures_note(b->figures, "%s: no frame came through.", who->name);
	}
	if (!ret)
		ret = window_take(b, cable, STEADY_RATE, forwarder, sink, &w, err);
	if (!ret && w.received > 0)
		steady_add(b, who, where, &w);
	frames_sink_close(sink);
	return ret;
}

static int peer_run(struct bench *b, const struct peer *who, enum where where, struct error *err)
{
	struct running r;
	int ret = running_start(b, who, where, &r, err);

	row_of(b, who, where);
	if (ret == -EOPNOTSUPP) {
		figures_note(b->figures, "Not measured: %s: %.240s.", who->name, err->text);
		return 0;
	}
	if (ret)
		return ret;
	ret = loads_run(b, who, where, r.is_child ? r.child.pid : forwarder_pid(&r.forwarder), err);
	if (ret) {
		running_stop(b, &r, NULL);
		return ret;
	}
	return running_stop(b, &r, err);
}

/* The best at this place; the kernel's softirq bridge counts at either. */
static double best_of(const struct bench *b, enum where where)
{
	double best = 0;

	for (unsigned i = 0; i < PEERS; i++) {
		double rate = b->rate[peers[i].softirq ? TOGETHER : where][i];

		if (peers[i].peer && rate > best)
			best = rate;
	}
	return best;
}

static void ratios_add(struct bench *b)
{
	for (unsigned where = 0; where < WHERES; where++) {
		double best = best_of(b, where);

		for (unsigned i = 0; i < PEERS && best > 0; i++)
			if (b->rate[where][i] > 0 && i != CABLE)
				figures_add(b->figures, row_of(b, &peers[i], where),
					    "ratio_to_best_peer", b->rate[where][i] / best);
	}
	memset(b->rate, 0, sizeof(b->rate));
}

static int round_run(struct bench *b, unsigned round, struct error *err)
{
	/* The cable first, as the others are told less it. */
	int ret = peer_run(b, &peers[CABLE], TOGETHER, err);

	for (unsigned i = WHERES; i < CELLS && !ret; i++) {
		unsigned turn = WHERES + bench_turn(round, i - WHERES, CELLS - WHERES);
		const struct peer *who = &peers[turn / WHERES];

		if (skips(b, who, turn % WHERES))
			continue;
		bench_progress(b->plan, round * CELLS + i, b->plan->rounds * CELLS, "peers: %s",
			       who->name);
		ret = peer_run(b, who, turn % WHERES, err);
	}
	if (!ret)
		ratios_add(b);
	return ret;
}

static int peers_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct bench b = {
		.plan = plan,
		.figures = f,
		.cpu = {[APART] = plan->cpu, [TOGETHER] = bench_apart(plan)},
		.settle = (plan->quick ? 20 : 200) * NSEC_PER_MSEC,
		.window = (plan->quick ? 40 : 400) * NSEC_PER_MSEC,
	};
	int ret = site_open(plan->napier, plan->rundir, &b.site, err);

	if (ret)
		return ret;
	for (unsigned round = 0; round < plan->rounds && !ret; round++)
		ret = round_run(&b, round, err);
	site_close(&b.site);
	return ret;
}

static const struct bench_part part = {
	.key = "peers",
	.summary = "the kernel's bridge, a bare AF_XDP loop, DPDK, and napier",
	.form = &form,
	.run = peers_run,
};

const struct bench_part *const peers_parts[] = {&part, NULL};

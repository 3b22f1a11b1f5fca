/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UDP request and response, one outstanding: a kernel socket on the far host, and on the near one a
 * program with a socket of the kernel's or of the engine's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/parts/delivery.h"
#include "lab/parts/udp_client.h"
#include "lab/parts/udp_path.h"

enum { PORT = 7, BYTES = 64, SOME = 100 };

#define PATIENCE (10 * NSEC_PER_SEC)

static const char title[] =
	"UDP request and response of 64 bytes over veth, one at a time; whole round trips. The\n"
	"client is a kernel socket that spins, so that its own wake-up is not in the figure, or\n"
	"sleeps. CPU us a transaction, in a window of its own, without the client's: all, and\n"
	"its parts: the program with the socket, the engine, and the kernel: softirq for both\n"
	"interfaces wherever it ran, so the client's as well. Who spins uses all of its CPU,\n"
	"however many transactions there are. prefers: with interrupts deferred\n"
	"at the interface. CPUs: client / engine / program.";

static const struct figures_form form = {
	.key = "rr",
	.title = title,
	.label = {{"socket", "socket"}, {"client", "client"}, {"cpus", "CPUs"}},
	.column =
		{
			{"p50_us", "p50 us", 2},
			{"p99_us", "p99 us", 2},
			{"p999_us", "p99.9 us", 2},
			{"transactions_per_second", "trans/s", 0},
			{"cpu_us_per_transaction", "CPU us/trans", 2},
			{"program_cpu_us_per_transaction", "program", 2},
			{"engine_cpu_us_per_transaction", "engine", 2},
			{"kernel_cpu_us_per_transaction", "kernel", 2},
			{"packets_per_poll", "pkts/poll", 2},
			{"lost", "lost", 0},
		},
};

static const struct udp_path paths[] = {
	{.name = "kernel, sleeps", .kind = UDP_KERNEL_SLEEPS},
	{.name = "kernel, spins", .kind = UDP_KERNEL_SPINS},
	{.name = "kernel, busy_poll", .kind = UDP_KERNEL_BUSY_POLL},
	{.name = "kernel, prefers", .kind = UDP_KERNEL_PREFER},
	{.name = "app", .kind = UDP_ENGINE, .poller = POLLER_APP},
	{.name = "softirq", .kind = UDP_ENGINE, .poller = POLLER_SOFTIRQ},
	{.name = "thread", .kind = UDP_ENGINE, .poller = POLLER_THREAD},
	{.name = "busy-poll", .kind = UDP_ENGINE, .poller = POLLER_BUSY_POLL},
};

enum { PATHS = sizeof(paths) / sizeof(*paths), CLIENTS = 2, RUNS = PATHS * CLIENTS };

struct rr {
	const struct bench_plan *plan;
	struct figures *figures;
	struct ends ends;
	struct napi_watch *watch; /* open in the second window only, as it costs some 0.5 us */
	int64_t window;
};

struct moment {
	int64_t when;
	uint64_t answered, lost;
	struct udp_server_counts server;
	struct napi_watched near;
	int64_t cpu[CHARGE_PARTIES];
};

/*
 * Who polls without end leaves its CPU to nobody. A client that sleeps while the program works can
 * share a CPU with it, one that spins cannot. -1: there are not enough.
 */
static int program_cpu(const struct rr *r, const struct udp_path *path, bool spins)
{
	const struct bench_plan *plan = r->plan;

	if (path->kind != UDP_ENGINE || path->poller != POLLER_BUSY_POLL)
		return plan->cpu;
	return plan->spare >= 0 || spins ? plan->spare : plan->apart;
}

static struct figures_row *row_of(struct rr *r, const struct udp_path *path, bool spins)
{
	char cpus[FIGURES_LABEL_MAX], engine[16] = "-";

	if (path->kind == UDP_ENGINE)
		snprintf(engine, sizeof(engine), "%d", r->plan->cpu);
	snprintf(cpus, sizeof(cpus), "%d/%s/%d", bench_apart(r->plan), engine,
		 program_cpu(r, path, spins));
	return figures_row(r->figures, path->name, spins ? "spins" : "sleeps", cpus);
}

struct measured {
	const struct rr *rr;
	const struct udp_path_run *run;
	const struct udp_client *client;
};

static void moment_read(void *arg, void *moment)
{
	const struct measured *m = arg;
	const struct rr *r = m->rr;
	const struct udp_path_run *run = m->run;
	const struct udp_client *client = m->client;
	struct moment *out = moment;
	const struct charge_config charge = {
		.watch = r->watch,
		.sender = udp_client_thread(client),
		.receiver = udp_server_thread(run->server),
		.engine = run->path->kind == UDP_ENGINE ? getpid() : 0,
		.interface = {r->ends.near, r->ends.far},
		.theirs = true,
	};

	out->when = clock_now();
	udp_client_read(client, &out->answered, &out->lost);
	if (!r->watch)
		return;
	udp_server_read(run->server, &out->server);
	charge_read(&charge, out->cpu);
	napi_watch_read(r->watch, r->ends.near, &out->near);
}

static void moment_take(const struct rr *r, const struct udp_path_run *run,
			const struct udp_client *client, struct moment *out)
{
	struct measured m = {.rr = r, .run = run, .client = client};

	charge_moment(moment_read, &m, out, sizeof(*out));
}

static void speed_take(struct rr *r, struct figures_row *row, const struct moment *from,
		       const struct moment *to)
{
	figures_add(r->figures, row, "transactions_per_second",
		    (double)(to->answered - from->answered) * 1e9 /
			    (double)(to->when - from->when));
	figures_add(r->figures, row, "lost", (double)(to->lost - from->lost));
}

static void cost_take(struct rr *r, const struct udp_path *path, struct figures_row *row,
		      const struct moment *from, const struct moment *to)
{
	static const char *const parties[CHARGE_PARTIES] = {
		[CHARGE_RECEIVER] = "program_cpu_us_per_transaction",
		[CHARGE_ENGINE] = "engine_cpu_us_per_transaction",
		[CHARGE_KERNEL] = "kernel_cpu_us_per_transaction",
	};
	bool engine = path->kind == UDP_ENGINE;
	double n = (double)(to->answered - from->answered), all = 0;
	uint64_t polls =
		engine ? to->server.polls - from->server.polls : to->near.polls - from->near.polls;
	uint64_t packets = engine ? to->server.packets - from->server.packets
				  : to->near.packets - from->near.packets;

	if (polls)
		figures_add(r->figures, row, "packets_per_poll", (double)packets / (double)polls);
	if (!charge_known(from->cpu, to->cpu))
		return;
	for (unsigned i = 0; i < CHARGE_PARTIES; i++) {
		double cpu = (double)(to->cpu[i] - from->cpu[i]) / n / 1e3;

		if (!parties[i])
			continue;
		figures_add(r->figures, row, parties[i], cpu);
		all += cpu;
	}
	figures_add(r->figures, row, "cpu_us_per_transaction", all);
}

/* On a busy machine nothing may happen for a while; a median takes some. */
static void window_wait(const struct udp_client *client, int64_t window)
{
	int64_t limit = clock_now() + PATIENCE;
	uint64_t begin, answered, lost;

	udp_client_read(client, &begin, &lost);
	clock_sleep(window);
	for (;;) {
		udp_client_read(client, &answered, &lost);
		if (answered - begin >= SOME || clock_now() > limit)
			break;
		clock_sleep(NSEC_PER_MSEC);
	}
}

static int cost_measure(struct rr *r, const struct udp_path_run *run,
			const struct udp_client *client, struct figures_row *row, struct error *err)
{
	const char *watched[2] = {r->ends.near, r->ends.far};
	struct moment from, to;
	int ret = napi_watch_open(watched, 2, &r->watch, err);

	if (ret)
		return ret;
	moment_take(r, run, client, &from);
	window_wait(client, r->window / 2);
	moment_take(r, run, client, &to);
	if (to.answered > from.answered)
		cost_take(r, run->path, row, &from, &to);
	napi_watch_close(r->watch);
	r->watch = NULL;
	return 0;
}

static int run_measure(struct rr *r, unsigned which, const struct udp_path_run *run,
		       struct histogram *round, struct error *err)
{
	bool spins = which / PATHS == 0;
	struct udp_client_config config = {
		.ends = &r->ends,
		.port = PORT,
		.cpu = bench_apart(r->plan),
		.bytes = BYTES,
		.spins = spins,
	};
	struct figures_row *row = row_of(r, run->path, spins);
	struct udp_client *client;
	struct moment from, to;
	int ret = udp_client_start(&config, &client, err);

	if (ret)
		return ret;
	clock_sleep(r->window / 4);
	udp_client_record(client, true);
	moment_take(r, run, client, &from);
	window_wait(client, r->window);
	moment_take(r, run, client, &to);
	udp_client_record(client, false);
	speed_take(r, row, &from, &to);
	ret = cost_measure(r, run, client, row, err);
	histogram_reset(round);
	udp_client_stop(client, round);
	figures_add_percentile(r->figures, row, "p50_us", round, 500000, 1e-3);
	figures_add_percentile(r->figures, row, "p99_us", round, 990000, 1e-3);
	figures_add_percentile(r->figures, row, "p999_us", round, 999000, 1e-3);
	return ret;
}

static int run_one(struct rr *r, unsigned which, struct histogram *round, struct error *err)
{
	const struct udp_path *path = &paths[which % PATHS];
	bool spins = which / PATHS == 0;
	struct udp_server_config config = {
		.ends = &r->ends,
		.work = UDP_ECHO,
		.port = PORT,
		.cpu = program_cpu(r, path, spins),
		.engine_cpu = r->plan->cpu,
	};
	struct udp_path_run run;
	int ret;

	if (config.cpu < 0 || (spins && r->plan->apart < 0)) {
		figures_note(r->figures,
			     "Left out: %s, client %s: who polls without end has a CPU of its own, "
			     "and there are not as many.",
			     path->name, spins ? "spins" : "sleeps");
		return 0;
	}
	ret = udp_path_start(path, &config, &run, err);
	if (ret == -EOPNOTSUPP) {
		figures_note(r->figures, "Left out: %s: %.200s.", path->name, err->text);
		return 0;
	}
	if (ret)
		return ret;
	ret = run_measure(r, which, &run, round, err);
	if (ret == -ETIMEDOUT) {
		figures_note(r->figures, "%s: %.200s.", path->name, err->text);
		ret = 0;
	}
	if (ret)
		udp_path_stop(&run, NULL);
	else
		ret = udp_path_stop(&run, err);
	return ret;
}

static int rounds_run(struct rr *r, struct error *err)
{
	struct histogram *round = malloc(sizeof(*round));
	int ret = round ? 0 : error_set(err, -ENOMEM, "no memory");

	for (unsigned i = 0; i < r->plan->rounds * RUNS && !ret; i++) {
		unsigned which = bench_turn(i / RUNS, i % RUNS, RUNS);

		bench_progress(r->plan, i, r->plan->rounds * RUNS, "rr: %s, client %s",
			       paths[which % PATHS].name, which / PATHS ? "sleeps" : "spins");
		ret = run_one(r, which, round, err);
	}
	free(round);
	return ret;
}

static int rr_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct rr r = {
		.plan = plan,
		.figures = f,
		.window = (plan->quick ? 60 : 800) * NSEC_PER_MSEC,
	};
	int ret = ends_open(plan->rundir, &r.ends, err);

	if (ret)
		return ret;
	ret = rounds_run(&r, err);
	if (plan->apart < 0)
		figures_note(f, "There is one CPU only: client and server share it.");
	ends_close(&r.ends);
	return ret;
}

const struct bench_part delivery_rr = {
	.key = "rr",
	.summary = "UDP request and response: latency, transactions, CPU",
	.form = &form,
	.run = rr_run,
};

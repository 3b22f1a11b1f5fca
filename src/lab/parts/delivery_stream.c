/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One TCP stream into a host and out of it: the kernel's own way, and through napier's host
 * handler, with and without GRO. Frames on the cable are of an MTU's size, but for the row that
 * says so: where an engine reads the cable the kernel cuts super-packets for it anyway.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/parts/bulk.h"
#include "lab/parts/charge.h"
#include "lab/clock.h"
#include "lab/parts/delivery.h"
#include "lab/ends.h"
#include "lab/parts/host_path.h"

enum { PORT = 5001, DEFER = 100, MODERATION_NS = 50000 };

static const char title[] =
	"One TCP stream between two namespaces over veth, into the near host or out of it,\n"
	"in frames of 1514 bytes but for \"uncut\"; the sender has a file, and copies nothing; "
	"the\n"
	"far host, where it receives, waits 50 us for more, as a network card does. CPUs: of the\n"
	"far host's program / of the engine or NAPI threads / of the near host's program; softirq\n"
	"runs where packets are sent. CPU ns a byte: all, and of that the near host's, whose\n"
	"softirq is that for its interface. Parts of all: the sending and the receiving program,\n"
	"the engine, and the kernel (softirq wherever it ran, ksoftirqd, NAPI threads, in no "
	"other\n"
	"part). pkts/poll: of the near host's NAPIs. GRO ratio: full segments in a packet that "
	"the\n"
	"receiver's TCP gets. x off, against the row above, without GRO: Gbit/s, and the near\n"
	"host's bytes a CPU second.";

static const struct figures_form form = {
	.key = "stream",
	.title = title,
	.label = {{"path", "path"}, {"direction", "to"}, {"cpus", "CPUs"}},
	.column =
		{
			{"gbit_per_second", "Gbit/s", 2},
			{"ratio_to_gro_off", "x off", 2},
			{"cpu_ns_per_byte", "CPU ns/B", 3},
			{"near_cpu_ns_per_byte", "near", 3},
			{"near_ratio_to_gro_off", "x off", 2},
			{"sender_cpu_ns_per_byte", "sender", 3},
			{"receiver_cpu_ns_per_byte", "receiver", 3},
			{"engine_cpu_ns_per_byte", "engine", 3},
			{"kernel_cpu_ns_per_byte", "kernel", 3},
			{"packets_per_poll", "pkts/poll", 1},
			{"gro_ratio", "GRO ratio", 1},
			{"sent_again_percent", "again %", 2},
		},
};

static const char *const parties[CHARGE_PARTIES] = {
	[CHARGE_SENDER] = "sender_cpu_ns_per_byte",
	[CHARGE_RECEIVER] = "receiver_cpu_ns_per_byte",
	[CHARGE_ENGINE] = "engine_cpu_ns_per_byte",
	[CHARGE_KERNEL] = "kernel_cpu_ns_per_byte",
};

#define KERNEL(is_in, does_gro, ...)                                                               \
	{                                                                                          \
		.in = (is_in), .host = {.kind = HOST_PATH_KERNEL, .gro = (does_gro), __VA_ARGS__ } \
	}
#define NAPIER(is_in, does_gro, who)                                                               \
	{                                                                                          \
		.in = (is_in), .host = {                                                           \
			.kind = HOST_PATH_NAPIER,                                                  \
			.gro = (does_gro),                                                         \
			.poller = (who),                                                           \
		}                                                                                  \
	}

/* One without GRO comes right before the one that is told against it. */
static const struct path {
	bool in; /* to the near host */
	struct host_path_config host;
} paths[] = {
	KERNEL(true, false),
	KERNEL(true, true),
	KERNEL(true, true, .threaded = true),
	KERNEL(true, true, .uncut = true),
	NAPIER(true, false, POLLER_SOFTIRQ),
	NAPIER(true, true, POLLER_SOFTIRQ),
	NAPIER(true, false, POLLER_THREAD),
	NAPIER(true, true, POLLER_THREAD),
	NAPIER(true, false, POLLER_BUSY_POLL),
	NAPIER(true, true, POLLER_BUSY_POLL),
	KERNEL(false, true),
	KERNEL(false, true, .uncut = true),
	NAPIER(false, true, POLLER_SOFTIRQ),
	NAPIER(false, true, POLLER_THREAD),
	NAPIER(false, true, POLLER_BUSY_POLL),
};

enum { PATHS = sizeof(paths) / sizeof(*paths) };

static const char *direction(unsigned which)
{
	return paths[which].in ? "in" : "out";
}

struct stream {
	const struct bench_plan *plan;
	struct figures *figures;
	struct ends ends;
	struct host_path_site site;
	struct napi_watch *watch;
	int64_t window;
	/* Of this round; 0: not measured. */
	double speed[PATHS], near[PATHS];
};

struct moment {
	int64_t when;
	struct bulk_counts bulk;
	int64_t cpu[CHARGE_PARTIES], near[CHARGE_PARTIES];
	uint64_t polls, packets;
};

/*
 * Who polls without end leaves its CPU to nobody: then the near program is elsewhere, with the far
 * one if need be. -1: there is no other CPU.
 */
static int near_cpu(const struct stream *s, const struct path *path)
{
	const struct bench_plan *plan = s->plan;

	if (path->host.kind == HOST_PATH_NAPIER && path->host.poller == POLLER_BUSY_POLL)
		return plan->spare >= 0 ? plan->spare : plan->apart;
	return plan->cpu;
}

/*
 * What the kernel polls there. Without GRO a veth has no NAPI, and what is a super-packet already
 * is kept from it: then packets go through the CPU's backlog, as nobody else's do.
 */
static const char *near_polled(const struct stream *s, const struct host_path_config *host)
{
	return host->kind == HOST_PATH_NAPIER || (host->gro && !host->uncut) ? s->ends.near : "";
}

struct measured {
	const struct stream *stream;
	const struct host_path *host;
	const struct path *path;
	const struct bulk *bulk;
};

static void moment_read(void *arg, void *moment)
{
	const struct measured *m = arg;
	const struct stream *s = m->stream;
	const struct host_path *host = m->host;
	const struct path *path = m->path;
	const struct bulk *bulk = m->bulk;
	struct moment *out = moment;
	struct charge_config charge = {
		.watch = s->watch,
		.sender = bulk_sender(bulk),
		.receiver = bulk_receiver(bulk),
		.engine = host->engine.child.pid,
		.interface = {s->ends.near, s->ends.far},
		.threaded = path->host.threaded,
	};
	const char *interface = near_polled(s, &path->host);

	out->when = clock_now();
	bulk_read(bulk, &out->bulk);
	charge_read(&charge, out->cpu);
	if (path->in)
		charge.sender = 0;
	else
		charge.receiver = 0;
	charge.interface[0] = interface;
	charge.interface[1] = NULL;
	charge.theirs = true;
	charge_read(&charge, out->near);
	if (host->engine.child.pid) {
		struct engine_child_counts counts;

		engine_child_counts(&host->engine, path->in ? s->ends.near : NULL, &counts);
		out->polls = counts.polls;
		out->packets = counts.received;
	} else {
		struct napi_watched watched;

		napi_watch_read(s->watch, interface, &watched);
		out->polls = watched.polls;
		out->packets = watched.packets;
	}
}

static void moment_take(struct measured *m, struct moment *out)
{
	charge_moment(moment_read, m, out, sizeof(*out));
}

static struct figures_row *row_of(struct stream *s, unsigned which)
{
	char name[FIGURES_LABEL_MAX], cpus[FIGURES_LABEL_MAX];

	host_path_name(&paths[which].host, name, sizeof(name));
	snprintf(cpus, sizeof(cpus), "%d/%d/%d", bench_apart(s->plan), s->plan->cpu,
		 near_cpu(s, &paths[which]));
	return figures_row(s->figures, name, direction(which), cpus);
}

static void charge_take(struct stream *s, unsigned which, const struct moment *from,
			const struct moment *to, double bytes)
{
	struct figures_row *row = row_of(s, which);
	double all = 0, near = 0;

	for (unsigned i = 0; i < CHARGE_PARTIES; i++) {
		double cpu = (double)(to->cpu[i] - from->cpu[i]) / bytes;

		figures_add(s->figures, row, parties[i], cpu);
		all += cpu;
		near += (double)(to->near[i] - from->near[i]) / bytes;
	}
	figures_add(s->figures, row, "cpu_ns_per_byte", all);
	figures_add(s->figures, row, "near_cpu_ns_per_byte", near);
	s->near[which] = near;
}

static void figures_take(struct stream *s, unsigned which, const struct moment *from,
			 const struct moment *to)
{
	double bytes = (double)(to->bulk.bytes - from->bulk.bytes);
	double packets = (double)(to->bulk.packets - from->bulk.packets);
	double sent = (double)(to->bulk.sent - from->bulk.sent);
	double again = (double)(to->bulk.again - from->bulk.again);
	struct figures_row *row = row_of(s, which);

	s->speed[which] = bytes * 8 / (double)(to->when - from->when);
	figures_add(s->figures, row, "gbit_per_second", s->speed[which]);
	if (charge_known(from->cpu, to->cpu) && charge_known(from->near, to->near))
		charge_take(s, which, from, to, bytes);
	if (to->polls > from->polls)
		figures_add(s->figures, row, "packets_per_poll",
			    (double)(to->packets - from->packets) /
				    (double)(to->polls - from->polls));
	if (packets > 0)
		figures_add(s->figures, row, "gro_ratio", bytes / to->bulk.segment / packets);
	if (sent > 0)
		figures_add(s->figures, row, "sent_again_percent", 100 * again / sent);
}

/*
 * Where data comes a network card waits for more before it interrupts. A veth does not, so what is
 * sent packet by packet would be received one by one, GRO or not.
 */
static int far_moderate(struct stream *s, bool on, struct error *err)
{
	return netlab_defer_set(s->ends.lab, s->ends.far_ns, s->ends.far, on ? DEFER : 0,
				on ? MODERATION_NS : 0, err);
}

static uint64_t bytes(void *bulk)
{
	struct bulk_counts counts;

	bulk_read(bulk, &counts);
	return counts.bytes;
}

static int path_measure(struct stream *s, unsigned which, const struct host_path *host,
			struct error *err)
{
	const struct path *path = &paths[which];
	struct bulk_end far = {.netns = ends_far_fd(&s->ends), .cpu = bench_apart(s->plan)};
	struct bulk_end near = {.netns = ends_near_fd(&s->ends), .cpu = near_cpu(s, path)};
	struct bulk_config config = {
		.from = path->in ? far : near,
		.to = path->in ? near : far,
		.port = PORT,
	};
	struct measured m = {.stream = s, .host = host, .path = path};
	struct moment from, to;
	struct bulk *bulk;
	int ret;

	snprintf(config.address, sizeof(config.address), "%s", path->in ? ENDS_NEAR : ENDS_FAR);
	ret = far_moderate(s, !path->in, err);
	if (!ret)
		ret = bulk_start(&config, &bulk, err);
	if (ret)
		return ret;
	m.bulk = bulk;
	clock_sleep(s->window / 4); /* until TCP is up to speed */
	moment_take(&m, &from);
	clock_sleep(s->window);
	bench_await(bytes, bulk, from.bulk.bytes);
	moment_take(&m, &to);
	bulk_stop(bulk);
	if (to.bulk.bytes == from.bulk.bytes)
		return error_set(err, -ETIMEDOUT, "no data came through for %d s",
				 (int)(BENCH_PATIENCE / NSEC_PER_SEC));
	figures_take(s, which, &from, &to);
	return 0;
}

static int path_run(struct stream *s, unsigned which, struct error *err)
{
	struct host_path host;
	char name[FIGURES_LABEL_MAX];
	int ret;

	host_path_name(&paths[which].host, name, sizeof(name));
	if (near_cpu(s, &paths[which]) < 0) {
		figures_note(s->figures, "Left out: %s, %s: there is no CPU for the programs.",
			     name, direction(which));
		return 0;
	}
	ret = host_path_start(&s->site, &paths[which].host, &host, err);
	if (ret == -EOPNOTSUPP) {
		figures_note(s->figures, "Left out: %s, %s: %.200s.", name, direction(which),
			     err->text);
		return 0;
	}
	if (ret)
		return ret;
	ret = path_measure(s, which, &host, err);
	if (ret == -ETIMEDOUT) {
		figures_note(s->figures, "%s, %s: %.200s.", name, direction(which), err->text);
		ret = 0;
	}
	if (ret)
		host_path_stop(&host, NULL);
	else
		ret = host_path_stop(&host, err);
	return ret;
}

static void ratios_take(struct stream *s)
{
	for (unsigned i = 1; i < PATHS; i++) {
		struct figures_row *row;

		if (paths[i - 1].host.gro || !(s->speed[i - 1] > 0) || !(s->speed[i] > 0))
			continue;
		row = row_of(s, i);
		figures_add(s->figures, row, "ratio_to_gro_off", s->speed[i] / s->speed[i - 1]);
		if (s->near[i - 1] > 0 && s->near[i] > 0)
			figures_add(s->figures, row, "near_ratio_to_gro_off",
				    s->near[i - 1] / s->near[i]);
	}
}

static int rounds_run(struct stream *s, struct error *err)
{
	for (unsigned round = 0; round < s->plan->rounds; round++) {
		memset(s->speed, 0, sizeof(s->speed));
		memset(s->near, 0, sizeof(s->near));
		for (unsigned i = 0; i < PATHS; i++) {
			unsigned which = bench_turn(round, i, PATHS);
			char name[FIGURES_LABEL_MAX];
			int ret;

			host_path_name(&paths[which].host, name, sizeof(name));
			bench_progress(s->plan, round * PATHS + i, s->plan->rounds * PATHS,
				       "stream: %s, %s", name, direction(which));
			ret = path_run(s, which, err);
			if (ret)
				return ret;
		}
		ratios_take(s);
	}
	return 0;
}

static int stream_run(const struct bench_plan *plan, struct figures *f, struct error *err)
{
	struct stream s = {
		.plan = plan,
		.figures = f,
		.window = (plan->quick ? 60 : 800) * NSEC_PER_MSEC,
	};
	const char *watched[3];
	int ret = ends_open(plan->rundir, &s.ends, err);

	if (ret)
		return ret;
	s.site = (struct host_path_site){
		.ends = &s.ends,
		.napier = plan->napier,
		.rundir = plan->rundir,
		.cpu = plan->cpu,
	};
	watched[0] = s.ends.near;
	watched[1] = s.ends.far;
	watched[2] = "";
	ret = napi_watch_open(watched, 3, &s.watch, err);
	if (!ret) {
		ret = rounds_run(&s, err);
		napi_watch_close(s.watch);
	}
	if (plan->apart < 0)
		figures_note(f, "There is one CPU only: everything shares it.");
	ends_close(&s.ends);
	return ret;
}

const struct bench_part delivery_stream = {
	.key = "stream",
	.summary = "TCP through the host handler, with and without GRO",
	.form = &form,
	.run = stream_run,
};

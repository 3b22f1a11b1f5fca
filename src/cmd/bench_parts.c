/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <napier/napier.h>

#include <lab/parts/core.h>
#include <lab/cputime.h>
#include <lab/parts/delivery.h>
#include <lab/parts/peers.h>
#include <lab/parts/pollers.h>

#include <cmd/bench.h>
#include <cmd/bench_print.h>

/* Other programs' use, in CPUs, above which the figures say little. */
#define DISTURBED 0.1

enum { PARTS_MAX = 16 };

static void progress_line(void *arg, const char *what, unsigned done, unsigned total)
{
	(void)arg;
	fprintf(stderr, "\r\033[K%u/%u  %s", done + 1, total, what);
	fflush(stderr);
}

static json_t *environment_json(const struct bench_plan *plan)
{
	struct utsname system;

	uname(&system);
	return json_pack("{s:s, s:s, s:i, s:i, s:i}", "kernel", system.release, "machine",
			 system.machine, "cpus", (int)sysconf(_SC_NPROCESSORS_ONLN), "polling_cpu",
			 plan->cpu, "event_cpu", plan->apart < 0 ? plan->cpu : plan->apart);
}

static int json_print(const struct bench_command *bench, const struct bench_plan *plan,
		      json_t *parts)
{
	json_t *o =
		json_pack("{s:s, s:s, s:b, s:i, s:o, s:o}", "version", napier_version(), "bench",
			  bench->name, "quick", plan->quick, "rounds", (int)plan->rounds,
			  "environment", environment_json(plan), "parts", parts);
	int rc = json_put(o, JSON_INDENT(2));

	json_decref(o);
	return rc;
}

static int part_run(const struct bench_plan *plan, const struct bench_part *part, json_t *parts)
{
	struct figures *f = figures_create(part->form);
	pid_t self = getpid();
	struct cputime begin;
	struct cputime_span span;
	struct error err;
	int rc;

	if (!f)
		return complain("no memory for the figures");
	cputime_begin(&begin, &self, 1);
	rc = part->run(plan, f, &err);
	if (!cputime_end(&begin, &self, 1, &span) &&
	    (double)span.others > DISTURBED * (double)span.duration)
		figures_note(f,
			     "Other programs used %.1f CPUs meanwhile: run it again when the "
			     "machine is quiet.",
			     (double)span.others / (double)span.duration);
	if (plan->progress)
		fprintf(stderr, "\r\033[K");
	if (rc) {
		free(f);
		return complain("%s: %s", part->key, err.text);
	}
	if (parts) {
		json_array_append_new(parts, bench_json(f));
	} else {
		bench_print(f, stdout);
		putchar('\n');
		fflush(stdout);
	}
	free(f);
	return DONE;
}

static int parts_run(const struct bench_command *bench, const struct bench_plan *plan,
		     const struct bench_part **chosen, bool json)
{
	json_t *parts = json ? json_array() : NULL;
	int rc = DONE;

	if (!json)
		printf("%u round%s, forth and back: medians, and half of the range of the rounds. "
		       "Polling on CPU %d,\nevents from CPU %d.\n\n",
		       plan->rounds, plan->rounds == 1 ? "" : "s", plan->cpu,
		       plan->apart < 0 ? plan->cpu : plan->apart);
	for (; *chosen && rc == DONE; chosen++)
		rc = part_run(plan, *chosen, parts);
	if (json && rc == DONE)
		return json_print(bench, plan, parts);
	json_decref(parts);
	return rc;
}

static const char *parts_list(const struct bench_command *bench, char *text, size_t size)
{
	size_t length = 0;

	for (unsigned i = 0; bench->parts[i] && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "",
					   bench->parts[i]->key);
	return text;
}

static const struct bench_part *part_find(const struct bench_command *bench, const char *key)
{
	for (unsigned i = 0; bench->parts[i]; i++) {
		if (!strcmp(key, bench->parts[i]->key))
			return bench->parts[i];
	}
	return NULL;
}

/* One, or several with commas. */
static int only_take(const struct bench_command *bench, char *keys,
		     const struct bench_part **chosen, unsigned *n)
{
	char list[128];

	for (char *key; (key = strsep(&keys, ","));) {
		if (*n == PARTS_MAX)
			return misused("bench: --only: at most %d parts", PARTS_MAX);
		chosen[*n] = part_find(bench, key);
		if (!chosen[(*n)++])
			return misused("bench: --only %s: the parts are %s", key,
				       parts_list(bench, list, sizeof(list)));
	}
	return -1;
}

static int options_read(const struct bench_command *bench, int argc, char **argv,
			struct bench_plan *plan, const struct bench_part **chosen, bool *json)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"only", required_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	unsigned n = 0;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":jh", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			*json = true;
			break;
		case 'q':
			plan->quick = true;
			plan->rounds = 1;
			break;
		case 'o':
			rc = only_take(bench, optarg, chosen, &n);
			if (rc >= 0)
				return rc;
			break;
		default:
			return bench_option(bench, option, argv);
		}
	}
	if (optind < argc)
		return misused("bench %s: \"%s\": it takes no arguments", bench->name,
			       argv[optind]);
	for (unsigned i = 0; !n && bench->parts[i]; i++)
		chosen[i] = bench->parts[i];
	return -1;
}

static int parts_bench(const struct bench_command *bench, int argc, char **argv)
{
	const struct bench_part *chosen[PARTS_MAX + 1] = {NULL};
	struct bench_plan plan = {.rounds = 4, .rundir = BENCH_RUNDIR};
	static char self[4096];
	bool json = false;
	int rc = options_read(bench, argc, argv, &plan, chosen, &json);

	if (rc >= 0)
		return rc;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return complain("/proc/self/exe: %s", strerror(errno));
	plan.napier = self;
	bench_cpus(&plan);
	if (isatty(STDERR_FILENO))
		plan.progress = progress_line;
	return parts_run(bench, &plan, chosen, json);
}

#define USAGE_OPTIONS                                                                              \
	"  -j, --json           figures as JSON\n"                                                 \
	"      --only PART[,PART…]\n"                                                            \
	"                       these parts; may be given several times\n"                         \
	"      --quick          a few seconds: shows that it works, not how well\n"                \
	"  -h, --help           this text\n"

const struct bench_command bench_pollers = {
	.name = "pollers",
	.summary = "every poller, and the kernel's own",
	.usage = "Usage: napier bench pollers [OPTION…]\n"
		 "Measures every poller, and the kernel's own, interleaved and in rounds, and "
		 "prints a\ntable for each part:\n\n"
		 "  cost      schedule, poll and complete, per event\n"
		 "  wake      from an interrupt to the poll, idle and beside a CPU hog\n"
		 "  scale     1 to 1024 NAPIs\n"
		 "  forward   frames/s and CPU a frame on veth, and the kernel's modes\n"
		 "  flood     UDP at twice the capacity, the consumer on the same CPU\n"
		 "  workers   priority of the workqueue's threads, a consumer beside them\n\n"
		 "Takes some minutes and leaves nothing behind. Compare figures of one run, not "
		 "of two.\nforward, flood and workers need root.\n\n" USAGE_OPTIONS,
	.run = parts_bench,
	.parts = pollers_parts,
};

const struct bench_command bench_core = {
	.name = "core",
	.summary = "ns of a schedule, a poll, a packet, a wake-up",
	.usage = "Usage: napier bench core [OPTION…]\n"
		 "Measures what the engine itself costs, without a device, in rounds, and prints a "
		 "table for\neach part:\n\n"
		 "  cost      schedule, poll and complete, per event\n"
		 "  event     interrupt, schedule, poll of one packet, complete\n"
		 "  wake      from an interrupt to the poll, idle and beside a CPU hog\n"
		 "  packet    a packet through the bridge: vectors, steering, GRO\n"
		 "  hash      the hash of a packet's flow\n"
		 "  gro       GRO itself, by flows, order and checksum\n"
		 "  udp       datagrams to an application and back\n\n"
		 "Takes about two minutes. Compare figures of one run, not of two. cost and wake "
		 "are those of\nnapier bench pollers, too.\n\n" USAGE_OPTIONS,
	.run = parts_bench,
	.parts = core_parts,
};

const struct bench_command bench_peers = {
	.name = "peers",
	.summary = "the kernel's bridge, a bare AF_XDP loop, DPDK, and napier",
	.usage = "Usage: napier bench peers [OPTION…]\n"
		 "Measures 64-byte frames through the kernel's bridge, a bare AF_XDP loop, DPDK "
		 "(where napier was\nbuilt with it) and napier's pollers, in rounds, each on a CPU "
		 "of its own and on the\ngenerator's, and prints a table:\n\n"
		 "  peers     frames/s, against the best peer, and CPU a frame\n\n"
		 "Takes about two minutes and leaves nothing behind. Compare figures of one run, "
		 "not of two.\nNeeds root.\n\n" USAGE_OPTIONS,
	.run = parts_bench,
	.parts = peers_parts,
};

const struct bench_command bench_delivery = {
	.name = "delivery",
	.summary = "to the host's stack and to sockets, and the kernel's own way",
	.usage = "Usage: napier bench delivery [OPTION…]\n"
		 "Measures delivery to the host's stack and to sockets, and the kernel's own way, "
		 "interleaved\nand in rounds, and prints a table for each part:\n\n"
		 "  stream    TCP through the host handler, with and without GRO\n"
		 "  rr        UDP request and response: latency, transactions, CPU\n"
		 "  rate      64-byte UDP frames received a second, and per CPU second\n\n"
		 "Takes some minutes and leaves nothing behind. Compare figures of one run, not "
		 "of two.\nNeeds root.\n\n" USAGE_OPTIONS,
	.run = parts_bench,
	.parts = delivery_parts,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napier bench rr|stream|rrul: one run of one workload, between two namespaces made for it, or with
 * a server on another host.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <napier/napier.h>

#include <lab/clock.h>
#include <lab/ends.h>
#include <lab/load/peer.h>
#include <lab/measure/environment.h>
#include <lab/measure/usage.h>

#include <cmd/bench_load.h>
#include <cmd/bench_options.h>

enum { LOOK_MS = 200, STOPPED = 128 };

/* The traffic's; what clients ask by is the one before. */
enum { PORT_OFFSET = 1 };

static volatile sig_atomic_t stop; /* the signal */

struct run {
	const struct bench_command *command;
	struct load_config config;
	const struct load_ops *ops;
	const char *host; /* NULL: two namespaces here */
	uint16_t port;
	int64_t length, warm;
	struct load_percentiles percentiles;
	enum load_format format;
	struct cpuset client_cpus, server_cpus;

	struct ends ends;
	bool ends_open;
	struct peer *peer;
	struct load_place client_place, server_place;
	struct peer_started started;
	void *client;
	struct usage *usage;
	json_t *result, *server, *cpu;
};

static void on_signal(int number)
{
	stop = number;
}

/*
 * The lab's own handlers come first, and then these. A second signal ends the program at once; one
 * that is ignored (nohup) stays so.
 */
static void signals_take(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, was;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!sigaction(numbers[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

static int parameters_read(struct run *run, unsigned kind, json_t *given)
{
	static const char *const names[] = {"rr", "stream", "rrul"};
	struct error err;

	json_object_set_new(given, "kind", json_string(names[kind]));
	if (load_config_read(given, &run->config, &err))
		return misused("bench %s: %s", names[kind], err.text);
	run->ops = load_ops(run->config.kind);
	if (!run->ops)
		return complain("bench %s: this napier has no such workload", names[kind]);
	if (run->ops->check(&run->config, &err))
		return misused("bench %s: %s", names[kind], err.text);
	return -1;
}

static int option_take(struct run *run, int option, json_t *given, char **argv)
{
	const struct bench_command *command = run->command;
	int rc;

	switch (option) {
	case 'H':
		run->host = optarg;
		return 0;
	case 'P':
		return bench_port(command, "-P", optarg, &run->port);
	case 'l':
		return bench_time(command, "-l", optarg, 0.1, 3600, &run->length);
	case 'w':
		return bench_time(command, "--warm", optarg, 0, 600, &run->warm);
	case 'p':
		if (load_percentiles_parse(optarg, &run->percentiles))
			return 0;
		return misused("bench %s: -p %s: percentiles are numbers above 0 and below 100: "
			       "50,99,99.9",
			       command->name, optarg);
	case 'c':
		return bench_cpuset(command, "--cpus", optarg, &run->client_cpus);
	case 's':
		return bench_cpuset(command, "--server-cpus", optarg, &run->server_cpus);
	case 'k':
		run->format = LOAD_KEYS;
		return 0;
	case 'j':
		run->format = LOAD_JSON;
		return 0;
	default:
		rc = bench_option_take(command, option, optarg, given);
		return rc < 0 ? -2 - bench_option(command, option, argv) : rc;
	}
}

/* -1: go on; else exit so. */
static int options_read(struct run *run, unsigned kind, int argc, char **argv)
{
	static const struct option own[] = {
		{"host", required_argument, NULL, 'H'},
		{"port", required_argument, NULL, 'P'},
		{"length", required_argument, NULL, 'l'},
		{"warm", required_argument, NULL, 'w'},
		{"percentiles", required_argument, NULL, 'p'},
		{"cpus", required_argument, NULL, 'c'},
		{"server-cpus", required_argument, NULL, 's'},
		{"key-value", no_argument, NULL, 'k'},
		{"json", no_argument, NULL, 'j'},
		{0},
	};
	json_t *given = json_object();
	struct bench_options options;
	int option, rc = 0;

	bench_options_make(own, "H:P:l:p:kj", kind, &options);
	while (!rc &&
	       (option = getopt_long(argc, argv, options.letters, options.option, NULL)) != -1)
		rc = option_take(run, option, given, argv);
	if (rc <= -2)
		rc = -2 - rc;
	else if (!rc && optind < argc)
		rc = misused("bench %s: \"%s\": it takes options only", run->command->name,
			     argv[optind]);
	else if (!rc)
		rc = parameters_read(run, kind, given);
	json_decref(given);
	return rc;
}

/* Two namespaces with a cable; the server in the near one. */
static int here_open(struct run *run, struct error *err)
{
	char napier[4096];
	ssize_t n = readlink("/proc/self/exe", napier, sizeof(napier) - 1);
	struct error why;
	int ret = n < 0 ? error_set(err, -errno, "/proc/self/exe: %s", strerror(errno))
			: ends_open(BENCH_RUNDIR, &run->ends, &why);

	if (n < 0)
		return ret;
	if (ret && geteuid())
		return error_set(
			err, ret,
			"%s: two namespaces need root; or give -H HOST, where napier bench "
			"server runs",
			why.text);
	if (ret)
		return error_set(err, ret, "%s", why.text);
	napier[n] = '\0';
	run->ends_open = true;
	run->client_place.netns = ends_far_fd(&run->ends);
	snprintf(run->client_place.address, sizeof(run->client_place.address), ENDS_NEAR);
	return peer_open_child(napier, ends_near_fd(&run->ends), &run->server_cpus, &run->peer,
			       err);
}

static int there_open(struct run *run, struct error *err)
{
	int ret = peer_open_host(run->host, run->port, &run->peer, err);

	if (!ret)
		snprintf(run->client_place.address, sizeof(run->client_place.address), "%s",
			 peer_address(run->peer));
	return ret;
}

static int sides_start(struct run *run, struct error *err)
{
	int ret = run->host ? there_open(run, err) : here_open(run, err);

	if (ret)
		return ret;
	run->client_place.port = (uint16_t)(run->port + PORT_OFFSET);
	run->server_place = run->client_place;
	run->client_place.cpus = run->client_cpus;
	run->server_place.cpus = run->server_cpus;
	ret = peer_start(run->peer, &run->config, &run->server_place, &run->started, err);
	return ret ? ret
		   : run->ops->client_start(&run->config, &run->client_place, &run->client, err);
}

static void party_fill(struct usage_party *party, const char *name, const pid_t *tids, unsigned n)
{
	snprintf(party->name, sizeof(party->name), "%s", name);
	party->tids = n < USAGE_TIDS_MAX ? n : USAGE_TIDS_MAX;
	memcpy(party->tid, tids, party->tids * sizeof(*tids));
}

static int usage_start(struct run *run, struct error *err)
{
	static struct usage_config config; /* large, and one at a time */
	pid_t tids[LOAD_TIDS_MAX];

	config = (struct usage_config){.parties = 1};
	party_fill(&config.party[0], "client", tids, run->ops->client_threads(run->client, tids));
	if (!run->host) {
		party_fill(&config.party[config.parties++], "server", NULL, 0);
		config.party[1].pid = peer_pid(run->peer);
		snprintf(config.interface[0], sizeof(config.interface[0]), "%s", run->ends.near);
		snprintf(config.interface[1], sizeof(config.interface[1]), "%s", run->ends.far);
		config.interfaces = 2;
	}
	return usage_open(&config, &run->usage, err);
}

static void progress_show(struct run *run, const char *phase, int64_t left,
			  const struct load_progress *last, const struct load_progress *now,
			  int64_t span)
{
	double rate = span > 0 ? (double)(now->done - last->done) * 1e9 / (double)span : 0;

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K%s: %.0f %s/s, %ju lost, %.1f s left", phase, rate,
		now->unit ? now->unit : run->ops->name, (uintmax_t)now->lost,
		left > 0 ? (double)left / 1e9 : 0.0);
	fflush(stderr);
}

/* Until then, or a signal, or the server's end. */
static int await(struct run *run, const char *phase, int64_t deadline, struct error *err)
{
	struct load_progress last = {0}, now = {0};
	int64_t at = clock_now(), then;
	int ret = 0;

	run->ops->client_progress(run->client, &last);
	while (!ret && !stop && (then = clock_now()) < deadline) {
		int64_t left = deadline - then;

		usleep((useconds_t)(left < LOOK_MS * NSEC_PER_MSEC ? left / 1000 + 1
								   : LOOK_MS * 1000));
		run->ops->client_progress(run->client, &now);
		then = clock_now();
		/* Counts begin anew with the measured part. */
		if (now.done >= last.done)
			progress_show(run, phase, deadline - then, &last, &now, then - at);
		last = now;
		at = then;
		ret = peer_check(run->peer, err);
	}
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	return ret;
}

/* On another host it begins with a reading, which is thrown away. */
static int peer_usage_begin(struct run *run, struct error *err)
{
	json_t *before = NULL;
	int ret = run->host ? peer_read(run->peer, &before, err) : 0;

	json_decref(before);
	return ret;
}

static int measure(struct run *run, struct error *err)
{
	int ret = await(run, "warm-up", clock_now() + run->warm, err);

	if (!ret)
		ret = usage_start(run, err);
	if (!ret)
		ret = peer_usage_begin(run, err);
	if (ret)
		return ret;
	usage_begin(run->usage);
	run->ops->client_measure(run->client, run->length);
	ret = await(run, "measures", clock_now() + run->length, err);
	usage_stop(run->usage);
	return ret;
}

/* What turned out first is what is told. */
static void ends_now(int *ret, struct error *err, int more, const struct error *why)
{
	if (!*ret && more) {
		*ret = more;
		*err = *why;
	}
}

static void run_end(struct run *run, int *ret, struct error *err)
{
	struct error why;

	if (run->client)
		ends_now(ret, err, run->ops->client_stop(run->client, &run->result, &why), &why);
	if (run->usage) {
		run->cpu = usage_end(run->usage, 0);
		usage_close(run->usage);
	}
	/* Figures that are there need the server's own only besides. */
	if (run->started.threads && (!*ret || run->result)) {
		int more = peer_stop(run->peer, &run->server, &why);

		ends_now(ret, err, more, &why);
	}
}

static void run_close(struct run *run)
{
	if (run->peer)
		peer_close(run->peer);
	if (run->ends_open)
		ends_close(&run->ends);
	json_decref(run->result);
	json_decref(run->server);
	json_decref(run->cpu);
}

/* Moves the server's figures into the run. */
static void result_complete(struct run *run, const char *error)
{
	json_t *cpu = json_object_get(run->server, "cpu");
	double operations = load_operations(&run->config, json_object_get(run->result, "counts"));

	if (error) {
		json_object_set_new(run->result, "valid", json_false());
		json_object_set_new(run->result, "invalid", json_string(error));
	}
	usage_operations(run->cpu, operations);
	json_object_set(run->result, "cpu", run->cpu ? run->cpu : json_null());
	if (cpu) {
		usage_operations(cpu, operations);
		json_object_set(run->result, "peer_cpu", cpu);
		json_object_del(run->server, "cpu");
	}
	json_object_set(run->result, "server", run->server ? run->server : json_null());
	json_object_set_new(run->result, "partial", json_boolean(stop));
}

static int json_show(struct run *run)
{
	json_t *o = json_pack("{s:s, s:s, s:o, s:o, s:O?, s:O}", "napier", napier_version(), "kind",
			      run->ops->name, "parameters", load_config_json(&run->config),
			      "environment", environment_read(), "peer_environment",
			      run->peer ? peer_environment(run->peer) : NULL, "run", run->result);
	int rc = !o || json_dumpf(o, stdout, JSON_INDENT(2)) ? -ENOMEM : 0;

	putchar('\n');
	json_decref(o);
	return rc ? complain("no memory for the JSON") : DONE;
}

static int result_show(struct run *run)
{
	const char *invalid = json_string_value(json_object_get(run->result, "invalid"));
	int rc = DONE;

	if (run->format == LOAD_JSON)
		rc = json_show(run);
	else if (run->format == LOAD_KEYS)
		load_keys(run->result, &run->config, &run->percentiles, stdout);
	else
		load_table(run->result, &run->config, &run->percentiles, stdout);
	fflush(stdout);
	if (stop)
		return STOPPED + stop;
	if (rc == DONE && !json_is_true(json_object_get(run->result, "valid")))
		rc = complain("bench %s: the run is not valid: %s", run->command->name,
			      invalid ? invalid : "it says not why");
	return rc;
}

static int load_go(struct run *run)
{
	struct error err = {0};
	int ret, rc;

	signals_take();
	ret = sides_start(run, &err);
	if (!ret)
		ret = measure(run, &err);
	run_end(run, &ret, &err);
	if (run->result) {
		result_complete(run, ret ? err.text : NULL);
		rc = result_show(run);
	} else {
		rc = stop ? STOPPED + stop : complain("bench %s: %s", run->command->name, err.text);
	}
	run_close(run);
	return rc;
}

static int load_run(const struct bench_command *command, unsigned kind, int argc, char **argv)
{
	static struct run run;
	int rc;

	run = (struct run){.command = command,
			   .port = PEER_PORT,
			   .length = 10 * NSEC_PER_SEC,
			   .warm = NSEC_PER_SEC,
			   .client_place.netns = -1};
	load_percentiles_parse("50,90,99,99.9", &run.percentiles);
	rc = options_read(&run, kind, argc, argv);
	return rc >= 0 ? rc : load_go(&run);
}

static int rr_run(const struct bench_command *command, int argc, char **argv)
{
	return load_run(command, LOAD_RR, argc, argv);
}

static int stream_run(const struct bench_command *command, int argc, char **argv)
{
	return load_run(command, LOAD_STREAM, argc, argv);
}

static int rrul_run(const struct bench_command *command, int argc, char **argv)
{
	return load_run(command, LOAD_RRUL, argc, argv);
}

#define WHERE                                                                                      \
	"with napier bench server on HOST,\nor else between two network namespaces that are made " \
	"for it (needs root).\n\n"

#define USAGE_RUN                                                                                  \
	"  -H, --host HOST           the server's; both ends have the same parameters then\n"      \
	"  -P, --port PORT           that it is asked at (12866)\n"                                \
	"  -l, --length TIME         that is measured (10s)\n"                                     \
	"      --warm TIME           unmeasured, before it (1s)\n"                                 \
	"      --cpus CPUS           of the client's threads, one after another\n"                 \
	"      --server-cpus CPUS    of the server's\n"                                            \
	"  -p, --percentiles LIST    that are shown (50,90,99,99.9)\n"                             \
	"  -k, --key-value           figures as key=value, a line each\n"                          \
	"  -j, --json                figures as JSON, with the environment\n"                      \
	"  -h, --help                this text\n\n"

const struct bench_command bench_rr = {
	.name = "rr",
	.summary = "request and response: transactions/s and latency",
	.usage = "Usage: napier bench rr [OPTION…]\n"
		 "Measures request and response over TCP or UDP, " WHERE USAGE_RUN BENCH_USAGE_FLOWS
			 BENCH_USAGE_RR BENCH_USAGE_BOTH,
	.run = rr_run,
};

const struct bench_command bench_stream = {
	.name = "stream",
	.summary = "bulk data one way or both: throughput and loss",
	.usage = "Usage: napier bench stream [OPTION…]\n"
		 "Measures streams over TCP or UDP, " WHERE USAGE_RUN BENCH_USAGE_FLOWS
			 BENCH_USAGE_STREAM BENCH_USAGE_BOTH,
	.run = stream_run,
};

const struct bench_command bench_rrul = {
	.name = "rrul",
	.summary = "latency under load: TCP both ways beside UDP and ICMP probes",
	.usage = "Usage: napier bench rrul [OPTION…]\n"
		 "Measures latency, idle and beside TCP both ways in four classes, " WHERE USAGE_RUN
			 BENCH_USAGE_RRUL BENCH_USAGE_BOTH,
	.run = rrul_run,
};

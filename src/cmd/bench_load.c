/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napier bench rr|stream|rrul: one run of one workload, between two namespaces made for it, or with
 * a server on another host.
 */
#include <string.h>

#include <lab/load/peer.h>

#include <cmd/bench_load.h>
#include <cmd/bench_options.h>

static int parameters_read(struct load_asked *asked, unsigned kind, json_t *given)
{
	static const char *const names[] = {"rr", "stream", "rrul"};
	struct error err;

	json_object_set_new(given, "kind", json_string(names[kind]));
	if (load_config_read(given, &asked->config, &err))
		return misused("bench %s: %s", names[kind], err.text);
	asked->ops = load_ops(asked->config.kind);
	if (!asked->ops)
		return complain("bench %s: this napier has no such workload", names[kind]);
	if (asked->ops->check(&asked->config, &err))
		return misused("bench %s: %s", names[kind], err.text);
	return -1;
}

static int option_take(const struct bench_command *command, struct load_asked *asked, int option,
		       json_t *given, char **argv)
{
	const char *colon;
	int rc;

	switch (option) {
	case 'H':
		colon = strchr(optarg, ':');
		/* With two it is an address of IPv6. */
		if (colon && !strchr(colon + 1, ':'))
			return misused("bench %s: -H %s: the port is given by -P %s", command->name,
				       optarg, colon + 1);
		asked->host = optarg;
		return 0;
	case 'P':
		return bench_port(command, "-P", optarg, &asked->port);
	case 'l':
		return bench_time(command, "-l", optarg, 0.1, 3600, &asked->length);
	case 'w':
		return bench_time(command, "--warm", optarg, 0, 600, &asked->warm);
	case 'p':
		if (load_percentiles_parse(optarg, &asked->percentiles))
			return 0;
		return misused("bench %s: -p %s: percentiles are numbers above 0 and below 100: "
			       "50,99,99.9",
			       command->name, optarg);
	case 'c':
		return bench_cpuset(command, "--cpus", optarg, &asked->client_cpus);
	case 's':
		return bench_cpuset(command, "--server-cpus", optarg, &asked->server_cpus);
	case 'k':
		asked->format = LOAD_KEYS;
		return 0;
	case 'j':
		asked->format = LOAD_JSON;
		return 0;
	default:
		rc = bench_option_take(command, option, optarg, given);
		return rc < 0 ? -2 - bench_option(command, option, argv) : rc;
	}
}

/* -1: go on; else exit so. */
static int options_read(const struct bench_command *command, struct load_asked *asked,
			unsigned kind, int argc, char **argv)
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
		rc = option_take(command, asked, option, given, argv);
	if (rc <= -2)
		rc = -2 - rc;
	else if (!rc && optind < argc)
		rc = misused("bench %s: \"%s\": it takes options only", asked->command,
			     argv[optind]);
	else if (!rc)
		rc = parameters_read(asked, kind, given);
	json_decref(given);
	return rc;
}

static int load_run(const struct bench_command *command, unsigned kind, int argc, char **argv)
{
	static struct load_asked asked;
	int rc;

	asked = (struct load_asked){.command = command->name,
				    .port = PEER_PORT,
				    .length = 10 * NSEC_PER_SEC,
				    .warm = NSEC_PER_SEC};
	load_percentiles_parse("50,90,99,99.9", &asked.percentiles);
	rc = options_read(command, &asked, kind, argc, argv);
	return rc >= 0 ? rc : load_go(&asked);
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

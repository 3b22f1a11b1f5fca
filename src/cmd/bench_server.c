/* SPDX-License-Identifier: BSD-2-Clause */
/* napier bench server: the server side of workloads, for a client on another host, or a parent. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lab/load/peer.h>

#include <cmd/bench_options.h>

static volatile int stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static void signals_take(void)
{
	/* No SA_RESTART: a wait is to end. A second one ends the program at once. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static void say(void *arg, const char *line)
{
	(void)arg;
	printf("%s\n", line);
	fflush(stdout);
}

/* The descriptor that a parent passed. */
static int fd_option(const char *value, int *out)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (end == value || *end || n < 3 || n > 1 << 20)
		return misused("bench server: --fd %s: a descriptor that was passed", value);
	*out = (int)n;
	return 0;
}

static int options_read(const struct bench_command *command, int argc, char **argv,
			struct peer_server_config *config, json_t *fixed)
{
	static const struct option own[] = {
		{"port", required_argument, NULL, 'p'},
		{"address", required_argument, NULL, 'A'},
		{"engine", no_argument, NULL, 'e'},
		{"fd", required_argument, NULL, 'd'},
		{0},
	};
	struct bench_options options;
	int option, rc = 0;

	bench_options_make(own, "p:A:", BENCH_ALL, &options);
	while (!rc &&
	       (option = getopt_long(argc, argv, options.letters, options.option, NULL)) != -1) {
		switch (option) {
		case 'p':
			rc = bench_port(command, "-p", optarg, &config->port);
			break;
		case 'A':
			if (strlen(optarg) >= sizeof(config->address))
				return misused("bench server: -A %.40s…: too long", optarg);
			snprintf(config->address, sizeof(config->address), "%s", optarg);
			break;
		case 'e':
			config->engine = true;
			break;
		case 'd':
			rc = fd_option(optarg, &config->fd);
			break;
		default:
			rc = bench_option_take(command, option, optarg, fixed);
			if (rc < 0)
				return bench_option(command, option, argv);
		}
	}
	if (!rc && optind < argc)
		return misused("bench server: \"%s\": it takes no arguments", argv[optind]);
	return rc ? rc : -1;
}

static int server_run(const struct bench_command *command, int argc, char **argv)
{
	json_t *fixed = json_object();
	struct peer_server_config config = {
		.fd = -1, .port = PEER_PORT, .fixed = fixed, .ops = load_ops, .stop = &stop};
	struct error err;
	int rc = options_read(command, argc, argv, &config, fixed);

	if (rc < 0) {
		rc = DONE;
		signals_take();
		if (config.fd < 0)
			config.say = say;
		if (peer_serve(&config, &err))
			rc = complain("bench server: %s", err.text);
	}
	json_decref(fixed);
	return rc;
}

const struct bench_command bench_server = {
	.name = "server",
	.summary = "the server side of workloads, for clients on another host",
	.usage = "Usage: napier bench server [OPTION…]\n"
		 "Waits for napier bench rr|stream|rrul -H, or a specification run with -H, on "
		 "another host,\nand is the server side of what those ask for, one at a time, "
		 "until Ctrl-C. Only for\nnetworks whose hosts you trust.\n\n"
		 "  -p, --port PORT           where it is asked (12866); traffic comes to the next "
		 "ones\n"
		 "  -A, --address ADDRESS     only there (any address of this host)\n"
		 "      --engine              clients may have napier's own sockets on interfaces "
		 "of this host\n"
		 "  -h, --help                this text\n\n"
		 "A client with other parameters than those given here is refused:\n\n"
		 "of rr and stream\n" BENCH_USAGE_FLOWS "\nof rr\n" BENCH_USAGE_RR
		 "\nof stream\n" BENCH_USAGE_STREAM "\nof rrul\n" BENCH_USAGE_RRUL
		 "\nof all\n" BENCH_USAGE_BOTH,
	.run = server_run,
};

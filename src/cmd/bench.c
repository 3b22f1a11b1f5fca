/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lab/run/experiment.h>

#include <cmd/bench.h>

static const struct bench_command *const benches[] = {
	&bench_rr,   &bench_stream, &bench_rrul,     &bench_server,  &bench_pollers,
	&bench_core, &bench_peers,  &bench_delivery, &bench_compare, &bench_report,
};

enum { BENCHES = sizeof(benches) / sizeof(*benches) };

static const char usage_begin[] = "Usage: napier bench NAME [OPTION…]\n"
				  "       napier bench SPECIFICATION|FILE [OPTION…]\n"
				  "       napier bench --list\n"
				  "Measures, and says what each choice costs.\n\n"
				  "Names:\n";
static const char usage_end[] =
	"\nSpecifications are experiments in files: --list tells those that come with napier;\n"
	"napier-spec(5) describes them. Options: --quick, --only SYSTEM, --set KEY=VALUE, -H "
	"HOST,\n"
	"-o DIR, -j.\n"
	"\nnapier bench NAME --help tells more; so does man napier-bench.\n\n"
	"  -h, --help           this text\n";

int bench_option(const struct bench_command *command, int option, char **argv)
{
	char name[64];
	struct command as = {.name = name, .usage = command->usage};
	struct which which;

	snprintf(name, sizeof(name), "bench %s", command->name);
	return which_option(&as, &which, option, argv);
}

static void usage_print(void)
{
	fputs(usage_begin, stdout);
	for (size_t i = 0; i < BENCHES; i++)
		printf("  %-9s  %s\n", benches[i]->name, benches[i]->summary);
	fputs(usage_end, stdout);
}

static const char *names_list(char *text, size_t size)
{
	size_t length = 0;

	for (size_t i = 0; i < BENCHES && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%s",
					   !i		      ? ""
					   : i == BENCHES - 1 ? " or "
							      : ", ",
					   benches[i]->name);
	return text;
}

static const struct bench_command *bench_find(const char *name)
{
	for (size_t i = 0; i < BENCHES; i++) {
		if (!strcmp(name, benches[i]->name))
			return benches[i];
	}
	return NULL;
}

/*
 * The name is the first word that is one. What a word means that follows an option only the
 * command knows, so any may be passed over; a value that is called like a command follows its
 * option without a blank.
 */
static const struct bench_command *bench_choose(int argc, char **argv, int *at)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		const struct bench_command *bench = bench_find(argv[i]);

		if (bench) {
			*at = i;
			return bench;
		}
	}
	return NULL;
}

static bool help_wanted(int argc, char **argv)
{
	return argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
}

static int bench_run(int argc, char **argv)
{
	char names[256];
	int at;
	const struct bench_command *bench = bench_choose(argc, argv, &at);

	if (bench) {
		char *name = argv[at];

		/* Options that came first come behind it. */
		memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
		argv[1] = name;
		experiment_recover(BENCH_RUNDIR);
		return bench->run(bench, argc - 1, argv + 1);
	}
	if (help_wanted(argc, argv)) {
		usage_print();
		return DONE;
	}
	if (argc > 1)
		return bench_spec.run(&bench_spec, argc, argv);
	return misused("bench: say what to measure: %s, or a specification: see napier bench "
		       "--list",
		       names_list(names, sizeof(names)));
}

const struct command command_bench = {
	.name = "bench",
	.summary = "measure every poller, delivery, and the kernel's own",
	.usage = usage_begin,
	.run = bench_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <lab/clock.h>
#include <napier/machine.h>

#include <core/canary.h>

#include <cmd/cmd.h>
#include <cmd/sim_print.h>

#define COUNT_DEFAULT 1000
#define QUIET (2 * NSEC_PER_SEC) /* less needs no progress */
#define INTERRUPTED 130

struct wanted {
	struct crew_config crew;
	bool one, trace, seeds_given, count_given;
	uint64_t seed;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static int number_parse(const char *text, uint64_t min, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return errno || !*text || *text == '-' || *end || *out < min ? -EINVAL : 0;
}

/* "A..B" */
static int range_parse(char *text, struct crew_config *crew)
{
	char *dots = strstr(text, "..");
	uint64_t last;
	int rc;

	if (!dots)
		return -EINVAL;
	*dots = '\0';
	rc = number_parse(text, 0, &crew->first);
	*dots = '.';
	if (rc || number_parse(dots + 2, crew->first, &last) || last - crew->first == UINT64_MAX)
		return -EINVAL;
	crew->count = last - crew->first + 1;
	return 0;
}

struct progress {
	const struct crew_config *crew;
	int64_t began, told;
	bool terminal, shown;
};

static bool progress_watch(void *arg, uint64_t done)
{
	struct progress *p = arg;
	int64_t now = clock_now();

	if (interrupted)
		return true;
	if (!p->terminal || now - p->began < QUIET || now - p->told < NSEC_PER_SEC / 4)
		return false;
	p->told = now;
	p->shown = true;
	fprintf(stderr, "\r\033[K%" PRIu64 "/%" PRIu64 " seeds", done, p->crew->count);
	fflush(stderr);
	return false;
}

static void replay_print(const struct wanted *wanted, const struct crew_failure *failure)
{
	complain("seed %" PRIu64 ": %s\n        shown by: napier sim --seed %" PRIu64 "%s --trace",
		 failure->seed, failure->text, failure->seed,
		 wanted->crew.sim.no_faults ? " --no-faults" : "");
}

static int many(struct wanted *wanted)
{
	struct progress progress = {.crew = &wanted->crew, .began = clock_now()};
	struct crew_result result;
	struct error err;
	int rc;

	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	progress.terminal = isatty(STDERR_FILENO);
	wanted->crew.watch = progress_watch;
	wanted->crew.watch_arg = &progress;
	rc = crew_run(&wanted->crew, &result, &err);
	if (progress.shown)
		fprintf(stderr, "\r\033[K");
	if (rc)
		return complain("%s", err.text);
	sim_print_many(stdout, &wanted->crew, &result);
	fflush(stdout);
	for (uint32_t i = 0; i < result.failures; i++)
		replay_print(wanted, &result.failure[i]);
	if (interrupted)
		return INTERRUPTED;
	return result.failures ? FAILED : DONE;
}

static void trace_print(void *arg, const char *line)
{
	(void)arg;
	puts(line);
	/* What is seen last before a crash is what counts; a reader that has gone ends it. */
	if (ferror(stdout))
		_exit(FAILED);
}

/* In this process, so that a debugger or a sanitizer sees it; a crash is a crash. */
static int one(struct wanted *wanted)
{
	struct sim_options *options = &wanted->crew.sim;
	struct sim_result result;

	if (wanted->trace) {
		options->trace = trace_print;
		setvbuf(stdout, NULL, _IOLBF, 0);
	}
	sim_run(wanted->seed, options, &result);
	sim_print_one(stdout, options, &result);
	fflush(stdout);
	if (result.failed)
		return complain("seed %" PRIu64 ": %s", result.seed, result.failure);
	return DONE;
}

/* Whatever was not said. */
static int wanted_complete(struct wanted *wanted)
{
	if (wanted->one && (wanted->seeds_given || wanted->count_given))
		return misused("sim: --seed runs one seed; leave out --seeds and --count");
	if (wanted->trace && !wanted->one)
		return misused("sim: --trace shows one seed: say which with --seed");
	if (wanted->seeds_given && wanted->count_given)
		return misused("sim: --seeds A..B says how many; leave out --count");
	if (!wanted->seeds_given) {
		if (!wanted->count_given)
			wanted->crew.count = COUNT_DEFAULT;
		/* Small enough to be typed. */
		if (getrandom(&wanted->crew.first, sizeof(wanted->crew.first), 0) < 0)
			return complain("no random seed: %s", strerror(errno));
		wanted->crew.first &= UINT32_MAX;
	}
	return DONE;
}

#ifdef NAPIER_CANARIES
static int canary_take(const char *name)
{
	if (canary_plant(name))
		return -1;
	complain("sim: --canary %s: there is none of this name; there are:", name);
	for (unsigned i = 1; canary_name(i); i++)
		fprintf(stderr, "  %-18s %s\n", canary_name(i), canary_text(i));
	return MISUSED;
}
#else
static int canary_take(const char *name)
{
	return misused("sim: --canary %s: this napier has none; build one with "
		       "meson setup -Dcanaries=true",
		       name);
}
#endif

static int option_take(struct wanted *wanted, int option)
{
	uint64_t jobs;

	switch (option) {
	case 's':
		wanted->one = true;
		if (number_parse(optarg, 0, &wanted->seed))
			return misused("sim: --seed %s: must be a number", optarg);
		return -1;
	case 'S':
		wanted->seeds_given = true;
		if (range_parse(optarg, &wanted->crew))
			return misused("sim: --seeds %s: must be A..B, A not above B", optarg);
		return -1;
	case 'c':
		wanted->count_given = true;
		if (number_parse(optarg, 1, &wanted->crew.count))
			return misused("sim: --count %s: must be a number from 1", optarg);
		return -1;
	case 'j':
		if (number_parse(optarg, 1, &jobs) || jobs > CREW_JOBS_MAX)
			return misused("sim: --jobs %s: must be 1 to %d", optarg, CREW_JOBS_MAX);
		wanted->crew.jobs = (unsigned)jobs;
		return -1;
	case 't':
		wanted->trace = true;
		return -1;
	case 'C':
		return canary_take(optarg);
	default:
		wanted->crew.sim.no_faults = true;
		return -1;
	}
}

static int sim_command(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'S'},
		{"count", required_argument, NULL, 'c'},
		{"jobs", required_argument, NULL, 'j'},
		{"trace", no_argument, NULL, 't'},
		{"no-faults", no_argument, NULL, 'F'},
		{"canary", required_argument, NULL, 'C'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct wanted wanted = {0};
	struct which which;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":j:h", options, NULL)) != -1) {
		rc = option && strchr("sScjtFC", option)
			     ? option_take(&wanted, option)
			     : which_option(&command_sim, &which, option, argv);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return misused("sim: \"%s\": it takes options only", argv[optind]);
	rc = wanted_complete(&wanted);
	if (rc)
		return rc;
	return wanted.one ? one(&wanted) : many(&wanted);
}

const struct command command_sim = {
	.name = "sim",
	.summary = "run random scenarios on the virtual machine, each from one seed",
	.usage = "Usage: napier sim [OPTION…]\n"
		 "Runs the engine on virtual CPUs in virtual time: random topologies, traffic, "
		 "settings and\nfaults, each decided by one seed and exactly repeatable. Checks "
		 "after every event what\nalways has to hold, and at the end that nothing is left "
		 "over. Without options: 1000\nseeds from a random one on.\n\n"
		 "      --seed N         this one seed, and what it was\n"
		 "      --trace          with --seed: every event as a line\n"
		 "      --seeds A..B     all of these\n"
		 "      --count N        so many, from a random one on\n"
		 "  -j, --jobs N         so many processes (one per CPU)\n"
		 "      --no-faults      nothing goes wrong on purpose\n"
		 "      --canary NAME    with this known bug planted, in a build that has them\n"
		 "  -h, --help           this text\n\n"
		 "Exit status: 0 when all passed, 1 when a seed failed, 2 for what was typed "
		 "wrong.\n",
	.run = sim_command,
};

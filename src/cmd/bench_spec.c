/* SPDX-License-Identifier: BSD-2-Clause */
/* napier bench NAME|FILE: runs a specification, prints its table and writes its report. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/load/peer.h>
#include <lab/report/results.h>
#include <lab/report/summary.h>
#include <lab/run/experiment.h>

#include <cmd/bench.h>
#include <cmd/bench_output.h>
#include <cmd/bench_table.h>

#define PROGRESS (100 * NSEC_PER_MSEC)

enum { SETTINGS = 64, CHOSEN = 64 };

struct asked {
	const char *name, *directory, *run_dir;
	bool quick, json, list, replace;
	unsigned settings;
	struct spec_setting setting[SETTINGS];
	unsigned chosen; /* --only: patterns */
	const char *only[CHOSEN];
	char host[256]; /* "": none */
	uint16_t port;
};

static volatile int stop; /* the signal */

/* The first asks for an end in order; who sends a second does not want to wait for it. */
static void on_signal(int number)
{
	stop = number;
	signal(number, SIG_DFL);
}

static void signals_catch(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal}, was;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!sigaction(numbers[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

static int setting_take(struct asked *asked, char *text)
{
	char *value = strchr(text, '=');

	if (!value || value == text)
		return misused("bench: --set %s: KEY=VALUE, as in --set quick.duration=1s", text);
	if (asked->settings == SETTINGS)
		return misused("bench: --set: at most %d", SETTINGS);
	*value = '\0';
	asked->setting[asked->settings++] = (struct spec_setting){text, value + 1};
	return -1;
}

/* One, or several with commas. */
static int only_take(struct asked *asked, char *list)
{
	for (char *pattern; (pattern = strsep(&list, ","));) {
		if (asked->chosen == CHOSEN)
			return misused("bench: --only: at most %d", CHOSEN);
		asked->only[asked->chosen++] = pattern;
	}
	return -1;
}

/* "host", "host:1234", "[fd00::1]:1234", "fd00::1" */
static int host_take(struct asked *asked, const char *text)
{
	const char *end = strrchr(text, ':'), *name = text;
	size_t length = strlen(text);
	char *rest;
	long port;

	asked->port = PEER_PORT;
	if (*text == '[' && strchr(text, ']')) {
		name = text + 1;
		length = strcspn(name, "]");
		end = name[length + 1] == ':' ? name + length + 1 : NULL;
	} else if (end && end == strchr(text, ':')) {
		length = (size_t)(end - text);
	} else {
		end = NULL;
	}
	if (!length || length >= sizeof(asked->host))
		return misused("bench: -H %s: HOST or HOST:PORT", text);
	snprintf(asked->host, sizeof(asked->host), "%.*s", (int)length, name);
	if (!end)
		return -1;
	port = strtol(end + 1, &rest, 10);
	if (!end[1] || *rest || port < 1 || port > 65535)
		return misused("bench: -H %s: a port is a number from 1 to 65535", text);
	asked->port = (uint16_t)port;
	return -1;
}

static int options_read(const struct bench_command *command, int argc, char **argv,
			struct asked *asked)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'},
		{"list", no_argument, NULL, 'l'},
		{"only", required_argument, NULL, 'O'},
		{"set", required_argument, NULL, 's'},
		{"host", required_argument, NULL, 'H'},
		{"output", required_argument, NULL, 'o'},
		{"replace", no_argument, NULL, 'r'},
		{"run-dir", required_argument, NULL, 'R'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int option, rc = -1;

	while (rc < 0 && (option = getopt_long(argc, argv, ":jho:H:", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			asked->json = true;
			break;
		case 'q':
			asked->quick = true;
			break;
		case 'l':
			asked->list = true;
			break;
		case 's':
			rc = setting_take(asked, optarg);
			break;
		case 'O':
			rc = only_take(asked, optarg);
			break;
		case 'H':
			rc = host_take(asked, optarg);
			break;
		case 'o':
			asked->directory = optarg;
			break;
		case 'r':
			asked->replace = true;
			break;
		case 'R':
			asked->run_dir = optarg;
			break;
		default:
			return bench_option(command, option, argv);
		}
	}
	if (rc >= 0)
		return rc;
	if (optind < argc)
		asked->name = argv[optind++];
	if (optind < argc)
		return misused("bench: \"%s\": one specification at a time", argv[optind]);
	if (!asked->name && !asked->list)
		return misused("bench: say which specification: see napier bench --list");
	return -1;
}

/* Into a list of JSON, or on a line. */
static void list_one(void *list, const struct spec *spec)
{
	if (list)
		json_array_append_new(
			list, json_pack("{ss ss}", "name", spec->name, "title", spec->title));
	else
		printf("%-14s  %s\n", spec->name, spec->title);
}

static int list_print(bool json)
{
	json_t *list = json ? json_array() : NULL;
	struct error err;
	int rc = spec_list(list_one, list, &err) ? complain("%s", err.text) : DONE;

	if (json && rc == DONE)
		rc = json_put(list, JSON_INDENT(2));
	json_decref(list);
	return rc;
}

static unsigned keys_width(const struct spec *spec)
{
	size_t width = 0, n;

	for (unsigned i = 0; i < spec->systems; i++)
		width = (n = strlen(spec->system[i].key)) > width ? n : width;
	for (unsigned i = 0; i < spec->workloads; i++)
		width = (n = strlen(spec->workload[i].key)) > width ? n : width;
	return (unsigned)width;
}

/* What --only and --set call by their keys. */
static void parts_print(const struct spec *spec)
{
	int width = (int)keys_width(spec);

	printf("Systems:\n");
	for (unsigned i = 0; i < spec->systems; i++) {
		const struct spec_system *system = &spec->system[i];

		printf("  %-*s  %s%s%s\n", width, system->key, system->scenario,
		       *system->scenario ? " | " : "", system->name);
	}
	printf("\nWorkloads:\n");
	for (unsigned i = 0; i < spec->workloads; i++)
		printf("  %-*s  %s\n", width, spec->workload[i].key, spec->workload[i].name);
}

static int parts_json(const struct spec *spec)
{
	json_t *systems = json_array(), *workloads = json_array(), *parts;
	int rc;

	for (unsigned i = 0; i < spec->systems; i++) {
		const struct spec_system *system = &spec->system[i];

		json_array_append_new(systems,
				      json_pack("{ss ss ss}", "key", system->key, "name",
						system->name, "scenario", system->scenario));
	}
	for (unsigned i = 0; i < spec->workloads; i++)
		json_array_append_new(workloads, json_pack("{ss ss}", "key", spec->workload[i].key,
							   "name", spec->workload[i].name));
	parts = json_pack("{so so}", "systems", systems, "workloads", workloads);
	rc = json_put(parts, JSON_INDENT(2));
	json_decref(parts);
	return rc;
}

static void progress_print(void *arg, const struct experiment_progress *p)
{
	int64_t *printed = arg, now = clock_now();

	if (now - *printed < PROGRESS)
		return;
	*printed = now;
	fprintf(stderr, "\r\033[K%u/%u  %s | %s  %s", p->done + 1, p->total, p->workload, p->system,
		p->phase);
	if (p->load.done)
		fprintf(stderr, "  %llu %s", (unsigned long long)p->load.done, p->load.unit);
	if (p->load.lost)
		fprintf(stderr, ", %llu lost", (unsigned long long)p->load.lost);
	fprintf(stderr, "  %.0f s left", p->left_s);
	fflush(stderr);
}

static json_t *command_json(int argc, char **argv)
{
	json_t *a = json_pack("[s]", "napier");

	for (int i = 0; i < argc; i++)
		json_array_append_new(a, json_string(argv[i]));
	return a;
}

static json_t *set_json(const struct asked *asked)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < asked->settings; i++)
		json_object_set_new(o, asked->setting[i].key, json_string(asked->setting[i].value));
	return o;
}

static bool any_valid(const json_t *runs)
{
	const json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		if (run_valid(run))
			return true;
	}
	return false;
}

/*
 * What is to be said of results that are not whole: runs that failed, and those of a system under a
 * workload that has no valid one. A generator that was late once is a note in the report.
 */
struct faults {
	size_t n;
	const json_t *first;
	bool valid; /* there is a valid run */
};

static int faults_find(const json_t *results, struct faults *out)
{
	const json_t *run;
	struct results of;
	size_t i;

	*out = (struct faults){0};
	if (results_open(results, &of))
		return complain("no memory");
	json_array_foreach(json_object_get(results, "runs"), i, run)
	{
		bool failed = json_is_string(json_object_get(run, "error"));

		out->valid |= run_valid(run);
		if (!failed &&
		    any_valid(results_runs(&of, text_of(run, "system"), text_of(run, "workload"))))
			continue;
		if (!out->n++)
			out->first = run;
	}
	results_close(&of);
	return DONE;
}

/* The first that went wrong is named, the others are counted. */
static int faults_tell(const json_t *results, const struct faults *faults)
{
	size_t runs = json_array_size(json_object_get(results, "runs"));
	const char *why;

	if (!runs)
		return complain("nothing was measured: no system can be had here, as said above");
	if (!faults->n)
		return DONE;
	why = json_string_value(json_object_get(faults->first, "error"));
	why = why ? why : json_string_value(json_object_get(faults->first, "invalid"));
	return complain("%zu of %zu runs %s; the first, %s with %s: %s", faults->n, runs,
			faults->n == 1 ? "has no valid figures" : "have no valid figures",
			text_of(faults->first, "system"), text_of(faults->first, "workload"),
			why ? why : "it is not said why");
}

static int results_print(const struct asked *asked, json_t *results)
{
	struct error err;

	if (summary_add(results, &err))
		return complain("%s", err.text);
	if (!asked->json) {
		report_table(results, stdout);
		fflush(stdout);
		return DONE;
	}
	return json_put(results, JSON_INDENT(2));
}

/* output NULL: there is to be no directory. */
static int results_tell(const struct asked *asked, json_t *results, struct bench_output *output,
			bool canceled)
{
	size_t runs = json_array_size(json_object_get(results, "runs"));
	struct faults faults;
	int rc;

	if (canceled && !runs) {
		if (output)
			bench_output_drop(output);
		complain("interrupted before anything was measured");
		return STOPPED + stop;
	}
	rc = results_print(asked, results);
	if (faults_find(results, &faults))
		rc = FAILED;
	if (output) {
		if (bench_output_write(output, results, canceled || !faults.valid) != DONE)
			rc = FAILED;
		else if (!asked->json)
			printf("\n%s/report.html\n", output->path);
	}
	if (canceled) {
		complain("interrupted: what was measured until then is %s%s",
			 output ? "in " : "above", output ? output->path : "");
		return STOPPED + stop;
	}
	return rc == DONE ? faults_tell(results, &faults) : rc;
}

static int spec_go(const struct asked *asked, const struct spec *spec, const json_t *command,
		   const json_t *set)
{
	static char self[PATH_MAX];
	struct bench_output output = {
		.name = spec->name,
		.asked = asked->directory,
		.replace = asked->replace,
	};
	bool wanted = !asked->json || asked->directory;
	int64_t printed = 0;
	struct experiment_plan plan = {
		.quick = asked->quick,
		.napier = self,
		.rundir = asked->run_dir ? asked->run_dir : BENCH_RUNDIR,
		.host = *asked->host ? asked->host : NULL,
		.host_port = asked->port,
		.command = command,
		.set = set,
		.progress = isatty(STDERR_FILENO) ? progress_print : NULL,
		.arg = &printed,
		.stop = &stop,
	};
	json_t *results;
	struct error err;
	int rc = DONE;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return complain("/proc/self/exe: %s", strerror(errno));
	if (wanted)
		rc = bench_output_open(&output);
	if (rc != DONE)
		return rc;
	signals_catch();
	rc = experiment_run(spec, &plan, &results, &err);
	if (plan.progress)
		fprintf(stderr, "\r\033[K");
	if (results) {
		int ended = rc;

		rc = results_tell(asked, results, wanted ? &output : NULL, ended == -ECANCELED);
		json_decref(results);
		return ended && ended != -ECANCELED ? complain("%s", err.text) : rc;
	}
	bench_output_drop(&output);
	/* What it then fails at is that what it makes is taken away. */
	if (stop) {
		complain("interrupted before anything was measured");
		return STOPPED + stop;
	}
	return complain("%s%s", err.text,
			(rc == -EPERM || rc == -EACCES) && geteuid()
				? ": run it as root, since it makes namespaces and settings of the "
				  "kernel"
				: "");
}

/* As it is asked for; -1: *out is for spec_free. */
static int spec_take(const struct asked *asked, struct spec **out)
{
	struct error err;
	int rc = spec_load(asked->name, asked->setting, asked->settings, out, &err);

	if (rc == -ESRCH)
		return misused("%s; other names: see napier bench --help", err.text);
	if (rc)
		return strncmp(err.text, "--set ", 6) ? complain("%s", err.text)
						      : misused("%s", err.text);
	if (asked->chosen && spec_only(*out, asked->only, asked->chosen, &err)) {
		spec_free(*out);
		return misused("bench: --only: %s", err.text);
	}
	return -1;
}

static int asked_do(const struct asked *asked, const json_t *words)
{
	struct spec *spec;
	json_t *set;
	int rc;

	if (!asked->name)
		return list_print(asked->json);
	rc = spec_take(asked, &spec);
	if (rc >= 0)
		return rc;
	if (asked->list && asked->json) {
		rc = parts_json(spec);
	} else if (asked->list) {
		parts_print(spec);
		rc = DONE;
	} else {
		set = set_json(asked);
		rc = spec_go(asked, spec, words, set);
		json_decref(set);
	}
	spec_free(spec);
	return rc;
}

static int spec_run(const struct bench_command *command, int argc, char **argv)
{
	json_t *words = command_json(argc, argv);
	struct asked *asked = calloc(1, sizeof(*asked));
	int rc = asked ? options_read(command, argc, argv, asked) : complain("no memory");

	if (rc < 0)
		rc = asked_do(asked, words);
	json_decref(words);
	free(asked);
	return rc;
}

const struct bench_command bench_spec = {
	.name = "NAME|FILE",
	.summary = "a specification: napier bench --list",
	.usage = "Usage: napier bench NAME|FILE [OPTION…]\n"
		 "       napier bench [NAME|FILE] --list\n"
		 "Runs an experiment: every system under every workload, forth and back, and "
		 "prints\n"
		 "a table. A report is left in a directory: results.json, report.html, flent's "
		 "data.\n"
		 "FILE is described in napier-spec(5). Needs root, and leaves nothing else "
		 "behind.\n\n"
		 "      --quick          the short lengths: shows that it works, and roughly how "
		 "well\n"
		 "      --only SYSTEM[,SYSTEM…]\n"
		 "                       these systems, by key or pattern ('a-*'); may be given "
		 "several times\n"
		 "      --set KEY=VALUE  another value in the specification: quick.duration=1s,\n"
		 "                       workloads.closed.flows=10; may be given several times\n"
		 "  -H, --host HOST[:PORT]\n"
		 "                       the server is another host's, where napier bench server "
		 "runs\n"
		 "  -o, --output DIR     the report's directory (napier-NAME-DATE-TIME)\n"
		 "      --replace        results that are in DIR already give way, once there "
		 "are new ones\n"
		 "  -j, --json           results (or the list) as JSON, and no directory unless -o "
		 "is "
		 "given\n"
		 "      --list           the specifications that come with napier; of one, its "
		 "systems and\n"
		 "                       workloads\n"
		 "      --run-dir DIR    run directories are in DIR (/run/napier)\n"
		 "  -h, --help           this text\n",
	.run = spec_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <control/client.h>

#include <cmd/cmd.h>
#include <cmd/table.h>
#include <cmd/target.h>
#include <cmd/view.h>

struct show {
	struct which which;
	bool json, fdb, names, softnet;
	double interval; /* seconds; 0: since the engine started */
};

static int json_print(const json_t *json)
{
	return json_put(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
}

static int fdb_print(const json_t *entries)
{
	static const char *const titles[] = {"<ADDRESS", "VLAN", "<PORT", "AGE"};
	struct table *table = table_create(4, titles);

	for (size_t i = 0; table && i < json_array_size(entries); i++) {
		const json_t *entry = json_array_get(entries, i);
		long long vlan = view_number(entry, "vlan");

		table_cell(table, COLOUR_NONE, "%s", view_text(entry, "address"));
		table_cell(table, COLOUR_NONE, vlan ? "%lld" : "-", vlan);
		table_cell(table, COLOUR_NONE, "%s", view_text(entry, "port"));
		table_cell(table, COLOUR_NONE, "%lld s", view_number(entry, "age"));
	}
	table_print(table, stdout);
	return DONE;
}

static int fdb_show(const struct show *show, const struct rundir *dir)
{
	struct error err;
	json_t *answer;
	int fd = client_connect(dir, &err);
	int rc;

	if (fd < 0)
		return complain("%s", err.text);
	if (client_ask(fd, json_pack("{s:s}", "request", "fdb"), &answer, &err))
		return complain("%s", err.text);
	if (show->json)
		rc = json_print(json_object_get(answer, "entries"));
	else
		rc = fdb_print(json_object_get(answer, "entries"));
	json_decref(answer);
	return rc;
}

/* What a shell can complete: ports, and their queues. */
static int names_print(const json_t *view)
{
	const json_t *ports = json_object_get(view, "ports");
	const json_t *napis = json_object_get(view, "napis");

	for (size_t i = 0; i < json_array_size(ports); i++)
		puts(view_text(json_array_get(ports, i), "name"));
	for (size_t i = 0; i < json_array_size(napis); i++)
		printf("%s/%lld\n", view_text(json_array_get(napis, i), "port"),
		       view_number(json_array_get(napis, i), "queue"));
	return DONE;
}

static int view_print(const json_t *view, bool whole)
{
	if (whole) {
		view_engine_print(view, stdout);
		putchar('\n');
		view_cpus_print(view, stdout);
		view_load_print(view, stdout);
		putchar('\n');
	}
	view_napis_print(view, stdout);
	putchar('\n');
	view_runners_print(view, stdout);
	if (json_array_size(json_object_get(view, "runners")))
		putchar('\n');
	view_ports_print(view, stdout);
	return DONE;
}

/* Nothing of that name: says which there are. */
static int target_missing(const struct counters_file *file, const struct rundir *dir,
			  const char *text)
{
	json_t *view = view_create(file, dir, NULL, -1);
	const json_t *ports = json_object_get(view, "ports");
	char list[256] = "";
	size_t used = 0;

	for (size_t i = 0; i < json_array_size(ports) && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "",
					 view_text(json_array_get(ports, i), "name"));
	json_decref(view);
	return complain("no port or queue %s: the ports are %s", text, *list ? list : "none");
}

/* What was worked in the interval, or since the start: waits for the former. */
static int load_add(json_t *view, const struct counters_file *file, struct load_sample *before)
{
	struct load_sample *after = NULL;
	struct load load;
	int rc = before ? load_sample_take(file, &after) : -ENOMEM;

	if (!rc)
		rc = load_between(before, after, &load);
	if (!rc) {
		view_load_add(view, &load);
		load_free(&load);
	}
	load_sample_free(after);
	load_sample_free(before);
	return rc ? complain("no memory") : DONE;
}

static struct load_sample *load_begin(const struct show *show, const struct counters_file *file)
{
	struct load_sample *before = NULL;

	if (show->interval > 0 && !load_sample_take(file, &before))
		seconds_sleep(show->interval);
	else if (show->interval <= 0)
		load_sample_zero(file, &before);
	return before;
}

static int counters_show(const struct show *show, const struct rundir *dir, const char *text)
{
	const struct counters_file *file;
	struct target target;
	struct load_sample *before;
	struct error err;
	json_t *view;
	int rc;

	if (text && target_parse(text, &target, &err))
		return misused("%s", err.text);
	if (counters_map(dir, &file, &err))
		return complain("%s", err.text);
	before = show->names ? NULL : load_begin(show, file);
	view = view_create(file, dir, text ? target.port : NULL, text ? target.queue : -1);
	rc = show->names ? DONE : load_add(view, file, before);
	if (rc != DONE)
		;
	else if (text && !json_array_size(json_object_get(view, "napis")) &&
		 !(target.queue < 0 && json_array_size(json_object_get(view, "ports"))))
		rc = target_missing(file, dir, text);
	else if (show->json)
		rc = json_print(show->softnet ? json_object_get(view, "cpus") : view);
	else if (show->softnet)
		view_softnet_print(view, stdout);
	else
		rc = show->names ? names_print(view) : view_print(view, !text);
	json_decref(view);
	counters_unmap(file);
	return rc;
}

static int show_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"fdb", no_argument, NULL, 'f'},
		{"interval", required_argument, NULL, 'i'},
		{"names", no_argument, NULL, 'N'},
		{"softnet", no_argument, NULL, 's'},
		WHICH_LONG,
		{0},
	};
	struct show show = {0};
	struct rundir dir;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":ji:h", options, NULL)) != -1) {
		if (option == 'j') {
			show.json = true;
		} else if (option == 'f') {
			show.fdb = true;
		} else if (option == 'i') {
			if (seconds_option("--interval", optarg, &show.interval))
				return MISUSED;
		} else if (option == 's') {
			show.softnet = true;
		} else if (option == 'N') {
			show.names = true;
		} else {
			rc = which_option(&command_show, &show.which, option, argv);
			if (rc >= 0)
				return rc;
		}
	}
	if (show.fdb + show.names + show.softnet > 1)
		return misused("show: --fdb, --names and --softnet: one at a time");
	if (show.json && show.names)
		return misused("show: --names is lines, not JSON: leave --json out");
	if (argc > optind && (show.fdb || show.softnet))
		return misused("show: %s is of the whole engine: leave %s out",
			       show.fdb ? "--fdb" : "--softnet", argv[optind]);
	if (argc - optind > 1)
		return misused("show: one PORT or PORT/QUEUE at a time");
	rc = which_dir(&show.which, &dir);
	if (rc)
		return rc;
	if (show.fdb)
		return fdb_show(&show, &dir);
	return counters_show(&show, &dir, argv[optind]);
}

const struct command command_show = {
	.name = "show",
	.summary = "tell what an engine does: its CPUs, NAPIs, ports, addresses",
	.usage = "Usage: napier show [OPTION…] [PORT[/QUEUE]]\n"
		 "Tells what an engine, a port or a queue does. It reads the engine's counters and "
		 "asks\nnobody, so it also works while the engine does not answer.\n\n"
		 "  -j, --json           as JSON\n"
		 "      --fdb            the addresses that the bridge has learnt (asks the "
		 "engine)\n"
		 "  -i, --interval SECONDS\n"
		 "                       loads and wake latencies of so long, measured now, not "
		 "since\n"
		 "                       the engine started\n"
		 "      --softnet        what each engine CPU did, in the terms of softnet_stat\n"
		 "      --names          names of ports and queues, one a line\n" WHICH_USAGE,
	.run = show_run,
};

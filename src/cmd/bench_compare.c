/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <unistd.h>

#include <lab/report/report.h>
#include <lab/report/summary.h>

#include <cmd/bench.h>
#include <cmd/bench_table.h>

static int results_load(const char *path, json_t **out)
{
	struct error err;

	if (report_read(path, out, &err))
		return complain("%s", err.text);
	if (!json_is_array(json_object_get(*out, "summary")) && summary_add(*out, &err)) {
		json_decref(*out);
		return complain("%s: %s", path, err.text);
	}
	return DONE;
}

static int comparison_print(const json_t *comparison, bool json)
{
	if (json)
		return json_put(comparison, JSON_INDENT(1));
	report_compare_table(comparison, stdout);
	return DONE;
}

static int compare(const char *path_a, const char *path_b, bool json)
{
	json_t *a = NULL, *b = NULL, *comparison = NULL;
	struct error err;
	int rc = results_load(path_a, &a);

	if (rc)
		return rc;
	rc = results_load(path_b, &b);
	if (rc) {
		json_decref(a);
		return rc;
	}
	if (report_compare(a, b, &comparison, &err))
		rc = complain("%s and %s: %s", path_a, path_b, err.text);
	else
		rc = comparison_print(comparison, json);
	json_decref(comparison);
	json_decref(a);
	json_decref(b);
	return rc;
}

static int run(const struct bench_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	bool json = false;
	int option;

	while ((option = getopt_long(argc, argv, ":jh", options, NULL)) != -1) {
		if (option != 'j')
			return bench_option(command, option, argv);
		json = true;
	}
	if (argc - optind != 2)
		return misused(
			"bench compare: it takes two results, A and B: files, or directories "
			"that napier bench wrote");
	return compare(argv[optind], argv[optind + 1], json);
}

const struct bench_command bench_compare = {
	.name = "compare",
	.summary = "two results: what differs between them",
	.usage = "Usage: napier bench compare [OPTION…] A B\n"
		 "Compares the results A and B: directories that napier bench wrote, or their\n"
		 "results.json. Each ratio is of B to A.\n\n"
		 "  -j, --json           as JSON, with every metric\n"
		 "  -h, --help           this text\n",
	.run = run,
};

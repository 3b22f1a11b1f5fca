/* SPDX-License-Identifier: BSD-2-Clause */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lab/report/report.h>
#include <lab/report/summary.h>

#include <cmd/bench.h>
#include <cmd/bench_output.h>
#include <cmd/bench_table.h>

/* A directory itself, of a file the one it is in. */
static const char *directory_of(const char *path, char out[PATH_MAX])
{
	struct stat status;
	char *slash;

	snprintf(out, PATH_MAX, "%s", path);
	if (!stat(path, &status) && S_ISDIR(status.st_mode))
		return out;
	slash = strrchr(out, '/');
	if (slash)
		slash[slash == out] = 0;
	return slash ? out : ".";
}

static bool same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return !stat(a, &of_a) && !stat(b, &of_b) && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

/* Other results than these are there: a copy under another name, beside them, is another one. */
static bool others_are_in(const char *directory, const char *path)
{
	char there[PATH_MAX + 16];

	snprintf(there, sizeof(there), "%s/results.json", directory);
	return bench_output_has(directory) && !same_file(there, path) &&
	       !same_file(directory, path);
}

/* results.json is only read, but for a directory of its own (-o). */
static int files_write(const json_t *results, const char *path, const char *directory)
{
	char beside[PATH_MAX], page[PATH_MAX + 16];
	struct error err;
	int rc;

	if (directory) {
		rc = bench_output_has(directory) ? report_replace(results, directory, &err)
						 : report_write(results, directory, &err);
		if (rc)
			return complain("%s", err.text);
		snprintf(page, sizeof(page), "%s/report.html", directory);
	} else {
		snprintf(page, sizeof(page), "%s/report.html", directory_of(path, beside));
		if (report_html(results, page, &err))
			return complain("%s", err.text);
	}
	fprintf(stderr, "%s\n", page);
	return DONE;
}

static int report(const char *path, const char *directory, bool replace)
{
	json_t *results;
	struct error err;
	int rc;

	if (directory && !replace && others_are_in(directory, path))
		return complain("%s: there are other results in it: choose another directory (-o "
				"DIR), or have them replaced (--replace)",
				directory);
	if (report_read(path, &results, &err))
		return complain("%s", err.text);
	/* What there is needs not be made again, which for many runs takes seconds. */
	rc = DONE;
	if (!json_is_array(json_object_get(results, "summary")) && summary_add(results, &err))
		rc = complain("%s: %s", path, err.text);
	if (!rc) {
		report_table(results, stdout);
		fflush(stdout);
		rc = files_write(results, path, directory);
	}
	json_decref(results);
	return rc;
}

static int run(const struct bench_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"replace", no_argument, NULL, 'r'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	const char *directory = NULL;
	bool replace = false;
	int option;

	while ((option = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		if (option == 'o')
			directory = optarg;
		else if (option == 'r')
			replace = true;
		else
			return bench_option(command, option, argv);
	}
	if (argc - optind != 1)
		return misused("bench report: it takes results: a file, or a directory that napier "
			       "bench wrote");
	return report(argv[optind], directory, replace);
}

const struct bench_command bench_report = {
	.name = "report",
	.summary = "make a report again from its results",
	.usage = "Usage: napier bench report [OPTION…] FILE|DIR\n"
		 "Prints the table of results.json, and makes report.html beside it again.\n\n"
		 "  -o, --output DIR     all files of the report, into this directory\n"
		 "      --replace        other results that are in it give way\n"
		 "  -h, --help           this text\n",
	.run = run,
};

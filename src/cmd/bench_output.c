/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lab/report/report.h>

#include <cmd/bench_output.h>
#include <cmd/cmd.h>

enum { ALIKE_MAX = 100 };

bool bench_output_has(const char *directory)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/results.json", directory);
	return !access(path, F_OK);
}

/* Two that begin in one second get one each. */
static int own_make(struct bench_output *output)
{
	time_t now = time(NULL);
	struct tm local;
	char when[32];

	localtime_r(&now, &local);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local);
	for (unsigned i = 1; i < ALIKE_MAX; i++) {
		int n = snprintf(output->path, PATH_MAX, "napier-%s-%s", output->name, when);

		if (i > 1)
			snprintf(output->path + n, PATH_MAX - (size_t)n, "-%u", i);
		output->made = !mkdir(output->path, 0777);
		if (output->made)
			return DONE;
		if (errno != EEXIST)
			break;
	}
	return complain("%s: making the directory of the report: %s: choose another (-o DIR)",
			output->path, strerror(errno));
}

static int asked_make(struct bench_output *output)
{
	const char *path = output->path;
	struct stat is;

	snprintf(output->path, PATH_MAX, "%s", output->asked);
	output->made = !mkdir(path, 0777);
	if (output->made)
		return DONE;
	if (errno != EEXIST)
		return complain("%s: making the directory of the report: %s: choose another (-o "
				"DIR)",
				path, strerror(errno));
	if (stat(path, &is) || !S_ISDIR(is.st_mode))
		return complain("%s: there is a file of that name: choose another (-o DIR)", path);
	if (!output->replace && bench_output_has(path))
		return complain("%s: there are results in it: choose another directory (-o DIR), "
				"or have them replaced (--replace)",
				path);
	return DONE;
}

int bench_output_open(struct bench_output *output)
{
	int rc = output->asked ? asked_make(output) : own_make(output);

	if (rc == DONE && access(output->path, W_OK))
		return complain("%s: %s: choose another directory (-o DIR)", output->path,
				strerror(errno));
	return rc;
}

int bench_output_write(struct bench_output *output, json_t *results, bool lesser)
{
	bool has = bench_output_has(output->path);
	struct error err;
	int rc;

	if (has && (lesser || !output->replace)) {
		complain("%s: its results are left as they were", output->path);
		has = false;
		if (own_make(output) != DONE)
			return FAILED;
	}
	rc = has ? report_replace(results, output->path, &err)
		 : report_write(results, output->path, &err);
	return rc ? complain("%s", err.text) : DONE;
}

void bench_output_drop(const struct bench_output *output)
{
	if (output->made)
		rmdir(output->path);
}

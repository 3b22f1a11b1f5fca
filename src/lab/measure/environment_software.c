/* SPDX-License-Identifier: BSD-2-Clause */
#include <bpf/libbpf.h>
#include <dirent.h>
#include <gnu/libc-version.h>
#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/cputime.h"
#include "lab/measure/environment.h"
#include "lab/measure/environment_parts.h"
#include "lab/measure/sysfile.h"

#define WATCHED INT64_C(100000000)

enum { PROCESSES = 4096, BUSIEST = 8 };

struct busy {
	pid_t pid;
	int64_t ns;
};

static unsigned processes_read(struct busy *out)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *proc = opendir("/proc");

	while (proc && n < PROCESSES && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && pid != getpid())
			out[n++] = (struct busy){pid, cputime_process(pid)};
	}
	if (proc)
		closedir(proc);
	return n;
}

static int busiest_first(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Names only: what they were called with is nobody's business. */
static json_t *busiest(struct busy *all, unsigned n, int64_t begin)
{
	json_t *out = json_array();
	int64_t time;

	for (unsigned i = 0; i < n; i++) {
		int64_t now = cputime_process(all[i].pid);

		all[i].ns = now > all[i].ns ? now - all[i].ns : 0;
	}
	/* Not before: who is put off between the two would see more CPUs used than there are. */
	time = clock_now() - begin;
	qsort(all, n, sizeof(*all), busiest_first);
	/* More than a hundredth of a CPU. */
	for (unsigned i = 0; i < n && i < BUSIEST && all[i].ns > time / 100; i++)
		json_array_append_new(out, json_pack("{s:o, s:f}", "name",
						     sysfile_text("/proc/%d/comm", all[i].pid),
						     "cpus", (double)all[i].ns / (double)time));
	return out;
}

json_t *environment_processes(void)
{
	struct busy *all = calloc(PROCESSES, sizeof(*all));
	int64_t begin = clock_now();
	json_t *out;
	unsigned n;

	if (!all)
		return json_null();
	n = processes_read(all);
	clock_sleep(WATCHED);
	out = busiest(all, n, begin);
	free(all);
	return out;
}

const char *environment_build = "unknown";

json_t *environment_versions(void)
{
	char config[32];

	snprintf(config, sizeof(config), "%d.%d.%d", LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR,
		 LIBCONFIG_VER_REVISION);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "napier", NAPIER_VERSION, "build",
			 environment_build, "compiler", __VERSION__, "libc", gnu_get_libc_version(),
			 "jansson", jansson_version_str(), "libbpf", libbpf_version_string(),
			 "libconfig", config);
}

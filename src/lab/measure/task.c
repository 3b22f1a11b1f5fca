/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/cputime.h"
#include "lab/measure/task.h"

#define PF_KTHREAD 0x00200000u

/* A small file of a thread's, as a string. False: it is not there. */
static bool file_read(pid_t process, pid_t thread, const char *name, char *out, size_t size)
{
	char path[96];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", process, thread, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, size - 1);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The number after a line's name and whatever separates them; -1: there is no such line. */
static int64_t line_number(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	if (!line)
		return -1;
	line += strlen(name);
	return strtoll(line + strspn(line, " \t:"), NULL, 10);
}

struct stat_line {
	pid_t parent;
	unsigned flags;
	uint64_t user, system, start;
	int cpu;
};

/* A name may have anything in it, so it ends at the last parenthesis. */
static bool stat_parse(const char *text, char name[TASK_NAME_MAX], struct stat_line *out)
{
	const char *begin = strchr(text, '('), *end = strrchr(text, ')');
	size_t length;

	if (!begin || !end || end <= begin)
		return false;
	length = (size_t)(end - begin) - 1;
	snprintf(name, TASK_NAME_MAX, "%.*s", (int)length, begin + 1);
	return sscanf(end,
		      ") %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
		      " %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %*d %*u %*u %*u %*u %*u %*u %*u"
		      " %*u %*u %*u %*u %*u %*u %*d %d",
		      &out->parent, &out->flags, &out->user, &out->system, &out->start,
		      &out->cpu) == 6;
}

/* The scheduler's: where it has them they stand still unless wanted. */
static bool statistics_are_on(void)
{
	int fd = open("/proc/sys/kernel/sched_schedstats", O_RDONLY | O_CLOEXEC);
	char value = '0';
	bool on = fd >= 0 && read(fd, &value, 1) == 1 && value == '1';

	if (fd >= 0)
		close(fd);
	return on;
}

bool task_read(pid_t process, pid_t thread, struct task *out)
{
	struct stat_line stat;
	char text[8192];

	*out = (struct task){
		.process = process,
		.thread = thread,
		.cpu = -1,
		.voluntary = -1,
		.involuntary = -1,
		.wakeups = -1,
		.migrations = -1,
	};
	if (!file_read(process, thread, "stat", text, sizeof(text)) ||
	    !stat_parse(text, out->name, &stat))
		return false;
	out->start = stat.start;
	out->user = stat.user;
	out->system = stat.system;
	out->cpu = stat.cpu;
	if (file_read(process, thread, "status", text, sizeof(text))) {
		out->voluntary = line_number(text, "\nvoluntary_ctxt_switches");
		out->involuntary = line_number(text, "\nnonvoluntary_ctxt_switches");
	}
	if (file_read(process, thread, "sched", text, sizeof(text))) {
		out->migrations = line_number(text, "se.nr_migrations");
		if (strstr(text, "nr_wakeups ") && statistics_are_on())
			out->wakeups = line_number(text, "nr_wakeups ");
	}
	return true;
}

pid_t task_process(pid_t thread)
{
	char text[4096];
	int64_t process = -1;

	if (file_read(thread, thread, "status", text, sizeof(text)))
		process = line_number(text, "\nTgid");
	return process > 0 ? (pid_t)process : 0;
}

int64_t task_time(pid_t process, pid_t thread, bool lagging)
{
	struct stat_line stat;
	char text[1024], name[TASK_NAME_MAX];

	if (!lagging && process == getpid()) {
		int64_t ns = cputime_thread(thread);

		return ns ? ns : -1;
	}
	if (file_read(process, thread, "schedstat", text, sizeof(text)))
		return strtoll(text, NULL, 10);
	if (!file_read(process, thread, "stat", text, sizeof(text)) ||
	    !stat_parse(text, name, &stat))
		return -1;
	return (int64_t)(stat.user + stat.system) * (1000000000 / sysconf(_SC_CLK_TCK));
}

unsigned task_list(pid_t process, pid_t *out, unsigned max)
{
	struct dirent *entry;
	char path[48];
	unsigned n = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		if (n < max)
			out[n] = (pid_t)atoi(entry->d_name);
		n++;
	}
	if (tasks)
		closedir(tasks);
	return n;
}

static bool has(const pid_t *process, unsigned n, pid_t wanted)
{
	for (unsigned i = 0; i < n; i++)
		if (process[i] == wanted)
			return true;
	return false;
}

unsigned task_processes(struct task_process *out, unsigned max)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *proc = opendir("/proc");

	while (proc && n < max && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		struct stat_line stat;
		char text[1024];

		if (pid <= 0 || !file_read(pid, pid, "stat", text, sizeof(text)) ||
		    !stat_parse(text, out[n].name, &stat))
			continue;
		out[n].process = pid;
		out[n].parent = stat.parent;
		out[n++].kernel = stat.flags & PF_KTHREAD;
	}
	if (proc)
		closedir(proc);
	return n;
}

/* A child may come before its parent in the list: again, until there is none that is new. */
unsigned task_descendants(const struct task_process *all, unsigned processes, pid_t *process,
			  unsigned n, unsigned max)
{
	unsigned before = 0;

	while (n != before) {
		before = n;
		for (unsigned i = 0; i < processes && n < max; i++)
			if (has(process, n, all[i].parent) && !has(process, n, all[i].process))
				process[n++] = all[i].process;
	}
	return n;
}

bool task_is_kernel(pid_t process)
{
	struct stat_line stat;
	char text[1024], name[TASK_NAME_MAX];

	return file_read(process, process, "stat", text, sizeof(text)) &&
	       stat_parse(text, name, &stat) && stat.flags & PF_KTHREAD;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/cputime.h"

#define PF_KTHREAD 0x00200000u
/* Of a clock id: a thread's (4), by what the scheduler counts (2). */
enum { THREAD_CLOCK = 4 | 2 };

static int64_t tick_ns(void)
{
	return 1000000000 / sysconf(_SC_CLK_TCK);
}

/* Fields: user nice system idle iowait irq softirq steal. */
static int system_read(struct cputime *c)
{
	FILE *f = fopen("/proc/stat", "re");
	char line[512];
	uint64_t v[8];

	if (!f)
		return -errno;
	c->cpus = 0;
	while (fgets(line, sizeof(line), f) && !strncmp(line, "cpu", 3)) {
		char *values = strchr(line, ' ');

		if (line[3] != ' ') {
			c->cpus++;
			continue;
		}
		if (sscanf(values,
			   "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64
			   "%" SCNu64 "%" SCNu64,
			   v, v + 1, v + 2, v + 3, v + 4, v + 5, v + 6, v + 7) != 8) {
			fclose(f);
			return -EPROTO;
		}
		c->idle = (int64_t)(v[3] + v[4] + v[7]) * tick_ns();
		c->softirq = (int64_t)v[6] * tick_ns();
	}
	fclose(f);
	return c->cpus ? 0 : -EPROTO;
}

/*
 * CPU time of a process and of its ended children, ns; 0 for kernel threads and processes that are
 * gone. The process's own time by its clock, since ticks are coarse and there are many processes.
 */
static int64_t process_time(const char *pid)
{
	char path[64], line[1024], *rest;
	int64_t ended_user, ended_system;
	unsigned flags;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	rest = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	fclose(f);
	if (!rest ||
	    sscanf(rest,
		   ") %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %" SCNd64 " %" SCNd64,
		   &flags, &ended_user, &ended_system) != 3 ||
	    flags & PF_KTHREAD)
		return 0;
	return cputime_process((pid_t)atoi(pid)) + (ended_user + ended_system) * tick_ns();
}

static bool is_ours(pid_t pid, const pid_t *ours, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (ours[i] == pid)
			return true;
	}
	return false;
}

/*
 * A process that starts and ends in between is found in its parent's ended children, and what a
 * child had before the begin is in the sums of both moments.
 */
static int others_read(int64_t *out, const pid_t *ours, unsigned n)
{
	struct dirent *entry;
	int64_t sum = 0;
	DIR *proc = opendir("/proc");

	if (!proc)
		return -errno;
	while ((entry = readdir(proc))) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    !is_ours((pid_t)atoi(entry->d_name), ours, n))
			sum += process_time(entry->d_name);
	}
	closedir(proc);
	*out = sum;
	return 0;
}

int cputime_begin(struct cputime *c, const pid_t *ours, unsigned n)
{
	int ret = others_read(&c->others, ours, n);

	if (!ret)
		ret = system_read(c);
	c->when = clock_now();
	return ret;
}

int cputime_end(const struct cputime *begin, const pid_t *ours, unsigned n,
		struct cputime_span *out)
{
	struct cputime end = {.when = clock_now()};
	int ret = system_read(&end);

	if (!ret)
		ret = others_read(&end.others, ours, n);
	if (ret)
		return ret;
	out->duration = end.when - begin->when;
	out->busy = out->duration * end.cpus - (end.idle - begin->idle);
	out->softirq = end.softirq - begin->softirq;
	out->others = end.others - begin->others;
	if (out->others < 0) /* one whose parent does not wait for it took its time along */
		out->others = 0;
	/* One that ends between our reading it and its parent is in both, with its whole life. */
	if (out->others > out->duration * end.cpus)
		out->others = out->duration * end.cpus;
	out->cost = out->busy > out->others ? out->busy - out->others : 0;
	return 0;
}

int64_t cputime_process(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_read(clock);
}

/* The clock of a thread by its id: not in the C library, but the kernel's documented encoding. */
int64_t cputime_thread(pid_t thread)
{
	return clock_read((clockid_t)(~(unsigned)thread << 3 | THREAD_CLOCK));
}

unsigned cputime_threads_find(const char *prefix, pid_t *pids, unsigned max)
{
	char path[64], name[64];
	struct dirent *entry;
	unsigned n = 0;
	DIR *proc = opendir("/proc");

	while (proc && n < max && (entry = readdir(proc))) {
		FILE *f;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strncmp(name, prefix, strlen(prefix)))
			pids[n++] = (pid_t)atoi(entry->d_name);
		fclose(f);
	}
	if (proc)
		closedir(proc);
	return n;
}

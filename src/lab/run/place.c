/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/run/place.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lab/cputime.h"

enum { NAPI_THREADS_MAX = 128 };

/* The kernel's; glibc of Debian 12 has no function and no type for it. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* What threads of the kernel were like. */
static struct place_kept {
	pid_t tid;
	cpu_set_t cpus;
	struct attributes attributes;
} * kept;
static unsigned kept_threads;

static int attributes_get(pid_t tid, struct attributes *out)
{
	*out = (struct attributes){.size = sizeof(*out)};
	return syscall(SYS_sched_getattr, tid, out, sizeof(*out), 0) ? -errno : 0;
}

static int attributes_set(pid_t tid, const struct attributes *attributes)
{
	return syscall(SYS_sched_setattr, tid, attributes, 0) ? -errno : 0;
}

static int cpus_set(pid_t tid, const struct cpuset *cpus, struct error *err)
{
	char asked[128], there[128];
	struct cpuset seen = {0};
	cpu_set_t set;
	int rc;

	CPU_ZERO(&set);
	for (unsigned cpu = cpuset_next(cpus, 0); cpu < CPU_MAX; cpu = cpuset_next(cpus, cpu + 1))
		CPU_SET(cpu, &set);
	cpuset_format(cpus, asked, sizeof(asked));
	if (sched_setaffinity(tid, sizeof(set), &set)) {
		rc = -errno;
		return error_set(err, rc, "thread %d: CPUs %s: %s%s", tid, asked, strerror(-rc),
				 rc == -EINVAL
					 ? " (the machine has none of them, or it may not run "
					   "there)"
					 : "");
	}
	if (sched_getaffinity(tid, sizeof(set), &set))
		return error_set(err, -errno, "thread %d: %s", tid, strerror(errno));
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpuset_add(&seen, cpu);
	if (!memcmp(&seen, cpus, sizeof(seen)))
		return 0;
	cpuset_format(&seen, there, sizeof(there));
	return error_set(err, -EIO, "thread %d: CPUs %s were set, %s are read back", tid, asked,
			 there);
}

static int class_set(pid_t tid, const struct spec_placement *placement, struct error *err)
{
	bool fifo = placement->scheduling == RUNNER_FIFO;
	struct attributes attributes = {
		.size = sizeof(attributes),
		.policy = fifo ? SCHED_FIFO : SCHED_OTHER,
		.nice = fifo ? 0 : placement->nice,
		.priority = fifo ? (uint32_t)placement->priority : 0,
	};
	int rc = attributes_set(tid, &attributes);

	if (!rc)
		return 0;
	if (fifo)
		return error_set(err, rc, "thread %d: class fifo, priority %d: %s%s", tid,
				 placement->priority, strerror(-rc),
				 rc == -EPERM ? " (needs CAP_SYS_NICE or RLIMIT_RTPRIO)" : "");
	return error_set(err, rc, "thread %d: nice %d: %s%s", tid, placement->nice, strerror(-rc),
			 rc == -EPERM || rc == -EACCES ? " (needs CAP_SYS_NICE or RLIMIT_NICE)"
						       : "");
}

int place_thread(pid_t tid, const struct spec_placement *placement, struct error *err)
{
	int rc = cpuset_empty(&placement->cpus) ? 0 : cpus_set(tid, &placement->cpus, err);

	return rc || !placement->placed ? rc : class_set(tid, placement, err);
}

/* The first time only: what we have set is not what it was. */
static int thread_keep(pid_t tid, struct error *err)
{
	struct place_kept *more, now = {.tid = tid};

	for (unsigned i = 0; i < kept_threads; i++)
		if (kept[i].tid == tid)
			return 0;
	if (sched_getaffinity(tid, sizeof(now.cpus), &now.cpus) ||
	    attributes_get(tid, &now.attributes))
		return error_set(err, -errno, "thread %d: %s", tid, strerror(errno));
	more = realloc(kept, (kept_threads + 1) * sizeof(*kept));
	if (!more)
		return error_set(err, -ENOMEM, "no memory");
	kept = more;
	kept[kept_threads++] = now;
	return 0;
}

int place_kernel_napi(const char *interface, const struct spec_placement *placement,
		      struct error *err)
{
	pid_t tids[NAPI_THREADS_MAX];
	unsigned n, placed = 0;
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "napi/%.15s-", interface);
	n = cputime_threads_find(prefix, tids, NAPI_THREADS_MAX);
	for (unsigned i = 0; i < n; i++) {
		struct error why;
		int rc = thread_keep(tids[i], &why);

		if (!rc)
			rc = place_thread(tids[i], placement, &why);
		/* One that was stopped a moment ago is listed until it is gone. */
		if (rc && rc != -ESRCH)
			return error_set(err, rc, "%s", why.text);
		placed += !rc;
	}
	if (!placed)
		return error_set(err, -ENOENT,
				 "%s: no thread of the kernel polls it (threaded=on, and it has to "
				 "have a NAPI)",
				 interface);
	return 0;
}

int place_restore(struct error *err)
{
	int failed = 0;

	while (kept_threads) {
		struct place_kept *k = &kept[--kept_threads];
		int rc = sched_setaffinity(k->tid, sizeof(k->cpus), &k->cpus) ? -errno : 0;

		if (!rc)
			rc = attributes_set(k->tid, &k->attributes);
		if (rc && rc != -ESRCH && !failed)
			failed = error_set(err, rc, "thread %d: back as it was: %s", k->tid,
					   strerror(-rc));
	}
	free(kept);
	kept = NULL;
	return failed;
}

int place_interrupts(struct knobs *knobs, int netns, const char *interface,
		     const struct cpuset *cpus, bool *by_rps, struct error *err)
{
	char list[256];
	int rc;

	*by_rps = false;
	if (cpuset_format(cpus, list, sizeof(list)) >= (int)sizeof(list))
		return error_set(err, -E2BIG, "%s: that many ranges of CPUs are too many",
				 interface);
	rc = knob_set(knobs, netns, interface, "irq_cpus", list, NULL, err);
	if (rc != -EOPNOTSUPP)
		return rc;
	*by_rps = true;
	return knob_set(knobs, netns, interface, "rps_cpus", list[0] ? list : "none", NULL, err);
}

/* Fields of /proc/TID/stat by their numbers in proc(5), after the name, which may have spaces. */
static bool stat_read(pid_t tid, long long *nice, long long *cpu, long long *priority,
		      long long *policy)
{
	char path[32], line[1024], *at;
	FILE *file;
	bool got;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fgets(line, sizeof(line), file);
	fclose(file);
	at = got ? strrchr(line, ')') : NULL;
	for (int field = 2; at && field <= 41; field++) {
		long long value = strtoll(at + 1, NULL, 10);

		if (field == 19)
			*nice = value;
		else if (field == 39)
			*cpu = value;
		else if (field == 40)
			*priority = value;
		else if (field == 41)
			*policy = value;
		at = strchr(at + 1, ' ');
	}
	return at;
}

static const char *policy_name(long long policy)
{
	static const char *const names[] = {"fair", "fifo", "rr",      "batch",
					    NULL,   "idle", "deadline"};

	if (policy < 0 || policy >= (long long)(sizeof(names) / sizeof(*names)) || !names[policy])
		return "other";
	return names[policy];
}

json_t *place_observe(pid_t tid)
{
	long long nice = 0, cpu = 0, priority = 0, policy = 0;
	char path[32], name[64] = "", list[512];
	struct cpuset cpus = {0};
	cpu_set_t set;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	file = fopen(path, "re");
	if (!file)
		return NULL;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
	if (!stat_read(tid, &nice, &cpu, &priority, &policy) ||
	    sched_getaffinity(tid, sizeof(set), &set))
		return NULL;
	for (unsigned c = 0; c < CPU_MAX; c++)
		if (CPU_ISSET(c, &set))
			cpuset_add(&cpus, c);
	cpuset_format(&cpus, list, sizeof(list));
	return json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:I}", "name", name, "tid", tid, "cpus",
			 list, "class", policy_name(policy), "nice", (json_int_t)nice, "priority",
			 (json_int_t)priority, "cpu", (json_int_t)cpu);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "machine/host.h"

_Static_assert(CPU_MAX == CPU_SETSIZE, "one bit a CPU in both");

int host_cpus_read(pid_t tid, struct cpuset *out)
{
	cpu_set_t set;

	if (sched_getaffinity(tid, sizeof(set), &set))
		return -errno;
	*out = (struct cpuset){0};
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpuset_add(out, cpu);
	}
	return 0;
}

static int cpus_write(pid_t tid, const struct cpuset *cpus)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (unsigned cpu = cpuset_next(cpus, 0); cpu < CPU_MAX; cpu = cpuset_next(cpus, cpu + 1))
		CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof(set), &set) ? -errno : 0;
}

void host_cpus(struct machine *m, struct cpuset *out)
{
	*out = host_of(m)->cpus;
}

/* The kernel silently leaves out CPUs that are not there, unless all of them are not; we do not. */
static int affinity_set(struct host_runner *r, pid_t tid, const struct cpuset *asked,
			const struct cpuset *before, struct error *err)
{
	const struct cpuset *cpus = cpuset_empty(asked) ? &host_of(r->base.machine)->cpus : asked;
	struct cpuset after = {0};
	int rc = cpus_write(tid, cpus);

	if (!rc)
		rc = host_cpus_read(tid, &after);
	if (rc && rc != -EINVAL)
		return error_set(err, rc, "%s: cannot set its CPU affinity: %s", r->base.name,
				 strerror(-rc));
	if (!rc && cpuset_empty(asked))
		return 0;
	for (unsigned cpu = cpuset_next(cpus, 0); cpu < CPU_MAX; cpu = cpuset_next(cpus, cpu + 1)) {
		if (cpuset_has(&after, cpu))
			continue;
		cpus_write(tid, before);
		return error_set(err, -EINVAL,
				 "%s: CPU %u is absent, offline or outside this process's cpuset; "
				 "choose another",
				 r->base.name, cpu);
	}
	return 0;
}

static int fifo_set(struct host_runner *r, pid_t tid, int level, struct error *err)
{
	struct sched_param param = {.sched_priority = level};

	if (level < 1 || level > 99)
		return error_set(err, -EINVAL, "%s: FIFO priority %d is not in 1..99", r->base.name,
				 level);
	if (!sched_setscheduler(tid, SCHED_FIFO, &param))
		return 0;
	return error_set(
		err, -errno,
		"%s: SCHED_FIFO needs CAP_SYS_NICE (or an rtprio limit of %d); run as root "
		"or set its class to fair",
		r->base.name, level);
}

static int fair_set(struct host_runner *r, pid_t tid, int level, struct error *err)
{
	struct sched_param param = {.sched_priority = 0};

	if (level < -20 || level > 19)
		return error_set(err, -EINVAL, "%s: nice %d is not in -20..19", r->base.name,
				 level);
	/* nice first: it is kept by a FIFO thread too, and then both or none have changed. */
	if (setpriority(PRIO_PROCESS, (id_t)tid, level))
		return error_set(err, errno == EACCES ? -EPERM : -errno,
				 "%s: nice %d needs CAP_SYS_NICE (or a nice limit of %d); run as "
				 "root or ask for %d or more",
				 r->base.name, level, 20 - level,
				 getpriority(PRIO_PROCESS, (id_t)tid));
	if (sched_setscheduler(tid, SCHED_OTHER, &param))
		return error_set(err, -errno, "%s: cannot leave SCHED_FIFO: %s", r->base.name,
				 strerror(errno));
	return 0;
}

int host_place(struct host_runner *r, pid_t tid, const struct placement *placement,
	       struct error *err)
{
	struct cpuset before;
	int rc = host_cpus_read(tid, &before);

	if (rc)
		return error_set(err, rc, "%s: cannot read its CPU affinity: %s", r->base.name,
				 strerror(-rc));
	rc = affinity_set(r, tid, &placement->cpus, &before, err);
	if (rc)
		return rc;
	rc = placement->class == RUNNER_FIFO ? fifo_set(r, tid, placement->level, err)
					     : fair_set(r, tid, placement->level, err);
	if (rc) {
		cpus_write(tid, &before);
		return rc;
	}
	r->placement = *placement;
	atomic_store_explicit(&r->fifo, placement->class == RUNNER_FIFO, memory_order_relaxed);
	return 0;
}

int host_runner_place(struct runner *runner, const struct placement *placement)
{
	struct host_runner *r = host_runner_of(runner);
	pid_t tid = atomic_load(&r->tid);

	return tid ? host_place(r, tid, placement, NULL) : -ESRCH;
}

/* Field 39 of the thread's stat; the name in field 2 may hold anything but ends at the last ). */
static int cpu_read(pid_t tid, unsigned *out)
{
	char path[64], text[1024], *at;
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %u", out) == 1 ? 0 : -EIO;
}

static void placement_read(pid_t tid, struct placement *out)
{
	int policy = sched_getscheduler(tid);

	host_cpus_read(tid, &out->cpus);
	if (policy == SCHED_FIFO || policy == SCHED_RR) {
		struct sched_param param = {0};

		sched_getparam(tid, &param);
		out->class = RUNNER_FIFO;
		out->level = param.sched_priority;
	} else {
		out->class = RUNNER_FAIR;
		out->level = getpriority(PRIO_PROCESS, (id_t)tid);
	}
}

void host_runner_observe(struct runner *runner, struct runner_observation *out)
{
	struct host_runner *r = host_runner_of(runner);
	struct timespec used;
	clockid_t clock;
	uint64_t signals;

	*out = (struct runner_observation){.tid = atomic_load(&r->tid)};
	if (out->tid) {
		placement_read(out->tid, &out->placement);
		signals = atomic_load(&r->signal);
		out->waiting = signals == SIGNAL_SLEEPING || signals == SIGNAL_DOZING;
		if (!cpu_read(out->tid, &out->cpu) && !pthread_getcpuclockid(r->thread, &clock) &&
		    !clock_gettime(clock, &used)) {
			out->cpu_time = used.tv_sec * NSEC_PER_SEC + used.tv_nsec;
			return;
		}
	}
	/* It has ended, perhaps just now. */
	out->tid = 0;
	out->placement = r->placement;
	out->waiting = true;
	out->cpu = atomic_load(&r->cpu);
	out->cpu_time = atomic_load(&r->cpu_time);
}

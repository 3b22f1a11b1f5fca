/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/measure/moment.h"

enum { TRIES = 10 };

int moment_init(struct moment *moment)
{
	memset(moment, 0, sizeof(*moment));
	moment->task = calloc(MOMENT_TASKS_MAX, sizeof(*moment->task));
	moment->listed = calloc(MOMENT_TASKS_MAX, sizeof(*moment->listed));
	moment->all = calloc(MOMENT_ALL_MAX, sizeof(*moment->all));
	return moment->task && moment->listed && moment->all ? 0 : -ENOMEM;
}

void moment_free(struct moment *moment)
{
	free(moment->all);
	free(moment->listed);
	free(moment->task);
	free(moment->back);
}

static int ascending(const void *a, const void *b)
{
	const struct moment_task *x = a, *y = b;

	return (x->task.thread > y->task.thread) - (x->task.thread < y->task.thread);
}

const struct moment_task *moment_find(const struct moment *moment, pid_t thread)
{
	struct moment_task wanted = {.task.thread = thread};

	return bsearch(&wanted, moment->task, moment->tasks, sizeof(wanted), ascending);
}

static void process_add(struct moment *moment, pid_t process, unsigned party)
{
	for (unsigned i = 0; i < moment->processes; i++) {
		struct moment_process *p = &moment->process[i];

		if (p->process != process)
			continue;
		if (p->party == PARTY_NONE)
			p->party = party;
		return;
	}
	if (process > 0 && moment->processes < MOMENT_PROCESSES_MAX)
		moment->process[moment->processes++] =
			(struct moment_process){.process = process, .party = party, .ended = -1};
}

static void processes_list(const struct moment_site *site, struct moment *moment)
{
	moment->processes = 0;
	moment->alls = task_processes(moment->all, MOMENT_ALL_MAX);
	process_add(moment, getpid(), PARTY_NONE);
	for (unsigned i = 0; i < site->config->parties; i++) {
		const struct usage_party *party = &site->config->party[i];
		pid_t family[MOMENT_PROCESSES_MAX] = {party->pid};
		unsigned n = 1;

		for (unsigned t = 0; t < party->tids && !party->pid; t++)
			process_add(moment, site->party_process[i][t], PARTY_NONE);
		if (!party->pid)
			continue;
		if (party->pid != getpid())
			n = task_descendants(moment->all, moment->alls, family, 1,
					     MOMENT_PROCESSES_MAX);
		for (unsigned p = 0; p < n; p++)
			process_add(moment, family[p], i);
	}
}

static unsigned party_of(const struct usage_config *config, pid_t thread, unsigned otherwise)
{
	for (unsigned i = 0; i < config->parties; i++) {
		const struct usage_party *party = &config->party[i];

		for (unsigned t = 0; t < party->tids && !party->pid; t++)
			if (party->tid[t] == thread)
				return i;
	}
	return otherwise;
}

/* Unless it is among the first `known` ones, which are sorted. */
static void task_add(struct moment *moment, pid_t process, pid_t thread, unsigned party)
{
	struct moment_task task = {
		.task = {.process = process, .thread = thread},
		.party = party,
	};

	if (bsearch(&task, moment->task, moment->known, sizeof(task), ascending))
		return;
	if (moment->tasks == MOMENT_TASKS_MAX)
		moment->missed++;
	else
		moment->task[moment->tasks++] = task;
}

/* The kernel's threads that work for packets. */
static bool is_ours(const struct usage_config *config, const char *name)
{
	char prefix[32];

	if (!strncmp(name, "ksoftirqd/", 10) || !strncmp(name, "backlog_napi/", 13))
		return true;
	for (unsigned i = 0; i < config->interfaces; i++) {
		snprintf(prefix, sizeof(prefix), "napi/%.15s-", config->interface[i]);
		if (!strncmp(name, prefix, strlen(prefix)))
			return true;
	}
	return false;
}

static void kernel_threads_list(const struct moment_site *site, struct moment *moment)
{
	for (unsigned i = 0; i < moment->alls; i++) {
		const struct task_process *p = &moment->all[i];

		if (p->kernel && is_ours(site->config, p->name))
			task_add(moment, p->process, p->process, PARTY_KERNEL);
	}
}

/* Those that are not in it yet, at its end; not sorted. */
static void tasks_list(const struct moment_site *site, struct moment *moment)
{
	static const unsigned max = MOMENT_TASKS_MAX;

	moment->missed = 0;
	for (unsigned i = 0; i < moment->processes; i++) {
		const struct moment_process *p = &moment->process[i];
		unsigned n = task_list(p->process, moment->listed, max);

		for (unsigned t = 0; t < n && t < max; t++)
			task_add(moment, p->process, moment->listed[t],
				 party_of(site->config, moment->listed[t], p->party));
		moment->missed += n > max ? n - max : 0;
	}
	kernel_threads_list(site, moment);
}

/*
 * Its clock and what is on its back, as of one moment: else a softirq that passes in between is in
 * one and not in the other. -1: it has ended.
 */
static void time_read(const struct napi_watch *watch, struct moment_task *t)
{
	pid_t thread = t->task.thread;

	for (unsigned i = 0; i < TRIES; i++) {
		t->back = watch ? napi_watch_back(watch, thread) : 0;
		t->ns = task_time(t->task.process, thread, false);
		if (!watch || t->ns < 0 || napi_watch_back(watch, thread) == t->back)
			break;
	}
}

/* What was listed but had ended is dropped; the rest is sorted, and known. */
static void tasks_settle(struct moment *moment)
{
	unsigned n = 0;

	for (unsigned i = 0; i < moment->tasks; i++)
		if (moment->task[i].ns >= 0)
			moment->task[n++] = moment->task[i];
	moment->tasks = moment->known = n;
	qsort(moment->task, n, sizeof(*moment->task), ascending);
}

static void times_read(const struct moment_site *site, struct moment *moment)
{
	moment->when = clock_now();
	moment->softirq = site->watch ? napi_watch_softirq(site->watch) : 0;
	for (unsigned i = 0; i < moment->tasks; i++)
		time_read(site->watch, &moment->task[i]);
	for (unsigned i = 0; i <= site->config->interfaces && site->watch; i++)
		napi_watch_read(site->watch,
				i < site->config->interfaces ? site->config->interface[i] : "",
				&moment->watched[i]);
	tasks_settle(moment);
}

/* Those that have begun since they were listed: what they have, they had in the window. */
static void begun_read(const struct moment_site *site, struct moment *moment)
{
	unsigned known = moment->tasks;

	processes_list(site, moment);
	tasks_list(site, moment);
	for (unsigned i = known; i < moment->tasks; i++)
		time_read(site->watch, &moment->task[i]);
	tasks_settle(moment);
}

/* One that has ended since its time was read keeps that, with nothing else known. */
static void tasks_read(struct moment *moment)
{
	for (unsigned i = 0; i < moment->tasks; i++)
		task_read(moment->task[i].task.process, moment->task[i].task.thread,
			  &moment->task[i].task);
}

/* Of those that live, as the process's clock counts them. False: one has ended meanwhile. */
static bool living_read(pid_t process, pid_t *listed, int64_t *sum)
{
	unsigned n = task_list(process, listed, MOMENT_TASKS_MAX);

	*sum = 0;
	for (unsigned i = 0; i < n && i < MOMENT_TASKS_MAX; i++) {
		int64_t ns = task_time(process, listed[i], true);

		if (ns < 0)
			return false;
		*sum += ns;
	}
	return n > 0 && n <= MOMENT_TASKS_MAX;
}

/*
 * A process's clock has what its ended threads had; nothing else tells. When it stands still while
 * the living are summed up, the difference is exact.
 */
static void ended_read(struct moment_process *p, pid_t *listed)
{
	p->ended = -1;
	p->slack = INT64_MAX;
	for (unsigned i = 0; i < TRIES && p->slack; i++) {
		int64_t before = cputime_process(p->process), living, slack;
		bool all = living_read(p->process, listed, &living);

		slack = cputime_process(p->process) - before;
		if (!all || slack < 0 || slack >= p->slack)
			continue;
		p->slack = slack;
		p->ended = before > living ? before - living : 0;
	}
}

static void stacks_read(const struct usage_config *config, struct moment *moment)
{
	for (unsigned i = 0; i < config->parties; i++) {
		moment->stack[i] = (struct stack_counts){0};
		for (unsigned t = 0; t < moment->tasks; t++) {
			const struct moment_task *task = &moment->task[t];

			if (task->party == i &&
			    stack_read(task->task.process, task->task.thread, &moment->stack[i]))
				break;
		}
	}
}

/* CPUs that are online, one a line: "cpu0 user nice system idle iowait irq softirq steal ...". */
static void idle_read(struct moment *moment)
{
	FILE *f = fopen("/proc/stat", "re");
	int64_t tick = 1000000000 / sysconf(_SC_CLK_TCK), idle, wait, steal;
	char line[512];
	unsigned cpu;

	moment->cpus = 0;
	memset(moment->idle, -1, sizeof(moment->idle));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "cpu%u %*d %*d %*d %" SCNd64 " %" SCNd64 " %*d %*d %" SCNd64, &cpu,
			   &idle, &wait, &steal) != 4 ||
		    cpu >= MOMENT_CPUS_MAX)
			continue;
		moment->idle[cpu] = (idle + wait + steal) * tick;
		if (cpu >= moment->cpus)
			moment->cpus = cpu + 1;
	}
	if (f)
		fclose(f);
}

static void processes_read(struct moment *moment)
{
	for (unsigned i = 0; i < moment->processes; i++)
		ended_read(&moment->process[i], moment->listed);
}

static void backs_read(const struct moment_site *site, struct moment *moment)
{
	free(moment->back);
	moment->back = NULL;
	moment->backs = 0;
	moment->backs_known =
		site->watch && !napi_watch_backs(site->watch, &moment->back, &moment->backs);
}

/* Processes whose time is somebody's here; the rest are others. */
static unsigned ours_list(const struct moment *moment, pid_t ours[MOMENT_PROCESSES_MAX])
{
	for (unsigned i = 0; i < moment->processes; i++)
		ours[i] = moment->process[i].process;
	return moment->processes;
}

void moment_begin(const struct moment_site *site, struct moment *moment)
{
	pid_t ours[MOMENT_PROCESSES_MAX];
	unsigned n;

	moment->tasks = moment->known = 0;
	processes_list(site, moment);
	tasks_list(site, moment);
	tasks_read(moment);
	stacks_read(site->config, moment);
	processes_read(moment);
	n = ours_list(moment, ours);
	moment->others_when = clock_now();
	moment->cputime_known = !cputime_begin(&moment->cputime, ours, n);
	backs_read(site, moment);
	idle_read(moment);
	times_read(site, moment);
}

void moment_end(const struct moment_site *site, const struct moment *begin, struct moment *moment)
{
	pid_t ours[MOMENT_PROCESSES_MAX];
	unsigned n;

	/* Those of the begin first: to find new ones takes a while. */
	moment->tasks = moment->known = begin->tasks;
	memcpy(moment->task, begin->task, begin->tasks * sizeof(*begin->task));
	times_read(site, moment);
	idle_read(moment);
	begun_read(site, moment);
	backs_read(site, moment);
	n = ours_list(moment, ours);
	moment->others_when = clock_now();
	moment->cputime_known =
		begin->cputime_known && !cputime_end(&begin->cputime, ours, n, &moment->span);
	processes_read(moment);
	stacks_read(site->config, moment);
	tasks_read(moment);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <napier/machine.h>

#include <sim/crew.h>

enum { IDLE, RUNNING };

/* One process. Written by it, read by the parent, the totals only when it has ended. */
struct crew_member {
	pid_t pid;
	_Atomic uint32_t state;
	_Atomic uint64_t seed; /* with RUNNING */
	struct crew_totals totals;
};

/* In memory that all of them share. */
struct crew {
	_Atomic uint64_t next, done;
	_Atomic uint32_t failures;
	struct crew_failure failure[CREW_FAILURES_MAX];
	struct crew_member member[CREW_JOBS_MAX];
};

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void fail(struct crew *crew, uint64_t seed, const char *text)
{
	uint32_t i = atomic_fetch_add(&crew->failures, 1);

	if (i >= CREW_FAILURES_MAX)
		return;
	crew->failure[i].seed = seed;
	snprintf(crew->failure[i].text, sizeof(crew->failure[i].text), "%s", text);
}

/* The process's own: it has said what became of the seed. */
static void fail_mine(struct crew *crew, struct crew_member *member, uint64_t seed,
		      const char *text)
{
	fail(crew, seed, text);
	atomic_store(&member->state, IDLE);
}

static void totals_add(struct crew_totals *t, const struct sim_result *r)
{
	t->seeds++;
	t->events += r->events;
	t->steps += r->steps;
	t->polls += r->polls;
	t->arrived += r->arrived;
	t->out += r->out;
	t->operations += r->operations;
	t->switches += r->switches;
	t->virtual_ns += r->virtual_ns;
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		t->faults[i] += r->faults[i];
}

static void totals_sum(struct crew_totals *t, const struct crew_totals *of)
{
	t->seeds += of->seeds;
	t->twice += of->twice;
	t->events += of->events;
	t->steps += of->steps;
	t->polls += of->polls;
	t->arrived += of->arrived;
	t->out += of->out;
	t->operations += of->operations;
	t->switches += of->switches;
	t->virtual_ns += of->virtual_ns;
	for (unsigned i = 0; i < SIM_FAULTS; i++)
		t->faults[i] += of->faults[i];
}

/* A signal ends a process that goes beyond. */
static void seed_limit(void)
{
	const struct itimerval cpu = {.it_value.tv_sec = CREW_SEED_SECONDS};

	setitimer(ITIMER_PROF, &cpu, NULL);
	alarm(10 * CREW_SEED_SECONDS);
}

/* False: it failed, and this process is not to be used any more. */
static bool seed_run(const struct crew_config *config, struct crew *crew,
		     struct crew_member *member, uint64_t seed)
{
	struct sim_result result, again;
	char text[256];

	atomic_store(&member->seed, seed);
	atomic_store(&member->state, RUNNING);
	seed_limit();
	if (!sim_run(seed, &config->sim, &result)) {
		fail_mine(crew, member, seed, result.failure);
		return false;
	}
	totals_add(&member->totals, &result);
	if (seed % CREW_TWICE == 0) {
		member->totals.twice++;
		if (!sim_run(seed, &config->sim, &again) || again.hash != result.hash) {
			snprintf(text, sizeof(text), "does not repeat: hash %016lx, then %016lx",
				 (unsigned long)result.hash, (unsigned long)again.hash);
			fail_mine(crew, member, seed, text);
			return false;
		}
	}
	atomic_store(&member->state, IDLE);
	atomic_fetch_add(&crew->done, 1);
	return true;
}

static void member_main(const struct crew_config *config, struct crew *crew,
			struct crew_member *member)
{
	uint64_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGINT, SIG_IGN); /* the parent's to handle */
	signal(SIGTERM, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	signal(SIGPROF, SIG_DFL);
	while ((i = atomic_fetch_add(&crew->next, 1)) < config->count)
		if (!seed_run(config, crew, member, config->first + i))
			_exit(1);
	_exit(0);
}

static int member_start(const struct crew_config *config, struct crew *crew,
			struct crew_member *member)
{
	pid_t pid;

	atomic_store(&member->state, IDLE);
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		member_main(config, crew, member);
	member->pid = pid;
	return 0;
}

static bool more(const struct crew_config *config, struct crew *crew)
{
	uint32_t max = config->failures_max ? config->failures_max : CREW_FAILURES_MAX;

	return atomic_load(&crew->next) < config->count && atomic_load(&crew->failures) < max;
}

/* It has ended, so: by itself, after a failing seed, or in the middle of one, as a sanitizer does.
 */
static int member_end(const struct crew_config *config, struct crew *crew,
		      struct crew_member *member, int status)
{
	char text[128];

	member->pid = 0;
	if (atomic_load(&member->state) == RUNNING) {
		if (WIFEXITED(status))
			snprintf(text, sizeof(text), "ends its process: exit status %d",
				 WEXITSTATUS(status));
		else if (WTERMSIG(status) == SIGPROF)
			snprintf(text, sizeof(text), "does not end in %d s of CPU time",
				 CREW_SEED_SECONDS);
		else if (WTERMSIG(status) == SIGALRM)
			snprintf(text, sizeof(text), "stands still: does not end in %d s",
				 10 * CREW_SEED_SECONDS);
		else
			snprintf(text, sizeof(text), "crashes: %s", strsignal(WTERMSIG(status)));
		fail(crew, atomic_load(&member->seed), text);
	}
	return more(config, crew) ? member_start(config, crew, member) : 0;
}

static void members_kill(struct crew *crew)
{
	for (unsigned i = 0; i < CREW_JOBS_MAX; i++) {
		if (!crew->member[i].pid)
			continue;
		kill(crew->member[i].pid, SIGKILL);
		waitpid(crew->member[i].pid, NULL, 0);
		crew->member[i].pid = 0;
	}
}

/* Looks after them until none is left. */
static int crew_attend(const struct crew_config *config, struct crew *crew, bool *stopped)
{
	for (;;) {
		bool alive = false;

		for (unsigned i = 0; i < CREW_JOBS_MAX; i++) {
			struct crew_member *member = &crew->member[i];
			int status, rc = 0;

			if (member->pid && waitpid(member->pid, &status, WNOHANG) == member->pid)
				rc = member_end(config, crew, member, status);
			if (rc)
				return rc;
			alive |= member->pid != 0;
		}
		if (!alive)
			return 0;
		if (!more(config, crew) && atomic_load(&crew->failures))
			*stopped = atomic_load(&crew->next) < config->count;
		if (*stopped ||
		    (config->watch && config->watch(config->watch_arg, atomic_load(&crew->done)))) {
			*stopped = true;
			return 0;
		}
		usleep(20000);
	}
}

static int failure_order(const void *a, const void *b)
{
	const struct crew_failure *x = a, *y = b;

	return (x->seed > y->seed) - (x->seed < y->seed);
}

static unsigned jobs_default(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

static int64_t children_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * NSEC_PER_USEC;
}

int crew_run(const struct crew_config *config, struct crew_result *result, struct error *err)
{
	unsigned jobs = config->jobs ? config->jobs : jobs_default();
	int64_t began = now(), cpu = children_cpu();
	struct crew *crew;
	int rc = 0;

	memset(result, 0, sizeof(*result));
	crew = mmap(NULL, sizeof(*crew), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crew == MAP_FAILED)
		return error_set(err, -ENOMEM, "no memory for the seeds' results");
	if (jobs > CREW_JOBS_MAX)
		jobs = CREW_JOBS_MAX;
	for (unsigned i = 0; !rc && i < jobs && i < config->count; i++)
		rc = member_start(config, crew, &crew->member[i]);
	if (!rc)
		rc = crew_attend(config, crew, &result->stopped);
	members_kill(crew);
	for (unsigned i = 0; i < jobs; i++)
		totals_sum(&result->totals, &crew->member[i].totals);
	result->failures = atomic_load(&crew->failures);
	if (result->failures > CREW_FAILURES_MAX)
		result->failures = CREW_FAILURES_MAX;
	memcpy(result->failure, crew->failure, sizeof(result->failure));
	qsort(result->failure, result->failures, sizeof(result->failure[0]), failure_order);
	result->wall_ns = now() - began;
	result->cpu_ns = children_cpu() - cpu;
	munmap(crew, sizeof(*crew));
	return rc ? error_set(err, rc, "a process cannot be made: %s", strerror(-rc)) : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the virtual machine is: events a second of CPU time, for the loads that tests put on
 * it. Each line is one load; the best of five runs, since nothing makes a run faster than it is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <napier/machine_virtual.h>

enum { RUNNERS_MAX = 512 };

struct load {
	const char *name;
	unsigned cpus, runners, jitter;
	struct step (*step)(void *arg);
};

struct member {
	struct machine *machine;
	struct runner *runner;
	struct member *next; /* in a ring */
	struct irq irq;
};

static struct step hog(void *arg)
{
	(void)arg;
	return STEP(STEP_AGAIN);
}

static struct step yielder(void *arg)
{
	(void)arg;
	return STEP(STEP_YIELD);
}

static struct step ring(void *arg)
{
	struct member *m = arg;

	runner_wake(m->next->runner);
	return STEP(STEP_WAIT);
}

static struct step sleeper(void *arg)
{
	struct member *m = arg;

	return STEP_UNTIL(machine_now(m->machine) + 10000);
}

static void interrupt(struct irq *irq)
{
	(void)irq;
}

static struct step interrupted(void *arg)
{
	struct member *m = arg;

	irq_arm(&m->irq, machine_now(m->machine) + 10000);
	return STEP(STEP_WAIT);
}

static const struct load loads[] = {
	{"hogs, one a CPU", 2, 2, 0, hog},
	{"the same with jitter", 2, 2, 20, hog},
	{"yielding, 4 on 2 CPUs", 2, 4, 20, yielder},
	{"wake ring of 8, 2 CPUs", 2, 8, 20, ring},
	{"timed waits, 8 on 2 CPUs", 2, 8, 20, sleeper},
	{"interrupts, 8 on 2 CPUs", 2, 8, 20, interrupted},
	{"hogs, 256 on 56 CPUs", 56, 256, 20, hog},
	{"timed waits, 256 on 56 CPUs", 56, 256, 20, sleeper},
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Events until 2 million have happened, a second; *ratio: virtual time by CPU time. */
static double load_run(const struct load *load, double *ratio)
{
	static struct member members[RUNNERS_MAX];
	struct virtual_config config = {
		.cpus = load->cpus, .jitter_percent = load->jitter, .seed = 1};
	struct virtual_stats stats;
	struct machine *m;
	double began, took;

	if (machine_virtual_create(&config, &m))
		abort();
	for (unsigned i = 0; i < load->runners; i++) {
		struct runner_config runner = {
			.name = "runner", .step = load->step, .arg = &members[i]};

		members[i] = (struct member){.machine = m, .irq = IRQ_INIT(-1, interrupt)};
		members[i].next = &members[(i + 1) % load->runners];
		if (runner_start(m, &runner, &members[i].runner, NULL) ||
		    irq_attach(&members[i].irq, members[i].runner))
			abort();
	}
	began = seconds();
	do {
		machine_virtual_run(m, machine_now(m) + NSEC_PER_MSEC);
		machine_virtual_stats(m, &stats);
	} while (stats.events < 2000000);
	took = seconds() - began;
	*ratio = (double)machine_now(m) / 1e9 / took;
	for (unsigned i = 0; i < load->runners; i++)
		runner_stop(members[i].runner);
	machine_destroy(m);
	return (double)stats.events / took;
}

int main(void)
{
	printf("%-30s %18s %22s\n", "load", "million events/s", "virtual s per CPU s");
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
		double best = 0, best_ratio = 0;

		for (int run = 0; run < 5; run++) {
			double ratio, rate = load_run(&loads[i], &ratio);

			if (rate > best) {
				best = rate;
				best_ratio = ratio;
			}
		}
		printf("%-30s %18.1f %22.3f\n", loads[i].name, best / 1e6, best_ratio);
	}
	return 0;
}

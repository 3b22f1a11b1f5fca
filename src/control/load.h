/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an engine in any process works, and on which CPUs: the difference of two samples of its
 * counters and of what the kernel says of its threads.
 *
 * The load of an engine CPU is the CPU time that the engine's threads had there, as a share of the
 * time between the samples, without what busy-poll spent on finding nothing.
 */
#ifndef CONTROL_LOAD_H
#define CONTROL_LOAD_H

#include <stdbool.h>

#include <napier/counters.h>
#include <napier/machine.h>

/* CPU time so far, and time that it could have run but waited for a CPU. */
struct thread_usage {
	int64_t cpu_ns, delay_ns;
	int cpu; /* where it ran last */
};

/* -ESRCH: there is no such thread. */
int thread_usage_read(int pid, int tid, struct thread_usage *out);

struct load_sample;

/* new sample, or -ENOMEM. `file` must be mapped when samples are compared, too. */
int load_sample_take(const struct counters_file *file, struct load_sample **out);
/* All that was since the engine started: thread times and counters of zero. */
int load_sample_zero(const struct counters_file *file, struct load_sample **out);
void load_sample_free(struct load_sample *sample);

struct load_cpu {
	unsigned cpu;
	double use;   /* of the engine's threads, a share of the time: 0..1 */
	double empty; /* busy-poll's polls that found nothing */
	double load;  /* without those */
	double own;   /* of that, by irq/N, ksoftirqd/N and busy/N, which goes where NAPIs go */
};

struct load_napi {
	const struct queue_record *record;
	unsigned cpu;	     /* of its softirq */
	uint32_t poller;     /* enum poller, observed */
	double load;	     /* in polls that found something, a share of the time */
	double idle;	     /* in polls that found nothing */
	double rate;	     /* packets a second */
	int64_t wake_ns;     /* mean of its wakes; 0: none */
	int64_t wake_p99_ns; /* see wake_percentile */
};

struct load {
	int64_t ns; /* between the samples */
	uint32_t cpus_n, napis_n;
	struct load_cpu *cpus;
	struct load_napi *napis;
	/* Over the engine CPUs: */
	unsigned most_cpu;
	double most, mean;
};

/* -ENOMEM. Records that are not in both, or begin anew, count from zero. */
int load_between(const struct load_sample *before, const struct load_sample *after,
		 struct load *out);
void load_free(struct load *load);

/* One CPU has at least this much, and this many times the mean: worth telling. */
#define LOAD_NOTABLE 0.1
#define LOAD_UNEVEN 1.5
bool load_uneven(const struct load *load);

#endif

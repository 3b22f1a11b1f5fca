/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <napier/napi.h>

#include <control/client.h>
#include <control/load.h>

struct sample_thread {
	int tid;
	bool own; /* of one engine CPU */
	struct thread_usage usage;
};

struct sample_napi {
	uint32_t in_use;
	uint32_t poller, cpu;
	uint64_t received, polls, poll_ns, empty_ns, wakes, wake_ns;
	uint64_t wake[WAKE_BUCKETS];
};

struct load_sample {
	const struct counters_file *file;
	int64_t time;
	uint32_t threads_n;
	struct sample_thread *threads;
	struct sample_napi *napis; /* file->queues */
};

static bool file_read(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file)
		return false;
	n = fread(text, 1, size - 1, file);
	fclose(file);
	text[n] = '\0';
	return n;
}

/* From field 39 of stat, and 14 and 15, in ticks, for a kernel without schedstat. */
int thread_usage_read(int pid, int tid, struct thread_usage *out)
{
	char path[64], text[1024], *at;
	long long user = 0, system = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (!file_read(path, text, sizeof(text)))
		return -ESRCH;
	at = strrchr(text, ')');
	*out = (struct thread_usage){.cpu = -1};
	for (int field = 2; at && field < 39; field++) {
		at = strchr(at + 1, ' ');
		if (at && field == 12)
			sscanf(at, " %*d %lld %lld", &user, &system);
	}
	if (at)
		out->cpu = atoi(at + 1);
	out->cpu_ns = (user + system) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	if (file_read(path, text, sizeof(text)) && sscanf(text, "%lld %lld", &user, &system) == 2) {
		out->cpu_ns = user;
		out->delay_ns = system;
	}
	return 0;
}

static void thread_add(struct load_sample *s, int tid, bool own)
{
	struct sample_thread *thread = &s->threads[s->threads_n];

	if (!tid || thread_usage_read(s->file->pid, tid, &thread->usage))
		return;
	thread->tid = tid;
	thread->own = own;
	s->threads_n++;
}

static void threads_read(struct load_sample *s)
{
	const struct counters_file *file = s->file;

	for (uint32_t i = 0; i < file->cpus; i++) {
		const struct cpu_record *r = counters_cpu_at(file, i);

		if (!r->in_use)
			continue;
		thread_add(s, r->irq_tid, true);
		thread_add(s, r->ksoftirqd_tid, true);
		thread_add(s, r->busy_tid, true);
	}
	for (uint32_t i = 0; i < COUNTERS_WORKERS; i++)
		thread_add(s, file->worker_tid[i], false);
	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);

		if (r->in_use)
			thread_add(s, r->tid, false);
	}
}

static void napi_read(struct sample_napi *napi, const struct queue_record *r)
{
	const struct napi_counters *c = &r->napi;

	napi->in_use = r->in_use;
	napi->poller = r->poller_observed;
	napi->cpu = r->cpu;
	napi->received = counter_read(&c->received);
	napi->polls = counter_read(&c->polls);
	napi->poll_ns = counter_read(&c->poll_ns);
	napi->empty_ns = counter_read(&c->empty_ns);
	napi->wakes = counter_read(&c->wakes);
	napi->wake_ns = counter_read(&c->wake_ns);
	for (int i = 0; i < WAKE_BUCKETS; i++)
		napi->wake[i] = counter_read(&c->wake[i]);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

int load_sample_zero(const struct counters_file *file, struct load_sample **out)
{
	size_t threads = 3 * (size_t)file->cpus + COUNTERS_WORKERS + file->queues;
	struct load_sample *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->file = file;
	s->threads = calloc(threads, sizeof(*s->threads));
	s->napis = calloc(file->queues + 1, sizeof(*s->napis));
	if (!s->threads || !s->napis) {
		load_sample_free(s);
		return -ENOMEM;
	}
	s->time = clock_ns(CLOCK_MONOTONIC) - (clock_ns(CLOCK_REALTIME) - file->started);
	*out = s;
	return 0;
}

int load_sample_take(const struct counters_file *file, struct load_sample **out)
{
	int rc = load_sample_zero(file, out);

	if (rc)
		return rc;
	(*out)->time = clock_ns(CLOCK_MONOTONIC);
	threads_read(*out);
	for (uint32_t i = 0; i < file->queues; i++)
		napi_read(&(*out)->napis[i], counters_queue_at(file, i));
	return 0;
}

void load_sample_free(struct load_sample *sample)
{
	if (!sample)
		return;
	free(sample->threads);
	free(sample->napis);
	free(sample);
}

static struct load_cpu *cpu_find(const struct load *load, int cpu)
{
	for (uint32_t i = 0; i < load->cpus_n; i++) {
		if ((int)load->cpus[i].cpu == cpu)
			return &load->cpus[i];
	}
	return NULL;
}

/* One that has moved since is half of the time here and half of it there, as far as one can see. */
static void thread_count(const struct load_sample *before, const struct sample_thread *now,
			 struct load *load)
{
	struct thread_usage was = {.cpu = now->usage.cpu};
	struct load_cpu *here, *there;
	double used;

	for (uint32_t i = 0; i < before->threads_n; i++) {
		if (before->threads[i].tid == now->tid)
			was = before->threads[i].usage;
	}
	used = (double)(now->usage.cpu_ns - was.cpu_ns) / (double)load->ns / 2;
	here = cpu_find(load, now->usage.cpu);
	there = cpu_find(load, was.cpu);
	if (here)
		here->use += used;
	if (there)
		there->use += used;
	if (here && now->own)
		here->own += 2 * used;
}

static void napi_count(const struct sample_napi *was, const struct sample_napi *now,
		       const struct queue_record *record, struct load *load)
{
	static const struct sample_napi none;
	struct load_napi *napi = &load->napis[load->napis_n++];
	double ns = (double)load->ns;
	uint64_t buckets[WAKE_BUCKETS];
	struct load_cpu *cpu;

	if (!was->in_use || was->polls > now->polls)
		was = &none;
	for (int i = 0; i < WAKE_BUCKETS; i++)
		buckets[i] = now->wake[i] - was->wake[i];
	*napi = (struct load_napi){
		.record = record,
		.cpu = now->cpu,
		.poller = now->poller,
		.idle = (double)(now->empty_ns - was->empty_ns) / ns,
		.rate = (double)(now->received - was->received) / ns * NSEC_PER_SEC,
		.wake_p99_ns = wake_percentile(buckets, 99),
	};
	napi->load = (double)(now->poll_ns - was->poll_ns) / ns - napi->idle;
	if (now->wakes > was->wakes)
		napi->wake_ns =
			(int64_t)((now->wake_ns - was->wake_ns) / (now->wakes - was->wakes));
	cpu = now->poller == POLLER_BUSY_POLL ? cpu_find(load, (int)now->cpu) : NULL;
	if (cpu) {
		cpu->empty += napi->idle;
		cpu->load += napi->load;
	}
}

static void cpus_finish(struct load *load)
{
	for (uint32_t i = 0; i < load->cpus_n; i++) {
		struct load_cpu *cpu = &load->cpus[i];

		/* Time in polls goes on while their thread waits for the CPU, so neither is exact.
		 */
		if (cpu->load < cpu->use - cpu->empty)
			cpu->load = cpu->use - cpu->empty;
		cpu->own = cpu->own > cpu->empty ? cpu->own - cpu->empty : 0;
		if (!i || cpu->load > load->most) {
			load->most = cpu->load;
			load->most_cpu = cpu->cpu;
		}
		load->mean += cpu->load / load->cpus_n;
	}
}

int load_between(const struct load_sample *before, const struct load_sample *after,
		 struct load *out)
{
	const struct counters_file *file = after->file;

	*out = (struct load){.ns = after->time - before->time};
	if (out->ns < 1)
		out->ns = 1;
	out->cpus = calloc(file->cpus + 1, sizeof(*out->cpus));
	out->napis = calloc(file->queues + 1, sizeof(*out->napis));
	if (!out->cpus || !out->napis) {
		load_free(out);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < file->cpus; i++) {
		const struct cpu_record *r = counters_cpu_at(file, i);

		if (r->in_use && !r->away)
			out->cpus[out->cpus_n++].cpu = r->cpu;
	}
	for (uint32_t i = 0; i < after->threads_n; i++)
		thread_count(before, &after->threads[i], out);
	for (uint32_t i = 0; i < file->queues; i++) {
		if (after->napis[i].in_use)
			napi_count(&before->napis[i], &after->napis[i], counters_queue_at(file, i),
				   out);
	}
	cpus_finish(out);
	return 0;
}

void load_free(struct load *load)
{
	free(load->cpus);
	free(load->napis);
	*load = (struct load){0};
}

bool load_uneven(const struct load *load)
{
	return load->cpus_n > 1 && load->most >= LOAD_NOTABLE &&
	       load->most > load->mean * LOAD_UNEVEN;
}

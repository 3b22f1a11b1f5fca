/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <napier/napier.h>

#include <core/napi.h>

#include "lab/clock.h"
#include "lab/parts/bench.h"
#include "lab/parts/events.h"

#define INTERRUPT_PRIORITY 50 /* as napier run has it */

enum {
	PORTS_MAX = EVENTS_NAPIS_MAX / PORT_QUEUES_MAX,
	SPARE_DESCRIPTORS = 64,
	THREADS_MAX = EVENTS_NAPIS_MAX + 4 * CPU_MAX,
	CIRCLED_MIN = 100
};

enum load { NOTHING, CIRCLING, SINGLE };

struct event_queue {
	_Alignas(64) struct events *events;
	struct port_queue *queue;
	int event; /* descriptor, -1: by raise */
	counter circled;
	_Atomic int64_t fired; /* an event to come, when it was made; 0: none */
};

struct events {
	struct machine *machine;
	struct engine *engine;
	unsigned napis;
	struct event_queue *queue;
	unsigned threads; /* the engine's */
	pid_t *thread;
	const struct events_config *opening; /* while it is opened */
	struct histogram *latency; /* of single: one event at a time, so one writer at a time */
	_Atomic int load;
	_Alignas(64) _Atomic uint64_t done; /* of single */
};

static int event_open(struct port *port, struct port_config *config, struct error *err)
{
	if (port_queues_alloc(port, config->queues))
		return error_set(err, -ENOMEM, "no memory for %u queues", config->queues);
	return 0;
}

static void event_interrupt(struct event_queue *q)
{
	static const uint64_t one = 1;

	/* Nobody reads it: to write is an edge, and it is never full. */
	if (q->event < 0)
		irq_raise(&q->queue->irq);
	else if (write(q->event, &one, sizeof(one)) < 0)
		abort();
}

static uint32_t single_poll(struct event_queue *q)
{
	struct events *events = q->events;
	int64_t fired = atomic_load_explicit(&q->fired, memory_order_acquire);

	if (!fired)
		return 0;
	if (events->latency) {
		int64_t late = clock_now() - fired;

		histogram_record(events->latency, late > 0 ? (uint64_t)late : 0);
	}
	atomic_store_explicit(&q->fired, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&events->done, 1, memory_order_release);
	return 1;
}

static uint32_t event_poll(struct napi *napi, struct context *context, uint32_t budget)
{
	struct event_queue *q = napi->queue->private;

	(void)context;
	(void)budget;
	switch (atomic_load_explicit(&q->events->load, memory_order_relaxed)) {
	case CIRCLING:
		counter_add(&q->circled, 1);
		irq_raise(&q->queue->irq);
		return 1;
	case SINGLE:
		return single_poll(q);
	default:
		return 0;
	}
}

static uint32_t event_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			       uint32_t n)
{
	(void)queue;
	packet_drop(context, v, n, DROP_TX_ERROR);
	return n;
}

static void event_close(struct port *port, struct context *context)
{
	(void)context;
	for (uint32_t i = 0; i < port->queues; i++) {
		if (port->queue[i].irq.fd >= 0)
			close(port->queue[i].irq.fd);
	}
}

static const struct port_ops event_ops = {
	.kind = "event",
	.help = "",
	.open = event_open,
	.poll = event_poll,
	.transmit = event_transmit,
	.close = event_close,
};

static const struct port_ops event_descriptor_ops;

/* Descriptors: an epoll and an eventfd for each thread, and one for each device. */
static int descriptors_allow(const struct events_config *config, struct error *err)
{
	rlim_t needed = SPARE_DESCRIPTORS + 4 * CPU_MAX / 64;
	struct rlimit limit;

	needed +=
		config->napis * ((config->poller == POLLER_THREAD ? 2u : 0u) + config->descriptor);
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= needed)
		return 0;
	if (limit.rlim_max < needed)
		return error_set(err, -EMFILE,
				 "%u NAPIs need %ju open files, the limit is %ju: ulimit -Hn",
				 config->napis, (uintmax_t)needed, (uintmax_t)limit.rlim_max);
	limit.rlim_cur = needed;
	return setrlimit(RLIMIT_NOFILE, &limit)
		       ? error_set(err, -errno, "raising the limit of open files: %s",
				   strerror(errno))
		       : 0;
}

static int port_add(struct events *events, unsigned first, bool descriptor, struct error *err)
{
	unsigned n = events->napis - first;
	struct port_config config = {
		.ops = descriptor ? &event_descriptor_ops : &event_ops,
		.kind = "event",
		.queues = n < PORT_QUEUES_MAX ? n : PORT_QUEUES_MAX,
		.disabled = true,
	};
	struct port *port;
	int rc;

	snprintf(config.name, sizeof(config.name), "ev%u", first / PORT_QUEUES_MAX);
	snprintf(config.target, sizeof(config.target), "%s", config.name);
	rc = engine_port_add(events->engine, &config, &port, err);
	if (rc)
		return rc;
	port_state_set(port, PORT_UP);
	for (uint32_t i = 0; i < port->queues; i++) {
		struct event_queue *q = &events->queue[first + i];

		q->events = events;
		q->queue = &port->queue[i];
		q->event = port->queue[i].irq.fd;
		port->queue[i].private = q;
	}
	for (uint32_t i = 0; i < port->queues && !rc; i++)
		rc = napi_enable(port->queue[i].napi);
	return rc ? error_set(err, rc, "enabling a NAPI: %s", strerror(-rc)) : 0;
}

static int event_descriptor_open(struct port *port, struct port_config *config, struct error *err)
{
	int rc = event_open(port, config, err);

	for (uint32_t i = 0; i < config->queues && !rc; i++) {
		port->queue[i].irq.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (port->queue[i].irq.fd < 0)
			rc = error_set(err, -errno, "an eventfd: %s", strerror(errno));
	}
	if (rc)
		event_close(port, NULL);
	return rc;
}

static const struct port_ops event_descriptor_ops = {
	.kind = "event",
	.help = "",
	.open = event_descriptor_open,
	.poll = event_poll,
	.transmit = event_transmit,
	.close = event_close,
};

static void opening_log(void *arg, enum log_level level, const char *line)
{
	const struct events_config *config = ((struct events *)arg)->opening;

	if (config && config->log)
		config->log(config->log_arg, level, line);
}

/* Threads of this process, but the main one; out: room for max. */
static unsigned threads_list(pid_t *out, unsigned max)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned n = 0;

	while (tasks && n < max && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid > 0 && tid != getpid())
			out[n++] = tid;
	}
	if (tasks)
		closedir(tasks);
	return n;
}

static int engine_open(struct events *events, const struct events_config *config, struct error *err)
{
	struct engine_config engine = {
		.name = "bench",
		.machine = events->machine,
		.cpus = config->cpus,
		.frames = 64,
		.ports_max = PORTS_MAX,
		.queues_max = EVENTS_NAPIS_MAX,
		.poller = config->poller,
		.worker = config->worker,
		.interrupt = {.class = RUNNER_FIFO, .level = INTERRUPT_PRIORITY},
		.log = opening_log,
		.log_arg = events,
	};
	int rc = engine_create(&engine, &events->engine, err);

	for (unsigned i = 0; i < events->napis && !rc; i += PORT_QUEUES_MAX)
		rc = port_add(events, i, config->descriptor, err);
	events->threads = threads_list(events->thread, THREADS_MAX);
	events->opening = NULL;
	return rc;
}

int events_open(const struct events_config *config, struct events **out, struct error *err)
{
	size_t size = config->napis * sizeof(struct event_queue);
	struct events *events;
	int rc = descriptors_allow(config, err);

	if (rc)
		return rc;
	events = aligned_alloc(_Alignof(struct events), sizeof(*events));
	if (!events)
		return error_set(err, -ENOMEM, "no memory");
	memset(events, 0, sizeof(*events));
	events->napis = config->napis;
	events->queue = aligned_alloc(_Alignof(struct event_queue), size);
	events->thread = calloc(THREADS_MAX, sizeof(*events->thread));
	events->opening = config;
	if (!events->queue || !events->thread) {
		free(events->thread);
		free(events->queue);
		free(events);
		return error_set(err, -ENOMEM, "no memory for %u NAPIs", config->napis);
	}
	memset(events->queue, 0, size);
	rc = machine_host_create(&events->machine, err);
	if (!rc)
		rc = engine_open(events, config, err);
	if (rc)
		events_close(events);
	else
		*out = events;
	return rc;
}

void events_close(struct events *events)
{
	if (events->engine)
		engine_destroy(events->engine);
	if (events->machine)
		machine_destroy(events->machine);
	free(events->thread);
	free(events->queue);
	free(events);
}

/*
 * Each thread's own clock: the process's knows of threads that run elsewhere only what they had at
 * their last tick.
 */
static int64_t cpu_read(const struct events *events)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < events->threads; i++) {
		/* As the kernel's ABI has it for a thread: the complement, and "its schedule". */
		sum += clock_read(~(clockid_t)events->thread[i] * 8 + 6);
	}
	return sum;
}

static uint64_t circled(void *arg)
{
	const struct events *events = arg;
	uint64_t sum = 0;

	for (unsigned i = 0; i < events->napis; i++)
		sum += counter_read(&events->queue[i].circled);
	return sum;
}

static void sample_add(struct events *events, int sign, struct events_sample *s)
{
	uint64_t events_now = circled(events), polls = 0, completes = 0;

	for (unsigned i = 0; i < events->napis; i++) {
		const struct napi_counters *c = napi_counters(events->queue[i].queue->napi);

		polls += counter_read(&c->polls);
		completes += counter_read(&c->completes);
	}
	s->events += sign > 0 ? events_now : -events_now;
	s->polls += sign > 0 ? polls : -polls;
	s->completes += sign > 0 ? completes : -completes;
}

/* Each NAPI is left as it was, and meanwhile its counters stand still. */
static int napis_rest(struct events *events)
{
	int rc = 0;

	for (unsigned i = 0; i < events->napis && !rc; i++)
		rc = napi_disable(events->queue[i].queue->napi, BENCH_PATIENCE);
	return rc;
}

/*
 * What takes time is read while they circle. The counts are of all of it, from rest to rest: the
 * engine may go on for any time between two readings, so of single moments they do not match.
 */
int events_circle(struct events *events, int64_t duration, struct events_sample *out,
		  struct error *err)
{
	struct events_sample all = {0};
	uint64_t before = circled(events);
	int rc = 0;

	sample_add(events, -1, &all);
	atomic_store(&events->load, CIRCLING);
	for (unsigned i = 0; i < events->napis; i++)
		event_interrupt(&events->queue[i]);
	if (bench_await(circled, events, before)) {
		*out = (struct events_sample){0};
		out->cpu = -cpu_read(events);
		before = circled(events);
		out->wall = -clock_now();
		clock_sleep(duration);
		if (!bench_await(circled, events, before + CIRCLED_MIN - 1))
			rc = -ETIMEDOUT;
		out->wall += clock_now();
		out->events = circled(events) - before;
		out->cpu += cpu_read(events);
	} else {
		rc = -ETIMEDOUT;
	}
	atomic_store(&events->load, NOTHING);
	if (!rc)
		rc = napis_rest(events);
	if (rc)
		return error_set(err, rc, "no NAPI was polled within %d s",
				 (int)(BENCH_PATIENCE / NSEC_PER_SEC));
	sample_add(events, 1, &all);
	out->circled = all.events;
	out->polls = all.polls;
	out->completes = all.completes;
	return 0;
}

/*
 * Until no NAPI is scheduled, so that what they count stands: the last poll has gone on after its
 * event was done. Those that a busy-poller keeps always are.
 */
static int rest_await(const struct events *events, struct error *err)
{
	int64_t limit = clock_now() + BENCH_PATIENCE;

	for (unsigned i = 0; i < events->napis; i++) {
		const struct napi *napi = events->queue[i].queue->napi;

		while (napi_state_load(napi) & NAPI_SCHED &&
		       napi_poller(napi) != POLLER_BUSY_POLL) {
			if (clock_now() > limit)
				return error_set(err, -ETIMEDOUT,
						 "a poll did not complete within %d s",
						 (int)(BENCH_PATIENCE / NSEC_PER_SEC));
			clock_sleep(20 * NSEC_PER_USEC);
		}
	}
	return 0;
}

/* Spins a while, since what is awaited takes microseconds, and then only looks now and then. */
static int done_await(struct events *events, uint64_t count, bool apart, struct error *err)
{
	int64_t start = clock_now();

	while (atomic_load_explicit(&events->done, memory_order_acquire) != count) {
		int64_t waited = clock_now() - start;

		if (waited > BENCH_PATIENCE)
			return error_set(err, -ETIMEDOUT, "an event was not polled within %d s",
					 (int)(BENCH_PATIENCE / NSEC_PER_SEC));
		if (waited > 100 * NSEC_PER_USEC)
			clock_sleep(20 * NSEC_PER_USEC);
		else if (!apart)
			sched_yield();
	}
	return 0;
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void pause_make(const struct events_single *how, uint64_t *random)
{
	int64_t until = clock_now() + how->gap;

	if (how->sleeps)
		clock_sleep(how->gap / 2 + (int64_t)(random_next(random) % (uint64_t)how->gap));
	else
		while (clock_now() < until)
			;
}

static int single_run(struct events *events, const struct events_single *how, bool apart,
		      uint64_t *count, struct error *err)
{
	uint64_t before = atomic_load(&events->done), random = 88172645463325252u;
	int64_t end = clock_now() + how->duration;
	int rc = 0;

	/* One at least: the time may be over before this thread runs again. */
	for (*count = 0;
	     !rc && (!how->most || *count < how->most) && (!*count || clock_now() < end);) {
		struct event_queue *q = &events->queue[*count % events->napis];

		pause_make(how, &random);
		atomic_store_explicit(&q->fired, clock_now(), memory_order_release);
		event_interrupt(q);
		rc = done_await(events, before + ++*count, apart, err);
	}
	return rc;
}

int events_single(struct events *events, const struct events_single *how, struct events_sample *out,
		  struct error *err)
{
	cpu_set_t before, here;
	uint64_t count;
	int rc = rest_await(events, err);

	if (rc)
		return rc;
	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&here);
	if (how->cpu >= 0) {
		CPU_SET(how->cpu, &here);
		sched_setaffinity(0, sizeof(here), &here);
	}
	events->latency = how->latency;
	atomic_store(&events->load, SINGLE);
	*out = (struct events_sample){0};
	out->cpu = -cpu_read(events);
	sample_add(events, -1, out);
	out->wall = -clock_now();
	rc = single_run(events, how, how->cpu >= 0, &count, err);
	out->wall += clock_now();
	if (!rc)
		rc = rest_await(events, err);
	sample_add(events, 1, out);
	out->events = count;
	out->cpu += cpu_read(events);
	atomic_store(&events->load, NOTHING);
	sched_setaffinity(0, sizeof(before), &before);
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <napier/napier.h>

#include <control/client.h>
#include <control/load.h>

#include <cmd/view.h>

/* Names of reasons are known here, since the file is of this very version. */
static json_t *dropped_json(const uint64_t dropped[DROP_MAX])
{
	json_t *o = json_object();

	for (int i = 0; i < DROP_MAX; i++) {
		if (dropped[i])
			json_object_set_new(o, drop_name((enum drop_reason)i),
					    json_integer((json_int_t)dropped[i]));
	}
	return o;
}

static const char *poller_text(uint32_t poller)
{
	return poller_valid((enum poller)poller) ? poller_name((enum poller)poller) : "none";
}

json_t *view_class_set(json_t *o, bool fifo, int level)
{
	json_object_set_new(o, "class", json_string(fifo ? "fifo" : "fair"));
	json_object_set_new(o, fifo ? "priority" : "nice", json_integer(level));
	return o;
}

static void thread_name(int pid, int tid, char name[RUNNER_NAME_MAX])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	name[0] = '\0';
	file = fopen(path, "re");
	if (!file)
		return;
	if (!fgets(name, RUNNER_NAME_MAX, file))
		name[0] = '\0';
	fclose(file);
	name[strcspn(name, "\n")] = '\0';
}

static void thread_cpus(int tid, char *text, size_t size)
{
	struct cpuset cpus = {0};
	cpu_set_t *set = CPU_ALLOC(CPU_MAX);

	text[0] = '\0';
	if (set && !sched_getaffinity(tid, CPU_ALLOC_SIZE(CPU_MAX), set)) {
		for (unsigned cpu = 0; cpu < CPU_MAX; cpu++) {
			if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(CPU_MAX), set))
				cpuset_add(&cpus, cpu);
		}
		cpuset_format(&cpus, text, size);
	}
	CPU_FREE(set);
}

json_t *view_thread(int pid, int tid)
{
	char name[RUNNER_NAME_MAX], cpus[256];
	struct sched_param parameter = {0};
	struct thread_usage usage;
	int policy;
	json_t *o;

	if (!tid)
		return json_null();
	policy = sched_getscheduler(tid);
	if (policy < 0 || sched_getparam(tid, &parameter) || thread_usage_read(pid, tid, &usage))
		return json_null();
	thread_name(pid, tid, name);
	thread_cpus(tid, cpus, sizeof(cpus));
	o = json_pack("{s:i, s:s, s:i, s:s, s:I, s:I}", "tid", tid, "name", name, "cpu", usage.cpu,
		      "cpus", cpus, "cpu_ns", (json_int_t)usage.cpu_ns, "delay_ns",
		      (json_int_t)usage.delay_ns);
	if (policy == SCHED_FIFO || policy == SCHED_RR) {
		view_class_set(o, true, parameter.sched_priority);
		if (policy == SCHED_RR)
			json_object_set_new(o, "class", json_string("rr"));
	} else {
		view_class_set(o, false, getpriority(PRIO_PROCESS, (id_t)tid));
		if (policy == SCHED_BATCH || policy == SCHED_IDLE)
			json_object_set_new(o, "class",
					    json_string(policy == SCHED_IDLE ? "idle" : "batch"));
	}
	return o;
}

static void number_set(json_t *o, const char *member, uint64_t value)
{
	json_object_set_new(o, member, json_integer((json_int_t)value));
}

/*
 * In the terms of /proc/net/softnet_stat. Processed: what the NAPIs of this CPU have received and
 * not passed on to a backlog, that is, what has been handled there; a super-packet is one.
 */
static void softnet_set(json_t *o, const struct counters_file *file, const struct cpu_record *r)
{
	uint64_t processed = 0, squeezed = 0;

	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *q = counters_queue_at(file, i);
		const struct napi_counters *c = &q->napi;

		if (q->in_use && q->cpu == r->cpu)
			processed += counter_read(&c->received) - counter_read(&c->merged) -
				     counter_read(&c->steered) -
				     counter_read(&c->dropped[DROP_BACKLOG_FULL]) -
				     counter_read(&c->dropped[DROP_FLOW_LIMIT]) -
				     counter_read(&c->dropped[DROP_PORT_REMOVED]);
	}
	for (int i = 0; i < SQUEEZE_MAX; i++)
		squeezed += counter_read(&r->counters.time_squeeze[i]);
	number_set(o, "processed", processed);
	number_set(o, "dropped", counter_read(&r->backlog.dropped));
	number_set(o, "time_squeeze", squeezed);
	number_set(o, "received_rps", counter_read(&r->backlog.received_rps));
	number_set(o, "flow_limit", counter_read(&r->backlog.flow_limit));
	number_set(o, "backlog", counter_read(&r->backlog.length));
}

static json_t *cpu_json(const struct counters_file *file, const struct cpu_record *r)
{
	json_t *o = json_object();
	uint64_t punted = 0;
	char deferral[40], member[32];

	deferral_format((enum deferral)r->deferral, r->looped_ticks, deferral, sizeof(deferral));
	number_set(o, "cpu", r->cpu);
	json_object_set_new(o, "away", json_boolean(r->away));
	json_object_set_new(o, "deferral", json_string(deferral));
	number_set(o, "interrupts", counter_read(&r->counters.interrupts));
	number_set(o, "rounds", counter_read(&r->counters.rounds));
	number_set(o, "squeezed_budget", counter_read(&r->counters.time_squeeze[SQUEEZE_BUDGET]));
	number_set(o, "squeezed_time", counter_read(&r->counters.time_squeeze[SQUEEZE_TIME]));
	number_set(o, "restarts", counter_read(&r->counters.restarts));
	for (int i = 0; i < PUNT_MAX; i++)
		punted += counter_read(&r->counters.punted[i]);
	number_set(o, "punted", punted);
	for (int i = 0; i < PUNT_MAX; i++) {
		snprintf(member, sizeof(member), "punted_%s", punt_name((enum punt)i));
		number_set(o, member, counter_read(&r->counters.punted[i]));
	}
	number_set(o, "ksoftirqd_rounds", counter_read(&r->counters.ksoftirqd_rounds));
	softnet_set(o, file, r);
	json_object_set_new(o, "irq", view_thread(file->pid, r->irq_tid));
	json_object_set_new(o, "ksoftirqd", view_thread(file->pid, r->ksoftirqd_tid));
	return o;
}

static void napi_counters_set(json_t *o, const struct queue_record *r)
{
	const struct napi_counters *c = &r->napi;
	uint64_t dropped[DROP_MAX];

	for (int i = 0; i < DROP_MAX; i++)
		dropped[i] = counter_read(&c->dropped[i]);
	number_set(o, "received", counter_read(&c->received));
	number_set(o, "received_bytes", counter_read(&c->received_bytes));
	number_set(o, "lost", counter_read(&c->lost));
	number_set(o, "cloned", counter_read(&c->cloned));
	number_set(o, "transmitted", counter_read(&c->transmitted));
	number_set(o, "delivered", counter_read(&c->delivered));
	number_set(o, "steered", counter_read(&c->steered));
	number_set(o, "merged", counter_read(&c->merged));
	json_object_set_new(o, "dropped", dropped_json(dropped));
	number_set(o, "polls", counter_read(&c->polls));
	number_set(o, "full_polls", counter_read(&c->full_polls));
	number_set(o, "empty_polls", counter_read(&c->empty_polls));
	number_set(o, "completes", counter_read(&c->completes));
	number_set(o, "missed", counter_read(&c->missed));
	number_set(o, "squeezed_budget", counter_read(&c->squeezed[SQUEEZE_BUDGET]));
	number_set(o, "squeezed_time", counter_read(&c->squeezed[SQUEEZE_TIME]));
	number_set(o, "switches", counter_read(&c->switches));
	number_set(o, "stuck", counter_read(&r->stuck));
	number_set(o, "poll_ns", counter_read(&c->poll_ns));
	number_set(o, "kernel_polls", counter_read(&c->kernel_polls));
	number_set(o, "empty_ns", counter_read(&c->empty_ns));
	number_set(o, "wakes", counter_read(&c->wakes));
	number_set(o, "wake_ns", counter_read(&c->wake_ns));
	number_set(o, "wake_max_ns", counter_read(&c->wake_max_ns));
}

void view_engine_cpus(const struct counters_file *file, char *text, size_t size)
{
	struct cpuset cpus = {0};

	for (uint32_t i = 0; i < file->cpus; i++) {
		const struct cpu_record *r = counters_cpu_at(file, i);

		if (r->in_use && !r->away && r->cpu < CPU_MAX)
			cpuset_add(&cpus, r->cpu);
	}
	cpuset_format(&cpus, text, size);
}

/* The kernel's own NAPI below, and how its interface was asked to be. */
static void kernel_set(json_t *o, const struct kernel_record *k)
{
	const struct {
		const char *member;
		uint64_t value;
	} values[] = {
		{"napi_defer_hard_irqs_asked", k->defer_hard_irqs_asked},
		{"napi_defer_hard_irqs", k->defer_hard_irqs},
		{"gro_flush_timeout_asked", k->gro_flush_timeout_asked},
		{"gro_flush_timeout", k->gro_flush_timeout},
	};

	json_object_set_new(o, "kernel_poll",
			    json_string(kernel_poll_name((enum kernel_poll)k->poll)));
	number_set(o, "kernel_napi", k->napi_id);
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		if (values[i].value == KERNEL_UNKNOWN)
			json_object_set_new(o, values[i].member, json_null());
		else
			number_set(o, values[i].member, values[i].value);
	}
}

static json_t *napi_json(const struct counters_file *file, const struct queue_record *r)
{
	json_t *o = json_object();
	json_t *asked = json_object();
	char text[PORT_NAME_MAX], cpus[256];

	snprintf(text, sizeof(text), "%.31s", r->port_name);
	json_object_set_new(o, "port", json_string(text));
	number_set(o, "queue", r->queue);
	json_object_set_new(o, "poller_asked", json_string(poller_text(r->poller_asked)));
	json_object_set_new(o, "poller", json_string(poller_text(r->poller_observed)));
	json_object_set_new(o, "disabled", json_boolean(r->disabled));
	number_set(o, "cpu", r->cpu);
	json_object_set_new(o, "cpu_pinned", json_boolean(r->cpu_pinned));
	if (r->why[0])
		json_object_set_new(o, "why", json_sprintf("%.111s", r->why));
	number_set(o, "weight", r->weight);
	number_set(o, "idle_suspend", r->idle_suspend);
	json_object_set_new(o, "thread", view_thread(file->pid, r->tid));
	view_class_set(asked, r->class_asked == RUNNER_FIFO, r->level_asked);
	snprintf(cpus, sizeof(cpus), "%.63s", r->cpus_asked);
	if (!*cpus)
		view_engine_cpus(file, cpus, sizeof(cpus));
	json_object_set_new(asked, "cpus", json_string(cpus));
	json_object_set_new(o, "thread_asked", asked);
	snprintf(cpus, sizeof(cpus), "%.63s", r->rps_cpus[0] ? r->rps_cpus : "none");
	json_object_set_new(o, "rps_cpus", json_string(cpus));
	number_set(o, "rps_flow_cnt", r->rps_flow_cnt);
	json_object_set_new(o, "gro_asked",
			    json_string(gro_setting_name((enum gro_setting)r->gro_asked)));
	json_object_set_new(o, "gro", json_string(gro_types_name(r->gro)));
	number_set(o, "switch_ns", (uint64_t)r->switch_ns);
	number_set(o, "switch_max_ns", (uint64_t)r->switch_max_ns);
	if (r->app_tid > 0)
		json_object_set_new(o, "application", view_thread(file->pid, r->app_tid));
	json_object_set_new(o, "irq_defer",
			    json_pack("{s:i, s:i, s:i}", "napi_defer_hard_irqs",
				      (int)r->defer_hard_irqs, "gro_flush_timeout",
				      (int)r->gro_flush_timeout, "irq_suspend_timeout",
				      (int)r->irq_suspend_timeout));
	kernel_set(o, &r->kernel);
	napi_counters_set(o, r);
	return o;
}

/* A port is the sum of its queues. */
struct sum {
	uint64_t queues, rx, rx_bytes, lost, tx, tx_bytes, kicks, full, dropped[DROP_MAX];
};

static void sum_add(struct sum *sum, const struct queue_record *r)
{
	sum->queues++;
	sum->rx += counter_read(&r->napi.received);
	sum->rx_bytes += counter_read(&r->napi.received_bytes);
	sum->lost += counter_read(&r->napi.lost);
	sum->tx += counter_read(&r->transmit.packets);
	sum->tx_bytes += counter_read(&r->transmit.bytes);
	sum->kicks += counter_read(&r->transmit.kicks);
	sum->full += counter_read(&r->transmit.full);
	for (int i = 0; i < DROP_MAX; i++)
		sum->dropped[i] += counter_read(&r->napi.dropped[i]);
}

static json_t *port_json(const struct queue_record *r, const struct sum *sum)
{
	char name[PORT_NAME_MAX], spec[PORT_SPEC_MAX], mode[32], state[32];
	json_t *o;

	snprintf(name, sizeof(name), "%.31s", r->port_name);
	snprintf(spec, sizeof(spec), "%.95s", r->port_spec);
	snprintf(mode, sizeof(mode), "%.31s", r->mode);
	snprintf(state, sizeof(state), "%.31s", r->state);
	o = json_pack("{s:s, s:s, s:s, s:s}", "name", name, "spec", spec, "mode", mode, "state",
		      state);
	number_set(o, "queues", sum->queues);
	number_set(o, "rx_packets", sum->rx);
	number_set(o, "rx_bytes", sum->rx_bytes);
	number_set(o, "rx_lost", sum->lost);
	number_set(o, "tx_packets", sum->tx);
	number_set(o, "tx_bytes", sum->tx_bytes);
	number_set(o, "tx_kicks", sum->kicks);
	number_set(o, "tx_full", sum->full);
	json_object_set_new(o, "dropped", dropped_json(sum->dropped));
	return o;
}

bool view_wanted(const struct queue_record *r, const char *port, int queue)
{
	return r->in_use && (!port || !strncmp(r->port_name, port, PORT_NAME_MAX)) &&
	       (queue < 0 || r->queue == (uint32_t)queue);
}

/* Ports in the order of their first record; a port's queues need not lie side by side. */
static json_t *ports_json(const struct counters_file *file, const char *port)
{
	json_t *ports = json_array();

	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *first = counters_queue_at(file, i);
		struct sum sum = {0};

		if (!view_wanted(first, port, 0))
			continue;
		for (uint32_t k = 0; k < file->queues; k++) {
			const struct queue_record *r = counters_queue_at(file, k);

			if (r->in_use && r->port == first->port)
				sum_add(&sum, r);
		}
		json_array_append_new(ports, port_json(first, &sum));
	}
	return ports;
}

static void absent_add(json_t *ports, const struct rundir *dir, const char *port)
{
	char path[RUNDIR_PATH_MAX + 10], line[ERROR_TEXT_MAX + 256];
	FILE *file;

	rundir_file(dir, "absent", path);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *rest = line, *name, *spec, *why;

		line[strcspn(line, "\n")] = '\0';
		name = strsep(&rest, "\t");
		spec = strsep(&rest, "\t");
		why = rest;
		if (why && (!port || !strcmp(port, name)))
			json_array_append_new(ports,
					      json_pack("{s:s, s:s, s:s, s:s}", "name", name,
							"spec", spec, "state", "gone", "why", why));
	}
	if (file)
		fclose(file);
}

static json_t *engine_json(const struct counters_file *file)
{
	char name[32], version[32];
	json_t *o;

	snprintf(name, sizeof(name), "%.31s", file->engine);
	snprintf(version, sizeof(version), "%.31s", file->version_text);
	o = json_pack("{s:s, s:i, s:s, s:s}", "name", name, "pid", (int)file->pid, "version",
		      version, "default_poller", poller_text(file->poller_default));
	number_set(o, "dev_weight", file->weight);
	number_set(o, "netdev_budget", file->budget);
	number_set(o, "netdev_budget_usecs", file->budget_usecs);
	number_set(o, "busy_poll", file->busy_poll);
	number_set(o, "busy_read", file->busy_read);
	number_set(o, "gro_normal_batch", file->gro_normal_batch);
	number_set(o, "netdev_max_backlog", file->max_backlog);
	number_set(o, "flow_limit", file->flow_limit);
	number_set(o, "rps_sock_flow_entries", file->sock_flow_entries);
	json_object_set_new(o, "symmetric_hash", json_string(file->symmetric_hash ? "on" : "off"));
	number_set(o, "started", (uint64_t)(file->started / NSEC_PER_SEC));
	number_set(o, "uptime", (uint64_t)(time(NULL) - file->started / NSEC_PER_SEC));
	return o;
}

json_t *view_create(const struct counters_file *file, const struct rundir *dir, const char *port,
		    int queue)
{
	json_t *view = json_object();
	json_t *cpus = json_array();
	json_t *napis = json_array();
	json_t *ports = ports_json(file, port);

	for (uint32_t i = 0; i < file->cpus; i++) {
		const struct cpu_record *r = counters_cpu_at(file, i);

		if (r->in_use)
			json_array_append_new(cpus, cpu_json(file, r));
	}
	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);

		if (view_wanted(r, port, queue))
			json_array_append_new(napis, napi_json(file, r));
	}
	if (dir)
		absent_add(ports, dir, port);
	json_object_set_new(view, "engine", engine_json(file));
	json_object_set_new(view, "cpus", cpus);
	json_object_set_new(view, "napis", napis);
	json_object_set_new(view, "runners", view_runners(file, port, queue));
	json_object_set_new(view, "ports", ports);
	return view;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests carried out, and their answers. docs/control.md has an example of each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <control/service.h>

/* The i-th record that is in use and matches; queue < 0: any. */
static const struct queue_record *record_next(struct service *service, const char *port, int queue,
					      uint32_t *i)
{
	const struct counters_file *file = engine_counters(service->engine);

	while (*i < file->queues) {
		const struct queue_record *r = counters_queue_at(file, (*i)++);

		if (r->in_use && !strcmp(r->port_name, port) &&
		    (queue < 0 || r->queue == (uint32_t)queue))
			return r;
	}
	return NULL;
}

static const char *poller_text(uint32_t poller)
{
	return poller_valid((enum poller)poller) ? poller_name((enum poller)poller) : "none";
}

/* null: the kernel does not say. */
static json_t *kernel_json(uint64_t value)
{
	return value == KERNEL_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

/* The state of one queue, with the poller that it had before. */
static json_t *queue_json(const struct queue_record *r, uint32_t was)
{
	char rps_cpus[sizeof(r->rps_cpus)];

	snprintf(rps_cpus, sizeof(rps_cpus), "%s", r->rps_cpus[0] ? r->rps_cpus : "none");
	return json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:b, s:s, s:o, s:o, "
		"s:s, s:i, s:s, s:s, s:i, s:{s:i, s:i, s:i}}",
		"port", r->port_name, "queue", (int)r->queue, "asked", poller_text(r->poller_asked),
		"poller", poller_text(r->poller_observed), "was", poller_text(was), "switch_ns",
		(json_int_t)r->switch_ns, "weight", (int)r->weight, "idle_suspend",
		(int)r->idle_suspend, "cpu", (int)r->cpu, "tid", (int)r->tid, "disabled",
		(int)r->disabled, "kernel_poll", kernel_poll_name((enum kernel_poll)r->kernel.poll),
		"napi_defer_hard_irqs", kernel_json(r->kernel.defer_hard_irqs), "gro_flush_timeout",
		kernel_json(r->kernel.gro_flush_timeout), "rps_cpus", rps_cpus, "rps_flow_cnt",
		(int)r->rps_flow_cnt, "gro_asked", gro_setting_name((enum gro_setting)r->gro_asked),
		"gro", gro_types_name(r->gro), "app_tid", (int)r->app_tid, "irq_defer",
		"napi_defer_hard_irqs", (int)r->defer_hard_irqs, "gro_flush_timeout",
		(int)r->gro_flush_timeout, "irq_suspend_timeout", (int)r->irq_suspend_timeout);
}

static int set_answer(struct service *service, const struct request *request, json_t *answer,
		      struct error *err)
{
	const struct queue_record *r;
	struct queue_settings settings;
	uint32_t was[PORT_QUEUES_MAX];
	json_t *queues = json_array();
	int64_t took = 0;
	int rc = wish_settings(&request->wish, &settings, err);

	for (uint32_t i = 0; (r = record_next(service, request->port, request->queue, &i));)
		was[r->queue % PORT_QUEUES_MAX] = r->poller_observed;
	if (!rc)
		rc = engine_queue_set(service->engine, request->port, request->queue, &settings,
				      &took, err);
	if (rc) {
		json_decref(queues);
		return rc;
	}
	for (uint32_t i = 0; (r = record_next(service, request->port, request->queue, &i));)
		json_array_append_new(queues, queue_json(r, was[r->queue % PORT_QUEUES_MAX]));
	json_object_set_new(answer, "took_ns", json_integer(took));
	json_object_set_new(answer, "queues", queues);
	return 0;
}

/* The threads that are there now, which the caller can look at. */
static int runner_answer(struct service *service, const struct request *request, json_t *answer,
			 struct error *err)
{
	const struct counters_file *file = engine_counters(service->engine);
	json_t *tids = json_array();
	struct runner_settings settings;
	int rc = runner_wish_settings(&request->wish, &settings, err);

	if (!rc)
		rc = engine_runner_set(service->engine, request->role, request->cpu, &settings,
				       err);
	if (rc) {
		json_decref(tids);
		return rc;
	}
	for (uint32_t i = 0; i < file->cpus && request->role != ROLE_KWORKER; i++) {
		const struct cpu_record *r = counters_cpu_at(file, i);
		int tid = request->role == ROLE_IRQ	    ? r->irq_tid
			  : request->role == ROLE_KSOFTIRQD ? r->ksoftirqd_tid
							    : r->busy_tid;

		if (r->in_use && r->cpu == request->cpu && tid)
			json_array_append_new(tids, json_integer(tid));
	}
	for (uint32_t i = 0; i < COUNTERS_WORKERS && request->role == ROLE_KWORKER; i++) {
		if (file->worker_tid[i])
			json_array_append_new(tids, json_integer(file->worker_tid[i]));
	}
	json_object_set_new(answer, "tids", tids);
	return 0;
}

static int move_answer(struct service *service, const struct request *request, json_t *answer,
		       struct error *err)
{
	const struct queue_record *r;
	int64_t took = 0;
	uint32_t i = 0;
	int rc = engine_queue_move(service->engine, request->port, (uint32_t)request->queue,
				   request->cpu, &took, err);

	if (rc)
		return rc;
	r = record_next(service, request->port, request->queue, &i);
	json_object_set_new(answer, "took_ns", json_integer(took));
	if (r)
		json_object_set_new(answer, "cpu", json_integer(r->cpu));
	return 0;
}

static int default_answer(struct service *service, const struct request *request, json_t *answer,
			  struct error *err)
{
	int rc = engine_poller_default_set(service->engine, request->wish.poller);

	if (rc)
		return error_set(err, rc, "default poller: %s", strerror(-rc));
	json_object_set_new(answer, "poller", json_string(poller_name(request->wish.poller)));
	return 0;
}

static json_t *cpu_json(const struct cpu_record *r)
{
	char deferral[40];

	deferral_format((enum deferral)r->deferral, r->looped_ticks, deferral, sizeof(deferral));
	return json_pack("{s:i, s:s, s:b}", "cpu", (int)r->cpu, "deferral", deferral, "away",
			 (int)r->away);
}

static int engine_answer(struct service *service, const struct request *request, json_t *answer,
			 struct error *err)
{
	const struct counters_file *file = engine_counters(service->engine);
	int rc = engine_set(service->engine, &request->engine, err);
	json_t *cpus = json_array();

	for (uint32_t i = 0; !rc && i < file->cpus; i++)
		json_array_append_new(cpus, cpu_json(counters_cpu_at(file, i)));
	if (rc) {
		json_decref(cpus);
		return rc;
	}
	json_object_set_new(answer, "dev_weight", json_integer(file->weight));
	json_object_set_new(answer, "netdev_budget", json_integer(file->budget));
	json_object_set_new(answer, "netdev_budget_usecs", json_integer(file->budget_usecs));
	json_object_set_new(answer, "busy_poll", json_integer(file->busy_poll));
	json_object_set_new(answer, "gro_normal_batch", json_integer(file->gro_normal_batch));
	json_object_set_new(answer, "busy_read", json_integer(file->busy_read));
	json_object_set_new(answer, "netdev_max_backlog", json_integer(file->max_backlog));
	json_object_set_new(answer, "flow_limit", json_integer(file->flow_limit));
	json_object_set_new(answer, "rps_sock_flow_entries", json_integer(file->sock_flow_entries));
	json_object_set_new(answer, "symmetric_hash",
			    json_string(file->symmetric_hash ? "on" : "off"));
	json_object_set_new(answer, "cpus", cpus);
	return 0;
}

static int cpu_answer(struct service *service, const struct request *request, json_t *answer,
		      struct error *err)
{
	const struct counters_file *file = engine_counters(service->engine);
	int rc = engine_cpu_set(service->engine, request->cpu, &request->cpu_settings, err);

	for (uint32_t i = 0; !rc && i < file->cpus; i++) {
		const struct cpu_record *r = counters_cpu_at(file, i);

		if (r->cpu == request->cpu)
			json_object_update_new(answer, cpu_json(r));
	}
	return rc;
}

static int add_answer(struct service *service, struct request *request, json_t *answer,
		      struct error *err)
{
	struct service_port *sp;
	int rc = service_port_add(service, request->add, &sp, err);

	if (rc)
		return rc;
	request->add = NULL;
	json_object_set_new(answer, "port", json_string(sp->setup->config.name));
	json_object_set_new(answer, "state",
			    json_string(sp->port ? port_state_name(sp->port->state) : "gone"));
	if (sp->port) {
		json_object_set_new(answer, "spec", json_string(sp->port->spec));
		json_object_set_new(answer, "mode", json_string(sp->port->mode));
		json_object_set_new(answer, "queues", json_integer(sp->port->queues));
		if (sp->hosted)
			json_object_set_new(answer, "host", json_string(sp->setup->host));
	}
	return 0;
}

static json_t *entry_json(struct service *service, const struct bridge_entry *entry)
{
	const struct port *port = engine_port_at(service->engine, entry->port);
	const uint8_t *a = entry->address;

	return json_pack(
		"{s:o, s:i, s:s, s:i}", "address",
		json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4], a[5]),
		"vlan", (int)entry->vid, "port", port ? port->name : "", "age",
		(int)entry->age_seconds);
}

static int fdb_answer(struct service *service, json_t *answer, struct error *err)
{
	struct bridge_entry *entries;
	uint32_t n, got;
	json_t *array;

	if (service->setup->handler != SETUP_BRIDGE)
		return error_set(err, -EOPNOTSUPP, "the handler is not a bridge: no addresses");
	array = json_array();
	n = bridge_entries(service->handler, NULL, 0);
	entries = calloc(n + 1, sizeof(*entries));
	if (!entries || !array) {
		json_decref(array);
		free(entries);
		return error_set(err, -ENOMEM, "no memory");
	}
	/* It may have shrunk or grown meanwhile. */
	got = bridge_entries(service->handler, entries, n);
	for (uint32_t i = 0; i < n && i < got; i++)
		json_array_append_new(array, entry_json(service, &entries[i]));
	free(entries);
	json_object_set_new(answer, "entries", array);
	return 0;
}

static int ping_answer(struct service *service, json_t *answer)
{
	json_object_set_new(answer, "engine", json_string(service->setup->name));
	json_object_set_new(answer, "pid", json_integer(getpid()));
	json_object_set_new(answer, "version", json_string(napier_version()));
	return 0;
}

static int request_carry_out(struct service *service, struct request *request, json_t *answer,
			     struct error *err)
{
	switch (request->kind) {
	case REQUEST_PING:
		return ping_answer(service, answer);
	case REQUEST_SET:
		return set_answer(service, request, answer, err);
	case REQUEST_DEFAULT:
		return default_answer(service, request, answer, err);
	case REQUEST_ENGINE:
		return engine_answer(service, request, answer, err);
	case REQUEST_CPU:
		return cpu_answer(service, request, answer, err);
	case REQUEST_ADD:
		return add_answer(service, request, answer, err);
	case REQUEST_RUNNER:
		return runner_answer(service, request, answer, err);
	case REQUEST_MOVE:
		return move_answer(service, request, answer, err);
	case REQUEST_REMOVE:
		return service_port_remove(service, request->port, err);
	case REQUEST_FDB:
		return fdb_answer(service, answer, err);
	case REQUEST_STOP:
		service_done(service);
		return 0;
	}
	return error_set(err, -EINVAL, "no such request");
}

char *service_answer(void *arg, const char *line, size_t n)
{
	json_t *answer = json_object();
	struct error err = {0};
	struct request request;
	int rc = request_parse(line, n, &request, &err);
	char *text;

	if (!rc)
		rc = request_carry_out(arg, &request, answer, &err);
	json_object_set_new(answer, "ok", json_boolean(!rc));
	if (rc) {
		json_object_set_new(answer, "error", json_string(err.text));
		json_object_set_new(answer, "code", json_string(strerrorname_np(-rc)));
	}
	if (request.id)
		json_object_set(answer, "id", request.id);
	request_free(&request);
	text = json_dumps(answer, JSON_COMPACT);
	json_decref(answer);
	return text;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Runners with their placement, and what they work, on which CPUs. */
#include <stdio.h>
#include <string.h>

#include <napier/napier.h>

#include <control/client.h>
#include <control/load.h>

#include <cmd/table.h>
#include <cmd/view.h>

/* NULL where the thread has gone. */
static json_t *runner_json(const struct counters_file *file, int tid, int class, int level,
			   const char *cpus)
{
	json_t *o = view_thread(file->pid, tid);
	json_t *asked;

	if (!json_is_object(o)) {
		json_decref(o);
		return NULL;
	}
	asked = view_class_set(json_object(), class == RUNNER_FIFO, level);
	json_object_set_new(asked, "cpus", json_string(cpus));
	json_object_set_new(o, "asked", asked);
	return o;
}

static void runner_add(json_t *runners, json_t *o)
{
	if (o)
		json_array_append_new(runners, o);
}

static void cpu_runners(json_t *runners, const struct counters_file *file,
			const struct cpu_record *r)
{
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "%u", r->cpu);
	runner_add(runners, runner_json(file, r->irq_tid, r->irq_class, r->irq_level, cpu));
	runner_add(runners, runner_json(file, r->ksoftirqd_tid, r->ksoftirqd_class,
					r->ksoftirqd_level, cpu));
	runner_add(runners, runner_json(file, r->busy_tid, r->busy_class, r->busy_level, cpu));
}

static void napi_runner(json_t *runners, const struct counters_file *file,
			const struct queue_record *r)
{
	char cpus[256];
	json_t *o;

	snprintf(cpus, sizeof(cpus), "%.63s", r->cpus_asked);
	if (!*cpus)
		view_engine_cpus(file, cpus, sizeof(cpus));
	o = runner_json(file, r->tid, r->class_asked, r->level_asked, cpus);
	if (!o)
		return;
	json_object_set_new(o, "napi", json_sprintf("%.31s/%u", r->port_name, r->queue));
	runner_add(runners, o);
}

json_t *view_runners(const struct counters_file *file, const char *port, int queue)
{
	json_t *runners = json_array();
	char cpus[256];

	for (uint32_t i = 0; !port && i < file->cpus; i++) {
		if (counters_cpu_at(file, i)->in_use)
			cpu_runners(runners, file, counters_cpu_at(file, i));
	}
	snprintf(cpus, sizeof(cpus), "%.63s", file->worker_cpus);
	if (!*cpus)
		view_engine_cpus(file, cpus, sizeof(cpus));
	for (uint32_t i = 0; !port && i < COUNTERS_WORKERS; i++)
		runner_add(runners, runner_json(file, file->worker_tid[i], file->worker_class,
						file->worker_level, cpus));
	for (uint32_t i = 0; i < file->queues; i++) {
		const struct queue_record *r = counters_queue_at(file, i);

		if (r->tid && view_wanted(r, port, queue))
			napi_runner(runners, file, r);
	}
	return runners;
}

/* Of one CPU, in percent, as people say it. */
static void share_set(json_t *o, const char *member, double share)
{
	json_object_set_new(o, member, json_real((double)(int64_t)(share * 10000 + 0.5) / 100));
}

static void cpu_load_add(const json_t *view, const struct load_cpu *load)
{
	const json_t *cpus = json_object_get(view, "cpus");

	for (size_t i = 0; i < json_array_size(cpus); i++) {
		json_t *o = json_array_get(cpus, i);

		if (view_number(o, "cpu") != load->cpu)
			continue;
		share_set(o, "load", load->load);
		share_set(o, "use", load->use);
	}
}

static void napi_load_add(const json_t *view, const struct load_napi *load)
{
	const json_t *napis = json_object_get(view, "napis");

	for (size_t i = 0; i < json_array_size(napis); i++) {
		json_t *o = json_array_get(napis, i);

		if (view_number(o, "queue") != load->record->queue ||
		    strncmp(view_text(o, "port"), load->record->port_name, PORT_NAME_MAX))
			continue;
		share_set(o, "load", load->load);
		json_object_set_new(o, "rate", json_integer((json_int_t)(load->rate + 0.5)));
		json_object_set_new(o, "wake_mean_ns", json_integer(load->wake_ns));
		json_object_set_new(o, "wake_p99_ns", json_integer(load->wake_p99_ns));
	}
}

void view_load_add(json_t *view, const struct load *load)
{
	json_t *o = json_object();

	for (uint32_t i = 0; i < load->cpus_n; i++)
		cpu_load_add(view, &load->cpus[i]);
	for (uint32_t i = 0; i < load->napis_n; i++)
		napi_load_add(view, &load->napis[i]);
	json_object_set_new(o, "interval_ns", json_integer(load->ns));
	json_object_set_new(o, "most_cpu", json_integer(load->most_cpu));
	share_set(o, "most", load->most);
	share_set(o, "mean", load->mean);
	json_object_set_new(o, "uneven", json_boolean(load_uneven(load)));
	json_object_set_new(view, "load", o);
}

void view_load_print(const json_t *view, FILE *out)
{
	const json_t *load = json_object_get(view, "load");
	double most = json_number_value(json_object_get(load, "most"));
	double mean = json_number_value(json_object_get(load, "mean"));
	char duration[DURATION_MAX];

	if (!json_is_true(json_object_get(load, "uneven")))
		return;
	fprintf(out,
		"uneven: CPU %lld carries %.0f%% of one CPU, the mean of %zu is %.0f%%, over the "
		"last %s (napier rebalance)\n",
		view_number(load, "most_cpu"), most, json_array_size(json_object_get(view, "cpus")),
		mean, duration_text(view_number(load, "interval_ns"), duration));
}

static void differing_cell(struct table *table, const char *there, const char *asked)
{
	if (strcmp(there, asked))
		table_cell(table, COLOUR_WARN, "%s (asked %s)", there, asked);
	else
		table_cell(table, COLOUR_NONE, "%s", there);
}

void view_runners_print(const json_t *view, FILE *out)
{
	static const char *const titles[] = {"<RUNNER", "TID",	    "ON",	"<CLASS",
					     "<CPUS",	"CPU-TIME", "CPU-DELAY"};
	const json_t *runners = json_object_get(view, "runners");
	struct table *table = table_create(7, titles);

	for (size_t i = 0; table && i < json_array_size(runners); i++) {
		const json_t *runner = json_array_get(runners, i);
		const json_t *asked = json_object_get(runner, "asked");
		char there[32], wanted[32], duration[DURATION_MAX];

		table_cell(table, COLOUR_NONE, "%s", view_text(runner, "name"));
		table_cell(table, COLOUR_NONE, "%lld", view_number(runner, "tid"));
		table_cell(table, COLOUR_NONE, "%lld", view_number(runner, "cpu"));
		differing_cell(table, view_class(runner, there), view_class(asked, wanted));
		differing_cell(table, view_text(runner, "cpus"), view_text(asked, "cpus"));
		table_cell(table, COLOUR_NONE, "%s",
			   duration_text(view_number(runner, "cpu_ns"), duration));
		table_cell(table, COLOUR_NONE, "%s",
			   duration_text(view_number(runner, "delay_ns"), duration));
	}
	table_print(table, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <napier/napier.h>

#include "lab/measure/environment.h"
#include "lab/run/results.h"

enum { VERSION = 1 };

static const char *system_poller(const struct spec_system *system)
{
	static const char *const kernel[] = {
		[SPEC_KERNEL_SOFTIRQ] = "softirq",
		[SPEC_KERNEL_THREADED] = "threaded",
		[SPEC_KERNEL_THREADED_BUSY_POLL] = "threaded-busy-poll",
		[SPEC_KERNEL_SOCKET_BUSY_POLL] = "socket-busy-poll",
	};

	switch (system->dut) {
	case SPEC_KERNEL:
		return kernel[system->kernel_poller];
	case SPEC_NAPIER:
		return poller_name(system->poller);
	case SPEC_COMMAND:
		break;
	}
	return NULL;
}

static json_t *system_json(const struct spec *spec, const struct spec_system *system)
{
	static const char *const duts[] = {"kernel", "napier", "command"};
	static const char *const handlers[] = {"socket", "host", "bridge", "router"};

	return json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:s?, s:{}, s:[], s:[], s:n}", "key",
			 system->key, "name", system->name, "scenario", system->scenario, "base",
			 spec_base(spec, system->scenario) == system, "dut", duts[system->dut],
			 "handler", handlers[system->handler], "poller", system_poller(system),
			 "settings", "commands", "placement", "skipped");
}

static const char *kind_name(enum load_kind kind)
{
	static const char *const kinds[] = {
		[LOAD_RR] = "rr", [LOAD_STREAM] = "stream", [LOAD_RRUL] = "rrul"};

	return kinds[kind];
}

static json_t *workload_json(const struct spec_workload *workload, const struct topology *topology,
			     int64_t duration)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "key", workload->key, "name", workload->name,
			 "kind", kind_name(workload->load.kind), "parameters",
			 load_config_json(&workload->load), "commands",
			 workload_commands(&workload->load, topology, duration));
}

static json_t *antagonist_json(const struct spec_antagonist *antagonist)
{
	bool background = antagonist->kind == SPEC_BACKGROUND;
	char cpus[256];

	cpuset_format(&antagonist->cpus, cpus, sizeof(cpus));
	return json_pack("{s:s, s:s, s:o?, s:s?, s:i, s:o?}", "key", antagonist->key, "kind",
			 spec_antagonist_kind_name(antagonist->kind), "threads",
			 antagonist->kind == SPEC_HOG ? json_integer(antagonist->threads) : NULL,
			 "cpus", *cpus ? cpus : NULL, "nice", antagonist->nice, "parameters",
			 background ? load_config_json(&antagonist->load) : NULL);
}

static void time_put(json_t *results, const char *key)
{
	time_t now = time(NULL);
	char text[32];
	struct tm utc;

	gmtime_r(&now, &utc);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	json_object_set_new(results, key, json_string(text));
}

static void arrays_fill(json_t *results, const struct spec *spec, const struct topology *topology,
			int64_t duration)
{
	json_t *scaled = json_array(), *systems = json_array(), *workloads = json_array(),
	       *antagonists = json_array();

	for (unsigned i = 0; i < spec->scaled; i++)
		json_array_append_new(scaled, json_string(spec->note[i]));
	for (unsigned i = 0; i < spec->systems; i++)
		json_array_append_new(systems, system_json(spec, &spec->system[i]));
	for (unsigned i = 0; i < spec->workloads; i++)
		json_array_append_new(workloads,
				      workload_json(&spec->workload[i], topology, duration));
	for (unsigned i = 0; i < spec->antagonists; i++)
		json_array_append_new(antagonists, antagonist_json(&spec->antagonist[i]));
	json_object_set_new(results, "scaled", scaled);
	json_object_set_new(results, "systems", systems);
	json_object_set_new(results, "workloads", workloads);
	json_object_set_new(results, "antagonists", antagonists);
}

json_t *results_begin(const struct spec *spec, const struct experiment_plan *plan,
		      const struct topology *topology)
{
	json_t *results = json_pack(
		"{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s?, s:s, s:[], s:[], s:n}",
		"schema", "napier-results", "version", VERSION, "napier", napier_version(), "name",
		spec->name, "title", spec->title, "source", spec->source, "question",
		spec->question, "length", plan->quick ? "quick" : "full", "partial", false,
		"specification", spec->text, "specification_path", spec->path, "runs", "notes",
		"peer_environment");

	time_put(results, "started");
	json_object_set_new(results, "duration_s", json_null());
	json_object_set_new(results, "command",
			    plan->command ? json_deep_copy(plan->command) : json_array());
	json_object_set_new(results, "set", plan->set ? json_deep_copy(plan->set) : json_object());
	json_object_set_new(results, "environment", environment_read());
	json_object_set_new(results, "topology", topology_json(topology));
	arrays_fill(results, spec, topology,
		    plan->quick ? spec->quick.duration : spec->full.duration);
	for (unsigned i = 0; i < spec->choices; i++)
		results_note(results, "%s", spec->choice[i]);
	return results;
}

static json_t *system_at(json_t *results, unsigned system)
{
	return json_array_get(json_object_get(results, "systems"), system);
}

void results_system_fill(json_t *results, unsigned system, const json_t *told)
{
	json_t *o = system_at(results, system), *value;
	const char *key;

	/* One that failed half-way tells less than one that did not. */
	json_object_foreach((json_t *)told, key, value)
	{
		json_t *has = json_object_get(o, key);
		size_t had = json_is_object(has) ? json_object_size(has) : json_array_size(has);
		size_t size =
			json_is_object(value) ? json_object_size(value) : json_array_size(value);

		if (size > had)
			json_object_set(o, key, value);
	}
}

bool results_system_skip(json_t *results, const struct spec *spec, unsigned system, uint32_t cannot,
			 const char *why)
{
	uint32_t all = (1u << spec->workloads) - 1, only = spec->system[system].only;

	if (only)
		all &= only;
	if ((cannot & all) != all)
		return false;
	json_object_set_new(system_at(results, system), "skipped", json_string(why));
	return true;
}

void results_run_add(json_t *results, const char *system, const char *workload, unsigned repeat,
		     double started, json_t *run)
{
	static const char *const keys[] = {"valid",	 "invalid",  "late",   "error",
					   "duration_s", "counts",   "rates",  "latency",
					   "series",	 "steps",    "server", "antagonists",
					   "cpu",	 "peer_cpu", "threads"};
	json_t *all = json_object_get(results, "runs");

	json_object_set_new(run, "system", json_string(system));
	json_object_set_new(run, "workload", json_string(workload));
	json_object_set_new(run, "repeat", json_integer(repeat));
	json_object_set_new(run, "order", json_integer((json_int_t)json_array_size(all)));
	json_object_set_new(run, "started_s", json_real(started));
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!json_object_get(run, keys[i]))
			json_object_set_new(run, keys[i], json_null());
	json_array_append(all, run);
}

void results_note(json_t *results, const char *format, ...)
{
	va_list arguments;
	char *text;
	int n;

	va_start(arguments, format);
	n = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (n < 0)
		return;
	json_array_append_new(json_object_get(results, "notes"), json_string(text));
	free(text);
}

void results_end(json_t *results, double duration, bool partial)
{
	json_object_set_new(results, "duration_s", json_real(duration));
	json_object_set_new(results, "partial", json_boolean(partial));
}

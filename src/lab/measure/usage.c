/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lab/measure/usage_json.h"

/* Of the first pid namespace: fixed in the kernel, as <linux/nsfs.h> says in later ones. */
#define PID_NAMESPACE_INIT 0xEFFFFFFCu

struct usage {
	struct usage_config config;
	struct moment_site site;
	struct napi_watch *watch;
	struct counters *counters;
	struct moment begin, end;
	bool begun, stopped;
	json_t *notes;
};

static void note(json_t *notes, const char *text, const char *why)
{
	json_array_append_new(notes, json_sprintf(text, why));
}

/* Programs at tracepoints see a thread's first number, which in a container is not ours. */
static bool numbers_are_ours(void)
{
	struct stat ns;

	return stat("/proc/self/ns/pid", &ns) || ns.st_ino == PID_NAMESPACE_INIT;
}

static void watch_open(struct usage *usage)
{
	const char *watched[USAGE_INTERFACES_MAX + 1];
	unsigned n = usage->config.interfaces;
	struct error err = {0};

	for (unsigned i = 0; i < n; i++)
		watched[i] = usage->config.interface[i];
	watched[n] = "";
	if (!numbers_are_ours())
		snprintf(err.text, sizeof(err.text), "threads have other numbers in a container");
	else if (!napi_watch_open(watched, n + 1, &usage->watch, &err))
		return;
	note(usage->notes,
	     "Softirq is not known (%s): what threads used themselves is not, either; gross_s has "
	     "both, and total_s is what the machine did, less other programs.",
	     err.text);
}

static void counters_have(struct usage *usage)
{
	static const struct counters_event event[USAGE_EVENTS] = {
		[USAGE_CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
		[USAGE_INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	};
	int ret = counters_open(event, USAGE_EVENTS, &usage->counters);

	if (ret)
		note(usage->notes, "Cycles and instructions are not counted here: %s.",
		     ret == -ENOENT || ret == -EOPNOTSUPP ? "this machine has no such counters"
							  : strerror(-ret));
}

static int config_check(const struct usage_config *config, struct error *err)
{
	if (config->parties > USAGE_PARTIES_MAX || config->interfaces > USAGE_INTERFACES_MAX)
		return error_set(err, -EINVAL,
				 "%u parties, %u interfaces: there is room for %d, %d",
				 config->parties, config->interfaces, USAGE_PARTIES_MAX,
				 USAGE_INTERFACES_MAX);
	for (unsigned i = 0; i < config->parties; i++)
		if (config->party[i].tids > USAGE_TIDS_MAX)
			return error_set(
				err, -EINVAL, "\"%s\" has %u threads, there is room for %d",
				config->party[i].name, config->party[i].tids, USAGE_TIDS_MAX);
	return 0;
}

/* Two of one name, in two namespaces, cannot be told apart: they are one. */
static void interfaces_once(struct usage_config *config)
{
	unsigned n = 0;

	for (unsigned i = 0; i < config->interfaces; i++) {
		bool had = false;

		for (unsigned k = 0; k < n; k++)
			had |= !strcmp(config->interface[k], config->interface[i]);
		if (!had)
			memmove(config->interface[n++], config->interface[i],
				sizeof(config->interface[0]));
	}
	config->interfaces = n;
}

int usage_open(const struct usage_config *config, struct usage **out, struct error *err)
{
	int ret = config_check(config, err);
	struct usage *usage;

	if (ret)
		return ret;
	usage = calloc(1, sizeof(*usage));
	if (!usage)
		return error_set(err, -ENOMEM, "no memory");
	usage->config = *config;
	interfaces_once(&usage->config);
	usage->notes = json_array();
	if (!usage->notes || moment_init(&usage->begin) || moment_init(&usage->end)) {
		usage_close(usage);
		return error_set(err, -ENOMEM, "no memory");
	}
	for (unsigned i = 0; i < config->parties; i++)
		for (unsigned t = 0; t < config->party[i].tids && !config->party[i].pid; t++)
			usage->site.party_process[i][t] = task_process(config->party[i].tid[t]);
	watch_open(usage);
	counters_have(usage);
	usage->site.config = &usage->config;
	usage->site.watch = usage->watch;
	*out = usage;
	return 0;
}

static void counters_drop(struct usage *usage)
{
	if (usage->counters)
		counters_close(usage->counters);
	usage->counters = NULL;
}

/* All that are there: usage_open may have been before some. */
static void counters_begin(struct usage *usage)
{
	for (unsigned i = 0; i < usage->begin.tasks && usage->counters; i++) {
		const struct moment_task *t = &usage->begin.task[i];
		int ret = t->party == PARTY_NONE
				  ? 0
				  : counters_add(usage->counters, t->task.thread, t->party);

		if (ret < 0) {
			note(usage->notes, "Cycles and instructions are not counted: %s.",
			     strerror(-ret));
			counters_drop(usage);
		}
	}
	if (usage->counters)
		counters_start(usage->counters);
}

void usage_begin(struct usage *usage)
{
	if (usage->counters)
		counters_clear(usage->counters); /* of an earlier window */
	moment_begin(&usage->site, &usage->begin);
	counters_begin(usage);
	usage->begun = true;
	usage->stopped = false;
}

void usage_stop(struct usage *usage)
{
	if (!usage->begun || usage->stopped)
		return;
	if (usage->counters)
		counters_stop(usage->counters);
	moment_end(&usage->site, &usage->begin, &usage->end);
	usage->stopped = true;
}

static void sampling_note(const struct account *account, json_t *notes)
{
	for (unsigned i = 0; i < account->threads; i++) {
		if (account->thread[i].used.gross > 0) {
			note(notes, "%s",
			     "User and system time are told apart by the kernel's "
			     "timer: a sample.");
			return;
		}
	}
}

json_t *usage_end(struct usage *usage, double operations)
{
	struct usage_view view = {
		.site = &usage->site,
		.begin = &usage->begin,
		.end = &usage->end,
		.operations = operations,
	};
	struct account account;
	json_t *o;

	if (!usage->begun)
		return NULL;
	usage_stop(usage);
	view.notes = json_copy(usage->notes);
	if (account_make(&usage->site, &usage->begin, &usage->end, &account, view.notes)) {
		json_decref(view.notes);
		return NULL;
	}
	sampling_note(&account, view.notes);
	view.counters = usage->counters;
	view.account = &account;
	o = usage_json(&view);
	account_free(&account);
	return o;
}

void usage_close(struct usage *usage)
{
	counters_drop(usage);
	if (usage->watch)
		napi_watch_close(usage->watch);
	moment_free(&usage->begin);
	moment_free(&usage->end);
	json_decref(usage->notes);
	free(usage);
}

void usage_engine_add(json_t *cpu, const struct engine_child_counts *from,
		      const struct engine_child_counts *to)
{
	uint64_t polls = to->polls - from->polls, packets = to->received - from->received;
	uint64_t merged = to->merged - from->merged;

	json_object_set_new(
		cpu, "napier",
		json_pack("{s:I, s:I, s:o, s:o}", "polls", (json_int_t)polls, "packets",
			  (json_int_t)packets, "packets_per_poll",
			  polls ? json_real((double)packets / (double)polls) : json_null(),
			  "gro_ratio",
			  packets > merged ? json_real((double)packets / (double)(packets - merged))
					   : json_null()));
}

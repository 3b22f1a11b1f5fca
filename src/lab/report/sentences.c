/* SPDX-License-Identifier: BSD-2-Clause */
/* Nothing is said here that is not a figure of the results, or a count of them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/report/words.h"

/* Other programs' use, in CPUs, above which figures say little. */
#define DISTURBED 0.1

struct text {
	FILE *out;
	char *text;
	size_t size;
};

static void text_begin(struct text *text)
{
	*text = (struct text){0};
	text->out = open_memstream(&text->text, &text->size);
}

__attribute__((format(printf, 2, 3))) static void text_add(struct text *text, const char *format,
							   ...)
{
	va_list arguments;

	if (!text->out)
		return;
	va_start(arguments, format);
	vfprintf(text->out, format, arguments);
	va_end(arguments);
}

/* An empty one is none. */
static void text_end(struct text *text, json_t *sentences)
{
	if (!text->out || fclose(text->out) || !text->text)
		return;
	if (*text->text)
		json_array_append_new(sentences, json_string(text->text));
	free(text->text);
}

__attribute__((format(printf, 2, 3))) static void sentence_add(json_t *sentences,
							       const char *format, ...)
{
	struct text text;
	va_list arguments;

	text_begin(&text);
	if (!text.out)
		return;
	va_start(arguments, format);
	vfprintf(text.out, format, arguments);
	va_end(arguments);
	text_end(&text, sentences);
}

static void ratio_add(struct text *text, const json_t *comparison)
{
	char ratio[WORDS_MAX], low[WORDS_MAX], high[WORDS_MAX];
	double value, from, to;

	if (!path_number(comparison, "ratio", &value))
		return;
	text_add(text, " (%s", ratio_text(value, ratio));
	if (path_number(comparison, "low", &from) && path_number(comparison, "high", &to))
		text_add(text, ", %s to %s", ratio_text(from, low), ratio_text(to, high));
	text_add(text, ")");
}

/* Names have commas in them, so a semicolon is between two. */
static void verdict_add(struct text *text, const struct results *results, const struct group *group,
			const char *path, enum verdict verdict)
{
	static const char *const leads[] = {
		[VERDICT_BETTER] = "Better with ",
		[VERDICT_WORSE] = "Worse with ",
		[VERDICT_NONE] = "No difference with ",
		[VERDICT_UNKNOWN] = "Not known with ",
	};
	unsigned n = 0;

	for (unsigned i = 0; i < group->systems; i++) {
		const json_t *comparison =
			results_comparison(results, text_of(group->system[i], "key"),
					   text_of(group->workload, "key"), path);

		if (group->system[i] == group->base || !comparison ||
		    verdict_of(comparison) != verdict)
			continue;
		text_add(text, "%s%s", n++ ? "; " : leads[verdict], system_name(group->system[i]));
		ratio_add(text, comparison);
	}
	if (n)
		text_add(text, ". ");
}

/* "p99 against A's 34.8 us. Better with B (0.31x, 0.28x to 0.35x); C (…). Worse with D (…)." */
static void metric_sentence(const struct results *results, const struct group *group,
			    const char *path, json_t *sentences)
{
	static const enum verdict order[] = {VERDICT_BETTER, VERDICT_WORSE, VERDICT_NONE,
					     VERDICT_UNKNOWN};
	char name[WORDS_MAX], value[WORDS_MAX];
	struct text parts;
	struct metric base;

	text_begin(&parts);
	for (unsigned i = 0; i < 4; i++)
		verdict_add(&parts, results, group, path, order[i]);
	if (!parts.out || fclose(parts.out) || !parts.text)
		return;
	if (*parts.text && results_metric(results, text_of(group->base, "key"),
					  text_of(group->workload, "key"), path, &base)) {
		parts.text[strlen(parts.text) - 1] = 0; /* the blank */
		sentence_add(sentences, "%s against %s's %s. %s", metric_name(path, name),
			     system_name(group->base), metric_text(path, base.median, value),
			     parts.text);
	}
	free(parts.text);
}

static void cores_sentence(const struct results *results, const struct group *group,
			   json_t *sentences)
{
	const char *workload = text_of(group->workload, "key");
	struct metric base, m;
	unsigned others = 0, unequal = 0;
	double least, most;
	struct text text;

	if (!group->base || !results_metric(results, text_of(group->base, "key"), workload,
					    "cpu.cores_used", &base))
		return;
	least = most = base.median;
	text_begin(&text);
	for (unsigned i = 0; i < group->systems; i++) {
		if (group->system[i] == group->base ||
		    !results_metric(results, text_of(group->system[i], "key"), workload,
				    "cpu.cores_used", &m))
			continue;
		others++;
		least = fmin(least, m.median);
		most = fmax(most, m.median);
		if (!cores_differ(m.median, base.median))
			continue;
		text_add(&text, "%s%s (%.2f)",
			 unequal++ ? "; " : "Not equal cores: ", system_name(group->system[i]),
			 m.median);
	}
	if (unequal)
		text_add(&text, "; against %s (%.2f). No comparison of equals.",
			 system_name(group->base), base.median);
	else if (others)
		text_add(&text, "Equal cores: all used %.2f to %.2f.", least, most);
	text_end(&text, sentences);
}

json_t *group_sentences(const struct results *results, const struct group *group)
{
	char path[KEY_METRICS_MAX][RESULTS_PATH_MAX];
	unsigned n = key_metrics(group, path);
	json_t *sentences = json_array();

	for (unsigned i = 0; i < n && group->base; i++)
		metric_sentence(results, group, path[i], sentences);
	cores_sentence(results, group, sentences);
	return sentences;
}

struct census {
	unsigned runs, valid, invalid, failed, least, most;
	double others;
	const json_t *disturbed; /* the valid run in which others used most */
};

static void runs_count(const struct results *results, struct census *census)
{
	const json_t *run, *runs = json_object_get(results->json, "runs"), *of;
	const char *key;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		const json_t *error = json_object_get(run, "error");
		double others, duration;

		census->runs++;
		if (error && !json_is_null(error))
			census->failed++;
		else if (!run_valid(run))
			census->invalid++;
		else
			census->valid++;
		if (run_valid(run) && path_number(run, "cpu.others_s", &others) &&
		    run_wall(run, &duration) && others / duration > census->others) {
			census->others = others / duration;
			census->disturbed = run;
		}
	}
	census->least = ~0u;
	json_object_foreach(results->runs, key, of)
	{
		unsigned n = 0;

		json_array_foreach(of, i, run) n += run_valid(run);
		census->least = n && n < census->least ? n : census->least;
		census->most = n > census->most ? n : census->most;
	}
}

static void verdicts_count(const struct results *results, unsigned count[4])
{
	char path[KEY_METRICS_MAX][RESULTS_PATH_MAX];

	for (unsigned g = 0; g < results->groups; g++) {
		const struct group *group = &results->group[g];
		unsigned n = key_metrics(group, path);

		for (unsigned i = 0; i < n * group->systems; i++) {
			const json_t *system = group->system[i / n];
			const json_t *comparison =
				results_comparison(results, text_of(system, "key"),
						   text_of(group->workload, "key"), path[i % n]);

			if (comparison && system != group->base)
				count[verdict_of(comparison)]++;
		}
	}
}

static unsigned skipped_count(const struct results *results)
{
	const json_t *system;
	unsigned n = 0;
	size_t i;

	json_array_foreach(json_object_get(results->json, "systems"), i, system) n +=
		*text_of(system, "skipped") != 0;
	return n;
}

static void measured_sentence(const struct results *results, const struct census *census,
			      json_t *sentences)
{
	unsigned skipped = skipped_count(results);
	size_t systems = json_array_size(json_object_get(results->json, "systems"));
	size_t workloads = json_array_size(json_object_get(results->json, "workloads"));
	struct text text;

	text_begin(&text);
	text_add(&text, "%zu system%s under %zu workload%s: %u run%s in turn, forth and back",
		 systems - skipped, systems - skipped == 1 ? "" : "s", workloads,
		 workloads == 1 ? "" : "s", census->runs, census->runs == 1 ? "" : "s");
	if (census->invalid)
		text_add(&text, "; %u invalid, which count for nothing", census->invalid);
	if (census->failed)
		text_add(&text, "; %u failed", census->failed);
	if (skipped)
		text_add(&text, "; %u system%s could not be had here", skipped,
			 skipped == 1 ? "" : "s");
	text_add(&text, ".");
	text_end(&text, sentences);
}

struct extreme {
	const struct group *group;
	const json_t *system;
	const char *name; /* of the metric */
	double ratio;
};

/* How far from 1, whichever way is meant. */
static double distance(double ratio)
{
	return ratio > 0 ? fabs(log(ratio)) : 0;
}

struct balance {
	struct extreme best, worst;
	unsigned faster, dearer;    /* p99 is better; and CPU per operation worse */
	unsigned compared, unequal; /* with the base; not with as many cores */
	struct extreme cores;	    /* the most unequal */
	double cores_used, cores_base;
};

static void verdict_weigh(struct balance *balance, const struct group *group, const json_t *system,
			  const json_t *comparison, const char *name)
{
	enum verdict verdict = verdict_of(comparison);
	struct extreme *extreme = verdict == VERDICT_BETTER  ? &balance->best
				  : verdict == VERDICT_WORSE ? &balance->worst
							     : NULL;
	double ratio;

	if (extreme && path_number(comparison, "ratio", &ratio) &&
	    (!extreme->group || distance(ratio) > distance(extreme->ratio)))
		*extreme = (struct extreme){group, system, name, ratio};
}

static void cores_weigh(const struct results *results, const struct group *group,
			const json_t *system, struct balance *balance)
{
	const char *workload = text_of(group->workload, "key");
	struct metric m, base;

	if (!results_metric(results, text_of(system, "key"), workload, "cpu.cores_used", &m) ||
	    !results_metric(results, text_of(group->base, "key"), workload, "cpu.cores_used",
			    &base))
		return;
	balance->compared++;
	if (!cores_differ(m.median, base.median) || base.median <= 0)
		return;
	balance->unequal++;
	if (!balance->cores.group ||
	    distance(m.median / base.median) > distance(balance->cores.ratio)) {
		balance->cores = (struct extreme){group, system, NULL, m.median / base.median};
		balance->cores_used = m.median;
		balance->cores_base = base.median;
	}
}

static void system_weigh(const struct results *results, const struct group *group,
			 const json_t *system, struct balance *balance)
{
	const char *workload = text_of(group->workload, "key"), *key = text_of(system, "key");
	const json_t *tail = NULL, *cost, *rate = NULL;
	char path[RESULTS_PATH_MAX + 8];

	if (*group->latency) {
		snprintf(path, sizeof(path), "%s.p99", group->latency);
		tail = results_comparison(results, key, workload, path);
	}
	if (*group->rate)
		rate = results_comparison(results, key, workload, group->rate);
	cost = results_comparison(results, key, workload, "cpu.ns_per_operation.total");
	verdict_weigh(balance, group, system, tail, "p99");
	verdict_weigh(balance, group, system, rate, rate_title(group->rate));
	if (verdict_of(tail) == VERDICT_BETTER) {
		balance->faster++;
		balance->dearer += verdict_of(cost) == VERDICT_WORSE;
	}
	cores_weigh(results, group, system, balance);
}

static void extreme_sentence(const char *lead, const struct extreme *extreme, json_t *sentences)
{
	char ratio[WORDS_MAX];

	if (extreme->group)
		sentence_add(sentences, "%s: %s of \"%s\", %s that of \"%s\" (%s%s%s).", lead,
			     extreme->name, system_name(extreme->system),
			     ratio_text(extreme->ratio, ratio), system_name(extreme->group->base),
			     workload_name(extreme->group->workload),
			     *extreme->group->scenario ? "; " : "", extreme->group->scenario);
}

static void balance_sentences(const struct results *results, json_t *sentences)
{
	struct balance balance = {0};

	for (unsigned g = 0; g < results->groups; g++) {
		const struct group *group = &results->group[g];

		for (unsigned s = 0; s < group->systems; s++) {
			if (group->base && group->system[s] != group->base)
				system_weigh(results, group, group->system[s], &balance);
		}
	}
	extreme_sentence("The largest gain", &balance.best, sentences);
	extreme_sentence("The largest loss", &balance.worst, sentences);
	if (balance.faster)
		sentence_add(sentences,
			     "What it costs: of %u better p99, %u %s with more CPU time per "
			     "operation than the base's.",
			     balance.faster, balance.dearer,
			     balance.dearer == 1 ? "comes" : "come");
	if (balance.unequal)
		sentence_add(
			sentences,
			"Cores: %u of %u comparisons are not of equals, since other numbers of "
			"cores were used; most of all \"%s\" (%.2f) against \"%s\" (%.2f).",
			balance.unequal, balance.compared, system_name(balance.cores.system),
			balance.cores_used, system_name(balance.cores.group->base),
			balance.cores_base);
	else if (balance.compared)
		sentence_add(sentences,
			     "Cores: all %u comparisons are of equal numbers of cores used.",
			     balance.compared);
}

json_t *results_findings(const struct results *results)
{
	json_t *sentences = json_array();
	unsigned count[4] = {0}, all = 0;

	verdicts_count(results, count);
	for (unsigned i = 0; i < 4; i++)
		all += count[i];
	if (!all)
		return sentences;
	balance_sentences(results, sentences);
	sentence_add(sentences,
		     "Of %u comparisons with the base of their scenario (p99, rate, CPU per "
		     "operation), %u are better, %u worse, %u show no difference%s.",
		     all, count[VERDICT_BETTER], count[VERDICT_WORSE], count[VERDICT_NONE],
		     count[VERDICT_UNKNOWN] ? ", and the rest cannot be told" : "");
	return sentences;
}

json_t *results_trust(const struct results *results)
{
	json_t *sentences = json_array();
	struct census census = {0};

	runs_count(results, &census);
	measured_sentence(results, &census, sentences);
	if (json_is_true(json_object_get(results->json, "partial")))
		sentence_add(sentences,
			     "It was stopped before its end: systems have unequal numbers of "
			     "repeats, and some may be missing.");
	if (!census.valid) {
		sentence_add(sentences, "No run is valid, so nothing can be said.");
		return sentences;
	}
	/* With fewer a note of summary_add says what an interval is worth. */
	if (census.least >= 6)
		sentence_add(sentences,
			     "Medians of %u to %u valid repeats, with 95%% bootstrap intervals; a "
			     "difference whose interval has 1 in it is none.",
			     census.least, census.most);
	if (census.others > DISTURBED)
		sentence_add(sentences,
			     "Other programs used up to %.2f CPUs meanwhile (%s under %s): run it "
			     "again when the machine is quiet.",
			     census.others, text_of(census.disturbed, "system"),
			     text_of(census.disturbed, "workload"));
	return sentences;
}

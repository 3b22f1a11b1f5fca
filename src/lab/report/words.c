/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/report/words.h"

const char *const verdict_names[] = {
	[VERDICT_UNKNOWN] = "unknown",
	[VERDICT_NONE] = "none",
	[VERDICT_BETTER] = "better",
	[VERDICT_WORSE] = "worse",
};

/* So many that three digits are left. */
static int decimals_of(double value)
{
	value = fabs(value);
	return value == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
}

/* In the largest unit that leaves something before the point. */
static const char *scaled_text(double value, const char *const *units, unsigned n,
			       char text[WORDS_MAX])
{
	unsigned unit = 0;

	while (fabs(value) >= 999.5 && unit + 1 < n) {
		value /= 1000;
		unit++;
	}
	/* Small numbers without a unit are mostly whole ones. */
	snprintf(text, WORDS_MAX, "%.*f%s", !unit && value == floor(value) ? 0 : decimals_of(value),
		 value, units[unit]);
	return text;
}

const char *count_text(double value, char text[WORDS_MAX])
{
	static const char *const units[] = {"", "k", "M", "G", "T"};

	return scaled_text(value, units, 5, text);
}

const char *latency_text(double ns, char text[WORDS_MAX])
{
	static const char *const units[] = {" ns", " us", " ms", " s"};

	return scaled_text(ns, units, 4, text);
}

const char *ratio_text(double ratio, char text[WORDS_MAX])
{
	snprintf(text, WORDS_MAX, "%.*fx", ratio == 0 ? 2 : decimals_of(ratio), ratio);
	return text;
}

const char *spread_text(const struct metric *m, char text[WORDS_MAX])
{
	double spread = m->median != 0 ? 50 * (m->high - m->low) / fabs(m->median) : 0;

	*text = 0;
	if (m->n > 1 && !m->pooled)
		snprintf(text, WORDS_MAX, " ±%.*f%%", spread > 0 && spread < 0.95 ? 1 : 0,
			 spread < 999 ? spread : 999);
	return text;
}

const char *lost_text(const struct row *row, char text[WORDS_MAX])
{
	double share = row->of > 0 ? 100 * row->lost / row->of : 0;

	if (share >= 0.01)
		snprintf(text, WORDS_MAX, "%.*f%%", decimals_of(share), share);
	else
		count_text(row->lost, text);
	return text;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

static const char *last_of(const char *path)
{
	const char *latency = strstr(path, "latency.");
	const char *dot = latency ? strchr(latency + 8, '.') : strrchr(path, '.');

	return dot ? dot + 1 : path;
}

const char *rate_title(const char *path)
{
	if (ends_with(path, "transactions"))
		return "transactions/s";
	if (ends_with(path, "received_mbit"))
		return "Mbit/s received";
	if (ends_with(path, "sent_mbit"))
		return "Mbit/s sent";
	if (ends_with(path, "down_mbit"))
		return "Mbit/s down";
	if (ends_with(path, "_mbit"))
		return "Mbit/s";
	if (ends_with(path, "received_datagrams"))
		return "datagrams/s received";
	return "a second";
}

const char *rate_unit(const char *path)
{
	return ends_with(path, "_mbit") ? " Mbit/s" : "/s";
}

const char *metric_name(const char *path, char text[WORDS_MAX])
{
	const char *latency = strstr(path, "latency.");
	int length = (int)(last_of(path) - 1 - (latency ? latency + 8 : path));

	if (latency && strncmp(latency + 8, "response.", 9) && strncmp(latency + 8, "service.", 8))
		snprintf(text, WORDS_MAX, "%s of %.*s", last_of(path), length, latency + 8);
	else if (latency)
		snprintf(text, WORDS_MAX, "%s", last_of(path));
	else if (!strncmp(path, "rates.", 6))
		snprintf(text, WORDS_MAX, "%s", rate_title(path));
	else if (!strcmp(path, "cpu.ns_per_operation.total"))
		snprintf(text, WORDS_MAX, "CPU per operation");
	else if (!strcmp(path, "cpu.cores_used"))
		snprintf(text, WORDS_MAX, "cores used");
	else
		snprintf(text, WORDS_MAX, "%.47s", path);
	return text;
}

const char *metric_text(const char *path, double value, char text[WORDS_MAX])
{
	char number[WORDS_MAX];

	if ((strstr(path, "latency.") && strcmp(last_of(path), "n")) ||
	    strstr(path, "ns_per_operation") || ends_with(path, "_ns"))
		return latency_text(value, text);
	if (ends_with(path, "_s"))
		return latency_text(value * 1e9, text);
	if (ends_with(path, "_mbit"))
		snprintf(text, WORDS_MAX, "%.*f Mbit/s", decimals_of(value), value);
	else if (strstr(path, "rates."))
		snprintf(text, WORDS_MAX, "%.40s/s", count_text(value, number));
	else
		count_text(value, text);
	return text;
}

static const char *name_or_key(const json_t *o)
{
	const char *name = text_of(o, "name");

	return *name ? name : text_of(o, "key");
}

const char *workload_name(const json_t *workload)
{
	return name_or_key(workload);
}

const char *system_name(const json_t *system)
{
	return name_or_key(system);
}

enum verdict verdict_of(const json_t *comparison)
{
	const char *verdict = text_of(comparison, "verdict");

	for (unsigned v = VERDICT_NONE; v <= VERDICT_WORSE; v++) {
		if (!strcmp(verdict, verdict_names[v]))
			return (enum verdict)v;
	}
	return VERDICT_UNKNOWN;
}

unsigned key_metrics(const struct group *group, char path[KEY_METRICS_MAX][RESULTS_PATH_MAX])
{
	unsigned n = 0;

	if (*group->latency)
		snprintf(path[n++], RESULTS_PATH_MAX, "%.140s.p99", group->latency);
	if (*group->rate)
		snprintf(path[n++], RESULTS_PATH_MAX, "%s", group->rate);
	snprintf(path[n++], RESULTS_PATH_MAX, "cpu.ns_per_operation.total");
	return n;
}

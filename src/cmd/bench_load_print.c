/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <lab/measure/latency.h>

#include <cmd/bench_load.h>
#include <cmd/table.h>

bool load_percentiles_parse(const char *text, struct load_percentiles *out)
{
	*out = (struct load_percentiles){0};
	for (;;) {
		char *end;
		double value = strtod(text, &end);
		size_t length = (size_t)(end - text);
		long millionths;

		if (!length || (*end && *end != ',') || !(value > 0 && value < 100) ||
		    out->n == LOAD_PERCENTILES_MAX || length >= sizeof(out->at[0].name))
			return false;
		millionths = lround(value * 10000);
		if (millionths < 1 || millionths > 999999)
			return false;
		out->at[out->n].millionths = (uint32_t)millionths;
		snprintf(out->at[out->n++].name, sizeof(out->at[0].name), "%.*s", (int)length,
			 text);
		if (!*end)
			return true;
		text = end + 1;
	}
}

/* "1 flow", "4 flows" */
#define PLURAL(n) (n), (n) == 1 ? "" : "s"

void load_words(const struct load_config *config, char *text, size_t size)
{
	static const char *const directions[] = {"up", "down", "both ways"};
	const char *protocol = config->protocol == LOAD_UDP ? "UDP" : "TCP";
	char rate[64] = "closed loop";

	if (config->rate > 0)
		snprintf(rate, sizeof(rate), "%g/s%s", config->rate,
			 config->arrivals == LOAD_POISSON ? " at random" : "");
	if (config->kind == LOAD_RRUL)
		snprintf(text, size, "rrul: %u TCP flow%s each way", PLURAL(config->tcp_flows));
	else if (config->kind == LOAD_RR)
		snprintf(text, size,
			 "rr: %s%s, %u flow%s, %u thread%s, requests of %u B, responses of %u B, "
			 "%s",
			 protocol, config->connect ? " with a connection for each" : "",
			 PLURAL(config->flows), PLURAL(config->threads), config->request_size,
			 config->response_size, rate);
	else
		snprintf(text, size, "stream: %s %s, %u flow%s, %u thread%s%s%s", protocol,
			 directions[config->direction], PLURAL(config->flows),
			 PLURAL(config->threads), config->rate > 0 ? ", " : "",
			 config->rate > 0 ? rate : "");
}

enum { TEXT_MAX = 48 };

/* "41.2 us": three digits say what a measurement knows. */
static const char *time_text(double ns, char text[TEXT_MAX])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	unsigned unit = 0;

	while (ns >= 1000 && unit < 3) {
		ns /= 1000;
		unit++;
	}
	snprintf(text, TEXT_MAX, "%.*f %s",
		 ns >= 100 || !unit ? 0
		 : ns >= 10	    ? 1
				    : 2,
		 ns, units[unit]);
	return text;
}

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

/* "received_mbit": "received Mbit/s". */
static const char *rate_text(const char *key, char text[TEXT_MAX])
{
	size_t length = strlen(key);
	const char *unit = "/s";

	if (length > 5 && !strcmp(key + length - 5, "_mbit")) {
		length -= 5;
		unit = " Mbit/s";
	}
	snprintf(text, TEXT_MAX, "%.*s%s", (int)(length < 36 ? length : 36), key, unit);
	for (char *c = text; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	return text;
}

static void value_cell(struct table *table, const json_t *value)
{
	double n = json_number_value(value);

	if (json_is_null(value))
		table_cell(table, COLOUR_NONE, "-");
	else
		table_cell(table, COLOUR_NONE, "%.*f", n != floor(n) && n < 1000 ? 2 : 0, n);
}

/* Rates, and counts that are not 0. */
static void figures_print(const json_t *run, FILE *out)
{
	static const char *const titles[] = {"<", ""};
	struct table *table = table_create(2, titles);
	json_t *value;
	const char *key;
	char text[TEXT_MAX];

	if (!table)
		return;
	json_object_foreach(json_object_get(run, "rates"), key, value)
	{
		table_cell(table, COLOUR_NONE, "%s", rate_text(key, text));
		value_cell(table, value);
	}
	json_object_foreach(json_object_get(run, "counts"), key, value)
	{
		bool lost = !strcmp(key, "lost");

		if (json_number_value(value) == 0 && !lost)
			continue;
		snprintf(text, sizeof(text), "%.40s", key);
		for (char *c = text; *c; c++)
			*c = *c == '_' ? ' ' : *c;
		table_cell(table, COLOUR_NONE, "%s", text);
		value_cell(table, value);
	}
	table_print(table, out);
}

static void latency_row(struct table *table, const char *name, const json_t *latency,
			const struct load_percentiles *percentiles)
{
	static struct histogram h;
	char text[TEXT_MAX];
	uint64_t value;

	table_cell(table, COLOUR_NONE, "%s", name);
	table_cell(table, COLOUR_NONE, "%.0f", number(latency, "n"));
	if (latency_read(latency, &h) || !h.n) {
		for (unsigned i = 0; i < percentiles->n + 3; i++)
			table_cell(table, COLOUR_NONE, "-");
		return;
	}
	table_cell(table, COLOUR_NONE, "%s", time_text(number(latency, "min"), text));
	table_cell(table, COLOUR_NONE, "%s", time_text(number(latency, "mean"), text));
	for (unsigned i = 0; i < percentiles->n; i++) {
		if (histogram_percentile(&h, percentiles->at[i].millionths, &value))
			table_cell(table, COLOUR_NONE, "%s", time_text((double)value, text));
		else
			table_cell(table, COLOUR_NONE, "-");
	}
	table_cell(table, COLOUR_NONE, "%s", time_text(number(latency, "max"), text));
}

static void latency_print(const json_t *all, const struct load_percentiles *percentiles, FILE *out)
{
	static char names[LOAD_PERCENTILES_MAX][sizeof(percentiles->at[0].name) + 1];
	const char *titles[TABLE_COLUMNS_MAX] = {"<latency", "n", "min", "mean"};
	unsigned n = 4;
	struct table *table;
	json_t *value;
	const char *key;

	for (unsigned i = 0; i < percentiles->n && n < TABLE_COLUMNS_MAX - 1; i++) {
		snprintf(names[i], sizeof(names[i]), "p%s", percentiles->at[i].name);
		titles[n++] = names[i];
	}
	titles[n++] = "max";
	table = json_object_size(all) ? table_create(n, titles) : NULL;
	if (!table)
		return;
	json_object_foreach((json_t *)all, key, value) latency_row(table, key, value, percentiles);
	fputc('\n', out);
	table_print(table, out);
}

enum { STEP_RATES_MAX = 8 };

static void steps_print(const json_t *steps, FILE *out)
{
	static char names[STEP_RATES_MAX][TEXT_MAX];
	const char *titles[STEP_RATES_MAX + 3] = {"<step", "s"}, *keys[STEP_RATES_MAX], *key;
	json_t *rates = json_object_get(json_array_get(steps, json_array_size(steps) - 1), "rates");
	json_t *value, *step;
	unsigned n = 0;
	struct table *table;
	size_t at;

	/* The last one: of an idle time before a load there are none. Too many are no table. */
	if (json_array_size(steps) < 2 || json_object_size(rates) > STEP_RATES_MAX)
		return;
	json_object_foreach(rates, key, value)
	{
		keys[n] = key;
		titles[2 + n] = rate_text(key, names[n]);
		n++;
	}
	titles[2 + n] = "lost";
	table = table_create(n + 3, titles);
	if (!table)
		return;
	json_array_foreach((json_t *)steps, at, step)
	{
		table_cell(table, COLOUR_NONE, "%s",
			   json_string_value(json_object_get(step, "name")));
		table_cell(table, COLOUR_NONE, "%.2f", number(step, "duration_s"));
		for (unsigned i = 0; i < n; i++)
			value_cell(table, json_object_get(json_object_get(step, "rates"), keys[i]));
		value_cell(table, json_object_get(json_object_get(step, "counts"), "lost"));
	}
	fputc('\n', out);
	table_print(table, out);
}

static void cpu_print(const json_t *cpu, const char *title, FILE *out)
{
	const char *titles[] = {title, "CPUs", "ns/operation"};
	json_t *parties = json_object_get(cpu, "parties"), *party;
	json_t *each = json_object_get(cpu, "ns_per_operation");
	double wall = number(cpu, "wall_s");
	struct table *table = parties && wall > 0 ? table_create(3, titles) : NULL;
	const char *key;

	if (!table)
		return;
	json_object_foreach(parties, key, party)
	{
		json_t *ns = json_object_get(each, key);

		table_cell(table, COLOUR_NONE, "%s", key);
		table_cell(table, COLOUR_NONE, "%.2f", number(party, "total_s") / wall);
		if (json_is_number(ns))
			table_cell(table, COLOUR_NONE, "%.0f", json_number_value(ns));
		else
			table_cell(table, COLOUR_NONE, "-");
	}
	fputc('\n', out);
	table_print(table, out);
}

void load_table(const json_t *run, const struct load_config *config,
		const struct load_percentiles *percentiles, FILE *out)
{
	char words[256];

	load_words(config, words, sizeof(words));
	fprintf(out, "%s; %.2f s%s\n\n", words, number(run, "duration_s"),
		json_is_true(json_object_get(run, "partial")) ? ", stopped early" : "");
	figures_print(run, out);
	latency_print(json_object_get(run, "latency"), percentiles, out);
	steps_print(json_object_get(run, "steps"), out);
	cpu_print(json_object_get(run, "cpu"), "<CPU time of", out);
	cpu_print(json_object_get(run, "peer_cpu"), "<CPU time there", out);
}

/* Names are those of the results, with '_' for what cannot be in one of a shell. */
static void key_print(FILE *out, const char *prefix, const char *name, const json_t *value)
{
	if (!json_is_number(value))
		return;
	for (const char *c = prefix; *c; c++)
		fputc(isalnum((unsigned char)*c) ? *c : '_', out);
	for (const char *c = name; *c; c++)
		fputc(isalnum((unsigned char)*c) || *c == '.' ? *c : '_', out);
	if (json_is_integer(value))
		fprintf(out, "=%lld\n", (long long)json_integer_value(value));
	else
		fprintf(out, "=%.9g\n", json_real_value(value));
}

static void keys_print(FILE *out, const char *prefix, const json_t *o)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)o, key, value) key_print(out, prefix, key, value);
}

/* In s, as neper has it. */
static void latency_keys(FILE *out, const char *prefix, const json_t *latency,
			 const struct load_percentiles *percentiles)
{
	static struct histogram h;
	uint64_t value;

	fprintf(out, "%sn=%.0f\n", prefix, number(latency, "n"));
	if (latency_read(latency, &h) || !h.n)
		return;
	fprintf(out, "%smin=%.9f\n%smean=%.9f\n%smax=%.9f\n", prefix, number(latency, "min") / 1e9,
		prefix, number(latency, "mean") / 1e9, prefix, number(latency, "max") / 1e9);
	for (unsigned i = 0; i < percentiles->n; i++)
		if (histogram_percentile(&h, percentiles->at[i].millionths, &value))
			fprintf(out, "%sp%s=%.9f\n", prefix, percentiles->at[i].name,
				(double)value / 1e9);
}

static void steps_keys(FILE *out, const json_t *steps)
{
	size_t at;
	json_t *step;

	json_array_foreach((json_t *)steps, at, step)
	{
		char prefix[TEXT_MAX];

		snprintf(prefix, sizeof(prefix), "step_%.32s_",
			 json_string_value(json_object_get(step, "name")));
		keys_print(out, prefix, json_object_get(step, "rates"));
		keys_print(out, prefix, json_object_get(step, "counts"));
	}
}

static void cpu_keys(FILE *out, const char *prefix, const json_t *cpu)
{
	json_t *parties = json_object_get(cpu, "parties"), *party;
	const char *key;
	char name[TEXT_MAX];

	json_object_foreach(parties, key, party)
	{
		snprintf(name, sizeof(name), "%.30s_s", key);
		key_print(out, prefix, name, json_object_get(party, "total_s"));
	}
	json_object_foreach(json_object_get(cpu, "ns_per_operation"), key, party)
	{
		snprintf(name, sizeof(name), "%.30s_ns_per_operation", key);
		key_print(out, prefix, name, party);
	}
}

/* What is the throughput of it, and in what. */
static void throughput_print(FILE *out, const json_t *rates, const struct load_config *config)
{
	bool rr = config->kind == LOAD_RR;
	const json_t *value = json_object_get(rates, rr ? "transactions" : "received_mbit");

	if (!json_is_number(value))
		return;
	fprintf(out, "throughput=%.2f\nthroughput_units=%s\n", json_number_value(value),
		rr ? "transactions/s" : "Mbit/s");
}

void load_keys(const json_t *run, const struct load_config *config,
	       const struct load_percentiles *percentiles, FILE *out)
{
	const char *key;
	json_t *value;

	fprintf(out, "valid=%d\ntotal_run_time=%.6f\nnum_flows=%u\nnum_threads=%u\n",
		json_is_true(json_object_get(run, "valid")), number(run, "duration_s"),
		config->kind == LOAD_RRUL ? 2 * config->tcp_flows : config->flows, config->threads);
	throughput_print(out, json_object_get(run, "rates"), config);
	keys_print(out, "rate_", json_object_get(run, "rates"));
	keys_print(out, "num_", json_object_get(run, "counts"));
	json_object_foreach(json_object_get(run, "latency"), key, value)
	{
		char prefix[TEXT_MAX] = "latency_";

		/* From the send: what neper measures. */
		if (strcmp(key, "service"))
			snprintf(prefix, sizeof(prefix), "latency_%.32s_", key);
		latency_keys(out, prefix, value, percentiles);
	}
	steps_keys(out, json_object_get(run, "steps"));
	cpu_keys(out, "cpu_", json_object_get(run, "cpu"));
	cpu_keys(out, "peer_cpu_", json_object_get(run, "peer_cpu"));
}

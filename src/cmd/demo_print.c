/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include <napier/napier.h>

#include <cmd/demo_print.h>
#include <cmd/table.h>

/* Other programs' use, in CPUs, above which the figures say little. */
#define DISTURBED 0.1
/* A ratio this near to 1 is called the same: the rounds differ by as much. */
#define ALIKE 0.05

static const struct {
	const char *name;
	uint32_t millionths;
} percentiles[] = {{"p50", 500000}, {"p90", 900000}, {"p99", 990000}, {"p99.9", 999000}};

enum { PERCENTILES = sizeof(percentiles) / sizeof(*percentiles), P50 = 0, P99 = 2 };

/* In us; 0 when it is not available. */
static double percentile_us(const struct histogram *h, unsigned which)
{
	uint64_t ns;

	return histogram_percentile(h, percentiles[which].millionths, &ns) ? (double)ns / 1e3 : 0;
}

static bool percentiles_short(const struct histogram *h)
{
	for (unsigned p = 0; p < PERCENTILES; p++)
		if (!(percentile_us(h, p) > 0))
			return true;
	return false;
}

/* What "n/a" in the table stands for, where it is there. */
static void gaps_explain(const struct demo *demo, FILE *out)
{
	bool samples = false, cpu = false;

	for (unsigned kind = 0; kind < COMPARE_KINDS; kind++) {
		for (unsigned load = 0; load < COMPARE_LOADS; load++) {
			const struct compare_cell *cell = &demo->result->cell[kind][load];

			if (demo->result->skipped[kind][0])
				continue;
			samples |= percentiles_short(&cell->latency);
			cpu |= !cell->cpu.n;
		}
	}
	if (samples)
		fprintf(out,
			"n/a in place of a percentile: fewer than %d transactions took longer, too "
			"few for a figure\n  that another run would give again%s.\n",
			HISTOGRAM_ABOVE_MIN, demo->quick ? "; without --quick there are more" : "");
	if (cpu)
		fprintf(out, "n/a in place of CPU: other programs used most of the machine in "
			     "every round.\n");
}

static void percentile_cell(struct table *table, const struct histogram *h, unsigned which)
{
	double us = percentile_us(h, which);

	if (us > 0)
		table_cell(table, COLOUR_NONE, "%.*f", us < 100 ? 1 : 0, us);
	else
		table_cell(table, COLOUR_NONE, "n/a");
}

static void row_print(struct table *table, const struct demo *demo, enum forwarder_kind kind,
		      unsigned load)
{
	const struct compare_cell *cell = &demo->result->cell[kind][load];

	table_cell(table, COLOUR_NONE, "%s", forwarder_name(kind));
	table_cell(table, COLOUR_NONE, "%u", demo->plan.flows[load]);
	table_cell(table, COLOUR_NONE, "%.0f", series_median(&cell->rate));
	for (unsigned p = 0; p < PERCENTILES; p++)
		percentile_cell(table, &cell->latency, p);
	if (cell->cpu.n)
		table_cell(table, COLOUR_NONE, "%.1f", series_median(&cell->cpu));
	else
		table_cell(table, COLOUR_NONE, "n/a");
	table_cell(table, cell->lost ? COLOUR_BAD : COLOUR_NONE, "%llu",
		   (unsigned long long)cell->lost);
}

static void rows_print(const struct demo *demo, FILE *out)
{
	static const char *const titles[] = {"<forwarder", "flows",	   "trans/s",
					     "p50 us",	   "p90 us",	   "p99 us",
					     "p99.9 us",   "CPU us/trans", "lost"};
	struct table *table = table_create(sizeof(titles) / sizeof(*titles), titles);

	for (unsigned load = 0; load < COMPARE_LOADS; load++) {
		for (unsigned kind = 0; kind < COMPARE_KINDS; kind++) {
			if (!demo->result->skipped[kind][0])
				row_print(table, demo, kind, load);
		}
	}
	table_print(table, out);
}

static void switching_print(const struct demo *demo, FILE *out)
{
	const struct compare_switching *s = &demo->result->switching;
	char longest[DURATION_MAX], mean[DURATION_MAX];

	fprintf(out,
		"%u switches of the poller, softirq to thread and back, during %llu transactions "
		"of %u flows:\n%llu transactions lost, %llu packets dropped; a switch took %s on "
		"average, "
		"%s at most.\n",
		s->done, (unsigned long long)s->transactions, demo->plan.flows[COMPARE_LOADS - 1],
		(unsigned long long)s->lost, (unsigned long long)s->dropped,
		duration_text(s->mean, mean), duration_text(s->longest, longest));
}

static const char *ratio_text(double ours, double theirs, char text[32])
{
	double ratio = theirs > 0 ? ours / theirs : 0;

	if (ratio > 1 - ALIKE && ratio < 1 + ALIKE)
		return "the same as";
	snprintf(text, 32, "%.2f times", ratio);
	return text;
}

/* The napier poller with the smaller (or larger) figure. */
static enum forwarder_kind better(double softirq, double thread, bool smaller)
{
	return (softirq < thread) == smaller ? FORWARDER_NAPIER_SOFTIRQ : FORWARDER_NAPIER_THREAD;
}

static const char *poller_of(enum forwarder_kind kind)
{
	return kind == FORWARDER_NAPIER_THREAD ? "thread" : "softirq";
}

static void latency_explain(const struct demo *demo, FILE *out)
{
	const struct compare_cell(*cell)[COMPARE_LOADS] = demo->result->cell;
	double kernel = percentile_us(&cell[FORWARDER_KERNEL][0].latency, P50);
	double softirq = percentile_us(&cell[FORWARDER_NAPIER_SOFTIRQ][0].latency, P50);
	double thread = percentile_us(&cell[FORWARDER_NAPIER_THREAD][0].latency, P50);
	enum forwarder_kind best = better(softirq, thread, true);
	double least = best == FORWARDER_NAPIER_THREAD ? thread : softirq;
	char text[32];

	if (!(kernel > 0 && softirq > 0 && thread > 0))
		return;
	fprintf(out,
		"One flow: a transaction through napier takes %.1f us at the median with its %s "
		"poller,\n  %s the kernel bridge's %.1f us; with the other poller %.1f us.\n",
		least, poller_of(best), ratio_text(least, kernel, text), kernel,
		best == FORWARDER_NAPIER_THREAD ? softirq : thread);
}

static void cost_explain(const struct demo *demo, FILE *out)
{
	const struct compare_cell(*cell)[COMPARE_LOADS] = demo->result->cell;
	const unsigned load = COMPARE_LOADS - 1;
	double cable = series_median(&cell[FORWARDER_NONE][load].cpu);
	double kernel = series_median(&cell[FORWARDER_KERNEL][load].cpu);
	double softirq = series_median(&cell[FORWARDER_NAPIER_SOFTIRQ][load].cpu);
	double thread = series_median(&cell[FORWARDER_NAPIER_THREAD][load].cpu);
	enum forwarder_kind best = better(softirq, thread, true);
	double rate = series_median(&cell[best][load].rate);
	char text[32];

	if (!(cable > 0 && kernel > 0 && softirq > 0 && thread > 0))
		return;
	fprintf(out,
		"%u flows: with its cheaper poller, %s, napier carries %.0f transactions/s, %s the "
		"kernel\n  bridge's %.0f. The whole machine spends %.1f us of CPU on each, on the "
		"kernel bridge's %.1f us,\n  and %.1f us where a cable replaces the bridge.\n",
		demo->plan.flows[load], poller_of(best), rate,
		ratio_text(rate, series_median(&cell[FORWARDER_KERNEL][load].rate), text),
		series_median(&cell[FORWARDER_KERNEL][load].rate),
		best == FORWARDER_NAPIER_THREAD ? thread : softirq, kernel, cable);
}

static void switching_explain(const struct demo *demo, FILE *out)
{
	const struct compare_switching *s = &demo->result->switching;
	const unsigned load = COMPARE_LOADS - 1;
	double with = percentile_us(&s->latency, P99);
	double softirq =
		percentile_us(&demo->result->cell[FORWARDER_NAPIER_SOFTIRQ][load].latency, P99);
	double thread =
		percentile_us(&demo->result->cell[FORWARDER_NAPIER_THREAD][load].latency, P99);

	if (!(with > 0 && softirq > 0 && thread > 0))
		return;
	fprintf(out,
		"Switching %.0f times a second: p99 is %.0f us, against %.0f us (softirq) and %.0f "
		"us (thread)\n  where nothing switches.\n",
		(double)s->done * 1e9 / (double)s->duration, with, softirq, thread);
}

static double most_others(const struct compare_result *result)
{
	double most = 0;

	for (unsigned kind = 0; kind < COMPARE_KINDS; kind++) {
		for (unsigned load = 0; load < COMPARE_LOADS; load++) {
			double others = result->cell[kind][load].others;

			most = others > most ? others : most;
		}
	}
	return most;
}

void demo_print(const struct demo *demo, FILE *out)
{
	double others = most_others(demo->result);

	fprintf(out,
		"TCP request/response, %u B and %u B, between two network namespaces; napier on "
		"%s ports.\nRates and CPU: median of %u rounds in turn; percentiles: of all rounds "
		"together.\n\n",
		demo->plan.request_size, demo->plan.response_size,
		strcmp(demo->result->switching.port, "xdp") ? "AF_PACKET" : "AF_XDP",
		demo->plan.rounds);
	rows_print(demo, out);
	fputc('\n', out);
	switching_print(demo, out);
	fputc('\n', out);
	latency_explain(demo, out);
	cost_explain(demo, out);
	switching_explain(demo, out);
	gaps_explain(demo, out);
	for (unsigned kind = 0; kind < COMPARE_KINDS; kind++) {
		if (demo->result->skipped[kind][0])
			fprintf(out, "Left out: %s: %s.\n", forwarder_name(kind),
				demo->result->skipped[kind]);
	}
	for (unsigned i = 0; i < demo->notes_n; i++)
		fprintf(out, "%s.\n", demo->notes[i]);
	if (others > DISTURBED)
		fprintf(out,
			"Other programs used up to %.1f CPUs meanwhile: run it again when the "
			"machine is quiet.\n",
			others);
}

static json_t *series_json(const struct series *s)
{
	if (!s->n)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:i}", "median", series_median(s), "min", series_min(s),
			 "max", series_max(s), "rounds", (int)s->n);
}

static json_t *latency_json(const struct histogram *h)
{
	json_t *o = json_pack("{s:I, s:f, s:I, s:I}", "samples", (json_int_t)h->n, "mean",
			      histogram_mean(h), "min", (json_int_t)(h->n ? h->min : 0), "max",
			      (json_int_t)h->max);
	uint64_t ns;

	for (unsigned p = 0; p < PERCENTILES; p++)
		json_object_set_new(o, percentiles[p].name,
				    histogram_percentile(h, percentiles[p].millionths, &ns)
					    ? json_integer((json_int_t)ns)
					    : json_null());
	return o;
}

static json_t *cell_json(const struct demo *demo, enum forwarder_kind kind, unsigned load)
{
	const struct compare_cell *cell = &demo->result->cell[kind][load];

	return json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:f}", "forwarder",
			 forwarder_key(kind), "flows", (int)demo->plan.flows[load],
			 "transactions_per_second", series_json(&cell->rate), "latency_ns",
			 latency_json(&cell->latency), "cpu_us_per_transaction",
			 series_json(&cell->cpu), "own_cpu_us_per_transaction",
			 series_json(&cell->own), "lost", (json_int_t)cell->lost, "retransmits",
			 (json_int_t)cell->retransmits, "cpus_used_by_others", cell->others);
}

static json_t *switching_json(const struct compare_switching *s)
{
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "switches",
			 (int)s->done, "counted_by_engine", (json_int_t)s->counted, "longest_ns",
			 (json_int_t)s->longest, "mean_ns", (json_int_t)s->mean, "transactions",
			 (json_int_t)s->transactions, "lost", (json_int_t)s->lost, "retransmits",
			 (json_int_t)s->retransmits, "packets_dropped", (json_int_t)s->dropped,
			 "packets_missed", (json_int_t)s->missed, "latency_ns",
			 latency_json(&s->latency));
}

int demo_print_json(const struct demo *demo, FILE *out)
{
	const struct compare_result *result = demo->result;
	json_t *rows = json_array(), *skipped = json_array(), *notes = json_array(), *o;

	for (unsigned load = 0; load < COMPARE_LOADS; load++) {
		for (unsigned kind = 0; kind < COMPARE_KINDS; kind++) {
			if (!result->skipped[kind][0])
				json_array_append_new(rows, cell_json(demo, kind, load));
			else if (!load)
				json_array_append_new(skipped,
						      json_pack("{s:s, s:s}", "forwarder",
								forwarder_key(kind), "reason",
								result->skipped[kind]));
		}
	}
	for (unsigned i = 0; i < demo->notes_n; i++)
		json_array_append_new(notes, json_string(demo->notes[i]));
	o = json_pack("{s:s, s:s, s:i, s:i, s:i, s:f, s:o, s:o, s:o, s:o}", "version",
		      napier_version(), "port", result->switching.port, "request_size",
		      (int)demo->plan.request_size, "response_size", (int)demo->plan.response_size,
		      "rounds", (int)demo->plan.rounds, "seconds", (double)result->duration / 1e9,
		      "rows", rows, "switching", switching_json(&result->switching), "skipped",
		      skipped, "notes", notes);
	/* What out does not take is found out when that ends. */
	if (!o || (json_dumpf(o, out, JSON_INDENT(2)) && !ferror(out)))
		return -ENOMEM;
	fputc('\n', out);
	json_decref(o);
	return 0;
}

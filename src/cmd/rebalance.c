/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <napier/napi.h>

#include <control/client.h>
#include <control/load.h>
#include <control/plan.h>

#include <cmd/cmd.h>
#include <cmd/table.h>
#include <cmd/view.h>

struct rebalance {
	struct which which;
	bool dry, force, json;
	double interval; /* seconds */
	const struct counters_file *file;
	struct load before, after;
	bool observed;		 /* `after` is there */
	struct plan_napi *napis; /* as before.napis */
	double *expected;	 /* as before.cpus */
	uint32_t moves;
};

/* Over the interval, which it waits for. */
static int load_measure(const struct rebalance *r, struct load *out)
{
	struct load_sample *from = NULL, *to = NULL;
	int rc = load_sample_take(r->file, &from);

	if (!rc) {
		seconds_sleep(r->interval);
		rc = load_sample_take(r->file, &to);
	}
	if (!rc)
		rc = load_between(from, to, out);
	load_sample_free(from);
	load_sample_free(to);
	return rc ? complain("no memory") : DONE;
}

/* Polled where its CPU is. */
static bool poller_stays(const struct load_napi *napi)
{
	return napi->poller == POLLER_SOFTIRQ || napi->poller == POLLER_BUSY_POLL;
}

/* Not where a person wants it. */
static bool movable(const struct rebalance *r, const struct load_napi *napi)
{
	const struct queue_record *record = napi->record;

	if (!poller_stays(napi))
		return false;
	if (!strcmp(record->port_name, "backlog"))
		return false; /* that of its CPU */
	return r->force || !record->cpu_pinned;
}

/*
 * A NAPI takes its share of what the CPU's own threads do along, the part outside of polls too; and
 * polls last longer than the CPU time in them where others want the CPU.
 */
static void loads_scale(struct rebalance *r)
{
	const struct load *load = &r->before;

	for (uint32_t cpu = 0; cpu < load->cpus_n; cpu++) {
		double sum = 0;

		for (uint32_t i = 0; i < load->napis_n; i++) {
			if (r->napis[i].cpu == cpu && poller_stays(&load->napis[i]))
				sum += load->napis[i].load;
		}
		for (uint32_t i = 0; i < load->napis_n && sum > 0; i++) {
			if (r->napis[i].cpu == cpu && poller_stays(&load->napis[i]))
				r->napis[i].load *= load->cpus[cpu].own / sum;
		}
	}
}

static int plan_make(struct rebalance *r)
{
	const struct load *load = &r->before;

	r->napis = calloc(load->napis_n + 1, sizeof(*r->napis));
	r->expected = calloc(load->cpus_n + 1, sizeof(*r->expected));
	if (!r->napis || !r->expected)
		return complain("no memory");
	for (uint32_t i = 0; i < load->cpus_n; i++)
		r->expected[i] = load->cpus[i].load;
	for (uint32_t i = 0; i < load->napis_n; i++) {
		uint32_t cpu = 0;

		while (cpu < load->cpus_n && load->cpus[cpu].cpu != load->napis[i].cpu)
			cpu++;
		r->napis[i].cpu = cpu;
		r->napis[i].load = load->napis[i].load;
		r->napis[i].movable = cpu < load->cpus_n && movable(r, &load->napis[i]);
	}
	loads_scale(r);
	r->moves = plan_moves(r->napis, load->napis_n, r->expected, load->cpus_n);
	return DONE;
}

static int move_make(const struct rebalance *r, int fd, uint32_t i)
{
	const struct queue_record *record = r->before.napis[i].record;
	int cpu = (int)r->before.cpus[r->napis[i].to].cpu;
	struct error err;
	json_t *request, *answer;

	/* What was set stays what is asked: then the new CPU is set in its place. */
	if (record->cpu_pinned)
		request = json_pack("{s:s, s:s, s:i, s:{s:i}}", "request", "set", "port",
				    record->port_name, "queue", (int)record->queue, "keys", "cpu",
				    cpu);
	else
		request = json_pack("{s:s, s:s, s:i, s:i}", "request", "move", "port",
				    record->port_name, "queue", (int)record->queue, "cpu", cpu);
	if (client_ask(fd, request, &answer, &err))
		return complain("%s", err.text);
	json_decref(answer);
	return DONE;
}

static int moves_make(struct rebalance *r, const struct rundir *dir)
{
	struct error err;
	int fd = client_connect(dir, &err);
	int rc = DONE;

	if (fd < 0)
		return complain("%s", err.text);
	for (uint32_t i = 0; rc == DONE && i < r->before.napis_n; i++) {
		if (r->napis[i].to != r->napis[i].cpu)
			rc = move_make(r, fd, i);
	}
	close(fd);
	if (rc == DONE)
		rc = load_measure(r, &r->after);
	r->observed = rc == DONE;
	return rc;
}

static double percent(double share)
{
	return (double)(int64_t)(share * 10000 + 0.5) / 100;
}

static int json_print(const struct rebalance *r)
{
	json_t *cpus = json_array(), *moves = json_array(), *o;
	int rc;

	for (uint32_t i = 0; i < r->before.cpus_n; i++) {
		o = json_pack("{s:i, s:f, s:f}", "cpu", (int)r->before.cpus[i].cpu, "load",
			      percent(r->before.cpus[i].load), "expected", percent(r->expected[i]));
		if (r->observed && i < r->after.cpus_n)
			json_object_set_new(o, "observed",
					    json_real(percent(r->after.cpus[i].load)));
		json_array_append_new(cpus, o);
	}
	for (uint32_t i = 0; i < r->before.napis_n; i++) {
		const struct load_napi *napi = &r->before.napis[i];

		if (r->napis[i].to == r->napis[i].cpu)
			continue;
		json_array_append_new(moves,
				      json_pack("{s:s, s:i, s:i, s:i, s:f}", "port",
						napi->record->port_name, "queue",
						(int)napi->record->queue, "from", (int)napi->cpu,
						"to", (int)r->before.cpus[r->napis[i].to].cpu,
						"load", percent(r->napis[i].load)));
	}
	o = json_pack("{s:I, s:b, s:o, s:o}", "interval_ns", (json_int_t)r->before.ns, "made",
		      (int)r->observed, "cpus", cpus, "moves", moves);
	rc = json_put(o, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(o);
	return rc;
}

static void cpus_print(const struct rebalance *r)
{
	static const char *const titles[] = {"CPU", "LOAD", "EXPECTED", "OBSERVED"};
	struct table *table = table_create(r->observed ? 4 : 3, titles);

	for (uint32_t i = 0; table && i < r->before.cpus_n; i++) {
		table_cell(table, COLOUR_NONE, "%u", r->before.cpus[i].cpu);
		table_cell(table, COLOUR_NONE, "%.1f%%", r->before.cpus[i].load * 100);
		table_cell(table, COLOUR_NONE, "%.1f%%", r->expected[i] * 100);
		if (r->observed && i < r->after.cpus_n)
			table_cell(table, COLOUR_NONE, "%.1f%%", r->after.cpus[i].load * 100);
		else if (r->observed)
			table_cell(table, COLOUR_NONE, "-"); /* taken from the engine meanwhile */
	}
	table_print(table, stdout);
}

static void moves_print(const struct rebalance *r)
{
	static const char *const titles[] = {"<NAPI", "<POLLER", "LOAD", "FROM", "TO"};
	struct table *table = table_create(5, titles);

	for (uint32_t i = 0; table && i < r->before.napis_n; i++) {
		const struct load_napi *napi = &r->before.napis[i];

		if (r->napis[i].to == r->napis[i].cpu)
			continue;
		table_cell(table, COLOUR_NONE, "%.31s/%u", napi->record->port_name,
			   napi->record->queue);
		table_cell(table, COLOUR_NONE, "%s", poller_name((enum poller)napi->poller));
		table_cell(table, COLOUR_NONE, "%.1f%%", r->napis[i].load * 100);
		table_cell(table, COLOUR_NONE, "%u", napi->cpu);
		table_cell(table, COLOUR_NONE, "%u", r->before.cpus[r->napis[i].to].cpu);
	}
	table_print(table, stdout);
}

static int result_print(const struct rebalance *r)
{
	if (r->json)
		return json_print(r);
	cpus_print(r);
	putchar('\n');
	moves_print(r);
	if (!r->moves)
		printf("nothing to gain: no NAPI that may move would take %.0f%% of a CPU off the "
		       "one with the most\n",
		       PLAN_GAIN * 100);
	else if (r->dry)
		puts("not made: --dry-run");
	return DONE;
}

static int rebalance(struct rebalance *r, const struct rundir *dir)
{
	struct error err;
	int rc, printed;

	if (counters_map(dir, &r->file, &err))
		return complain("%s", err.text);
	rc = load_measure(r, &r->before);
	if (rc == DONE)
		rc = plan_make(r);
	if (rc == DONE) {
		if (r->moves && !r->dry)
			rc = moves_make(r, dir);
		printed = result_print(r);
		rc = rc == DONE ? printed : rc;
	}
	load_free(&r->before);
	load_free(&r->after);
	free(r->napis);
	free(r->expected);
	counters_unmap(r->file);
	return rc;
}

static int rebalance_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"dry-run", no_argument, NULL, 'd'},
		{"force", no_argument, NULL, 'f'},
		{"interval", required_argument, NULL, 'i'},
		{"json", no_argument, NULL, 'j'},
		WHICH_LONG,
		{0},
	};
	struct rebalance r = {.interval = 1};
	struct rundir dir;
	int option, rc;

	while ((option = getopt_long(argc, argv, ":ji:h", options, NULL)) != -1) {
		if (option == 'd') {
			r.dry = true;
		} else if (option == 'f') {
			r.force = true;
		} else if (option == 'j') {
			r.json = true;
		} else if (option == 'i') {
			if (seconds_option("--interval", optarg, &r.interval))
				return MISUSED;
		} else {
			rc = which_option(&command_rebalance, &r.which, option, argv);
			if (rc >= 0)
				return rc;
		}
	}
	if (argc > optind)
		return misused("rebalance: too many arguments");
	rc = which_dir(&r.which, &dir);
	return rc ? rc : rebalance(&r, &dir);
}

const struct command command_rebalance = {
	.name = "rebalance",
	.summary = "move NAPIs from the engine CPU with the most load to others",
	.usage = "Usage: napier rebalance [OPTION…]\n"
		 "Measures what each engine CPU carries, moves NAPIs that softirq or busy-poll "
		 "polls\nfrom the one with the most to others where that gains at least 5% of a "
		 "CPU, and\nmeasures again. It leaves alone what has a CPU that was set.\n\n"
		 "      --dry-run        only says what it would do\n"
		 "      --force          moves also what has a CPU that was set, and sets the new "
		 "one\n"
		 "  -i, --interval SECONDS\n"
		 "                       how long it measures (1)\n"
		 "  -j, --json           as JSON\n" WHICH_USAGE,
	.run = rebalance_run,
};

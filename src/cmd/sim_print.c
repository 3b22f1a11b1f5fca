/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include <cmd/sim_print.h>

static void faults_print(FILE *out, const uint64_t *faults)
{
	bool any = false;

	fprintf(out, "faults        ");
	for (unsigned i = 0; i < SIM_FAULTS; i++) {
		if (!faults[i])
			continue;
		fprintf(out, "%s%s %" PRIu64, any ? ", " : "", sim_fault_name(i), faults[i]);
		any = true;
	}
	fprintf(out, "%s\n", any ? "" : "none");
}

static double ms(int64_t ns)
{
	return (double)ns / 1e6;
}

void sim_print_one(FILE *out, const struct sim_options *options, const struct sim_result *result)
{
	char text[256];

	sim_describe(result->seed, options, text, sizeof(text));
	fprintf(out, "seed          %" PRIu64 "\n", result->seed);
	fprintf(out, "scenario      %s\n", text);
	fprintf(out, "packets       %" PRIu64 " arrived, %" PRIu64 " sent on\n", result->arrived,
		result->out);
	fprintf(out,
		"simulated     %.3f ms, %" PRIu64 " events, %" PRIu64 " steps, %" PRIu64
		" polls, %" PRIu64 " operations\n",
		ms(result->virtual_ns), result->events, result->steps, result->polls,
		result->operations);
	faults_print(out, result->faults);
	fprintf(out, "hash          %016" PRIx64 "\n", result->hash);
}

void sim_print_many(FILE *out, const struct crew_config *config, const struct crew_result *result)
{
	const struct crew_totals *t = &result->totals;
	double cpu = (double)result->cpu_ns / 1e9, wall = (double)result->wall_ns / 1e9;
	double virtual_s = (double)t->virtual_ns / 1e9;

	fprintf(out, "seeds         %" PRIu64 " of %" PRIu64 "..%" PRIu64 " passed, %u failed\n",
		t->seeds, config->first, config->first + config->count - 1, result->failures);
	fprintf(out, "repeated      %" PRIu64 ", each with the same hash\n", t->twice);
	fprintf(out, "packets       %" PRIu64 " arrived, %" PRIu64 " sent on\n", t->arrived,
		t->out);
	fprintf(out,
		"simulated     %.3f s, %" PRIu64 " events, %" PRIu64 " steps, %" PRIu64
		" polls, %" PRIu64 " operations\n",
		virtual_s, t->events, t->steps, t->polls, t->operations);
	faults_print(out, t->faults);
	if (wall > 0 && cpu > 0)
		fprintf(out,
			"took          %.1f s, %.1f s of CPU: %.0f seeds/s of CPU time, virtual "
			"time / wall time %.2f\n",
			wall, cpu, (double)t->seeds / cpu, virtual_s / wall);
}

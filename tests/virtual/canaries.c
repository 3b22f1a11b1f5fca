/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plants each canary and runs seeds from 1 on until one fails: all have to be caught, and without
 * any the same seeds have to pass. Prints how many seeds each took, and as what it was caught.
 */
#include <inttypes.h>
#include <stdio.h>

#include <core/canary.h>
#include <sim/crew.h>

#define SEEDS 2000 /* by then it is caught */
#define CLEAN 200

static bool run(uint64_t count, struct crew_result *result)
{
	/* One process, in order: the first seed that fails is how many it took. */
	struct crew_config config = {.first = 1, .count = count, .jobs = 1, .failures_max = 1};
	struct error err;

	if (crew_run(&config, result, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	return true;
}

int main(void)
{
	static struct crew_result result;
	int missed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("%-18s %5s  %s\n", "canary", "seeds", "caught as");
	for (unsigned i = 1; canary_name(i); i++) {
		canary_plant(canary_name(i));
		if (!run(SEEDS, &result))
			return 1;
		if (result.failures) {
			printf("%-18s %5" PRIu64 "  %s\n", canary_name(i), result.failure[0].seed,
			       result.failure[0].text);
		} else {
			printf("%-18s %5s  not caught: %s\n", canary_name(i), "-", canary_text(i));
			missed++;
		}
	}
	canary_plant(NULL);
	if (!run(CLEAN, &result))
		return 1;
	if (result.failures)
		printf("%-18s %5" PRIu64 "  %s\n", "none", result.failure[0].seed,
		       result.failure[0].text);
	else
		printf("%-18s %5d  all pass\n", "none", CLEAN);
	return missed || result.failures;
}

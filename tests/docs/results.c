/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints results: those of the fixture, as an experiment would leave them. */
#include <string.h>

#include "../unit/results_fixture.h"

int main(int argc, char **argv)
{
	const struct fixture fixture = {
		.systems = 10,
		.workloads = 3,
		.repeats = 4,
		.samples = 5000,
		.faster = 1,
		.faults = true,
		.hostile = argc > 1 && !strcmp(argv[1], "hostile"),
	};
	json_t *results = results_fixture(&fixture);
	int rc = json_dumpf(results, stdout, JSON_COMPACT);

	json_decref(results);
	return rc;
}

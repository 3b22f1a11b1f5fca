/* SPDX-License-Identifier: BSD-2-Clause */
/* What the demo says of figures that it cannot give. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmd/demo_print.h>

static struct compare_result result;

static struct demo demo_of(unsigned samples, bool cpu)
{
	struct demo demo = {.plan = {.flows = {1, 50}, .rounds = 2}, .result = &result};

	memset(&result, 0, sizeof(result));
	strcpy(result.switching.port, "xdp");
	histogram_reset(&result.switching.latency);
	for (unsigned kind = 0; kind < COMPARE_KINDS; kind++) {
		for (unsigned load = 0; load < COMPARE_LOADS; load++) {
			struct compare_cell *cell = &result.cell[kind][load];

			histogram_reset(&cell->latency);
			for (unsigned i = 0; i < samples; i++)
				histogram_record(&cell->latency, 10000 + i);
			cell->rate = (struct series){.n = 1, .value = {1000}};
			if (cpu)
				cell->cpu = (struct series){.n = 1, .value = {3}};
		}
	}
	return demo;
}

static char *printed(const struct demo *demo)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	demo_print(demo, out);
	fclose(out);
	return text;
}

static void says_nothing_of_whole_figures(void **state)
{
	struct demo demo = demo_of(100000, true);
	char *text = printed(&demo);

	(void)state;
	assert_null(strstr(text, "n/a"));
	free(text);
}

static void explains_missing_percentiles(void **state)
{
	struct demo demo = demo_of(5000, true); /* five lie above p99.9 */
	char *text = printed(&demo);

	(void)state;
	assert_non_null(strstr(text, "n/a in place of a percentile: fewer than 10 transactions"));
	assert_null(strstr(text, "--quick"));
	assert_null(strstr(text, "n/a in place of CPU"));
	free(text);
	demo.quick = true;
	text = printed(&demo);
	assert_non_null(strstr(text, "; without --quick there are more.\n"));
	free(text);
}

static void explains_missing_cpu(void **state)
{
	struct demo demo = demo_of(100000, false);
	char *text = printed(&demo);

	(void)state;
	assert_non_null(strstr(text, "n/a in place of CPU: other programs used most"));
	assert_null(strstr(text, "n/a in place of a percentile"));
	free(text);
}

/* What was left out says so by itself. */
static void leaves_out_what_was_skipped(void **state)
{
	struct demo demo = demo_of(100000, true);
	char *text;

	(void)state;
	histogram_reset(&result.cell[FORWARDER_KERNEL_THREADED][0].latency);
	strcpy(result.skipped[FORWARDER_KERNEL_THREADED], "not here");
	text = printed(&demo);
	assert_null(strstr(text, "n/a"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_nothing_of_whole_figures),
		cmocka_unit_test(explains_missing_percentiles),
		cmocka_unit_test(explains_missing_cpu),
		cmocka_unit_test(leaves_out_what_was_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

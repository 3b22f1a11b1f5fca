/* SPDX-License-Identifier: BSD-2-Clause */
/* flent itself opens its files, and says of them what is in them. */
#include "test.h"

#include <unistd.h>

#include "lab/report/report.h"

#include "flent_fixture.h"

enum { SKIPPED = 77, TEXT_MAX = 1 << 14 };

static char top[] = "/tmp/napier-flent-XXXXXX", directory[64];

static int written(void **state)
{
	json_t *results = flent_fixture();
	struct error err = {0};

	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(directory, sizeof(directory), "%s/flent", top);
	if (report_flent(results, directory, &err))
		fail_msg("%s", err.text);
	json_decref(results);
	return 0;
}

static int removed(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

/* What it prints; it has to succeed. It keeps nothing of its user's. */
static const char *flent(const char *file, const char *format)
{
	static char text[TEXT_MAX];
	char command[256];
	FILE *pipe;
	size_t n;

	snprintf(command, sizeof(command), "HOME=%s flent -i %s/%s -f %s 2>&1", top, directory,
		 file, format);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	n = fread(text, 1, sizeof(text) - 1, pipe);
	text[n] = '\0';
	if (pclose(pipe))
		fail_msg("%s:\n%s", command, text);
	return text;
}

/* A line of the summary: " TCP upload BE : 14.00 14.00 18.00 Mbits/s 9" */
static void summary_has(const char *text, const char *series, double mean, double median,
			const char *unit, int n)
{
	const char *at = strstr(text, series);
	double is_mean, is_median, p99;
	char is_unit[32];
	int is_n;

	if (!at || sscanf(strchr(at, ':') + 1, "%lf %lf %lf %31s %d", &is_mean, &is_median, &p99,
			  is_unit, &is_n) != 5)
		fail_msg("no line \"%s\" with all its columns in:\n%s", series, text);
	if (is_mean < mean - 0.011 || is_mean > mean + 0.011 || is_median < median - 0.011 ||
	    is_median > median + 0.011 || strcmp(is_unit, unit) || is_n != n)
		fail_msg("%s is not %.2f %.2f %s %d in:\n%s", series, mean, median, unit, n, text);
}

static void rrul(void **state)
{
	const char *text = flent("k-rrul-1.flent.gz", "summary");

	(void)state;
	assert_non_null(strstr(text, "Summary of rrul test run from 2026-11-30 18:00:01.25"));
	assert_non_null(strstr(text, "Title: 'the kernel, rrul'"));
	summary_has(text, "TCP upload BE", 14, 14, "Mbits/s", FLENT_POINTS);
	summary_has(text, "TCP download EF", 84, 84, "Mbits/s", FLENT_POINTS);
	summary_has(text, "Ping (ms) ICMP", 4, 4, "ms", FLENT_POINTS);
	summary_has(text, "Ping (ms) UDP EF", 3, 3, "ms", FLENT_POINTS - 3);
	/* Computed by flent, from ours. */
	assert_non_null(strstr(text, "TCP totals"));
	assert_non_null(strstr(text, "Ping (ms) avg"));
}

static void others(void **state)
{
	(void)state;
	summary_has(flent("k-up-1.flent.gz", "summary"), "TCP upload", 9, 9, "Mbits/s",
		    FLENT_POINTS);
	summary_has(flent("k-both-1.flent.gz", "summary"), "TCP download", 10, 10, "Mbits/s",
		    FLENT_POINTS);
	summary_has(flent("k-udp-1.flent.gz", "summary"), "UDP upload", 11, 11, "Mbits/s",
		    FLENT_POINTS);
	summary_has(flent("__n-rr-3.flent.gz", "summary"), "Ping (ms) UDP", 0.05, 0.05, "ms",
		    FLENT_POINTS - 3);
	summary_has(flent("k-tcp-rr-1.flent.gz", "summary"), "Ping (ms) TCP", 0.06, 0.06, "ms",
		    FLENT_POINTS - 3);
	assert_non_null(strstr(flent("k-rrul-1.flent.gz", "csv"), "TCP upload BK"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rrul),
		cmocka_unit_test(others),
	};

	if (system("command -v flent >/dev/null 2>&1")) {
		fprintf(stderr, "skipped: flent is not installed: apt-get install flent\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, written, removed);
}

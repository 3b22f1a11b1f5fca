/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lab/report/html.h"
#include "lab/report/report.h"
#include "lab/report/summary.h"

#include "results_fixture.h"

/* For a gnuplot that works, on a machine that is busy with other things. */
enum { PATIENCE = 120 };

static char directory[] = "/tmp/napier-html-XXXXXX";
static char page_path[64];

static int directory_make(void **state)
{
	(void)state;
	plot_limit_s = PATIENCE;
	if (!mkdtemp(directory))
		return -1;
	snprintf(page_path, sizeof(page_path), "%s/report.html", directory);
	return 0;
}

static char *file_text(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t size = 0;

	assert_non_null(file);
	assert_true(getdelim(&text, &size, 0, file) > 0);
	fclose(file);
	return text;
}

/* Made once: a summary takes a while. */
static json_t *results_of(bool hostile)
{
	static json_t *made[2];
	struct error err;

	if (!made[hostile]) {
		made[hostile] = results_fixture(&(struct fixture){.systems = 10,
								  .workloads = 3,
								  .repeats = 3,
								  .samples = 3000,
								  .faster = 1,
								  .faults = true,
								  .hostile = hostile});
		assert_int_equal(summary_add(made[hostile], &err), 0);
	}
	return made[hostile];
}

static char *page_text(bool hostile)
{
	struct error err = {0};

	if (report_html(results_of(hostile), page_path, &err))
		fail_msg("%s", err.text);
	return file_text(page_path);
}

static int directory_remove(void **state)
{
	char command[128];

	(void)state;
	json_decref(results_of(false));
	json_decref(results_of(true));
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static void assert_has(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" is not in the page", words);
}

static unsigned count(const char *text, const char *words)
{
	unsigned n = 0;

	while ((text = strstr(text, words))) {
		n++;
		text += strlen(words);
	}
	return n;
}

static void everything_is_in_the_page(void **state)
{
	static const char *const said[] = {
		"<h2>What it showed</h2>",
		"<h2>How far to believe it</h2>",
		"<h2>At a glance</h2>",
		"a: one core",
		"napier, busy-poll",
		"class=\"better\">better",
		"class=\"worse\">worse",
		"Not equal cores",
		"response time",
		"% of sent",
		"CPU, by who used it",
		"this kernel has it not (since Linux 6.19)",
		"of 100000 sends came more than 1 ms behind",
		"server: it ended by signal 9",
		"echo 2 &gt; /sys/class/net/dut0/napi_defer_hard_irqs",
		"<td class=\"differs\">0</td>",
		"napi/dut0-0",
		"Mitigation: Retpolines",
		"full = { warm = &quot;1s&quot;",
		"napier bench example --set full.repeats=4",
		"ip netns add client",
		"CPU 3 of the specification is CPU 1 here",
	};
	char *text = page_text(false);

	(void)state;
	for (unsigned i = 0; i < sizeof(said) / sizeof(*said); i++)
		assert_has(text, said[i]);
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf<"));
	assert_null(strstr(text, "(null)"));
	free(text);
}

static void names_are_never_tags(void **state)
{
	char *text = page_text(true);

	(void)state;
	assert_has(text, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&lt;b "
			 "id=&quot;x&quot;&gt;&amp;amp;");
	assert_null(strstr(text, "<script>alert"));
	assert_null(strstr(text, "alert('x')"));
	assert_null(strstr(text, "<b "));
	/* The page's own. */
	assert_int_equal(count(text, "<script>"), 1);
	free(text);
}

static void without_gnuplot_the_rest_is_there(void **state)
{
	char *text;

	(void)state;
	plot_program = "/nonexistent/gnuplot";
	text = page_text(false);
	plot_program = "gnuplot";
	assert_has(text, "There are no plots: gnuplot is not installed.");
	assert_has(text, "<h2>At a glance</h2>");
	assert_int_equal(count(text, "<svg"), 0);
	free(text);
}

static void program_make(const char *name, const char *script)
{
	static char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(script, file);
	fclose(file);
	chmod(path, 0755);
	plot_program = path;
}

static void what_gnuplot_says_is_said(void **state)
{
	char *text;

	(void)state;
	program_make("fails", "#!/bin/sh\necho 'no such terminal' >&2\nexit 1\n");
	text = page_text(false);
	plot_program = "gnuplot";
	assert_has(text, "plots: no such terminal");
	assert_int_equal(count(text, "<svg"), 0);
	free(text);
}

static bool anybody_sleeps(const char *pid_file)
{
	char *text = file_text(pid_file), path[64];
	bool there;

	snprintf(path, sizeof(path), "/proc/%d", atoi(text));
	there = !access(path, F_OK);
	free(text);
	return there;
}

/* With its children, of which one has the other's output. */
static void one_that_hangs_is_ended(void **state)
{
	char script[256], pid_file[64], says[64];
	char *text = NULL;

	(void)state;
	snprintf(pid_file, sizeof(pid_file), "%s/pid", directory);
	snprintf(script, sizeof(script),
		 "#!/bin/sh\nsleep 1000 &\necho $! >%s.new\nmv %s.new %s\nwait\n", pid_file,
		 pid_file, pid_file);
	program_make("hangs", script);
	/* The limit may have passed before it came so far: then it has more time. */
	for (plot_limit_s = 1; access(pid_file, F_OK) && plot_limit_s <= PATIENCE;
	     plot_limit_s *= 2) {
		free(text);
		text = page_text(false);
		snprintf(says, sizeof(says), "There are no plots: gnuplot did not end within %u s.",
			 plot_limit_s);
		assert_has(text, says);
	}
	free(text);
	plot_limit_s = PATIENCE;
	plot_program = "gnuplot";
	/* Killed, and then taken by init. */
	for (unsigned i = 0; i < PATIENCE * 100 && anybody_sleeps(pid_file); i++)
		usleep(10000);
	assert_false(anybody_sleeps(pid_file));
}

static void plots_are_drawn(void **state)
{
	char *text = page_text(false);

	(void)state;
	if (strstr(text, "gnuplot is not installed")) {
		print_message("gnuplot is not installed\n");
		free(text);
		skip();
	}
	assert_null(strstr(text, "There are no plots"));
	/* Latency, rate and tail of each scenario; of a stream the rate. Its steps make no series.
	 */
	assert_int_equal(count(text, "<svg"), 3 * 3 * 2);
	assert_int_equal(count(text, "</svg>"), 3 * 3 * 2);
	assert_int_equal(count(text, "rgb("), 0);
	assert_int_equal(count(text, " id=\"p"), 0);
	assert_has(text, "<title>napier, busy-poll</title>");
	assert_has(text, "<title>napier, busy-poll, service time</title>");
	assert_has(text, "99.9%");
	free(text);
}

static void directories_are_made_or_refused(void **state)
{
	json_t *results = results_fixture(&(struct fixture){
		.systems = 2, .workloads = 1, .repeats = 1, .samples = 10, .faster = 1});
	struct error err = {0};
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/a/b/c", directory);
	assert_int_equal(report_write(results, path, &err), 0);
	assert_int_equal(report_write(results, path, &err), 0);
	snprintf(path, sizeof(path), "%s/a/b/c/results.json", directory);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(report_write(results, path, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "a file has that name"));
	assert_int_equal(report_write(results, "/proc/napier", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/napier"));
	assert_int_equal(report_html(results, "/nonexistent/report.html", &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/report.html"));
	json_decref(results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_in_the_page),
		cmocka_unit_test(names_are_never_tags),
		cmocka_unit_test(without_gnuplot_the_rest_is_there),
		cmocka_unit_test(what_gnuplot_says_is_said),
		cmocka_unit_test(one_that_hangs_is_ended),
		cmocka_unit_test(plots_are_drawn),
		cmocka_unit_test(directories_are_made_or_refused),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napier bench FILE: results that are complete, systems that cannot be had or that fail, and
 * nothing left behind, however it ends. No figure decides.
 */
#include "lab_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <napier/machine.h>

#include <lab/clock.h>
#include <lab/record_file.h>

enum { OUTPUT = 1 << 20 };

static char dir[] = "/tmp/napier-spec-XXXXXX", file[64], report[64];
static char output[OUTPUT];

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	chmod(dir, 0755); /* one test runs as nobody */
	if (chdir(dir))
		return -1;
	snprintf(file, sizeof(file), "%s/x.conf", dir);
	snprintf(report, sizeof(report), "%s/report", dir);
	return 0;
}

static int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What it prints is in `output`; returns its exit status. */
static int shell(const char *format, ...)
{
	char line[2048];
	va_list arguments;
	size_t n;
	FILE *f;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fflush(NULL);
	f = popen(line, "r");
	assert_non_null(f);
	n = fread(output, 1, sizeof(output) - 1, f);
	output[n] = '\0';
	return WEXITSTATUS(pclose(f));
}

static int cleanup(void **state)
{
	(void)state;
	return shell("rm -r %s", dir);
}

#define WORKLOAD "workloads = { w = { kind = \"rr\"; protocol = \"udp\"; flows = 2; }; };\n"
#define SHORT "quick = { warm = \"20ms\"; duration = \"100ms\"; repeats = 2; };\n"

static void spec_write(const char *text)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void keys_check(const json_t *o, const char *const *keys)
{
	for (; *keys; keys++)
		if (!json_object_get(o, *keys))
			fail_msg("no key %s", *keys);
}

static const json_t *by_key(const json_t *array, const char *member, const char *key)
{
	const json_t *o;
	size_t i;

	json_array_foreach(array, i, o) if (!strcmp(json_string_value(json_object_get(o, member)),
						    key)) return o;
	fail_msg("there is no %s %s", member, key);
	return NULL;
}

static double number(const json_t *o, const char *a, const char *b, const char *c)
{
	o = json_object_get(o, a);
	o = b ? json_object_get(o, b) : o;
	o = c ? json_object_get(o, c) : o;
	return json_is_number(o) ? json_number_value(o) : -1;
}

static void run_check(const json_t *run)
{
	static const char *const keys[] = {
		"system", "workload", "repeat",	     "order",  "started_s", "valid",   "invalid",
		"late",	  "error",    "duration_s",  "counts", "rates",	    "latency", "series",
		"steps",  "server",   "antagonists", "cpu",    "peer_cpu",  "threads", NULL};
	static const char *const cpu[] = {
		"parties",    "threads",      "total_s",	  "cores_used",
		"cores_busy", "others_s",     "ns_per_operation", "operations",
		"cycles",     "instructions", "idle_s",		  "notes",
		NULL};

	keys_check(run, keys);
	if (json_is_string(json_object_get(run, "error")))
		return;
	keys_check(json_object_get(run, "cpu"), cpu);
	assert_true(json_array_size(json_object_get(run, "threads")) >= 2);
	/* Case 22: softirq is charged, once, and not to whom it ran on the back of. */
	assert_true(number(run, "cpu", "parties", "softirq") >= 0 ||
		    json_object_get(json_object_get(json_object_get(run, "cpu"), "parties"),
				    "softirq"));
}

/* A commit of 12 digits or more, with "+changes" or without; without git, or of a tarball, none. */
static void build_check(const json_t *versions)
{
	const char *build = json_string_value(json_object_get(versions, "build"));
	size_t digits;

	assert_non_null(build);
	digits = strspn(build, "0123456789abcdef");
	if (BUILD_KNOWN ? digits < 12 || (build[digits] && strcmp(build + digits, "+changes"))
			: strcmp(build, "unknown"))
		fail_msg("build is \"%s\"", build);
}

static const char mixed[] = SHORT WORKLOAD
	"topology = \"ends\";\n"
	"antagonists = { hog = { kind = \"hog\"; threads = 1; cpus = 1; }; };\n"
	"defaults = { system = { place = { client = 0; server = 1; poller = 1; interrupt = 1; }; "
	"}; "
	"};\n"
	"systems = {\n"
	"kernel = { }; threaded = { poller = \"threaded\"; };\n"
	"spinning = { poller = \"threaded-busy-poll\"; };\n"
	"host = { dut = \"napier\"; handler = \"host\"; poller = \"thread\"; };\n"
	"sockets = { dut = \"napier\"; poller = \"softirq\"; };\n"
	"fails = { dut = \"command\"; command = \"echo no luck >&2; exit 3\"; };\n};\n";

/* Cases 13, 22 and 25: a hog beside, CPU time by party, packets a poll. */
static void complete(void **state)
{
	static const char *const keys[] = {"schema",	  "version",	   "napier",
					   "name",	  "title",	   "source",
					   "question",	  "length",	   "partial",
					   "started",	  "duration_s",	   "command",
					   "set",	  "specification", "specification_path",
					   "scaled",	  "environment",   "peer_environment",
					   "topology",	  "systems",	   "workloads",
					   "antagonists", "runs",	   "summary",
					   "comparisons", "notes",	   NULL};
	static const char *const system_keys[] = {"key",      "name",	   "scenario", "base",
						  "dut",      "handler",   "poller",   "settings",
						  "commands", "placement", "skipped",  NULL};
	json_t *results, *runs, *run;
	const json_t *system;
	json_error_t error;
	size_t i;

	(void)state;
	spec_write(mixed);
	assert_int_equal(shell("%s bench %s --quick -j --set workloads.w.flows=3 2>%s/err",
			       lab_run_napier, file, dir),
			 1);
	results = json_loads(output, 0, &error);
	assert_non_null(results);
	keys_check(results, keys);
	assert_false(json_is_true(json_object_get(results, "partial")));
	json_array_foreach(json_object_get(results, "systems"), i, run)
		keys_check(run, system_keys);
	assert_int_equal(number(json_array_get(json_object_get(results, "workloads"), 0),
				"parameters", "flows", NULL),
			 3);
	runs = json_object_get(results, "runs");
	json_array_foreach(runs, i, run)
	{
		const char *key = json_string_value(json_object_get(run, "system"));
		const char *failed = json_string_value(json_object_get(run, "error"));

		run_check(run);
		assert_int_equal(json_integer_value(json_object_get(run, "order")), i);
		if (!strcmp(key, "fails"))
			assert_true(failed && strstr(failed, "no luck"));
		else if (failed)
			fail_msg("%s: %s", key, failed);
		if (failed)
			continue;
		assert_int_equal(json_array_size(json_object_get(run, "antagonists")), 1);
		if (!strcmp(key, "host") || !strcmp(key, "sockets"))
			assert_true(number(run, "cpu", "parties", "napier") < 0 &&
				    json_object_get(
					    json_object_get(json_object_get(run, "cpu"), "parties"),
					    "napier"));
		if (number(run, "counts", "completed", NULL) > 0)
			assert_true(number(run, "cpu", "kernel", "packets_per_poll") != 0);
	}
	/* Forth and back. */
	assert_string_equal(json_string_value(json_object_get(json_array_get(runs, 0), "system")),
			    "kernel");
	i = json_array_size(runs) - 1;
	assert_string_equal(json_string_value(json_object_get(json_array_get(runs, i), "system")),
			    "kernel");
	system = by_key(json_object_get(results, "systems"), "key", "threaded");
	assert_true(json_is_null(json_object_get(system, "skipped")));
	assert_string_equal(
		json_string_value(json_object_get(
			json_object_get(json_object_get(system, "settings"), "threaded"),
			"observed")),
		"on");
	system = by_key(json_object_get(results, "systems"), "key", "spinning");
	/* Kernels from 6.19 on have it; the others' rows say why they have no figures. */
	if (json_array_size(runs) == 10)
		assert_non_null(
			strstr(json_string_value(json_object_get(system, "skipped")), "6.19"));
	else
		assert_int_equal(json_array_size(runs), 12);
	/* And of what the program was built. */
	build_check(json_object_get(json_object_get(results, "environment"), "versions"));
	json_decref(results);
	/* One line says which failed. */
	assert_int_equal(shell("grep -c 'runs have no valid figures; the first' %s/err", dir), 0);
}

/* The run would take a minute, and ends when the command does. */
static void a_command_that_ends_ends_the_run(void **state)
{
	json_t *results;
	const char *failed;

	(void)state;
	spec_write("quick = { warm = \"10ms\"; duration = \"60s\"; repeats = 1; };\n" WORKLOAD
		   "systems = { stops = { dut = \"command\"; "
		   "command = \"echo ready; sleep 0.1; exit 4\"; }; };\n");
	assert_int_equal(shell("%s bench %s --quick -j 2>%s/err", lab_run_napier, file, dir), 1);
	results = json_loads(output, 0, NULL);
	assert_non_null(results);
	failed = json_string_value(
		json_object_get(json_array_get(json_object_get(results, "runs"), 0), "error"));
	assert_non_null(failed);
	assert_non_null(strstr(failed, "the command ended with 4"));
	json_decref(results);
}

static void table_and_report(void **state)
{
	(void)state;
	spec_write(SHORT WORKLOAD "systems = { kernel = { }; other = { knobs = { gro = \"off\"; }; "
				  "}; };\n");
	shell("%s bench --quick %s -o %s 2>&1", lab_run_napier, file, report);
	assert_non_null(strstr(output, "kernel"));
	assert_non_null(strstr(output, "report.html"));
	assert_int_equal(shell("test -s %s/results.json && test -s %s/report.html && rm -r %s",
			       report, report, report),
			 0);
}

/*
 * In `output` are runs, without an error. They need not be valid, and then the exit status is 1: a
 * busy machine may let nothing happen in so short a time.
 */
static void none_failed(void)
{
	json_t *results = json_loads(output, 0, NULL), *runs, *run;
	size_t i;

	assert_non_null(results);
	runs = json_object_get(results, "runs");
	assert_true(json_array_size(runs) > 0);
	json_array_foreach(runs, i, run) assert_true(json_is_null(json_object_get(run, "error")));
	json_decref(results);
}

/* Each has names of its own; but they share the CPUs. */
static void another_at_once_is_noted(void **state)
{
	char path[96], name[32], note[48];
	struct error err = {0};
	int other;

	(void)state;
	snprintf(name, sizeof(name), "lab.%d", getpid());
	other = record_file_open(dir, name, path, sizeof(path), &err);
	if (other < 0)
		fail_msg("%s", err.text);
	spec_write(SHORT WORKLOAD "systems = { kernel = { }; };\n");
	shell("%s bench --quick -j --run-dir %s %s", lab_run_napier, dir, file);
	none_failed();
	snprintf(note, sizeof(note), "Process %d, another napier bench", getpid());
	assert_non_null(strstr(output, note));
	assert_int_equal(access(path, F_OK), 0);
	close(other);
	shell("%s bench --quick -j --run-dir %s %s", lab_run_napier, dir, file);
	none_failed();
	assert_null(strstr(output, "another napier bench"));
	assert_int_not_equal(access(path, F_OK), 0);
}

static void only_some_systems(void **state)
{
	json_t *results;

	(void)state;
	spec_write(SHORT WORKLOAD "systems = { a-1 = { }; a-2 = { }; b = { }; c = { }; };\n");
	shell("%s bench %s --quick -j --only 'a-*,c' --set quick.repeats=1", lab_run_napier, file);
	results = json_loads(output, 0, NULL);
	assert_non_null(results);
	assert_int_equal(json_array_size(json_object_get(results, "systems")), 3);
	assert_int_equal(json_array_size(json_object_get(results, "runs")), 3);
	assert_non_null(strstr(output, "Only 3 of the specification's 4 systems"));
	json_decref(results);
	assert_int_equal(shell("%s bench %s --list", lab_run_napier, file), 0);
	assert_non_null(strstr(output, "Systems:\n  a-1  a-1\n"));
	assert_non_null(strstr(output, "Workloads:\n  w    w\n"));
	assert_int_equal(shell("%s bench %s --list -j", lab_run_napier, file), 0);
	results = json_loads(output, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(results, "systems")), 4);
	assert_int_equal(json_array_size(json_object_get(results, "workloads")), 1);
	json_decref(results);
}

/*
 * Nobody can keep such a rate. Not late is who sends nothing at all, so there is more time than a
 * thread is put off for.
 */
static void late_generators_are_taken_again(void **state)
{
	json_t *results, *runs, *run;
	size_t i;

	(void)state;
	spec_write(SHORT "workloads = { w = { kind = \"stream\"; protocol = \"udp\"; batch = 1;\n"
			 "rate = 100000000; }; };\nsystems = { a = { }; };\n");
	assert_int_equal(shell("%s bench %s --quick -j --set quick.duration=2s 2>%s/err",
			       lab_run_napier, file, dir),
			 1);
	results = json_loads(output, 0, NULL);
	assert_non_null(results);
	runs = json_object_get(results, "runs");
	assert_int_equal(json_array_size(runs), 6);
	json_array_foreach(runs, i, run)
	{
		assert_true(json_is_false(json_object_get(run, "valid")));
		assert_true(json_is_true(json_object_get(run, "late")));
		assert_int_equal(json_integer_value(json_object_get(run, "repeat")), i / 3);
	}
	assert_non_null(strstr(output, "4 runs were taken again"));
	json_decref(results);
	assert_int_equal(shell("grep -q '6 of 6 runs have no valid figures' %s/err", dir), 0);
}

static json_t *results_of(const char *directory)
{
	char path[96];
	json_error_t error;
	json_t *results;

	snprintf(path, sizeof(path), "%s/results.json", directory);
	results = json_load_file(path, 0, &error);
	assert_non_null(results);
	return results;
}

static size_t runs_of(const char *directory)
{
	json_t *results = results_of(directory);
	size_t n = json_array_size(json_object_get(results, "runs"));

	json_decref(results);
	return n;
}

static pid_t long_start(int *out, bool replace)
{
	const char *arguments[] = {
		"bench", "--quick", file, "-o", report, replace ? "--replace" : NULL, NULL};

	spec_write("quick = { warm = \"10ms\"; duration = \"400ms\"; repeats = 15; };\n" WORKLOAD
		   "systems = { host = { dut = \"napier\"; handler = \"host\"; poller = "
		   "\"thread\"; }; kernel = { knobs = { napi_defer_hard_irqs = 5; }; }; };\n");
	return lab_run_start(arguments, false, out);
}

enum { TRIES = 8 };

/* On a machine that is busy it takes longer until there is something to keep; then it is at `at`.
 */
static void interrupt_run(bool replace, const char *at)
{
	int status = 0;

	for (unsigned i = 0; i < TRIES; i++) {
		int out;
		pid_t pid = long_start(&out, replace);

		lab_run_await_namespaces(pid); /* from when on a signal is heard */
		status = lab_run_interrupt(pid, out, 1000 << i);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT);
		if (!shell("test -s %s/results.json", at))
			return;
	}
	fail_msg("interrupted so often, and nothing was measured");
}

/* Results are kept until there are others, whole, that were meant to take their place. */
static void results_are_not_replaced_unasked(void **state)
{
	(void)state;
	spec_write(SHORT WORKLOAD "systems = { a = { }; b = { }; };\n");
	shell("%s bench --quick %s -o %s", lab_run_napier, file, report);
	assert_int_equal(runs_of(report), 4);
	assert_int_equal(
		shell("mkdir -p %s/flent && touch %s/mine %s/flent/mine", report, report, report),
		0);
	assert_int_equal(shell("%s bench --quick %s -o %s 2>&1", lab_run_napier, file, report), 1);
	assert_non_null(strstr(output, report));
	assert_non_null(strstr(output, "--replace"));
	assert_int_equal(runs_of(report), 4);

	/* With one valid run, which on a busy machine may take more than one try. */
	for (unsigned i = 0; i < TRIES && runs_of(report) == 4; i++)
		shell("%s bench --quick %s --only a -o %s --replace 2>&1", lab_run_napier, file,
		      report);
	assert_int_equal(runs_of(report), 2);
	/* What is the earlier one's is gone, and what is another's is not. */
	assert_int_equal(shell("cd %s && test -e mine && test -e flent/mine && "
			       "! ls -d flent/b-* .new new.* 2>&1",
			       report),
			 0);
	shell("rm -rf napier-x-*");

	interrupt_run(true, "napier-x-*");
	assert_int_equal(runs_of(report), 2);
	spec_write(SHORT WORKLOAD
		   "systems = { x = { dut = \"command\"; command = \"exit 3\"; }; };\n");
	assert_int_equal(
		shell("%s bench --quick %s -o %s --replace 2>&1", lab_run_napier, file, report), 1);
	assert_int_equal(runs_of(report), 2);
	shell("rm -r %s napier-x-*", report);
}

static void interrupted(void **state)
{
	json_t *results;
	int out, status;
	pid_t pid;

	(void)state;
	interrupt_run(false, report);
	results = results_of(report);
	assert_true(json_is_true(json_object_get(results, "partial")));
	assert_true(json_array_size(json_object_get(results, "runs")) < 30);
	json_decref(results);
	shell("rm -r %s", report);
	/* Before there is anything to keep. */
	pid = long_start(&out, false);
	status = lab_run_interrupt(pid, out, 10);
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
	shell("rm -rf %s", report);
}

static void killed(void **state)
{
	int out, other;
	pid_t pid = long_start(&out, false);

	(void)state;
	lab_run_await_namespaces(pid);
	clock_sleep(500 * NSEC_PER_MSEC); /* mostly it measures by now */
	kill(pid, SIGKILL);
	/* The others end with it. */
	while (waitpid(-1, &other, 0) > 0)
		;
	close(out);
	assert_true(lab_run_traces(pid) > 0);
	/* Any other bench takes them away, too. */
	shell("%s bench core --only hash --quick -j", lab_run_napier);
	assert_int_equal(lab_run_traces(pid), 0);
	spec_write(SHORT WORKLOAD "systems = { kernel = { }; };\n");
	shell("%s bench --quick %s -j", lab_run_napier, file);
	assert_int_equal(lab_run_traces(pid), 0);
	shell("rm -rf %s", report);
}

static void line_check(int status, int wanted, const char *says)
{
	const char *end = strchr(output, '\n');

	if (status != wanted || !strstr(output, says) || !end || end[1])
		fail_msg("%d: %s", status, output);
}

static void refused(void **state)
{
	json_t *list;

	(void)state;
	line_check(shell("%s bench no-such-thing 2>&1", lab_run_napier), 2, "khawaja-2025");
	line_check(shell("%s bench %s --set nothing 2>&1", lab_run_napier, file), 2, "KEY=VALUE");
	line_check(shell("%s bench %s -H host:x 2>&1", lab_run_napier, file), 2, "port");
	line_check(shell("%s bench %s -o %s 2>&1", lab_run_napier, file, file), 1, "-o DIR");
	line_check(shell("%s bench %s -o /nowhere/at/all 2>&1", lab_run_napier, file), 1,
		   "/nowhere/at/all");
	line_check(shell("%s bench %s --only a,nothing 2>&1", lab_run_napier, file), 2,
		   "no system is called");
	line_check(shell("%s bench 2>&1", lab_run_napier), 2, "--list");
	/* All that it measures is here, and the server elsewhere: at an address that is reached. */
	line_check(shell("ip link set lo up; %s bench wang-2020 --quick -H 127.0.0.1 -j 2>&1 "
			 ">/dev/null",
			 lab_run_napier),
		   1, "nothing was measured");
	assert_int_equal(shell("%s bench --list", lab_run_napier), 0);
	assert_non_null(strstr(output, "riel-2014"));
	assert_int_equal(shell("%s bench --list -j", lab_run_napier), 0);
	list = json_loads(output, 0, NULL);
	assert_int_equal(json_array_size(list), 5);
	assert_string_equal(json_string_value(json_object_get(json_array_get(list, 3), "name")),
			    "riel-2014");
	json_decref(list);
	line_check(shell("cd /; setpriv --reuid %d --clear-groups %s bench %s -j 2>&1", NOBODY,
			 lab_run_napier, file),
		   1, "root");
}

/* What was measured is printed all the same. */
static void disk_full(void **state)
{
	(void)state;
	spec_write(SHORT WORKLOAD "systems = { kernel = { }; };\n");
	assert_int_equal(mkdir(report, 0700), 0);
	if (mount("tmpfs", report, "tmpfs", 0, "size=16k"))
		skip();
	assert_int_equal(shell("%s bench --quick %s -o %s 2>&1", lab_run_napier, file, report), 1);
	umount(report);
	assert_non_null(strstr(output, "kernel"));
	assert_non_null(strstr(output, "No space left"));
	shell("rm -r %s", report);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete),
		cmocka_unit_test(a_command_that_ends_ends_the_run),
		cmocka_unit_test(table_and_report),
		cmocka_unit_test(another_at_once_is_noted),
		cmocka_unit_test(only_some_systems),
		cmocka_unit_test(late_generators_are_taken_again),
		cmocka_unit_test(results_are_not_replaced_unasked),
		cmocka_unit_test(interrupted),
		cmocka_unit_test(killed),
		cmocka_unit_test(refused),
		cmocka_unit_test(disk_full),
	};

	lab_run_begin(argc, argv);
	if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_SLAVE | MS_REC, NULL)) {
		printf("skipped: mount namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, cleanup);
}

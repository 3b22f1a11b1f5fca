/* SPDX-License-Identifier: BSD-2-Clause */
/* The demo, quick: nothing lost, everything counted, and nothing left behind. */
#include "lab_run.h"

#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUICK_SWITCHES = 200 };

static const char *const quick[] = {"demo", "--quick", "-j", NULL};

static json_t *demo_run(bool as_nobody)
{
	int out;
	pid_t pid = lab_run_start(quick, as_nobody, &out);

	return lab_run_answer(pid, out);
}

static json_int_t number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return json_integer_value(value);
}

static void answer_check(const json_t *answer, const char *port)
{
	const json_t *switching = json_object_get(answer, "switching");
	const json_t *rows = json_object_get(answer, "rows");
	json_int_t samples = 0;
	size_t skipped = json_array_size(json_object_get(answer, "skipped"));

	assert_string_equal(json_string_value(json_object_get(answer, "port")), port);
	/* Five forwarders, two loads; only the kernel's threaded NAPI can be impossible. */
	assert_true(skipped <= 1);
	assert_int_equal(json_array_size(rows), 2 * (5 - skipped));
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		assert_int_equal(number(row, "lost"), 0);
		samples += number(json_object_get(row, "latency_ns"), "samples");
	}
	/* Not of each row: on a busy machine a short run may see none. */
	assert_true(samples > 0);
	assert_int_equal(number(switching, "lost"), 0);
	assert_int_equal(number(switching, "packets_dropped"), 0);
	assert_int_equal(number(switching, "switches"), QUICK_SWITCHES);
	assert_int_equal(number(switching, "counted_by_engine"), QUICK_SWITCHES);
	assert_true(number(switching, "transactions") > 0);
	assert_true(number(switching, "longest_ns") > 0);
}

static void as_root(void **state)
{
	json_t *answer;

	(void)state;
	answer = demo_run(false);
	answer_check(answer, "xdp");
	json_decref(answer);
}

/* Whether somebody without privileges can do here what the demo needs. */
static bool nobody_can(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY) ||
		      access(lab_run_napier, X_OK) || unshare(CLONE_NEWUSER | CLONE_NEWNET));
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void as_nobody(void **state)
{
	json_t *answer;

	(void)state;
	if (!nobody_can()) {
		printf("skipped: no user namespaces, or %s is not readable for all\n",
		       lab_run_napier);
		skip();
	}
	answer = demo_run(true);
	answer_check(answer, "packet");
	json_decref(answer);
}

/* SIGINT at several moments: everything that bore its process id is gone. */
static void interrupted(void **state)
{
	static const int after_ms[] = {50, 400, 1000, 2500};

	(void)state;
	for (size_t i = 0; i < sizeof(after_ms) / sizeof(*after_ms); i++) {
		int out;
		pid_t pid = lab_run_start(quick, false, &out);

		lab_run_interrupt(pid, out, after_ms[i]);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_root),
		cmocka_unit_test(as_nobody),
		cmocka_unit_test(interrupted),
	};

	lab_run_begin(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

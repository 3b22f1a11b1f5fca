/* SPDX-License-Identifier: BSD-2-Clause */
/* The demo, quick: nothing lost, everything counted, and nothing left behind. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include <lab/clock.h>

enum { NOBODY = 65534, QUICK_SWITCHES = 200 };

static const char *napier;

/* Runs `napier demo --quick -j`, its output in a pipe; the caller waits for it. */
static pid_t demo_start(bool as_nobody, int *out)
{
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		setpgid(0, 0);
		if (as_nobody && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
			_exit(99);
		execl(napier, napier, "demo", "--quick", "-j", NULL);
		_exit(98);
	}
	close(pipes[1]);
	*out = pipes[0];
	return pid;
}

static json_t *demo_run(bool as_nobody)
{
	json_error_t error;
	int out, status;
	pid_t pid = demo_start(as_nobody, &out);
	json_t *answer = json_loadfd(out, 0, &error);

	close(out);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_non_null(answer);
	return answer;
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

/* Names in a directory that contain this process id. */
static unsigned traces(const char *path, pid_t pid)
{
	struct dirent *entry;
	char text[16];
	unsigned n = 0;
	DIR *dir = opendir(path);

	if (!dir)
		return 0;
	snprintf(text, sizeof(text), "%d", pid);
	while ((entry = readdir(dir)))
		n += strstr(entry->d_name, text) != NULL;
	closedir(dir);
	return n;
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
		      access(napier, X_OK) || unshare(CLONE_NEWUSER | CLONE_NEWNET));
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void as_nobody(void **state)
{
	json_t *answer;

	(void)state;
	if (!nobody_can()) {
		printf("skipped: no user namespaces, or %s is not readable for all\n", napier);
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
		int out, status;
		pid_t pid = demo_start(false, &out);

		clock_sleep(after_ms[i] * INT64_C(1000000));
		kill(-pid, SIGINT);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		close(out);
		/* The engine that it ran is our child now, and ends in order; one that was just
		 * starting may have found its namespace gone. */
		while (waitpid(-1, &status, 0) > 0)
			assert_true(WIFEXITED(status));
		assert_int_equal(traces("/run/netns", pid), 0);
		assert_int_equal(traces("/run/napier", pid), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_root),
		cmocka_unit_test(as_nobody),
		cmocka_unit_test(interrupted),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: demo NAPIER\n");
		return 2;
	}
	napier = argv[1];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

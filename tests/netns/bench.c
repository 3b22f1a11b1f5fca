/* SPDX-License-Identifier: BSD-2-Clause */
/* napier bench pollers, quick: every part measures something of everybody, and leaves nothing. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include <lab/clock.h>
#include <napier/napi.h>

static const char *napier;

static pid_t bench_start(const char *part, int *out)
{
	int pipes[2];
	pid_t pid;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		setpgid(0, 0);
		execl(napier, napier, "bench", "pollers", "--quick", "-j", "--only", part, NULL);
		_exit(98);
	}
	close(pipes[1]);
	*out = pipes[0];
	return pid;
}

/* The part's object; the caller gives *whole back. */
static json_t *part_run(const char *part, json_t **whole)
{
	json_error_t error;
	int out, status;
	pid_t pid = bench_start(part, &out);
	json_t *parts, *one;

	*whole = json_loadfd(out, 0, &error);
	close(out);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_non_null(*whole);
	parts = json_object_get(*whole, "parts");
	assert_int_equal(json_array_size(parts), 1);
	one = json_array_get(parts, 0);
	assert_string_equal(json_string_value(json_object_get(one, "part")), part);
	return one;
}

/* Rows, those that were left out or in which nothing happened included; how many have the key. */
static unsigned rows_with(const json_t *part, size_t rows, const char *key)
{
	const json_t *array = json_object_get(part, "rows");
	unsigned n = 0;

	assert_true(json_array_size(array) <= rows);
	assert_true(json_array_size(array) + json_array_size(json_object_get(part, "notes")) >=
		    rows);
	for (size_t i = 0; i < json_array_size(array); i++) {
		const json_t *figure = json_object_get(json_array_get(array, i), key);

		assert_non_null(figure);
		if (json_is_null(figure))
			continue;
		assert_true(json_is_real(json_object_get(figure, "value")));
		assert_int_equal(json_array_size(json_object_get(figure, "rounds")), 1);
		n++;
	}
	return n;
}

static double value_of(const json_t *part, size_t row, const char *key)
{
	const json_t *figure =
		json_object_get(json_array_get(json_object_get(part, "rows"), row), key);

	return json_real_value(json_object_get(figure, "value"));
}

static void cost(void **state)
{
	json_t *whole, *part = part_run("cost", &whole);

	(void)state;
	assert_int_equal(rows_with(part, POLLER_MAX, "ns_per_event"), POLLER_MAX);
	assert_true(value_of(part, POLLER_SOFTIRQ, "ratio_to_softirq") == 1);
	/* Each event of these is scheduled, polled and completed once; but for the last ones. */
	assert_true(value_of(part, POLLER_SOFTIRQ, "completes_per_event") > 0.9);
	assert_true(value_of(part, POLLER_THREAD, "completes_per_event") > 0.9);
	assert_true(value_of(part, POLLER_BUSY_POLL, "completes_per_event") == 0);
	json_decref(whole);
}

static void wake(void **state)
{
	json_t *whole, *part = part_run("wake", &whole);

	(void)state;
	assert_int_equal(rows_with(part, 2 * POLLER_MAX, "events"), 2 * POLLER_MAX);
	json_decref(whole);
}

static void scale(void **state)
{
	json_t *whole, *part = part_run("scale", &whole);

	(void)state;
	assert_int_equal(rows_with(part, 2 * POLLER_MAX - 1, "1"), 2 * POLLER_MAX - 1);
	assert_int_equal(rows_with(part, 2 * POLLER_MAX - 1, "1024"), 2 * POLLER_MAX - 1);
	json_decref(whole);
}

/*
 * Cases 22 and 25. A busy machine may let nothing happen in so short a time, but not to everybody.
 */
static void forward(void **state)
{
	json_t *whole, *part = part_run("forward", &whole);

	(void)state;
	assert_true(rows_with(part, 4 + POLLER_MAX, "mframes_per_second") > 3);
	assert_true(rows_with(part, 4 + POLLER_MAX, "packets_per_poll_saturated") > 2);
	assert_true(rows_with(part, 4 + POLLER_MAX, "own_cpu_ns_per_frame") > 3);
	assert_true(rows_with(part, 4 + POLLER_MAX, "ksoftirqd_cpu_ns_per_frame") > 3);
	assert_true(rows_with(part, 4 + POLLER_MAX, "generator_cpu_ns_per_frame") > 3);
	json_decref(whole);
}

static void flood(void **state)
{
	json_t *whole, *part = part_run("flood", &whole);

	(void)state;
	assert_true(rows_with(part, 6 + POLLER_MAX, "delivered_percent") > 3);
	json_decref(whole);
}

static void workers(void **state)
{
	json_t *whole, *part = part_run("workers", &whole);

	(void)state;
	assert_true(rows_with(part, 5, "capacity_per_second") > 2);
	json_decref(whole);
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

static void interrupted(void **state)
{
	static const struct {
		const char *part;
		int after_ms;
	} cases[] = {{"wake", 100}, {"forward", 1000}, {"flood", 100}, {"flood", 2000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int out, status;
		pid_t pid = bench_start(cases[i].part, &out);

		clock_sleep(cases[i].after_ms * INT64_C(1000000));
		kill(-pid, SIGINT);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(!WIFEXITED(status) || WEXITSTATUS(status));
		close(out);
		/* The engine that it ran is our child now, and ends in order. */
		while (waitpid(-1, &status, 0) > 0)
			assert_true(WIFEXITED(status));
		assert_int_equal(traces("/run/netns", pid), 0);
		assert_int_equal(traces("/run/napier", pid), 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost),	       cmocka_unit_test(wake),	cmocka_unit_test(scale),
		cmocka_unit_test(forward),     cmocka_unit_test(flood), cmocka_unit_test(workers),
		cmocka_unit_test(interrupted),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: bench NAPIER\n");
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

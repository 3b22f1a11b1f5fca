/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/report/file.h"
#include "lab/report/report.h"

#include "results_fixture.h"

static char directory[] = "/tmp/napier-report-XXXXXX";

static const char *in(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static int directory_make(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int directory_remove(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static unsigned files_count(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2; /* . and .. */
}

static json_t *fixture(void)
{
	return results_fixture(&(struct fixture){.systems = 10,
						 .workloads = 4,
						 .repeats = 2,
						 .samples = 3000,
						 .faster = 1,
						 .faults = true});
}

static void text_put(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void what_is_written_is_read(void **state)
{
	json_t *results = fixture(), *again = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(report_results(results, in("results.json"), &err), 0);
	assert_int_equal(report_read(in("results.json"), &again, &err), 0);
	assert_true(json_equal(results, again));
	json_decref(again);
	again = NULL;
	assert_int_equal(report_read(directory, &again, &err), 0);
	assert_true(json_equal(results, again));
	json_decref(again);
	json_decref(results);
	unlink(in("results.json"));
}

static void refused(const char *text, int code, const char *said)
{
	json_t *results = NULL;
	struct error err = {0};

	text_put(in("wrong.json"), text);
	assert_int_equal(report_read(in("wrong.json"), &results, &err), code);
	assert_null(results);
	assert_non_null(strstr(err.text, "wrong.json"));
	if (!strstr(err.text, said))
		fail_msg("\"%s\" is not in \"%s\"", said, err.text);
	unlink(in("wrong.json"));
}

static void what_is_no_results_is_refused(void **state)
{
	json_t *results = NULL;
	struct error err = {0};

	(void)state;
	refused("{\n  \"schema\": }\n", -EINVAL, "wrong.json:2: ");
	refused("", -EINVAL, "wrong.json:1: no results of napier bench: ");
	refused("{}", -EPROTONOSUPPORT, "missing");
	refused("{\"schema\": \"other\", \"version\": 1}", -EPROTONOSUPPORT, "\"other\"");
	refused("{\"schema\": \"napier-results\"}", -EPROTONOSUPPORT, "\"version\"");
	refused("{\"schema\": \"napier-results\", \"version\": 2}", -EPROTONOSUPPORT, "version 2");
	refused("{\"schema\": \"napier-results\", \"version\": 1, \"systems\": [], \"workloads\": "
		"[]}",
		-EINVAL, "\"runs\"");
	refused("{\"schema\": \"napier-results\", \"version\": 1, \"version\": 1}", -EINVAL,
		"duplicate");
	assert_int_equal(report_read(in("none"), &results, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/none"));
	assert_int_equal(report_read(directory, &results, &err), -ENOENT);
	assert_non_null(strstr(err.text, "results.json"));
	assert_null(results);
}

static void what_stands_there_stays_when_writing_fails(void **state)
{
	struct rlimit small = {.rlim_cur = 4096}, before;
	char *big = calloc(1, 100000), old[8] = "";
	struct error err = {0};
	int fd;

	(void)state;
	text_put(in("file"), "old");
	getrlimit(RLIMIT_FSIZE, &before);
	small.rlim_max = before.rlim_max;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(file_write(in("file"), big, 100000, &err), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, SIG_DFL);
	assert_non_null(strstr(err.text, in("file")));
	fd = open(in("file"), O_RDONLY);
	assert_int_equal(read(fd, old, sizeof(old)), 3);
	close(fd);
	assert_string_equal(old, "old");
	assert_int_equal(files_count(directory), 1);

	assert_int_equal(file_write(in("file"), "new", 3, &err), 0);
	fd = open(in("file"), O_RDONLY);
	assert_int_equal(read(fd, old, sizeof(old)), 3);
	close(fd);
	assert_string_equal(old, "new");
	unlink(in("file"));
	free(big);
}

static int child_wait(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

enum { CHILD_FINE = 0, CHILD_WRONG = 1, CHILD_CANNOT = 77 };

/* In a file system of 64 kB. */
static int disk_fill(const json_t *results)
{
	struct error err = {0};
	int rc;

	if (unshare(getuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("napier-test", directory, "tmpfs", 0, "size=64k"))
		return CHILD_CANNOT;
	rc = report_results(results, in("results.json"), &err);
	return rc == -ENOSPC && strstr(err.text, "results.json") && strstr(err.text, "No space") &&
			       !files_count(directory)
		       ? CHILD_FINE
		       : CHILD_WRONG;
}

static void a_full_disk_is_said(void **state)
{
	json_t *results = fixture();
	pid_t pid = fork();
	int rc;

	(void)state;
	if (!pid)
		_exit(disk_fill(results));
	rc = child_wait(pid);
	json_decref(results);
	if (rc == CHILD_CANNOT) {
		print_message("no mount namespace here\n");
		skip();
	}
	assert_int_equal(rc, CHILD_FINE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_is_no_results_is_refused),
		cmocka_unit_test(what_stands_there_stays_when_writing_fails),
		cmocka_unit_test(a_full_disk_is_said),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}

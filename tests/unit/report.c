/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
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

/* Of a directory and of its flent/, all that is no file of a report. */
static unsigned others_count(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned n = 0;

	while (dir && (entry = readdir(dir)))
		n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
		     strcmp(entry->d_name, "results.json") &&
		     strcmp(entry->d_name, "report.html") && strcmp(entry->d_name, "flent") &&
		     fnmatch("*.flent.gz", entry->d_name, 0);
	if (dir)
		closedir(dir);
	return n;
}

static void file_make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "half", 4), 4);
	close(fd);
}

/* Few files, as it is written often. */
static json_t *small(void)
{
	return results_fixture(&(struct fixture){
		.systems = 2, .workloads = 1, .repeats = 2, .samples = 300, .faster = 1});
}

/* Writes reports until it is killed. */
static pid_t writer_start(const json_t *results, const char *path)
{
	pid_t pid = fork();
	struct error err;

	assert_true(pid >= 0);
	while (!pid)
		if (report_write(results, path, &err) || report_replace(results, path, &err))
			_exit(1);
	return pid;
}

/* Each that could be there, and what in truth is left at some moment. */
static void what_a_killed_one_left_goes(void **state)
{
	static const char *const left[] = {
		".new/results.json",	      ".new/.report.html.new", ".new/flent/gone.flent.gz",
		".new/flent/.x.flent.gz.new", ".results.json.new",     ".report.html.new",
		"flent/.y.flent.gz.new",
	};
	json_t *results = small(), *read;
	char path[128], file[256];
	struct error err;

	(void)state;
	snprintf(path, sizeof(path), "%s/killed", directory);
	assert_int_equal(report_write(results, path, &err), 0);
	snprintf(file, sizeof(file), "%s/.new", path);
	assert_int_equal(mkdir(file, 0777), 0);
	snprintf(file, sizeof(file), "%s/.new/flent", path);
	assert_int_equal(mkdir(file, 0777), 0);
	for (size_t i = 0; i < sizeof(left) / sizeof(*left); i++) {
		snprintf(file, sizeof(file), "%s/%s", path, left[i]);
		file_make(file);
	}
	for (unsigned i = 0; i <= 10; i++) {
		int status;
		pid_t pid;

		if (report_replace(results, path, &err))
			fail_msg("%s", err.text);
		assert_int_equal(others_count(path), 0);
		snprintf(file, sizeof(file), "%s/flent", path);
		assert_int_equal(others_count(file), 0);
		snprintf(file, sizeof(file), "%s/flent/gone.flent.gz", path);
		assert_int_not_equal(access(file, F_OK), 0);
		assert_int_equal(report_read(path, &read, &err), 0);
		json_decref(read);
		if (i == 10)
			break;
		pid = writer_start(results, path);
		usleep(1000 + i * 700);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status)); /* none has failed */
	}
	json_decref(results);
}

static int write_often(const json_t *results, const char *path)
{
	struct error err;
	int rc = 0;

	for (unsigned i = 0; i < 5 && !rc; i++) {
		rc = report_replace(results, path, &err);
		rc = rc ? rc : report_write(results, path, &err);
	}
	return rc;
}

/* Two at once write one after the other, and what is there is whole. */
static void two_at_once_do_not_mix(void **state)
{
	json_t *results = small(), *read;
	char path[128];
	struct error err;
	pid_t pid;

	(void)state;
	snprintf(path, sizeof(path), "%s/two", directory);
	assert_int_equal(report_write(results, path, &err), 0);
	pid = fork();
	if (!pid)
		_exit(write_often(results, path) ? CHILD_WRONG : CHILD_FINE);
	assert_int_equal(write_often(results, path), 0);
	assert_int_equal(child_wait(pid), CHILD_FINE);
	assert_int_equal(report_read(path, &read, &err), 0);
	assert_true(json_equal(read, results));
	assert_int_equal(others_count(path), 0);
	json_decref(read);
	json_decref(results);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_is_no_results_is_refused),
		cmocka_unit_test(what_stands_there_stays_when_writing_fails),
		cmocka_unit_test(a_full_disk_is_said),
		cmocka_unit_test(what_a_killed_one_left_goes),
		cmocka_unit_test(two_at_once_do_not_mix),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}

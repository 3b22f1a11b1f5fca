/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <napier/machine.h>

#include <lab/clock.h>

#define PATIENCE (60 * NSEC_PER_SEC) /* only against hanging */

const char *lab_run_napier;

void lab_run_begin(int argc, char **argv)
{
	static char path[PATH_MAX];

	if (argc != 2) {
		fprintf(stderr, "usage: %s NAPIER\n", argv[0]);
		exit(2);
	}
	/* Meson's may be relative, and some tests run it from another directory. */
	lab_run_napier = realpath(argv[1], path) ? path : argv[1];
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* What a shell has put into the background ignores it, and what that starts does. */
	signal(SIGINT, SIG_DFL);
	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		exit(77);
	}
}

pid_t lab_run_start(const char *const *arguments, bool as_nobody, int *out)
{
	const char *argv[16] = {lab_run_napier};
	int pipes[2];
	pid_t pid;

	for (int i = 0; arguments[i]; i++) {
		assert_true(i + 2 < 16);
		argv[i + 1] = arguments[i];
	}
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		setpgid(0, 0);
		if (as_nobody && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
			_exit(99);
		execv(lab_run_napier, (char *const *)argv);
		_exit(98);
	}
	/* Both sides do it, as either may be the first to need it. */
	setpgid(pid, pid);
	close(pipes[1]);
	*out = pipes[0];
	return pid;
}

json_t *lab_run_answer(pid_t pid, int out)
{
	json_error_t error;
	json_t *answer = json_loadfd(out, 0, &error);
	int status;

	close(out);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_non_null(answer);
	return answer;
}

/* Names in a directory that have this number in them, and not as a part of a longer one. */
static unsigned names_with(const char *path, pid_t pid)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir = opendir(path);

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		const char *at = entry->d_name + strcspn(entry->d_name, "0123456789");

		n += *at && strtol(at, NULL, 10) == pid;
	}
	closedir(dir);
	return n;
}

unsigned lab_run_traces(pid_t pid)
{
	return names_with("/run/netns", pid) + names_with("/run/napier", pid);
}

void lab_run_await_namespaces(pid_t pid)
{
	int64_t limit = clock_now() + PATIENCE;

	while (!names_with("/run/netns", pid) && clock_now() < limit)
		clock_sleep(NSEC_PER_MSEC);
	assert_true(names_with("/run/netns", pid) > 0);
}

int lab_run_interrupt(pid_t pid, int out, int after_ms)
{
	int status, other;

	clock_sleep(after_ms * NSEC_PER_MSEC);
	kill(-pid, SIGINT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(out);
	/*
	 * The engine that it ran is our child now, and ends in order; one that was just starting
	 * may have found its namespace gone, or not yet have blocked the signal: this one, or the
	 * one by which it is told to end.
	 */
	while (waitpid(-1, &other, 0) > 0)
		assert_true(WIFEXITED(other) || WTERMSIG(other) == SIGINT ||
			    WTERMSIG(other) == SIGTERM);
	assert_int_equal(lab_run_traces(pid), 0);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab/child.h"
#include "lab/clock.h"

#define STOP_TIMEOUT (10 * NSEC_PER_SEC)

/* In the child, which has not yet become the program. */
static void become(const char *const argv[], const struct cpuset *cpus, int netns, pid_t parent,
		   int out, int said)
{
	cpu_set_t set;
	sigset_t none;

	/*
	 * A group of its own: a terminal's SIGINT is for us, whose end ends it. Two signals would
	 * mean to hurry.
	 */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(126); /* it died before the line above */
	CPU_ZERO(&set);
	for (unsigned cpu = cpuset_next(cpus, 0); cpu < CPU_MAX; cpu = cpuset_next(cpus, cpu + 1))
		CPU_SET(cpu, &set);
	if (!cpuset_empty(cpus))
		sched_setaffinity(0, sizeof(set), &set);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(out, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	if (netns < 0 || !setns(netns, CLONE_NEWNET))
		execv(argv[0], (char *const *)argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

int child_start(struct child *child, const char *const argv[], const struct cpuset *cpus, int netns,
		struct error *err)
{
	const char *name = strrchr(argv[0], '/');
	pid_t parent = getpid();
	int pipes[2];

	*child = CHILD_NONE;
	snprintf(child->name, sizeof(child->name), "%.31s", name ? name + 1 : argv[0]);
	if (pipe2(pipes, O_CLOEXEC))
		return error_set(err, -errno, "%s: pipe: %s", child->name, strerror(errno));
	child->out = pipes[0];
	child->said = memfd_create("said", MFD_CLOEXEC);
	child->pid = child->said < 0 ? -1 : fork();
	if (child->pid == 0)
		become(argv, cpus, netns, parent, pipes[1], child->said);
	close(pipes[1]);
	if (child->pid < 0) {
		int ret =
			error_set(err, -errno, "%s: starting it: %s", child->name, strerror(errno));

		child->pid = 0;
		child_stop(child, NULL);
		return ret;
	}
	return 0;
}

/* The last line that is one. */
static void said_read(const struct child *child, char *line, size_t size)
{
	char text[4096];
	off_t end = lseek(child->said, 0, SEEK_END);
	off_t from = end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0;
	ssize_t n = pread(child->said, text, sizeof(text) - 1, from);
	char *start;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	start = strrchr(text, '\n');
	snprintf(line, size, "%.*s", (int)size - 1, start ? start + 1 : text);
}

static int status_tell(struct child *child, int status, struct error *err)
{
	char line[256];

	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	said_read(child, line, sizeof(line));
	if (WIFSIGNALED(status))
		return error_set(err, -ECHILD, "%s was killed by signal %d%s%s", child->name,
				 WTERMSIG(status), *line ? ": " : "", line);
	return error_set(err, -ECHILD, "%s ended with %d%s%s", child->name, WEXITSTATUS(status),
			 *line ? ": " : "", line);
}

static void child_close(struct child *child)
{
	if (child->out >= 0)
		close(child->out);
	if (child->said >= 0)
		close(child->said);
	*child = CHILD_NONE;
}

bool child_ended(struct child *child, struct error *err)
{
	int status;

	if (!child->pid)
		return true;
	if (waitpid(child->pid, &status, WNOHANG) != child->pid)
		return false;
	child->pid = 0;
	if (!status_tell(child, status, err))
		error_set(err, -ECHILD, "%s has ended", child->name);
	child_close(child);
	return true;
}

int child_ready(struct child *child, int64_t timeout, struct error *err)
{
	int64_t deadline = clock_now() + timeout;

	for (;;) {
		struct pollfd wait = {.fd = child->out, .events = POLLIN};
		char text[64];

		if (poll(&wait, 1, 100) > 0 && wait.revents & POLLIN)
			return read(child->out, text, sizeof(text)) > 0 ? 0 : -EIO;
		if (child_ended(child, err))
			return -ECHILD;
		if (clock_now() > deadline)
			return error_set(err, -ETIMEDOUT, "%s is not ready after %d s", child->name,
					 (int)(timeout / NSEC_PER_SEC));
	}
}

int child_stop(struct child *child, struct error *err)
{
	int64_t deadline = clock_now() + STOP_TIMEOUT;
	int status = 0, ret = 0;

	if (child->pid > 0) {
		kill(child->pid, SIGTERM);
		while (waitpid(child->pid, &status, WNOHANG) == 0) {
			if (clock_now() > deadline)
				kill(child->pid, SIGKILL);
			clock_sleep(NSEC_PER_MSEC);
		}
		ret = status_tell(child, status, err);
	}
	child_close(child);
	return ret;
}

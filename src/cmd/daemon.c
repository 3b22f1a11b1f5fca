/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmd/cmd.h>
#include <cmd/daemon.h>

/* Only a byte means ready; a closed pipe means that the child ends, and with what. */
static _Noreturn void parent_wait(int fd, pid_t child)
{
	sigset_t none;
	ssize_t n;
	char byte;
	int status;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		_exit(DONE);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : FAILED);
}

int daemon_begin(void)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0) {
		int rc = -errno;

		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	close(fds[child ? 1 : 0]);
	if (child)
		parent_wait(fds[0], child);
	setsid();
	return fds[1];
}

void daemon_ready(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Where that fails it keeps the terminal, which is no reason to stop. */
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	(void)!chdir("/");
	(void)!write(fd, "", 1);
	close(fd);
}

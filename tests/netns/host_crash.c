/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hosted interface whose engine is killed at any of its requests to the kernel, on the way there
 * and on the way back: the next start puts everything back as it was.
 *
 * The engine runs under ptrace, its main thread counted, which does both.
 */
#include "host_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STRIDE 7 /* every so many requests, from another one in each run of the test */

/* Leaks are looked for by ptrace, too, and one process has one tracer: here they cannot be. */
static void leaks_ignore(void)
{
	const char *options = getenv("ASAN_OPTIONS");
	char text[256];

	snprintf(text, sizeof(text), "%s:detect_leaks=0", options ? options : "");
	setenv("ASAN_OPTIONS", text, 1);
}

static pid_t traced_start(struct command_rig *rig)
{
	char spec[256], *argv[] = {NAPIER, "run", "--run-dir", rig->base, "--host", spec, NULL};
	pid_t child;
	int status;

	netns_spec(&rig->links, 0, "xdp", "", spec);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int nowhere = open("/dev/null", O_WRONLY);

		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		leaks_ignore();
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execv(NAPIER, argv);
		_exit(126);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(
		ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	rig->engine = child;
	return child;
}

static bool sends(pid_t child)
{
	struct __ptrace_syscall_info info = {0};

	return ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) > 0 &&
	       info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_sendto;
}

/* Killed at its request number `at`: true; it ended before that: false. */
static bool killed_at(struct command_rig *rig, unsigned at)
{
	pid_t child = traced_start(rig);
	unsigned requests = 0;
	bool ready = false;
	int status, pass = 0;

	for (;;) {
		ptrace(PTRACE_SYSCALL, child, 0, pass);
		assert_int_equal(waitpid(child, &status, __WALL), child);
		if (!WIFSTOPPED(status))
			break;
		pass = WSTOPSIG(status) == (SIGTRAP | 0x80) || WSTOPSIG(status) == SIGTRAP
			       ? 0
			       : WSTOPSIG(status);
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			continue;
		if (!ready && notified(rig, "READY=1", 0)) {
			ready = true;
			kill(child, SIGINT);
		}
		if (sends(child) && ++requests == at)
			kill(child, SIGKILL);
	}
	rig->engine = 0;
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGKILL);
		return true;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(ready);
	printf("  %u requests\n", requests);
	return false;
}

static void put_back_from_anywhere(void **state)
{
	unsigned first = 1 + (unsigned)getpid() % STRIDE, n = 0;
	struct command_rig *rig = *state;
	struct process engine;
	char *before, *now;

	configure(rig);
	before = dump(rig, "in0");
	printf("  from request %u, every %d\n", first, STRIDE);
	for (unsigned at = first; killed_at(rig, at); at += STRIDE, n++) {
		engine_start(rig, &engine, "run --run-dir %s mem:a", rig->base);
		engine_stop(rig, &engine);
		now = dump(rig, "in0");
		if (strcmp(before, now))
			printf("  killed at request %u, and then:\n%s", at, engine.err);
		assert_same(before, now);
		free(now);
	}
	assert_true(n > 5);
	now = dump(rig, "in0");
	assert_same(before, now);
	free(now);
	free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {command_test(put_back_from_anywhere)};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

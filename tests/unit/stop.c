/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `napier stop` in the moments in which an engine has its lock and no socket, which are exact here:
 * the lock is this test's, and the first argument is the command.
 */
#include "test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <control/rundir.h>

static char *command;

struct scene {
	char base[32];
	struct rundir dir;
	int inotify;
	pid_t stop;
	int err; /* what it says */
};

static void scene_begin(struct scene *s)
{
	char path[RUNDIR_PATH_MAX + 10];
	int pipes[2];

	*s = (struct scene){.base = "/tmp/napier-stop-XXXXXX"};
	assert_non_null(mkdtemp(s->base));
	assert_int_equal(rundir_find(&s->dir, s->base, "x", NULL), 0);
	assert_int_equal(rundir_lock(&s->dir, NULL), 0);
	s->inotify = inotify_init1(IN_CLOEXEC);
	rundir_file(&s->dir, "pid", path);
	assert_true(inotify_add_watch(s->inotify, path, IN_OPEN) >= 0);
	assert_int_equal(pipe(pipes), 0);
	s->err = pipes[0];
	s->stop = fork();
	if (!s->stop) {
		dup2(pipes[1], STDERR_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execl(command, command, "stop", "--run-dir", s->base, "--name", "x", NULL);
		_exit(126);
	}
	close(pipes[1]);
}

/* It looks for the owner of the lock once in each try. */
static void scene_second_try(struct scene *s)
{
	char events[4096];
	unsigned opens = 0;

	while (opens < 2) {
		struct pollfd wait = {.fd = s->inotify, .events = POLLIN};
		ssize_t n;

		assert_int_equal(poll(&wait, 1, 20000), 1);
		n = read(s->inotify, events, sizeof(events));
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *event = (const void *)(events + at);

			opens += !!(event->mask & IN_OPEN);
			at += (ssize_t)sizeof(*event) + event->len;
		}
	}
}

static void scene_end(struct scene *s, const char *says)
{
	char text[512] = "";
	int status;
	ssize_t n;

	n = read(s->err, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	assert_string_equal(text, says);
	assert_int_equal(waitpid(s->stop, &status, 0), s->stop);
	assert_int_equal(status, 0);
	close(s->err);
	close(s->inotify);
	rundir_close(&s->dir);
	assert_int_equal(rmdir(s->base), 0);
}

/* Somebody else has stopped it: its end is waited for, and what was asked. */
static void waits_for_one_that_ends(void **state)
{
	struct scene s;

	(void)state;
	scene_begin(&s);
	scene_second_try(&s);
	rundir_close(&s.dir);
	scene_end(&s, "");
}

/* It takes no connections yet: it is stopped as soon as it does. */
static void waits_for_one_that_starts(void **state)
{
	static const char yes[] = "{\"ok\": true}\n";
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[RUNDIR_PATH_MAX + 10], request[128] = "";
	struct scene s;
	int listener, connection;

	(void)state;
	scene_begin(&s);
	scene_second_try(&s);
	rundir_file(&s.dir, "control", path);
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (void *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	connection = accept(listener, NULL, NULL);
	assert_true(connection >= 0);
	assert_true(read(connection, request, sizeof(request) - 1) > 0);
	assert_non_null(strstr(request, "\"stop\""));
	assert_int_equal(write(connection, yes, sizeof(yes) - 1), sizeof(yes) - 1);
	close(listener);
	rundir_close(&s.dir);
	close(connection);
	scene_end(&s, "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_one_that_ends),
		cmocka_unit_test(waits_for_one_that_starts),
	};

	if (argc != 2)
		return 2;
	command = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

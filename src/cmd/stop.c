/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <control/client.h>
#include <control/hosted.h>

#include <cmd/cmd.h>
#include <cmd/log.h>

#define STOP_SECONDS 60
#define LOOK_MS 10

enum { LOOKS = STOP_SECONDS * 1000 / LOOK_MS };

static void pause_short(void)
{
	struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};

	nanosleep(&pause, NULL);
}

static int not_ended(pid_t pid)
{
	return complain("the engine (pid %d) has not ended within %d s: kill it", (int)pid,
			STOP_SECONDS);
}

/*
 * The lock is the last thing an engine gives back: by then it has removed its directory, too.
 * Without it the engine has ended before it was asked.
 */
static int end_wait(const struct rundir *dir, int fd, int watch)
{
	char byte;

	(void)!read(fd, &byte, 1); /* the engine closes the connection when it has ended */
	for (int i = 0; i < LOOKS; i++) {
		if (watch < 0 || rundir_ended(watch))
			return DONE;
		pause_short();
	}
	return not_ended(rundir_owner(dir));
}

/*
 * -1: connected. An engine that just starts takes connections soon; one that just ends, stopped by
 * somebody else, has let go of its socket before the rest, and then its end is what was asked for.
 */
static int engine_reach(const struct rundir *dir, int *fd)
{
	struct error err;
	bool met = false;

	for (int i = 0; i < LOOKS; i++) {
		*fd = client_connect(dir, &err);
		if (*fd >= 0)
			return -1;
		if (*fd == -ENOENT && met)
			return DONE;
		if (*fd != -EAGAIN)
			return complain("%s", err.text);
		met = true;
		pause_short();
	}
	return not_ended(rundir_owner(dir));
}

/* -1: there is nothing that a killed engine has left changed, or it is another's by now. */
static int left_put_back(struct rundir *dir)
{
	char restore[RUNDIR_PATH_MAX + 10];
	struct machine *machine;
	struct error err;
	int rc;

	if (!hosted_left(dir) || rundir_owner(dir))
		return -1;
	rc = machine_host_create(&machine, &err);
	if (rc)
		return complain("%s", err.text);
	rc = rundir_lock(dir, NULL);
	if (!rc) {
		rundir_file(dir, "restore", restore);
		engine_restore(restore, log_line, NULL);
		hosted_restore(dir, machine_now(machine), log_line, NULL);
		rundir_close(dir);
	}
	machine_destroy(machine);
	return rc ? -1 : DONE;
}

static int stop_run(int argc, char **argv)
{
	static const struct option options[] = {WHICH_LONG, {0}};
	struct which which = {0};
	struct rundir dir;
	struct error err;
	json_t *answer;
	int option, fd, watch, rc;

	while ((option = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		rc = which_option(&command_stop, &which, option, argv);
		if (rc >= 0)
			return rc;
	}
	if (optind < argc)
		return misused("stop: too many arguments: --name says which engine");
	rc = which_dir(&which, &dir);
	if (rc)
		return rc;
	rc = left_put_back(&dir);
	if (rc < 0)
		rc = engine_reach(&dir, &fd);
	if (rc >= 0)
		return rc;
	watch = rundir_watch(&dir);
	rc = client_ask(fd, json_pack("{s:s}", "request", "stop"), &answer, &err);
	/* One that ends already, for somebody else, answers no more. */
	if (rc && rc != -ECONNRESET && rc != -EPIPE)
		return complain("%s (kill -TERM %d)", err.text, (int)rundir_owner(&dir));
	if (!rc)
		json_decref(answer);
	rc = end_wait(&dir, fd, watch);
	if (watch >= 0)
		close(watch);
	close(fd);
	return rc;
}

const struct command command_stop = {
	.name = "stop",
	.summary = "stop an engine, and wait until it has ended",
	.usage = "Usage: napier stop [OPTION…]\n"
		 "Stops an engine and returns when it has ended. What it has received is sent "
		 "first.\nOf one that was killed it puts back the addresses that were its "
		 "host's.\n\n" WHICH_USAGE,
	.run = stop_run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* A command of the user's, between or behind the interfaces under test. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/clock.h"
#include "lab/run/record.h"
#include "lab/run/system.h"

/* So long it has to say that it is ready; one that never says so is taken to be. */
#define READY NSEC_PER_SEC
#define END (2 * NSEC_PER_SEC)

enum { ENVIRONMENT = 12, VALUE = 320 };

struct environment {
	unsigned n;
	char text[ENVIRONMENT][VALUE];
};

__attribute__((format(printf, 2, 3))) static void add(struct environment *e, const char *format,
						      ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(e->text[e->n++], VALUE, format, arguments);
	va_end(arguments);
}

static void environment_fill(const struct system *system, struct environment *e)
{
	const struct topology *t = system->topology;
	const struct spec_placement *poller = system_place(system->spec, "poller");
	char cpus[256] = "";

	e->n = 0;
	if (poller)
		cpuset_format(&poller->cpus, cpus, sizeof(cpus));
	add(e, RECORD_MARK "=%d", getpid());
	for (unsigned i = 0; i < t->duts; i++) {
		add(e, "NAPIER_IF_%c=%s", "AB"[i], t -> dut[i].interface);
		add(e, "NAPIER_ADDRESS_%c=%s", "AB"[i], t -> dut[i].address);
	}
	add(e, "NAPIER_NETNS=%s", t->dut[0].netns_name);
	add(e, "NAPIER_CLIENT=%s", t->client.address);
	add(e, "NAPIER_SERVER=%s", t->server.address);
	add(e, "NAPIER_CPUS=%s", cpus);
	add(e, "NAPIER_QUEUES=%u", system->spec->queues ? system->spec->queues : 1);
}

int system_command_start(struct system *system, struct error *err)
{
	const struct spec_placement *poller = system_place(system->spec, "poller");
	const struct cpuset anywhere = {0};
	const char *argv[ENVIRONMENT + 5] = {"/usr/bin/env"};
	const char *netns = system->topology->dut[0].netns_name;
	struct environment environment;
	unsigned n = 1;
	int ret;

	environment_fill(system, &environment);
	for (unsigned i = 0; i < environment.n; i++)
		argv[n++] = environment.text[i];
	argv[n++] = "sh";
	argv[n++] = "-c";
	argv[n] = system->spec->command;
	ret = record_add(system->rundir, "command", err);
	if (ret)
		return ret;
	ret = child_start(&system->command, argv, poller ? &poller->cpus : &anywhere,
			  system->topology->dut[0].netns, err);
	if (ret) {
		record_remove("command");
		return ret;
	}
	system->group = system->command.pid;
	snprintf(system->command.name, sizeof(system->command.name), "the command");
	fcntl(system->command.out, F_SETFL, O_NONBLOCK);
	for (unsigned i = 1; i < environment.n; i++)
		system_say(system, "export %s", environment.text[i]);
	system_say(system, "%s%s%s%s", *netns ? "ip netns exec " : "", netns, *netns ? " " : "",
		   system->spec->command);
	if (poller)
		system_placed(system, poller, "affinity");
	ret = child_ready(&system->command, READY, err);
	return ret == -ETIMEDOUT ? 0 : ret;
}

static bool of_group(const char *pid, pid_t group)
{
	char path[64];
	int one;

	snprintf(path, sizeof(path), "%d", atoi(pid));
	if (strcmp(path, pid))
		return false;
	one = atoi(pid);
	return getpgid(one) == group;
}

static unsigned tasks_add(const char *pid, pid_t *tids, unsigned n, unsigned max)
{
	char path[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.16s/task", pid);
	dir = opendir(path);
	while (dir && n < max && (entry = readdir(dir)))
		if (atoi(entry->d_name))
			tids[n++] = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return n;
}

unsigned system_command_threads(const struct system *system, pid_t *tids, unsigned max)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir;

	if (!system->group)
		return 0;
	dir = opendir("/proc");
	while (dir && n < max && (entry = readdir(dir)))
		if (of_group(entry->d_name, system->group))
			n = tasks_add(entry->d_name, tids, n, max);
	if (dir)
		closedir(dir);
	return n;
}

/* All of its group, as a shell that is told to end does not tell those that it started. */
int system_command_stop(struct system *system, struct error *err)
{
	pid_t group = system->group;
	int64_t deadline = clock_now() + END;
	struct error ended;
	int ret = 0;

	if (!group)
		return 0;
	/* One that ended by itself failed, whatever it said; that we end it is no failure. */
	if (system->command.pid && child_ended(&system->command, &ended))
		ret = error_set(err, -ECHILD, "%s", ended.text);
	kill(-group, SIGTERM);
	child_stop(&system->command, NULL);
	while (!kill(-group, 0) && clock_now() < deadline)
		clock_sleep(NSEC_PER_MSEC);
	kill(-group, SIGKILL);
	system->group = 0;
	record_remove("command");
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the lab calls a started engine: one that answers, since it takes connections before its
 * ports are open. This program itself is the engine here, when it is run as one.
 */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <lab/parts/forwarder.h>

static void engine_path(const char *rundir, const char *name, const char *file, char out[108])
{
	snprintf(out, 108, "%s/%s/%s", rundir, name, file);
}

/* argv as forwarder_start gives it: run --run-dir DIR --name NAME ... */
static int engine_run(char **argv)
{
	static const char answer[] = "{\"ok\": true}\n";
	struct timespec opening = {.tv_nsec = 300000000};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[108], request[256];
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), connection;

	engine_path(argv[3], argv[5], "", path);
	mkdir(path, 0755);
	engine_path(argv[3], argv[5], "control", address.sun_path);
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 8))
		return 1;
	nanosleep(&opening, NULL); /* the ports */
	engine_path(argv[3], argv[5], "open", path);
	fclose(fopen(path, "w"));
	while ((connection = accept(listener, NULL, NULL)) >= 0) {
		if (read(connection, request, sizeof(request)) > 0 &&
		    write(connection, answer, sizeof(answer) - 1) < 0)
			return 1;
		close(connection);
	}
	return 0;
}

static void is_started_when_its_ports_are_open(void **state)
{
	char base[] = "/tmp/napier-forwarder-XXXXXX", name[32], path[108];
	struct netlab lab = {.namespaces = 1};
	struct forwarder_site site = {
		.lab = &lab,
		.interface = {"a", "b"},
		.napier = "/proc/self/exe",
		.port = "mem",
		.rundir = base,
	};
	struct forwarder f;
	struct error err = {0};

	(void)state;
	assert_non_null(mkdtemp(base));
	if (forwarder_start(&site, FORWARDER_NAPIER_SOFTIRQ, &f, &err))
		fail_msg("%s", err.text);
	snprintf(name, sizeof(name), "lab%d", getpid());
	engine_path(base, name, "open", path);
	assert_int_equal(access(path, F_OK), 0);
	forwarder_stop(&f, NULL);
	unlink(path);
	engine_path(base, name, "control", path);
	unlink(path);
	engine_path(base, name, "", path);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(base), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_started_when_its_ports_are_open),
	};

	if (argc > 6 && !strcmp(argv[1], "run"))
		return engine_run(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

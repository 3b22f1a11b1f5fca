/* SPDX-License-Identifier: BSD-2-Clause */
/* Without root: what is refused says what is missing, and all works in a user namespace. */
#include "test.h"

#include "rig.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* This program again, with an argument: there is no way back from what it does to itself. */
static void run_again(const char *argument)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		execl("/proc/self/exe", "netns-unprivileged", argument, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NETNS_SKIPPED)
		skip();
	assert_int_equal(status, 0);
}

static void become_nobody(void)
{
	assert_int_equal(setresgid(65534, 65534, 65534), 0);
	assert_int_equal(setresuid(65534, 65534, 65534), 0);
	/* The change of user took away the right to write one's own files in /proc. */
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
}

static void refused_to_nobody(void **state)
{
	static const char *const ports[][2] = {
		{"packet:lo", "CAP_NET_RAW"},
		{"tap:np0", "CAP_NET_ADMIN"},
	};
	struct engine_config config = {.frames = 1024};
	struct error err = {0};
	struct engine *engine;

	(void)state;
	become_nobody();
	assert_int_equal(machine_host_create(&config.machine, &err), 0);
	assert_int_equal(engine_create(&config, &engine, &err), 0);
	for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
		struct port_config port_config;
		struct port *port;

		assert_int_equal(port_config_parse(ports[i][0], &port_config, &err), 0);
		assert_int_equal(engine_port_add(engine, &port_config, &port, &err), -EPERM);
		assert_non_null(strstr(err.text, ports[i][1]));
		printf("  %s\n", err.text);
	}
	engine_destroy(engine);
	machine_destroy(config.machine);
}

static void file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Nobody, in a user namespace: links of its own and no more rights than there. */
static void bridges_in_user_namespace(void **state)
{
	struct rig *rig;
	int at_a, at_b;

	(void)state;
	become_nobody();
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS)) {
		printf("  user namespaces are not for nobody here: %s\n", strerror(errno));
		exit(NETNS_SKIPPED);
	}
	file_write("/proc/self/setgroups", "deny");
	file_write("/proc/self/uid_map", "0 65534 1");
	file_write("/proc/self/gid_map", "0 65534 1");
	assert_int_equal(mount("none", "/run", "tmpfs", 0, NULL), 0);
	rig = rig_begin(POLLER_SOFTIRQ);
	rig_port(rig, rig->inner, "packet:in0,ring=65536");
	rig_port(rig, rig->inner, "packet:in1");
	assert_true(netns_logged(&rig->engine, "net.core.rmem_max"));
	netns_log_show(&rig->engine);
	at_a = rig_raw(rig, rig->left, NETNS_OUTER);
	at_b = rig_raw(rig, rig->right, NETNS_OUTER);
	rig_pass(at_a, at_b, true, 0, 2000, 0);
	rig_pass(at_b, at_a, false, 0, 2000, 0);
	rig_tcp(rig, rig->left, rig->right, "10.9.8.2", 16 << 20);
	rig_port(rig, rig->inner, "tap:t0");
	assert_int_equal(netns_run(&rig->links, rig->inner, "ip addr add 10.9.8.9/24 dev t0"), 0);
	rig_tcp(rig, rig->left, rig->inner, "10.9.8.9", 16 << 20);
	close(at_a);
	close(at_b);
	rig_end(rig);
}

static void privileges_are_named(void **state)
{
	(void)state;
	run_again("refused");
}

static void works_in_a_user_namespace(void **state)
{
	(void)state;
	run_again("bridges");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest refused[] = {cmocka_unit_test(refused_to_nobody)};
	const struct CMUnitTest bridges[] = {cmocka_unit_test(bridges_in_user_namespace)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(privileges_are_named),
		cmocka_unit_test(works_in_a_user_namespace),
	};

	if (argc > 1 && !strcmp(argv[1], "refused"))
		return cmocka_run_group_tests(refused, NULL, NULL);
	if (argc > 1)
		return cmocka_run_group_tests(bridges, NULL, NULL);
	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

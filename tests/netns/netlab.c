/* SPDX-License-Identifier: BSD-2-Clause */
/* A lab leaves nothing behind, however its owner ends. */
#include "test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/netlab.h>

static char rundir[] = "/tmp/napier-netlab-XXXXXX";

static int setup(void **state)
{
	(void)state;
	return mkdtemp(rundir) ? 0 : -1;
}

static int cleanup(void **state)
{
	(void)state;
	return rmdir(rundir); /* fails when a record is left */
}

/* Two namespaces with a veth between them, named a0 and b0. */
static void build(struct netlab *lab)
{
	struct error err = {0};
	int a, b;

	a = netlab_namespace_add(lab, "a", &err);
	assert_string_equal(err.text, "");
	b = netlab_namespace_add(lab, "b", &err);
	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(netlab_veth_add(lab, 0, "a0", 1, "b0", &err), 0);
	assert_int_equal(netlab_address_add(lab, 0, "a0", "10.9.8.1", 24, &err), 0);
	assert_int_equal(netlab_address_add(lab, 1, "b0", "10.9.8.2", 24, &err), 0);
	assert_int_equal(netlab_link_up(lab, 0, "a0", true, &err), 0);
	assert_int_equal(netlab_link_up(lab, 1, "b0", true, &err), 0);
}

/* How many entries of a directory start with the prefix. */
static unsigned entries(const char *path, const char *prefix)
{
	struct dirent *entry;
	unsigned n = 0;
	DIR *dir = opendir(path);

	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, prefix, strlen(prefix));
	closedir(dir);
	return n;
}

static unsigned namespaces_of(int pid)
{
	char a[32], b[32];

	snprintf(a, sizeof(a), "np%da", pid);
	snprintf(b, sizeof(b), "np%db", pid);
	return entries("/run/netns", a) + entries("/run/netns", b);
}

static void *datagram_across(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7777)};
	struct timeval limit = {.tv_sec = 1};
	struct error err = {0};
	struct netlab *lab = arg;
	char text[8] = "";
	int in, out;

	if (netlab_enter(lab, 1, &err))
		return "enter";
	in = socket(AF_INET, SOCK_DGRAM, 0);
	setsockopt(in, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (bind(in, (void *)&to, sizeof(to)))
		return "bind";
	if (netlab_enter(lab, 0, &err))
		return "enter";
	out = socket(AF_INET, SOCK_DGRAM, 0);
	inet_pton(AF_INET, "10.9.8.2", &to.sin_addr);
	/* Until the kernel's worker has seen the carrier, what is sent is lost. */
	for (int i = 0; i < 60 && !*text; i++) {
		if (sendto(out, "hello", 6, 0, (void *)&to, sizeof(to)) != 6)
			return "sendto";
		if (recv(in, text, sizeof(text), 0) != 6 && errno != EAGAIN)
			return "recv";
	}
	if (strcmp(text, "hello"))
		return "nothing came";
	close(in);
	close(out);
	return NULL;
}

static void carries_traffic_and_goes(void **state)
{
	struct error err = {0};
	struct netlab *lab, *second;
	struct stat before, after;
	pthread_t thread;
	void *failed;

	(void)state;
	assert_int_equal(stat("/proc/thread-self/ns/net", &before), 0);
	assert_int_equal(netlab_open(rundir, &lab, &err), 0);
	assert_int_equal(netlab_open(rundir, &second, &err), -EBUSY);
	build(lab);
	assert_int_equal(namespaces_of(getpid()), 2);
	assert_int_equal(entries(rundir, "lab."), 1);
	assert_int_equal(pthread_create(&thread, NULL, datagram_across, lab), 0);
	pthread_join(thread, &failed);
	assert_null(failed);
	/* The caller is where it was. */
	assert_int_equal(stat("/proc/thread-self/ns/net", &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	/* A start beside it leaves it alone. */
	assert_int_equal(netlab_clean(rundir), 0);
	assert_int_equal(namespaces_of(getpid()), 2);
	netlab_close(lab);
	assert_int_equal(namespaces_of(getpid()), 0);
	assert_int_equal(entries(rundir, "lab."), 0);
}

static void errors_name_the_thing(void **state)
{
	struct error err = {0};
	struct netlab *lab;

	(void)state;
	assert_int_equal(netlab_open(rundir, &lab, &err), 0);
	build(lab);
	assert_int_equal(netlab_link_up(lab, 0, "none0", true, &err), -ENODEV);
	assert_non_null(strstr(err.text, "none0"));
	assert_int_equal(netlab_veth_add(lab, 0, "a0", 1, "c0", &err), -EEXIST);
	assert_non_null(strstr(err.text, "a0"));
	assert_int_equal(netlab_address_add(lab, 0, "a0", "10.9.8", 24, &err), -EINVAL);
	netlab_close(lab);
}

/* In a child: makes a lab, says so, and waits for its end or makes it. */
static int child_start(bool exits, int *ready)
{
	int pipes[2], pid;

	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct error err;
		struct netlab *lab;

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* not longer than the test, however that ends */
		signal(SIGHUP, SIG_DFL);	  /* under nohup it is ignored */
		if (netlab_open(rundir, &lab, &err) || netlab_namespace_add(lab, "a", &err) < 0 ||
		    netlab_namespace_add(lab, "b", &err) < 0)
			_exit(1);
		if (exits)
			exit(0);
		if (write(pipes[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	close(pipes[1]);
	*ready = pipes[0];
	return pid;
}

static int child_wait(int pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void signals_tear_down(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
	char byte;

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		int ready, status, pid = child_start(false, &ready);

		assert_int_equal(read(ready, &byte, 1), 1);
		close(ready);
		assert_int_equal(namespaces_of(pid), 2);
		kill(pid, signals[i]);
		status = child_wait(pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		assert_int_equal(namespaces_of(pid), 0);
		assert_int_equal(entries(rundir, "lab."), 0);
	}
}

static void exit_tears_down(void **state)
{
	int ready, pid = child_start(true, &ready);

	(void)state;
	close(ready);
	assert_int_equal(child_wait(pid), 0);
	assert_int_equal(namespaces_of(pid), 0);
	assert_int_equal(entries(rundir, "lab."), 0);
}

/* What an engine that was killed as well leaves of itself. */
static void engine_leave(pid_t lab)
{
	static const char *const files[] = {"pid", "control", "counters", "absent", "restore"};
	char name[32], path[128];
	FILE *file;

	netlab_engine_name(lab, name);
	snprintf(path, sizeof(path), "%s/%s", rundir, name);
	assert_int_equal(mkdir(path, 0755), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s/%s", rundir, name, files[i]);
		file = fopen(path, "w");
		assert_non_null(file);
		fclose(file);
	}
}

static void the_next_start_cleans_after_kill(void **state)
{
	int ready, pid = child_start(false, &ready);
	struct error err = {0};
	struct netlab *lab;
	char byte;

	(void)state;
	assert_int_equal(read(ready, &byte, 1), 1);
	close(ready);
	kill(pid, SIGKILL);
	child_wait(pid);
	assert_int_equal(namespaces_of(pid), 2);
	assert_int_equal(entries(rundir, "lab."), 1);
	engine_leave(pid);
	assert_int_equal(netlab_open(rundir, &lab, &err), 0);
	assert_int_equal(entries(rundir, "lab") - entries(rundir, "lab."), 0);
	assert_int_equal(namespaces_of(pid), 0);
	assert_int_equal(entries(rundir, "lab."), 1);
	netlab_close(lab);
	assert_int_equal(entries(rundir, "lab."), 0);
}

static void a_record_removes_only_names_of_labs(void **state)
{
	char path[64];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "%s/lab.1", rundir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("other\n../../tmp\nnp/../../tmp\n", f);
	fclose(f);
	assert_int_equal(netlab_clean(rundir), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access("/tmp", F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(carries_traffic_and_goes),
		cmocka_unit_test(errors_name_the_thing),
		cmocka_unit_test(signals_tear_down),
		cmocka_unit_test(exit_tears_down),
		cmocka_unit_test(the_next_start_cleans_after_kill),
		cmocka_unit_test(a_record_removes_only_names_of_labs),
	};

	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, cleanup);
}

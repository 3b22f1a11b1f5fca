/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * napier bench server in one namespace, and its clients in another: runs, refusals, and ends that
 * nobody announced.
 */
#include "test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include <lab/clock.h>
#include <lab/inside.h>
#include <lab/load/peer.h>
#include <lab/netlab.h>

#define THERE "10.79.9.1"
#define HERE "10.79.9.2"
#define NOBODY_THERE "10.79.9.9"

/* Nothing here lasts so long, unless it hangs. */
#define PATIENCE (60 * NSEC_PER_SEC)

static char rundir[] = "/tmp/napier-bench-server-XXXXXX";
static struct netlab *lab;
static struct error err;

enum { THERE_NS, HERE_NS };

/* A program, and what it said. */
struct program {
	pid_t pid;
	bool runs;
	int out, said;
	char text[1 << 20], complaint[8192];
};

enum { NOBODY = 65534 };

static void program_start(struct program *p, int netns, bool as_nobody,
			  const char *const *arguments)
{
	const char *argv[24] = {NAPIER, "bench"};

	for (int i = 0; arguments[i]; i++) {
		assert_true(i + 3 < 24);
		argv[i + 2] = arguments[i];
	}
	p->out = memfd_create("out", MFD_CLOEXEC);
	p->said = memfd_create("said", MFD_CLOEXEC);
	fflush(NULL);
	p->pid = fork();
	if (p->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		signal(SIGINT, SIG_DFL);
		dup2(p->out, STDOUT_FILENO);
		dup2(p->said, STDERR_FILENO);
		if (netns >= 0 && setns(netns, CLONE_NEWNET))
			_exit(97);
		if (as_nobody && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
			_exit(99);
		execv(NAPIER, (char *const *)argv);
		_exit(98);
	}
	assert_true(p->pid > 0);
	p->runs = true;
}

#define START(p, ns, ...)                                                                          \
	program_start(p, lab->namespace[ns].fd, false, (const char *const[]){__VA_ARGS__, NULL})

static void text_read(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = '\0';
}

static bool program_has_said(struct program *p, const char *part)
{
	text_read(p->out, p->text, sizeof(p->text));
	return strstr(p->text, part) != NULL;
}

/* Waits for it; the program is to live. */
static void await_said(struct program *p, const char *part)
{
	int64_t deadline = clock_now() + PATIENCE;

	while (!program_has_said(p, part) && clock_now() < deadline)
		clock_sleep(NSEC_PER_MSEC);
	if (!strstr(p->text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, p->text);
}

/* Its exit status. */
static int program_end(struct program *p)
{
	int64_t deadline = clock_now() + PATIENCE;
	int status = 0;

	while (waitpid(p->pid, &status, WNOHANG) == 0) {
		if (clock_now() > deadline) {
			kill(p->pid, SIGKILL);
			waitpid(p->pid, &status, 0);
			p->runs = false;
			fail_msg("it does not end");
		}
		clock_sleep(NSEC_PER_MSEC);
	}
	text_read(p->out, p->text, sizeof(p->text));
	text_read(p->said, p->complaint, sizeof(p->complaint));
	close(p->out);
	close(p->said);
	p->runs = false;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void assert_ends(struct program *p, int status)
{
	int ended = program_end(p);

	if (ended != status)
		fail_msg("it ended with %d, not %d: %s%s", ended, status, p->complaint, p->text);
}

static void assert_part(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* Names of this process in a directory; not of one whose number is longer. */
static unsigned traces(const char *path, pid_t pid)
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

static void assert_nothing_left(pid_t pid)
{
	assert_int_equal(traces("/run/netns", pid), 0);
	assert_int_equal(traces("/run/napier", pid), 0);
}

static struct program server, client;

/* What a test that failed has left, so that the next ones do not fail for it. */
static int programs_kill(void **state)
{
	struct program *const programs[] = {&client, &server};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		if (!programs[i]->runs)
			continue;
		kill(programs[i]->pid, SIGKILL);
		waitpid(programs[i]->pid, NULL, 0);
		programs[i]->runs = false;
	}
	return 0;
}

static void server_listens(void)
{
	await_said(&server, "listening on");
}

static void server_stop(void)
{
	kill(server.pid, SIGTERM);
	assert_ends(&server, 0);
	assert_string_equal(server.complaint, "");
}

static double at(const json_t *o, const char *a, const char *b)
{
	const json_t *value = json_object_get(json_object_get(o, a), b);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static void two_hosts_make_a_run(void **state)
{
	json_t *answer, *run;

	(void)state;
	START(&server, THERE_NS, "server");
	server_listens();
	START(&client, HERE_NS, "rr", "-H", THERE, "-F", "2", "-l", "1", "--warm", "0.1",
	      "--timeout", "60", "-j");
	assert_ends(&client, 0);
	answer = json_loads(client.text, 0, NULL);
	assert_non_null(answer);
	run = json_object_get(answer, "run");
	assert_true(json_is_true(json_object_get(run, "valid")));
	assert_int_equal(at(answer, "parameters", "flows"), 2);
	assert_true(at(run, "counts", "completed") > 0);
	assert_int_equal(at(run, "counts", "lost"), 0);
	assert_true(at(run, "peer_cpu", "total_s") > 0);
	assert_true(at(run, "peer_cpu", "operations") == at(run, "counts", "completed"));
	assert_true(json_is_object(json_object_get(answer, "environment")));
	assert_true(json_object_size(json_object_get(answer, "peer_environment")) > 5);
	json_decref(answer);
	/* And the next, of another kind. */
	START(&client, HERE_NS, "stream", "-H", THERE, "--udp", "-l", "1", "--warm", "0", "-k");
	assert_ends(&client, 0);
	assert_part(client.text, "throughput_units=Mbit/s\n");
	assert_part(client.text, "valid=1\n");
	assert_true(program_has_said(&server, HERE ": rr, TCP, 2 flows\n"));
	assert_true(program_has_said(&server, HERE ": stream, UDP, 1 flow\n"));
	server_stop();
}

static void other_parameters_are_refused(void **state)
{
	static const char differ[] = "flows is 4 on the server, and 8 on the client";

	(void)state;
	START(&server, THERE_NS, "server", "-F", "4", "--timeout", "500ms");
	server_listens();
	START(&client, HERE_NS, "rr", "-H", THERE, "-F", "8", "--timeout", "500ms");
	assert_ends(&client, 1);
	assert_part(client.complaint, differ);
	assert_string_equal(client.text, "");
	await_said(&server, differ);
	START(&client, HERE_NS, "rr", "-H", THERE, "-F", "4");
	assert_ends(&client, 1);
	assert_part(client.complaint, "timeout_ns is 500000000 on the server, and 1000000000 on");
	START(&client, HERE_NS, "rr", "-H", THERE, "-F", "4", "--timeout", "0.5", "-l", "1",
	      "--warm", "0");
	assert_ends(&client, 0);
	server_stop();
}

/* A server of another version, in the namespace there. */
static void *fake_main(void *arg)
{
	static const char line[] = "{\"napier\": \"9.9.9\", \"protocol\": 77}\n";
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PEER_PORT)};
	int *ready = arg, listener, fd, one = 1;
	char heard[512];

	setns(lab->namespace[THERE_NS].fd, CLONE_NEWNET);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 1))
		abort();
	__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
	fd = accept(listener, NULL, NULL);
	(void)!write(fd, line, sizeof(line) - 1);
	while (read(fd, heard, sizeof(heard)) > 0)
		;
	close(fd);
	close(listener);
	return NULL;
}

static void another_version_is_told(void **state)
{
	pthread_t thread;
	int ready = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, fake_main, &ready), 0);
	while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE))
		clock_sleep(NSEC_PER_MSEC);
	START(&client, HERE_NS, "rr", "-H", THERE);
	assert_ends(&client, 1);
	pthread_join(thread, NULL);
	assert_part(client.complaint,
		    "the server speaks version 77 of the protocol (napier 9.9.9)");
	assert_part(client.complaint, "use the same napier on both");
}

static void who_cannot_serve_says_why(void **state)
{
	static struct program second;

	(void)state;
	START(&server, THERE_NS, "server", "-A", THERE);
	server_listens();
	START(&second, THERE_NS, "server", "-A", THERE);
	assert_ends(&second, 1);
	assert_part(second.complaint, "port 12866 is in use");
	START(&second, THERE_NS, "server", "-A", "192.0.2.1");
	assert_ends(&second, 1);
	assert_part(second.complaint, "192.0.2.1 is no address of this host");
	START(&second, THERE_NS, "server", "--flows", "many");
	assert_ends(&second, 2);
	assert_part(second.complaint, "--flows many: it is a whole number");
	server_stop();
}

static void a_server_that_is_killed_ends_the_run(void **state)
{
	(void)state;
	START(&server, THERE_NS, "server");
	server_listens();
	START(&client, HERE_NS, "rr", "-H", THERE, "-l", "100", "--warm", "0");
	await_said(&server, HERE ": rr, TCP, 1 flow");
	clock_sleep(300 * NSEC_PER_MSEC); /* so that mostly it is in mid-run: it ends in any case */
	kill(server.pid, SIGKILL);
	assert_ends(&server, 128 + SIGKILL);
	assert_ends(&client, 1);
	assert_part(client.complaint, "server");
}

static void a_client_that_is_killed_makes_room(void **state)
{
	(void)state;
	START(&server, THERE_NS, "server");
	server_listens();
	START(&client, HERE_NS, "rr", "-H", THERE, "-l", "100");
	await_said(&server, HERE ": rr, TCP, 1 flow");
	kill(client.pid, SIGKILL);
	assert_ends(&client, 128 + SIGKILL);
	await_said(&server, HERE ": is gone in mid-run");
	START(&client, HERE_NS, "rr", "-H", THERE, "-l", "1", "--warm", "0");
	assert_ends(&client, 0);
	server_stop();
}

static void nobody_there_is_told(void **state)
{
	(void)state;
	START(&client, HERE_NS, "rr", "-H", THERE);
	assert_ends(&client, 1);
	assert_part(client.complaint, "start napier bench server");
	/* No address of the link: the kernel gives up, or we do. */
	START(&client, HERE_NS, "rr", "-H", NOBODY_THERE);
	assert_ends(&client, 1);
	assert_part(client.complaint, NOBODY_THERE " port 12866: ");
}

/* The first child of a process; 0: none. */
static pid_t child_of(pid_t pid)
{
	char path[64], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	text_read(fd, text, sizeof(text));
	close(fd);
	return atoi(text);
}

static pid_t child_await(pid_t pid)
{
	int64_t deadline = clock_now() + PATIENCE;
	pid_t child;

	while (!(child = child_of(pid)) && clock_now() < deadline)
		clock_sleep(NSEC_PER_MSEC);
	assert_true(child > 0);
	return child;
}

#define START_ALONE(p, as_nobody, ...)                                                             \
	program_start(p, -1, as_nobody, (const char *const[]){__VA_ARGS__, NULL})

static void without_a_host_both_are_here(void **state)
{
	(void)state;
	START_ALONE(&client, false, "rr", "-l", "1", "--warm", "0", "-F", "3", "-p", "50,75");
	assert_ends(&client, 0);
	assert_part(client.text, "rr: TCP, 3 flows");
	assert_part(client.text, "p75");
	assert_part(client.text, "softirq");
	assert_nothing_left(client.pid);
	START_ALONE(&client, true, "rr");
	assert_ends(&client, 1);
	assert_part(client.complaint, "making namespaces needs root; or give -H HOST");
}

static void a_server_of_its_own_that_is_killed_ends_the_run(void **state)
{
	pid_t child;

	(void)state;
	START_ALONE(&client, false, "rr", "--udp", "-l", "100", "--warm", "0");
	child = child_await(client.pid);
	clock_sleep(300 * NSEC_PER_MSEC);
	kill(child, SIGKILL);
	assert_ends(&client, 1);
	assert_part(client.complaint, "killed by signal 9");
	assert_nothing_left(client.pid);
}

/* It has a thread that makes load. */
static bool has_worker(pid_t pid)
{
	char path[300], name[16];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !found && (entry = readdir(dir))) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", pid, entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		text_read(fd, name, sizeof(name));
		found = !strcmp(name, "rr-client\n");
		close(fd);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void ctrl_c_shows_what_there_is(void **state)
{
	int64_t deadline = clock_now() + PATIENCE;
	pid_t child;

	(void)state;
	START_ALONE(&client, false, "rr", "--udp", "-l", "100", "--warm", "0", "-k");
	child = child_await(client.pid);
	while (!has_worker(client.pid) && clock_now() < deadline)
		clock_sleep(NSEC_PER_MSEC);
	assert_true(has_worker(client.pid));
	clock_sleep(500 * NSEC_PER_MSEC); /* all of them, and mostly some of the measured part */
	kill(client.pid, SIGINT);
	assert_ends(&client, 130);
	assert_part(client.text, "num_completed=");
	assert_string_equal(client.complaint, "");
	assert_int_equal(kill(child, 0), -1);
	assert_nothing_left(client.pid);
}

/* That nobody answers is known sooner: the kernel asks three times, a second apart. */
static int neighbours_hasten(void *arg)
{
	int fd = open("/proc/sys/net/ipv4/neigh/here0/retrans_time_ms", O_WRONLY | O_CLOEXEC);

	(void)arg;
	if (fd >= 0) {
		(void)!write(fd, "100", 3);
		close(fd);
	}
	return 0;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(rundir) || netlab_open(rundir, &lab, &err) ||
	    netlab_namespace_add(lab, "there", &err) < 0 ||
	    netlab_namespace_add(lab, "here", &err) < 0 ||
	    netlab_veth_add(lab, THERE_NS, "there0", HERE_NS, "here0", &err) ||
	    netlab_address_add(lab, THERE_NS, "there0", THERE, 24, &err) ||
	    netlab_address_add(lab, HERE_NS, "here0", HERE, 24, &err) ||
	    netlab_link_up(lab, THERE_NS, "there0", true, &err) ||
	    netlab_link_up(lab, HERE_NS, "here0", true, &err) ||
	    inside_run(lab->namespace[HERE_NS].fd, neighbours_hasten, NULL, &err)) {
		printf("%s\n", err.text);
		return -1;
	}
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	netlab_close(lab);
	return rmdir(rundir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_hosts_make_a_run, programs_kill),
		cmocka_unit_test_teardown(other_parameters_are_refused, programs_kill),
		cmocka_unit_test_teardown(another_version_is_told, programs_kill),
		cmocka_unit_test_teardown(who_cannot_serve_says_why, programs_kill),
		cmocka_unit_test_teardown(a_server_that_is_killed_ends_the_run, programs_kill),
		cmocka_unit_test_teardown(a_client_that_is_killed_makes_room, programs_kill),
		cmocka_unit_test_teardown(nobody_there_is_told, programs_kill),
		cmocka_unit_test_teardown(without_a_host_both_are_here, programs_kill),
		cmocka_unit_test_teardown(a_server_of_its_own_that_is_killed_ends_the_run,
					  programs_kill),
		cmocka_unit_test_teardown(ctrl_c_shows_what_there_is, programs_kill),
	};

	if (unshare(CLONE_NEWNET)) {
		printf("skipped: network namespaces need CAP_SYS_ADMIN\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, cleanup);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: requests as data, the server under all sorts of clients, the run directory.
 */
#include "test.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <control/client.h>
#include <control/hosted.h>
#include <control/request.h>
#include <control/rundir.h>
#include <control/server.h>

#define LONG_MS 120000 /* against hanging */

/* --- requests --------------------------------------------------------------------------------- */

static void request_reads(void **state)
{
	static const char line[] = "{\"request\":\"set\",\"id\":[7],\"port\":\"a\",\"queue\":3,"
				   "\"keys\":{\"poller\":\"thread\",\"weight\":32,\"cpu\":\"1\"}}";
	struct request request;
	struct error err = {0};

	(void)state;
	assert_int_equal(request_parse(line, strlen(line), &request, &err), 0);
	assert_int_equal(request.kind, REQUEST_SET);
	assert_string_equal(request.port, "a");
	assert_int_equal(request.queue, 3);
	assert_int_equal(request.wish.poller, POLLER_THREAD);
	assert_int_equal(request.wish.weight, 32);
	assert_int_equal(request.wish.cpu, 1);
	assert_true(json_is_array(request.id));
	request_free(&request);
}

static void request_reads_add(void **state)
{
	static const char line[] = "{\"request\":\"add\",\"spec\":\"mem:b,name=x\","
				   "\"keys\":{\"pvid\":10,\"poller\":\"thread\"}}";
	struct request request;
	struct error err = {0};

	(void)state;
	assert_int_equal(request_parse(line, strlen(line), &request, &err), 0);
	assert_int_equal(request.kind, REQUEST_ADD);
	assert_string_equal(request.add->config.name, "x");
	assert_int_equal(request.add->pvid, 10);
	request_free(&request);
}

static void request_refuses(void **state)
{
	static const struct {
		const char *line, *says;
	} wrong[] = {
		{"[]", "a request is a JSON object"},
		{"{}", "unknown request \"\": the requests are ping, set, default, engine, "
		       "cpu, runner, add, move, remove, fdb, stop"},
		{"{\"request\":1}", "unknown request \"\": the requests are ping, set, default, "
				    "engine, cpu, runner, add, move, remove, fdb, stop"},
		{"{\"request\":\"ping\",\"port\":\"a\"}",
		 "unknown member \"port\": ping has request, id"},
		{"{\"request\":\"move\",\"port\":\"a\",\"cpu\":1}", "\"queue\" is a number 0..63"},
		{"{\"request\":\"move\",\"port\":\"a\",\"queue\":0}",
		 "\"cpu\" is a number 0..1023"},
		{"{\"request\":\"set\",\"keys\":{}}", "\"port\" is missing or not a text"},
		{"{\"request\":\"set\",\"port\":\"a\"}", "\"keys\" is missing or not an object"},
		{"{\"request\":\"set\",\"port\":\"a\",\"keys\":{}}",
		 "nothing to set: the keys are " WISH_KEYS},
		{"{\"request\":\"set\",\"port\":\"a\",\"queue\":64,\"keys\":{}}",
		 "\"queue\" is a number 0..63"},
		{"{\"request\":\"set\",\"port\":\"a/0\",\"keys\":{\"weight\":1}}",
		 "\"port\" is a name; its queue is in \"queue\""},
		{"{\"request\":\"set\",\"port\":\"engine\",\"keys\":{\"weight\":3}}",
		 "\"port\" is a name; \"engine\" means the engine itself"},
		{"{\"request\":\"set\",\"port\":\"a\\nb\",\"keys\":{\"weight\":3}}",
		 "\"port\" is a name, without control characters"},
		{"{\"request\":\"set\",\"port\":\"a\",\"keys\":{\"nice\":1,\"priority\":1}}",
		 "class=fair goes with nice, class=fifo with priority: they cannot be asked "
		 "together"},
		{"{\"request\":\"set\",\"port\":\"a\",\"keys\":{\"poller\":true}}",
		 "poller: its value is a number or a short text"},
		{"{\"request\":\"set\",\"port\":\"a\",\"keys\":{\"x\":1}}",
		 "unknown key \"x\": the keys are " WISH_KEYS},
		{"{\"request\":\"set\",\"port\":\"a\",\"keys\":{\"netdev_budget\":1}}",
		 "netdev_budget is a key of engine, not of a port or queue"},
		{"{\"request\":\"set\",\"port\":\"a\",\"keys\":{\"netdev\":1}}",
		 "unknown key \"netdev\": the keys are " WISH_KEYS},
		{"{\"request\":\"add\",\"spec\":\"mem:a\",\"keys\":{\"tx_napi\":\"yes\"}}",
		 "tx_napi is an option in a port's text: add xdp:eth0,tx_napi=yes"},
		{"{\"request\":\"set\",\"port\":\"0123456789012345678901234567890123456789\","
		 "\"keys\":{\"weight\":1}}",
		 "\"port\" is longer than 31 bytes"},
		{"{\"request\":\"default\",\"keys\":{\"weight\":1}}",
		 "the default has one key: poller"},
		{"{\"request\":\"engine\",\"keys\":{}}",
		 "nothing to set: the keys are " ENGINE_WISH_KEYS},
		{"{\"request\":\"engine\",\"keys\":{\"poller\":\"thread\"}}",
		 "unknown key \"poller\": the keys of the engine are " ENGINE_WISH_KEYS},
		{"{\"request\":\"engine\",\"keys\":{\"netdev_budget\":0}}",
		 "netdev_budget=0: out of range 1..1000000"},
		{"{\"request\":\"cpu\",\"keys\":{\"deferral\":\"never\"}}",
		 "\"cpu\" is a number 0..1023"},
		{"{\"request\":\"cpu\",\"cpu\":0,\"keys\":{\"netdev_budget\":3}}",
		 "unknown key \"netdev_budget\": the key of an engine CPU is " CPU_WISH_KEYS},
		{"{\"request\":\"cpu\",\"cpu\":0,\"keys\":{\"deferral\":\"maybe\"}}",
		 "unknown deferral \"maybe\": the policies are never, "
		 "restart-limit, looped:TICKS, ksoftirqd-running"},
		{"{\"request\":\"add\",\"spec\":\"mem:a\",\"keys\":{\"vlan\":1}}",
		 "unknown key \"vlan\": the keys are " SETUP_PORT_KEYS},
		{"{\"request\":\"remove\",\"port\":\"\"}", "\"port\" is missing or not a text"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct request request;
		struct error err = {0};

		assert_true(request_parse(wrong[i].line, strlen(wrong[i].line), &request, &err) <
			    0);
		assert_string_equal(err.text, wrong[i].says);
		request_free(&request);
	}
}

/* Whatever is no JSON is said to be none, with the place. */
static void request_refuses_garbage(void **state)
{
	static const char *const wrong[] = {
		"", "{", "nonsense", "{\"request\":\"ping\"} x", "\xff", "{\"a\":1,\"a\":2}"};
	struct request request;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(request_parse(wrong[i], strlen(wrong[i]), &request, &err),
				 -EINVAL);
		assert_memory_equal(err.text, "not JSON: column ", 17);
		request_free(&request);
	}
}

/* What the document shows as a request is one, but where it shows an error. */
static void request_reads_documented(void **state)
{
	static char line[4096];
	FILE *file = fopen(CONTROL_MD, "r");
	struct request request = {0};
	struct error err;
	int n = 0, rc = 0;

	(void)state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "    {\"ok\":false", 15))
			rc = !rc;
		if (strncmp(line, "    {\"request\"", 14))
			continue;
		if (rc)
			fail_msg("%s", err.text);
		rc = request_parse(line, strlen(line), &request, &err);
		request_free(&request);
		n++;
	}
	fclose(file);
	assert_false(rc);
	assert_int_equal(n, 12);
}

/* --- the server --------------------------------------------------------------------------------*/

#define BIG (4u << 20) /* more than any socket buffer holds */

struct rig {
	char directory[32], path[64];
	struct machine *machine;
	struct runner *runner;
	struct server *_Atomic server;
	_Atomic unsigned lines;
};

/* "big" gets a big answer, everything else its own length and text. */
static char *answer(void *arg, const char *line, size_t n)
{
	struct rig *rig = arg;
	char *text;

	atomic_fetch_add(&rig->lines, 1);
	assert_int_equal(line[n], '\0');
	if (!strcmp(line, "big")) {
		text = malloc(BIG + 1);
		assert_non_null(text);
		memset(text, 'x', BIG);
		text[BIG] = '\0';
		return text;
	}
	assert_true(asprintf(&text, "%zu %.20s", n, line) > 0);
	return text;
}

static struct step rig_step(void *arg)
{
	struct rig *rig = arg;
	struct server *server = atomic_load(&rig->server);
	int64_t now = machine_now(rig->machine), again;

	if (!server)
		return STEP(STEP_WAIT);
	again = server_work(server, now);
	return again <= now ? STEP(STEP_YIELD) : STEP_UNTIL(again);
}

static int rig_open(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct runner_config config = {.name = "control", .step = rig_step, .arg = rig};
	struct error err = {0};
	struct server *server;

	strcpy(rig->directory, "/tmp/napier-control-XXXXXX");
	assert_non_null(mkdtemp(rig->directory));
	snprintf(rig->path, sizeof(rig->path), "%s/control", rig->directory);
	assert_int_equal(machine_host_create(&rig->machine, &err), 0);
	assert_int_equal(runner_start(rig->machine, &config, &rig->runner, &err), 0);
	if (server_open(rig->path, rig->runner, answer, rig, &server, &err))
		fail_msg("%s", err.text);
	atomic_store(&rig->server, server);
	runner_wake(rig->runner);
	*state = rig;
	return 0;
}

static int rig_close(void **state)
{
	struct rig *rig = *state;

	runner_stop(rig->runner);
	server_close(rig->server);
	machine_destroy(rig->machine);
	assert_int_equal(unlink(rig->path), 0);
	assert_int_equal(rmdir(rig->directory), 0);
	free(rig);
	return 0;
}

static int client_new(const struct rig *rig)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, rig->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void put(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* One line, without its newline; "" at the end. */
static const char *get(int fd)
{
	static char line[256];
	size_t n = 0;

	for (;;) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		ssize_t got;

		assert_int_equal(poll(&wait, 1, LONG_MS), 1);
		got = read(fd, line + n, 1);
		if (got <= 0 || line[n] == '\n')
			break;
		assert_true(++n < sizeof(line));
	}
	line[n] = '\0';
	return line;
}

static void serves_lines(void **state)
{
	int fd = client_new(*state);

	put(fd, "hello\n");
	assert_string_equal(get(fd), "5 hello");
	put(fd, "a\n\nbcd\n"); /* several at once, an empty one among them */
	assert_string_equal(get(fd), "1 a");
	assert_string_equal(get(fd), "0 ");
	assert_string_equal(get(fd), "3 bcd");
	for (const char *c = "bytes\n"; *c; c++) { /* in pieces */
		put(fd, (char[]){*c, '\0'});
		usleep(2000);
	}
	assert_string_equal(get(fd), "5 bytes");
	put(fd, "no newline");
	shutdown(fd, SHUT_WR);
	assert_string_equal(get(fd), "10 no newline");
	assert_string_equal(get(fd), "");
	close(fd);
}

static void bounds_lines(void **state)
{
	static char line[SERVER_LINE_MAX + 2];
	int fd = client_new(*state);

	memset(line, 'y', sizeof(line));
	line[SERVER_LINE_MAX] = '\n';
	line[SERVER_LINE_MAX + 1] = '\0';
	put(fd, line);
	assert_string_equal(get(fd), "65536 yyyyyyyyyyyyyyyyyyyy");
	line[SERVER_LINE_MAX] = 'y';
	put(fd, line);
	assert_string_equal(get(fd), "{\"ok\":false,\"error\":\"a request is one line of at most "
				     "65536 bytes\",\"code\":\"EMSGSIZE\"}");
	assert_string_equal(get(fd), "");
	close(fd);
}

/* Clients that leave in the middle, or never say a thing, cost nothing. */
static void bears_leavers(void **state)
{
	struct rig *rig = *state;
	int fd;

	for (int i = 0; i < 200; i++) {
		fd = client_new(rig);
		if (i % 3 == 0)
			put(fd, "half a li");
		if (i % 3 == 1)
			put(fd, "big\n"); /* and does not take it */
		close(fd);
	}
	fd = client_new(rig);
	put(fd, "still there\n");
	assert_string_equal(get(fd), "11 still there");
	close(fd);
}

/* More clients than there is room for: the one that was silent the longest goes. */
static void evicts_the_silent(void **state)
{
	int fds[SERVER_CLIENTS_MAX + 1];

	for (int i = 0; i < SERVER_CLIENTS_MAX; i++) {
		fds[i] = client_new(*state);
		put(fds[i], "x\n");
		assert_string_equal(get(fds[i]), "1 x");
	}
	put(fds[0], "y\n"); /* so that 1 is the oldest */
	assert_string_equal(get(fds[0]), "1 y");
	fds[SERVER_CLIENTS_MAX] = client_new(*state);
	put(fds[SERVER_CLIENTS_MAX], "z\n");
	assert_string_equal(get(fds[SERVER_CLIENTS_MAX]), "1 z");
	assert_string_equal(get(fds[1]), "");
	put(fds[0], "y\n");
	assert_string_equal(get(fds[0]), "1 y");
	for (int i = 0; i <= SERVER_CLIENTS_MAX; i++)
		close(fds[i]);
}

/* Who does not take an answer holds up nobody, and gets it whole later. */
static void does_not_block(void **state)
{
	static char buffer[65536];
	int slow = client_new(*state), fd = client_new(*state);
	size_t total = 0;

	put(slow, "big\nafter\n");
	for (int i = 0; i < 100; i++) {
		put(fd, "x\n");
		assert_string_equal(get(fd), "1 x");
	}
	while (total < BIG + 1) {
		struct pollfd wait = {.fd = slow, .events = POLLIN};
		size_t rest = BIG + 1 - total;
		ssize_t n;

		assert_int_equal(poll(&wait, 1, LONG_MS), 1);
		n = read(slow, buffer, rest < sizeof(buffer) ? rest : sizeof(buffer));
		assert_true(n > 0);
		total += (size_t)n;
	}
	assert_string_equal(get(slow), "5 after");
	close(slow);
	close(fd);
}

static void answers_at_once_hostile(void **state)
{
	struct rig *rig = *state;
	int flood = client_new(rig), fd = client_new(rig);
	static char lines[60000];

	/* One that sends without end and reads nothing fills its own buffers only. */
	for (size_t i = 0; i < sizeof(lines); i++)
		lines[i] = i % 2 ? '\n' : 'f';
	for (int i = 0; i < 100; i++)
		send(flood, lines, sizeof(lines), MSG_DONTWAIT | MSG_NOSIGNAL);
	put(fd, "x\n");
	assert_string_equal(get(fd), "1 x");
	close(flood);
	close(fd);
}

static void is_private(void **state)
{
	struct rig *rig = *state;
	struct stat st;

	assert_int_equal(stat(rig->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* --- the run directory ----------------------------------------------------------------------- */

static void touch(const char *directory, const char *file)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void rundir_locks(void **state)
{
	char base[] = "/tmp/napier-rundir-XXXXXX", sub[64], path[128], says[256];
	struct rundir first, second;
	struct error err = {0};
	int watch;

	(void)state;
	assert_non_null(mkdtemp(base));
	snprintf(sub, sizeof(sub), "%s/runs", base);
	assert_int_equal(rundir_find(&first, sub, "one", &err), 0);
	assert_int_equal(rundir_find(&second, sub, "one", &err), 0);
	assert_int_equal(rundir_owner(&first), 0);
	assert_int_equal(rundir_lock(&first, &err), 0);
	assert_int_equal(rundir_owner(&second), getpid());
	assert_int_equal(rundir_lock(&second, &err), -EADDRINUSE);
	snprintf(says, sizeof(says),
		 "an engine named one is running (pid %d): stop it (napier stop --name one), or "
		 "give this one another --name",
		 (int)getpid());
	assert_string_equal(err.text, says);
	/* As kill -9 leaves it: unlocked, and full. */
	close(first.lock);
	touch(first.path, "control");
	touch(first.path, "counters");
	touch(first.path, "absent");
	assert_int_equal(rundir_owner(&second), 0);
	assert_int_equal(rundir_lock(&second, &err), 0);
	rundir_file(&second, "control", path);
	assert_int_equal(access(path, F_OK), -1);
	rundir_file(&second, "counters", path);
	assert_int_equal(access(path, F_OK), -1);
	/* In the middle of its end: nobody finds it any more, and yet it has not ended. */
	watch = rundir_watch(&first);
	assert_true(watch >= 0);
	rundir_file(&second, "pid", path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rundir_owner(&first), 0);
	assert_int_equal(rundir_watch(&first), -ENOENT);
	assert_false(rundir_ended(watch));
	rundir_close(&second);
	assert_true(rundir_ended(watch));
	close(watch);
	assert_int_equal(access(first.path, F_OK), -1);
	/* The first had made the base; the second leaves what it found. */
	assert_int_equal(rmdir(sub), 0);
	assert_int_equal(rmdir(base), 0);
}

static void rundir_refuses(void **state)
{
	char base[] = "/tmp/napier-rundir-XXXXXX", path[128];
	struct rundir dir;
	struct error err = {0};

	(void)state;
	assert_non_null(mkdtemp(base));
	touch(base, "file");
	assert_int_equal(rundir_find(&dir, base, "file", &err), 0);
	assert_int_equal(rundir_lock(&dir, &err), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/link", base);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(rundir_find(&dir, base, "link", &err), 0);
	assert_int_equal(rundir_lock(&dir, &err), -ENOTDIR);
	unlink(path);
	snprintf(path, sizeof(path), "%s/file", base);
	unlink(path);
	rmdir(base);
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(rundir_find(&dir, path, "x", &err), -ENAMETOOLONG);
}

/* Nobody there, and somebody who is no engine. */
static void client_refuses(void **state)
{
	char base[] = "/tmp/napier-client-XXXXXX", says[256];
	const struct counters_file *file;
	struct rundir dir, other;
	struct error err = {0};

	(void)state;
	assert_non_null(mkdtemp(base));
	assert_int_equal(rundir_find(&dir, base, "x", &err), 0);
	snprintf(says, sizeof(says), "no engine named x is running (run directory %s/x)", base);
	assert_int_equal(client_connect(&dir, &err), -ENOENT);
	assert_string_equal(err.text, says);
	assert_int_equal(counters_map(&dir, &file, &err), -ENOENT);
	assert_string_equal(err.text, says);
	/* One was killed that had the host's addresses: who finds none is told how to get them. */
	assert_int_equal(mkdir(dir.path, 0700), 0);
	touch(dir.path, HOSTED_NOTE "eth0");
	assert_int_equal(client_connect(&dir, &err), -ENOENT);
	assert_non_null(strstr(err.text, "it was killed; napier stop puts back the addresses"));
	snprintf(says, sizeof(says), "%s/" HOSTED_NOTE "eth0", dir.path);
	assert_int_equal(unlink(says), 0);
	/* Another runs: that one may be meant. */
	assert_int_equal(rundir_find(&other, base, "y", &err), 0);
	assert_int_equal(rundir_lock(&other, &err), 0);
	snprintf(says, sizeof(says),
		 "no engine named x is running (run directory %s/x); --name says which of these: y",
		 base);
	assert_int_equal(client_connect(&dir, &err), -ENOENT);
	assert_string_equal(err.text, says);
	rundir_close(&other);
	assert_int_equal(rundir_lock(&dir, &err), 0);
	/* Its lock is there, and nothing else: it starts, or ends. */
	touch(dir.path, "counters");
	snprintf(says, sizeof(says),
		 "the engine named x (pid %d) is just starting or ending: try again", getpid());
	assert_int_equal(counters_map(&dir, &file, &err), -EAGAIN);
	assert_string_equal(err.text, says);
	assert_int_equal(client_connect(&dir, &err), -EAGAIN);
	assert_string_equal(err.text, says);
	rundir_file(&dir, "counters", says);
	assert_int_equal(truncate(says, 100000), 0);
	assert_int_equal(counters_map(&dir, &file, &err), -EPROTO);
	rundir_close(&dir);
	assert_int_equal(rmdir(base), 0);
}

int main(void)
{
#define served(test) cmocka_unit_test_setup_teardown(test, rig_open, rig_close)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_reads),
		cmocka_unit_test(request_reads_add),
		cmocka_unit_test(request_refuses),
		cmocka_unit_test(request_refuses_garbage),
		cmocka_unit_test(request_reads_documented),
		served(serves_lines),
		served(bounds_lines),
		served(bears_leavers),
		served(evicts_the_silent),
		served(does_not_block),
		served(answers_at_once_hostile),
		served(is_private),
		cmocka_unit_test(rundir_locks),
		cmocka_unit_test(rundir_refuses),
		cmocka_unit_test(client_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

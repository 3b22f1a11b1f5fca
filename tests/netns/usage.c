/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case 22 once more, for the account of a run: UDP is sent over a veth to a socket of the kernel's,
 * and softirq, which runs on the sender's back mostly, is a party of its own.
 */
#include "netns.h"
#include "test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lab/clock.h>
#include <lab/cputime.h>
#include <lab/ends.h>
#include <lab/inside.h>
#include <lab/measure/usage.h>
#include <lab/napi_watch.h>
#include <lab/parts/udp_server.h>

enum { PORT = 9, MARK_PORT = 10, ENOUGH = 20000, SIZE = 64 };

/* More than a socket's buffer and a vector of the server's hold. */
enum { QUEUED = 1000 };

#define PATIENCE (60 * INT64_C(1000000000))

/* A softirq that runs when a clock is read, and a tick, at each end of the window; twice that. */
#define LAG 0.06

/* A poll and its packets are counted one after the other: an end of the window may lie between. */
#define TORN 0.001

static char rundir[] = "/tmp/napier-usage-XXXXXX";
static struct ends ends;

struct sender {
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool go, stop;
};

static int setup(void **state)
{
	struct error err = {0};

	(void)state;
	if (!mkdtemp(rundir))
		return -1;
	assert_int_equal(ends_open(rundir, &ends, &err), 0);
	return 0;
}

static int cleanup(void **state)
{
	(void)state;
	ends_close(&ends);
	return rmdir(rundir);
}

static void *sender_run(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(PORT)};
	struct sender *sender = arg;
	char data[SIZE] = {0};
	struct error err;
	int fd = -1;

	inet_pton(AF_INET, ENDS_NEAR, &to.sin_addr);
	if (!netlab_enter(ends.lab, ends.far_ns, &err))
		fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, (void *)&to, sizeof(to)))
		abort();
	atomic_store(&sender->tid, (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&sender->go))
		clock_sleep(1000000);
	while (!atomic_load(&sender->stop))
		if (send(fd, data, sizeof(data), 0) < 0)
			clock_sleep(1000000);
	close(fd);
	return NULL;
}

/* It is there, and sends from sender_go on. */
static void sender_start(struct sender *sender)
{
	assert_int_equal(pthread_create(&sender->thread, NULL, sender_run, sender), 0);
	while (!atomic_load(&sender->tid))
		clock_sleep(1000000);
}

static void sender_go(struct sender *sender)
{
	atomic_store(&sender->go, true);
}

static void sender_stop(struct sender *sender)
{
	atomic_store(&sender->stop, true);
	pthread_join(sender->thread, NULL);
}

static struct udp_server *server_start(void)
{
	struct udp_server_config config = {.ends = &ends, .port = PORT, .cpu = sched_getcpu()};
	struct udp_server *server = NULL;
	struct error err = {0};

	assert_int_equal(udp_server_start(&config, &server, &err), 0);
	return server;
}

static void datagrams_await(const struct udp_server *server, uint64_t n)
{
	struct udp_server_counts begin, now;
	int64_t limit = clock_now() + PATIENCE;

	udp_server_read(server, &begin);
	do {
		clock_sleep(1000000);
		udp_server_read(server, &now);
		assert_true(clock_now() < limit);
	} while (now.datagrams - begin.datagrams < n);
}

static double number(const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	assert_true(json_is_number(value));
	return json_number_value(value);
}

static double party(const json_t *cpu, const char *name, const char *key)
{
	return number(json_object_get(json_object_get(cpu, "parties"), name), key);
}

static void parties_set(struct usage_config *config, const struct sender *sender,
			const struct udp_server *server)
{
	*config = (struct usage_config){.parties = 2, .interfaces = 1};
	config->party[0] = (struct usage_party){"client", 0, 1, {sender->tid}};
	config->party[1] = (struct usage_party){"server", 0, 1, {udp_server_thread(server)}};
	snprintf(config->interface[0], sizeof(config->interface[0]), "%s", ends.near);
}

/* What an account says, and what another watch and another clock say. */
struct split {
	json_t *cpu;
	double back; /* on the sender's */
	double span; /* in which all of it was */
};

static void split_measure(struct split *split)
{
	struct udp_server *server = server_start();
	struct sender sender = {0};
	struct napi_watch *watch;
	const char *none[] = {""};
	struct usage_config config;
	struct usage *usage;
	struct error err = {0};
	int64_t begun;

	sender_start(&sender);
	parties_set(&config, &sender, server);
	assert_int_equal(usage_open(&config, &usage, &err), 0);
	/* Another watch, to know it from elsewhere. */
	assert_int_equal(napi_watch_open(none, 1, &watch, &err), 0);
	begun = clock_now();
	sender_go(&sender);
	datagrams_await(server, 1000);
	usage_begin(usage);
	split->back = -(double)napi_watch_back(watch, sender.tid);
	datagrams_await(server, ENOUGH);
	split->back += (double)napi_watch_back(watch, sender.tid);
	split->back /= 1e9;
	usage_stop(usage);
	split->span = (double)(clock_now() - begun) / 1e9;
	sender_stop(&sender);
	split->cpu = usage_end(usage, ENOUGH);
	usage_close(usage);
	napi_watch_close(watch);
	assert_int_equal(udp_server_stop(server, &err), 0);
}

/* 0: it is not known. */
static double known(const json_t *cpu, const char *name, const char *key)
{
	const json_t *o = json_object_get(json_object_get(cpu, "parties"), name);

	return json_number_value(json_object_get(o, key));
}

/* On its back, and not in its own time. Two watches see each other's programs at work. */
static bool is_split(const struct split *split)
{
	double own = known(split->cpu, "client", "total_s"), back = split->back;

	return back > 0 && known(split->cpu, "softirq", "total_s") >= back / 2 && own > 0 &&
	       known(split->cpu, "client", "gross_s") - own >= back / 2 &&
	       known(split->cpu, "server", "total_s") > 0;
}

static void softirq_is_a_party(void **state)
{
	double total, cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);
	struct split split;
	json_t *cpu;

	(void)state;
	/*
	 * A CPU of a virtual machine may be taken away between the two watches' programs, or in a
	 * softirq, where the thread's clock stands and the watch's does not, for longer than all
	 * else takes. One of five times it is not.
	 */
	split_measure(&split);
	for (int i = 1; i < 5 && !is_split(&split); i++) {
		json_decref(split.cpu);
		split_measure(&split);
	}
	assert_true(is_split(&split));
	cpu = split.cpu;
	/* Each bit once: no more than there were CPUs for. */
	total = number(cpu, "total_s");
	assert_true(fabs(party(cpu, "client", "total_s") + party(cpu, "server", "total_s") +
			 party(cpu, "softirq", "total_s") +
			 party(cpu, "kernel threads", "total_s") - total) < 1e-6);
	assert_true(total <= split.span * cpus + 2 * LAG);
	assert_true(fabs(number(cpu, "cores_used") * number(cpu, "wall_s") - total) < 1e-6);
	assert_true(fabs(number(json_object_get(cpu, "ns_per_operation"), "total") * ENOUGH / 1e9 -
			 total) < 1e-6);
	/* What came, but for what had come before, is what was polled for, and no poll without. */
	assert_true(number(json_object_get(cpu, "kernel"), "packets") >= ENOUGH - QUEUED);
	assert_true(number(json_object_get(cpu, "kernel"), "packets_per_poll") >= 1 - TORN);
	json_decref(cpu);
}

/* They are found by the interface's name, and work instead of softirq. */
static void napi_threads_are_a_party(void **state)
{
	struct sender sender = {0};
	struct udp_server *server;
	struct usage_config config;
	struct usage *usage;
	struct error err = {0};
	const json_t *thread;
	bool found = false;
	double used = 0;
	json_t *cpu;
	size_t i;

	(void)state;
	assert_int_equal(netlab_threaded_set(ends.lab, ends.near_ns, ends.near, true, &err), 0);
	server = server_start();
	sender_start(&sender);
	parties_set(&config, &sender, server);
	assert_int_equal(usage_open(&config, &usage, &err), 0);
	usage_begin(usage);
	sender_go(&sender);
	datagrams_await(server, ENOUGH);
	usage_stop(usage);
	sender_stop(&sender);
	cpu = usage_end(usage, 0);
	usage_close(usage);
	assert_int_equal(udp_server_stop(server, &err), 0);
	assert_int_equal(netlab_threaded_set(ends.lab, ends.near_ns, ends.near, false, &err), 0);

	json_array_foreach(json_object_get(cpu, "threads"), i, thread)
	{
		if (strcmp(json_string_value(json_object_get(thread, "party")), "kernel threads"))
			continue;
		found |= !strncmp(json_string_value(json_object_get(thread, "name")), "napi/", 5);
		used += number(thread, "total_s");
	}
	assert_true(found);
	assert_true(used > 0);
	assert_true(fabs(used - party(cpu, "kernel threads", "total_s")) < 1e-6);
	json_decref(cpu);
}

/* In its namespace. */
static int mark_receiver(void *arg)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(MARK_PORT)};
	struct timeval patience = {.tv_usec = 100000};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	(void)arg;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return bind(fd, (void *)&at, sizeof(at)) ? -errno : fd;
}

static int mark_sender(void *arg)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(MARK_PORT)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	(void)arg;
	inet_pton(AF_INET, ENDS_NEAR, &to.sin_addr);
	return connect(fd, (void *)&to, sizeof(to)) ? -errno : fd;
}

/* The way keeps their order: when this one has come, all that was sent before it has, too. */
static void mark_await(void)
{
	struct error err = {0};
	int in = inside_run(ends.lab->namespace[ends.near_ns].fd, mark_receiver, NULL, &err);
	int out = inside_run(ends.lab->namespace[ends.far_ns].fd, mark_sender, NULL, &err);
	bool came = false;
	char byte;

	assert_true(in >= 0 && out >= 0);
	for (int i = 0; i < 600 && !came; i++)
		came = send(out, "x", 1, 0) == 1 && recv(in, &byte, 1, 0) == 1;
	assert_true(came);
	close(in);
	close(out);
}

/* By the namespace of a party's process: UDP is merged by nobody here, so it is one by one. */
static void gro_is_looked_up_where_it_is(void **state)
{
	struct udp_server *server = server_start();
	struct usage_config config = {.parties = 1, .interfaces = 1};
	struct sender sender = {0};
	struct usage *usage;
	struct error err = {0};
	int up[2];
	char byte;
	pid_t child;
	json_t *cpu;

	(void)state;
	assert_int_equal(pipe(up), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* not longer than the test, however that ends */
		if (netlab_enter(ends.lab, ends.near_ns, &err) || write(up[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	close(up[0]);
	close(up[1]);
	config.party[0] = (struct usage_party){"server", .pid = child};
	snprintf(config.interface[0], sizeof(config.interface[0]), "%s", ends.near);
	assert_int_equal(usage_open(&config, &usage, &err), 0);
	usage_begin(usage);
	sender_start(&sender);
	sender_go(&sender);
	datagrams_await(server, 1000);
	sender_stop(&sender); /* the two numbers are read one after the other */
	mark_await();
	cpu = usage_end(usage, 0);
	usage_close(usage);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(udp_server_stop(server, &err), 0);
	assert_true(number(json_object_get(cpu, "kernel"), "gro_ratio") == 1);
	json_decref(cpu);
}

/* All backs are those of single threads, with the process that each is of. */
static void backs_are_listed(void **state)
{
	struct sender sender = {0};
	struct napi_watch *watch;
	const char *none[] = {""};
	struct napi_back *back;
	struct error err = {0};
	int64_t sum = 0, before, listed = -1, softirq;
	unsigned n;

	(void)state;
	assert_int_equal(napi_watch_open(none, 1, &watch, &err), 0);
	sender_start(&sender);
	sender_go(&sender);
	for (int i = 0; i < 60000 && !napi_watch_back(watch, sender.tid); i++)
		clock_sleep(1000000);
	sender_stop(&sender);
	before = napi_watch_back(watch, sender.tid);
	assert_true(before > 0);
	assert_int_equal(napi_watch_backs(watch, &back, &n), 0);
	softirq = napi_watch_softirq(watch);
	for (unsigned i = 0; i < n; i++) {
		sum += back[i].softirq;
		if (back[i].thread != sender.tid)
			continue;
		listed = back[i].softirq;
		assert_int_equal(back[i].process, getpid());
	}
	/* It is about to be gone, and may be interrupted once more. */
	assert_true(listed >= before && listed <= napi_watch_back(watch, sender.tid));
	assert_true(sum <= softirq);
	free(back);
	napi_watch_close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(softirq_is_a_party),
		cmocka_unit_test(napi_threads_are_a_party),
		cmocka_unit_test(gro_is_looked_up_where_it_is),
		cmocka_unit_test(backs_are_listed),
	};

	netns_require();
	return cmocka_run_group_tests(tests, setup, cleanup);
}

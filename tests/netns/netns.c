/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "netns.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <lab/run/place.h>
#include <port/netdev.h>

/* The IEEE's number for local experiments. */
#define NUMBERED 0x88b5
#define WINDOW 256
#define SPINS 1000

/* Each test has a run directory of its own, so no later start finds what a killed one left there.
 */
static void killed_clean(void)
{
	glob_t found;

	if (glob("/tmp/napier-*-??????", GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		if (netlab_clean(found.gl_pathv[i]) > 0)
			rmdir(found.gl_pathv[i]);
	globfree(&found);
}

void netns_require(void)
{
	pid_t child = fork();
	int status = -1;

	/* In a child, so that this process stays where it is. */
	if (!child)
		_exit(unshare(CLONE_NEWNET) ? 1 : 0);
	if (child > 0 && waitpid(child, &status, 0) == child && !status && !geteuid()) {
		killed_clean();
		return;
	}
	fprintf(stderr, "skipped: needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN) to make network "
			"namespaces\n");
	exit(NETNS_SKIPPED);
}

static void must(int rc, const struct error *err)
{
	if (rc < 0)
		fail_msg("%s (%d)", err->text, rc);
}

static int namespace_add(struct netns_links *links, const char *role)
{
	struct error err = {0};
	int ns = netlab_namespace_add(links->lab, role, &err);

	must(ns, &err);
	return ns;
}

/* A socket keeps the namespace it was made in. */
static int far_open(const struct netns_links *links, int side)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(NUMBERED)};
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int size = 64 << 20, fd;
	struct error err = {0};

	assert_true(here >= 0);
	must(netlab_enter(links->lab, links->outer[side], &err), &err);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	address.sll_ifindex = (int)if_nametoindex(NETNS_OUTER);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	/* In a user namespace it gets what there is. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	close(here);
	return fd;
}

/*
 * The end that was up first starts to send only when a worker of the kernel has seen its carrier;
 * what it is given before is lost without a word.
 */
static void end_settle(const struct netns_links *links, unsigned ns, const char *name)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	struct netdev_link link = {0};
	struct netdev dev;
	struct error err = {0};
	int back;

	must(netns_enter(links->lab->namespace[ns].name, &back, &err), &err);
	must(netdev_open(&dev, name, &err), &err);
	netns_leave(back);
	for (int i = 0; i < NETNS_SECONDS * 1000 && !(link.flags & IFF_RUNNING); i++) {
		nanosleep(&pause, NULL);
		assert_int_equal(netdev_link(&dev, &link), 0);
	}
	assert_true(link.flags & IFF_RUNNING);
	netdev_close(&dev);
}

void netns_links_open(struct netns_links *links, bool apart)
{
	static const char *const outer[] = {"left", "right"}, *const inner[] = {"in", "inb"};
	struct error err = {0};

	memset(links, 0, sizeof(*links));
	snprintf(links->rundir, sizeof(links->rundir), "/tmp/napier-test-XXXXXX");
	assert_non_null(mkdtemp(links->rundir));
	must(netlab_open(links->rundir, &links->lab, &err), &err);
	for (int i = 0; i < 2; i++) {
		const char *name = apart || !i ? "in0" : "in1";

		links->outer[i] = (unsigned)namespace_add(links, outer[i]);
		links->inner[i] =
			i && !apart ? links->inner[0] : (unsigned)namespace_add(links, inner[i]);
		snprintf(links->name[i], sizeof(links->name[i]), "%s", name);
		must(netlab_veth_add(links->lab, links->outer[i], NETNS_OUTER, links->inner[i],
				     name, &err),
		     &err);
		must(netlab_link_up(links->lab, links->outer[i], NETNS_OUTER, true, &err), &err);
		must(netlab_link_up(links->lab, links->inner[i], name, true, &err), &err);
		end_settle(links, links->outer[i], NETNS_OUTER);
		links->far[i] = far_open(links, i);
	}
}

void netns_links_close(struct netns_links *links)
{
	if (!links->lab)
		return;
	for (int i = 0; i < 2; i++)
		close(links->far[i]);
	netlab_close(links->lab);
	links->lab = NULL;
	assert_int_equal(rmdir(links->rundir), 0);
}

pid_t netns_fork(const struct netns_links *links, unsigned ns, int (*body)(void *arg), void *arg)
{
	struct error err = {0};
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* not longer than the test, however that ends */
	if (netlab_enter(links->lab, ns, &err)) {
		fprintf(stderr, "%s\n", err.text);
		_exit(126);
	}
	_exit(body(arg));
}

struct until_up {
	int (*body)(void *arg, int up);
	void *arg;
	int ends[2];
};

static int run_until_up(void *arg)
{
	struct until_up *child = arg;

	close(child->ends[0]);
	return child->body(child->arg, child->ends[1]);
}

pid_t netns_fork_up(const struct netns_links *links, unsigned ns, int (*body)(void *arg, int up),
		    void *arg)
{
	struct until_up child = {.body = body, .arg = arg};
	char byte;
	pid_t pid;

	assert_int_equal(pipe(child.ends), 0);
	pid = netns_fork(links, ns, run_until_up, &child);
	close(child.ends[1]);
	assert_int_equal(read(child.ends[0], &byte, 1), 1);
	close(child.ends[0]);
	return pid;
}

bool netns_up(int up)
{
	return write(up, "x", 1) == 1;
}

int netns_wait(pid_t child, int seconds)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	int status;

	for (int i = 0; i < seconds * 100; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		nanosleep(&pause, NULL);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

bool netns_thread_goes(pid_t tid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	json_t *seen = place_observe(tid);

	for (int i = 0; i < NETNS_SECONDS * 1000 && seen; i++) {
		nanosleep(&pause, NULL);
		json_decref(seen);
		seen = place_observe(tid);
	}
	json_decref(seen);
	return !seen;
}

static int run_shell(void *arg)
{
	execl("/bin/sh", "sh", "-c", (const char *)arg, NULL);
	return 127;
}

int netns_run(const struct netns_links *links, unsigned ns, const char *format, ...)
{
	char command[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	return netns_wait(netns_fork(links, ns, run_shell, command), 2 * NETNS_SECONDS);
}

struct tcp {
	struct sockaddr_in address;
	uint32_t bytes;
};

static bool exactly(int fd, void *data, size_t size, bool out)
{
	uint8_t *at = data;

	while (size) {
		ssize_t n = out ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);

		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static int tcp_serve(void *arg, int up)
{
	struct tcp *tcp = arg;
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;
	uint64_t sum = 0;
	uint8_t data[4096];

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&tcp->address, sizeof(tcp->address)) ||
	    listen(listener, 1) || !netns_up(up))
		return 1;
	fd = accept(listener, NULL, NULL);
	for (uint32_t left = tcp->bytes; left;) {
		uint32_t n = left < sizeof(data) ? left : sizeof(data);

		if (!exactly(fd, data, n, false))
			return 2;
		for (uint32_t i = 0; i < n; i++)
			sum += data[i];
		left -= n;
	}
	return exactly(fd, &sum, sizeof(sum), true) ? 0 : 3;
}

static int tcp_send(void *arg)
{
	struct tcp *tcp = arg;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t sum = 0, answer;
	uint8_t data[4096];

	if (connect(fd, (struct sockaddr *)&tcp->address, sizeof(tcp->address)))
		return 1;
	for (uint32_t left = tcp->bytes; left;) {
		uint32_t n = left < sizeof(data) ? left : sizeof(data);

		for (uint32_t i = 0; i < n; i++)
			sum += data[i] = (uint8_t)(left * 31 + i);
		if (!exactly(fd, data, n, true))
			return 2;
		left -= n;
	}
	return exactly(fd, &answer, sizeof(answer), false) && answer == sum ? 0 : 3;
}

bool netns_tcp(const struct netns_links *links, unsigned client, unsigned server,
	       const char *address, uint32_t bytes, int seconds)
{
	struct tcp tcp = {.address = {.sin_family = AF_INET, .sin_port = htons(7000)},
			  .bytes = bytes};
	pid_t serving;
	int answer;

	assert_int_equal(inet_pton(AF_INET, address, &tcp.address.sin_addr), 1);
	serving = netns_fork_up(links, server, tcp_serve, &tcp);
	answer = netns_wait(netns_fork(links, client, tcp_send, &tcp), seconds);
	if (answer)
		kill(serving, SIGKILL);
	return !netns_wait(serving, seconds) && !answer;
}

/* Both group bits clear, so that nobody takes it for a broadcast. */
static void frame_fill(uint8_t *frame, uint32_t size, int from, uint32_t number)
{
	static const uint8_t address[2][6] = {{2, 0, 0, 0, 0, 0x0a}, {2, 0, 0, 0, 0, 0x0b}};

	memcpy(frame, address[!from], 6);
	memcpy(frame + 6, address[from], 6);
	frame[12] = NUMBERED >> 8;
	frame[13] = NUMBERED & 0xff;
	memcpy(frame + 14, &number, sizeof(number));
	for (uint32_t i = 18; i < size; i++)
		frame[i] = (uint8_t)(number + i);
}

/*
 * An interface that has no room drops, and says so at once: again and again, and with pauses when
 * that does not help, since who makes room may have to wait for its CPU. refused: how often.
 */
static bool frame_send(int fd, const uint8_t *frame, uint32_t size, uint32_t *refused)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < NETNS_SECONDS * 1000; i++) {
		if (send(fd, frame, size, 0) == (ssize_t)size)
			return true;
		*refused += errno == ENOBUFS;
		if (errno == ENOBUFS && i >= SPINS)
			nanosleep(&pause, NULL);
	}
	return false;
}

uint32_t netns_cross(const struct netns_links *links, int from, uint32_t n, uint32_t size)
{
	uint8_t frame[2048], expected[2048];
	uint32_t sent = 0, got = 0, refused = 0;
	int out = links->far[!from];

	assert_in_range(size, 18, sizeof(frame));
	while (got < n) {
		struct pollfd ready = {.fd = out, .events = POLLIN};

		for (; sent < n && sent - got < WINDOW; sent++) {
			frame_fill(frame, size, from, sent);
			assert_true(frame_send(links->far[from], frame, size, &refused));
		}
		if (poll(&ready, 1, NETNS_SECONDS * 1000) != 1)
			break;
		while (recv(out, frame, sizeof(frame), MSG_DONTWAIT) == (ssize_t)size) {
			frame_fill(expected, size, from, got);
			if (memcmp(frame, expected, size))
				return got;
			got++;
		}
	}
	return got;
}

uint32_t netns_flood(const struct netns_links *links, int from, uint32_t n, uint32_t size)
{
	uint32_t sent = 0, refused = 0;
	uint8_t frame[2048];

	assert_in_range(size, 18, sizeof(frame));
	for (uint32_t i = 0; i < n; i++) {
		frame_fill(frame, size, from, i);
		sent += frame_send(links->far[from], frame, size, &refused);
	}
	return sent + refused;
}

void netns_drain(const struct netns_links *links, int side)
{
	uint8_t frame[2048];
	struct pollfd ready = {.fd = links->far[side], .events = POLLIN};

	while (poll(&ready, 1, 20) == 1)
		if (recv(links->far[side], frame, sizeof(frame), MSG_DONTWAIT) < 0)
			break;
}

void netns_spec(const struct netns_links *links, int side, const char *kind, const char *options,
		char *text)
{
	const char *path = links->lab->namespace[links->inner[side]].name;

	snprintf(text, 256, "%s:%s,netns=%s,name=p%d%s%s", kind, links->name[side], path, side,
		 options[0] ? "," : "", options);
}

struct cross {
	struct handler base;
	struct port *_Atomic port[2];
};

static void cross_input(struct handler *handler, struct context *context, struct port *in,
			struct packet **v, uint32_t n)
{
	struct cross *cross = (struct cross *)handler;
	struct port *out = cross->port[in == cross->port[0]];

	if (out)
		port_transmit(context, out, v, n);
	else
		packet_drop(context, v, n, DROP_HANDLER);
}

static int cross_port_add(struct handler *handler, struct port *port, struct error *err)
{
	struct cross *cross = (struct cross *)handler;

	(void)err;
	cross->port[cross->port[0] ? 1 : 0] = port;
	return 0;
}

static void cross_port_remove(struct handler *handler, struct port *port)
{
	struct cross *cross = (struct cross *)handler;

	for (int i = 0; i < 2; i++)
		if (cross->port[i] == port)
			cross->port[i] = NULL;
}

static void cross_destroy(struct handler *handler)
{
	free(handler);
}

static const struct handler_ops cross_ops = {
	.name = "cross",
	.input = cross_input,
	.port_add = cross_port_add,
	.port_remove = cross_port_remove,
	.destroy = cross_destroy,
};

/* Any runner may warn. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

unsigned netns_logged(struct netns_engine *e, const char *text)
{
	unsigned n = 0;

	pthread_mutex_lock(&log_lock);
	for (const char *at = e->log; (at = strstr(at, text)); at++)
		n++;
	pthread_mutex_unlock(&log_lock);
	return n;
}

void netns_log_show(struct netns_engine *e)
{
	pthread_mutex_lock(&log_lock);
	if (e->log[0])
		printf("log: %s", e->log);
	pthread_mutex_unlock(&log_lock);
}

void netns_log_clear(struct netns_engine *e)
{
	pthread_mutex_lock(&log_lock);
	e->log[0] = '\0';
	pthread_mutex_unlock(&log_lock);
}

static void log_line(void *arg, enum log_level level, const char *line)
{
	struct netns_engine *e = arg;
	size_t used;

	(void)level;
	pthread_mutex_lock(&log_lock);
	used = strlen(e->log);
	snprintf(e->log + used, sizeof(e->log) - used, "%s\n", line);
	pthread_mutex_unlock(&log_lock);
}

void netns_engine_open(struct netns_engine *e, enum poller poller)
{
	netns_engine_open_small(e, poller, 0);
}

void netns_engine_open_small(struct netns_engine *e, enum poller poller, uint32_t frames)
{
	struct error err = {0};
	struct engine_config config = {
		.poller = poller, .frames = frames, .log = log_line, .log_arg = e};

	memset(e, 0, sizeof(*e));
	must(machine_host_create(&e->machine, &err), &err);
	config.machine = e->machine;
	must(engine_create(&config, &e->engine, &err), &err);
	e->cross = calloc(1, sizeof(struct cross));
	assert_non_null(e->cross);
	e->cross->ops = &cross_ops;
	e->cross->engine = e->engine;
}

int netns_engine_ports(struct netns_engine *e, const struct netns_links *links, const char *kind,
		       const char *options, struct error *err)
{
	for (int i = 0; i < 2; i++) {
		struct port_config config;
		char text[256];
		int rc;

		netns_spec(links, i, kind, options, text);
		rc = port_config_parse(text, &config, err);
		if (!rc)
			rc = engine_port_add(e->engine, &config, &e->port[i], err);
		if (rc)
			return rc;
	}
	for (int i = 0; i < 2; i++) {
		int rc = engine_handler_set(e->engine, e->port[i], e->cross, err);

		if (rc)
			return rc;
	}
	return 0;
}

void netns_engine_ports_remove(struct netns_engine *e)
{
	struct error err = {0};

	for (int i = 0; i < 2; i++) {
		if (!e->port[i])
			continue;
		must(ASK_PATIENTLY(engine_port_remove(e->engine, e->port[i], &err)), &err);
		e->port[i] = NULL;
	}
	must(engine_check(e->engine, &err), &err);
}

void netns_engine_close(struct netns_engine *e)
{
	if (!e->engine)
		return;
	netns_engine_ports_remove(e);
	engine_destroy(e->engine);
	cross_destroy(e->cross);
	machine_destroy(e->machine);
	e->engine = NULL;
}

uint64_t netns_received(const struct port *port)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < port->queues; i++)
		sum += counter_read(&napi_counters(port->queue[i].napi)->received);
	return sum;
}

uint64_t netns_transmitted(const struct port *port)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < port->queues; i++)
		sum += counter_read(&port->queue[i].transmit->packets);
	return sum;
}

/* Looks every millisecond, for NETNS_SECONDS. */
static bool eventually(bool (*happened)(const struct port *port, uint64_t n),
		       const struct port *port, uint64_t n)
{
	const struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < NETNS_SECONDS * 1000; i++) {
		if (happened(port, n))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static bool has_received(const struct port *port, uint64_t n)
{
	return netns_received(port) >= n;
}

static bool has_transmitted(const struct port *port, uint64_t n)
{
	return netns_transmitted(port) >= n;
}

void netns_wait_received(const struct port *port, uint64_t wanted)
{
	if (!eventually(has_received, port, wanted))
		fail_msg("port %s has received %lu, not %lu", port->name, netns_received(port),
			 wanted);
}

void netns_assert_received(const struct port *port, uint64_t n)
{
	eventually(has_received, port, n);
	assert_int_equal(netns_received(port), n);
}

void netns_assert_transmitted(const struct port *port, uint64_t n)
{
	eventually(has_transmitted, port, n);
	assert_int_equal(netns_transmitted(port), n);
}

static bool conserved(const struct port *port, uint64_t queue)
{
	const struct napi_counters *c = napi_counters(port->queue[queue].napi);
	uint64_t out = counter_read(&c->transmitted) + counter_read(&c->delivered) +
		       counter_read(&c->steered) + counter_read(&c->merged);

	for (int k = 0; k < DROP_MAX; k++)
		out += counter_read(&c->dropped[k]);
	return counter_read(&c->received) + counter_read(&c->cloned) == out;
}

void netns_assert_conserved(const struct port *port)
{
	for (uint32_t i = 0; i < port->queues; i++)
		if (!eventually(conserved, port, i))
			fail_msg("port %s: queue %u has not let go of all that came in", port->name,
				 i);
}

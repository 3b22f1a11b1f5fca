/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link monitor, on this namespace's own loopback, against a kernel that refuses to list the
 * links, breaks off, or says more than there is room for. The monitor is compiled in here with a
 * recv and a send that do so; every answer but the first ones is the kernel's own.
 */
#include "test.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include <napier/machine.h>

enum fault { NO_FAULT, REFUSED, BROKEN_OFF, CUT_OFF, NOT_SENT };

static enum fault fault;
static unsigned faults_left, dumps;

static ssize_t message_put(void *buffer, uint16_t type, int error)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct nlmsgerr *body = mnl_nlmsg_put_extra_header(header, sizeof(*body));

	header->nlmsg_type = type;
	body->error = error;
	return (ssize_t)header->nlmsg_len;
}

/* In the place of the end of a dump, which the kernel sends last and by itself. */
static ssize_t recv_faulty(int fd, void *buffer, size_t size, int flags)
{
	ssize_t n = recv(fd, buffer, size, flags);
	const struct nlmsghdr *header = buffer;

	if (n <= 0 || !faults_left)
		return n;
	if (header->nlmsg_type != NLMSG_DONE)
		return fault == CUT_OFF ? (ssize_t)size + 1 : message_put(buffer, NLMSG_NOOP, 0);
	faults_left--;
	switch (fault) {
	case REFUSED:
		return message_put(buffer, NLMSG_ERROR, -EBUSY);
	case BROKEN_OFF:
		return message_put(buffer, NLMSG_DONE, -ENOMEM);
	default:
		return n;
	}
}

static ssize_t send_faulty(const struct mnl_socket *socket, const void *message, size_t size)
{
	dumps++;
	if (fault == NOT_SENT && faults_left) {
		faults_left--;
		errno = ENOBUFS;
		return -1;
	}
	return mnl_socket_sendto(socket, message, size);
}

#define recv recv_faulty
#define mnl_socket_sendto send_faulty
#include "../../src/control/monitor.c"
#undef recv
#undef mnl_socket_sendto

struct scene {
	struct machine *machine;
	struct runner *runner;
	struct monitor *monitor;
	struct watch lo, away;
	_Atomic bool ready, lo_seen, away_gone;
	_Atomic unsigned steps;
};

static struct step monitor_step(void *arg)
{
	struct scene *s = arg;
	int64_t now = machine_now(s->machine), next;

	if (!s->ready)
		return STEP(STEP_WAIT);
	s->steps++;
	next = monitor_work(s->monitor, now);
	return next <= now ? STEP(STEP_YIELD) : STEP_UNTIL(next);
}

static void on_link(void *arg, struct watch *watch, enum link_event event)
{
	struct scene *s = arg;

	if (watch == &s->lo)
		s->lo_seen = event != LINK_GONE;
	else if (event == LINK_GONE)
		s->away_gone = true;
}

static bool told(void *arg)
{
	struct scene *s = arg;

	return s->lo_seen && s->away_gone;
}

/* Whatever happens to the first dumps, the present state of all links is told in the end. */
static void tells_in_spite_of(enum fault what, unsigned times)
{
	struct runner_config config = {.name = "monitor", .step = monitor_step};
	struct scene s = {0};

	fault = what;
	faults_left = times;
	dumps = 0;
	config.arg = &s;
	assert_int_equal(machine_host_create(&s.machine, NULL), 0);
	assert_int_equal(runner_start(s.machine, &config, &s.runner, NULL), 0);
	assert_int_equal(monitor_open(s.runner, on_link, &s, &s.monitor), 0);
	assert_int_equal(monitor_watch(s.monitor, &s.lo, "", 1, NULL), 0);
	assert_int_equal(monitor_watch(s.monitor, &s.away, "", 0x7ffffff0, NULL), 0);
	s.ready = true;
	runner_wake(s.runner);
	assert_int_equal(
		machine_wait(s.machine, told, &s, machine_now(s.machine) + 30 * NSEC_PER_SEC), 0);
	runner_stop(s.runner);
	assert_int_equal(faults_left, 0);
	assert_true(dumps > times);
	/* Asked again, and not over and over. */
	assert_true(s.steps < 1000);
	monitor_unwatch(s.monitor, &s.lo);
	monitor_unwatch(s.monitor, &s.away);
	monitor_close(s.monitor);
	machine_destroy(s.machine);
}

static void asks_again_when_refused(void **state)
{
	(void)state;
	tells_in_spite_of(REFUSED, 2);
}

static void asks_again_when_broken_off(void **state)
{
	(void)state;
	tells_in_spite_of(BROKEN_OFF, 2);
}

static void asks_again_when_cut_off(void **state)
{
	(void)state;
	tells_in_spite_of(CUT_OFF, 1);
}

static void asks_again_when_not_sent(void **state)
{
	(void)state;
	tells_in_spite_of(NOT_SENT, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_again_when_refused),
		cmocka_unit_test(asks_again_when_broken_off),
		cmocka_unit_test(asks_again_when_cut_off),
		cmocka_unit_test(asks_again_when_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

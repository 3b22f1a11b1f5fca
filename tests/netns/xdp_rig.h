/* SPDX-License-Identifier: BSD-2-Clause */
/* An engine with an xdp port at each of two veth pairs' inner ends; away with each test. */
#ifndef XDP_RIG_H
#define XDP_RIG_H

#include "test.h"

#include "netns.h"

#include <time.h>
#include <unistd.h>

#define XDP_TEST(name) cmocka_unit_test_teardown(name, teardown)

static struct netns_links links;
static struct netns_engine e;

static inline int teardown(void **state)
{
	(void)state;
	netns_log_show(&e);
	netns_engine_close(&e);
	netns_links_close(&links);
	return 0;
}

static inline void ports_open(const char *options)
{
	struct error err = {0};

	/* The kernel may give a queue back later than the port waits for, on a busy machine. */
	for (int i = 0; netns_engine_ports(&e, &links, "xdp", options, &err); i++) {
		if (err.code != -EBUSY || i == 30)
			fail_msg("%s", err.text);
		netns_engine_ports_remove(&e);
	}
}

static inline void sleep_ms(long ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* Looks ten times a second, for NETNS_SECONDS. */
static inline bool eventually(bool (*happened)(void *arg), void *arg)
{
	for (int i = 0; i < NETNS_SECONDS * 10; i++) {
		if (happened(arg))
			return true;
		sleep_ms(100);
	}
	return false;
}

static inline bool is_logged(void *text)
{
	return netns_logged(&e, text);
}

/* Waits for a warning. */
static inline bool log_says(const char *text)
{
	return eventually(is_logged, (void *)(uintptr_t)text);
}

/* Nothing was said, but that a busy machine did not run a poller for a second. */
static inline void assert_nothing_said(void)
{
	assert_int_equal(netns_logged(&e, "\n"), netns_logged(&e, "not polled for a second"));
}

/* A number of an interface's own: the second is of packets, the fourth of those it dropped. */
static inline unsigned long tx_counted(unsigned ns, const char *name, int field)
{
	unsigned long dropped;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/dropped", links.rundir);
	assert_int_equal(netns_run(&links, ns,
				   "ip -s link show %s | awk '/TX:/ {getline; print $%d}' >%s",
				   name, field, path),
			 0);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &dropped), 1);
	fclose(file);
	unlink(path);
	return dropped;
}

/* What was given to the outer interface and is not under way: received, or lost by either. */
static inline uint64_t accounted(int side)
{
	const struct napi_counters *c = napi_counters(e.port[side]->queue[0].napi);

	return counter_read(&c->received) + counter_read(&c->lost) +
	       tx_counted(links.outer[side], NETNS_OUTER, 4);
}

struct flooded {
	int side;
	uint64_t given;
};

/* All that was given to it. */
static inline bool is_accounted(void *arg)
{
	const struct flooded *f = arg;

	return accounted(f->side) == f->given;
}

/*
 * All that the port has transmitted has left by its interface: that has sent it, or dropped it as
 * it went down, or for want of room at the peer, whose softirq may come late.
 */
static inline bool queue_idle(void *arg)
{
	int side = *(const int *)arg;

	return netns_transmitted(e.port[side]) ==
	       tx_counted(links.inner[side], links.name[side], 2) +
		       tx_counted(links.inner[side], links.name[side], 4);
}

#endif

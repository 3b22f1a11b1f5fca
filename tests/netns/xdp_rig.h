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
	if (e.engine && e.log[0])
		printf("log: %s", e.log);
	netns_engine_close(&e);
	netns_links_close(&links);
	return 0;
}

static inline void ports_open(const char *options)
{
	struct error err = {0};

	if (netns_engine_ports(&e, &links, "xdp", options, &err))
		fail_msg("%s", err.text);
}

static inline void sleep_ms(long ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* Waits for a warning, for at most 10 seconds. */
static inline bool log_says(const char *text)
{
	for (int i = 0; i < 100; i++) {
		if (netns_logged(&e, text))
			return true;
		sleep_ms(100);
	}
	return false;
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

#endif

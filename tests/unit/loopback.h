/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests over the loopback share: an address of their own, and what the kernel drops there. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include "test.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <lab/load/load.h>

/*
 * An address of 127.64.0.0/10 that no other process has, by its number: so the ports there are this
 * test's alone, whatever runs beside it.
 */
static inline void loopback_address(char *out, size_t size)
{
	struct in_addr own = {htonl(INADDR_LOOPBACK - 1 + (64u << 16) + (uint32_t)getpid())};

	inet_ntop(AF_INET, &own, out, (socklen_t)size);
}

/* The CPUs that there are: each thread then has one of them, and what it sends stays in order. */
static inline void loopback_pin(struct load_place *place)
{
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (unsigned cpu = 0; cpu < CPU_MAX; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			cpuset_add(&place->cpus, cpu);
}

/* The calling thread has one CPU from now on, for the same reason. */
static inline void loopback_stay(void)
{
	int cpu = sched_getcpu();
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(cpu < 0 ? 0 : cpu, &here);
	sched_setaffinity(0, sizeof(here), &here);
}

/* Of the CPUs' backlogs, which are full when softirq is put off: whose packets does not matter. */
static inline uint64_t backlog_drops(void)
{
	FILE *file = fopen("/proc/net/softnet_stat", "r");
	unsigned processed, dropped;
	uint64_t sum = 0;
	char line[1024];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		assert_int_equal(sscanf(line, "%x %x", &processed, &dropped), 2);
		sum += dropped;
	}
	fclose(file);
	return sum;
}

/* Of UDP's sockets: "Udp: InDatagrams NoPorts InErrors ...", and the numbers in the next line. */
static inline uint64_t socket_drops(void)
{
	FILE *file = fopen("/proc/net/snmp", "r");
	uint64_t errors = 0;
	char line[1024];
	int found = 0;

	assert_non_null(file);
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Udp: %*u %*u %" SCNu64, &errors);
	fclose(file);
	assert_int_equal(found, 1);
	return errors;
}

/*
 * Datagrams that the kernel has dropped, and says so, of all who use this loopback. What is lost
 * between two looks is no more than that; where nothing was dropped, it is nothing.
 */
static inline uint64_t loopback_drops(void)
{
	return backlog_drops() + socket_drops();
}

#endif

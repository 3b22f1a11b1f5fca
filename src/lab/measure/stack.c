/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/measure/stack.h"

/* Every received packet is counted by its ECN bits, and each in a super-packet. */
static const char *const wires[] = {"InNoECTPkts", "InECT1Pkts", "InECT0Pkts", "InCEPkts"};

static FILE *file_open(pid_t process, pid_t thread, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/net/%s", process, thread, name);
	return fopen(path, "re");
}

static void count(const char *name, const char *value, struct stack_counts *out)
{
	uint64_t number = strtoull(value, NULL, 10);

	if (!strcmp(name, "InReceives"))
		out->taken += number;
	for (unsigned i = 0; i < sizeof(wires) / sizeof(*wires); i++)
		if (!strcmp(name, wires[i]))
			out->wire += number;
}

/* "Ip: A B C" and in the next line "Ip: 1 2 3". */
static bool pairs_read(FILE *f, const char *protocol, struct stack_counts *out)
{
	char line[2][4096], *rest[2];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line[0], sizeof(line[0]), f) && fgets(line[1], sizeof(line[1]), f)) {
		char *name = strtok_r(line[0], " \n", &rest[0]);
		char *value = strtok_r(line[1], " \n", &rest[1]);

		found = name && value && !strcmp(name, protocol);
		while (found && (name = strtok_r(NULL, " \n", &rest[0])) &&
		       (value = strtok_r(NULL, " \n", &rest[1])))
			count(name, value, out);
	}
	fclose(f);
	return found;
}

/* "Ip6InReceives 1"; there is none without IPv6. */
static void lines_read(FILE *f, struct stack_counts *out)
{
	char name[64], value[32];

	if (!f)
		return;
	while (fscanf(f, "%63s %31s", name, value) == 2)
		if (!strncmp(name, "Ip6", 3))
			count(name + 3, value, out);
	fclose(f);
}

bool stack_read(pid_t process, pid_t thread, struct stack_counts *out)
{
	*out = (struct stack_counts){0};
	if (!pairs_read(file_open(process, thread, "snmp"), "Ip:", out) ||
	    !pairs_read(file_open(process, thread, "netstat"), "IpExt:", out))
		return false;
	lines_read(file_open(process, thread, "snmp6"), out);
	return true;
}

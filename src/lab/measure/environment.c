/* SPDX-License-Identifier: BSD-2-Clause */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <time.h>

#include "lab/clock.h"
#include "lab/measure/environment.h"
#include "lab/measure/environment_parts.h"
#include "lab/measure/sysfile.h"

static json_t *kernel(void)
{
	struct utsname name;

	if (uname(&name))
		return json_null();
	return json_pack("{s:s, s:s, s:s, s:o}", "release", name.release, "version", name.version,
			 "machine", name.machine, "preemption",
			 sysfile_text("/sys/kernel/debug/sched/preempt"));
}

/* A parameter's value that may be a secret; a report goes to others. */
static bool is_private(const char *parameter)
{
	static const char *const words[] = {"pass", "secret", "token", "key", "cred", "auth"};
	char name[128];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(parameter, "="), parameter);
	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static json_t *boot(void)
{
	char text[SYSFILE_MAX], shown[SYSFILE_MAX] = "", *rest, *parameter;
	size_t n = 0;

	if (!sysfile_read(text, "/proc/cmdline"))
		return json_null();
	/* Behind "--" is what the first program was called with. */
	for (parameter = strtok_r(text, " ", &rest);
	     parameter && strcmp(parameter, "--") && n < sizeof(shown);
	     parameter = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(parameter, '=');

		if (value && is_private(parameter))
			value[1] = '\0';
		n += (size_t)snprintf(shown + n, sizeof(shown) - n, "%s%s", n ? " " : "",
				      parameter);
	}
	return sysfile_string(shown);
}

static json_t *os(void)
{
	char value[256];

	return sysfile_field("/etc/os-release", "PRETTY_NAME", value, sizeof(value))
		       ? sysfile_string(value)
		       : json_null();
}

static json_t *memory_bytes(const char *name)
{
	char value[64];

	if (!sysfile_field("/proc/meminfo", name, value, sizeof(value)))
		return json_null();
	/* In kB, but for those that are counted. */
	return json_integer(strtoll(value, NULL, 10) * (strstr(value, "kB") ? 1024 : 1));
}

static json_t *memory(void)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "total_bytes", memory_bytes("MemTotal"),
			 "available_bytes", memory_bytes("MemAvailable"), "huge_pages",
			 memory_bytes("HugePages_Total"), "transparent_huge_pages",
			 sysfile_text("/sys/kernel/mm/transparent_hugepage/enabled"));
}

static json_t *clocks(void)
{
	return json_pack("{s:o, s:o}", "source",
			 sysfile_text("/sys/devices/system/clocksource/clocksource0/"
				      "current_clocksource"),
			 "available",
			 sysfile_text("/sys/devices/system/clocksource/clocksource0/"
				      "available_clocksource"));
}

static json_t *load(void)
{
	double load[3];

	return getloadavg(load, 3) == 3 ? json_pack("[f, f, f]", load[0], load[1], load[2])
					: json_null();
}

/* CPUs that this program may use, as a list. */
static json_t *allowed(void)
{
	char value[SYSFILE_MAX];

	return sysfile_field("/proc/self/status", "Cpus_allowed_list", value, sizeof(value))
		       ? sysfile_string(value)
		       : json_null();
}

/* A container's share of CPU time: "max 100000" is none. */
static json_t *quota(void)
{
	char text[SYSFILE_MAX], *group;

	if (!sysfile_read(text, "/proc/self/cgroup"))
		return json_null();
	group = strstr(text, "0::");
	if (!group)
		return json_null();
	group += 3;
	group[strcspn(group, "\n")] = '\0';
	return sysfile_text("/sys/fs/cgroup%.400s/cpu.max", strcmp(group, "/") ? group : "");
}

static json_t *isolated(void)
{
	return json_pack("{s:o, s:o}", "cpus", sysfile_text("/sys/devices/system/cpu/isolated"),
			 "nohz_full", sysfile_text("/sys/devices/system/cpu/nohz_full"));
}

static json_t *now(void)
{
	time_t seconds = time(NULL);
	char text[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

json_t *environment_read(void)
{
	unsigned interrupts, interfaces;
	/* First: the rest of this is work, too. */
	json_t *processes = environment_processes();
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "processes",
			      processes, "load", load(), "kernel", kernel(), "boot", boot(), "os",
			      os(), "cpu", environment_cpu(), "numa", environment_numa(),
			      "isolated", isolated(), "allowed", allowed(), "quota", quota());

	if (!o)
		return NULL;
	json_object_set_new(o, "mitigations", environment_mitigations());
	json_object_set_new(o, "hypervisor", environment_hypervisor());
	json_object_set_new(o, "clock", clocks());
	json_object_set_new(o, "memory", memory());
	json_object_set_new(o, "sysctl", environment_sysctl());
	json_object_set_new(o, "interrupts", environment_interrupts(&interrupts));
	json_object_set_new(o, "interrupts_n", json_integer(interrupts));
	json_object_set_new(o, "interfaces", environment_interfaces(&interfaces));
	json_object_set_new(o, "interfaces_n", json_integer(interfaces));
	json_object_set_new(o, "versions", environment_versions());
	json_object_set_new(o, "time", now());
	json_object_set_new(o, "uptime_s", json_real((double)clock_read(CLOCK_BOOTTIME) / 1e9));
	return o;
}

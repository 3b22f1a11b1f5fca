/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lab/measure/environment_parts.h"
#include "lab/measure/sysfile.h"

#define CPU "/sys/devices/system/cpu/"

enum { NAMES = 64 };

static json_t *info(const char *name)
{
	char value[256];

	return sysfile_field("/proc/cpuinfo", name, value, sizeof(value)) ? sysfile_string(value)
									  : json_null();
}

static json_t *caches(void)
{
	char name[NAMES][SYSFILE_NAME_MAX];
	unsigned n = sysfile_names(CPU "cpu0/cache", "index", name, NAMES);
	json_t *all = json_array();

	for (unsigned i = 0; i < n && i < NAMES; i++)
		json_array_append_new(
			all, json_pack("{s:o, s:o, s:o, s:o}", "level",
				       sysfile_number(CPU "cpu0/cache/%s/level", name[i]), "type",
				       sysfile_text(CPU "cpu0/cache/%s/type", name[i]), "size",
				       sysfile_text(CPU "cpu0/cache/%s/size", name[i]), "shared",
				       sysfile_text(CPU "cpu0/cache/%s/shared_cpu_list", name[i])));
	if (n)
		return all;
	json_decref(all);
	return json_null();
}

/* Hardware threads of the first CPU's core. */
static json_t *threads_per_core(void)
{
	char text[SYSFILE_MAX];
	unsigned n = 0;

	if (!sysfile_read(text, CPU "cpu0/topology/thread_siblings"))
		return json_null();
	for (const char *c = text; *c; c++) {
		const char *digits = "0123456789abcdef", *at = strchr(digits, *c);

		n += at ? (unsigned)__builtin_popcount((unsigned)(at - digits)) : 0;
	}
	return json_integer(n);
}

static json_t *idle_states(void)
{
	char name[NAMES][SYSFILE_NAME_MAX];
	unsigned n = sysfile_names(CPU "cpu0/cpuidle", "state", name, NAMES);
	json_t *all;

	if (!n)
		return json_null();
	all = json_array();
	for (unsigned i = 0; i < n && i < NAMES; i++)
		json_array_append_new(
			all,
			json_pack("{s:o, s:o, s:o}", "name",
				  sysfile_text(CPU "cpu0/cpuidle/%s/name", name[i]), "latency_us",
				  sysfile_number(CPU "cpu0/cpuidle/%s/latency", name[i]),
				  "disabled",
				  sysfile_number(CPU "cpu0/cpuidle/%s/disable", name[i])));
	return all;
}

json_t *environment_cpu(void)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"model", info("model name"), "vendor", info("vendor_id"), "microcode",
		info("microcode"), "mhz", info("cpu MHz"), "online_n",
		(int)sysconf(_SC_NPROCESSORS_ONLN), "online", sysfile_text(CPU "online"),
		"threads_per_core", threads_per_core(), "smt", sysfile_text(CPU "smt/control"),
		"caches", caches(), "frequency_driver",
		sysfile_text(CPU "cpu0/cpufreq/scaling_driver"), "governor",
		sysfile_text(CPU "cpu0/cpufreq/scaling_governor"), "max_khz",
		sysfile_number(CPU "cpu0/cpufreq/scaling_max_freq"), "idle_driver",
		sysfile_text(CPU "cpuidle/current_driver"), "idle_governor",
		sysfile_text(CPU "cpuidle/current_governor"), "idle_states", idle_states());
}

json_t *environment_numa(void)
{
	char name[NAMES][SYSFILE_NAME_MAX];
	unsigned n = sysfile_names("/sys/devices/system/node", "node", name, NAMES);
	json_t *all;

	if (!n)
		return json_null();
	all = json_object();
	for (unsigned i = 0; i < n && i < NAMES; i++)
		json_object_set_new(all, name[i],
				    sysfile_text("/sys/devices/system/node/%s/cpulist", name[i]));
	return all;
}

json_t *environment_mitigations(void)
{
	char name[NAMES][SYSFILE_NAME_MAX];
	unsigned n = sysfile_names(CPU "vulnerabilities", "", name, NAMES);
	json_t *all;

	if (!n)
		return json_null();
	all = json_object();
	for (unsigned i = 0; i < n && i < NAMES; i++)
		json_object_set_new(all, name[i], sysfile_text(CPU "vulnerabilities/%s", name[i]));
	return all;
}

/* A processor says so of itself; whose it is may be guessed from the board's maker. */
json_t *environment_hypervisor(void)
{
	char flags[SYSFILE_MAX], type[SYSFILE_MAX];
	json_t *maker;

	if (sysfile_read(type, "/sys/hypervisor/type"))
		return sysfile_string(type);
	if (!sysfile_field("/proc/cpuinfo", "flags", flags, sizeof(flags)))
		return json_null();
	if (!strstr(flags, " hypervisor"))
		return json_string("none");
	maker = sysfile_text("/sys/class/dmi/id/sys_vendor");
	return json_is_null(maker) ? json_string("unknown") : maker;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How a knob would be set by hand. */
#include <stdio.h>
#include <string.h>

#include "lab/run/system.h"

static bool among(const char *key, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

enum { MASK = CPU_MAX / 32 * 9 + 9 };

#define AMONG(key, keys) among(key, keys, sizeof(keys) / sizeof(*(keys)))

/* ethtool has names of its own. */
static const char *ethtool_name(const char *key, char name[KNOB_TEXT_MAX])
{
	size_t i = 0;

	if (!strcmp(key, "tx_csum"))
		return "tx";
	if (!strcmp(key, "rx_csum"))
		return "rx";
	for (; key[i] && i < KNOB_TEXT_MAX - 1; i++)
		name[i] = key[i] == '_' ? '-' : key[i];
	name[i] = '\0';
	return name;
}

/* As the kernel takes it: words of 32 CPUs in hexadecimal, the highest first. */
static const char *mask_text(const char *cpus, char mask[MASK])
{
	struct cpuset set = {0};
	int top = CPU_MAX / 32 - 1, n = 0;

	/* A mask already, or "none". */
	if (!strcmp(cpus, "none") || cpuset_parse(cpus, &set))
		return strcmp(cpus, "none") ? cpus : "0";
	while (top > 0 && !(uint32_t)(set.bits[top / 2] >> top % 2 * 32))
		top--;
	for (int word = top; word >= 0; word--)
		n += snprintf(mask + n, MASK - (size_t)n, word == top ? "%x" : ",%08x",
			      (uint32_t)(set.bits[word / 2] >> word % 2 * 32));
	return mask;
}

static void say_interface(struct system *system, const struct topology_end *end, const char *key,
			  const char *value)
{
	static const char *const offloads[] = {"gro", "gso", "tso", "tx_csum", "rx_csum"};
	static const char *const coalescing[] = {"rx_usecs", "rx_frames", "tx_usecs",
						 "adaptive_rx"};
	static const char *const queues[] = {"rps_cpus", "rps_flow_cnt"};
	char in[96] = "", name[KNOB_TEXT_MAX], mask[MASK];

	if (!strcmp(key, "rps_cpus"))
		value = mask_text(value, mask);
	if (*end->netns_name)
		snprintf(in, sizeof(in), "ip netns exec %s ", end->netns_name);
	if (AMONG(key, offloads))
		system_say(system, "%sethtool -K %s %s %s", in, end->interface,
			   ethtool_name(key, name), value);
	else if (AMONG(key, coalescing))
		system_say(system, "%sethtool -C %s %s %s", in, end->interface,
			   ethtool_name(key, name), value);
	else if (AMONG(key, queues))
		system_say(system,
			   "%ssh -c 'for q in /sys/class/net/%s/queues/rx-*; do echo %s > $q/%s; "
			   "done'",
			   in, end->interface, value, key);
	else if (!strcmp(key, "irq_cpus"))
		system_say(system,
			   "for i in $(ls /sys/class/net/%s/device/msi_irqs); do echo %s > "
			   "/proc/irq/$i/smp_affinity_list; done",
			   end->interface, value);
	else if (!strcmp(key, "irq_suspend_timeout") ||
		 (!strcmp(key, "threaded") && !strcmp(value, "busy-poll")))
		system_say(system,
			   "# for each id of: ynl --family netdev --dump napi-get\n%synl --family "
			   "netdev --do napi-set --json '{\"id\": ID, \"%s\": %s%s%s}'",
			   in, !strcmp(key, "threaded") ? key : "irq-suspend-timeout",
			   !strcmp(key, "threaded") ? "\"" : "", value,
			   !strcmp(key, "threaded") ? "\"" : "");
	else
		system_say(system, "%ssh -c 'echo %s > /sys/class/net/%s/%s'", in,
			   !strcmp(value, "on")	   ? "1"
			   : !strcmp(value, "off") ? "0"
						   : value,
			   end->interface, key);
}

void system_say_knob(struct system *system, const struct topology_end *end, const char *key,
		     const char *value)
{
	if (end)
		say_interface(system, end, key, value);
	else
		system_say(system, "sysctl -w net.core.%s=%s", key, value);
}

/* Of a side of the workload, whose own commands are told with it. */
static void say_side(struct system *system, const char *who, const char *side, const char *options)
{
	const struct spec_placement *place = system_place(system->spec, who);
	char cpus[256] = "";

	if (place)
		cpuset_format(&place->cpus, cpus, sizeof(cpus));
	if (!*cpus && !*options)
		return;
	system_say(system, "# the workload's command of the %s:%s%s%s%s", side,
		   *cpus ? " taskset -c " : "", cpus, *options ? " … with" : "", options);
}

void system_say_load(struct system *system, const struct load_config *load)
{
	char options[160] = "";
	int n = 0;

	if (load->server_spins)
		n += snprintf(options, sizeof(options), " --server-spins");
	if (load->client_spins)
		n += snprintf(options + n, sizeof(options) - (size_t)n, " --client-spins");
	if (load->busy_poll_usecs)
		n += snprintf(options + n, sizeof(options) - (size_t)n, " --busy-poll %u",
			      load->busy_poll_usecs);
	if (load->prefer_busy_poll)
		n += snprintf(options + n, sizeof(options) - (size_t)n, " --prefer-busy-poll");
	if (load->busy_poll_budget)
		snprintf(options + n, sizeof(options) - (size_t)n, " --busy-poll-budget %u",
			 load->busy_poll_budget);
	say_side(system, "server", "server", "");
	say_side(system, "client", "client", options);
}

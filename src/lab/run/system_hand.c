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

static void say_interface(struct system *system, const struct topology_end *end, const char *key,
			  const char *value)
{
	static const char *const offloads[] = {"gro", "gso", "tso", "tx_csum", "rx_csum"};
	static const char *const coalescing[] = {"rx_usecs", "rx_frames", "tx_usecs",
						 "adaptive_rx"};
	static const char *const queues[] = {"rps_cpus", "rps_flow_cnt"};
	char in[96] = "", name[KNOB_TEXT_MAX];

	if (*end->netns_name)
		snprintf(in, sizeof(in), "ip netns exec %s ", end->netns_name);
	if (AMONG(key, offloads))
		system_say(system, "%sethtool -K %s %s %s", in, end->interface,
			   ethtool_name(key, name), value);
	else if (AMONG(key, coalescing))
		system_say(system, "%sethtool -C %s %s %s", in, end->interface,
			   ethtool_name(key, name), value);
	else if (!strcmp(key, "rps_cpus"))
		system_say(system,
			   "# CPUs %s, as a mask:\n%ssh -c 'for q in "
			   "/sys/class/net/%s/queues/rx-*; do echo MASK > $q/rps_cpus; done'",
			   value, in, end->interface);
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

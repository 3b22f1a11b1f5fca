/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/measure/environment.h"
#include "lab/measure/environment_parts.h"
#include "lab/measure/sysfile.h"

/* With dots for slashes, as sysctl(8) has them. */
static const char *const sysctls[] = {
	"net.core.netdev_budget",
	"net.core.netdev_budget_usecs",
	"net.core.dev_weight",
	"net.core.dev_weight_rx_bias",
	"net.core.dev_weight_tx_bias",
	"net.core.netdev_max_backlog",
	"net.core.flow_limit_cpu_bitmap",
	"net.core.rps_sock_flow_entries",
	"net.core.rps_default_mask",
	"net.core.busy_poll",
	"net.core.busy_read",
	"net.core.gro_normal_batch",
	"net.core.skb_defer_max",
	"net.core.default_qdisc",
	"net.core.rmem_default",
	"net.core.rmem_max",
	"net.core.wmem_default",
	"net.core.wmem_max",
	"net.core.bpf_jit_enable",
	"net.core.bpf_jit_harden",
	"net.ipv4.tcp_congestion_control",
	"net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem",
	"net.ipv4.tcp_autocorking",
	"net.ipv4.tcp_limit_output_bytes",
	"net.ipv4.tcp_min_rtt_wlen",
	"kernel.timer_migration",
	"kernel.nmi_watchdog",
	"kernel.numa_balancing",
	"kernel.sched_rt_runtime_us",
	"kernel.sched_autogroup_enabled",
	"kernel.perf_event_paranoid",
	"vm.swappiness",
};

json_t *environment_sysctl(void)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < sizeof(sysctls) / sizeof(*sysctls); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/proc/sys/%s", sysctls[i]);
		for (char *c = path; *c; c++)
			if (*c == '.')
				*c = '/';
		json_object_set_new(all, sysctls[i], sysfile_text("%s", path));
	}
	return all;
}

json_t *environment_interrupts(unsigned *n)
{
	char(*name)[SYSFILE_NAME_MAX] = calloc(ENVIRONMENT_INTERRUPTS_MAX, sizeof(*name));
	json_t *all = json_array();

	*n = name ? sysfile_names("/proc/irq", "", name, ENVIRONMENT_INTERRUPTS_MAX) : 0;
	for (unsigned i = 0; i < *n && i < ENVIRONMENT_INTERRUPTS_MAX; i++) {
		char actions[SYSFILE_MAX];

		/* A file beside them; or nobody has it. */
		if (!sysfile_read(actions, "/sys/kernel/irq/%s/actions", name[i]) || !*actions)
			continue;
		json_array_append_new(
			all,
			json_pack("{s:s, s:o, s:o, s:o}", "irq", name[i], "actions",
				  sysfile_string(actions), "asked",
				  sysfile_text("/proc/irq/%s/smp_affinity_list", name[i]),
				  "effective",
				  sysfile_text("/proc/irq/%s/effective_affinity_list", name[i])));
	}
	free(name);
	return all;
}

static json_t *driver(const char *interface)
{
	char path[128], target[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/driver", interface);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return json_null();
	target[n] = '\0';
	return sysfile_string(strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
}

/* By receive queue: its map, and flows of RFS. */
static json_t *rps(const char *interface)
{
	char(*queue)[SYSFILE_NAME_MAX] = calloc(ENVIRONMENT_LIST_MAX, sizeof(*queue));
	char path[128];
	json_t *all = json_array();
	unsigned n = 0;

	snprintf(path, sizeof(path), "/sys/class/net/%s/queues", interface);
	if (queue)
		n = sysfile_names(path, "rx-", queue, ENVIRONMENT_LIST_MAX);
	for (unsigned i = 0; i < n && i < ENVIRONMENT_LIST_MAX; i++)
		json_array_append_new(
			all, json_pack("{s:o, s:o}", "cpus",
				       sysfile_text("%s/%s/rps_cpus", path, queue[i]), "flows",
				       sysfile_number("%s/%s/rps_flow_cnt", path, queue[i])));
	free(queue);
	return all;
}

json_t *environment_interfaces(unsigned *n)
{
	char(*name)[SYSFILE_NAME_MAX] = calloc(ENVIRONMENT_LIST_MAX, sizeof(*name));
	json_t *all = json_array();

	*n = name ? sysfile_names("/sys/class/net", "", name, ENVIRONMENT_LIST_MAX) : 0;
	for (unsigned i = 0; i < *n && i < ENVIRONMENT_LIST_MAX; i++) {
#define OF(file) "/sys/class/net/%s/" file, name[i]
		json_array_append_new(
			all,
			json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", name[i],
				  "driver", driver(name[i]), "mtu", sysfile_number(OF("mtu")),
				  "speed_mbit", sysfile_number(OF("speed")), "threaded",
				  sysfile_number(OF("threaded")), "gro_flush_timeout",
				  sysfile_number(OF("gro_flush_timeout")), "napi_defer_hard_irqs",
				  sysfile_number(OF("napi_defer_hard_irqs")), "rps", rps(name[i])));
#undef OF
	}
	free(name);
	return all;
}

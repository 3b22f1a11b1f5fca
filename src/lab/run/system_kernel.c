/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own: its sockets, bridge or router, and by whom its NAPIs are polled. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/sockios.h>

#include "lab/inside.h"
#include "lab/run/place.h"
#include "lab/run/record.h"
#include "lab/run/system.h"

static void bridge_name(char name[IFNAMSIZ])
{
	snprintf(name, IFNAMSIZ, "np%dbr", getpid());
}

static void bridge_line(const struct system *system, char line[128])
{
	const char *netns = system->topology->dut[0].netns_name;
	char bridge[IFNAMSIZ];

	bridge_name(bridge);
	snprintf(line, 128, "bridge %s %s", *netns ? netns : "-", bridge);
}

static int bridge_ioctl(const struct topology_end *end, unsigned long request, const char *bridge,
			const char *interface)
{
	struct ifreq ifr = {0};

	if (interface) {
		snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
		if (ioctl(end->ioctl, SIOCGIFINDEX, &ifr))
			return -errno;
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", bridge);
	return ioctl(end->ioctl, request, &ifr) ? -errno : 0;
}

static int bridge_up(const struct topology_end *end, const char *bridge, bool up)
{
	struct ifreq ifr = {0};

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", bridge);
	if (ioctl(end->ioctl, SIOCGIFFLAGS, &ifr))
		return -errno;
	ifr.ifr_flags = (short)(up ? ifr.ifr_flags | IFF_UP : ifr.ifr_flags & ~IFF_UP);
	return ioctl(end->ioctl, SIOCSIFFLAGS, &ifr) ? -errno : 0;
}

/* By ioctl, as that works alike in namespaces made and given. */
static int bridge_start(struct system *system, struct error *err)
{
	struct topology *t = system->topology;
	const struct topology_end *at = &t->dut[0];
	char bridge[IFNAMSIZ], line[128];
	int ret;

	bridge_name(bridge);
	bridge_line(system, line);
	ret = record_add(system->rundir, line, err);
	if (ret)
		return ret;
	ret = ioctl(at->ioctl, SIOCBRADDBR, bridge) ? -errno : 0;
	if (ret) {
		record_remove(line);
		return error_set(err, ret, "making a bridge in %s: %s", at->netns_name,
				 strerror(-ret));
	}
	system->bridged = true;
	system_say(system, "ip -n %s link add br0 type bridge", at->netns_name);
	for (unsigned i = 0; i < t->duts && !ret; i++) {
		ret = bridge_ioctl(at, SIOCBRADDIF, bridge, t->dut[i].interface);
		if (ret == -EBUSY)
			return error_set(err, -EOPNOTSUPP,
					 "%s belongs to a bridge or bond: ip link set %s nomaster",
					 t->dut[i].interface, t->dut[i].interface);
		if (ret)
			return error_set(err, ret, "making %s a bridge's port: %s",
					 t->dut[i].interface, strerror(-ret));
		system_say(system, "ip -n %s link set %s master br0", at->netns_name,
			   t->dut[i].interface);
	}
	ret = bridge_up(at, bridge, true);
	if (ret)
		return error_set(err, ret, "%s: setting it up: %s", bridge, strerror(-ret));
	system_say(system, "ip -n %s link set br0 up", at->netns_name);
	return 0;
}

static int forwarding_read(void *arg)
{
	int fd = open("/proc/sys/net/ipv4/ip_forward", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (read(fd, arg, 1) != 1)
		*(char *)arg = '?';
	close(fd);
	return 0;
}

/* In a namespace that was made forwarding is on already. */
static int router_start(struct system *system, struct error *err)
{
	const struct topology_end *at = &system->topology->dut[0];
	char on[2] = "";
	int ret = inside_run(at->netns, forwarding_read, on, err);

	if (ret)
		return ret;
	system_set(system, "ip_forward", "1", on);
	system_say(system, "ip netns exec %s sysctl -w net.ipv4.ip_forward=1", at->netns_name);
	if (*on == '1')
		return 0;
	return error_set(err, -EOPNOTSUPP,
			 "the router does not forward: sysctl -w net.ipv4.ip_forward=1%s%s",
			 *at->netns_name ? ", in the namespace " : "", at->netns_name);
}

static int poller_set(struct system *system, struct error *err)
{
	switch (system->spec->kernel_poller) {
	case SPEC_KERNEL_THREADED:
		return system_knob(system, "threaded", "on", err);
	case SPEC_KERNEL_THREADED_BUSY_POLL:
		return system_knob(system, "threaded", "busy-poll", err);
	case SPEC_KERNEL_SOFTIRQ:
	case SPEC_KERNEL_SOCKET_BUSY_POLL:
		break;
	}
	return 0;
}

/* Softirq polls on the CPU that takes the interrupt: so those two are one here. */
static int interrupts_place(struct system *system, const struct spec_placement *place,
			    struct error *err)
{
	struct topology *t = system->topology;
	char cpus[128];
	bool by_rps = false;
	int ret = 0;

	if (!t->duts)
		return error_set(err, -EOPNOTSUPP,
				 "interrupts are those of another host: place them there");
	for (unsigned i = 0; i < t->duts && !ret; i++)
		ret = place_interrupts(system->knobs, t->dut[i].netns, t->dut[i].interface,
				       &place->cpus, &by_rps, err);
	if (ret)
		return ret;
	cpuset_format(&place->cpus, cpus, sizeof(cpus));
	for (unsigned i = 0; i < t->duts; i++)
		system_say_knob(system, &t->dut[i], by_rps ? "rps_cpus" : "irq_cpus", cpus);
	system_placed(system, place, by_rps ? "rps" : "irq");
	return 0;
}

static int threads_place(struct system *system, const struct spec_placement *place,
			 struct error *err)
{
	struct topology *t = system->topology;
	char cpus[128];
	int ret = 0;

	cpuset_format(&place->cpus, cpus, sizeof(cpus));
	for (unsigned i = 0; i < t->duts && !ret; i++) {
		ret = place_kernel_napi(t->dut[i].interface, place, err);
		if (!ret && *cpus)
			system_say(system, "taskset -cp %s $(pgrep '^napi/%s-')", cpus,
				   t->dut[i].interface);
	}
	if (!ret)
		system_placed(system, place, "affinity");
	return ret;
}

static int place(struct system *system, struct error *err)
{
	const struct spec_placement *poller = system_place(system->spec, "poller");
	const struct spec_placement *interrupt = system_place(system->spec, "interrupt");
	enum spec_kernel_poller kind = system->spec->kernel_poller;
	bool threads = kind == SPEC_KERNEL_THREADED || kind == SPEC_KERNEL_THREADED_BUSY_POLL;
	int ret = 0;

	if (poller && threads)
		ret = threads_place(system, poller, err);
	if (!ret && interrupt && !cpuset_empty(&interrupt->cpus))
		return interrupts_place(system, interrupt, err);
	if (!ret && !interrupt && !threads && kind == SPEC_KERNEL_SOFTIRQ && poller &&
	    !cpuset_empty(&poller->cpus))
		return interrupts_place(system, poller, err);
	return ret;
}

int system_kernel_start(struct system *system, struct error *err)
{
	int ret = 0;

	if (system->topology->duts && system->spec->handler == SPEC_BRIDGE)
		ret = bridge_start(system, err);
	if (!ret && system->topology->duts && system->spec->handler == SPEC_ROUTER)
		ret = router_start(system, err);
	if (!ret)
		ret = poller_set(system, err);
	return ret ? ret : place(system, err);
}

void system_kernel_stop(struct system *system)
{
	const struct topology_end *at = &system->topology->dut[0];
	char bridge[IFNAMSIZ], line[128];

	if (!system->bridged)
		return;
	bridge_name(bridge);
	bridge_line(system, line);
	bridge_up(at, bridge, false);
	ioctl(at->ioctl, SIOCBRDELBR, bridge);
	record_remove(line);
	system->bridged = false;
}

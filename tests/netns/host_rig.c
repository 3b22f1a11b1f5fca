/* SPDX-License-Identifier: BSD-2-Clause */
#include "host_rig.h"

#include <stdarg.h>
#include <unistd.h>

unsigned peer_ns(const struct command_rig *rig)
{
	return rig->links.outer[0];
}

unsigned host_ns(const struct command_rig *rig)
{
	return rig->links.inner[0];
}

/* A line for the shell, which has to succeed, in the host's namespace. */
void host_run(const struct command_rig *rig, const char *format, ...)
{
	char line[1024];
	va_list list;

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	if (netns_run(&rig->links, host_ns(rig), "%s", line))
		fail_msg("%s", line);
}

/* All that moves: each a kind of its own. */
void configure(struct command_rig *rig)
{
	for (int i = 0; i < 2; i++) {
		unsigned ns = i ? host_ns(rig) : peer_ns(rig);

		assert_int_equal(netns_run(&rig->links, ns,
					   "for i in all default %s; do echo 0 > "
					   "/proc/sys/net/ipv6/conf/$i/disable_ipv6; done",
					   i ? "in0" : NETNS_OUTER),
				 0);
	}
	assert_int_equal(netns_run(&rig->links, peer_ns(rig),
				   "ip link set out mtu 1450; ip addr add " PEER "/24 dev out; "
				   "ip addr add " PEER6 "/64 dev out nodad"),
			 0);
	host_run(rig, "ip addr add " HOST "/24 brd + dev in0 && "
		      "ip addr add " HOST_LABELLED "/24 dev in0 label in0:1 && "
		      "ip addr add 10.200.0.1/32 dev in0 metric 20 && "
		      "ip addr add 10.9.5.1/24 dev in0 && "
		      "ip route del 10.9.5.0/24 dev in0 && "
		      "ip addr add 10.9.7.1/24 dev in0 valid_lft 50000 preferred_lft 40000 && "
		      "ip addr add " HOST6 "/64 dev in0 nodad && "
		      "ip addr add fd09::3/64 dev in0 noprefixroute && "
		      "ip addr add fd0a::1/64 dev in0 valid_lft 50000 preferred_lft 40000");
	host_run(rig,
		 "ip route add default via " PEER " src " HOST_LABELLED " metric 100 proto dhcp && "
		 "ip route add default via 10.9.8.3 metric 200 && "
		 "ip route add 10.50.0.0/16 via " PEER " mtu 1400 table 77 && "
		 "ip route add 192.0.2.0/24 via 10.77.0.1 dev in0 onlink && "
		 "ip route add 10.60.0.0/16 nexthop via " PEER
		 " weight 2 nexthop via 10.77.7.7 dev in1 onlink && "
		 "ip nexthop add id 9 via " PEER " dev in0 && "
		 "ip route add 10.70.0.0/16 nhid 9 && "
		 "ip route add default via " PEER6 " dev in0");
	host_run(rig, "ip neigh add 10.9.8.200 lladdr 02:00:00:00:00:99 dev in0 && "
		      "ip neigh add fd09::99 lladdr 02:00:00:00:00:98 dev in0 && "
		      "ip neigh add proxy 10.9.8.201 dev in0 && "
		      "echo 1 > /proc/sys/net/ipv4/conf/in0/proxy_arp && "
		      "echo 55 > /proc/sys/net/ipv4/neigh/in0/gc_stale_time && "
		      "ip link set in0 mtu 1450");
	/* Duplicate address detection of fd0a::1 and of the links' own addresses. */
	host_run(rig, "for i in $(seq 1000); do ip -6 addr | grep -q tentative || "
		      "exit 0; sleep 0.05; done; exit 1");
	host_run(rig, "ip route add fd50::/16 via " PEER6 " dev in0 table 78 expires 5000 && "
		      "ip route add default via fe80::5 dev in0 proto ra metric 100 expires 900");
}

/* Everything there is, with this interface's name for in0, and times left out. Bytes are malloc'd.
 */
char *dump(struct command_rig *rig, const char *interface)
{
	static const char *const what[] = {
		"-o addr show dev %s",
		"-4 route show table all",
		/* Of equal ones by several interfaces the newest is last. */
		"-6 route show table all | sort",
		"nexthop show",
		"neigh show nud permanent",
		"neigh show proxy",
	};
	char path[64], command[256], *out = calloc(1, TEXT_MAX);
	int fd = file_new(rig, "dump", path);
	ssize_t n;
	FILE *file;

	close(fd);
	for (size_t i = 0; i < sizeof(what) / sizeof(*what); i++) {
		snprintf(command, sizeof(command), what[i], interface);
		host_run(rig,
			 "ip %s | sed -E 's/[0-9]+sec/SEC/g; s/^[0-9]+: *//' | "
			 "grep -v 'multicast ff00' | sed 's/\\b%s\\b/in0/g' >> %s",
			 command, interface, path);
	}
	file = fopen(path, "r");
	assert_non_null(file);
	n = (ssize_t)fread(out, 1, TEXT_MAX - 1, file);
	assert_true(n > 500 && n < TEXT_MAX - 1);
	fclose(file);
	unlink(path);
	return out;
}

/* A difference is told line by line: the texts are longer than a message can be. */
void assert_same(const char *was, const char *is)
{
	if (!strcmp(was, is))
		return;
	printf("before:\n%s\nand now:\n%s\n", was, is);
	fail();
}

/* Waits, bounded, until a line for the shell in the host's namespace succeeds. */
void host_eventually(struct command_rig *rig, const char *line)
{
	host_run(rig, "for i in $(seq 1000); do %s && exit 0; sleep 0.05; done; exit 1", line);
}

/* p0 is the wire's port, in0h that of the TAP. */
void host_start(struct command_rig *rig, struct process *engine, const char *options)
{
	char spec[256];

	netns_spec(&rig->links, 0, "xdp", options, spec);
	engine_start(rig, engine, "run --run-dir %s --host %s", rig->base, spec);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Links of a lab: rtnetlink for what it knows, ethtool's ioctl and sysfs for the rest. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>

#include <napier/machine.h>
#include <port/netdev.h>
#include <port/sysfs.h>

#include "lab/inside.h"
#include "lab/netlab.h"

enum { REQUEST_MAX = 1024 };

struct request {
	char buffer[REQUEST_MAX] __attribute__((aligned(8)));
	struct nlmsghdr *header;
};

static void request_init(struct request *r, uint16_t type, uint16_t flags)
{
	memset(r->buffer, 0, sizeof(r->buffer));
	r->header = mnl_nlmsg_put_header(r->buffer);
	r->header->nlmsg_type = type;
	r->header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
}

static struct ifinfomsg *request_link(struct request *r, uint16_t type, uint16_t flags)
{
	request_init(r, type, flags);
	return mnl_nlmsg_put_extra_header(r->header, sizeof(struct ifinfomsg));
}

/* 0 or what the kernel answered. */
static int request_send(struct request *r, const struct netlab_namespace *ns)
{
	char answer[4096];
	const struct nlmsghdr *header = (const void *)answer;
	ssize_t n;

	if (send(ns->route, r->header, r->header->nlmsg_len, 0) < 0)
		return -errno;
	do
		n = recv(ns->route, answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (!mnl_nlmsg_ok(header, (int)n) || header->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(header))->error;
}

static int ifreq_ioctl(const struct netlab_namespace *ns, const char *interface,
		       unsigned long request, struct ifreq *ifr)
{
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", interface);
	return ioctl(ns->ioctl, request, ifr) ? -errno : 0;
}

static int index_of(const struct netlab_namespace *ns, const char *interface, struct error *err)
{
	struct ifreq ifr = {0};
	int ret = ifreq_ioctl(ns, interface, SIOCGIFINDEX, &ifr);

	if (ret)
		return error_set(err, ret, "%s in %s: %s", interface, ns->name, strerror(-ret));
	return ifr.ifr_ifindex;
}

/* ret is what request_send returned. */
static int told(int ret, const char *what, const struct netlab_namespace *ns, const char *interface,
		struct error *err)
{
	if (!ret)
		return 0;
	return error_set(err, ret, "%s %s in %s: %s", what, interface, ns->name, strerror(-ret));
}

/* 0: as many as the kernel thinks, of which one is used. */
static void queues_put(struct request *r, unsigned queues)
{
	if (!queues)
		return;
	mnl_attr_put_u32(r->header, IFLA_NUM_TX_QUEUES, queues);
	mnl_attr_put_u32(r->header, IFLA_NUM_RX_QUEUES, queues);
}

int netlab_veth_add(struct netlab *lab, unsigned ns_a, const char *a, unsigned ns_b, const char *b,
		    struct error *err)
{
	return netlab_veth_queues_add(lab, ns_a, a, ns_b, b, 0, err);
}

int netlab_veth_queues_add(struct netlab *lab, unsigned ns_a, const char *a, unsigned ns_b,
			   const char *b, unsigned queues, struct error *err)
{
	struct nlattr *info, *data, *peer;
	struct request r;

	request_link(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	mnl_attr_put_strz(r.header, IFLA_IFNAME, a);
	queues_put(&r, queues);
	info = mnl_attr_nest_start(r.header, IFLA_LINKINFO);
	mnl_attr_put_strz(r.header, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(r.header, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(r.header, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(r.header, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(r.header, IFLA_IFNAME, b);
	queues_put(&r, queues);
	mnl_attr_put_u32(r.header, IFLA_NET_NS_FD, (uint32_t)lab->namespace[ns_b].fd);
	mnl_attr_nest_end(r.header, peer);
	mnl_attr_nest_end(r.header, data);
	mnl_attr_nest_end(r.header, info);
	return told(request_send(&r, &lab->namespace[ns_a]), "making veth", &lab->namespace[ns_a],
		    a, err);
}

int netlab_bridge_add(struct netlab *lab, unsigned ns, const char *bridge, struct error *err)
{
	struct nlattr *info;
	struct request r;

	request_link(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	mnl_attr_put_strz(r.header, IFLA_IFNAME, bridge);
	info = mnl_attr_nest_start(r.header, IFLA_LINKINFO);
	mnl_attr_put_strz(r.header, IFLA_INFO_KIND, "bridge");
	mnl_attr_nest_end(r.header, info);
	return told(request_send(&r, &lab->namespace[ns]), "making bridge", &lab->namespace[ns],
		    bridge, err);
}

int netlab_bridge_port(struct netlab *lab, unsigned ns, const char *interface, const char *bridge,
		       struct error *err)
{
	int index = index_of(&lab->namespace[ns], interface, err), master = 0;
	struct request r;

	if (index > 0 && bridge)
		master = index_of(&lab->namespace[ns], bridge, err);
	if (index < 0 || master < 0)
		return index < 0 ? index : master;
	request_link(&r, RTM_NEWLINK, 0)->ifi_index = index;
	mnl_attr_put_u32(r.header, IFLA_MASTER, (uint32_t)master);
	return told(request_send(&r, &lab->namespace[ns]), "moving to a bridge",
		    &lab->namespace[ns], interface, err);
}

int netlab_link_up(struct netlab *lab, unsigned ns, const char *interface, bool up,
		   struct error *err)
{
	int index = index_of(&lab->namespace[ns], interface, err);
	struct ifinfomsg *link;
	struct request r;

	if (index < 0)
		return index;
	link = request_link(&r, RTM_NEWLINK, 0);
	link->ifi_index = index;
	link->ifi_flags = up ? IFF_UP : 0;
	link->ifi_change = IFF_UP;
	return told(request_send(&r, &lab->namespace[ns]), "setting up", &lab->namespace[ns],
		    interface, err);
}

int netlab_link_delete(struct netlab *lab, unsigned ns, const char *interface, struct error *err)
{
	int index = index_of(&lab->namespace[ns], interface, err);
	struct request r;

	if (index < 0)
		return index;
	request_link(&r, RTM_DELLINK, 0)->ifi_index = index;
	return told(request_send(&r, &lab->namespace[ns]), "deleting", &lab->namespace[ns],
		    interface, err);
}

static int address_change(struct netlab *lab, unsigned ns, const char *interface,
			  const char *address, unsigned prefix, bool add, struct error *err)
{
	int index = index_of(&lab->namespace[ns], interface, err);
	struct ifaddrmsg *head;
	struct in_addr in;
	struct request r;

	if (index < 0)
		return index;
	if (inet_pton(AF_INET, address, &in) != 1 || prefix > 32)
		return error_set(err, -EINVAL, "%s/%u: not an IPv4 address", address, prefix);
	request_init(&r, add ? RTM_NEWADDR : RTM_DELADDR, add ? NLM_F_CREATE | NLM_F_EXCL : 0);
	head = mnl_nlmsg_put_extra_header(r.header, sizeof(*head));
	head->ifa_family = AF_INET;
	head->ifa_prefixlen = (uint8_t)prefix;
	head->ifa_index = (uint32_t)index;
	mnl_attr_put_u32(r.header, IFA_LOCAL, in.s_addr);
	mnl_attr_put_u32(r.header, IFA_ADDRESS, in.s_addr);
	return told(request_send(&r, &lab->namespace[ns]),
		    add ? "giving an address to" : "taking an address from", &lab->namespace[ns],
		    interface, err);
}

int netlab_address_add(struct netlab *lab, unsigned ns, const char *interface, const char *address,
		       unsigned prefix, struct error *err)
{
	return address_change(lab, ns, interface, address, prefix, true, err);
}

int netlab_address_delete(struct netlab *lab, unsigned ns, const char *interface,
			  const char *address, unsigned prefix, struct error *err)
{
	return address_change(lab, ns, interface, address, prefix, false, err);
}

int netlab_route_add(struct netlab *lab, unsigned ns, const char *network, unsigned prefix,
		     const char *gateway, struct error *err)
{
	struct in_addr to, by;
	struct request r;
	struct rtmsg *head;
	int ret;

	if (inet_pton(AF_INET, network, &to) != 1 || inet_pton(AF_INET, gateway, &by) != 1 ||
	    prefix > 32)
		return error_set(err, -EINVAL, "%s/%u via %s: not IPv4 addresses", network, prefix,
				 gateway);
	request_init(&r, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
	head = mnl_nlmsg_put_extra_header(r.header, sizeof(*head));
	head->rtm_family = AF_INET;
	head->rtm_dst_len = (uint8_t)prefix;
	head->rtm_table = RT_TABLE_MAIN;
	head->rtm_protocol = RTPROT_STATIC;
	head->rtm_scope = RT_SCOPE_UNIVERSE;
	head->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(r.header, RTA_DST, to.s_addr);
	mnl_attr_put_u32(r.header, RTA_GATEWAY, by.s_addr);
	ret = request_send(&r, &lab->namespace[ns]);
	return told(ret == -EEXIST ? 0 : ret, "adding a route to", &lab->namespace[ns], network,
		    err);
}

int netlab_channels_set(struct netlab *lab, unsigned ns, const char *interface, unsigned queues,
			struct error *err)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr = {.ifr_data = (void *)&channels};
	int ret = ifreq_ioctl(&lab->namespace[ns], interface, SIOCETHTOOL, &ifr);

	if (!ret && channels.rx_count == queues && channels.tx_count == queues)
		return 0;
	channels.cmd = ETHTOOL_SCHANNELS;
	channels.rx_count = channels.tx_count = queues;
	channels.combined_count = 0;
	if (!ret)
		ret = ifreq_ioctl(&lab->namespace[ns], interface, SIOCETHTOOL, &ifr);
	return told(ret, "setting the number of queues of", &lab->namespace[ns], interface, err);
}

int netlab_offload_set(struct netlab *lab, unsigned ns, const char *interface,
		       enum netlab_offload offload, bool on, struct error *err)
{
	static const uint32_t command[] = {
		[NETLAB_TX_CSUM] = ETHTOOL_STXCSUM,
		[NETLAB_TSO] = ETHTOOL_STSO,
		[NETLAB_GSO] = ETHTOOL_SGSO,
		[NETLAB_GRO] = ETHTOOL_SGRO,
	};
	struct ethtool_value value = {.cmd = command[offload], .data = on};
	struct ifreq ifr = {.ifr_data = (void *)&value};

	return told(ifreq_ioctl(&lab->namespace[ns], interface, SIOCETHTOOL, &ifr),
		    "setting an offload of", &lab->namespace[ns], interface, err);
}

int netlab_mac_set(struct netlab *lab, unsigned ns, const char *interface, const uint8_t mac[6],
		   struct error *err)
{
	int index = index_of(&lab->namespace[ns], interface, err);
	struct ifinfomsg *link;
	struct request r;

	if (index < 0)
		return index;
	link = request_link(&r, RTM_NEWLINK, 0);
	link->ifi_index = index;
	mnl_attr_put(r.header, IFLA_ADDRESS, 6, mac);
	return told(request_send(&r, &lab->namespace[ns]), "setting the address of",
		    &lab->namespace[ns], interface, err);
}

static int interface_write(struct netlab *lab, unsigned ns, const char *interface, const char *file,
			   const char *text, struct error *err)
{
	int back, dir, ret = netns_enter(lab->namespace[ns].path, &back, err);

	if (ret)
		return ret;
	dir = sysfs_interface_open(interface, false);
	netns_leave(back);
	ret = dir < 0 ? dir : sysfs_write(dir, file, text);
	if (dir >= 0)
		close(dir);
	if (ret)
		return error_set(err, ret, "/sys/class/net/%s/%s in %s: %s", interface, file,
				 lab->namespace[ns].name, strerror(-ret));
	return 0;
}

int netlab_threaded_set(struct netlab *lab, unsigned ns, const char *interface, bool on,
			struct error *err)
{
	return interface_write(lab, ns, interface, "threaded", on ? "1" : "0", err);
}

int netlab_defer_set(struct netlab *lab, unsigned ns, const char *interface, unsigned defer,
		     unsigned flush, struct error *err)
{
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%u", defer);
	ret = interface_write(lab, ns, interface, "napi_defer_hard_irqs", text, err);
	snprintf(text, sizeof(text), "%u", flush);
	return ret ? ret : interface_write(lab, ns, interface, "gro_flush_timeout", text, err);
}

int netlab_rps_set(struct netlab *lab, unsigned ns, const char *interface, int cpu,
		   struct error *err)
{
	char mask[CPU_MAX / 32 * 9 + 9];
	int n = snprintf(mask, sizeof(mask), "%x", cpu < 0 ? 0u : 1u << cpu % 32);

	for (int word = cpu / 32; word > 0; word--)
		n += snprintf(mask + n, sizeof(mask) - (size_t)n, ",00000000");
	return interface_write(lab, ns, interface, "queues/rx-0/rps_cpus", mask, err);
}

static int forwarding_write(void *arg)
{
	int fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, arg, 1) != 1)
		ret = -errno;
	close(fd);
	return ret;
}

int netlab_forwarding_set(struct netlab *lab, unsigned ns, bool on, struct error *err)
{
	char text[] = {on ? '1' : '0', '\0'};
	int ret;

	err->code = 0;
	ret = inside_run(lab->namespace[ns].fd, forwarding_write, text, err);
	if (ret && !err->code)
		error_set(err, ret, "net.ipv4.ip_forward in %s: %s", lab->namespace[ns].name,
			  strerror(-ret));
	return ret;
}

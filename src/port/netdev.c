/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/netdev.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A link message with many VFs is bigger than a page; the kernel truncates to what it is given. */
#define NETLINK_BUFFER 32768
/* The kernel answers at once; this only keeps a lost answer from hanging the control side. */
#define NETLINK_TIMEOUT_SECONDS 5

int netns_enter(const char *name, int *back, struct error *err)
{
	char path[128];
	int fd;

	*back = -1;
	if (!name || !name[0])
		return 0;
	snprintf(path, sizeof(path), strchr(name, '/') ? "%s" : "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		int code = -errno;

		return error_set(err, code, "network namespace '%s': %s: %s%s", name, path,
				 strerror(-code), code == -ENOENT ? " (see: ip netns list)" : "");
	}
	*back = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (*back < 0 || setns(fd, CLONE_NEWNET)) {
		int code = -errno;

		close(fd);
		if (*back >= 0)
			close(*back);
		*back = -1;
		return error_set(err, code, "network namespace '%s': %s%s", name, strerror(-code),
				 code == -EPERM	   ? " (entering it needs CAP_SYS_ADMIN)"
				 : code == -EINVAL ? " (not a network namespace)"
						   : "");
	}
	close(fd);
	return 0;
}

void netns_leave(int back)
{
	if (back < 0)
		return;
	/* Going on in the wrong namespace would act on other people's interfaces. */
	if (setns(back, CLONE_NEWNET)) {
		fprintf(stderr, "cannot return to the network namespace: %s\n", strerror(errno));
		abort();
	}
	close(back);
}

static bool address_is(const struct ifaddrs *a, int family, const void *address)
{
	if (!a->ifa_addr || a->ifa_addr->sa_family != family)
		return false;
	if (family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)a->ifa_addr)->sin_addr, address, 4);
	return !memcmp(&((const struct sockaddr_in6 *)a->ifa_addr)->sin6_addr, address, 16);
}

bool netdev_address_there(const char *netns, int ifindex, int family, const void *address)
{
	struct ifaddrs *all = NULL;
	char name[IFNAMSIZ];
	bool there = false;
	int back;

	if (netns_enter(netns, &back, NULL))
		return false;
	if (if_indextoname((unsigned)ifindex, name) && !getifaddrs(&all)) {
		size_t n = strlen(name);

		/* An address with a label is listed under that: "eth0:1". */
		for (const struct ifaddrs *a = all; a && !there; a = a->ifa_next)
			there = !strncmp(a->ifa_name, name, n) &&
				(!a->ifa_name[n] || a->ifa_name[n] == ':') &&
				address_is(a, family, address);
		freeifaddrs(all);
	}
	netns_leave(back);
	return there;
}

static int link_xdp_attribute(const struct nlattr *a, void *arg)
{
	static const enum netdev_xdp modes[] = {
		[XDP_ATTACHED_NONE] = NETDEV_XDP_NONE,	   [XDP_ATTACHED_DRV] = NETDEV_XDP_NATIVE,
		[XDP_ATTACHED_SKB] = NETDEV_XDP_GENERIC,   [XDP_ATTACHED_HW] = NETDEV_XDP_HARDWARE,
		[XDP_ATTACHED_MULTI] = NETDEV_XDP_SEVERAL,
	};
	struct netdev_link *link = arg;
	uint8_t mode;

	switch (mnl_attr_get_type(a)) {
	case IFLA_XDP_ATTACHED:
		mode = mnl_attr_get_u8(a);
		if (mode < sizeof(modes) / sizeof(*modes))
			link->xdp = modes[mode];
		break;
	case IFLA_XDP_PROG_ID:
	case IFLA_XDP_DRV_PROG_ID:
	case IFLA_XDP_SKB_PROG_ID:
	case IFLA_XDP_HW_PROG_ID:
		link->xdp_program = mnl_attr_get_u32(a);
		break;
	}
	return MNL_CB_OK;
}

static int link_info_attribute(const struct nlattr *a, void *arg)
{
	struct netdev_link *link = arg;

	if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
		snprintf(link->kind, sizeof(link->kind), "%s", mnl_attr_get_str(a));
	return MNL_CB_OK;
}

struct link_answer {
	struct netdev_link *link;
	char *name;
	int ifindex;
};

static int link_attribute(const struct nlattr *a, void *arg)
{
	struct link_answer *answer = arg;
	struct netdev_link *link = answer->link;
	struct rtnl_link_stats64 stats = {0};
	uint16_t size = mnl_attr_get_payload_len(a);

	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		snprintf(answer->name, IFNAMSIZ, "%s", mnl_attr_get_str(a));
		break;
	case IFLA_ADDRESS:
		if (link->ethernet && size == sizeof(link->address))
			memcpy(link->address, mnl_attr_get_payload(a), size);
		break;
	case IFLA_MTU:
		link->mtu = mnl_attr_get_u32(a);
		break;
	case IFLA_CARRIER:
		link->carrier = mnl_attr_get_u8(a);
		break;
	case IFLA_LINK:
		link->peer = (int)mnl_attr_get_u32(a);
		break;
	case IFLA_LINK_NETNSID:
		link->peer_elsewhere = true;
		break;
	case IFLA_NUM_RX_QUEUES:
		link->rx_queues = mnl_attr_get_u32(a);
		break;
	case IFLA_NUM_TX_QUEUES:
		link->tx_queues = mnl_attr_get_u32(a);
		break;
	case IFLA_STATS64:
		memcpy(&stats, mnl_attr_get_payload(a),
		       size < sizeof(stats) ? size : sizeof(stats));
		link->rx_packets = stats.rx_packets;
		link->rx_dropped = stats.rx_dropped;
		link->tx_packets = stats.tx_packets;
		break;
	case IFLA_LINKINFO:
		return mnl_attr_parse_nested(a, link_info_attribute, link);
	case IFLA_XDP:
		return mnl_attr_parse_nested(a, link_xdp_attribute, link);
	}
	return MNL_CB_OK;
}

static int link_message(const struct nlmsghdr *message, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	struct link_answer *answer = arg;

	if (message->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	memset(answer->link, 0, sizeof(*answer->link));
	answer->ifindex = info->ifi_index;
	answer->link->flags = info->ifi_flags;
	answer->link->ethernet =
		info->ifi_type == ARPHRD_ETHER || info->ifi_type == ARPHRD_LOOPBACK;
	mnl_attr_parse(message, sizeof(*info), link_attribute, answer);
	return MNL_CB_STOP;
}

/* By ifindex, or by name when that is 0. */
static int link_request(int fd, int ifindex, const char *name, struct link_answer *answer)
{
	_Alignas(struct nlmsghdr) char buffer[NETLINK_BUFFER];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info;
	uint32_t sequence;
	static _Atomic uint32_t sequences;

	sequence = ++sequences;
	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST;
	message->nlmsg_seq = sequence;
	info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	info->ifi_index = ifindex;
	if (!ifindex)
		mnl_attr_put_strz(message, IFLA_IFNAME, name);
	if (send(fd, message, message->nlmsg_len, 0) < 0)
		return -errno;

	answer->ifindex = 0;
	for (;;) {
		ssize_t size = recv(fd, buffer, sizeof(buffer), 0);
		int verdict;

		if (size < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		/* A late answer to a question that timed out has another number. */
		if (size >= (ssize_t)sizeof(*message) && message->nlmsg_seq != sequence)
			continue;
		verdict = mnl_cb_run(buffer, size, sequence, 0, link_message, answer);
		if (verdict < 0)
			return -errno;
		return answer->ifindex ? 0 : -ENODEV;
	}
}

int netdev_open(struct netdev *dev, const char *name, struct error *err)
{
	const struct timeval timeout = {.tv_sec = NETLINK_TIMEOUT_SECONDS};
	struct netdev_link link;
	struct link_answer answer = {.link = &link, .name = dev->name};
	int code;

	*dev = NETDEV_CLOSED;
	if (!name[0] || strlen(name) >= IFNAMSIZ)
		return error_set(
			err, -EINVAL,
			"interface name '%s': 1 to %d characters are allowed (see: ip link)", name,
			IFNAMSIZ - 1);
	dev->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (dev->fd < 0)
		return error_set(err, -errno, "netlink socket: %s", strerror(errno));
	setsockopt(dev->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	code = link_request(dev->fd, 0, name, &answer);
	if (code) {
		netdev_close(dev);
		if (code == -ENODEV)
			return error_set(err, code,
					 "interface '%s' is not there (see: ip link; in another "
					 "namespace: add netns=NAME; to wait for it: wait=yes)",
					 name);
		return error_set(err, code, "interface '%s': netlink: %s", name, strerror(-code));
	}
	dev->ifindex = answer.ifindex;
	return 0;
}

void netdev_close(struct netdev *dev)
{
	if (dev->fd >= 0)
		close(dev->fd);
	*dev = NETDEV_CLOSED;
}

int netdev_link(struct netdev *dev, struct netdev_link *out)
{
	struct link_answer answer = {.link = out, .name = dev->name};

	return link_request(dev->fd, dev->ifindex, NULL, &answer);
}

/* A netlink socket passes interface requests on to its namespace like any other socket. */
static int ethtool(const struct netdev *dev, void *command)
{
	struct ifreq request = {.ifr_data = command};

	memcpy(request.ifr_name, dev->name, IFNAMSIZ);
	return ioctl(dev->fd, SIOCETHTOOL, &request) ? -errno : 0;
}

int netdev_driver(const struct netdev *dev, char *driver, size_t size)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	int code = ethtool(dev, &info);

	snprintf(driver, size, "%s", code ? "" : info.driver);
	return code;
}

int netdev_channels(const struct netdev *dev, struct netdev_channels *out)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	int code = ethtool(dev, &channels);

	*out = (struct netdev_channels){
		.rx = channels.rx_count,
		.tx = channels.tx_count,
		.combined = channels.combined_count,
		.rx_max = channels.max_rx,
		.tx_max = channels.max_tx,
		.combined_max = channels.max_combined,
	};
	return code;
}

uint32_t netdev_rx_queues(const struct netdev *dev, const struct netdev_link *link)
{
	struct netdev_channels channels;

	/* A tun device nobody has opened has none in use, of those it may have. */
	if (netdev_channels(dev, &channels) == 0 && channels.rx_max + channels.combined_max)
		return channels.rx + channels.combined;
	return link->rx_queues ? link->rx_queues : 1;
}

uint32_t netdev_tx_queues(const struct netdev *dev, const struct netdev_link *link)
{
	struct netdev_channels channels;

	if (netdev_channels(dev, &channels) == 0 && channels.tx_max + channels.combined_max)
		return channels.tx + channels.combined;
	return link->tx_queues ? link->tx_queues : 1;
}

/* The number of strings in the driver-independent set of feature names. */
static int feature_count(const struct netdev *dev, uint32_t *count)
{
	struct {
		struct ethtool_sset_info head;
		uint32_t size;
	} info = {.head = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}};
	int code = ethtool(dev, &info);

	if (code)
		return code;
	if (!info.head.sset_mask || !info.size || info.size > 4096)
		return -EOPNOTSUPP;
	*count = info.size;
	return 0;
}

int netdev_feature(const struct netdev *dev, const char *feature, bool *on)
{
	struct ethtool_gstrings *names;
	struct ethtool_gfeatures *features;
	uint32_t count, blocks, bit;
	int code = feature_count(dev, &count);

	*on = false;
	if (code)
		return code;
	blocks = (count + 31) / 32;
	names = calloc(1, sizeof(*names) + (size_t)count * ETH_GSTRING_LEN);
	features = calloc(1, sizeof(*features) + blocks * sizeof(features->features[0]));
	if (!names || !features) {
		code = -ENOMEM;
		goto out;
	}
	*names = (struct ethtool_gstrings){
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = count};
	*features = (struct ethtool_gfeatures){.cmd = ETHTOOL_GFEATURES, .size = blocks};
	code = ethtool(dev, names);
	if (!code)
		code = ethtool(dev, features);
	if (code)
		goto out;
	for (bit = 0; bit < count; bit++)
		if (!strncmp((char *)names->data + bit * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN))
			break;
	if (bit < count)
		*on = features->features[bit / 32].active >> (bit % 32) & 1;
	else
		code = -ENOENT;
out:
	free(names);
	free(features);
	return code;
}

int netdev_promiscuous(const struct netdev *dev, int *fd)
{
	const struct packet_mreq membership = {.mr_ifindex = dev->ifindex,
					       .mr_type = PACKET_MR_PROMISC};
	/* Protocol 0: it is a member, and receives nothing. */
	int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (s < 0)
		return -errno;
	if (setsockopt(s, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership))) {
		int code = -errno;

		close(s);
		return code;
	}
	*fd = s;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "port/netdev_stack.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "port/netconf.h"

#define BUFFER 65536

struct link_seen {
	const char *name, *kind;
	int below, master;
	bool elsewhere;
};

static int kind_attribute(const struct nlattr *a, void *arg)
{
	if (mnl_attr_get_type(a) == IFLA_INFO_KIND)
		((struct link_seen *)arg)->kind = mnl_attr_get_str(a);
	return MNL_CB_OK;
}

static int seen_attribute(const struct nlattr *a, void *arg)
{
	struct link_seen *seen = arg;

	switch (mnl_attr_get_type(a)) {
	case IFLA_IFNAME:
		seen->name = mnl_attr_get_str(a);
		break;
	case IFLA_LINK:
		seen->below = (int)mnl_attr_get_u32(a);
		break;
	case IFLA_LINK_NETNSID:
		seen->elsewhere = true;
		break;
	case IFLA_MASTER:
		seen->master = (int)mnl_attr_get_u32(a);
		break;
	case IFLA_LINKINFO:
		return mnl_attr_parse_nested(a, kind_attribute, seen);
	}
	return MNL_CB_OK;
}

struct stack_read {
	int ifindex, master;
	struct netdev_stack *out;
};

static int stack_message(const struct nlmsghdr *message, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	struct link_seen seen = {.name = "?", .kind = ""};
	struct stack_read *read = arg;

	if (message->nlmsg_type != RTM_NEWLINK)
		return MNL_CB_OK;
	mnl_attr_parse(message, sizeof(*info), seen_attribute, &seen);
	if (info->ifi_index == read->ifindex)
		read->master = seen.master;
	/* A veth's other end is told in the same place, and stands on nothing. */
	else if (seen.below == read->ifindex && !seen.elsewhere && strcmp(seen.kind, "veth"))
		snprintf(read->out->upper, sizeof(read->out->upper), "%s", seen.name);
	return MNL_CB_OK;
}

static int links_dump(int fd, struct stack_read *read)
{
	_Alignas(struct nlmsghdr) char buffer[BUFFER];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	int verdict = MNL_CB_OK;

	request->nlmsg_type = RTM_GETLINK;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg));
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	while (verdict == MNL_CB_OK) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		verdict = mnl_cb_run(buffer, (size_t)n, 0, 0, stack_message, read);
		if (verdict < 0 && errno == EINTR)
			verdict = MNL_CB_OK; /* links changed meanwhile: those told of are good */
	}
	return verdict < 0 ? -errno : 0;
}

int netdev_stack_read(const struct netdev *dev, struct netdev_stack *out)
{
	struct stack_read read = {.ifindex = dev->ifindex, .out = out};
	int rc;

	*out = (struct netdev_stack){0};
	rc = links_dump(dev->fd, &read);
	if (!rc && read.master && !if_indextoname((unsigned)read.master, out->master))
		snprintf(out->master, sizeof(out->master), "?");
	return rc;
}

int netdev_change(int fd, int ifindex, const struct netdev_change *change)
{
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info;

	request->nlmsg_type = RTM_NEWLINK;
	info = mnl_nlmsg_put_extra_header(request, sizeof(*info));
	info->ifi_index = ifindex;
	if (change->up >= 0) {
		info->ifi_change = IFF_UP;
		info->ifi_flags = change->up ? IFF_UP : 0;
	}
	if (change->address)
		mnl_attr_put(request, IFLA_ADDRESS, 6, change->address);
	if (change->mtu)
		mnl_attr_put_u32(request, IFLA_MTU, change->mtu);
	if (change->carrier >= 0)
		mnl_attr_put_u8(request, IFLA_CARRIER, (uint8_t)change->carrier);
	return netconf_request(fd, request);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include "lab/run/napi_netlink.h"

/* Commands of the family, from the same header as its attributes. */
enum { NAPI_GET = 11, NAPI_SET = 14 };

enum {
	BUFFER = 32768,
	TIMEOUT_SECONDS = 5, /* the kernel answers at once; a lost answer must not hang us */
	/* A NAPI's number is above that of the possible CPUs, so nobody's is this. */
	ID_OF_NONE = 1,
};

static struct nlmsghdr *message_begin(char *buffer, uint16_t type, uint16_t flags, uint8_t command)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *generic;

	message->nlmsg_type = type;
	message->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	generic = mnl_nlmsg_put_extra_header(message, sizeof(*generic));
	generic->cmd = command;
	generic->version = 1;
	return message;
}

/* Sends, and hands every message to `take`, up to the end or the kernel's error. */
static int ask(int fd, struct nlmsghdr *message, mnl_cb_t take, void *arg)
{
	_Alignas(struct nlmsghdr) char answer[BUFFER];
	int verdict = MNL_CB_OK;

	if (send(fd, message, message->nlmsg_len, 0) < 0)
		return -errno;
	while (verdict == MNL_CB_OK) {
		ssize_t size = recv(fd, answer, sizeof(answer), 0);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		verdict = mnl_cb_run(answer, (size_t)size, 0, 0, take, arg);
	}
	return verdict < 0 ? -errno : 0;
}

static int family_attribute(const struct nlattr *a, void *arg)
{
	if (mnl_attr_get_type(a) == CTRL_ATTR_FAMILY_ID)
		*(uint16_t *)arg = mnl_attr_get_u16(a);
	return MNL_CB_OK;
}

static int family_message(const struct nlmsghdr *message, void *arg)
{
	return mnl_attr_parse(message, sizeof(struct genlmsghdr), family_attribute, arg);
}

int napi_netlink_open(struct napi_netlink *n)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_SECONDS};
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *message;
	int rc;

	*n = NAPI_NETLINK_CLOSED;
	n->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	if (n->fd < 0)
		return -errno;
	setsockopt(n->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	message = message_begin(buffer, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY);
	mnl_attr_put_strz(message, CTRL_ATTR_FAMILY_NAME, "netdev");
	rc = ask(n->fd, message, family_message, &n->family);
	if (!rc && !n->family)
		rc = -ENOENT;
	if (rc)
		napi_netlink_close(n);
	return rc == -ENOENT ? -EOPNOTSUPP : rc;
}

void napi_netlink_close(struct napi_netlink *n)
{
	if (n->fd >= 0)
		close(n->fd);
	*n = NAPI_NETLINK_CLOSED;
}

struct listing {
	struct napi_seen *out;
	unsigned n, max;
};

/* The kernel writes its "uint" with 4 bytes or 8, as the value needs. */
static int napi_attribute(const struct nlattr *a, void *arg)
{
	unsigned type = mnl_attr_get_type(a);
	struct napi_seen *napi = arg;

	if (type >= NAPI_ATTRIBUTES)
		return MNL_CB_OK;
	if (mnl_attr_get_payload_len(a) == sizeof(uint64_t))
		napi->value[type] = mnl_attr_get_u64(a);
	else if (mnl_attr_get_payload_len(a) == sizeof(uint32_t))
		napi->value[type] = mnl_attr_get_u32(a);
	else
		return MNL_CB_OK;
	napi->has[type] = true;
	return MNL_CB_OK;
}

static int napi_message(const struct nlmsghdr *message, void *arg)
{
	struct listing *list = arg;
	struct napi_seen napi = {0};

	mnl_attr_parse(message, sizeof(struct genlmsghdr), napi_attribute, &napi);
	/* Before 6.17 only a thread's number tells. */
	if (!napi.has[NAPI_THREADED]) {
		napi.value[NAPI_THREADED] = napi.has[NAPI_PID];
		napi.has[NAPI_THREADED] = true;
	}
	if (list->n < list->max)
		list->out[list->n] = napi;
	list->n++;
	return MNL_CB_OK;
}

int napi_netlink_list(const struct napi_netlink *n, unsigned ifindex, struct napi_seen *out,
		      unsigned max)
{
	struct listing list = {.out = out, .max = max};
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *message = message_begin(buffer, n->family, NLM_F_DUMP, NAPI_GET);
	int rc;

	mnl_attr_put_u32(message, NAPI_IFINDEX, ifindex);
	rc = ask(n->fd, message, napi_message, &list);
	return rc ? rc : (int)list.n;
}

static int no_message(const struct nlmsghdr *message, void *arg)
{
	(void)message;
	(void)arg;
	return MNL_CB_OK;
}

int napi_netlink_set(const struct napi_netlink *n, uint32_t id, enum napi_attribute attribute,
		     uint64_t value)
{
	_Alignas(struct nlmsghdr) char buffer[256];
	struct nlmsghdr *message = message_begin(buffer, n->family, NLM_F_ACK, NAPI_SET);

	mnl_attr_put_u32(message, NAPI_ID, id);
	if (value > UINT32_MAX)
		mnl_attr_put_u64(message, (uint16_t)attribute, value);
	else
		mnl_attr_put_u32(message, (uint16_t)attribute, (uint32_t)value);
	return ask(n->fd, message, no_message, NULL);
}

/* The kernel holds attributes against what it has before it looks for the NAPI. */
int napi_netlink_settable(const struct napi_netlink *n, enum napi_attribute attribute,
			  uint64_t value)
{
	int rc = napi_netlink_set(n, ID_OF_NONE, attribute, value);

	switch (rc) {
	case -ENOENT:
		return 0;
	case -EINVAL:
	case -ERANGE:
		return -EOPNOTSUPP;
	default:
		return rc;
	}
}

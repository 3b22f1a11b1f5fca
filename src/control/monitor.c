/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <libmnl/libmnl.h>

#include <control/monitor.h>
#include <port/netdev.h>

#define MESSAGES_MAX 16 /* datagrams a step */
#define MESSAGE_SIZE 32768
#define RETRY (1 * NSEC_PER_SEC) /* after a dump that the kernel refused */

struct monitor_netns {
	struct irq irq; /* of socket */
	struct mnl_socket *socket;
	char name[64];
	/* There may be messages that were not read. Atomic, as the runner takes interrupts while
	 * another thread still watches the first links; the rest is its own by then, or not yet. */
	_Atomic bool readable;
	bool dumping; /* the kernel is answering a dump */
	bool stale;   /* another dump is needed */
	bool torn;    /* the links changed while they were dumped */
	int64_t due;  /* no dump is asked for before */
	struct watch *watches;
	struct monitor_netns *next;
};

struct monitor {
	struct runner *runner;
	monitor_report report;
	void *arg;
	struct monitor_netns *netns;
	char message[MESSAGE_SIZE];
};

static void monitor_irq(struct irq *irq)
{
	struct monitor_netns *netns =
		(struct monitor_netns *)((char *)irq - offsetof(struct monitor_netns, irq));

	netns->readable = true;
}

int monitor_open(struct runner *runner, monitor_report report, void *arg, struct monitor **out)
{
	struct monitor *monitor = calloc(1, sizeof(*monitor));

	if (!monitor)
		return -ENOMEM;
	monitor->runner = runner;
	monitor->report = report;
	monitor->arg = arg;
	*out = monitor;
	return 0;
}

static void netns_close(struct monitor_netns *netns)
{
	irq_detach(&netns->irq);
	mnl_socket_close(netns->socket);
	free(netns);
}

void monitor_close(struct monitor *monitor)
{
	while (monitor->netns) {
		struct monitor_netns *netns = monitor->netns;

		monitor->netns = netns->next;
		netns_close(netns);
	}
	free(monitor);
}

static int socket_open(struct mnl_socket **out)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (!s)
		return -errno;
	if (mnl_socket_bind(s, RTMGRP_LINK, MNL_SOCKET_AUTOPID) < 0) {
		int rc = -errno;

		mnl_socket_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

static int netns_open(struct monitor *monitor, const char *name, struct monitor_netns **out,
		      struct error *err)
{
	struct monitor_netns *netns = calloc(1, sizeof(*netns));
	int back, rc;

	if (!netns)
		return error_set(err, -ENOMEM, "link monitor: no memory");
	rc = netns_enter(name, &back, err);
	if (rc) {
		free(netns);
		return rc;
	}
	rc = socket_open(&netns->socket);
	netns_leave(back);
	if (!rc) {
		netns->irq = IRQ_INIT(mnl_socket_get_fd(netns->socket), monitor_irq);
		rc = irq_attach(&netns->irq, monitor->runner);
		if (rc)
			mnl_socket_close(netns->socket);
	}
	if (rc) {
		free(netns);
		return error_set(err, rc, "link monitor: rtnetlink: %s", strerror(-rc));
	}
	snprintf(netns->name, sizeof(netns->name), "%s", name);
	netns->next = monitor->netns;
	monitor->netns = netns;
	*out = netns;
	return 0;
}

int monitor_watch(struct monitor *monitor, struct watch *watch, const char *netns, int ifindex,
		  struct error *err)
{
	struct monitor_netns *found = monitor->netns;

	while (found && (strcmp(found->name, netns) || !found->watches))
		found = found->next;
	if (!found) {
		int rc = netns_open(monitor, netns, &found, err);

		if (rc)
			return rc;
	}
	*watch = (struct watch){.ifindex = ifindex, .netns = found, .next = found->watches};
	found->watches = watch;
	found->stale = true;
	found->readable = true;
	runner_wake(monitor->runner);
	return 0;
}

void monitor_unwatch(struct monitor *monitor, struct watch *watch)
{
	struct watch **at;

	(void)monitor;
	if (!watch->netns)
		return;
	for (at = &watch->netns->watches; *at != watch; at = &(*at)->next)
		;
	*at = watch->next;
	/* The namespace goes with the next step: its messages may be being read just now. */
	watch->netns = NULL;
}

static void dump_failed(struct monitor_netns *netns, int64_t now)
{
	netns->dumping = false;
	netns->stale = true;
	netns->due = now + RETRY;
}

static void dump_start(struct monitor_netns *netns, int64_t now)
{
	char buffer[MNL_NLMSG_HDRLEN + MNL_ALIGN(sizeof(struct ifinfomsg))];
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(header, sizeof(*info));

	header->nlmsg_type = RTM_GETLINK;
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	info->ifi_family = AF_UNSPEC;
	if (mnl_socket_sendto(netns->socket, header, header->nlmsg_len) < 0) {
		dump_failed(netns, now);
		return;
	}
	netns->stale = netns->torn = false;
	netns->dumping = true;
	for (struct watch *w = netns->watches; w; w = w->next)
		w->seen = false;
}

/* Whoever was not in a whole dump is not there. */
static void dump_end(struct monitor *monitor, struct monitor_netns *netns)
{
	struct watch *next;

	netns->dumping = false;
	netns->stale |= netns->torn;
	if (netns->stale)
		return;
	for (struct watch *w = netns->watches; w; w = next) {
		next = w->next;
		if (!w->seen && w->netns)
			monitor->report(monitor->arg, w, LINK_GONE);
	}
}

static int carrier_attribute(const struct nlattr *a, void *arg)
{
	if (mnl_attr_get_type(a) == IFLA_CARRIER && mnl_attr_get_payload_len(a) == 1)
		*(bool *)arg = mnl_attr_get_u8(a);
	return MNL_CB_OK;
}

static void link_message(struct monitor *monitor, struct monitor_netns *netns,
			 const struct nlmsghdr *header)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(header);
	enum link_event event = LINK_GONE;
	bool carrier = false;
	struct watch *next;

	/* Leaving a kernel bridge is told as a link of family AF_BRIDGE being deleted. */
	if (mnl_nlmsg_get_payload_len(header) < sizeof(*info) || info->ifi_family != AF_UNSPEC)
		return;
	if (header->nlmsg_type == RTM_NEWLINK) {
		mnl_attr_parse(header, sizeof(*info), carrier_attribute, &carrier);
		event = (info->ifi_flags & IFF_UP) && carrier ? LINK_UP : LINK_DOWN;
	}
	for (struct watch *w = netns->watches; w; w = next) {
		next = w->next;
		if (w->ifindex != info->ifi_index || !w->netns)
			continue;
		w->known |= header->nlmsg_flags & NLM_F_MULTI;
		if (!w->known)
			continue;
		w->seen = true;
		monitor->report(monitor->arg, w, event);
	}
}

/* What the kernel says at the end of a dump, or in place of one: 0 or a negative errno. */
static int dump_error(const struct nlmsghdr *header)
{
	int error = 0;

	/* Both messages begin with it. */
	if (mnl_nlmsg_get_payload_len(header) >= sizeof(error))
		memcpy(&error, mnl_nlmsg_get_payload(header), sizeof(error));
	return error;
}

static void message_read(struct monitor *monitor, struct monitor_netns *netns, int n, int64_t now)
{
	const struct nlmsghdr *header = (const struct nlmsghdr *)monitor->message;

	for (; mnl_nlmsg_ok(header, n); header = mnl_nlmsg_next(header, &n)) {
		if (header->nlmsg_flags & NLM_F_DUMP_INTR)
			netns->torn = true;
		switch (header->nlmsg_type) {
		case RTM_NEWLINK:
		case RTM_DELLINK:
			link_message(monitor, netns, header);
			break;
		case NLMSG_DONE:
		case NLMSG_ERROR:
			if (dump_error(header))
				dump_failed(netns, now);
			else if (header->nlmsg_type == NLMSG_DONE)
				dump_end(monitor, netns);
			break;
		}
	}
}

static void netns_work(struct monitor *monitor, struct monitor_netns *netns, int64_t now)
{
	if (netns->stale && !netns->dumping && now >= netns->due)
		dump_start(netns, now);
	for (int i = 0; i < MESSAGES_MAX; i++) {
		ssize_t n = recv(netns->irq.fd, monitor->message, sizeof(monitor->message),
				 MSG_DONTWAIT | MSG_TRUNC);

		if (n > (ssize_t)sizeof(monitor->message)) {
			netns->torn = true; /* the rest of it is lost */
			n = sizeof(monitor->message);
		}
		if (n > 0) {
			message_read(monitor, netns, (int)n, now);
		} else if (n < 0 && errno == ENOBUFS) {
			/* A dump is not dropped, but may tell of links before what was. */
			netns->torn = true;
		} else {
			netns->readable = false;
			break;
		}
	}
	/* While a dump is under way its end sees to that. */
	if (netns->torn && !netns->dumping) {
		netns->torn = false;
		netns->stale = true;
	}
}

int64_t monitor_work(struct monitor *monitor, int64_t now)
{
	int64_t next = TIME_NEVER;

	for (struct monitor_netns **at = &monitor->netns; *at;) {
		struct monitor_netns *netns = *at;
		bool asks = netns->stale && !netns->dumping;

		if (netns->readable || (asks && now >= netns->due))
			netns_work(monitor, netns, now);
		if (!netns->watches) {
			*at = netns->next;
			netns_close(netns);
			continue;
		}
		if (netns->readable)
			next = now;
		else if (netns->stale && !netns->dumping && netns->due < next)
			next = netns->due;
		at = &netns->next;
	}
	return next;
}

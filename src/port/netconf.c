/* SPDX-License-Identifier: BSD-2-Clause */
/* Read from the kernel, and told to it again; netconf_message.c says how each message is turned. */
#include "port/netconf.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "port/netconf_message.h"

#define DUMP_BUFFER 65536
#define DUMP_TRIES 5	     /* of one that was torn by a change */
#define ADD_PASSES 8	     /* routes that rely on routes that rely on … */
#define ITEMS_MAX (1u << 20) /* more routes than that are not an interface's */

static uint32_t sequence_next(void)
{
	static _Atomic uint32_t sequence;

	return ++sequence;
}

int netconf_request(int fd, struct nlmsghdr *request)
{
	_Alignas(struct nlmsghdr) char answer[DUMP_BUFFER];
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
	ssize_t n;

	request->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	request->nlmsg_seq = sequence_next();
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	do {
		n = recv(fd, answer, sizeof(answer), 0);
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		/* The rest of a dump that was given up has another number. */
	} while (n < 0 || !mnl_nlmsg_ok(header, (int)n) || header->nlmsg_seq != request->nlmsg_seq);
	if (header->nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(header))->error;
}

static int item_append(struct netconf *conf, const struct nlmsghdr *message)
{
	struct netconf_item *more = conf->item;

	if (conf->n == ITEMS_MAX)
		return -E2BIG;
	if (!(conf->n & (conf->n - 1))) {
		more = realloc(more, (conf->n ? 2 * conf->n : 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		conf->item = more;
	}
	more += conf->n;
	*more = (struct netconf_item){.message = malloc(message->nlmsg_len)};
	if (!more->message)
		return -ENOMEM;
	memcpy(more->message, message, message->nlmsg_len);
	conf->n++;
	return 0;
}

static void items_cut(struct netconf *conf, uint32_t n)
{
	while (conf->n > n)
		free(conf->item[--conf->n].message);
}

void netconf_free(struct netconf *conf)
{
	items_cut(conf, 0);
	free(conf->item);
	conf->item = NULL;
	conf->n = 0;
}

void netconf_leave_out(struct netconf *conf, uint16_t type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < conf->n; i++) {
		if (conf->item[i].message->nlmsg_type == type)
			free(conf->item[i].message);
		else
			conf->item[n++] = conf->item[i];
	}
	conf->n = n;
}

struct dump {
	struct netconf *conf;
	int error;
	bool torn;
};

static int dump_message(const struct nlmsghdr *message, void *arg)
{
	struct dump *dump = arg;

	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		dump->torn = true;
	if (netconf_message_moves(message, dump->conf->ifindex))
		dump->error = item_append(dump->conf, message);
	return dump->error ? MNL_CB_STOP : MNL_CB_OK;
}

/* To its end, also after an error: what is left would be taken for another answer. */
static int dump_answer(int fd, uint32_t sequence, struct dump *dump)
{
	_Alignas(struct nlmsghdr) char buffer[DUMP_BUFFER];

	for (;;) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
		int verdict;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (((struct nlmsghdr *)buffer)->nlmsg_seq != sequence)
			continue;
		verdict = mnl_cb_run(buffer, (size_t)n, sequence, 0, dump_message, dump);
		if (dump->error)
			return dump->error;
		if (verdict < 0 && errno == EINTR)
			dump->torn = true; /* libmnl's word for NLM_F_DUMP_INTR */
		else if (verdict < 0)
			return -errno;
		else if (verdict == MNL_CB_STOP)
			return 0;
	}
}

static int dump_once(int fd, uint16_t type, uint8_t flags, struct dump *dump)
{
	char buffer[MNL_NLMSG_HDRLEN + 64] = {0};
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = sequence_next();
	netconf_message_ask(request, flags);
	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	return dump_answer(fd, request->nlmsg_seq, dump);
}

static int dump(int fd, uint16_t type, uint8_t flags, struct netconf *conf)
{
	uint32_t before = conf->n;
	struct dump dump;

	for (int tries = 0; tries < DUMP_TRIES; tries++) {
		int rc;

		items_cut(conf, before);
		dump = (struct dump){.conf = conf};
		rc = dump_once(fd, type, flags, &dump);
		if (rc)
			return rc;
		if (!dump.torn)
			break;
	}
	/* One that is torn again and again has at least all that was there all the time. */
	return 0;
}

/* A kernel without IPv6 or nexthop objects has none of those. */
int netconf_read(int fd, int ifindex, const char *name, struct netconf *out)
{
	int rc;

	*out = (struct netconf){.ifindex = ifindex};
	snprintf(out->name, sizeof(out->name), "%s", name);
	rc = dump(fd, RTM_GETADDR, 0, out);
	if (!rc)
		rc = dump(fd, RTM_GETNEXTHOP, 0, out);
	if (!rc || rc == -EOPNOTSUPP)
		rc = dump(fd, RTM_GETROUTE, 0, out);
	if (!rc)
		rc = dump(fd, RTM_GETNEIGH, 0, out);
	if (!rc)
		rc = dump(fd, RTM_GETNEIGH, NTF_PROXY, out);
	if (rc)
		netconf_free(out);
	return rc;
}

uint32_t netconf_count(const struct netconf *conf, uint16_t type)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < conf->n; i++)
		count += conf->item[i].message->nlmsg_type == type;
	return count;
}

static void say(const struct netconf *conf, const struct netconf_target *to,
		const struct nlmsghdr *message, int error)
{
	char text[NETCONF_TEXT], line[NETCONF_TEXT + 96];

	netconf_message_text(message, text);
	snprintf(line, sizeof(line), "%s cannot be moved from %s to %s: %s", text, conf->name,
		 to->name, strerror(-error));
	to->say(to->say_arg, line);
}

/* 1: it has run out. */
static int item_add(struct netconf *conf, struct netconf_item *item,
		    const struct netconf_target *to, uint32_t age)
{
	_Alignas(struct nlmsghdr) char buffer[NETCONF_REQUEST];
	struct netconf_turn turn = {.conf = conf, .to = to, .age = age};
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	int rc = netconf_message_turn(item->message, &turn, request);

	if (rc)
		return rc;
	rc = netconf_request(to->fd, request);
	if (rc && rc != -EEXIST)
		return rc;
	item->moved = true;
	if (!netconf_message_settle(item->message, request))
		return 0;
	return netconf_request(to->fd, request);
}

/*
 * Of this type, and IPv6 or not, forwards or backwards; those that failed are tried again as long
 * as one more succeeds. Nexthop objects go with the routes: either may rely on the other.
 */
struct pass {
	uint16_t type;
	bool ipv6, backwards;
};

static bool pass_takes(const struct pass *pass, const struct nlmsghdr *message)
{
	bool route = pass->type == RTM_NEWROUTE && message->nlmsg_type == RTM_NEWNEXTHOP;

	return (message->nlmsg_type == pass->type || route) &&
	       netconf_message_ipv6(message) == pass->ipv6;
}

static uint32_t pass_once(struct netconf *conf, const struct netconf_target *to, uint32_t age,
			  const struct pass *pass, bool last)
{
	uint32_t failed = 0;

	for (uint32_t k = 0; k < conf->n; k++) {
		struct netconf_item *item = &conf->item[pass->backwards ? conf->n - 1 - k : k];
		const struct nlmsghdr *message = item->message;
		int rc;

		if (item->moved || !pass_takes(pass, message))
			continue;
		rc = item_add(conf, item, to, age);
		if (rc >= 0)
			continue;
		failed++;
		if (last)
			say(conf, to, message, rc);
	}
	return failed;
}

static uint32_t pass_run(struct netconf *conf, const struct netconf_target *to, uint32_t age,
			 const struct pass *pass)
{
	uint32_t before = UINT32_MAX, failed;

	for (int i = 0; i < ADD_PASSES; i++) {
		failed = pass_once(conf, to, age, pass, false);
		if (!failed || failed == before)
			break;
		before = failed;
	}
	return failed ? pass_once(conf, to, age, pass, true) : 0;
}

static bool route_wanted(const struct netconf *conf, const struct nlmsghdr *route)
{
	bool ours = false;

	for (uint32_t i = 0; i < conf->n; i++) {
		const struct nlmsghdr *message = conf->item[i].message;

		if (netconf_message_same_route(message, route))
			return true;
		ours |= netconf_message_made_for(route, message);
	}
	return !ours;
}

/* Those that the kernel has made for one of the addresses, and that were not there before. */
static void routes_prune(const struct netconf *conf, const struct netconf_target *to)
{
	_Alignas(struct nlmsghdr) char buffer[NETCONF_REQUEST];
	struct netconf after = {.ifindex = to->ifindex};

	if (dump(to->fd, RTM_GETROUTE, 0, &after))
		return;
	for (uint32_t i = 0; i < after.n; i++) {
		const struct nlmsghdr *route = after.item[i].message;
		struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

		if (netconf_message_by_kernel(route) && !route_wanted(conf, route) &&
		    !netconf_message_remove(route, request))
			netconf_request(to->fd, request);
	}
	netconf_free(&after);
}

/* IPv4 puts a new address behind those that are there, IPv6 before them. */
uint32_t netconf_add(struct netconf *conf, const struct netconf_target *to, uint32_t age)
{
	static const struct pass passes[] = {
		{RTM_NEWADDR, false, false},  {RTM_NEWADDR, true, true},
		{RTM_NEWROUTE, false, false}, {RTM_NEWROUTE, true, false},
		{RTM_NEWNEIGH, false, false}, {RTM_NEWNEIGH, true, false},
	};
	uint32_t failed = 0;

	for (uint32_t i = 0; i < conf->n; i++)
		conf->item[i].moved = false;
	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++)
		failed += pass_run(conf, to, age, &passes[i]);
	routes_prune(conf, to);
	return failed;
}

static void item_remove(const struct netconf_item *item, int fd)
{
	_Alignas(struct nlmsghdr) char buffer[NETCONF_REQUEST];
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);

	if (item->moved && !netconf_message_remove(item->message, request))
		netconf_request(fd, request);
}

static bool address_ipv6(const struct netconf_item *item)
{
	return item->message->nlmsg_type == RTM_NEWADDR && netconf_message_ipv6(item->message);
}

/* Whenever this breaks off, adding again what is missing gives the same order. */
void netconf_remove(const struct netconf *conf, int fd)
{
	for (uint32_t i = conf->n; i-- > 0;)
		if (!address_ipv6(&conf->item[i]))
			item_remove(&conf->item[i], fd);
	for (uint32_t i = 0; i < conf->n; i++)
		if (address_ipv6(&conf->item[i]))
			item_remove(&conf->item[i], fd);
}

void netconf_write(const struct netconf *conf, FILE *file)
{
	for (uint32_t i = 0; i < conf->n; i++) {
		const uint8_t *byte = (const uint8_t *)conf->item[i].message;

		fputs("message ", file);
		for (uint32_t k = 0; k < conf->item[i].message->nlmsg_len; k++)
			fprintf(file, "%02x", byte[k]);
		fputc('\n', file);
	}
}

int netconf_scan(struct netconf *conf, const char *line)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[NETCONF_REQUEST];
	const struct nlmsghdr *message = (const struct nlmsghdr *)bytes;
	size_t n = 0;
	unsigned byte;

	for (; n < sizeof(bytes) && sscanf(line, "%2x", &byte) == 1 && line[0] && line[1];
	     line += 2)
		bytes[n++] = (uint8_t)byte;
	if (n < MNL_NLMSG_HDRLEN || message->nlmsg_len != n ||
	    !netconf_message_moves(message, conf->ifindex))
		return -EINVAL;
	return item_append(conf, message);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* netconf: what its messages say, and how one is turned into a request about another interface. */
#ifndef PORT_NETCONF_MESSAGE_H
#define PORT_NETCONF_MESSAGE_H

#include "port/netconf.h"

#define NETCONF_REQUEST 16384 /* bytes of one; a route of 256 legs takes about 10000 */
#define NETCONF_TEXT 192

struct netconf_turn {
	const struct netconf *conf; /* whose messages they are */
	const struct netconf_target *to;
	uint32_t age; /* seconds since they were read */
};

/* What a dump of request->nlmsg_type wants behind its header. */
void netconf_message_ask(struct nlmsghdr *request, uint8_t flags);

/* It is about this interface, and has to be moved: whole, and not the kernel's own business. */
bool netconf_message_moves(const struct nlmsghdr *message, int ifindex);
bool netconf_message_ipv6(const struct nlmsghdr *message);
/* A route that the kernel has made for an address. */
bool netconf_message_by_kernel(const struct nlmsghdr *message);
/* That one for this address: to its prefix. */
bool netconf_message_made_for(const struct nlmsghdr *route, const struct nlmsghdr *address);
/* Both are routes, to the same destination in the same table, with the same metric and maker. */
bool netconf_message_same_route(const struct nlmsghdr *a, const struct nlmsghdr *b);
/* "route 10.0.0.0/8 via 10.1.1.1": for people. */
void netconf_message_text(const struct nlmsghdr *message, char text[NETCONF_TEXT]);

/*
 * Makes `request`, which is an empty header with room for NETCONF_REQUEST, of the message. 1: it
 * has run out, so there is nothing to ask; -EMSGSIZE.
 */
int netconf_message_turn(const struct nlmsghdr *message, const struct netconf_turn *turn,
			 struct nlmsghdr *request);
/*
 * An address is added without duplicate address detection, as it was in use until now. True: with
 * `request`, as it has now become, that is no longer written at it.
 */
bool netconf_message_settle(const struct nlmsghdr *message, struct nlmsghdr *request);
/* Likewise a request to remove it where it is. 1: nothing to remove, as adding has replaced it. */
int netconf_message_remove(const struct nlmsghdr *message, struct nlmsghdr *request);

#endif

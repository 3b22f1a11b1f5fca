/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel has configured on an interface, to be moved to another one: addresses, nexthop
 * objects, routes by way of it (of all tables; of a multipath route the legs that are), neighbours.
 *
 * It is kept as the kernel told it, in rtnetlink's messages, and told to the kernel again with
 * another interface in it, so that what this code knows nothing of moves too. What the kernel
 * makes by itself (local and broadcast routes, group addresses) is left to it.
 *
 * Control context. Functions return 0 or a negative errno. `fd` is an rtnetlink socket that was
 * made in the interface's network namespace, such as a struct netdev has.
 */
#ifndef PORT_NETCONF_H
#define PORT_NETCONF_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/netlink.h>

struct netconf_item {
	bool moved; /* the last netconf_add has succeeded with it */
	struct nlmsghdr *message;
};

struct netconf {
	int ifindex; /* of the interface in the messages */
	char name[IFNAMSIZ];
	uint32_t n;
	struct netconf_item *item;
};

/* One line about what could not be done. */
typedef void (*netconf_say)(void *arg, const char *line);

struct netconf_target {
	int fd;
	int ifindex;
	const char *name;
	netconf_say say;
	void *say_arg;
};

/* Nothing has to be freed when it fails. */
int netconf_read(int fd, int ifindex, const char *name, struct netconf *out);
void netconf_free(struct netconf *conf);
/* Forgets those of this type. */
void netconf_leave_out(struct netconf *conf, uint16_t type);
/* How many of them are of this type: RTM_NEWADDR, RTM_NEWROUTE, … */
uint32_t netconf_count(const struct netconf *conf, uint16_t type);

/*
 * All of it onto another interface (or onto its own), in the order in which each relies on what
 * was before; what is there already is no error. Lifetimes have become shorter by `age` seconds;
 * what has run out is left out. Routes that the kernel makes for one of the addresses and that are
 * not among them are taken away again. Returns how many could not be added, each of which is said.
 */
uint32_t netconf_add(struct netconf *conf, const struct netconf_target *to, uint32_t age);

/*
 * Away from the interface itself, what netconf_add has moved: the other way round, so that a route
 * does not lose what it relies on. What is gone already is no error.
 */
void netconf_remove(const struct netconf *conf, int fd);

/* A line each. netconf_scan takes one; -EINVAL: it is none. */
void netconf_write(const struct netconf *conf, FILE *file);
int netconf_scan(struct netconf *conf, const char *line);

/* 0, or the kernel's answer to a request that is complete but for its sequence number. */
int netconf_request(int fd, struct nlmsghdr *request);

#endif

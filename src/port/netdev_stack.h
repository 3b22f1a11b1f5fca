/* SPDX-License-Identifier: BSD-2-Clause */
/* What an interface is part of, and small changes of its link. Control context. */
#ifndef PORT_NETDEV_STACK_H
#define PORT_NETDEV_STACK_H

#include <port/netdev.h>

struct netdev_stack {
	char master[IFNAMSIZ]; /* its bridge, bond, …; empty: none */
	char upper[IFNAMSIZ];  /* one that stands on it: a VLAN, a macvlan, …; empty: none */
};

/* In the interface's namespace. 0, or a negative errno. */
int netdev_stack_read(const struct netdev *dev, struct netdev_stack *out);

/* What is not to be changed is NULL, 0 and negative. */
struct netdev_change {
	const uint8_t *address;
	uint32_t mtu;
	int up, carrier;
};

/* `fd`: an rtnetlink socket of the interface's namespace. */
int netdev_change(int fd, int ifindex, const struct netdev_change *change);

#endif

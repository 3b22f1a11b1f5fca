/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port on a network interface takes over from it. Control context. */
#ifndef PORT_DEVICE_H
#define PORT_DEVICE_H

#include <napier/port.h>

#include <port/netdev.h>

/* At open: address, MTU, ifindex, state. */
void device_describe(struct port *port, const struct netdev *dev, const struct netdev_link *link);

/* At a tick: asks for the interface and sets the port's state, PORT_GONE when it is away. */
void device_follow(struct port *port, struct netdev *dev);

#endif

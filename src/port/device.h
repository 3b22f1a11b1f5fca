/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port on a network interface takes over from it. Control context. */
#ifndef PORT_DEVICE_H
#define PORT_DEVICE_H

#include <napier/port.h>

#include <port/netdev.h>

/* At open: address, MTU, ifindex, state. */
void device_describe(struct port *port, const struct netdev *dev, const struct netdev_link *link);
/* The fix, where it is down. */
void device_down_warn(struct port *port, const struct netdev *dev, const struct netdev_link *link);

/*
 * At a tick: asks for the interface and takes over its state (PORT_GONE when it is away) and MTU.
 * What was learned is in *link, which may be NULL. 0, or what netdev_link says.
 */
int device_follow(struct port *port, struct netdev *dev, struct netdev_link *link);

/* Packet path: the MTU, which device_follow may be changing. */
static inline uint32_t device_mtu(const struct port *port)
{
	return __atomic_load_n(&port->mtu, __ATOMIC_RELAXED);
}

#endif

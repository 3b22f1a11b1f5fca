/* SPDX-License-Identifier: BSD-2-Clause */
#include <port/device.h>

#include <errno.h>
#include <string.h>

static void state_follow(struct port *port, enum port_state state)
{
	if (atomic_load(&port->state) != (int)state)
		port_state_set(port, state);
}

void device_describe(struct port *port, const struct netdev *dev, const struct netdev_link *link)
{
	port->ifindex = dev->ifindex;
	port->mtu = (uint16_t)(link->mtu < UINT16_MAX ? link->mtu : UINT16_MAX);
	memcpy(port->address, link->address, sizeof(port->address));
	state_follow(port, netdev_link_up(link) ? PORT_UP : PORT_DOWN);
	if (!(link->flags & IFF_UP))
		port_warn(port, "the interface is down: ip link set %s up", dev->name);
}

void device_follow(struct port *port, struct netdev *dev)
{
	struct netdev_link link;
	int rc = netdev_link(dev, &link);

	if (rc == -ENODEV)
		state_follow(port, PORT_GONE);
	else if (!rc)
		state_follow(port, netdev_link_up(&link) ? PORT_UP : PORT_DOWN);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <port/device.h>

#include <errno.h>
#include <string.h>

static void state_follow(struct port *port, enum port_state state)
{
	if (atomic_load(&port->state) != (int)state)
		port_state_set(port, state);
}

static void mtu_follow(struct port *port, const struct netdev_link *link)
{
	uint16_t mtu = (uint16_t)(link->mtu < UINT16_MAX ? link->mtu : UINT16_MAX);

	if (device_mtu(port) != mtu)
		__atomic_store_n(&port->mtu, mtu, __ATOMIC_RELAXED);
}

void device_describe(struct port *port, const struct netdev *dev, const struct netdev_link *link)
{
	port->ifindex = dev->ifindex;
	mtu_follow(port, link);
	memcpy(port->address, link->address, sizeof(port->address));
	state_follow(port, netdev_link_up(link) ? PORT_UP : PORT_DOWN);
}

void device_down_warn(struct port *port, const struct netdev *dev, const struct netdev_link *link)
{
	if (!(link->flags & IFF_UP))
		port_warn(port, "the interface is down: ip link set %s up", dev->name);
}

int device_follow(struct port *port, struct netdev *dev, struct netdev_link *link)
{
	struct netdev_link own;
	int rc;

	link = link ? link : &own;
	rc = netdev_link(dev, link);
	if (rc == -ENODEV)
		state_follow(port, PORT_GONE);
	if (rc)
		return rc;
	mtu_follow(port, link);
	state_follow(port, netdev_link_up(link) ? PORT_UP : PORT_DOWN);
	return 0;
}

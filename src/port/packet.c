/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * packet: an interface by AF_PACKET sockets. Works on every Ethernet interface and in unprivileged
 * user namespaces, and takes super-packets and partial checksums in both directions; each packet
 * is copied by the kernel.
 *
 * AF_PACKET listens beside the host's own stack, which sees the packets too: it answers to its own
 * addresses, so an interface that a port is on should have none. It sends what the MTU allows and
 * one 802.1Q tag: more tags at full length need a larger MTU on the interface (ip link set mtu).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <port/device.h>
#include <port/packet_queue.h>

/* Packets a socket holds while nobody polls: 1 ms at 2 million a second. */
#define RING_DEFAULT 2048
#define RING_MAX 65536
/* What a packet takes of a socket's buffer: its share of the kernel's bookkeeping included. */
#define RING_BYTES 2304

struct packet_port {
	struct netdev dev;
	int claim; /* the interface is ours as long as this is open */
};

/*
 * Two engines on one interface would forward everything twice. The name lives in the network
 * namespace, as the interface does, and ends with the process.
 */
static int interface_claim(struct packet_port *self, const struct netdev *dev, struct error *err)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "napier/packet/%d",
			      dev->ifindex);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);

	self->claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (self->claim < 0)
		return error_set(err, -errno, "packet:%s: %s", dev->name, strerror(errno));
	if (bind(self->claim, (struct sockaddr *)&name, size))
		return error_set(err, -errno,
				 "packet:%s: another napier has this interface open (see: ss -xlp "
				 "src '*napier/packet/%d*'); two would forward everything twice",
				 dev->name, dev->ifindex);
	return 0;
}

static int option_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* The kernel doubles what it is asked, and without CAP_NET_ADMIN keeps to its own limit. */
static void buffer_set(struct port *port, int fd, uint32_t ring)
{
	int wanted = (int)(ring * RING_BYTES / 2), got = 0;
	socklen_t size = sizeof(got);

	if (option_set(fd, SOL_SOCKET, SO_SNDBUFFORCE, wanted))
		option_set(fd, SOL_SOCKET, SO_SNDBUF, wanted);
	if (!option_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, wanted))
		return;
	option_set(fd, SOL_SOCKET, SO_RCVBUF, wanted);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &size);
	if (got < 2 * wanted)
		port_warn(port,
			  "receive buffer holds %d packets instead of %u (as root: sysctl -w "
			  "net.core.rmem_max=%d)",
			  got / RING_BYTES, ring, wanted);
}

/* A group of sockets does not go by its members' PACKET_IGNORE_OUTGOING, but by their filters. */
static struct sock_filter filter_nothing[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
static struct sock_filter filter_incoming[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, SKF_AD_OFF + SKF_AD_PKTTYPE),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
	BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
};

static int filter_set(int fd, struct sock_filter *code, size_t size)
{
	const struct sock_fprog filter = {.len = (unsigned short)(size / sizeof(*code)),
					  .filter = code};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ? -errno : 0;
}

/* Queues after the first join its group: the kernel spreads flows over them, each flow on one. */
static int fanout_join(struct port *port, int fd, int first)
{
	uint32_t value = (PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
	socklen_t size = sizeof(value);
	int rc;

	if (port->queues == 1)
		return 0;
	if (fd != first) {
		if (getsockopt(first, SOL_PACKET, PACKET_FANOUT, &value, &size))
			return -errno;
		value = PACKET_FANOUT_HASH << 16 | (value & 0xffff);
	}
	rc = option_set(fd, SOL_PACKET, PACKET_FANOUT, (int)value);
	return rc ? rc : filter_set(fd, filter_incoming, sizeof(filter_incoming));
}

static int promiscuous_set(int fd, int ifindex)
{
	const struct packet_mreq membership = {.mr_ifindex = ifindex, .mr_type = PACKET_MR_PROMISC};

	return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof(membership))
		       ? -errno
		       : 0;
}

/* Protocol 0 until bind: it receives nothing before all is set. */
static int socket_open(const struct netdev *dev, int *out, struct error *err)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 && errno == EPERM)
		return error_set(
			err, -EPERM,
			"packet:%s: needs CAP_NET_RAW: run as root, or: setcap "
			"cap_net_raw+ep on the program, or in a user namespace: unshare -rn",
			dev->name);
	if (fd < 0)
		return error_set(err, -errno, "packet:%s: AF_PACKET socket: %s", dev->name,
				 strerror(errno));
	*out = fd;
	return 0;
}

static int socket_prepare(int fd, bool bypass, bool group)
{
	int rc = option_set(fd, SOL_PACKET, PACKET_VNET_HDR, 1);

	if (!rc)
		rc = option_set(fd, SOL_PACKET, PACKET_AUXDATA, 1);
	if (!rc)
		/* Until it has joined, what the others get would come here once more. */
		rc = group ? filter_set(fd, filter_nothing, sizeof(filter_nothing))
			   : option_set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1);
	if (!rc)
		rc = option_set(fd, SOL_PACKET, PACKET_QDISC_BYPASS, bypass);
	if (!rc)
		rc = option_set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	return rc;
}

static int queue_open(struct port *port, struct port_queue *queue, uint32_t ring, bool bypass,
		      struct error *err)
{
	const struct netdev *dev = &((struct packet_port *)port->private)->dev;
	const struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = dev->ifindex,
	};
	struct packet_queue *own;
	int fd, rc;

	rc = packet_queue_create(&own);
	if (rc)
		return error_set(err, rc, "packet:%s: no memory for a queue", dev->name);
	own->send.bypass = bypass;
	queue->private = own;
	rc = socket_open(dev, &queue->irq.fd, err);
	if (rc)
		return rc;
	fd = queue->irq.fd;
	rc = socket_prepare(fd, bypass, port->queues > 1);
	if (rc)
		return error_set(err, rc, "packet:%s: the kernel lacks a socket option: %s",
				 dev->name, strerror(-rc));
	buffer_set(port, fd, ring);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)))
		return error_set(err, -errno, "packet:%s: bind: %s", dev->name, strerror(errno));
	rc = fanout_join(port, fd, port->queue[0].irq.fd);
	if (rc)
		return error_set(err, rc,
				 "packet:%s: cannot spread over %u queues: %s (older kernels want "
				 "the interface up: ip link set %s up)",
				 dev->name, port->queues, strerror(-rc), dev->name);
	return 0;
}

static int options_read(struct port_config *config, bool *bypass, struct error *err)
{
	char text[16] = "on";

	port_option(config, "qdisc_bypass", text, sizeof(text));
	*bypass = !strcmp(text, "on");
	if (!*bypass && strcmp(text, "off"))
		return error_set(err, -EINVAL, "packet:%s: qdisc_bypass=%s: must be on or off",
				 config->target, text);
	if (config->ring > RING_MAX)
		return error_set(err, -EINVAL, "packet:%s: ring=%u: must be 1 to %u packets",
				 config->target, config->ring, RING_MAX);
	return port_options_end(config, "ring, qdisc_bypass", err);
}

static void packet_close(struct port *port, struct context *context)
{
	struct packet_port *self = port->private;

	for (uint32_t i = 0; i < port->queues; i++) {
		struct port_queue *queue = &port->queue[i];

		if (queue->irq.fd >= 0)
			close(queue->irq.fd);
		if (queue->private)
			packet_queue_destroy(queue->private, context);
	}
	if (self->claim >= 0)
		close(self->claim);
	netdev_close(&self->dev);
	free(self);
}

static int device_open(struct port *port, struct port_config *config, struct error *err)
{
	struct packet_port *self = port->private;
	uint32_t queues = config->queues ? config->queues : 1;
	struct netdev_link link;
	int rc;

	rc = netdev_open(&self->dev, config->target, err);
	if (rc)
		return rc;
	rc = netdev_link(&self->dev, &link);
	if (rc)
		return error_set(err, rc, "packet:%s: %s", config->target, strerror(-rc));
	if (!link.ethernet)
		return error_set(err, -EINVAL,
				 "packet:%s: not an Ethernet interface: its packets have no "
				 "addresses to bridge by",
				 config->target);
	rc = interface_claim(self, &self->dev, err);
	if (rc)
		return rc;
	if (port_queues_alloc(port, queues))
		return error_set(err, -EINVAL, "packet:%s: queues=%u: must be 1 to %u",
				 config->target, queues, PORT_QUEUES_MAX);
	device_describe(port, &self->dev, &link);
	device_down_warn(port, &self->dev, &link);
	return 0;
}

static int packet_open(struct port *port, struct port_config *config, struct error *err)
{
	struct packet_port *self;
	bool bypass;
	int rc;

	rc = options_read(config, &bypass, err);
	if (rc)
		return rc;
	self = calloc(1, sizeof(*self));
	if (!self)
		return error_set(err, -ENOMEM, "packet:%s: no memory", config->target);
	self->dev = NETDEV_CLOSED;
	self->claim = -1;
	port->private = self;
	rc = device_open(port, config, err);
	for (uint32_t i = 0; !rc && i < port->queues; i++)
		rc = queue_open(port, &port->queue[i], config->ring ? config->ring : RING_DEFAULT,
				bypass, err);
	if (!rc) {
		rc = promiscuous_set(port->queue[0].irq.fd, self->dev.ifindex);
		if (rc)
			error_set(err, rc, "packet:%s: promiscuous mode: %s", config->target,
				  strerror(-rc));
	}
	if (rc) {
		packet_close(port, NULL);
		return rc;
	}
	port->features = PORT_TX_CSUM | PORT_TX_GSO | (vnet_kernel_uso() ? PORT_TX_USO : 0);
	snprintf(port->mode, sizeof(port->mode), "vnet header%s", bypass ? ", qdisc bypass" : "");
	return 0;
}

static void packet_tick(struct port *port, int64_t now)
{
	struct packet_port *self = port->private;

	(void)now;
	device_follow(port, &self->dev, NULL);
}

const struct port_ops packet_port_ops = {
	.kind = "packet",
	.help = "packet:INTERFACE[,queues=N][,ring=PACKETS][,qdisc_bypass=on|off]: by AF_PACKET, "
		"beside the host's stack: the interface should have no addresses",
	.open = packet_open,
	.receive = packet_queue_receive,
	.transmit = packet_queue_transmit,
	.tick = packet_tick,
	.close = packet_close,
};

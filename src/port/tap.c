/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap: an interface of this host whose other end is the port. Created at open, and away with the
 * process, or one that is there (ip tuntap add). One system call per packet, super-packets and
 * partial checksums in both directions.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <port/device.h>
#include <port/vnet.h>

/* Linux 6.2 has them, the headers of 6.1 do not. */
#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

/* How long a receive waits for a frame when the pool was empty. */
#define POOL_RETRY (1 * NSEC_PER_MSEC)

struct tap_queue {
	struct packet *frame; /* posted for the next read; NULL: none yet */
	uint8_t spill[VNET_SPILL];
};

struct tap_port {
	struct netdev dev;
};

struct tap_options {
	bool persist;
	bool up; /* one that is created is set up */
};

/* --- packet path --------------------------------------------------------------------------- */

static bool frame_post(struct tap_queue *own, struct context *context)
{
	return own->frame || packet_alloc(&context->cache, &own->frame, 1);
}

/* One packet, or NULL with *end when there is no more to read now. */
static struct packet *packet_read(struct port_queue *queue, struct context *context, bool *end)
{
	struct tap_queue *own = queue->private;
	struct packet *p = own->frame;
	struct virtio_net_hdr header;
	struct iovec iov[3];
	ssize_t size;

	vnet_receive_iov(context->cache.pool, p, &header, own->spill, iov);
	size = readv(queue->irq.fd, iov, 3);
	if (size < 0) {
		*end = errno == EAGAIN || errno == EBADFD;
		if (errno == EBADFD)
			port_state_set(queue->port, PORT_GONE);
		else if (!*end)
			counter_add(&context->counters->lost, 1);
		return NULL;
	}
	own->frame = NULL;
	return vnet_receive(context, p, &header, own->spill, (uint32_t)size) ? p : NULL;
}

static uint32_t tap_receive(struct port_queue *queue, struct context *context, struct packet **v,
			    uint32_t n)
{
	uint32_t got = 0;

	for (uint32_t reads = 0; reads < n; reads++) {
		bool end = false;

		if (!frame_post(queue->private, context)) {
			irq_arm(&queue->irq, context->now + POOL_RETRY);
			return got;
		}
		v[got] = packet_read(queue, context, &end);
		if (end)
			return got;
		got += v[got] != NULL;
	}
	/* What was read and dropped makes fewer than n: that is not the end of the queue. */
	if (got < n)
		irq_arm(&queue->irq, context->now);
	return got;
}

/* What a failed write means for the packet: 0, not taken, or a reason. */
static enum drop_reason write_failed(struct port *port, int error, bool *full)
{
	switch (error) {
	case EAGAIN:
	case ENOMEM:
	case ENOBUFS:
		*full = true;
		return DROP_TX_FULL;
	case EIO: /* the interface is down */
		port_state_set(port, PORT_DOWN);
		return DROP_TX_DOWN;
	case EBADFD: /* it is not there */
		port_state_set(port, PORT_GONE);
		return DROP_TX_DOWN;
	default:
		return DROP_TX_ERROR;
	}
}

static uint32_t tap_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			     uint32_t n)
{
	uint32_t sent = 0, i;
	uint64_t bytes = 0;

	for (i = 0; i < n; i++) {
		struct virtio_net_hdr header;
		struct iovec iov[VNET_IOV_MAX];
		uint32_t entries = vnet_transmit(v[i], &header, iov, VNET_IOV_MAX);
		enum drop_reason reason = DROP_TOO_LONG;
		bool full = false;

		if (entries && writev(queue->irq.fd, iov, (int)entries) >= 0) {
			sent++;
			bytes += v[i]->total;
			packet_free(&context->cache, v + i, 1);
			continue;
		}
		if (entries)
			reason = write_failed(queue->port, errno, &full);
		if (full)
			break;
		packet_drop(context, v + i, 1, reason);
	}
	if (sent)
		port_sent(queue, context, sent, bytes);
	return i;
}

/* --- control ------------------------------------------------------------------------------- */

/* What is there under the name may be used only if it is a TAP. */
static int interface_check(const struct netdev *dev, const struct netdev_link *link,
			   struct error *err)
{
	if (strcmp(link->kind, "tun"))
		return error_set(err, -EEXIST,
				 "tap:%s: the interface is there and is not a TAP (%s): take "
				 "another name, or packet:%s for this one",
				 dev->name, link->kind[0] ? link->kind : "hardware", dev->name);
	if (!link->ethernet)
		return error_set(err, -EEXIST,
				 "tap:%s: the interface is there as a TUN, without Ethernet: make "
				 "a TAP of it (ip tuntap add %s mode tap)",
				 dev->name, dev->name);
	return 0;
}

static int attach_failed(const char *name, int error, bool created, uint32_t queues,
			 struct error *err)
{
	switch (error) {
	case EPERM:
		return error_set(err, -EPERM,
				 "tap:%s: needs CAP_NET_ADMIN: run as root, or make it first for "
				 "your user (ip tuntap add %s mode tap user NAME)",
				 name, name);
	case EBUSY:
		return error_set(err, -EBUSY,
				 "tap:%s: another program has it open (see: ip -d tuntap)", name);
	case EINVAL:
		if (!created && queues > 1)
			return error_set(err, -EINVAL,
					 "tap:%s: queues=%u, but it was made with one: make it "
					 "anew (ip tuntap add %s mode tap multi_queue)",
					 name, queues, name);
		/* fall through */
	default:
		return error_set(err, -error, "tap:%s: TUNSETIFF: %s", name, strerror(error));
	}
}

/* UDP super-packets (USO) are since Linux 6.2 only. */
static int offloads_set(struct port *port, int fd)
{
	unsigned flags = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	int size = sizeof(struct virtio_net_hdr);

	if (ioctl(fd, TUNSETVNETHDRSZ, &size))
		return -errno;
	port->features = PORT_TX_CSUM | PORT_TX_GSO;
	if (!ioctl(fd, TUNSETOFFLOAD, flags | TUN_F_USO4 | TUN_F_USO6))
		port->features |= PORT_TX_USO;
	else if (ioctl(fd, TUNSETOFFLOAD, flags))
		return -errno;
	return 0;
}

/* A TAP made for several queues has to be attached to as such, also for one. */
static int queue_attach(struct port *port, int fd, const char *name, bool created,
			struct error *err)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	uint32_t queues = port->queues;
	int rc;

	if (queues > 1)
		request.ifr_flags |= IFF_MULTI_QUEUE;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", IFNAMSIZ - 1, name);
	if (ioctl(fd, TUNSETIFF, &request)) {
		if (errno != EINVAL || created || queues > 1)
			return attach_failed(name, errno, created, queues, err);
		request.ifr_flags |= IFF_MULTI_QUEUE;
		if (ioctl(fd, TUNSETIFF, &request))
			return attach_failed(name, errno, created, queues, err);
	}
	rc = offloads_set(port, fd);
	return rc ? error_set(err, rc, "tap:%s: offloads: %s", name, strerror(-rc)) : 0;
}

static int queue_open(struct port_queue *queue, const char *name, bool created, struct error *err)
{
	struct tap_queue *own = calloc(1, sizeof(*own));
	int fd;

	if (!own)
		return error_set(err, -ENOMEM, "tap:%s: no memory for a queue", name);
	queue->private = own;
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, -errno, "tap:%s: /dev/net/tun: %s%s", name, strerror(errno),
				 errno == ENOENT || errno == ENODEV ? " (modprobe tun)" : "");
	queue->irq.fd = fd;
	return queue_attach(queue->port, fd, name, created, err);
}

static int interface_up(const struct netdev *dev)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, dev->name, IFNAMSIZ);
	if (ioctl(dev->fd, SIOCGIFFLAGS, &request))
		return -errno;
	request.ifr_flags |= IFF_UP;
	return ioctl(dev->fd, SIOCSIFFLAGS, &request) ? -errno : 0;
}

/* The queues are attached, so the interface is there. */
static int interface_finish(struct port *port, const char *name, bool created, bool up,
			    struct error *err)
{
	struct tap_port *self = port->private;
	struct netdev_link link;
	int rc;

	if (created) {
		rc = netdev_open(&self->dev, name, err);
		if (rc)
			return rc;
		rc = up ? interface_up(&self->dev) : 0;
		if (rc)
			return error_set(err, rc, "tap:%s: cannot be set up: %s", name,
					 strerror(-rc));
	}
	rc = netdev_link(&self->dev, &link);
	if (rc)
		return error_set(err, rc, "tap:%s: %s", name, strerror(-rc));
	device_describe(port, &self->dev, &link);
	if (up)
		device_down_warn(port, &self->dev, &link);
	return 0;
}

static void tap_close(struct port *port, struct context *context)
{
	struct tap_port *self = port->private;

	for (uint32_t i = 0; i < port->queues; i++) {
		struct port_queue *queue = &port->queue[i];
		struct tap_queue *own = queue->private;

		if (queue->irq.fd >= 0)
			close(queue->irq.fd);
		if (own && own->frame)
			packet_free(&context->cache, &own->frame, 1);
		free(own);
	}
	netdev_close(&self->dev);
	free(self);
}

/* Whether there is none of the name yet; one that is there has been checked. */
static int interface_find(struct tap_port *self, const char *name, bool *created, struct error *err)
{
	struct netdev_link link;
	int rc = netdev_open(&self->dev, name, err);

	*created = rc == -ENODEV;
	if (rc)
		return *created ? 0 : rc;
	rc = netdev_link(&self->dev, &link);
	if (rc)
		return error_set(err, rc, "tap:%s: %s", name, strerror(-rc));
	return interface_check(&self->dev, &link, err);
}

static int device_open(struct port *port, const struct port_config *config,
		       const struct tap_options *options, struct error *err)
{
	const char *name = config->target;
	uint32_t queues = config->queues ? config->queues : 1;
	bool created;
	int rc = interface_find(port->private, name, &created, err);

	if (rc)
		return rc;
	if (port_queues_alloc(port, queues))
		return error_set(err, -EINVAL, "tap:%s: queues=%u: must be 1 to %u", name, queues,
				 PORT_QUEUES_MAX);
	for (uint32_t i = 0; i < queues; i++) {
		rc = queue_open(&port->queue[i], name, created, err);
		if (rc)
			return rc;
	}
	if (options->persist && ioctl(port->queue[0].irq.fd, TUNSETPERSIST, 1))
		return error_set(err, -errno, "tap:%s: persist=on: %s", name, strerror(errno));
	return interface_finish(port, name, created, options->up, err);
}

/* on or off, yes or no: the default is what *value is. */
static int switch_read(struct port_config *config, const char *key, const char *yes, const char *no,
		       bool *value, struct error *err)
{
	char text[16];

	if (!port_option(config, key, text, sizeof(text)))
		return 0;
	*value = !strcmp(text, yes);
	if (!*value && strcmp(text, no))
		return error_set(err, -EINVAL, "tap:%s: %s=%s: must be %s or %s", config->target,
				 key, text, yes, no);
	return 0;
}

static int options_read(struct port_config *config, struct tap_options *options, struct error *err)
{
	int rc = switch_read(config, "persist", "on", "off", &options->persist, err);

	if (!rc)
		rc = switch_read(config, "up", "yes", "no", &options->up, err);
	if (rc)
		return rc;
	if (config->ring)
		return error_set(err, -EINVAL,
				 "tap:%s: ring=%u: a TAP's queue is the interface's (ip link set "
				 "%s txqueuelen %u)",
				 config->target, config->ring, config->target, config->ring);
	return port_options_end(config, "persist, up", err);
}

static int tap_open(struct port *port, struct port_config *config, struct error *err)
{
	struct tap_port *self;
	struct tap_options options = {.up = true};
	int rc = options_read(config, &options, err);

	if (rc)
		return rc;
	self = calloc(1, sizeof(*self));
	if (!self)
		return error_set(err, -ENOMEM, "tap:%s: no memory", config->target);
	self->dev = NETDEV_CLOSED;
	port->private = self;
	rc = device_open(port, config, &options, err);
	if (rc) {
		tap_close(port, NULL);
		return rc;
	}
	snprintf(port->mode, sizeof(port->mode), "vnet header");
	return 0;
}

static void tap_tick(struct port *port, int64_t now)
{
	struct tap_port *self = port->private;

	(void)now;
	device_follow(port, &self->dev, NULL);
}

const struct port_ops tap_port_ops = {
	.kind = "tap",
	.help = "tap:NAME[,queues=N][,persist=on|off][,up=yes|no]: a TAP interface, created unless "
		"it is there",
	.open = tap_open,
	.receive = tap_receive,
	.transmit = tap_transmit,
	.tick = tap_tick,
	.close = tap_close,
};

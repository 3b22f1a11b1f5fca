/* SPDX-License-Identifier: BSD-2-Clause */
/* xdp: what is looked at once a second, and said once. */
#include "port/xdp.h"

#include <stdio.h>
#include <sys/socket.h>

#include <port/device.h>

/*
 * A port is silent when its interface's counter grows and ours does not, for this many looks in a
 * row: one look may fall between the kernel's counting and our poll.
 */
#define SILENT_LOOKS 3

void xdp_queues_fix(const struct xdp_port *xp, uint32_t queues, char *text, size_t size)
{
	struct netdev_channels channels;

	if (netdev_channels(&xp->dev, &channels) || !channels.rx_max)
		snprintf(text, size, "%sethtool -L %s combined %u", xp->fix_prefix, xp->dev.name,
			 queues);
	else
		snprintf(text, size, "%sethtool -L %s rx %u tx %u", xp->fix_prefix, xp->dev.name,
			 queues, queues);
}

/* Says which receive queues of the interface nobody polls, if there are any. */
static void queues_warn(struct xdp_port *xp, uint32_t rx_queues)
{
	uint32_t ours = xp->port->queues;
	char fix[96], range[32];

	if (rx_queues > ours + 1)
		snprintf(range, sizeof(range), "s %u to %u are", ours, rx_queues - 1);
	else
		snprintf(range, sizeof(range), " %u is", ours);
	xdp_queues_fix(xp, ours, fix, sizeof(fix));
	if (rx_queues > ours)
		port_warn(xp->port,
			  "receive queue%s polled by nobody: what arrives there goes past napier "
			  "to the kernel's stack; %s, or queues=%u",
			  range, fix, rx_queues);
	else if (rx_queues < ours)
		port_warn(xp->port,
			  "the interface has only %u of the %u receive queues that were opened: %s",
			  rx_queues, ours, fix);
}

static uint64_t received_sum(const struct port *port)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < port->queues; i++) {
		const struct napi_counters *c = napi_counters(port->queue[i].napi);

		sum += counter_read(&c->received) + counter_read(&c->lost);
	}
	return sum;
}

void xdp_watch_begin(struct xdp_port *xp, const struct netdev_link *link)
{
	struct netdev_link now = *link;

	/* Some drivers change their queues when they get a program. */
	netdev_link(&xp->dev, &now);
	xp->watch.rx_queues = netdev_rx_queues(&xp->dev, &now);
	xp->watch.rx_packets = now.rx_packets;
	queues_warn(xp, xp->watch.rx_queues);
}

/* What the kernel dropped for want of frames or of room in our ring. */
static void lost_read(struct xdp_queue *q)
{
	struct xdp_statistics statistics = {0};
	socklen_t size = sizeof(statistics);
	uint64_t lost;

	if (getsockopt(q->fd, SOL_XDP, XDP_STATISTICS, &statistics, &size))
		return;
	lost = statistics.rx_dropped + statistics.rx_ring_full;
	if (lost == atomic_load(&q->lost))
		return;
	atomic_store(&q->lost, lost);
	irq_raise(&q->queue->irq); /* its poll counts them */
}

/*
 * Frames that wait for the kernel, perhaps since the interface was down when they were kicked: with
 * no more traffic nobody would send them. A busy queue may be met with some, too; it does not mind.
 */
static void unsent_look(struct xdp_queue *q)
{
	if (__atomic_load_n(q->tx.producer, __ATOMIC_RELAXED) ==
	    __atomic_load_n(q->tx.consumer, __ATOMIC_RELAXED))
		return;
	atomic_store(&q->stuck, true);
	irq_raise(&q->queue->irq);
}

static void partial_look(struct xdp_port *xp)
{
	bool seen = false;

	for (uint32_t i = 0; i < xp->port->queues; i++)
		seen |= atomic_load(&xp->queue[i].partial_seen);
	if (!seen || xp->watch.partial_said)
		return;
	xp->watch.partial_said = true;
	port_warn(
		xp->port,
		"a sender leaves TCP and UDP checksums to its device, where AF_XDP cannot see it; "
		"napier completes them. At the peer, ethtool -K PEER tx off makes that needless");
}

static void queues_look(struct xdp_port *xp, const struct netdev_link *link)
{
	uint32_t now = netdev_rx_queues(&xp->dev, link);

	if (now == xp->watch.rx_queues)
		return;
	xp->watch.rx_queues = now;
	queues_warn(xp, now);
}

static void program_look(struct xdp_port *xp, const struct netdev_link *link)
{
	char text[128] = "it has none now";
	bool held;

	if (link->xdp_program == xp->program.id || xp->watch.program_said)
		return;
	xp->watch.program_said = true;
	if (link->xdp_program)
		xdp_program_describe(link->xdp_program, text, sizeof(text), &held);
	port_warn(xp->port, "its XDP program was replaced (%s): nothing is received", text);
}

static void mtu_look(struct xdp_port *xp, const struct netdev_link *link)
{
	uint32_t room = pool_room(xp->port->pool);

	if (link->mtu + XDP_ETHERNET_AND_TAG <= room) {
		xp->watch.mtu_said = false;
		return;
	}
	if (xp->watch.mtu_said)
		return;
	xp->watch.mtu_said = true;
	port_warn(xp->port,
		  "its MTU is %u now: packets longer than %u bytes do not fit into a frame and are "
		  "lost; %sip link set %s mtu %u",
		  link->mtu, room, xp->fix_prefix, xp->dev.name, room - XDP_ETHERNET_AND_TAG);
}

/* Attached, and yet nothing comes: no use in waiting for it silently. */
static void silence_look(struct xdp_port *xp, const struct netdev_link *link)
{
	struct xdp_watch *watch = &xp->watch;
	uint64_t received = received_sum(xp->port);
	uint64_t arrived = link->rx_packets - watch->rx_packets;
	bool disabled = false;

	for (uint32_t i = 0; i < xp->port->queues; i++)
		disabled |= napi_disabled(xp->port->queue[i].napi);
	if (received != watch->received || disabled) {
		watch->silent = 0;
		watch->silent_packets = 0;
	} else if (arrived) {
		watch->silent++;
		watch->silent_packets += arrived;
	}
	watch->received = received;
	watch->rx_packets = link->rx_packets;
	if (watch->silent < SILENT_LOOKS || watch->silent_said)
		return;
	watch->silent_said = true;
	port_warn(xp->port,
		  "attached, but nothing is delivered: the interface has received %llu packets "
		  "while none came here (driver %s, %s); try mode=generic, or packet:%s",
		  (unsigned long long)watch->silent_packets, xp->driver, xp->port->mode,
		  xp->dev.name);
}

void xdp_tick(struct port *port, int64_t now)
{
	struct xdp_port *xp = xdp_port_of(port);
	struct netdev_link link;

	(void)now;
	for (uint32_t i = 0; i < port->queues; i++)
		lost_read(&xp->queue[i]);
	partial_look(xp);
	xdp_kernel_look(xp);
	if (device_follow(port, &xp->dev, &link))
		return;
	for (uint32_t i = 0; i < port->queues && netdev_link_up(&link); i++)
		unsent_look(&xp->queue[i]);
	mtu_look(xp, &link);
	queues_look(xp, &link);
	program_look(xp, &link);
	silence_look(xp, &link);
}

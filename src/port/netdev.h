/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network interfaces: what the ports that open one ask the kernel about it.
 *
 * A struct netdev holds one socket that was made in the interface's network namespace, so every
 * later question is answered there, whatever namespace the asking thread is in. Nothing here reads
 * /sys, which shows the namespace it was mounted in.
 *
 * Control context. Functions return 0 or a negative errno; -ENODEV always means that the interface
 * is not there (any more).
 */
#ifndef PORT_NETDEV_H
#define PORT_NETDEV_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include <napier/error.h>

/*
 * The calling thread's network namespace becomes `name` (under /run/netns, or a path); an empty
 * name changes nothing. *back has to be given to netns_leave by the same thread, which returns it
 * to where it was; it is -1 when there is nothing to leave.
 */
int netns_enter(const char *name, int *back, struct error *err);
void netns_leave(int back);

/*
 * The kernel has this address (AF_INET, AF_INET6) on the interface of that index, in the namespace
 * netns, as in netns_enter. Also false when it does not tell.
 */
bool netdev_address_there(const char *netns, int ifindex, int family, const void *address);

struct netdev {
	int fd; /* -1: closed */
	int ifindex;
	char name[IFNAMSIZ]; /* follows a rename at netdev_link */
};

#define NETDEV_CLOSED ((struct netdev){.fd = -1})

/* In the namespace of the calling thread. Fills err; nothing is open when it fails. */
int netdev_open(struct netdev *dev, const char *name, struct error *err);
/* A closed one: no effect. */
void netdev_close(struct netdev *dev);

enum netdev_xdp {
	NETDEV_XDP_NONE,
	NETDEV_XDP_NATIVE,
	NETDEV_XDP_GENERIC,
	NETDEV_XDP_HARDWARE,
	NETDEV_XDP_SEVERAL,
};

struct netdev_link {
	char kind[16];	/* rtnetlink's kind: "veth", "bridge", "tun"; empty for hardware */
	uint32_t flags; /* IFF_UP, IFF_RUNNING, IFF_LOWER_UP, IFF_PROMISC, … */
	bool carrier;
	uint32_t mtu;
	uint8_t address[6]; /* zero when it is not an Ethernet address */
	bool ethernet;	    /* ARPHRD_ETHER (or loopback, which frames alike) */
	uint32_t rx_queues; /* allocated, which is more than are in use on many drivers */
	uint32_t tx_queues;
	int peer;	      /* ifindex of a veth's other end, or of the device below; 0: none */
	bool peer_elsewhere;  /* peer is in another namespace */
	enum netdev_xdp xdp;  /* how an XDP program is attached */
	uint32_t xdp_program; /* its id; 0: none */
	uint64_t rx_packets;  /* since the interface was made */
	uint64_t rx_dropped;
	uint64_t tx_packets;
};

/* One round trip to the kernel. */
int netdev_link(struct netdev *dev, struct netdev_link *out);

/* Up and with a carrier: what is sent there goes somewhere. */
static inline bool netdev_link_up(const struct netdev_link *link)
{
	return (link->flags & IFF_UP) && link->carrier;
}

/* The driver's name by ethtool: "veth", "ixgbe". -EOPNOTSUPP: it does not say. */
int netdev_driver(const struct netdev *dev, char *driver, size_t size);

struct netdev_channels {
	uint32_t rx, tx, combined; /* in use; a combined channel has one queue of each */
	uint32_t rx_max, tx_max, combined_max;
};

/* -EOPNOTSUPP: the driver has no channels. */
int netdev_channels(const struct netdev *dev, struct netdev_channels *out);

/* Queues in use: by channels, or else those that `link` says are allocated. */
uint32_t netdev_rx_queues(const struct netdev *dev, const struct netdev_link *link);
uint32_t netdev_tx_queues(const struct netdev *dev, const struct netdev_link *link);

/* An offload feature by the kernel's name for it ("tx-checksum-ip-generic"). -ENOENT: unknown. */
int netdev_feature(const struct netdev *dev, const char *feature, bool *on);

/*
 * Puts the interface into promiscuous mode for as long as *fd is open, so the mode ends with the
 * process, however it ends. Has to be called in the interface's namespace. -EPERM without
 * CAP_NET_RAW.
 */
int netdev_promiscuous(const struct netdev *dev, int *fd);

#endif

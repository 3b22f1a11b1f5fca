/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the xdp port: AF_XDP sockets, one per receive queue of an interface.
 *
 *	xdp.c          open and close
 *	xdp_request.c  what is asked for, and whether there is what that takes
 *	xdp_program.c  the program that redirects packets to the sockets
 *	xdp_socket.c   one queue's socket and rings
 *	xdp_path.c     receive, transmit, kick
 *	xdp_kernel.c   the kernel's own NAPI, polled along with the queue
 *	xdp_watch.c    what is looked at once a second
 *
 * Every queue registers the pool's whole area as a UMEM of its own. So the sockets of any interface
 * in any namespace share the frames, and none depends on another (as with XDP_SHARED_UMEM).
 *
 * While the kernel has a frame, its packet carries the mark of the queue that gave it (holder).
 * That is how close finds, exactly, what the kernel held: rings alone do not tell, since the kernel
 * also keeps frames that are in none.
 */
#ifndef PORT_XDP_H
#define PORT_XDP_H

#include <stdatomic.h>
#include <xdp/xsk.h>

#include <napier/port.h>

#include "port/irq_defer.h"
#include "port/netdev.h"
#include "port/xdp_program.h"

enum {
	XDP_RING_MIN = 64,
	XDP_RING_MAX = 16384,
	XDP_RING_DEFAULT = 2048,
	XDP_ETHERNET_AND_TAG = 18, /* what a frame has beyond the MTU */
};

enum xdp_attach { XDP_ATTACH_AUTO, XDP_ATTACH_NATIVE, XDP_ATTACH_GENERIC };
enum xdp_zerocopy { XDP_ZEROCOPY_AUTO, XDP_ZEROCOPY_ON, XDP_ZEROCOPY_OFF };
enum xdp_checksum { XDP_CHECKSUM_AUTO, XDP_CHECKSUM_COMPLETE, XDP_CHECKSUM_OFF };

/* What was asked, and what there is to open. */
struct xdp_request {
	unsigned mode, zerocopy, checksum; /* of the enums above */
	uint32_t ring, queues;
	struct netdev_link link;
};

struct xdp_queue {
	struct port_queue *queue;
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	/*
	 * It only sends, with the queue's rings. The kernel wakes a socket's waiters for every
	 * frame that it has sent; this one has none, while the other is in a runner's epoll set.
	 */
	struct xsk_socket *tx_socket;
	int fd; /* of the socket that receives, -1: none */
	int tx_fd;
	uint32_t index;
	uint32_t mark;	/* in packet->holder */
	bool checksums; /* look for partial ones */
	bool zerocopy;
	bool prefers;	    /* asked for preferred busy polling. Control */
	_Atomic bool drive; /* and got it: an empty ring means a call. Read by the holder */

	/* The holder of the NAPI only. */
	_Alignas(64) struct xsk_ring_cons rx;
	struct xsk_ring_prod fill;
	uint32_t filled;	   /* frames the kernel has for receiving */
	uint32_t fill_target;	   /* how many it should have */
	uint64_t lost_counted;	   /* of `lost`, in the NAPI's counter */
	_Atomic bool partial_seen; /* read by the watch */

	/* Under the queue's lock. */
	_Alignas(64) struct xsk_ring_prod tx;
	struct xsk_ring_cons completion;
	uint32_t sending; /* frames the kernel has for transmitting */
	uint32_t ring;
	_Atomic bool stuck; /* the kernel left some: kick again soon. Read without the lock */

	/* Written by the watch. */
	_Alignas(64) _Atomic uint64_t lost;
};

/* What the once-a-second look remembers. Control context. */
struct xdp_watch {
	uint32_t rx_queues;  /* of the interface, when last looked */
	uint64_t rx_packets; /* the interface's counter */
	uint64_t received;   /* our own, lost ones included */
	uint32_t silent;     /* looks in a row at which only the former grew */
	uint64_t silent_packets;
	bool silent_said, partial_said, program_said, mtu_said, prefer_said, deferral_said;
};

struct xdp_port {
	struct port *port;
	struct netdev dev;
	struct xdp_program program;
	struct xdp_watch watch;
	int promiscuous;     /* a descriptor, -1: none */
	char fix_prefix[80]; /* "ip netns exec NAME " where the fix has to be typed there */
	char driver[32];
	char netns[64];		   /* as it was given */
	struct irq_defer deferral; /* of the interface's interrupts */
	int deferral_error;	   /* why there is none */
	uint32_t opened;	   /* queues that have a socket */
	struct xdp_queue *queue;   /* port->queues of them */
};

static inline struct xdp_port *xdp_port_of(struct port *port)
{
	return port->private;
}

/* xdp_request.c: control context. They fill err; -EPERM, -EINVAL, -EBUSY and the like. */

/* The port's options: mode, zerocopy, checksum and ring. */
int xdp_request_read(struct port_config *config, struct xdp_request *request, struct error *err);
/* -EPERM, and the missing capabilities' names in text. Fills no err. */
int xdp_capabilities_check(char *text, size_t size);
/*
 * All that can be known to be wrong before anything is opened: the interface, its MTU and queues,
 * locked memory. Fills in queues and link, and the port's driver.
 */
int xdp_request_check(struct xdp_port *xp, const struct port_config *config,
		      struct xdp_request *request, struct error *err);
/* -EBUSY: the interface has an XDP program; whose, and how to end that. */
int xdp_attached_error(struct xdp_port *xp, const struct netdev_link *link, struct error *err);

/* xdp_socket.c: control context. */

/*
 * Makes the sockets of one queue and binds them, in the mode in which the program is attached; the
 * kernel gets no frames yet. Fills err. Nothing is left when it fails.
 */
int xdp_socket_open(struct xdp_port *xp, uint32_t index, uint32_t ring, enum xdp_zerocopy zerocopy,
		    struct error *err);
/*
 * Waits shortly for what is being transmitted, then closes. The frames that the kernel had still
 * carry the queue's mark.
 */
void xdp_socket_close(struct xdp_port *xp, uint32_t index, struct pool_cache *cache);

/* xdp_path.c: packet path, see struct port_ops. */
uint32_t xdp_receive(struct port_queue *queue, struct context *context, struct packet **v,
		     uint32_t n);
uint32_t xdp_transmit(struct port_queue *queue, struct context *context, struct packet **v,
		      uint32_t n);
void xdp_kick(struct port_queue *queue, struct context *context);
/* The kernel gets frames to receive into, as many as it should have or the pool gives. */
void xdp_fill(struct xdp_queue *q, struct pool_cache *cache);
/* Takes back what the kernel has sent. Under the queue's lock. */
void xdp_complete(struct xdp_queue *q, struct pool_cache *cache);
/* One system call to make the kernel send. 0, or its negative errno. */
int xdp_push(struct xdp_queue *q);

/* xdp_kernel.c: control context. See struct port_ops. */
int xdp_poller_changed(struct port_queue *queue, enum poller poller,
		       const struct queue_settings *settings, struct error *err);
/* The interface has again what it had before us. */
void xdp_deferral_put_back(struct xdp_port *xp);
/* Once a second: what the kernel has now. */
void xdp_kernel_look(struct xdp_port *xp);

/* xdp_watch.c: control context. */
void xdp_watch_begin(struct xdp_port *xp, const struct netdev_link *link);
void xdp_tick(struct port *port, int64_t now);
/* "ethtool -L eth0 combined 2", as this driver wants it. */
void xdp_queues_fix(const struct xdp_port *xp, uint32_t queues, char *text, size_t size);

#endif

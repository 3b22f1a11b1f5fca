/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue of a packet port: one AF_PACKET socket, and what is laid out for its system calls.
 *
 * Both sides make one system call per vector. The receive side keeps frames posted, as a ring
 * would, so that a poll which finds one packet costs one allocation, not a vector of them.
 */
#ifndef PORT_PACKET_QUEUE_H
#define PORT_PACKET_QUEUE_H

#include <linux/if_packet.h>
#include <sys/socket.h>

#include <napier/port.h>

#include <port/vnet.h>

/* PACKET_AUXDATA, and SO_RXQ_OVFL once the kernel has lost a packet. */
#define PACKET_CONTROL_SIZE                                                                        \
	(CMSG_SPACE(sizeof(struct tpacket_auxdata)) + CMSG_SPACE(sizeof(uint32_t)))

/* For vectors of ordinary packets; super-packets go in as many calls as they need. */
#define PACKET_SEND_IOV 256

/* The poller's. */
struct packet_receive {
	uint32_t empty; /* slots [0, empty) have no frame, the others have */
	uint32_t lost;	/* by the kernel, as of the last packet received */
	bool refused;	/* a packet was refused once: a short vector need not be the end */
	uint8_t *spill; /* VNET_SPILL bytes a slot */
	struct packet *frame[PACKET_VECTOR_MAX];
	struct mmsghdr message[PACKET_VECTOR_MAX];
	struct iovec iov[PACKET_VECTOR_MAX][3];
	struct virtio_net_hdr header[PACKET_VECTOR_MAX];
	_Alignas(struct cmsghdr) char control[PACKET_VECTOR_MAX][PACKET_CONTROL_SIZE];
};

/* Under the queue's lock. */
struct packet_send {
	bool bypass; /* PACKET_QDISC_BYPASS is set */
	bool super_passed;
	uint32_t super_refused; /* in a row since */
	struct mmsghdr message[PACKET_VECTOR_MAX];
	struct iovec iov[PACKET_SEND_IOV];
	struct virtio_net_hdr header[PACKET_VECTOR_MAX];
};

struct packet_queue {
	struct packet_receive receive;
	struct packet_send send __attribute__((aligned(64)));
};

/* -ENOMEM. The socket is the port queue's irq.fd; bypass is set by the caller. */
int packet_queue_create(struct packet_queue **out);
/* context may be NULL before the first receive. */
void packet_queue_destroy(struct packet_queue *queue, struct context *context);

uint32_t packet_queue_receive(struct port_queue *queue, struct context *context, struct packet **v,
			      uint32_t n);
uint32_t packet_queue_transmit(struct port_queue *queue, struct context *context, struct packet **v,
			       uint32_t n);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of ports that carry more than plain frames: the links of netns.h with the engine's bridge
 * between the ports that the test opens,
 *
 *	10.9.8.1/24 out -- in0  engine  in1 -- out 10.9.8.2/24
 *
 * raw frames with VLAN tags from end to end, and TCP.
 */
#ifndef RIG_H
#define RIG_H

#include "netns.h"

#define RIG_FRAME_MAX 1514
#define RIG_SECONDS 60 /* within which anything that is waited for has happened */

struct rig {
	struct netns_links links;
	struct netns_engine engine;
	struct handler *bridge;
	unsigned left, right, inner; /* namespaces */
};

struct rig *rig_begin(enum poller poller);
/* Removes the ports; every packet has to be free then. */
void rig_end(struct rig *rig);

/* Opens a port in a namespace and puts it on the bridge; fails the test when it cannot. */
struct port *rig_port(struct rig *rig, unsigned ns, const char *text);
/* Has to fail: returns the negative errno, and the text in err. */
int rig_port_refused(struct rig *rig, unsigned ns, const char *text, struct error *err);

/* Sum over the port's queues. */
uint64_t rig_sum(const struct port *port, size_t napi_counter);
#define RIG_SUM(port, field) rig_sum(port, offsetof(struct napi_counters, field))
/*
 * Waits for this sum, and fails without it: what has come out at the far end may not be counted
 * yet, since a poll counts when all of its vector has gone.
 */
void rig_sum_is(const struct port *port, size_t napi_counter, uint64_t sum);
#define RIG_SUM_IS(port, field, sum) rig_sum_is(port, offsetof(struct napi_counters, field), sum)
#define RIG_DROPPED(port, reason)                                                                  \
	rig_sum(port, offsetof(struct napi_counters, dropped) + sizeof(counter) * (reason))
/* It has received so many bytes of TCP in fewer packets than half the segments on a wire. */
void rig_check_super(const struct port *port, uint64_t bytes);
/* Waits until the port has this state. */
void rig_wait_state(const struct port *port, enum port_state state);
/* Looks every millisecond, for RIG_SECONDS. */
bool rig_eventually(bool (*happened)(void *arg), void *arg);

/*
 * A raw socket on an interface, which does not see what is sent from there. It sends past the
 * queueing discipline, which drops for a while after the carrier has come.
 */
int rig_raw(struct rig *rig, unsigned ns, const char *interface);
/* An IPv4 socket that waits RIG_SECONDS at most. */
int rig_socket(struct rig *rig, unsigned ns, int type);

struct iovec;
struct tpacket_auxdata;
/* The next packet there, and what the kernel says beside it; -ETIMEDOUT when none came. */
ssize_t rig_receive(int fd, struct iovec *iov, size_t n, struct tpacket_auxdata *auxdata);

struct rig_frame {
	uint32_t size;
	uint8_t bytes[RIG_FRAME_MAX + 8];
};

/*
 * Frame number i of a flow: an Ethernet type of its own, a size from 60 to RIG_FRAME_MAX, with
 * `tags` VLAN tags of which the outer is an 802.1ad one when there are two.
 */
void rig_frame(struct rig_frame *frame, bool from_left, uint32_t i, unsigned tags);
void rig_frame_send(int fd, const struct rig_frame *frame);
/* Something is there to be received now. */
bool rig_frame_waits(int fd);
/* The next frame of ours that comes, tag put back; false when none does. */
bool rig_frame_receive(int fd, struct rig_frame *frame);

/*
 * Sends frames [first, first + n) from one socket, at most 32 ahead of the other, where they have
 * to come out unchanged and in order.
 */
void rig_pass(int from, int to, bool from_left, uint32_t first, uint32_t n, unsigned tags);

/* Bytes over one TCP connection from a namespace to another's address, checked there. */
void rig_tcp(struct rig *rig, unsigned from, unsigned to_ns, const char *to, uint64_t bytes);

#endif

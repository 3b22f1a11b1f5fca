/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rrul_ping: ICMP echo, IPv4 and IPv6: by a ping socket, where net.ipv4.ping_group_range has this
 * process' group, or else a raw one (CAP_NET_RAW).
 */
#ifndef LAB_LOAD_RRUL_PING_H
#define LAB_LOAD_RRUL_PING_H

#include "lab/load/stream_socket.h"

struct rrul_ping {
	int fd;
	int family;
	bool raw;
	uint16_t id; /* of a raw one's requests */
};

/* -EACCES: neither is allowed. */
int rrul_ping_open(const struct load_place *place, const struct stream_address *to,
		   struct rrul_ping *out);
/* payload: RRUL_PROBE_SIZE bytes. 0 or a negative errno. */
int rrul_ping_send(const struct rrul_ping *ping, uint16_t sequence, const void *payload);
/*
 * The next reply's payload, without waiting: true; size of it at least. *more: there may be others,
 * also when this was no reply.
 */
bool rrul_ping_receive(const struct rrul_ping *ping, void *payload, size_t size, bool *more);

#endif

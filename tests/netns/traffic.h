/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordinary programs' traffic between two namespaces, IPv4 or IPv6 as the address is, by ordinary
 * sockets in child processes, every byte of it checked.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include "netns.h"

#define TRAFFIC_SECONDS 120 /* only against hanging */

/* A TCP connection on which `from` sends to an address in `to`. */
struct stream {
	pid_t sender, receiver;
	_Atomic int *stop; /* shared; not 0: enough has been sent */
};

/* bytes 0: until stream_end, a chunk every 2 ms, so that the connection is at work all the time. */
void stream_begin(const struct netns_links *links, unsigned from, unsigned to, const char *address,
		  uint64_t bytes, struct stream *out);
/* Fails the test unless all that was sent has come, in order and unchanged. */
void stream_end(struct stream *stream);
/* Both at once. */
void stream_run(const struct netns_links *links, unsigned from, unsigned to, const char *address,
		uint64_t bytes);

/* Datagrams of these sizes go there, and come back unchanged. A few tries each. */
void datagrams_run(const struct netns_links *links, unsigned from, unsigned to, const char *address,
		   const uint32_t *sizes, uint32_t n);

/* ICMP or ICMPv6 echo; false: no answer in 3 s, at several tries. */
bool echoes(const struct netns_links *links, unsigned from, const char *address, uint32_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Changing struct udp_net: control, engine lock held. */
#ifndef HANDLER_UDP_NET_H
#define HANDLER_UDP_NET_H

#include <handler/udp.h>

/* To be changed and published, or left: there is one, which the next call gives again. */
struct udp_net *net_copy(struct udp *udp);
/* Returns when nobody sees the old one any more. */
void net_publish(struct udp *udp, struct udp_net *net);
struct udp_link *net_link(struct udp_net *net, const struct port *port);
void link_remove(struct udp_net *net, struct udp_link *link);
/* Addresses that are another's, and those that have turned out to be ours. */
void net_tick(struct udp *udp, int64_t now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in kinds of port, one line each. */
#ifndef PORT_KINDS_H
#define PORT_KINDS_H

#include <napier/port.h>

extern const struct port_ops xdp_port_ops;
extern const struct port_ops mem_port_ops;
extern const struct port_ops packet_port_ops;
extern const struct port_ops pcap_port_ops;
extern const struct port_ops tap_port_ops;

/* In the order in which help lists them. */
#define PORT_KINDS &xdp_port_ops, &packet_port_ops, &tap_port_ops, &pcap_port_ops, &mem_port_ops

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings that the kernel keeps per interface under /proc/sys/net, of the namespace of the
 * calling thread: ipv4/conf, ipv6/conf, ipv4/neigh, ipv6/neigh.
 *
 * Control context. Functions return 0 or a negative errno.
 */
#ifndef PORT_IFSYSCTL_H
#define PORT_IFSYSCTL_H

#include <stdbool.h>

#define IFSYSCTL_VALUE 128

/* group: "ipv6/conf". Without the newline at its end. */
int ifsysctl_read(const char *group, const char *interface, const char *key,
		  char value[IFSYSCTL_VALUE]);
int ifsysctl_write(const char *group, const char *interface, const char *key, const char *value);

/*
 * All that differ and can be written, but for those that the kernel derives (an MTU) and the way
 * IPv6 makes its own addresses (addr_gen_mode), whose time the caller chooses. Returns how many
 * could not be written, and the name of one in `failed`.
 */
unsigned ifsysctl_copy(const char *from, const char *to, char failed[64]);

#endif

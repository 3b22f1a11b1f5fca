/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interface's directory in sysfs, in the network namespace of the calling thread. It mounts
 * sysfs for itself, nowhere in the tree, as /sys shows the namespace in which it was mounted.
 *
 * Control context. Functions return a negative errno when they fail.
 */
#ifndef PORT_SYSFS_H
#define PORT_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A descriptor of /sys/class/net/<interface> (O_PATH). Without the right to mount (CAP_SYS_ADMIN)
 * it takes /sys if `own`: the caller has entered no other namespace.
 */
int sysfs_interface_open(const char *interface, bool own);

/* A file below it, as one line without its end. */
int sysfs_read(int dir, const char *file, char *text, size_t size);
int sysfs_write(int dir, const char *file, const char *text);

#endif

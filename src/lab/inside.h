/* SPDX-License-Identifier: BSD-2-Clause */
/* inside: a bit of work in a network namespace, while the caller stays where it is. */
#ifndef LAB_INSIDE_H
#define LAB_INSIDE_H

#include <napier/error.h>

/*
 * Calls work(arg) in a thread that is in the namespace (descriptor; -1: this one), and returns what
 * it returns. -EPERM: entering takes CAP_SYS_ADMIN. /proc/sys/net and sockets are the namespace's
 * there, sysfs is not.
 */
int inside_run(int netns, int (*work)(void *arg), void *arg, struct error *err);

/*
 * Opens a namespace by its name (of ip-netns) or path; "": -1, the caller's. -ENOENT names it.
 */
int inside_open(const char *name, int *netns, struct error *err);

#endif

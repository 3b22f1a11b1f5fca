/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going into the background. Threads do not survive fork(), so the child does all the work and the
 * parent waits until it says that it is ready: errors reach the terminal, and the exit status.
 */
#ifndef CMD_DAEMON_H
#define CMD_DAEMON_H

/*
 * Forks. In the parent it does not return: it exits with 0 once the child is ready, or as the child
 * does. In the child it returns a descriptor for daemon_ready, or -errno in the only process there
 * is.
 */
int daemon_begin(void);

/* Leaves the terminal and the directory, and lets the parent go. */
void daemon_ready(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * side: what the two sides of any workload have in common: where their sockets and threads are, and
 * how their sockets wait.
 */
#ifndef LAB_LOAD_SIDE_H
#define LAB_LOAD_SIDE_H

#include <pthread.h>
#include <sys/socket.h>

#include "lab/load/load.h"

/* Of the place, its port and `above`. No address: any of IPv4. -EINVAL: none of either family. */
int side_address(const struct load_place *place, unsigned above, struct sockaddr_storage *out,
		 socklen_t *length, struct error *err);

/* Thread i of that side, on its CPU. */
int side_thread_start(const struct load_place *place, unsigned i, const char *name,
		      pthread_t *thread, void *(*run)(void *), void *arg, struct error *err);
/* Called by such a thread first: into its namespace. 0 or a negative errno. */
int side_thread_enter(const struct load_place *place);

/*
 * The busy-poll options of a configuration, of a socket, and of an epoll that waits for such
 * sockets (a kernel before 6.9 has none for epoll: there net.core.busy_poll is what counts; that is
 * no error). -EPERM: more than an unprivileged process may have.
 */
int side_socket_busy_poll(int fd, const struct load_config *config);
int side_epoll_busy_poll(int epoll, const struct load_config *config);

/* That the process may have so many descriptors more. -EMFILE: it may not. */
int side_files_want(unsigned n, struct error *err);

/* Segments that this connection has sent again. */
uint32_t side_retransmits(int fd);

#endif

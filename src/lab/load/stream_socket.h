/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_socket: sockets of streams and probes, in the namespace of their side, with the options of
 * the configuration. Functions return 0 (or a descriptor) or a negative errno.
 */
#ifndef LAB_LOAD_STREAM_SOCKET_H
#define LAB_LOAD_STREAM_SOCKET_H

#include <sys/socket.h>

#include "lab/load/load.h"

struct stream_address {
	struct sockaddr_storage at;
	socklen_t length;
};
/* A descriptor; close-on-exec. The calling thread is in its own namespace again afterwards. */
int stream_socket(const struct load_place *place, int family, int type, int protocol);
/* SO_BUSY_POLL and its like, where that side has them. */
int stream_socket_options(int fd, const struct load_config *config, bool server);
int stream_epoll_options(int epoll, const struct load_config *config, bool server);
/* TOS or traffic class of what it sends. */
int stream_socket_class(int fd, int family, uint8_t tos);
/* So that a blocking call looks now and then whether it is to end. */
int stream_socket_look(int fd);

enum { STREAM_LOOK_MS = 50 };

#endif

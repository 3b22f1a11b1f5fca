/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket that requests come by: lines in, lines out. It knows nothing of what they say.
 *
 * Everything but open and close is called by one runner, whose interrupts the descriptors are.
 * Clients cost bounded memory (a line in, an answer out, each), are served in turn, one line at a
 * time, and one that does not take its answer holds up nobody and is closed after a while.
 */
#ifndef CONTROL_SERVER_H
#define CONTROL_SERVER_H

#include <napier/machine.h>

#define SERVER_LINE_MAX 65536 /* bytes of a request, without the newline */
#define SERVER_CLIENTS_MAX 32
#define SERVER_STALL (10 * NSEC_PER_SEC) /* a client that takes nothing for so long is closed */
#define SERVER_RETRY (10 * NSEC_PER_MSEC)

struct server;

/*
 * Answers the line (n bytes, no newline, a NUL after them) with a line of its own, without newline:
 * malloc'd, the server frees it. NULL: no memory, and the client is closed.
 */
typedef char *(*server_answer)(void *arg, const char *line, size_t n);

/*
 * Listens at path (mode 0600), for `runner`, which has to call server_work in every step.
 * -EADDRINUSE and what socket says.
 */
int server_open(const char *path, struct runner *runner, server_answer answer, void *arg,
		struct server **out, struct error *err);

/* Closes everything; the runner has ended, or does not call server_work any more. */
void server_close(struct server *server);

/*
 * One bounded piece of work: at most one line answered. Returns when to call again at the latest:
 * `now` when there is more to do.
 */
int64_t server_work(struct server *server, int64_t now);

#endif

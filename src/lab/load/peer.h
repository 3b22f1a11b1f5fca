/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer: the server side of a workload, in a process of its own: a child in another namespace, or
 * `napier bench server` on another host. Both are told the same in the same words, one JSON object
 * a line, over a socket pair or TCP: hello (versions), start (load_config, load_place), read, stop.
 *
 * One thread uses a peer. Functions return 0 or a negative errno and fill err: -EPROTONOSUPPORT
 * another version; -EPROTO it refuses the parameters; -ECONNRESET it has died, and err says with
 * what; -ETIMEDOUT it does not answer. None waits longer than 10 s.
 */
#ifndef LAB_LOAD_PEER_H
#define LAB_LOAD_PEER_H

#include "lab/child.h"
#include "lab/load/load.h"

enum { PEER_PORT = 12865 + 1, PEER_VERSION = 1 };

struct peer;

/* A child: argv[0] of it is `napier`; it is placed in netns (-1: the caller's), on cpus. */
int peer_open_child(const char *napier, int netns, const struct cpuset *cpus, struct peer **out,
		    struct error *err);
int peer_open_host(const char *host, uint16_t port, struct peer **out, struct error *err);
void peer_close(struct peer *peer);

/* The child's; 0: another host. */
pid_t peer_pid(const struct peer *peer);
/* Its environment as environment_read gives it, for another host; NULL for a child. */
const json_t *peer_environment(const struct peer *peer);

struct peer_started {
	unsigned threads;
	pid_t tid[LOAD_TIDS_MAX]; /* in the peer's own pid namespace */
};

int peer_start(struct peer *peer, const struct load_config *config, const struct load_place *place,
	       struct peer_started *out, struct error *err);
/* server_read's object with "cpu" (of another host: usage's parts, see measure/usage.h) added. */
int peer_read(struct peer *peer, json_t **out, struct error *err);
int peer_stop(struct peer *peer, json_t **out, struct error *err);

/*
 * The other end: answers one client after another until *stop (SIGTERM, Ctrl-C), over `fd` (a
 * child's; one client) or listening on address:port. `fixed`: parameters given on its own command
 * line; a client with others is refused. 0, or a negative errno. `say` gets lines for people.
 */
struct peer_server_config {
	int fd; /* -1: listen */
	char address[LOAD_ADDRESS_MAX]; /* "": any */
	uint16_t port;
	const json_t *fixed; /* some keys of a load_config; NULL */
	const volatile int *stop;
	void (*say)(void *arg, const char *line);
	void *arg;
};
int peer_serve(const struct peer_server_config *config, struct error *err);

#endif

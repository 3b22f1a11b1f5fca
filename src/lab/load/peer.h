/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * peer: the server side of a workload, in a process of its own: a child in another namespace, or
 * `napier bench server` on another host. Both are told the same in the same words, one JSON object
 * a line, over a socket pair or TCP: hello (versions), start (load_config, load_place), read, stop.
 *
 * One thread uses a peer. Functions return 0 or a negative errno and fill err: -EPROTONOSUPPORT
 * another version; -EPROTO it refuses the parameters; -ECONNRESET it has died, and err says with
 * what; -ETIMEDOUT it does not answer. None waits longer than 20 s.
 */
#ifndef LAB_LOAD_PEER_H
#define LAB_LOAD_PEER_H

#include "lab/child.h"
#include "lab/load/load.h"

enum { PEER_PORT = 12865 + 1, PEER_VERSION = 2 };

struct peer;

/*
 * A child: argv[0] of it is `napier`; it is placed in netns (-1: the caller's), on cpus. By the
 * main thread, as child.h says.
 */
int peer_open_child(const char *napier, int netns, const struct cpuset *cpus, struct peer **out,
		    struct error *err);
/* A name or an address. -EBUSY: it serves another client. A name takes what the resolver takes. */
int peer_open_host(const char *host, uint16_t port, struct peer **out, struct error *err);
void peer_close(struct peer *peer);

/* The child's; 0: another host. */
pid_t peer_pid(const struct peer *peer);
/* Its environment as environment_read gives it, for another host; NULL for a child. */
const json_t *peer_environment(const struct peer *peer);

/* The address that was connected to, "192.0.2.7": for load_place. "": a child. */
const char *peer_address(const struct peer *peer);
/* Waits for nothing. 0: it lives, as far as can be seen; -ECONNRESET. */
int peer_check(struct peer *peer, struct error *err);

struct peer_started {
	unsigned threads;
	pid_t tid[LOAD_TIDS_MAX]; /* in the peer's own pid namespace */
};

/*
 * lasts: how long the run is meant to take (ns), from its warm-up to its end. A server on another
 * host does not wait much longer than that for a client that says nothing, see below.
 */
int peer_start(struct peer *peer, const struct load_config *config, const struct load_place *place,
	       int64_t lasts, struct peer_started *out, struct error *err);
/*
 * server_read's object; of another host with "cpu" added (usage_end's), which counts since the last
 * read, or the start, and is without figures per operation. So a measured span is between two
 * reads.
 */
int peer_read(struct peer *peer, json_t **out, struct error *err);
int peer_stop(struct peer *peer, json_t **out, struct error *err);

/* Seconds. */
enum { PEER_HELLO = 10, PEER_IDLE = 600, PEER_SLACK = 60 };

/*
 * The other end: answers one client after another until *stop (set by a handler of signals), over
 * `fd` (a child's, which this closes; one client) or listening on address:port. While it has one
 * another is told that it is busy; one that is gone makes room, and so does one that is silent for
 * too long: for PEER_HELLO before its first word, for PEER_IDLE between runs, in a run for as long
 * as it said that this lasts, its time-out and the slack. Whatever a client sends costs bounded
 * memory and an answer; what is refused is said, up to PEER_LINES in PEER_LINES_SECONDS. A child's
 * parent may be silent (somebody has stopped it) for as long as it lives. 0, or a negative errno.
 */
enum { PEER_LINES = 10, PEER_LINES_SECONDS = 10 };

struct peer_server_config {
	int fd;				/* -1: listen */
	int slack;			/* s; 0: PEER_SLACK */
	char address[LOAD_ADDRESS_MAX]; /* "": any */
	uint16_t port;			/* 0: any, which `say` tells */
	const json_t *fixed; /* keys of a load_config; a client with others is refused. NULL */
	bool engine; /* a client over TCP may have engine sockets, too: interfaces of this host */
	const struct load_ops *(*ops)(enum load_kind kind); /* load_ops */
	const volatile int *stop;
	void (*say)(void *arg, const char *line); /* for people; NULL */
	void *arg;
};
int peer_serve(const struct peer_server_config *config, struct error *err);

#endif

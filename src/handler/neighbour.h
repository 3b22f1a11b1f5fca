/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours of the udp handler's ports: which MAC address an IP address has, on which port.
 *
 * An entry comes when something is to be sent there, and only then: nothing that others send makes
 * one, so they cannot fill the table. Its states:
 *
 *  state      | entered                              | left
 *  -----------+--------------------------------------+------------------------------------------
 *  INCOMPLETE | by neighbour_wait(): solicited       | an answer: REACHABLE; three seconds: FAILED
 *  REACHABLE  | an answer to us                      | 30 s: STALE
 *  STALE      | that, or it told us without being    | used since: PROBE (still used); 10 minutes
 *             | asked                                | without use: gone
 *  PROBE      | by the tick: solicited, unicast      | an answer: REACHABLE; three seconds: FAILED
 *  FAILED     | no answer                            | after a second gone; asked for: INCOMPLETE
 *
 * A full bucket gives up its oldest STALE or FAILED entry.
 *
 *  call                     | beside            | lock
 *  -------------------------+-------------------+------
 *  neighbour_find           | anything          | none: each entry has a sequence number
 *  wait, confirm, step,     | anything          | taken inside
 *  purge                    |                   |
 *
 * Packets that wait are whole frames but for the destination.
 */
#ifndef HANDLER_NEIGHBOUR_H
#define HANDLER_NEIGHBOUR_H

#include <stdatomic.h>

#include <napier/packet.h>

#include <handler/udp_ip.h>
#include <machine/lock.h>

enum {
	NEIGHBOUR_WAYS = 8,
	NEIGHBOUR_SPARE = 2,	/* places per entry of the limit */
	NEIGHBOUR_LOOK = 16,	/* buckets, for one to give up */
	NEIGHBOUR_WAITING = 16, /* packets an entry holds */
	NEIGHBOUR_PROBES = 3,	/* a second apart */
	NEIGHBOUR_REACHABLE_S = 30,
	NEIGHBOUR_STALE_S = 600,
	NEIGHBOUR_FAILED_S = 1,
};

enum neighbour_state {
	NEIGHBOUR_FREE,
	NEIGHBOUR_INCOMPLETE,
	NEIGHBOUR_REACHABLE,
	NEIGHBOUR_STALE,
	NEIGHBOUR_PROBE,
	NEIGHBOUR_FAILED,
};

struct neighbour {
	_Atomic uint32_t sequence; /* odd while the key changes */
	_Atomic uint32_t port;	   /* index */
	_Atomic uint64_t high, low;
	_Atomic uint64_t mac;  /* mac_load(); the state above it */
	_Atomic uint32_t used; /* s, when something was sent there last */
	/* Under the lock. */
	uint32_t since; /* s, of the state */
	uint32_t probes;
	uint32_t waiting;
	struct packet *first, *last;
} __attribute__((aligned(64)));

struct neighbours {
	struct neighbour *place;
	uint32_t mask; /* buckets - 1 */
	uint32_t limit;
	uint64_t seed[2];
	struct lock lock __attribute__((aligned(64)));
	uint32_t look; /* under the lock: the bucket that is looked through next, at the limit */
	_Atomic uint32_t entries;
	_Atomic uint64_t full, resolved, unresolved;
};

/* What is to be asked: of the port with this index; mac 0: everybody there. */
struct neighbour_question {
	uint32_t port;
	struct ip ip;
	uint64_t mac;
};

/* limit: a power of two. -ENOMEM, and what lock_init says. */
int neighbours_create(uint32_t limit, const uint64_t seed[2], struct neighbours **out);
/* Nothing waits: purged. */
void neighbours_destroy(struct neighbours *t);

enum neighbour_answer {
	NEIGHBOUR_KNOWN, /* *mac is set */
	NEIGHBOUR_ASK,	 /* not known: neighbour_wait() */
	NEIGHBOUR_GONE,	 /* it did not answer just now */
};

/* Packet path, any context. now: s. */
enum neighbour_answer neighbour_find(struct neighbours *t, uint32_t port, struct ip ip,
				     uint32_t now, uint64_t *mac);

/*
 * Packet path, when neighbour_find said ASK. Takes the packet, and NULL is left in *p; or leaves
 * it: KNOWN (found meanwhile), or ASK: there is no place for the packet, or for the entry. *ask
 * tells that the question has to be sent now.
 */
enum neighbour_answer neighbour_wait(struct neighbours *t, uint32_t port, struct ip ip,
				     uint32_t now, struct packet **p, uint64_t *mac, bool *ask);

enum neighbour_news {
	NEIGHBOUR_ANSWER = 1 << 0,   /* to a question of ours */
	NEIGHBOUR_OVERRIDE = 1 << 1, /* another MAC address than the one known holds */
};

/*
 * Packet path. It says that it has this MAC address. Returns the packets that have waited for that,
 * with their destination filled in, linked by `next`; the caller owns them.
 */
struct packet *neighbour_confirm(struct neighbours *t, uint32_t port, struct ip ip, uint64_t mac,
				 unsigned news, uint32_t now);

/*
 * Control context, once a second for all i below neighbours_places(). True: the question is to be
 * sent. *dropped: packets that have waited in vain, as above.
 */
bool neighbour_step(struct neighbours *t, uint32_t i, uint32_t now, struct neighbour_question *out,
		    struct packet **dropped);
uint32_t neighbours_places(const struct neighbours *t);

/* Control context. Forgets all of a port, which nothing is sent on any more. */
struct packet *neighbours_purge(struct neighbours *t, uint32_t port);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp: IP hosts inside the engine, as a handler, and UDP sockets on them.
 *
 * The handler serves one or more ports, each with addresses of its own; it answers ARP and ND
 * there, finds its neighbours, answers pings (at a bounded rate), and hands UDP to sockets. A
 * program reads and writes those in vectors, without a copy and without a system call:
 *
 *	udp_handler_create(engine, NULL, &udp, &err);
 *	engine_handler_set(engine, port, udp, &err);
 *	udp_address_add(udp, port, "10.0.0.2/24", &err);
 *	napi_udp_open(udp, NULL, &socket, &err);
 *	napi_udp_address_parse("0.0.0.0:7", &local);
 *	napi_udp_bind(socket, &local);
 *	engine_context_open(engine, &context);
 *	for (;;) {
 *		int n = napi_udp_recv(socket, context, v, 64);	// the frames are ours
 *		if (n > 0)
 *			napi_udp_send(socket, context, v, n);	// and go back: an echo
 *	}
 *
 * Threads. open, bind, connect and close are control context, and so are the handler's own calls.
 * All others are the packet path, with the context of the calling thread (engine_context_open, or a
 * runner's), and one thread at a time uses a socket. Any number of NAPIs receive for it meanwhile.
 *
 * What it is not: there are no fragments, sent or received (what is sent says "don't fragment"), no
 * broadcast or multicast but what ARP and ND need (MLD tells switches of the groups), no loopback
 * to addresses of its own, no VLANs, no jumbograms. IPv4 options and IPv6 extension headers are
 * skipped.
 */
#ifndef NAPIER_UDP_H
#define NAPIER_UDP_H

#include <napier/handler.h>

#pragma GCC visibility push(default)

#define UDP_PORTS_MAX 16	 /* of a handler */
#define UDP_ADDRESSES_MAX 16	 /* of a port, the link-local one that it makes itself included */
#define UDP_SOCKETS_MAX 4096	 /* of a handler */
#define UDP_NEIGHBOURS_MAX 65536 /* of a handler */
#define UDP_ADDRESS_TEXT 64	 /* bytes that any address as text fits in */

/* 0 in any field means its default. */
struct udp_config {
	uint32_t neighbours; /* limit of the table, a power of two; 1024 */
	uint32_t echo_rate;  /* pings answered a second, over all ports; 1000 */
	uint32_t error_rate; /* ICMP errors sent a second, likewise; 100 */
};

/* config NULL: all defaults. -EINVAL, -ENOMEM, -ENOSPC: no room for another handler. */
int udp_handler_create(struct engine *engine, const struct udp_config *config, struct handler **out,
		       struct error *err);

/*
 * Control context, the port has this handler (engine_handler_set). "10.0.0.2/24", "fd00::2/64"; no
 * prefix: the address alone. It is announced, and serves at once; an IPv6 address that turns out to
 * be another's within a second is given up and logged (optimistic duplicate address detection); of
 * an IPv4 address that another has too only the log tells, and of one that the kernel has on the
 * port's interface: it would answer as well, or be cut off at that address. The first IPv6 address
 * brings the port's link-local one with it. Taking the handler from the port forgets its addresses;
 * what is bound to them stays bound. -EINVAL, -EEXIST, -ENOENT: not a port of this handler,
 * -ENOSPC.
 */
int udp_address_add(struct handler *udp, struct port *port, const char *address, struct error *err);
/* -ENOENT */
int udp_address_remove(struct handler *udp, struct port *port, const char *address,
		       struct error *err);
/*
 * Where packets go to whose destination is in no prefix: one per family and port (another takes its
 * place), and the first port that has one is used. "10.0.0.1". It lies in a prefix of the port, and
 * goes with the last address in that. -EINVAL, -ENOENT, -ENETUNREACH: in no prefix.
 */
int udp_gateway_set(struct handler *udp, struct port *port, const char *gateway, struct error *err);
/* -ENOENT */
int udp_gateway_remove(struct handler *udp, struct port *port, const char *gateway,
		       struct error *err);

/* What a port's packets carry as their source, for ports without an address of their own, too. */
int udp_port_mac(struct handler *udp, struct port *port, uint8_t mac[6]);

struct udp_stats {
	uint64_t neighbours;		       /* in the table */
	uint64_t neighbours_full;	       /* times that one found no place in it */
	uint64_t resolved, unresolved;	       /* neighbours that answered, and that did not */
	uint64_t waiting_dropped;	       /* packets that waited for a neighbour in vain */
	uint64_t echoes;		       /* pings answered */
	uint64_t errors_sent, errors_received; /* ICMP */
	uint64_t conflicts;		       /* addresses of ours that another claimed */
};

void udp_stats_read(struct handler *udp, struct udp_stats *out);

/*
 * One type for both families. An IPv4 address is ::ffff:a.b.c.d, and 0.0.0.0 is ::ffff:0.0.0.0: a
 * socket bound to :: takes packets of both families, one bound to 0.0.0.0 those of IPv4, and any
 * socket sends to either, within what its local address allows.
 */
struct napi_udp_address {
	uint8_t ip[16];
	uint16_t port;	/* in host order */
	uint16_t scope; /* of a link-local address: index of its port + 1; else 0 */
};

/* "10.0.0.2:7", "[fd00::2]:7", "[fe80::1%NAME]:7" is refused (scope is a number: "%3"). -EINVAL. */
int napi_udp_address_parse(const char *text, struct napi_udp_address *out);
/* And back; IPv4 as such. Returns what snprintf would. */
int napi_udp_address_format(const struct napi_udp_address *a, char *text, size_t size);

/* 0 in any field means its default. */
struct napi_udp_config {
	/*
	 * Packets received: those that wait and those that have been read and not been released or
	 * sent, together. What comes beyond is dropped (DROP_UDP_QUEUE_FULL, by the NAPI that
	 * received it; `dropped` of the socket). 512; at most UDP_RECEIVE_MAX.
	 */
	uint32_t receive_max;
	/* Frames that napi_udp_alloc has given and that have not been sent or released; 128. */
	uint32_t send_max;
	/* Busy polling, in effect where the poller of the NAPI it received from is `app`. */
	bool busy_read_set, busy_poll_set; /* else the engine's default */
	uint32_t busy_read;		   /* us: recv looks so long for packets; 0: not */
	uint32_t busy_poll;		   /* us: likewise napi_udp_arm, before one sleeps */
	uint32_t budget;		   /* packets a poll; 8 */
	bool prefer;			   /* interrupts stay off while it keeps coming back */
};

#define UDP_RECEIVE_MAX 32768
#define UDP_SEND_MAX 4096

struct napi_udp;

/*
 * -EINVAL, -ENOMEM, -ENOSPC: UDP_SOCKETS_MAX. -ENOBUFS: the limits of all sockets of the engine
 * would be more than half of its frames: so that no application, however it behaves, can take from
 * the ports what they need. (With the defaults: 12 sockets on 16384 frames; engine_config.frames.)
 */
int napi_udp_open(struct handler *udp, const struct napi_udp_config *config, struct napi_udp **out,
		  struct error *err);

/*
 * As bind(2): port 0 takes a free one from 32768 to 60999. -EINVAL: bound already. -EADDRNOTAVAIL:
 * not an address of the handler's, nor :: or 0.0.0.0. -EADDRINUSE: another socket has the port at
 * this address, or one of the two at all addresses of its family or of both.
 */
int napi_udp_bind(struct napi_udp *socket, const struct napi_udp_address *local);

/*
 * As connect(2): receives from this address only, and sends there what says no other; binds it
 * where it is not bound. NULL dissolves it. -ENETUNREACH: no way there. -EINVAL: port 0.
 * -EAFNOSUPPORT: bound to an address of the other family. -EACCES: a broadcast address.
 * What comes in by ICMP about what it sent is the next call's error, once: -ECONNREFUSED (port
 * unreachable); -EMSGSIZE (too big for a link on the way): what is longer is refused from then on,
 * until it is connected anew, and napi_udp_alloc's `room` tells what is not.
 */
int napi_udp_connect(struct napi_udp *socket, const struct napi_udp_address *peer);

/* What it is bound and connected to; all 0: not. */
void napi_udp_local(const struct napi_udp *socket, struct napi_udp_address *out);
void napi_udp_peer(const struct napi_udp *socket, struct napi_udp_address *out);

/*
 * A datagram, in its frame. From recv until release or send the application may read and write
 * len bytes at data, and make it longer, up to `room` bytes at data in all.
 */
struct napi_udp_message {
	uint8_t *data;
	uint16_t len;
	uint16_t room;
	uint16_t in_port; /* index of the port and queue it came in by */
	uint16_t in_queue;
	int64_t stamp; /* ns of the machine's time, when it was received (or the capture's) */
	uint32_t hash; /* flow hash, for flow_record(); 0: nobody has computed it */
	struct napi_udp_address peer;  /* whom it comes from, or goes to */
	struct napi_udp_address local; /* and the address of ours */
	struct packet *packet;
};

#define NAPI_UDP_VECTOR_MAX PACKET_VECTOR_MAX

/*
 * Fills v with up to n datagrams, in the order in which each NAPI put them there, and returns how
 * many. -EAGAIN: there are none (after busy_read of looking). -ECONNREFUSED, -EMSGSIZE: see
 * connect. -EINVAL: n is not 1..NAPI_UDP_VECTOR_MAX.
 */
int napi_udp_recv(struct napi_udp *socket, struct context *context, struct napi_udp_message *v,
		  uint32_t n);

/* Gives back frames that recv or alloc gave and that have not been sent, in any order. */
void napi_udp_release(struct napi_udp *socket, struct context *context,
		      const struct napi_udp_message *v, uint32_t n);

/*
 * Fills v with up to n empty messages and returns how many: data and room say where payload goes,
 * peer and local are what the socket is connected to (0: not), len is 0. -ENOBUFS: send_max, or the
 * pool is empty. room is what the smallest MTU of the handler's ports allows to both families, and
 * what is known of the way to whom it is connected to.
 */
int napi_udp_alloc(struct napi_udp *socket, struct context *context, struct napi_udp_message *v,
		   uint32_t n);

/*
 * Sends the messages of v, from alloc or recv, from its first on, and returns how many it took;
 * those are the engine's now, the others still the caller's. When it took none: why not. They go to
 * `peer`; from `local`'s address, or when that is 0 from the one bound or else the first of the
 * port in whose prefix the way leads; always from the port that is bound, or is bound now.
 * Checksums are made; the kick comes once, at the end of the call.
 *
 * A message may wait for its neighbour to be found, 16 for each; those beyond, or whose neighbour
 * is not there, are dropped and counted, not refused. One that is sent as the neighbour is found
 * may overtake those that waited. -EDESTADDRREQ: no peer. -EINVAL: port 0;
 * or a runner, whose socket has to be bound before, as binding waits for runners (an application
 * likewise must not be between context_enter and context_leave then). -EMSGSIZE: longer than the
 * MTU, or see connect. -ENETUNREACH. -EADDRNOTAVAIL, -EAFNOSUPPORT: local. -EACCES: a broadcast or
 * group address. -EHOSTUNREACH: its neighbour is known not to be there. -ECONNREFUSED: see connect.
 */
int napi_udp_send(struct napi_udp *socket, struct context *context, struct napi_udp_message *v,
		  uint32_t n);

/* The same of one datagram that is copied: len, or a negative errno; peer NULL: connected. */
int napi_udp_send_copy(struct napi_udp *socket, struct context *context, const void *data,
		       size_t len, const struct napi_udp_address *peer);

/*
 * Readiness. fd is an eventfd for epoll or poll, readable when there is something to receive or an
 * error to see; it is the socket's: neither read nor close it. It is only written after the
 * application has said that it is going to sleep:
 *
 *	while ((n = napi_udp_recv(...)) > 0) …;
 *	if (!napi_udp_arm(socket, context))	// true: something has come meanwhile
 *		epoll_wait(...);
 *
 * arm looks for busy_poll us first. Each recv ends what arm began.
 */
int napi_udp_fd(const struct napi_udp *socket);
bool napi_udp_arm(struct napi_udp *socket, struct context *context);

struct napi_udp_stats {
	uint64_t received;		  /* put into its queue */
	uint64_t dropped;		  /* the queue was full */
	uint64_t read;			  /* by recv */
	uint64_t sent;			  /* taken by send */
	uint64_t wakes;			  /* writes of fd */
	uint32_t queued, held, allocated; /* now: in the queue, read and not released, by alloc */
	uint32_t receive_max, send_max;
};

void napi_udp_stats_read(const struct napi_udp *socket, struct napi_udp_stats *out);

/*
 * Takes back all of its frames, those that the application still has as well. A socket whose
 * application has ended goes on to fill its queue and to count, and is closed with its handler.
 */
void napi_udp_close(struct napi_udp *socket);

#pragma GCC visibility pop

#endif

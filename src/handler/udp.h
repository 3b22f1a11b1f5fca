/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the udp handler.
 *
 * A received packet goes through udp_input.c (what is it, whose), to udp_queue.c (into a socket),
 * or to udp_arp.c, udp_nd.c, udp_mld.c, udp_icmp.c. A sent one comes from udp_send.c, by
 * udp_route.c and neighbour.c. udp_net.c and udp_bind.c change what those read.
 *
 * What the packet path reads, and control replaces: struct udp_net (ports, addresses, gateways),
 * and the endpoints, by which a packet finds its socket. Both are never changed in place: a new one
 * is published, and the old one used again after machine_quiesce(), which waits for runners and for
 * applications between context_enter() and context_leave().
 *
 * Locks, outer before inner: the engine's (control), the neighbours', a transmit queue's.
 */
#ifndef HANDLER_UDP_H
#define HANDLER_UDP_H

#include <stdatomic.h>

#include <napier/engine.h>
#include <napier/udp.h>

#include <core/checksum.h>
#include <handler/neighbour.h>
#include <handler/udp_ip.h>
#include <machine/lock.h>

#define UDP_BUCKETS 1024 /* of endpoints, by UDP port */
#define UDP_MTU_DEFAULT 1500
#define UDP_ERROR_QUOTE 548 /* bytes of the packet that an ICMP error carries back */
#define UDP_ERROR_QUOTE6 1232
#define DAD_NS NSEC_PER_SEC

struct udp_own {
	struct ip ip, mask;
	uint8_t prefix;	 /* bits, of 128 */
	bool optimistic; /* IPv6: may still turn out to be another's */
	bool automatic;	 /* link-local, made here */
	int64_t since;
};

struct udp_link {
	struct port *port;
	uint64_t mac;
	uint32_t addresses;
	struct udp_own own[UDP_ADDRESSES_MAX];
	struct ip gateway4, gateway6; /* 0: none */
};

struct udp_net {
	uint32_t links;
	struct udp_link link[UDP_PORTS_MAX];
};

struct napi_udp;

/* A socket, as packets find it. */
struct udp_endpoint {
	struct udp_endpoint *_Atomic next;
	struct napi_udp *socket;
	struct ip local, peer; /* peer 0: any */
	uint16_t local_port, peer_port;
	uint16_t peer_scope;	   /* 0: any */
	_Atomic uint32_t path_mtu; /* on the way to the peer; 0: nobody has said */
} __attribute__((aligned(64)));

/* So many a second; a tick fills it up. */
struct udp_rate {
	_Atomic uint32_t left;
	uint32_t rate;
};

struct udp {
	struct handler handler;
	struct udp_net *_Atomic net;
	struct neighbours *neighbours;
	_Atomic uint32_t seconds; /* of the machine's time, as of the last tick */
	unsigned number;	  /* among the engine's handlers: in the marks of frames */
	struct udp_endpoint *_Atomic bucket[UDP_BUCKETS];
	/* Control, engine lock held. */
	struct udp_net *spare;	  /* for the next change */
	struct napi_udp **socket; /* UDP_SOCKETS_MAX of them */
	uint32_t sockets;	  /* the highest used, + 1 */
	uint32_t frames;	  /* the sum of their limits */
	uint32_t ephemeral;
	uint8_t mac[3]; /* of ports that have none of their own */
	struct udp_rate echo, error;
	/* Rare events, counted from several runners. */
	_Atomic uint64_t waiting_dropped, echoes, errors_sent, errors_received, conflicts;
	/* Since the last tick, by link: whose addresses are another's, and who asked by MLD. */
	_Atomic uint32_t duplicate[UDP_PORTS_MAX];
	_Atomic uint32_t asked[UDP_PORTS_MAX];
};

/* Who has a frame, in packet->holder: the handler and the socket, and by which call. */
#define UDP_MARK UINT32_C(0x80000000)
#define UDP_MARK_SENDING UINT32_C(1)

struct napi_udp {
	/* Constant, or control's. */
	struct udp *udp;
	struct udp_endpoint *_Atomic endpoint; /* NULL: not bound */
	struct ip bound;		       /* what connect(NULL) goes back to */
	struct packet *_Atomic *slot;
	uint32_t mask; /* slots - 1, at least receive_max */
	uint32_t receive_max, send_max;
	uint32_t mark;
	uint32_t index;
	int fd;
	struct napi_udp_config config;
	/*
	 * The producers: NAPIs. A packet that is put there takes the slot `reserved` counts to, and
	 * all of a vector take theirs at once; slots are filled after that.
	 */
	_Atomic uint64_t reserved __attribute__((aligned(64)));
	_Atomic uint64_t dropped;
	struct napi *_Atomic napi; /* from which the last came */
	/* The application, which alone writes here; producers read `released`. */
	counter released __attribute__((aligned(64)));
	counter taken;	   /* read out of their slots */
	counter sent;	   /* by napi_udp_send */
	counter allocated; /* frames that are out now */
	bool waiting;	   /* it has armed since its last recv */
	uint64_t woken;	   /* times that fd has been or will be written, and was not read */
	/* Both sides; written rarely. */
	_Atomic uint32_t armed __attribute__((aligned(64)));
	_Atomic int error;
	_Atomic uint64_t wakes;
};

extern const struct handler_ops udp_ops;

static inline struct udp *udp_of(struct handler *handler)
{
	return (struct udp *)handler;
}

static inline const struct udp_net *udp_net(const struct udp *udp)
{
	return atomic_load_explicit(&((struct udp *)udp)->net, memory_order_acquire);
}

static inline uint32_t udp_seconds(const struct udp *udp)
{
	return atomic_load_explicit(&((struct udp *)udp)->seconds, memory_order_relaxed);
}

/* Whether one more may be. Any context. */
bool udp_rate_take(struct udp_rate *rate);

/* udp_input.c */
void udp_input(struct handler *handler, struct context *context, struct port *in, struct packet **v,
	       uint32_t n);

/* What udp_input knows of the packet at hand. */
struct udp_frame {
	struct udp *udp;
	struct context *context;
	const struct udp_link *link;
	struct packet *p;
	uint8_t *ip;  /* its IP header */
	uint8_t *at;  /* what that carries */
	uint32_t len; /* bytes of it */
	struct ip from, to;
	uint8_t protocol;
	bool group; /* not for us alone: multicast */
};

/* Each owns frame->p. */
void udp_arp_input(struct udp_frame *frame);
void udp_icmp_input(struct udp_frame *frame);
void udp_icmp6_input(struct udp_frame *frame);
void udp_nd_input(struct udp_frame *frame);
void udp_mld_input(struct udp_frame *frame);
/* No socket has that port: says so, and drops it. frame->at is its UDP header. */
void udp_unreachable(struct udp_frame *frame);
void udp_frame_drop(const struct udp_frame *frame, enum drop_reason reason);
/* It was for the engine itself, which has what it wanted. */
void udp_frame_end(const struct udp_frame *frame);
/* Sent back by the port it came from. */
void udp_frame_send(const struct udp_frame *frame);
/* It has this address; NULL: not one of the link's. */
const struct udp_own *udp_own_find(const struct udp_link *link, struct ip ip);
/* Another has this address of ours, too. */
void udp_conflict(struct udp *udp, const struct udp_link *link, const struct udp_own *own);
/* A neighbour has told where it is: what has waited for that goes out. */
void udp_neighbour_tell(struct udp *udp, struct context *context, const struct udp_link *link,
			struct ip ip, uint64_t mac, unsigned news);
/* Linked packets that wait no more, not those of the NAPI at hand: counted, freed. */
void udp_waiting_drop(struct udp *udp, struct context *context, struct packet *p);

/* udp_arp.c, udp_nd.c: packets of our own, sent at once. source 0: nobody's; mac 0: to all. */
void udp_arp_ask(struct context *context, const struct udp_link *link, struct ip source,
		 struct ip target, uint64_t mac);
void udp_nd_ask(struct context *context, const struct udp_link *link, struct ip source,
		struct ip target, uint64_t mac);
void udp_nd_announce(struct context *context, const struct udp_link *link, struct ip own);
/* Of whichever family target is. */
void udp_ask(struct context *context, const struct udp_link *link, struct ip target, uint64_t mac);

/* udp_mld.c: that we listen to this IPv6 address's group. */
void udp_mld_tell(struct context *context, const struct udp_link *link, const struct udp_own *own);
/* Control: answers who has asked since the last one. */
void udp_mld_tick(struct udp *udp, struct context *context);

/* udp_headers.c: headers are written right before what they carry. */
struct udp_way {
	const struct udp_link *link;
	struct ip source, target, next_hop;
	uint16_t source_port, target_port;
	uint64_t mac;
};

void udp_headers_write(struct packet *p, uint8_t *payload, uint32_t len, const struct udp_way *way);
/* An IP header without options, of whichever family the addresses are; returns its first byte. */
uint8_t *udp_ip_write(uint8_t *payload, uint32_t len, struct ip from, struct ip to,
		      uint8_t protocol, uint8_t ttl);
/* Makes p the frame around len bytes at ip, whose checksums are complete. */
void udp_frame_write(struct packet *p, uint8_t *ip, uint32_t len, uint64_t to,
		     const struct udp_link *link, bool four);
void udp_ethernet_write(uint8_t *at, uint64_t to, uint64_t from, uint16_t type);
/*
 * udp_route.c. Where packets to way->target leave, and from which address if way->source is 0. 0,
 * or -ENETUNREACH, -EACCES, -EADDRNOTAVAIL, -EAFNOSUPPORT as in napier/udp.h.
 */
int udp_route(const struct udp_net *net, struct udp_way *way, uint16_t scope);
/* Payload bytes that fit. */
uint32_t udp_payload_max(const struct udp_link *link, bool four);
const struct udp_link *udp_link_of(const struct udp_net *net, const struct port *port);
/* Of the network of an address of any port's. */
bool udp_is_broadcast(const struct udp_net *net, struct ip ip);

/* udp_queue.c: from the producers. */
void udp_enqueue(struct napi_udp *socket, struct context *context, struct napi *napi,
		 struct packet **v, uint32_t n);
/* The application: so many frames are no longer the socket's. */
void udp_frames_return(struct napi_udp *s, uint32_t received, uint32_t allocated);
/* It has an error to see. */
void udp_error_set(struct napi_udp *socket, int error);

/* udp_bind.c */
struct udp_endpoint *udp_find(const struct udp *udp, struct ip to, uint16_t port, struct ip from,
			      uint16_t from_port, uint16_t scope);
/* Binds one that is not bound to an ephemeral port of all addresses. Control context. */
int udp_bind_any(struct napi_udp *socket);
/* Control, engine lock held: no packet finds it any more when this returns. */
void udp_unbind(struct napi_udp *socket);

/* udp_socket.c. The port is going: no socket polls it any more. */
void udp_forget_port(struct udp *udp, const struct port *port);
/* All of the handler's. */
void udp_sockets_close(struct udp *udp);

static inline uint32_t udp_payload_in(uint32_t mtu, bool four)
{
	uint32_t headers = UDP_HEADER + (four ? IPV4_HEADER_MIN : IPV6_HEADER);

	return mtu < headers ? 0 : mtu - headers;
}

/* Payload bytes that fit on the way to the endpoint's peer; UINT32_MAX: nobody has said. */
static inline uint32_t udp_payload_path(const struct udp_endpoint *endpoint)
{
	struct udp_endpoint *e = (struct udp_endpoint *)endpoint;
	uint32_t mtu = atomic_load_explicit(&e->path_mtu, memory_order_relaxed);

	return mtu ? udp_payload_in(mtu, ip_is4(e->peer)) : UINT32_MAX;
}

static inline struct ip udp_address_ip(const struct napi_udp_address *a)
{
	return ip_load6(a->ip);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene with the udp handler on mem port a, and frames that the test makes and reads itself, by
 * code that has nothing in common with the handler's:
 *
 *	the test (10.0.0.1, fd00::1)  --  a (10.0.0.2/24, fd00::2/64)  udp  sockets
 */
#ifndef UDP_SCENE_H
#define UDP_SCENE_H

#include "scene.h"

#define UDP_FRAME_MAX 2000

struct udp_scene {
	struct scene s;
	struct handler *udp;
	struct context *context; /* the test's and its sockets' */
	uint8_t mac[6];		 /* of port a */
};

struct frame {
	uint32_t len;
	uint8_t bytes[UDP_FRAME_MAX];
};

/* What a datagram says, as text: "10.0.0.1:1000", "[fd00::1]:1000". */
struct datagram {
	const char *from, *to;
	const void *data;
	uint32_t len;
};

extern const uint8_t peer_mac[6];
extern const char udp_text[11]; /* a payload like any other, with its NUL */

void udp_scene_begin(struct udp_scene *u, bool virtual, uint64_t seed, enum poller poller);
/* Also takes out what is still on its way to the test. */
void udp_scene_end(struct udp_scene *u);

/* Everything right: from peer_mac to port a's. */
void frame_udp(const struct udp_scene *u, struct frame *f, const struct datagram *d);
void frame_arp(const struct udp_scene *u, struct frame *f, unsigned operation, const char *from,
	       const char *to);
/* type: 135 or 136; flags of an advertisement; the option with peer_mac unless from is "::". */
void frame_nd(const struct udp_scene *u, struct frame *f, unsigned type, const char *from,
	      const char *to, const char *target, unsigned flags);
void frame_ping(const struct udp_scene *u, struct frame *f, const char *from, const char *to,
		uint32_t len);
/* Port unreachable about this frame, which the handler sent. */
void frame_unreachable(const struct udp_scene *u, struct frame *f, const struct frame *about);
/* That it was too big for a link of this MTU. */
void frame_too_big(const struct udp_scene *u, struct frame *f, const struct frame *about,
		   unsigned mtu);
/* Sums of the IPv4 header, and of what it or the IPv6 header carries, made right. */
void frame_sums(struct frame *f);
/* 0: right. Of a frame with nothing behind its IP packet. */
unsigned frame_sums_wrong(const struct frame *f);

/* In at port a, and handled. */
void udp_inject(struct udp_scene *u, const struct frame *f);
void udp_inject_flags(struct udp_scene *u, const struct frame *f, uint16_t flags);
/* The next frame that port a sent; false: none. */
bool udp_take(struct udp_scene *u, struct frame *f);
void udp_take_none(struct udp_scene *u);
/* It tells switches, behind a header for them, which groups the handler listens to. */
bool frame_is_mld(const struct frame *f);
/* Answers ARP and ND for the test's addresses, and hands on the first frame that is no such. */
bool udp_take_answering(struct udp_scene *u, struct frame *f);
/* It is this datagram, with right sums, from port a's MAC address to peer_mac. */
void frame_is_udp(const struct udp_scene *u, const struct frame *f, const struct datagram *d);

struct napi_udp *udp_open(struct udp_scene *u, const struct napi_udp_config *config);
struct napi_udp *udp_bound(struct udp_scene *u, const char *local);
struct napi_udp_address udp_address(const char *text);
/* A datagram of udp_text arrives. */
void udp_inject_text(struct udp_scene *u, const char *from, const char *to);
/* So many have arrived for the socket, and are released. */
void udp_got(struct udp_scene *u, struct napi_udp *socket, int wanted);
/* udp_text to this peer, and what the call returns. */
void udp_send_text(struct udp_scene *u, struct napi_udp *socket, const char *peer, int wanted);
/* And it leaves port a, as from this address. */
void udp_sends_to(struct udp_scene *u, struct napi_udp *socket, const char *from, const char *to);
/* The socket's fd can be read. */
bool udp_readable(const struct napi_udp *socket);
uint64_t udp_dropped(struct udp_scene *u, enum drop_reason reason);
/* All reasons but the udp handler's own ones that this is not. */
void udp_dropped_only(struct udp_scene *u, enum drop_reason reason, uint64_t n);

#endif

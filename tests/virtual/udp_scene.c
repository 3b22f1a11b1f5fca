/* SPDX-License-Identifier: BSD-2-Clause */
#include "udp_scene.h"

#include <arpa/inet.h>
#include <poll.h>

const char udp_text[11] = "some bytes";
const uint8_t peer_mac[6] = {0x02, 0, 0, 0, 0, 0x11};

enum { ETHERNET = 14, FOUR = 20, SIX = 40 };

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The plain definition. */
static unsigned sum_of(const uint8_t *at, uint32_t len, unsigned sum)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i & 1 ? at[i] : (unsigned)at[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static bool is4(const struct frame *f)
{
	return get16(f->bytes + 12) == 0x0800;
}

/* Of what the IP header carries, its own field included: 0xffff when it is right. */
static unsigned transport_sum(const struct frame *f)
{
	const uint8_t *ip = f->bytes + ETHERNET;
	uint32_t header = is4(f) ? (ip[0] & 15u) * 4 : SIX;
	uint32_t len = is4(f) ? get16(ip + 2) - header : get16(ip + 4);
	unsigned protocol = is4(f) ? ip[9] : ip[6], sum = 0;

	if (protocol != 1)
		sum = sum_of(ip + (is4(f) ? 12 : 8), is4(f) ? 8 : 32, protocol + len);
	return sum_of(ip + header, len, sum);
}

static uint8_t *sum_field(struct frame *f)
{
	uint8_t *ip = f->bytes + ETHERNET;
	uint32_t header = is4(f) ? (ip[0] & 15u) * 4 : SIX;

	return ip + header + ((is4(f) ? ip[9] : ip[6]) == 17 ? 6 : 2);
}

void frame_sums(struct frame *f)
{
	uint8_t *ip = f->bytes + ETHERNET, *field = sum_field(f);
	unsigned sum;

	if (is4(f)) {
		put16(ip + 10, 0);
		put16(ip + 10, ~sum_of(ip, (ip[0] & 15u) * 4, 0));
	}
	put16(field, 0);
	sum = ~transport_sum(f) & 0xffff;
	put16(field, sum ? sum : 0xffff);
}

unsigned frame_sums_wrong(const struct frame *f)
{
	const uint8_t *ip = f->bytes + ETHERNET;

	return (is4(f) && sum_of(ip, (ip[0] & 15u) * 4, 0) != 0xffff) || transport_sum(f) != 0xffff;
}

struct napi_udp_address udp_address(const char *text)
{
	struct napi_udp_address a;

	if (napi_udp_address_parse(text, &a))
		fail_msg("%s: no address", text);
	return a;
}

static void ethernet(const struct udp_scene *u, struct frame *f, unsigned type)
{
	memset(f, 0, sizeof(*f));
	memcpy(f->bytes, u->mac, 6);
	memcpy(f->bytes + 6, peer_mac, 6);
	put16(f->bytes + 12, type);
}

/* Ethernet and IP headers for so much; returns where that goes. */
static uint8_t *ip_begin(const struct udp_scene *u, struct frame *f, const char *from,
			 const char *to, unsigned protocol, uint32_t len)
{
	bool four = !strchr(from, ':');
	uint8_t *ip = f->bytes + ETHERNET;

	ethernet(u, f, four ? 0x0800 : 0x86dd);
	if (four) {
		ip[0] = 0x45;
		put16(ip + 2, FOUR + len);
		ip[8] = 64;
		ip[9] = (uint8_t)protocol;
		assert_int_equal(inet_pton(AF_INET, from, ip + 12), 1);
		assert_int_equal(inet_pton(AF_INET, to, ip + 16), 1);
		f->len = ETHERNET + FOUR + len;
		return ip + FOUR;
	}
	ip[0] = 0x60;
	put16(ip + 4, len);
	ip[6] = (uint8_t)protocol;
	ip[7] = 64;
	assert_int_equal(inet_pton(AF_INET6, from, ip + 8), 1);
	assert_int_equal(inet_pton(AF_INET6, to, ip + 24), 1);
	f->len = ETHERNET + SIX + len;
	return ip + SIX;
}

/* "10.0.0.1:7" into its parts. */
static unsigned split(const char *text, char ip[64])
{
	const char *colon = strrchr(text, ':');
	size_t skip = text[0] == '[';

	snprintf(ip, 64, "%.*s", (int)(colon - text - 2 * skip), text + skip);
	return (unsigned)atoi(colon + 1);
}

void frame_udp(const struct udp_scene *u, struct frame *f, const struct datagram *d)
{
	char from[64], to[64];
	unsigned from_port = split(d->from, from), to_port = split(d->to, to);
	uint8_t *at = ip_begin(u, f, from, to, 17, 8 + d->len);

	put16(at, from_port);
	put16(at + 2, to_port);
	put16(at + 4, 8 + d->len);
	memcpy(at + 8, d->data, d->len);
	frame_sums(f);
}

void frame_arp(const struct udp_scene *u, struct frame *f, unsigned operation, const char *from,
	       const char *to)
{
	uint8_t *at = f->bytes + ETHERNET;

	ethernet(u, f, 0x0806);
	put16(at, 1);
	put16(at + 2, 0x0800);
	at[4] = 6;
	at[5] = 4;
	put16(at + 6, operation);
	memcpy(at + 8, peer_mac, 6);
	assert_int_equal(inet_pton(AF_INET, from, at + 14), 1);
	assert_int_equal(inet_pton(AF_INET, to, at + 24), 1);
	if (operation == 1)
		memset(f->bytes, 0xff, 6);
	f->len = 60;
}

void frame_nd(const struct udp_scene *u, struct frame *f, unsigned type, const char *from,
	      const char *to, const char *target, unsigned flags)
{
	bool option = strcmp(from, "::") != 0;
	uint8_t *at = ip_begin(u, f, from, to, 58, option ? 32 : 24);

	f->bytes[ETHERNET + 7] = 255;
	if (f->bytes[ETHERNET + 24] == 0xff) {
		f->bytes[0] = f->bytes[1] = 0x33;
		memcpy(f->bytes + 2, f->bytes + ETHERNET + 36, 4);
	}
	at[0] = (uint8_t)type;
	at[4] = (uint8_t)flags;
	assert_int_equal(inet_pton(AF_INET6, target, at + 8), 1);
	if (option) {
		at[24] = type == 135 ? 1 : 2;
		at[25] = 1;
		memcpy(at + 26, peer_mac, 6);
	}
	frame_sums(f);
}

void frame_ping(const struct udp_scene *u, struct frame *f, const char *from, const char *to,
		uint32_t len)
{
	bool four = !strchr(from, ':');
	uint8_t *at = ip_begin(u, f, from, to, four ? 1 : 58, 8 + len);

	at[0] = four ? 8 : 128;
	put16(at + 4, 0x1234);
	for (uint32_t i = 0; i < len; i++)
		at[8 + i] = (uint8_t)i;
	frame_sums(f);
}

/* What it says, and the sums, are the caller's to write. Returns the message. */
static uint8_t *error_begin(const struct udp_scene *u, struct frame *f, const struct frame *about)
{
	bool four = is4(about);
	uint32_t len = about->len - ETHERNET;
	char from[64], to[64];
	const uint8_t *ip = about->bytes + ETHERNET;
	uint8_t *at;

	inet_ntop(four ? AF_INET : AF_INET6, ip + (four ? 16 : 24), from, sizeof(from));
	inet_ntop(four ? AF_INET : AF_INET6, ip + (four ? 12 : 8), to, sizeof(to));
	at = ip_begin(u, f, from, to, four ? 1 : 58, 8 + len);
	memcpy(at + 8, ip, len);
	return at;
}

void frame_unreachable(const struct udp_scene *u, struct frame *f, const struct frame *about)
{
	uint8_t *at = error_begin(u, f, about);

	at[0] = is4(f) ? 3 : 1;
	at[1] = is4(f) ? 3 : 4;
	frame_sums(f);
}

void frame_too_big(const struct udp_scene *u, struct frame *f, const struct frame *about,
		   unsigned mtu)
{
	uint8_t *at = error_begin(u, f, about);

	at[0] = is4(f) ? 3 : 2;
	at[1] = is4(f) ? 4 : 0;
	put16(at + 6, mtu);
	frame_sums(f);
}

void udp_inject_flags(struct udp_scene *u, const struct frame *f, uint16_t flags)
{
	struct packet *p;

	assert_int_equal(packet_alloc(&u->context->cache, &p, 1), 1);
	memcpy(p->data, f->bytes, f->len);
	p->len = p->total = f->len;
	p->flags = flags;
	p->csum_start = p->csum_offset = 0;
	assert_int_equal(mem_port_send(u->s.a, &p, 1), 1);
	scene_run(&u->s, 100 * NSEC_PER_USEC);
}

void udp_inject(struct udp_scene *u, const struct frame *f)
{
	udp_inject_flags(u, f, 0);
}

bool udp_take(struct udp_scene *u, struct frame *f)
{
	struct packet *p;

	if (!mem_port_receive(u->s.a, &p, 1))
		return false;
	assert_true(p->len <= UDP_FRAME_MAX);
	assert_int_equal(p->len, p->total);
	assert_null(p->next);
	f->len = p->len;
	memcpy(f->bytes, p->data, p->len);
	packet_free(&u->context->cache, &p, 1);
	return true;
}

void udp_take_none(struct udp_scene *u)
{
	struct frame f;

	if (udp_take(u, &f))
		fail_msg("a frame of %u bytes and type %04x was sent", f.len, get16(f.bytes + 12));
}

bool frame_is_mld(const struct frame *f)
{
	return !is4(f) && f->bytes[ETHERNET + 6] == 0;
}

bool udp_take_answering(struct udp_scene *u, struct frame *f)
{
	char target[64], asker[64];
	struct frame answer;

	while (udp_take(u, f)) {
		const uint8_t *at = f->bytes + ETHERNET;

		if (get16(f->bytes + 12) == 0x0806) {
			/* Its own announcements are not questions. */
			if (at[7] != 1 || !memcmp(at + 14, at + 24, 4))
				continue;
			inet_ntop(AF_INET, at + 24, target, sizeof(target));
			inet_ntop(AF_INET, at + 14, asker, sizeof(asker));
			frame_arp(u, &answer, 2, target, asker);
			udp_inject(u, &answer);
		} else if (frame_is_mld(f)) {
			continue;
		} else if (!is4(f) && at[6] == 58 && at[SIX] >= 135) {
			inet_ntop(AF_INET6, at + SIX + 8, target, sizeof(target));
			inet_ntop(AF_INET6, at + 8, asker, sizeof(asker));
			if (at[SIX] != 135 || !strcmp(asker, "::"))
				continue;
			frame_nd(u, &answer, 136, target, asker, target, 0x60);
			udp_inject(u, &answer);
		} else {
			return true;
		}
	}
	return false;
}

void frame_is_udp(const struct udp_scene *u, const struct frame *f, const struct datagram *d)
{
	struct frame wanted;

	frame_udp(u, &wanted, d);
	memcpy(wanted.bytes, peer_mac, 6);
	memcpy(wanted.bytes + 6, u->mac, 6);
	/* "Don't fragment" is the one thing that the test's own do not say. */
	if (is4(&wanted)) {
		put16(wanted.bytes + ETHERNET + 6, 0x4000);
		frame_sums(&wanted);
	}
	assert_int_equal(f->len, wanted.len);
	assert_memory_equal(f->bytes, wanted.bytes, wanted.len);
}

struct napi_udp *udp_open(struct udp_scene *u, const struct napi_udp_config *config)
{
	struct napi_udp *socket;
	struct error err = {0};

	if (napi_udp_open(u->udp, config, &socket, &err))
		fail_msg("%s", err.text);
	return socket;
}

struct napi_udp *udp_bound(struct udp_scene *u, const char *local)
{
	struct napi_udp *socket = udp_open(u, NULL);
	struct napi_udp_address a = udp_address(local);

	assert_int_equal(napi_udp_bind(socket, &a), 0);
	return socket;
}

void udp_inject_text(struct udp_scene *u, const char *from, const char *to)
{
	struct datagram d = {from, to, udp_text, sizeof(udp_text)};
	struct frame f;

	frame_udp(u, &f, &d);
	udp_inject(u, &f);
}

void udp_got(struct udp_scene *u, struct napi_udp *socket, int wanted)
{
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	int n = napi_udp_recv(socket, u->context, v, NAPI_UDP_VECTOR_MAX);

	assert_int_equal(n, wanted ? wanted : -EAGAIN);
	if (n > 0)
		napi_udp_release(socket, u->context, v, (uint32_t)n);
}

/* fd can be read, or not. */
bool udp_readable(const struct napi_udp *socket)
{
	struct pollfd p = {.fd = napi_udp_fd(socket), .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

void udp_send_text(struct udp_scene *u, struct napi_udp *socket, const char *peer, int wanted)
{
	struct napi_udp_address a = udp_address(peer);
	int rc = napi_udp_send_copy(socket, u->context, udp_text, sizeof(udp_text), &a);

	if (rc != wanted)
		fail_msg("to %s: %d, not %d", peer, rc, wanted);
}

void udp_sends_to(struct udp_scene *u, struct napi_udp *socket, const char *from, const char *to)
{
	struct datagram d = {from, to, udp_text, sizeof(udp_text)};
	struct frame f;

	udp_send_text(u, socket, to, sizeof(udp_text));
	assert_true(udp_take_answering(u, &f));
	frame_is_udp(u, &f, &d);
}

uint64_t udp_dropped(struct udp_scene *u, enum drop_reason reason)
{
	return port_sum(u->s.a, offsetof(struct napi_counters, dropped) + sizeof(counter) * reason);
}

void udp_dropped_only(struct udp_scene *u, enum drop_reason reason, uint64_t n)
{
	for (int i = 0; i < DROP_MAX; i++) {
		uint64_t is = udp_dropped(u, (enum drop_reason)i),
			 wanted = i == (int)reason ? n : 0;

		if (is != wanted)
			fail_msg("%s: %lu, not %lu", drop_name((enum drop_reason)i),
				 (unsigned long)is, (unsigned long)wanted);
	}
}

void udp_scene_begin(struct udp_scene *u, bool virtual, uint64_t seed, enum poller poller)
{
	struct error err = {0};
	struct frame f;

	scene_begin(&u->s, virtual, seed, poller);
	assert_int_equal(engine_context_open(u->s.engine, &u->context), 0);
	if (udp_handler_create(u->s.engine, NULL, &u->udp, &err) ||
	    engine_handler_set(u->s.engine, u->s.a, u->udp, &err) ||
	    udp_address_add(u->udp, u->s.a, "10.0.0.2/24", &err) ||
	    udp_address_add(u->udp, u->s.a, "fd00::2/64", &err))
		fail_msg("%s", err.text);
	assert_int_equal(udp_port_mac(u->udp, u->s.a, u->mac), 0);
	/* The first tick. */
	scene_run(&u->s, NSEC_PER_MSEC);
	/*
	 * What it says of itself: one announcement; two addresses whose groups it listens to, and
	 * the question whether they are taken.
	 */
	for (int i = 0; i < 5; i++)
		assert_true(udp_take(u, &f));
	/* On the host a second may have passed: the addresses are its own then, and it says so. */
	if (virtual)
		udp_take_none(u);
}

void udp_scene_end(struct udp_scene *u)
{
	struct frame f;

	while (udp_take(u, &f))
		;
	engine_context_close(u->context);
	scene_end(&u->s);
}

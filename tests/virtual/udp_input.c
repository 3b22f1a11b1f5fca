/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the udp handler makes of frames, one at a time: the right ones reach their socket or get
 * their answer, the wrong ones end under the reason that says why, and every one is accounted for.
 */
#include "udp_scene.h"

static const char text[] = "some bytes";

static const struct datagram four = {"10.0.0.1:1000", "10.0.0.2:7", text, sizeof(text)};
static const struct datagram six = {"[fd00::1]:1000", "[fd00::2]:7", text, sizeof(text)};

static int receive(struct udp_scene *u, struct napi_udp *socket, const struct datagram *wanted)
{
	struct napi_udp_message m;
	struct napi_udp_address from, to;
	int n = napi_udp_recv(socket, u->context, &m, 1);

	if (n != 1)
		return n;
	from = udp_address(wanted->from);
	to = udp_address(wanted->to);
	assert_int_equal(m.len, wanted->len);
	assert_memory_equal(m.data, wanted->data, wanted->len);
	assert_memory_equal(&m.peer, &from, sizeof(from));
	assert_memory_equal(&m.local, &to, sizeof(to));
	assert_int_equal(m.in_port, u->s.a->index);
	assert_int_equal(m.in_queue, 0);
	assert_true(m.stamp > 0 && m.stamp <= machine_now(u->s.machine));
	assert_true(m.room >= 1400);
	napi_udp_release(socket, u->context, &m, 1);
	return 1;
}

static void both_families_arrive(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	frame_udp(&u, &f, &four);
	udp_inject(&u, &f);
	assert_int_equal(receive(&u, socket, &four), 1);
	frame_udp(&u, &f, &six);
	udp_inject(&u, &f);
	assert_int_equal(receive(&u, socket, &six), 1);
	assert_int_equal(receive(&u, socket, &six), -EAGAIN);
	udp_dropped_only(&u, DROP_MAX, 0);
	assert_int_equal(PORT_SUM(u.s.a, delivered), 2);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* No payload, the longest, and what the network has padded. */
static void sizes(void **state)
{
	static uint8_t data[1472];
	const uint32_t lengths[] = {0, 1, 17, 18, 1471, 1472};
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "0.0.0.0:7");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct datagram d = {four.from, four.to, data, lengths[i]};

		frame_udp(&u, &f, &d);
		if (f.len < 60) {
			memset(f.bytes + f.len, 0xa5, 60 - f.len);
			f.len = 60;
		}
		udp_inject(&u, &f);
		assert_int_equal(receive(&u, socket, &d), 1);
	}
	udp_dropped_only(&u, DROP_MAX, 0);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* A header that is longer than the shortest, of either family. */
static void options_are_skipped(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;
	uint8_t *ip = f.bytes + 14;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	frame_udp(&u, &f, &four);
	memmove(ip + 32, ip + 20, f.len - 34);
	memset(ip + 20, 1, 12); /* no operation */
	f.len += 12;
	ip[0] = 0x48;
	ip[3] += 12;
	frame_sums(&f);
	udp_inject(&u, &f);
	assert_int_equal(receive(&u, socket, &four), 1);

	/* Hop-by-hop, routing that has ended, destination options: the sum does not know of them.
	 */
	frame_udp(&u, &f, &six);
	memmove(ip + 40 + 24, ip + 40, f.len - 54);
	memset(ip + 40, 0, 24);
	f.len += 24;
	ip[5] += 24;
	ip[6] = 0;
	ip[40] = 43;
	ip[48] = 60;
	ip[56] = 17;
	udp_inject(&u, &f);
	assert_int_equal(receive(&u, socket, &six), 1);
	udp_dropped_only(&u, DROP_MAX, 0);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* Bytes of a right frame that are made wrong: at, value; sums are made right again where asked. */
struct wrong {
	const char *what;
	const struct datagram *d;
	enum drop_reason reason;
	bool sums;
	uint32_t at;
	int value; /* a byte; -1: the frame ends there */
};

#define IP 14
static const struct wrong wrongs[] = {
	{"no Ethernet header", &four, DROP_TOO_SHORT, false, 13, -1},
	{"another's MAC address", &four, DROP_UDP_NOT_OURS, false, 5, 0x77},
	{"sent by a group", &four, DROP_UDP_MALFORMED, false, 6, 0x03},
	{"another type", &four, DROP_UDP_NOT_OURS, false, 13, 0x99},
	{"a tag", &four, DROP_UDP_NOT_OURS, false, 12, 0x81},
	{"half an IPv4 header", &four, DROP_UDP_MALFORMED, false, IP + 19, -1},
	{"IPv4 of version 5", &four, DROP_UDP_MALFORMED, false, IP, 0x55},
	{"a header of 16 bytes", &four, DROP_UDP_MALFORMED, false, IP, 0x44},
	{"a header beyond the packet", &four, DROP_UDP_MALFORMED, false, IP, 0x4f},
	{"a packet shorter than its header", &four, DROP_UDP_MALFORMED, false, IP + 3, 19},
	{"a packet longer than the frame", &four, DROP_UDP_MALFORMED, false, IP + 2, 1},
	{"a wrong header sum", &four, DROP_UDP_CHECKSUM, false, IP + 8, 63},
	{"first fragment", &four, DROP_UDP_FRAGMENT, true, IP + 6, 0x20},
	{"later fragment", &four, DROP_UDP_FRAGMENT, true, IP + 7, 1},
	{"another protocol", &four, DROP_UDP_NOT_OURS, true, IP + 9, 6},
	{"another's address", &four, DROP_UDP_NOT_OURS, true, IP + 19, 3},
	{"a broadcast address", &four, DROP_UDP_NOT_OURS, true, IP + 19, 255},
	{"from a group", &four, DROP_UDP_MALFORMED, true, IP + 12, 224},
	{"from loopback", &four, DROP_UDP_MALFORMED, true, IP + 12, 127},
	{"from its own network's broadcast address", &four, DROP_UDP_MALFORMED, true, IP + 15, 255},
	{"from network 0", &four, DROP_UDP_MALFORMED, true, IP + 12, 0},
	{"a datagram of 7 bytes", &four, DROP_UDP_MALFORMED, false, IP + 25, 7},
	{"a datagram of none", &four, DROP_UDP_MALFORMED, false, IP + 25, 0},
	{"a datagram beyond the packet", &four, DROP_UDP_MALFORMED, false, IP + 24, 1},
	{"a wrong sum", &four, DROP_UDP_CHECKSUM, false, IP + 30, 'x'},
	{"a port that nobody has", &four, DROP_UDP_NO_SOCKET, true, IP + 23, 8},
	{"half an IPv6 header", &six, DROP_UDP_MALFORMED, false, IP + 39, -1},
	{"IPv6 of version 4", &six, DROP_UDP_MALFORMED, false, IP, 0x40},
	{"IPv6 longer than the frame", &six, DROP_UDP_MALFORMED, false, IP + 4, 1},
	{"IPv6 of no length", &six, DROP_UDP_MALFORMED, false, IP + 5, 0},
	{"another's IPv6 address", &six, DROP_UDP_NOT_OURS, true, IP + 39, 3},
	{"from an IPv6 group", &six, DROP_UDP_MALFORMED, true, IP + 8, 0xff},
	{"an IPv6 fragment", &six, DROP_UDP_FRAGMENT, false, IP + 6, 44},
	{"an extension beyond the packet", &six, DROP_UDP_MALFORMED, false, IP + 6, 60},
	{"an unknown header", &six, DROP_UDP_NOT_OURS, false, IP + 6, 59},
	{"a wrong IPv6 sum", &six, DROP_UDP_CHECKSUM, false, IP + 50, 'x'},
	{"an IPv6 port that nobody has", &six, DROP_UDP_NO_SOCKET, true, IP + 43, 8},
};

static void wrong_frames(void **state)
{
	struct napi_udp *socket;
	struct napi_udp_message m;
	struct udp_scene u;
	struct frame f;

	(void)state;
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		const struct wrong *w = &wrongs[i];

		udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
		socket = udp_bound(&u, "[::]:7");
		frame_udp(&u, &f, w->d);
		if (w->value < 0)
			f.len = w->at;
		else
			f.bytes[w->at] = (uint8_t)w->value;
		if (w->sums)
			frame_sums(&f);
		udp_inject(&u, &f);
		if (udp_dropped(&u, w->reason) != 1)
			print_error("%s:\n", w->what);
		udp_dropped_only(&u, w->reason, 1);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		napi_udp_close(socket);
		udp_scene_end(&u);
	}
}

/* IPv4 may do without a sum, IPv6 may not; and who vouches for it is believed. */
static void sums(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	frame_udp(&u, &f, &four);
	memset(f.bytes + 14 + 26, 0, 2);
	udp_inject(&u, &f);
	assert_int_equal(receive(&u, socket, &four), 1);
	memset(f.bytes + 14 + 26, 0x11, 2);
	udp_inject_flags(&u, &f, PACKET_CSUM_VALID);
	assert_int_equal(receive(&u, socket, &four), 1);
	udp_inject_flags(&u, &f, PACKET_CSUM_PARTIAL);
	assert_int_equal(receive(&u, socket, &four), 1);
	udp_dropped_only(&u, DROP_MAX, 0);
	frame_udp(&u, &f, &six);
	memset(f.bytes + 14 + 46, 0, 2);
	udp_inject(&u, &f);
	udp_dropped_only(&u, DROP_UDP_CHECKSUM, 1);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* A super-packet from a sender on this host, of three datagrams: each is what was meant. */
static void super_packet(void **state)
{
	static uint8_t data[250];
	struct datagram whole = {four.from, four.to, data, sizeof(data)};
	struct napi_udp *socket;
	struct udp_scene u;
	struct packet *p;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 3);
	frame_udp(&u, &f, &whole);
	assert_int_equal(packet_alloc(&u.context->cache, &p, 1), 1);
	memcpy(p->data, f.bytes, f.len);
	p->len = p->total = f.len;
	p->flags = PACKET_GSO | PACKET_CSUM_PARTIAL;
	p->gso_type = 5; /* VIRTIO_NET_HDR_GSO_UDP_L4 */
	p->gso_size = 100;
	p->csum_start = 34;
	p->csum_offset = 6;
	assert_int_equal(mem_port_send(u.s.a, &p, 1), 1);
	scene_run(&u.s, NSEC_PER_MSEC);
	for (uint32_t at = 0; at < sizeof(data); at += 100) {
		struct datagram part = {four.from, four.to, data + at, at < 200 ? 100 : 50};

		assert_int_equal(receive(&u, socket, &part), 1);
	}
	udp_dropped_only(&u, DROP_MAX, 0);
	assert_int_equal(PORT_SUM(u.s.a, delivered), 3);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* What GRO has merged, where somebody has turned it on, is taken apart again. */
static void merged(void **state)
{
	struct queue_settings on = {.gro_set = true, .gro = GRO_ON};
	struct napi_udp *socket;
	struct packet *v[20];
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_queue_set(u.s.engine, "a", -1, &on, NULL, NULL), 0);
	socket = udp_bound(&u, "[::]:7");
	frame_udp(&u, &f, &four);
	f.bytes[14 + 6] = 0x40; /* or their ids would have to count */
	frame_sums(&f);
	assert_int_equal(packet_alloc(&u.context->cache, v, 20), 20);
	for (int i = 0; i < 20; i++) {
		memcpy(v[i]->data, f.bytes, f.len);
		v[i]->len = v[i]->total = f.len;
	}
	assert_int_equal(mem_port_send(u.s.a, v, 20), 20);
	scene_run(&u.s, NSEC_PER_MSEC);
	assert_true(PORT_SUM(u.s.a, merged) > 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(receive(&u, socket, &four), 1);
	udp_dropped_only(&u, DROP_MAX, 0);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* In two frames, as a port with jumbo frames receives it: the second is what the link has padded.
 */
static void inject_long(struct udp_scene *u, const struct frame *f)
{
	struct packet *v[2];

	assert_int_equal(packet_alloc(&u->context->cache, v, 2), 2);
	memcpy(v[0]->data, f->bytes, f->len);
	memset(v[0]->data + f->len, 0, 1792 - f->len);
	v[0]->len = 1792;
	v[1]->len = v[1]->total = 100;
	v[0]->total = v[0]->len + v[1]->len;
	v[0]->next = v[1];
	assert_int_equal(mem_port_send(u->s.a, v, 1), 1);
	scene_run(&u->s, 100 * NSEC_PER_USEC);
}

/* Whatever it asks: neither answered nor delivered, and none of its frames is lost (scene_end). */
static void longer_than_a_frame(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	frame_udp(&u, &f, &six);
	inject_long(&u, &f);
	frame_arp(&u, &f, 1, "10.0.0.1", "10.0.0.2");
	inject_long(&u, &f);
	frame_nd(&u, &f, 135, "fd00::1", "fd00::2", "fd00::2", 0);
	inject_long(&u, &f);
	frame_ping(&u, &f, "fd00::1", "fd00::2", 8);
	inject_long(&u, &f);
	udp_take_none(&u);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 4);
	assert_int_equal(receive(&u, socket, &six), -EAGAIN);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* More extension headers than are looked behind. */
static void endless_extensions(void **state)
{
	struct udp_scene u;
	struct frame f;
	uint8_t *ip = f.bytes + 14;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (uint32_t count = 8; count <= 9; count++) {
		frame_udp(&u, &f, &six);
		memmove(ip + 40 + 8 * count, ip + 40, f.len - 54);
		memset(ip + 40, 0, 8 * count);
		f.len += 8 * count;
		ip[5] += 8 * count;
		ip[6] = 60;
		for (uint32_t i = 0; i < count; i++)
			ip[40 + 8 * i] = i + 1 < count ? 60 : 17;
		udp_inject(&u, &f);
	}
	assert_int_equal(udp_dropped(&u, DROP_UDP_NO_SOCKET), 1);
	assert_int_equal(udp_dropped(&u, DROP_UDP_MALFORMED), 1);
	udp_scene_end(&u);
}

static void arp_is_answered(void **state)
{
	static const char *const nobody[] = {"10.0.0.255", "224.0.0.1", "127.0.0.1"};
	struct frame f, wanted;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	frame_arp(&u, &f, 1, "10.0.0.1", "10.0.0.2");
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	/* The same from its side. */
	frame_arp(&u, &wanted, 2, "10.0.0.2", "10.0.0.1");
	memcpy(wanted.bytes, peer_mac, 6);
	memcpy(wanted.bytes + 6, u.mac, 6);
	memcpy(wanted.bytes + 14 + 8, u.mac, 6);
	memcpy(wanted.bytes + 14 + 18, peer_mac, 6);
	assert_int_equal(f.len, 60);
	assert_memory_equal(f.bytes, wanted.bytes, 60);
	/* Who looks whether an address is taken hears that it is. */
	frame_arp(&u, &f, 1, "0.0.0.0", "10.0.0.2");
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	frame_arp(&u, &f, 1, "10.0.0.1", "10.0.0.3");
	udp_inject(&u, &f);
	udp_take_none(&u);
	/* Nobody has such an address. */
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		frame_arp(&u, &f, 1, nobody[i], "10.0.0.2");
		udp_inject(&u, &f);
		udp_take_none(&u);
	}
	frame_arp(&u, &f, 1, "10.0.0.1", "10.0.0.3");
	f.bytes[14 + 4] = 7;
	udp_inject(&u, &f);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 1);
	udp_scene_end(&u);
}

/* Another with our IPv4 address: said, and the others are told that it is ours. */
static void ipv4_conflict(void **state)
{
	struct udp_stats stats;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	frame_arp(&u, &f, 1, "10.0.0.2", "10.0.0.2");
	udp_inject(&u, &f);
	udp_take_none(&u);
	scene_run(&u.s, 2 * NSEC_PER_SEC);
	udp_stats_read(u.udp, &stats);
	assert_int_equal(stats.conflicts, 1);
	assert_non_null(scene_logged(&u.s, "another on this link has the address 10.0.0.2"));
	do
		assert_true(udp_take(&u, &f));
	while (f.bytes[13] != 0x06);
	assert_memory_equal(f.bytes + 14 + 14, "\12\0\0\2", 4);
	udp_scene_end(&u);
}

static void nd_is_answered(void **state)
{
	static const uint8_t all[6] = {0x33, 0x33, 0, 0, 0, 1};
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	/* While it may yet turn out to be another's it overrides nothing. */
	frame_nd(&u, &f, 135, "fd00::1", "ff02::1:ff00:2", "fd00::2", 0);
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	assert_int_equal(f.bytes[58], 0x40);
	scene_run(&u.s, 3 * NSEC_PER_SEC);
	while (udp_take(&u, &f))
		;
	frame_nd(&u, &f, 135, "fd00::1", "ff02::1:ff00:2", "fd00::2", 0);
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	assert_int_equal(f.len, 86);
	assert_memory_equal(f.bytes, peer_mac, 6);
	assert_int_equal(f.bytes[14 + 7], 255);
	assert_int_equal(f.bytes[54], 136);
	assert_int_equal(f.bytes[58], 0x60); /* solicited, override */
	assert_memory_equal(f.bytes + 54 + 26, u.mac, 6);
	assert_int_equal(frame_sums_wrong(&f), 0);
	/* Who looks whether the address is taken: to all, not solicited. */
	frame_nd(&u, &f, 135, "::", "ff02::1:ff00:2", "fd00::2", 0);
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	assert_memory_equal(f.bytes, all, 6);
	assert_int_equal(f.bytes[58], 0x20);
	assert_int_equal(frame_sums_wrong(&f), 0);
	/* Not from this link. */
	frame_nd(&u, &f, 135, "fd00::1", "ff02::1:ff00:2", "fd00::2", 0);
	f.bytes[14 + 7] = 254;
	udp_inject(&u, &f);
	/* An option of no length. */
	frame_nd(&u, &f, 135, "fd00::1", "ff02::1:ff00:2", "fd00::2", 0);
	f.bytes[54 + 25] = 0;
	frame_sums(&f);
	udp_inject(&u, &f);
	udp_take_none(&u);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 2);
	udp_scene_end(&u);
}

/* Answered, or asked the same, within a second: it is not ours. */
static void duplicate(bool asked)
{
	struct napi_udp_address a = udp_address("[fd00::2]:7");
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	if (asked)
		frame_nd(&u, &f, 135, "::", "ff02::1:ff00:2", "fd00::2", 0);
	else
		frame_nd(&u, &f, 136, "fd00::2", "ff02::1", "fd00::2", 0x20);
	udp_inject(&u, &f);
	scene_run(&u.s, 3 * NSEC_PER_SEC);
	assert_non_null(scene_logged(&u.s, "address fd00::2 is another's on this link: given up"));
	socket = udp_open(&u, NULL);
	assert_int_equal(napi_udp_bind(socket, &a), -EADDRNOTAVAIL);
	a = udp_address("10.0.0.2:7");
	assert_int_equal(napi_udp_bind(socket, &a), 0);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

static void duplicate_answers(void **state)
{
	(void)state;
	duplicate(false);
}

static void duplicate_asks(void **state)
{
	(void)state;
	duplicate(true);
}

static void pings(void **state)
{
	struct frame f, sent;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (uint32_t len = 0; len < 1400; len += 349) {
		for (int i = 0; i < 2; i++) {
			uint32_t header = i ? 40 : 20;

			frame_ping(&u, &sent, i ? "fd00::1" : "10.0.0.1",
				   i ? "fd00::2" : "10.0.0.2", len);
			udp_inject(&u, &sent);
			assert_true(udp_take(&u, &f));
			assert_int_equal(f.len, sent.len);
			assert_memory_equal(f.bytes, peer_mac, 6);
			assert_int_equal(f.bytes[14 + header], i ? 129 : 0);
			assert_int_equal(frame_sums_wrong(&f), 0);
			assert_memory_equal(f.bytes + 14 + header + 4, sent.bytes + 14 + header + 4,
					    len + 4);
		}
	}
	udp_dropped_only(&u, DROP_MAX, 0);
	udp_scene_end(&u);
}

/*
 * An answer to a broadcast address would go to all. One of any port's networks is meant; where a
 * prefix has but two addresses, or one, both are hosts'.
 */
static void from_broadcast(void **state)
{
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(engine_handler_set(u.s.engine, u.s.b, u.udp, NULL), 0);
	assert_int_equal(udp_address_add(u.udp, u.s.b, "10.9.0.2/16", NULL), 0);
	assert_int_equal(udp_address_add(u.udp, u.s.b, "10.8.0.2/31", NULL), 0);
	frame_ping(&u, &f, "10.0.0.255", "10.0.0.2", 8);
	udp_inject(&u, &f);
	frame_ping(&u, &f, "10.9.255.255", "10.0.0.2", 8);
	udp_inject(&u, &f);
	udp_take_none(&u);
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 2);
	frame_ping(&u, &f, "10.9.0.255", "10.0.0.2", 8);
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	frame_ping(&u, &f, "10.8.0.3", "10.0.0.2", 8);
	udp_inject(&u, &f);
	assert_true(udp_take(&u, &f));
	udp_dropped_only(&u, DROP_UDP_MALFORMED, 2);
	udp_scene_end(&u);
}

/* As many a second as are allowed, and no more; then it goes on. */
static void ping_flood(void **state)
{
	struct udp_stats stats;
	uint32_t answered = 0;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	frame_ping(&u, &f, "10.0.0.1", "10.0.0.2", 56);
	/* Well behind a tick. */
	scene_run(&u.s, NSEC_PER_SEC + 50 * NSEC_PER_MSEC);
	for (int i = 0; i < 1500; i++) {
		struct frame answer;

		udp_inject(&u, &f);
		while (udp_take(&u, &answer))
			answered += answer.bytes[12] == 8 && answer.bytes[13] == 0;
	}
	assert_int_equal(answered, 1000);
	assert_int_equal(udp_dropped(&u, DROP_UDP_ECHO_LIMIT), 500);
	udp_stats_read(u.udp, &stats);
	assert_int_equal(stats.echoes, 1000);
	scene_run(&u.s, NSEC_PER_SEC);
	udp_inject(&u, &f);
	assert_int_equal(udp_dropped(&u, DROP_UDP_ECHO_LIMIT), 500);
	udp_scene_end(&u);
}

/* A port that nobody has: said, with the packet quoted, at most so often. */
static void unreachable(void **state)
{
	static uint8_t data[1400];
	struct udp_scene u;
	struct frame f, about;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (int i = 0; i < 2; i++) {
		uint32_t header = i ? 40 : 20, whole, quoted;
		struct datagram d = i ? six : four;

		d.data = data;
		d.len = 1400;
		frame_udp(&u, &about, &d);
		udp_inject(&u, &about);
		assert_true(udp_take(&u, &f));
		assert_memory_equal(f.bytes, peer_mac, 6);
		assert_int_equal(f.bytes[14 + header], i ? 1 : 3);
		assert_int_equal(f.bytes[14 + header + 1], i ? 4 : 3);
		assert_int_equal(frame_sums_wrong(&f), 0);
		whole = f.len - 14;
		quoted = whole - header - 8;
		assert_int_equal(whole, i ? 1280 : 576);
		assert_memory_equal(f.bytes + 14 + header + 8, about.bytes + 14, quoted);
	}
	assert_int_equal(udp_dropped(&u, DROP_UDP_NO_SOCKET), 2);
	assert_int_equal(PORT_SUM(u.s.a, cloned), 2);
	for (int i = 0; i < 200; i++)
		udp_inject(&u, &about);
	for (int i = 0; i < 98; i++)
		assert_true(udp_take(&u, &f));
	udp_take_none(&u);
	assert_int_equal(udp_dropped(&u, DROP_UDP_NO_SOCKET), 202);
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_families_arrive),
		cmocka_unit_test(sizes),
		cmocka_unit_test(options_are_skipped),
		cmocka_unit_test(wrong_frames),
		cmocka_unit_test(sums),
		cmocka_unit_test(super_packet),
		cmocka_unit_test(merged),
		cmocka_unit_test(longer_than_a_frame),
		cmocka_unit_test(endless_extensions),
		cmocka_unit_test(arp_is_answered),
		cmocka_unit_test(ipv4_conflict),
		cmocka_unit_test(nd_is_answered),
		cmocka_unit_test(duplicate_answers),
		cmocka_unit_test(duplicate_asks),
		cmocka_unit_test(pings),
		cmocka_unit_test(from_broadcast),
		cmocka_unit_test(ping_flood),
		cmocka_unit_test(unreachable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

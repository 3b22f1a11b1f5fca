/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets: what they are bound and connected to, their limits, what they send, and their end. */
#include "udp_scene.h"

#include <handler/udp.h>

#include <poll.h>

static const char text[] = "some bytes";

static void bind_is(struct udp_scene *u, const char *first, const char *second, int wanted)
{
	struct napi_udp *a = udp_bound(u, first), *b = udp_open(u, NULL);
	struct napi_udp_address address = udp_address(second);
	int rc = napi_udp_bind(b, &address);

	if (rc != wanted)
		fail_msg("%s after %s: %d, not %d", second, first, rc, wanted);
	napi_udp_close(b);
	napi_udp_close(a);
}

static void bind_errors(void **state)
{
	struct napi_udp_address a;
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.3/24", NULL), 0);
	bind_is(&u, "10.0.0.2:7", "10.0.0.2:7", -EADDRINUSE);
	bind_is(&u, "10.0.0.2:7", "10.0.0.3:7", 0);
	bind_is(&u, "10.0.0.2:7", "10.0.0.2:8", 0);
	bind_is(&u, "10.0.0.2:7", "[fd00::2]:7", 0);
	bind_is(&u, "0.0.0.0:7", "10.0.0.2:7", -EADDRINUSE);
	bind_is(&u, "10.0.0.2:7", "0.0.0.0:7", -EADDRINUSE);
	bind_is(&u, "0.0.0.0:7", "[fd00::2]:7", 0);
	bind_is(&u, "[::]:7", "10.0.0.2:7", -EADDRINUSE);
	bind_is(&u, "[fd00::2]:7", "[::]:7", -EADDRINUSE);
	bind_is(&u, "[::]:7", "0.0.0.0:7", -EADDRINUSE);
	bind_is(&u, "10.0.0.2:7", "10.0.0.9:7", -EADDRNOTAVAIL);
	bind_is(&u, "10.0.0.2:7", "[fd00::9]:7", -EADDRNOTAVAIL);
	bind_is(&u, "10.0.0.2:7", "224.0.0.1:7", -EADDRNOTAVAIL);
	/* 1024 buckets: the same one is not the same port. */
	bind_is(&u, "10.0.0.2:7", "10.0.0.2:1031", 0);
	socket = udp_bound(&u, "10.0.0.2:7");
	a = udp_address("10.0.0.2:8");
	assert_int_equal(napi_udp_bind(socket, &a), -EINVAL);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* Any port: each time another, and none that is taken. */
static void ephemeral_ports(void **state)
{
	struct napi_udp_config small = {.receive_max = 1, .send_max = 1};
	struct napi_udp_address a, any = udp_address("0.0.0.0:0");
	static uint8_t seen[65536];
	static struct napi_udp *socket[500];
	struct udp_scene u;

	(void)state;
	memset(seen, 0, sizeof(seen));
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (int i = 0; i < 500; i++) {
		socket[i] = udp_open(&u, &small);
		assert_int_equal(napi_udp_bind(socket[i], &any), 0);
		napi_udp_local(socket[i], &a);
		assert_in_range(a.port, 32768, 60999);
		assert_int_equal(seen[a.port]++, 0);
	}
	for (int i = 0; i < 500; i++)
		napi_udp_close(socket[i]);
	udp_scene_end(&u);
}

static void connect_is(struct udp_scene *u, const char *local, const char *peer, int wanted)
{
	struct napi_udp_address a = udp_address(peer), is;
	struct napi_udp *socket = udp_bound(u, local);
	int rc = napi_udp_connect(socket, &a);

	if (rc != wanted)
		fail_msg("%s from %s: %d, not %d", peer, local, rc, wanted);
	napi_udp_peer(socket, &is);
	assert_int_equal(is.port, rc ? 0 : a.port);
	napi_udp_close(socket);
}

static void connect_errors(void **state)
{
	struct napi_udp_address a = udp_address("10.0.0.1:5"), is;
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	connect_is(&u, "[::]:7", "10.0.0.1:5", 0);
	connect_is(&u, "[::]:7", "[fd00::1]:5", 0);
	connect_is(&u, "[::]:7", "10.0.0.1:0", -EINVAL);
	connect_is(&u, "[::]:7", "10.0.1.1:5", -ENETUNREACH);
	connect_is(&u, "[::]:7", "[fd01::1]:5", -ENETUNREACH);
	connect_is(&u, "[::]:7", "0.0.0.0:5", -ENETUNREACH);
	connect_is(&u, "[::]:7", "10.0.0.2:5", -ENETUNREACH);
	connect_is(&u, "[::]:7", "10.0.0.255:5", -EACCES);
	connect_is(&u, "[::]:7", "255.255.255.255:5", -EACCES);
	connect_is(&u, "[::]:7", "[ff02::1]:5", -EACCES);
	connect_is(&u, "0.0.0.0:7", "[fd00::1]:5", -EAFNOSUPPORT);
	connect_is(&u, "[fd00::2]:7", "10.0.0.1:5", -EAFNOSUPPORT);
	connect_is(&u, "10.0.0.2:7", "[fd00::1]:5", -EAFNOSUPPORT);
	/* Binds what is not bound; the local address is the one that it sends from. */
	socket = udp_open(&u, NULL);
	assert_int_equal(napi_udp_connect(socket, NULL), 0);
	assert_int_equal(napi_udp_connect(socket, &a), 0);
	napi_udp_local(socket, &is);
	assert_true(is.port >= 32768);
	is.port = 0;
	a = udp_address("10.0.0.2:0");
	assert_memory_equal(&is, &a, sizeof(a));
	assert_int_equal(napi_udp_connect(socket, NULL), 0);
	napi_udp_local(socket, &is);
	is.port = 0;
	a = udp_address("[::]:0");
	assert_memory_equal(&is, &a, sizeof(a));
	napi_udp_close(socket);
	udp_scene_end(&u);
}

static void address_text(void **state)
{
	static const char *const good[] = {"10.0.0.2:7", "[fd00::2]:7", "[::]:0", "0.0.0.0:65535",
					   "[fe80::1%3]:9"};
	static const char *const bad[] = {"",
					  "10.0.0.2",
					  "10.0.0.2:",
					  ":7",
					  "10.0.0:7",
					  "fd00::2:7",
					  "[fd00::2]7",
					  "[fd00::2:7",
					  "10.0.0.2:65536",
					  "10.0.0.2:-1",
					  "10.0.0.2:7x",
					  "[fe80::1%eth0]:7",
					  "[]:7"};
	struct napi_udp_address a;
	char out[UDP_ADDRESS_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(napi_udp_address_parse(good[i], &a), 0);
		napi_udp_address_format(&a, out, sizeof(out));
		assert_string_equal(out, good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (napi_udp_address_parse(bad[i], &a) != -EINVAL)
			fail_msg("\"%s\" is taken for an address", bad[i]);
}

static void inject_udp(struct udp_scene *u, const char *from, const char *to)
{
	struct datagram d = {from, to, text, sizeof(text)};
	struct frame f;

	frame_udp(u, &f, &d);
	udp_inject(u, &f);
}

static void got(struct udp_scene *u, struct napi_udp *socket, int wanted)
{
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	int n = napi_udp_recv(socket, u->context, v, NAPI_UDP_VECTOR_MAX);

	assert_int_equal(n, wanted ? wanted : -EAGAIN);
	if (n > 0)
		napi_udp_release(socket, u->context, v, (uint32_t)n);
}

/* Of each family, by what it is bound to and connected to. */
static void whose_it_is(void **state)
{
	struct napi_udp_address peer = udp_address("10.0.0.1:1000");
	struct napi_udp *all6, *one6, *all4;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	all4 = udp_bound(&u, "0.0.0.0:7");
	one6 = udp_bound(&u, "[fd00::2]:7");
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	got(&u, all4, 1);
	inject_udp(&u, "[fd00::1]:1000", "[fd00::2]:7");
	got(&u, one6, 1);
	napi_udp_close(all4);
	napi_udp_close(one6);
	all6 = udp_bound(&u, "[::]:7");
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	inject_udp(&u, "[fd00::1]:1000", "[fd00::2]:7");
	got(&u, all6, 2);
	/* Connected: from there, and from nobody else. */
	assert_int_equal(napi_udp_connect(all6, &peer), 0);
	inject_udp(&u, "10.0.0.1:1001", "10.0.0.2:7");
	inject_udp(&u, "10.0.0.9:1000", "10.0.0.2:7");
	inject_udp(&u, "[fd00::1]:1000", "[fd00::2]:7");
	got(&u, all6, 0);
	udp_dropped_only(&u, DROP_UDP_NO_SOCKET, 3);
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	got(&u, all6, 1);
	assert_int_equal(napi_udp_connect(all6, NULL), 0);
	inject_udp(&u, "10.0.0.9:1000", "10.0.0.2:7");
	got(&u, all6, 1);
	napi_udp_close(all6);
	udp_scene_end(&u);
}

/* What stands in the queue and what the application has are limited together, and counted. */
static void receive_limit(void **state)
{
	struct napi_udp_config config = {.receive_max = 10, .send_max = 3};
	struct napi_udp_address a = udp_address("10.0.0.2:7");
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX], w[NAPI_UDP_VECTOR_MAX];
	struct napi_udp_stats stats;
	struct napi_udp *socket, *other;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_open(&u, &config);
	other = udp_bound(&u, "10.0.0.2:8");
	assert_int_equal(napi_udp_bind(socket, &a), 0);
	for (int i = 0; i < 15; i++)
		inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_dropped_only(&u, DROP_UDP_QUEUE_FULL, 5);
	assert_int_equal(napi_udp_recv(socket, u.context, v, 4), 4);
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.queued, 6);
	assert_int_equal(stats.held, 4);
	assert_int_equal(stats.dropped, 5);
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_dropped_only(&u, DROP_UDP_QUEUE_FULL, 6);
	napi_udp_release(socket, u.context, v + 1, 2);
	/* Given back already, or another socket's: no effect. */
	napi_udp_release(socket, u.context, v + 1, 2);
	napi_udp_release(other, u.context, v, 1);
	for (int i = 0; i < 3; i++)
		inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_dropped_only(&u, DROP_UDP_QUEUE_FULL, 7);
	/* It does not take from another socket what that may have. */
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:8");
	got(&u, other, 1);
	assert_int_equal(napi_udp_alloc(socket, u.context, w, 2), 2);
	assert_int_equal(napi_udp_alloc(socket, u.context, w + 2, 2), 1);
	assert_int_equal(napi_udp_alloc(socket, u.context, w + 3, 1), -ENOBUFS);
	napi_udp_release(socket, u.context, w, 1);
	assert_int_equal(napi_udp_alloc(socket, u.context, w, 5), 1);
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.allocated, 3);
	/* All of it comes back, also what the application has: scene_end() counts the frames. */
	napi_udp_close(socket);
	napi_udp_close(other);
	udp_scene_end(&u);
}

/* Of a vector that has no room as a whole its first packets get in, and no more than have room. */
static void vector_at_the_limit(void **state)
{
	struct napi_udp_config config = {.receive_max = 5};
	struct napi_udp_address a = udp_address("10.0.0.2:7");
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	struct packet *burst[8];
	struct napi_udp_stats stats;
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_open(&u, &config);
	assert_int_equal(napi_udp_bind(socket, &a), 0);
	assert_int_equal(packet_alloc(&u.context->cache, burst, 8), 8);
	for (uint32_t i = 0; i < 8; i++) {
		char data = (char)i;
		const struct datagram d = {"10.0.0.1:1000", "10.0.0.2:7", &data, 1};
		struct frame f;

		frame_udp(&u, &f, &d);
		memcpy(burst[i]->data, f.bytes, f.len);
		burst[i]->len = burst[i]->total = f.len;
	}
	assert_int_equal(mem_port_send(u.s.a, burst, 8), 8);
	scene_run(&u.s, NSEC_PER_MSEC);
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.queued, 5);
	assert_int_equal(stats.dropped, 3);
	assert_int_equal(napi_udp_recv(socket, u.context, v, NAPI_UDP_VECTOR_MAX), 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(v[i].data[0], i);
	napi_udp_release(socket, u.context, v, 5);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* A socket polls no NAPI of a port that has been removed, or taken from the handler. */
static void a_port_is_forgotten(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	for (int removes = 0; removes < 2; removes++) {
		udp_scene_begin(&u, true, 1, POLLER_APP);
		socket = udp_bound(&u, "10.0.0.2:7");
		inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
		assert_ptr_equal(atomic_load(&socket->napi), u.s.a->queue[0].napi);
		if (removes)
			assert_int_equal(engine_port_remove(u.s.engine, u.s.a, NULL), 0);
		else
			assert_int_equal(engine_handler_set(u.s.engine, u.s.a, NULL, NULL), 0);
		assert_null(atomic_load(&socket->napi));
		got(&u, socket, 1);
		napi_udp_close(socket);
		if (removes)
			u.s.a = scene_port(&u.s, "a", NULL);
		udp_scene_end(&u);
	}
}

/* However they behave, sockets leave half of the frames to the ports. */
static void sum_of_limits(void **state)
{
	struct napi_udp_config config = {.receive_max = 1000, .send_max = 24};
	struct napi_udp *a, *b, *c;
	struct error err = {0};
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ); /* 4096 frames */
	a = udp_open(&u, &config);
	b = udp_open(&u, &config);
	assert_int_equal(napi_udp_open(u.udp, &config, &c, &err), -ENOBUFS);
	assert_non_null(strstr(err.text, "half of the pool's 4096 frames"));
	napi_udp_close(a);
	c = udp_open(&u, &config);
	napi_udp_close(b);
	napi_udp_close(c);
	config.receive_max = UDP_RECEIVE_MAX + 1;
	assert_int_equal(napi_udp_open(u.udp, &config, &c, &err), -EINVAL);
	udp_scene_end(&u);
}

/* fd can be read, or not. */
static bool readable(const struct napi_udp *socket)
{
	struct pollfd p = {.fd = napi_udp_fd(socket), .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static void readiness(void **state)
{
	struct napi_udp_message m;
	struct napi_udp_stats stats;
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	/* Nobody sleeps: it is not written. */
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	assert_false(readable(socket));
	assert_true(napi_udp_arm(socket, u.context));
	got(&u, socket, 1);
	assert_false(napi_udp_arm(socket, u.context));
	assert_false(readable(socket));
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	assert_true(readable(socket));
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.wakes, 1);
	assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), 1);
	napi_udp_release(socket, u.context, &m, 1);
	assert_false(readable(socket));
	assert_true(napi_udp_arm(socket, u.context));
	got(&u, socket, 1);
	/* Armed twice, and looked at in between. */
	assert_false(napi_udp_arm(socket, u.context));
	assert_false(napi_udp_arm(socket, u.context));
	got(&u, socket, 0);
	inject_udp(&u, "10.0.0.1:1000", "10.0.0.2:7");
	assert_false(readable(socket));
	got(&u, socket, 1);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

static void send_text(struct udp_scene *u, struct napi_udp *socket, const char *peer, int wanted)
{
	struct napi_udp_address a = udp_address(peer);
	int rc = napi_udp_send_copy(socket, u->context, text, sizeof(text), &a);

	if (rc != wanted)
		fail_msg("to %s: %d, not %d", peer, rc, wanted);
}

static void send_errors(void **state)
{
	struct napi_udp *socket, *four;
	struct napi_udp_message m;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_open(&u, NULL);
	/* As a runner would: it cannot bind. */
	u.context->foreign = false;
	send_text(&u, socket, "10.0.0.1:5", -EINVAL);
	u.context->foreign = true;
	assert_int_equal(napi_udp_send_copy(socket, u.context, text, 1, NULL), -EDESTADDRREQ);
	four = udp_bound(&u, "10.0.0.2:7");
	send_text(&u, socket, "10.0.0.1:0", -EINVAL);
	send_text(&u, socket, "10.0.1.1:5", -ENETUNREACH);
	send_text(&u, socket, "10.0.0.255:5", -EACCES);
	send_text(&u, socket, "224.0.0.1:5", -EACCES);
	send_text(&u, four, "[fd00::1]:5", -EAFNOSUPPORT);
	assert_int_equal(napi_udp_alloc(four, u.context, &m, 1), 1);
	m.peer = udp_address("10.0.0.1:5");
	m.local = udp_address("10.0.0.9:0");
	assert_int_equal(napi_udp_send(four, u.context, &m, 1), -EADDRNOTAVAIL);
	m.local = udp_address("[::]:0");
	m.len = 1473;
	assert_int_equal(napi_udp_send(four, u.context, &m, 1), -EMSGSIZE);
	m.len = 1472;
	/* Not this socket's frame. */
	assert_int_equal(napi_udp_send(socket, u.context, &m, 1), -EINVAL);
	m.data -= 300;
	assert_int_equal(napi_udp_send(four, u.context, &m, 1), -EINVAL);
	m.data += 300 + 2048;
	assert_int_equal(napi_udp_send(four, u.context, &m, 1), -EINVAL);
	m.data -= 2048;
	assert_int_equal(napi_udp_send(four, u.context, &m, 1), 1);
	assert_null(m.packet);
	napi_udp_close(four);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

static void sends_to(struct udp_scene *u, struct napi_udp *socket, const char *from, const char *to)
{
	struct datagram d = {from, to, text, sizeof(text)};
	struct frame f;

	send_text(u, socket, to, sizeof(text));
	assert_true(udp_take_answering(u, &f));
	frame_is_udp(u, &f, &d);
}

/* Every byte of what is sent, to either family, by prefix and by gateway. */
static void what_is_sent(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.200/28", NULL), 0);
	assert_int_equal(udp_gateway_set(u.udp, u.s.a, "10.0.0.1", NULL), 0);
	assert_int_equal(udp_gateway_set(u.udp, u.s.a, "fd00::1", NULL), 0);
	assert_int_equal(udp_gateway_set(u.udp, u.s.a, "10.0.1.1", NULL), -ENETUNREACH);
	assert_int_equal(udp_gateway_set(u.udp, u.s.a, "10.0.0.2", NULL), -ENETUNREACH);
	socket = udp_bound(&u, "[::]:7");
	sends_to(&u, socket, "10.0.0.2:7", "10.0.0.1:5");
	sends_to(&u, socket, "10.0.0.200:7", "10.0.0.201:5");
	sends_to(&u, socket, "[fd00::2]:7", "[fd00::1]:5");
	sends_to(&u, socket, "10.0.0.2:7", "192.0.2.1:5");
	sends_to(&u, socket, "[fd00::2]:7", "[2001:db8::1]:5");
	assert_int_equal(udp_gateway_remove(u.udp, u.s.a, "10.0.0.1", NULL), 0);
	assert_int_equal(udp_gateway_remove(u.udp, u.s.a, "10.0.0.1", NULL), -ENOENT);
	send_text(&u, socket, "192.0.2.1:5", -ENETUNREACH);
	assert_int_equal(udp_address_remove(u.udp, u.s.a, "10.0.0.200", NULL), 0);
	sends_to(&u, socket, "10.0.0.2:7", "10.0.0.201:5");
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* In the frame in which it came, longer and shorter, whatever stood around it. */
static void echo_in_place(void **state)
{
	struct napi_udp_message v[2];
	struct datagram d = {"10.0.0.1:1000", "10.0.0.2:7", text, sizeof(text)};
	struct datagram back = {"10.0.0.2:7", "10.0.0.1:1000", "some bytes\0more", 15};
	struct napi_udp_stats stats;
	struct napi_udp *socket;
	struct packet *packet;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	frame_udp(&u, &f, &d);
	udp_inject(&u, &f);
	assert_int_equal(napi_udp_recv(socket, u.context, v, 2), 1);
	packet = v[0].packet;
	assert_ptr_equal(packet_at(engine_pool(u.s.engine),
				   (uint64_t)(v[0].data - engine_pool(u.s.engine)->area)),
			 packet);
	memcpy(v[0].data + 11, "more", 4);
	v[0].len = 15;
	assert_int_equal(napi_udp_send(socket, u.context, v, 1), 1);
	assert_true(udp_take_answering(&u, &f));
	frame_is_udp(&u, &f, &back);
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.sent, 1);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* Those that are right before one that is wrong are sent, and the call says how many. */
static void part_of_a_vector(void **state)
{
	struct napi_udp_message v[4];
	struct napi_udp *socket;
	struct udp_scene u;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	assert_int_equal(napi_udp_alloc(socket, u.context, v, 4), 4);
	for (int i = 0; i < 4; i++) {
		v[i].peer = udp_address(i == 2 ? "10.9.0.1:5" : "10.0.0.1:5");
		v[i].len = 1;
	}
	assert_int_equal(napi_udp_send(socket, u.context, v, 4), 2);
	assert_int_equal(napi_udp_send(socket, u.context, v + 2, 2), -ENETUNREACH);
	assert_int_equal(napi_udp_send(socket, u.context, v + 3, 1), 1);
	napi_udp_release(socket, u.context, v, 4);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* Packets wait for their neighbour in order, so many; it answers, or it does not. */
static void waiting(bool answers)
{
	struct napi_udp_address a = udp_address("10.0.0.77:5");
	struct udp_stats stats;
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(napi_udp_send_copy(socket, u.context, &i, sizeof(i), &a),
				 sizeof(i));
	udp_stats_read(u.udp, &stats);
	assert_int_equal(stats.waiting_dropped, 4);
	assert_int_equal(counter_read(&u.context->own.dropped[DROP_UDP_NEIGHBOUR]), 4);
	assert_true(udp_take(&u, &f)); /* the question, once */
	assert_int_equal(f.bytes[13], 6);
	assert_memory_equal(f.bytes + 14 + 24, "\12\0\0\115", 4);
	udp_take_none(&u);
	if (answers) {
		frame_arp(&u, &f, 2, "10.0.0.77", "10.0.0.2");
		udp_inject(&u, &f);
		for (uint32_t i = 0; i < 16; i++) {
			struct datagram d = {"10.0.0.2:7", "10.0.0.77:5", &i, sizeof(i)};

			assert_true(udp_take(&u, &f));
			frame_is_udp(&u, &f, &d);
		}
		udp_take_none(&u);
		/* What has waited is not that NAPI's. */
		assert_int_equal(port_held(u.s.a), 0);
	} else {
		uint32_t asked = 0;

		scene_run(&u.s, 3500 * NSEC_PER_MSEC);
		while (udp_take(&u, &f))
			asked += f.bytes[13] == 6;
		assert_int_equal(asked, 2); /* three in all */
		assert_int_equal(napi_udp_send_copy(socket, u.context, &a, 1, &a), -EHOSTUNREACH);
		udp_stats_read(u.udp, &stats);
		assert_int_equal(stats.waiting_dropped, 20);
		assert_int_equal(stats.unresolved, 1);
		/* Later it is asked again. */
		scene_run(&u.s, 3 * NSEC_PER_SEC);
		assert_int_equal(napi_udp_send_copy(socket, u.context, &a, 1, &a), 1);
		assert_true(udp_take(&u, &f));
	}
	napi_udp_close(socket);
	udp_scene_end(&u);
}

static void neighbour_answers(void **state)
{
	(void)state;
	waiting(true);
}

static void neighbour_is_away(void **state)
{
	(void)state;
	waiting(false);
}

/* Its error comes once, to who is connected there, by recv or by send, and makes fd readable. */
static void refused(void **state)
{
	static const char *const peers[] = {"10.0.0.1:5", "[fd00::1]:5"};
	struct napi_udp_message m;
	struct udp_scene u;
	struct frame f, about;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (int i = 0; i < 2; i++) {
		struct napi_udp *socket = udp_bound(&u, "[::]:7");
		struct napi_udp_address peer = udp_address(peers[i]);

		send_text(&u, socket, peers[i], sizeof(text));
		assert_true(udp_take_answering(&u, &about));
		frame_unreachable(&u, &f, &about);
		/* Not connected: it is not told. */
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		assert_int_equal(napi_udp_connect(socket, &peer), 0);
		assert_false(napi_udp_arm(socket, u.context));
		udp_inject(&u, &f);
		assert_true(readable(socket));
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -ECONNREFUSED);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		udp_inject(&u, &f);
		assert_true(napi_udp_arm(socket, u.context));
		assert_int_equal(napi_udp_send_copy(socket, u.context, text, 1, NULL),
				 -ECONNREFUSED);
		assert_int_equal(napi_udp_send_copy(socket, u.context, text, 1, NULL), 1);
		assert_true(udp_take(&u, &about));
		/* About a packet to somebody else. */
		f.bytes[14 + (i ? 40 : 20) + 8 + (i ? 39 : 19)] ^= 1;
		frame_sums(&f);
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		napi_udp_close(socket);
	}
	udp_scene_end(&u);
}

/* The port goes and comes back: sockets stay, and say what is the matter meanwhile. */
static void port_goes(void **state)
{
	struct napi_udp *socket;
	struct udp_scene u;
	struct frame f;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	socket = udp_bound(&u, "[::]:7");
	sends_to(&u, socket, "10.0.0.2:7", "10.0.0.1:5");
	send_text(&u, socket, "10.0.0.88:5", sizeof(text)); /* waits */
	assert_int_equal(engine_handler_set(u.s.engine, u.s.a, NULL, NULL), 0);
	send_text(&u, socket, "10.0.0.1:5", -ENETUNREACH);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.2/24", NULL), -ENOENT);
	assert_int_equal(engine_handler_set(u.s.engine, u.s.a, u.udp, NULL), 0);
	send_text(&u, socket, "10.0.0.1:5", -ENETUNREACH);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.2/24", NULL), 0);
	assert_int_equal(udp_port_mac(u.udp, u.s.a, u.mac), 0);
	while (udp_take(&u, &f))
		;
	sends_to(&u, socket, "10.0.0.2:7", "10.0.0.1:5");
	inject_udp(&u, "10.0.0.1:5", "10.0.0.2:7");
	got(&u, socket, 1);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

static void address_errors(void **state)
{
	static const char *const bad[] = {
		"",	     "10.0.0.5/33", "10.0.0.5/", "10.0.0.5/-1",	 "10.0.0.5/2x",
		"10.0.0/24", "fd00::5/129", "0.0.0.0/8", "224.0.0.1/24", "127.0.0.1/8",
		"::/64",     "ff02::1/64"};
	struct udp_scene u;
	char text_[32];
	int rc = 0, added = 0;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (udp_address_add(u.udp, u.s.a, bad[i], NULL) != -EINVAL)
			fail_msg("\"%s\" is taken for an address", bad[i]);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.2/16", NULL), -EEXIST);
	assert_int_equal(udp_address_add(u.udp, u.s.b, "10.0.0.9/16", NULL), -ENOENT);
	assert_int_equal(udp_address_remove(u.udp, u.s.a, "10.0.0.9", NULL), -ENOENT);
	for (; !rc; added += !rc) {
		snprintf(text_, sizeof(text_), "10.1.0.%d/24", added + 1);
		rc = udp_address_add(u.udp, u.s.a, text_, NULL);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(added + 3, UDP_ADDRESSES_MAX);
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bind_errors),
		cmocka_unit_test(ephemeral_ports),
		cmocka_unit_test(connect_errors),
		cmocka_unit_test(address_text),
		cmocka_unit_test(whose_it_is),
		cmocka_unit_test(receive_limit),
		cmocka_unit_test(sum_of_limits),
		cmocka_unit_test(readiness),
		cmocka_unit_test(send_errors),
		cmocka_unit_test(what_is_sent),
		cmocka_unit_test(echo_in_place),
		cmocka_unit_test(part_of_a_vector),
		cmocka_unit_test(neighbour_answers),
		cmocka_unit_test(neighbour_is_away),
		cmocka_unit_test(refused),
		cmocka_unit_test(port_goes),
		cmocka_unit_test(address_errors),
		cmocka_unit_test(vector_at_the_limit),
		cmocka_unit_test(a_port_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What sockets are bound and connected to, and the addresses of ports that this depends on. */
#include "udp_scene.h"

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
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_got(&u, all4, 1);
	udp_inject_text(&u, "[fd00::1]:1000", "[fd00::2]:7");
	udp_got(&u, one6, 1);
	napi_udp_close(all4);
	napi_udp_close(one6);
	all6 = udp_bound(&u, "[::]:7");
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_inject_text(&u, "[fd00::1]:1000", "[fd00::2]:7");
	udp_got(&u, all6, 2);
	/* Connected: from there, and from nobody else. */
	assert_int_equal(napi_udp_connect(all6, &peer), 0);
	udp_inject_text(&u, "10.0.0.1:1001", "10.0.0.2:7");
	udp_inject_text(&u, "10.0.0.9:1000", "10.0.0.2:7");
	udp_inject_text(&u, "[fd00::1]:1000", "[fd00::2]:7");
	udp_got(&u, all6, 0);
	udp_dropped_only(&u, DROP_UDP_NO_SOCKET, 3);
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_got(&u, all6, 1);
	assert_int_equal(napi_udp_connect(all6, NULL), 0);
	udp_inject_text(&u, "10.0.0.9:1000", "10.0.0.2:7");
	udp_got(&u, all6, 1);
	napi_udp_close(all6);
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
	udp_sends_to(&u, socket, "10.0.0.2:7", "10.0.0.1:5");
	udp_send_text(&u, socket, "10.0.0.88:5", sizeof(udp_text)); /* waits */
	assert_int_equal(engine_handler_set(u.s.engine, u.s.a, NULL, NULL), 0);
	udp_send_text(&u, socket, "10.0.0.1:5", -ENETUNREACH);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.2/24", NULL), -ENOENT);
	assert_int_equal(engine_handler_set(u.s.engine, u.s.a, u.udp, NULL), 0);
	udp_send_text(&u, socket, "10.0.0.1:5", -ENETUNREACH);
	assert_int_equal(udp_address_add(u.udp, u.s.a, "10.0.0.2/24", NULL), 0);
	assert_int_equal(udp_port_mac(u.udp, u.s.a, u.mac), 0);
	while (udp_take(&u, &f))
		;
	udp_sends_to(&u, socket, "10.0.0.2:7", "10.0.0.1:5");
	udp_inject_text(&u, "10.0.0.1:5", "10.0.0.2:7");
	udp_got(&u, socket, 1);
	napi_udp_close(socket);
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bind_errors),	  cmocka_unit_test(ephemeral_ports),
		cmocka_unit_test(connect_errors), cmocka_unit_test(address_text),
		cmocka_unit_test(address_errors), cmocka_unit_test(whose_it_is),
		cmocka_unit_test(port_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What sockets send: its way, its neighbour, and what comes back about it. */
#include "udp_scene.h"

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
	udp_send_text(&u, socket, "10.0.0.1:5", -EINVAL);
	u.context->foreign = true;
	assert_int_equal(napi_udp_send_copy(socket, u.context, udp_text, 1, NULL), -EDESTADDRREQ);
	four = udp_bound(&u, "10.0.0.2:7");
	udp_send_text(&u, socket, "10.0.0.1:0", -EINVAL);
	udp_send_text(&u, socket, "10.0.1.1:5", -ENETUNREACH);
	udp_send_text(&u, socket, "10.0.0.255:5", -EACCES);
	udp_send_text(&u, socket, "224.0.0.1:5", -EACCES);
	udp_send_text(&u, four, "[fd00::1]:5", -EAFNOSUPPORT);
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
	udp_sends_to(&u, socket, "10.0.0.2:7", "10.0.0.1:5");
	udp_sends_to(&u, socket, "10.0.0.200:7", "10.0.0.201:5");
	udp_sends_to(&u, socket, "[fd00::2]:7", "[fd00::1]:5");
	udp_sends_to(&u, socket, "10.0.0.2:7", "192.0.2.1:5");
	udp_sends_to(&u, socket, "[fd00::2]:7", "[2001:db8::1]:5");
	assert_int_equal(udp_gateway_remove(u.udp, u.s.a, "10.0.0.1", NULL), 0);
	assert_int_equal(udp_gateway_remove(u.udp, u.s.a, "10.0.0.1", NULL), -ENOENT);
	udp_send_text(&u, socket, "192.0.2.1:5", -ENETUNREACH);
	assert_int_equal(udp_address_remove(u.udp, u.s.a, "10.0.0.200", NULL), 0);
	udp_sends_to(&u, socket, "10.0.0.2:7", "10.0.0.201:5");
	napi_udp_close(socket);
	udp_scene_end(&u);
}

/* In the frame in which it came, longer and shorter, whatever stood around it. */
static void echo_in_place(void **state)
{
	struct napi_udp_message v[2];
	struct datagram d = {"10.0.0.1:1000", "10.0.0.2:7", udp_text, sizeof(udp_text)};
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

		udp_send_text(&u, socket, peers[i], sizeof(udp_text));
		assert_true(udp_take_answering(&u, &about));
		frame_unreachable(&u, &f, &about);
		/* Not connected: it is not told. */
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		assert_int_equal(napi_udp_connect(socket, &peer), 0);
		assert_false(napi_udp_arm(socket, u.context));
		udp_inject(&u, &f);
		assert_true(udp_readable(socket));
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -ECONNREFUSED);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		udp_inject(&u, &f);
		assert_true(napi_udp_arm(socket, u.context));
		assert_int_equal(napi_udp_send_copy(socket, u.context, udp_text, 1, NULL),
				 -ECONNREFUSED);
		assert_int_equal(napi_udp_send_copy(socket, u.context, udp_text, 1, NULL), 1);
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

static void sends_bytes(struct udp_scene *u, struct napi_udp *socket, const char *peer,
			uint32_t len, int wanted)
{
	static const char data[1472];
	struct napi_udp_address a;

	if (peer)
		a = udp_address(peer);
	assert_int_equal(napi_udp_send_copy(socket, u->context, data, len, peer ? &a : NULL),
			 wanted);
}

static void room_is(struct udp_scene *u, struct napi_udp *socket, uint32_t wanted)
{
	struct napi_udp_message m;

	assert_int_equal(napi_udp_alloc(socket, u->context, &m, 1), 1);
	assert_int_equal(m.room, wanted);
	napi_udp_release(socket, u->context, &m, 1);
}

/* A router says how much the way takes: who is connected there hears it, and sends no more. */
static void too_big(void **state)
{
	static const char *const peers[] = {"10.0.0.1:5", "[fd00::1]:5"};
	static const char *const others[] = {"10.0.0.9:5", "[fd00::9]:5"};
	struct napi_udp_message m;
	struct udp_scene u;
	struct frame f, about;

	(void)state;
	udp_scene_begin(&u, true, 1, POLLER_SOFTIRQ);
	for (int i = 0; i < 2; i++) {
		struct napi_udp *socket = udp_bound(&u, "[::]:7");
		struct napi_udp_address peer = udp_address(peers[i]);
		uint32_t headers = i ? 48 : 28;

		sends_bytes(&u, socket, peers[i], 1400, 1400);
		assert_true(udp_take_answering(&u, &about));
		frame_too_big(&u, &f, &about, 1340);
		/* Not connected: it is not told. */
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		assert_int_equal(napi_udp_connect(socket, &peer), 0);
		room_is(&u, socket, 1452);
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EMSGSIZE);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		room_is(&u, socket, 1340 - headers);
		sends_bytes(&u, socket, NULL, 1340 - headers + 1, -EMSGSIZE);
		sends_bytes(&u, socket, NULL, 1340 - headers, 1340 - (int)headers);
		/* Another's way is another one. */
		sends_bytes(&u, socket, others[i], 1400, 1400);
		/* No news, and of one that no way can be so narrow for. */
		frame_too_big(&u, &f, &about, 1400);
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EAGAIN);
		frame_too_big(&u, &f, &about, 68);
		udp_inject(&u, &f);
		assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), -EMSGSIZE);
		room_is(&u, socket, (i ? 1280 : 576) - headers);
		assert_int_equal(napi_udp_connect(socket, &peer), 0);
		room_is(&u, socket, 1452);
		napi_udp_close(socket);
		while (udp_take(&u, &f))
			;
	}
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_errors),	     cmocka_unit_test(what_is_sent),
		cmocka_unit_test(echo_in_place),     cmocka_unit_test(part_of_a_vector),
		cmocka_unit_test(neighbour_answers), cmocka_unit_test(neighbour_is_away),
		cmocka_unit_test(refused),	     cmocka_unit_test(too_big),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

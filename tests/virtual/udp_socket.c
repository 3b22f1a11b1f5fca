/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets: their limits, how they wake who sleeps, and their end. */
#include "udp_scene.h"

#include <handler/udp.h>

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
		udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_dropped_only(&u, DROP_UDP_QUEUE_FULL, 5);
	assert_int_equal(napi_udp_recv(socket, u.context, v, 4), 4);
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.queued, 6);
	assert_int_equal(stats.held, 4);
	assert_int_equal(stats.dropped, 5);
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_dropped_only(&u, DROP_UDP_QUEUE_FULL, 6);
	napi_udp_release(socket, u.context, v + 1, 2);
	/* Given back already, or another socket's: no effect. */
	napi_udp_release(socket, u.context, v + 1, 2);
	napi_udp_release(other, u.context, v, 1);
	for (int i = 0; i < 3; i++)
		udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_dropped_only(&u, DROP_UDP_QUEUE_FULL, 7);
	/* It does not take from another socket what that may have. */
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:8");
	udp_got(&u, other, 1);
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
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	assert_false(udp_readable(socket));
	assert_true(napi_udp_arm(socket, u.context));
	udp_got(&u, socket, 1);
	assert_false(napi_udp_arm(socket, u.context));
	assert_false(udp_readable(socket));
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	assert_true(udp_readable(socket));
	napi_udp_stats_read(socket, &stats);
	assert_int_equal(stats.wakes, 1);
	assert_int_equal(napi_udp_recv(socket, u.context, &m, 1), 1);
	napi_udp_release(socket, u.context, &m, 1);
	assert_false(udp_readable(socket));
	assert_true(napi_udp_arm(socket, u.context));
	udp_got(&u, socket, 1);
	/* Armed twice, and looked at in between. */
	assert_false(napi_udp_arm(socket, u.context));
	assert_false(napi_udp_arm(socket, u.context));
	udp_got(&u, socket, 0);
	udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
	assert_false(udp_readable(socket));
	udp_got(&u, socket, 1);
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
		udp_inject_text(&u, "10.0.0.1:1000", "10.0.0.2:7");
		assert_ptr_equal(atomic_load(&socket->napi), u.s.a->queue[0].napi);
		if (removes)
			assert_int_equal(engine_port_remove(u.s.engine, u.s.a, NULL), 0);
		else
			assert_int_equal(engine_handler_set(u.s.engine, u.s.a, NULL, NULL), 0);
		assert_null(atomic_load(&socket->napi));
		udp_got(&u, socket, 1);
		napi_udp_close(socket);
		if (removes)
			u.s.a = scene_port(&u.s, "a", NULL);
		udp_scene_end(&u);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receive_limit),       cmocka_unit_test(vector_at_the_limit),
		cmocka_unit_test(sum_of_limits),       cmocka_unit_test(readiness),
		cmocka_unit_test(a_port_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

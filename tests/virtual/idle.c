/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Case 21: without traffic an engine uses under 0.1% of one core, in every poller; busy-poll with
 * idle_suspend. On the host.
 */
#include "udp_scene.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

static int64_t cpu_time(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
}

/* Twice in vain is an accident of the clock that counts it; three times is not. */
static void uses_nothing(void)
{
	int64_t before, used, least = INT64_MAX;

	for (int i = 0; i < 3 && least > 3 * NSEC_PER_MSEC; i++) {
		before = cpu_time();
		for (int k = 0; k < 3; k++) {
			struct timespec second = {.tv_sec = 1};

			nanosleep(&second, NULL);
		}
		used = cpu_time() - before;
		least = used < least ? used : least;
	}
	print_message("  %ld us of CPU in 3 s\n", (long)(least / NSEC_PER_USEC));
	assert_true(least <= 3 * NSEC_PER_MSEC);
}

static void idle(enum poller poller)
{
	struct scene s;
	struct source source = {.scene = &s, .burst = 64, .interval = NSEC_PER_USEC, .count = 1000};

	scene_begin_with(&s, false, 0,
			 (struct engine_config){.poller = poller, .idle_suspend_usecs = 200});
	/* After some traffic: whoever polled has to have gone back to sleep. */
	source.port = s.a;
	source_start(&source);
	source_stop(&source);
	scene_drain(&s, s.a, 1000);
	uses_nothing();
	scene_end(&s);
}

static void case_21_idle(void **state)
{
	(void)state;
	over_pollers(idle);
}

/* A program that polls its socket's NAPI, prefers to, and sleeps when nothing comes. */
struct application {
	struct udp_scene *u;
	struct napi_udp *socket;
	_Atomic uint32_t received;
	uint32_t wanted;
	_Atomic bool ends;
};

static void *application_run(void *arg)
{
	struct application *a = arg;
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	struct pollfd wait = {.fd = napi_udp_fd(a->socket), .events = POLLIN};
	struct context *context;

	assert_int_equal(engine_context_open(a->u->s.engine, &context), 0);
	while (!a->ends) {
		int n = napi_udp_recv(a->socket, context, v, NAPI_UDP_VECTOR_MAX);

		if (n > 0) {
			napi_udp_release(a->socket, context, v, (uint32_t)n);
			a->received += (uint32_t)n;
		} else if (!napi_udp_arm(a->socket, context)) {
			poll(&wait, 1, -1);
		}
	}
	engine_context_close(context);
	return NULL;
}

static bool application_has(void *arg)
{
	const struct application *a = arg;

	return a->received == a->wanted;
}

/* It has received so many, since it began. */
static void application_wait(struct application *a, uint32_t wanted)
{
	a->wanted = wanted;
	assert_int_equal(scene_wait(a->u->s.machine, application_has, a), 0);
}

static void datagrams_send(struct udp_scene *u, uint32_t n)
{
	static const struct datagram d = {"10.0.0.1:1000", "10.0.0.2:7", udp_text,
					  sizeof(udp_text)};
	struct packet *p;
	struct frame f;

	frame_udp(u, &f, &d);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(packet_alloc(&u->context->cache, &p, 1), 1);
		memcpy(p->data, f.bytes, f.len);
		p->len = p->total = f.len;
		assert_int_equal(mem_port_send(u->s.a, &p, 1), 1);
	}
}

/* One IPv4 address: on the host nothing is said of when what it says of itself is sent. */
static void application_host(struct udp_scene *u)
{
	/* What is looked through once a second is short: a sanitizer makes it dear. */
	struct udp_config config = {.neighbours = 16};
	struct error err = {0};

	scene_begin(&u->s, false, 1, POLLER_APP);
	assert_int_equal(engine_context_open(u->s.engine, &u->context), 0);
	if (udp_handler_create(u->s.engine, &config, &u->udp, &err) ||
	    engine_handler_set(u->s.engine, u->s.a, u->udp, &err) ||
	    udp_address_add(u->udp, u->s.a, "10.0.0.2/24", &err))
		fail_msg("%s", err.text);
	assert_int_equal(udp_port_mac(u->udp, u->s.a, u->mac), 0);
}

/* Nor does who polls by itself: it has let go of the NAPI, whose interrupt wakes it again. */
static void case_21_application_sleeps(void **state)
{
	struct napi_udp_config config = {.receive_max = 1024,
					 .busy_read_set = true,
					 .busy_read = 50,
					 .busy_poll_set = true,
					 .busy_poll = 200,
					 .prefer = true};
	struct queue_settings suspend = {.irq_suspend_timeout_set = true,
					 .irq_suspend_timeout = 10 * NSEC_PER_MSEC};
	struct napi_udp_address local = udp_address("10.0.0.2:7");
	struct application a = {0};
	struct udp_scene u;
	pthread_t thread;

	(void)state;
	application_host(&u);
	assert_int_equal(engine_queue_set(u.s.engine, "a", -1, &suspend, NULL, NULL), 0);
	a.u = &u;
	a.socket = udp_open(&u, &config);
	assert_int_equal(napi_udp_bind(a.socket, &local), 0);
	assert_int_equal(pthread_create(&thread, NULL, application_run, &a), 0);
	datagrams_send(&u, 999);
	application_wait(&a, 999);
	uses_nothing();
	/* And it was not dead. */
	datagrams_send(&u, 1);
	application_wait(&a, 1000);
	a.ends = true;
	datagrams_send(&u, 1);
	pthread_join(thread, NULL);
	napi_udp_close(a.socket);
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_21_idle),
		cmocka_unit_test(case_21_application_sleeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

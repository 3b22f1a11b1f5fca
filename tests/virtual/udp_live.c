/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets under load, while pollers are switched and sockets, addresses and ports come and go. Two
 * ports send to the same sockets, so that two NAPIs fill one queue at a time; applications read,
 * keep some of what they read, send it back, and sleep when there is nothing. What must hold:
 *
 *   every packet is accounted for, by its NAPI and by its socket, and every frame comes back
 *   a flow keeps its order
 *   who sleeps is woken: nothing is left in a queue whose reader sleeps
 */
#include "udp_scene.h"

#include <machine/random.h>
#include <poll.h>
#include <stdatomic.h>

#define FLOWS 2	  /* one from each port */
#define TARGETS 4 /* UDP ports 7, 8, 9, 10 */
#define FIRST 7

/* Sends numbered datagrams in at a port, to each of the targets in turn. */
struct talker {
	struct udp_scene *u;
	struct port *port;
	uint32_t flow, targets, count, burst;
	int64_t interval;
	_Atomic uint32_t sent;
	uint32_t number[TARGETS];
	uint8_t mac[6];
	struct context *context;
	struct runner *runner;
};

/* An application with one socket. */
struct reader {
	struct udp_scene *u;
	struct napi_udp *socket;
	struct random random;
	bool echoes, keeps;
	_Atomic uint32_t read;
	uint32_t disorder, sent_back, looks;
	uint32_t next[FLOWS];
	bool sleeps;
	uint32_t kept;
	struct napi_udp_message keep[8];
	struct context *context;
	struct runner *runner;
};

static void talker_fill(struct talker *t, struct packet *p, uint32_t i)
{
	uint32_t target = i % t->targets, data[2] = {t->flow, t->number[target]++};
	char to[32], from[32];
	struct datagram d = {from, to, data, sizeof(data)};
	struct frame f;

	snprintf(from, sizeof(from), "10.%u.0.1:%u", t->flow, 1000 + t->flow);
	snprintf(to, sizeof(to), "10.%u.0.2:%u", t->flow, FIRST + target);
	frame_udp(t->u, &f, &d);
	memcpy(f.bytes, t->mac, 6);
	memcpy(p->data, f.bytes, f.len);
	p->len = p->total = f.len;
}

static void frames_drain(struct talker *t)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n;

	while ((n = mem_port_receive(t->port, v, PACKET_VECTOR_MAX)))
		packet_free(&t->context->cache, v, n);
}

static struct step talker_step(void *arg)
{
	struct talker *t = arg;
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n = t->count - t->sent < t->burst ? t->count - t->sent : t->burst, sent;

	frames_drain(t);
	n = packet_alloc(&t->context->cache, v, n);
	for (uint32_t i = 0; i < n; i++)
		talker_fill(t, v[i], t->sent + i);
	sent = mem_port_send(t->port, v, n);
	packet_free(&t->context->cache, v + sent, n - sent);
	/* Those that found no room are made again. */
	for (uint32_t i = sent; i < n; i++)
		t->number[(t->sent + i) % t->targets]--;
	t->sent += sent;
	return STEP_UNTIL(machine_now(t->u->s.machine) + t->interval);
}

static void talker_start(struct talker *t)
{
	struct runner_config config = {.name = "talker", .step = talker_step, .arg = t};

	assert_int_equal(udp_port_mac(t->u->udp, t->port, t->mac), 0);
	assert_int_equal(engine_context_open(t->u->s.engine, &t->context), 0);
	assert_int_equal(runner_start(t->u->s.machine, &config, &t->runner, NULL), 0);
}

static bool talker_done(void *arg)
{
	const struct talker *t = arg;

	return t->sent == t->count;
}

static void talker_wait(struct talker *t)
{
	assert_int_equal(scene_wait(t->u->s.machine, talker_done, t), 0);
}

static void talker_stop(struct talker *t)
{
	runner_stop(t->runner);
	frames_drain(t);
	engine_context_close(t->context);
}

static void message_look(struct reader *r, const struct napi_udp_message *m)
{
	uint32_t data[2];

	assert_int_equal(m->len, sizeof(data));
	memcpy(data, m->data, sizeof(data));
	assert_true(data[0] < FLOWS);
	if (data[1] < r->next[data[0]])
		r->disorder++;
	r->next[data[0]] = data[1] + 1;
}

/* Sent back, kept for a while, or given back. */
static void messages_use(struct reader *r, struct napi_udp_message *v, uint32_t n)
{
	if (r->kept && random_below(&r->random, 4) == 0) {
		napi_udp_release(r->socket, r->context, r->keep, r->kept);
		r->kept = 0;
	}
	while (r->keeps && n && r->kept < 8)
		r->keep[r->kept++] = v[--n];
	if (r->echoes && n) {
		int sent = napi_udp_send(r->socket, r->context, v, n);

		if (sent > 0) {
			r->sent_back += (uint32_t)sent;
			v += sent;
			n -= (uint32_t)sent;
		}
	}
	napi_udp_release(r->socket, r->context, v, n);
}

static struct step reader_step(void *arg)
{
	struct reader *r = arg;
	struct napi_udp_message v[NAPI_UDP_VECTOR_MAX];
	int64_t now = machine_now(r->u->s.machine);
	struct pollfd p = {.fd = napi_udp_fd(r->socket), .events = POLLIN};
	int n;

	/* As one in epoll_wait(): nothing but fd wakes it. */
	if (r->sleeps && poll(&p, 1, 0) <= 0)
		return STEP_UNTIL(now + 7 * NSEC_PER_USEC);
	r->sleeps = false;
	r->looks++;
	n = napi_udp_recv(r->socket, r->context, v, 1 + (uint32_t)random_below(&r->random, 64));
	if (n > 0) {
		for (int i = 0; i < n; i++)
			message_look(r, &v[i]);
		atomic_fetch_add(&r->read, (uint32_t)n);
		messages_use(r, v, (uint32_t)n);
	} else {
		r->sleeps = !napi_udp_arm(r->socket, r->context);
	}
	return STEP(STEP_YIELD);
}

static void reader_start(struct reader *r)
{
	struct runner_config config = {.name = "reader", .step = reader_step, .arg = r};

	assert_int_equal(engine_context_open(r->u->s.engine, &r->context), 0);
	assert_int_equal(runner_start(r->u->s.machine, &config, &r->runner, NULL), 0);
}

static void reader_stop(struct reader *r)
{
	runner_stop(r->runner);
	engine_context_close(r->context);
	assert_int_equal(r->disorder, 0);
}

/* Both ports have the handler; each with a network of its own. */
static void begin(struct udp_scene *u, bool virtual, uint64_t seed, enum poller poller)
{
	struct error err = {0};

	udp_scene_begin(u, virtual, seed, poller);
	if (engine_handler_set(u->s.engine, u->s.b, u->udp, &err) ||
	    udp_address_add(u->udp, u->s.a, "10.0.0.3/32", &err) ||
	    udp_address_add(u->udp, u->s.b, "10.1.0.2/24", &err))
		fail_msg("%s", err.text);
}

/* Nothing is left in a queue whose reader sleeps. */
static bool all_read(void *arg)
{
	struct napi_udp_stats stats;
	struct reader *r = arg;

	napi_udp_stats_read(r->socket, &stats);
	return !stats.queued;
}

static void reader_settle(struct reader *r)
{
	if (scene_wait(r->u->s.machine, all_read, r))
		fail_msg("a reader sleeps on a queue with packets in it (poller %s)",
			 poller_name(napi_poller(r->u->s.a->queue[0].napi)));
}

static uint64_t received_by(const struct napi_udp *socket, uint64_t *dropped)
{
	struct napi_udp_stats stats;

	napi_udp_stats_read(socket, &stats);
	*dropped += stats.dropped;
	return stats.received;
}

static uint64_t both(struct udp_scene *u, enum drop_reason reason)
{
	size_t at = offsetof(struct napi_counters, dropped) + sizeof(counter) * reason;

	return port_sum(u->s.a, at) + port_sum(u->s.b, at);
}

/*
 * Three sockets: one whose reader echoes, one whose reader keeps some, one that nobody reads. What
 * that one does not take the others do not miss.
 */
static void load_with(enum poller poller, bool virtual, uint64_t seed)
{
	struct napi_udp_config small = {.receive_max = 20};
	struct napi_udp_address a = udp_address("[::]:9");
	uint32_t count = virtual ? 6000 : 30000;
	uint64_t received, dropped = 0;
	struct napi_udp *idle;
	struct udp_scene u;
	struct reader r[2] = {{.u = &u, .random = {seed}, .echoes = true},
			      {.u = &u, .random = {seed + 1}, .keeps = true}};
	struct talker t[2];

	begin(&u, virtual, seed, poller);
	r[0].socket = udp_bound(&u, "[::]:7");
	r[1].socket = udp_bound(&u, "[::]:8");
	idle = udp_open(&u, &small);
	assert_int_equal(napi_udp_bind(idle, &a), 0);
	for (uint32_t i = 0; i < 2; i++) {
		t[i] = (struct talker){.u = &u,
				       .port = i ? u.s.b : u.s.a,
				       .flow = i,
				       .targets = 3,
				       .count = count,
				       .burst = 24,
				       .interval = 20 * NSEC_PER_USEC};
		talker_start(&t[i]);
		reader_start(&r[i]);
	}
	for (int i = 0; i < 2; i++)
		talker_wait(&t[i]);
	for (int i = 0; i < 2; i++)
		scene_drain(&u.s, t[i].port, count);
	for (int i = 0; i < 2; i++)
		reader_settle(&r[i]);
	for (int i = 0; i < 2; i++) {
		reader_stop(&r[i]);
		talker_stop(&t[i]);
	}
	received = received_by(r[0].socket, &dropped) + received_by(r[1].socket, &dropped) +
		   received_by(idle, &dropped);
	assert_int_equal(received + dropped, 2 * count);
	assert_int_equal(both(&u, DROP_UDP_QUEUE_FULL), dropped);
	assert_int_equal(PORT_SUM(u.s.a, delivered) + PORT_SUM(u.s.b, delivered), received);
	assert_int_equal(received_by(r[0].socket, &dropped), r[0].read);
	assert_int_equal(received_by(r[1].socket, &dropped), r[1].read);
	assert_int_equal(received_by(idle, &dropped), 20);
	assert_true(r[0].sent_back > 0);
	for (int i = 0; i < 2; i++)
		napi_udp_close(r[i].socket);
	napi_udp_close(idle);
	udp_scene_end(&u);
}

static void load(enum poller poller)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		load_with(poller, true, seed);
	load_with(poller, false, 1);
}

static void under_load(void **state)
{
	(void)state;
	over_pollers(load);
}

static void poller_draw(struct udp_scene *u, struct random *random)
{
	struct queue_settings set = {.poller_set = true, .cpu_set = true};

	set.poller = (enum poller)random_below(random, POLLER_MAX);
	set.cpu = (unsigned)random_below(random, 2);
	engine_queue_set(u->s.engine, random_below(random, 2) ? "a" : "b", -1, &set, NULL, NULL);
}

/* A socket that comes while packets are sent to it, and goes with what it has. */
static uint64_t socket_comes(struct udp_scene *u, struct random *random, uint64_t *dropped)
{
	struct napi_udp_address a = udp_address("[::]:9"), peer = udp_address("10.1.0.1:1001");
	struct napi_udp_config config = {.receive_max = 1 + (uint32_t)random_below(random, 100)};
	struct napi_udp_message v[32];
	struct napi_udp *s = udp_open(u, &config);
	uint64_t received;
	int n;

	assert_int_equal(napi_udp_bind(s, &a), 0);
	scene_run(&u->s, (int64_t)random_below(random, 200) * NSEC_PER_USEC);
	if (random_below(random, 2))
		assert_int_equal(napi_udp_connect(s, &peer), 0);
	n = napi_udp_recv(s, u->context, v, 32);
	if (n > 0)
		napi_udp_release(s, u->context, v, (uint32_t)random_below(random, (uint64_t)n));
	napi_udp_alloc(s, u->context, v, 3);
	scene_run(&u->s, (int64_t)random_below(random, 200) * NSEC_PER_USEC);
	if (random_below(random, 2))
		assert_int_equal(napi_udp_connect(s, NULL), 0);
	/* What it has received is known when nobody can find it any more. */
	assert_int_equal(engine_handler_set(u->s.engine, u->s.a, NULL, NULL), 0);
	assert_int_equal(engine_handler_set(u->s.engine, u->s.b, NULL, NULL), 0);
	received = received_by(s, dropped);
	napi_udp_close(s);
	if (engine_handler_set(u->s.engine, u->s.a, u->udp, NULL) ||
	    engine_handler_set(u->s.engine, u->s.b, u->udp, NULL) ||
	    udp_address_add(u->udp, u->s.a, "10.0.0.2/24", NULL) ||
	    udp_address_add(u->udp, u->s.b, "10.1.0.2/24", NULL))
		fail_msg("a port does not come back");
	return received;
}

/* Everything at once. */
static void changes_with(bool virtual, uint64_t seed)
{
	uint64_t received = 0, dropped = 0, closed = 0;
	struct random random = {seed};
	struct udp_scene u;
	struct reader r = {.u = &u, .random = {seed}, .echoes = seed & 1, .keeps = seed & 2};
	struct talker t[2];

	begin(&u, virtual, seed, POLLER_SOFTIRQ);
	r.socket = udp_bound(&u, "[::]:7");
	for (uint32_t i = 0; i < 2; i++) {
		t[i] = (struct talker){.u = &u,
				       .port = i ? u.s.b : u.s.a,
				       .flow = i,
				       .targets = 4,
				       .count = virtual ? 4000 : 20000,
				       .burst = 16,
				       .interval = 10 * NSEC_PER_USEC};
		talker_start(&t[i]);
	}
	reader_start(&r);
	for (int i = 0; i < 12; i++) {
		poller_draw(&u, &random);
		if (random_below(&random, 3))
			scene_run(&u.s, (int64_t)random_below(&random, 500) * NSEC_PER_USEC);
		closed += socket_comes(&u, &random, &dropped);
	}
	for (int i = 0; i < 2; i++)
		talker_wait(&t[i]);
	for (int i = 0; i < 2; i++)
		scene_drain(&u.s, t[i].port, t[i].count);
	reader_settle(&r);
	reader_stop(&r);
	for (int i = 0; i < 2; i++)
		talker_stop(&t[i]);
	received = received_by(r.socket, &dropped);
	assert_int_equal(received, r.read);
	assert_int_equal(both(&u, DROP_UDP_QUEUE_FULL), dropped);
	assert_int_equal(PORT_SUM(u.s.a, delivered) + PORT_SUM(u.s.b, delivered),
			 received + closed);
	napi_udp_close(r.socket);
	udp_scene_end(&u);
}

static void changes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++)
		changes_with(true, seed);
	for (uint64_t seed = 1; seed <= 4; seed++)
		changes_with(false, seed);
}

/* An application that reads nothing and ends, with frames of all kinds in its hands. */
static void application_dies(void **state)
{
	struct napi_udp_message v[10];
	struct context *context;
	struct napi_udp *dead, *alive;
	struct udp_scene u;
	struct talker t;
	uint64_t dropped = 0;

	(void)state;
	begin(&u, true, 1, POLLER_THREAD);
	dead = udp_bound(&u, "[::]:7");
	alive = udp_bound(&u, "[::]:8");
	assert_int_equal(engine_context_open(u.s.engine, &context), 0);
	t = (struct talker){.u = &u,
			    .port = u.s.a,
			    .targets = 2,
			    .count = 100,
			    .burst = 10,
			    .interval = NSEC_PER_MSEC};
	talker_start(&t);
	talker_wait(&t);
	scene_drain(&u.s, u.s.a, 100);
	assert_int_equal(napi_udp_recv(dead, context, v, 10), 10);
	assert_int_equal(napi_udp_alloc(dead, context, v, 10), 10);
	engine_context_close(context);
	t.count = 3100;
	talker_wait(&t);
	scene_drain(&u.s, u.s.a, 3100);
	assert_int_equal(received_by(dead, &dropped), 512);
	assert_int_equal(dropped, 1550 - 512);
	assert_int_equal(received_by(alive, &dropped), 512);
	assert_int_equal(napi_udp_recv(alive, u.context, v, 10), 10);
	napi_udp_release(alive, u.context, v, 10);
	t.count += 10;
	talker_wait(&t);
	scene_drain(&u.s, u.s.a, 3110);
	assert_int_equal(received_by(alive, &dropped), 517);
	talker_stop(&t);
	napi_udp_close(dead);
	napi_udp_close(alive);
	udp_scene_end(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(under_load),
		cmocka_unit_test(changes),
		cmocka_unit_test(application_dies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

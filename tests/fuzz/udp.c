/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any frames to a host of the udp handler, among calls of an application that reads, keeps, echoes
 * and sends as it likes, on the virtual machine. The input is a program of one-byte commands, each
 * followed by what it needs. What comes out is well formed, with right lengths and checksums and
 * our address; no socket holds more than it may; in the end the books balance (I3), and every
 * packet is free.
 *
 * All inputs use one engine. What each leaves behind is cleared by end_alike(), so that one by
 * itself does what it did behind a million others; that nothing else stays is seen by running some
 * of them twice, which has to send the same both times.
 */
#include <stdio.h>
#include <string.h>

#include <napier/napier.h>

#include <core/engine.h>
#include <handler/udp.h>

#include "frame.h"
#include "fuzz.h"

#define SOCKETS 3
#define RECEIVE_MAX 16
#define SEND_MAX 8
#define HELD_MAX (RECEIVE_MAX + SEND_MAX)
#define LEN_MAX 1514
/* Of an input; more would do the same once more, in the time of other inputs. */
#define COMMANDS_MAX 32

static struct machine *machine;
static struct engine *engine;
static struct context *context;
static struct handler *udp;
static struct port *port;
static struct frame_flows flows;
static uint8_t mac[6];
static uint64_t sent_hash; /* of what has been sent, and received by sockets */

/* A socket of the application, and what it has not given back. */
static struct app {
	struct napi_udp *socket;
	struct napi_udp_message held[HELD_MAX];
	uint32_t n;
} app[SOCKETS];

static void app_open(struct app *a)
{
	struct napi_udp_config config = {.receive_max = RECEIVE_MAX, .send_max = SEND_MAX};
	struct error err;

	a->n = 0;
	ALWAYS(!napi_udp_open(udp, &config, &a->socket, &err));
}

static void start(void)
{
	struct udp_config config = {.neighbours = 8, .echo_rate = 20, .error_rate = 20};
	/*
	 * No more of anything than is used: each second all places are looked at. But more packets
	 * than can be in use, since in whose cache the last free ones are depends on earlier
	 * inputs.
	 */
	struct engine_config engine_config = {.frames = 512, .ports_max = 2, .queues_max = 2};
	struct virtual_config virtual = {.cpus = 1};
	struct port_config pc;
	struct error err;

	ALWAYS(!machine_virtual_create(&virtual, &machine));
	engine_config.machine = machine;
	ALWAYS(!engine_create(&engine_config, &engine, &err));
	ALWAYS(!engine_context_open(engine, &context));
	ALWAYS(!udp_handler_create(engine, &config, &udp, &err));
	ALWAYS(!port_config_parse("mem:net", &pc, &err));
	ALWAYS(!engine_port_add(engine, &pc, &port, &err));
	ALWAYS(!engine_handler_set(engine, port, udp, &err));
	ALWAYS(!udp_port_mac(udp, port, mac));
}

static void run(int64_t ns)
{
	machine_virtual_run(machine, machine_now(machine) + ns);
}

static void hash(const void *bytes, uint32_t size)
{
	const uint8_t *at = bytes;
	uint64_t word = 0;

	for (; size >= sizeof(word); size -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sent_hash = (sent_hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sent_hash ^= sent_hash >> 32;
	}
	word = size;
	memcpy(&word, at, size);
	sent_hash = (sent_hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	sent_hash ^= sent_hash >> 32;
}

static bool sums_up(const uint8_t *ip, bool six, uint32_t protocol, const uint8_t *at, uint32_t len)
{
	uint32_t sum = protocol == 1 ? 0 : protocol + len;

	if (protocol != 1)
		sum = frame_sum(sum, ip + (six ? 8 : 12), six ? 32 : 8);
	return frame_sum_fold(frame_sum(sum, at, len)) == 0xffff;
}

static uint32_t read16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* Nothing lies: lengths are those of the frame, checksums are right. */
static void sent_check(const struct packet *p)
{
	const uint8_t *ip = p->data + 14, *at;
	uint32_t type, size, len, protocol;

	ALWAYS(p->len >= 42 && p->len <= LEN_MAX && p->total == p->len && !p->next);
	ALWAYS(!memcmp(p->data + 6, mac, 6));
	type = read16(p->data + 12);
	if (type == 0x0806) {
		ALWAYS(!memcmp(ip, "\0\1\10\0\6\4", 6) && !memcmp(ip + 8, mac, 6));
		return;
	}
	ALWAYS(type == 0x0800 || type == 0x86dd);
	if (type == 0x0800) {
		size = (ip[0] & 0xfu) * 4;
		ALWAYS(ip[0] >> 4 == 4 && size >= 20);
		len = read16(ip + 2) - size;
		protocol = ip[9];
		ALWAYS(frame_sum_fold(frame_sum(0, ip, size)) == 0xffff);
	} else {
		size = 40;
		ALWAYS(ip[0] >> 4 == 6);
		len = read16(ip + 4);
		protocol = ip[6];
		ALWAYS(ip[8] != 0xff);
	}
	at = ip + size;
	ALWAYS(len <= p->len - 14 - size);
	/* Only what is for switches has a header that all on the way look at. */
	if (type == 0x86dd && !protocol) {
		ALWAYS(len >= 8 && at[0] == 58 && !at[1] && (at[8] == 131 || at[8] == 143));
		protocol = at[0];
		at += 8;
		len -= 8;
	}
	if (protocol == 17)
		ALWAYS(len >= 8 && read16(at + 4) == len);
	else
		ALWAYS(protocol == (type == 0x0800 ? 1 : 58) && len >= 8);
	if (!(p->flags & PACKET_CSUM_PARTIAL))
		ALWAYS(sums_up(ip, type == 0x86dd, protocol, at, len));
}

static void net_drain(void)
{
	struct packet *v[PACKET_VECTOR_MAX];
	uint32_t n;

	while ((n = mem_port_receive(port, v, PACKET_VECTOR_MAX))) {
		for (uint32_t i = 0; i < n; i++) {
			sent_check(v[i]);
			hash(v[i]->data, v[i]->len);
		}
		packet_free(&context->cache, v, n);
	}
}

static void command_frames(struct input *in)
{
	static const uint8_t group[6] = {0x33, 0x33, 0xff, 0, 1, 1};
	uint8_t choice = input_byte(in);
	uint32_t n = 1 + choice % 8;
	struct packet *v[8];
	struct input again;

	ALWAYS(packet_alloc(&context->cache, v, n) == n);
	for (uint32_t i = 0; i < n; i++) {
		static uint8_t bytes[FRAME_ROOM];
		struct frame_facts facts;
		uint32_t len;

		again = *in;
		len = frame_make(&again, &flows, bytes, &facts);
		if (!(choice & 0x80))
			memcpy(bytes, facts.group ? group : mac, 6);
		if (choice & 0x40)
			memset(bytes, 0xff, 6);
		if (len > pool_room(engine_pool(engine)))
			len = pool_room(engine_pool(engine));
		memcpy(v[i]->data, bytes, len);
		v[i]->len = v[i]->total = len;
		if (choice & 0x20)
			v[i]->flags = PACKET_CSUM_VALID;
	}
	*in = again;
	ALWAYS(mem_port_send(port, v, n) == n);
	run(20 * NSEC_PER_USEC);
	net_drain();
}

/* Gives back or sends the first n of those it holds. */
static void held_end(struct app *a, uint32_t n, bool send)
{
	int sent = 0;

	if (n > a->n)
		n = a->n;
	if (send && n)
		sent = napi_udp_send(a->socket, context, a->held, n);
	if (sent < 0)
		sent = 0;
	ALWAYS((uint32_t)sent <= n);
	napi_udp_release(a->socket, context, a->held + sent, n - (uint32_t)sent);
	a->n -= n;
	memmove(a->held, a->held + n, a->n * sizeof(*a->held));
}

static void received_check(const struct napi_udp_message *m)
{
	ALWAYS(m->len <= m->room && m->room <= 2048);
	hash(m->data, m->len);
	/* The whole of it is ours, and may be sent with what an earlier packet has left there. */
	memset(m->data + m->len, 0, (size_t)(m->room - m->len));
}

static void command_receive(struct input *in)
{
	uint8_t choice = input_byte(in);
	struct app *a = &app[choice % SOCKETS];
	uint32_t room = HELD_MAX - a->n;
	int n;

	if (room) {
		n = napi_udp_recv(a->socket, context, a->held + a->n, room);
		ALWAYS(n <= (int)room);
		for (int i = 0; i < n; i++) {
			received_check(&a->held[a->n + (uint32_t)i]);
			if (choice & 0x40 && a->held[a->n + (uint32_t)i].room)
				a->held[a->n + (uint32_t)i].len = a->held[a->n + (uint32_t)i].room;
		}
		if (n > 0)
			a->n += (uint32_t)n;
	}
	if (choice & 0x20)
		held_end(a, choice >> 2 & 7, choice & 0x80);
	run(20 * NSEC_PER_USEC);
	net_drain();
}

static void peer_choose(struct input *in, struct napi_udp_address *out)
{
	static const char *const texts[] = {
		"10.0.0.1:2000", "10.0.0.2:2001",   "10.0.0.99:9",	 "10.0.255.255:9",
		"8.8.8.8:53",	 "[fd00::1]:2000",  "[fd00::4]:2003",	 "[fd00::99]:9",
		"[ff02::1]:9",	 "[2001:db8::1]:9", "255.255.255.255:1", "[fe80::1%1]:9",
		"10.0.1.1:53",	 "[fd00::101]:53",  "0.0.0.0:9",	 "[::]:9",
	};

	ALWAYS(!napi_udp_address_parse(texts[input_byte(in) % 1], out));
}

static void command_send(struct input *in)
{
	uint8_t choice = input_byte(in);
	struct app *a = &app[choice % SOCKETS];
	static const uint8_t zeros[2048];
	struct napi_udp_address to;
	uint32_t room = HELD_MAX - a->n;
	int n;

	peer_choose(in, &to);
	if (choice & 0x80) {
		n = napi_udp_send_copy(a->socket, context, zeros, input_byte(in) * 8u,
				       choice & 0x40 ? NULL : &to);
		ALWAYS(n <= 2040);
	} else if (room) {
		n = napi_udp_alloc(a->socket, context, a->held + a->n,
				   1 + (choice >> 2 & 7) % room);
		for (int i = 0; i < n; i++) {
			struct napi_udp_message *m = &a->held[a->n++];

			ALWAYS(!m->len && m->room);
			memset(m->data, i, m->room);
			m->len = choice & 0x40 ? m->room : (uint16_t)(m->room / 2);
			m->peer = to;
		}
		if (choice & 0x20)
			held_end(a, a->n, true);
	}
	run(20 * NSEC_PER_USEC);
	net_drain();
}

static void command_socket(struct input *in)
{
	uint8_t choice = input_byte(in);
	struct app *a = &app[choice % SOCKETS];
	struct napi_udp_address address;

	switch (choice >> 2 & 7) {
	case 0:
		napi_udp_close(a->socket);
		app_open(a);
		break;
	case 1:
	case 2:
		peer_choose(in, &address);
		napi_udp_connect(a->socket, &address);
		break;
	case 3:
		napi_udp_connect(a->socket, NULL);
		break;
	case 4:
		napi_udp_arm(a->socket, context);
		break;
	default:
		peer_choose(in, &address);
		address.port = choice & 0x80 ? 53 : address.port;
		napi_udp_bind(a->socket, &address);
	}
}

static void command_address(struct input *in)
{
	static const char *const texts[] = {"10.0.1.1/16", "fd00::101/64", "10.9.9.9",
					    "fd00::4/64"};
	uint8_t choice = input_byte(in);
	const char *text = texts[choice & 3];

	if (choice & 0x80)
		udp_address_remove(udp, port, text, NULL);
	else if (choice & 0x40)
		udp_gateway_set(udp, port, choice & 1 ? "10.0.0.1" : "fd00::1", NULL);
	else
		udp_address_add(udp, port, text, NULL);
	run(20 * NSEC_PER_USEC);
	net_drain();
}

/*
 * A few seconds; or ten minutes, after which neighbours are forgotten, with one tick at their end
 * as after a suspend: six hundred take longer than all else of an input.
 */
static void command_time(struct input *in)
{
	uint8_t choice = input_byte(in);
	int64_t seconds = 1 + choice % 8;

	if (choice >= 0xf0) {
		seconds = NEIGHBOUR_STALE_S;
		engine->next_tick += seconds * NSEC_PER_SEC;
	}
	run(seconds * NSEC_PER_SEC);
	net_drain();
}

static void program_run(struct input *in)
{
	for (int i = 0; i < COMMANDS_MAX && in->at < in->end; i++) {
		switch (input_byte(in) % 8) {
		case 3:
			command_receive(in);
			break;
		case 4:
			command_send(in);
			break;
		case 5:
			command_socket(in);
			break;
		case 6:
			command_address(in);
			break;
		case 7:
			command_time(in);
			break;
		default:
			command_frames(in);
		}
	}
}

static void begin_alike(void)
{
	static const char *const local[SOCKETS] = {"[::]:53", "10.0.1.1:54", "[fd00::101]:54"};
	struct napi_udp_address address;
	struct error err;

	memset(&flows, 0, sizeof(flows));
	/* Given to it anew, the port has forgotten its addresses. */
	ALWAYS(!engine_handler_set(engine, port, udp, &err));
	ALWAYS(!udp_address_add(udp, port, "10.0.1.1/16", &err));
	ALWAYS(!udp_address_add(udp, port, "fd00::101/64", &err));
	for (int i = 0; i < SOCKETS; i++) {
		app_open(&app[i]);
		ALWAYS(!napi_udp_address_parse(local[i], &address));
		ALWAYS(!napi_udp_bind(app[i].socket, &address));
	}
	run(NSEC_PER_MSEC);
	net_drain();
}

static void sockets_check(void)
{
	for (int i = 0; i < SOCKETS; i++) {
		struct napi_udp_stats stats;

		napi_udp_stats_read(app[i].socket, &stats);
		ALWAYS(stats.queued + stats.held <= RECEIVE_MAX);
		ALWAYS(stats.allocated <= SEND_MAX);
		ALWAYS(stats.held + stats.allocated == app[i].n);
		ALWAYS(stats.received == stats.read + stats.queued);
	}
}

static void books_check(void)
{
	const struct napi_counters *c = napi_counters(port->queue[0].napi);
	uint64_t out = counter_read(&c->transmitted) + counter_read(&c->delivered);

	for (int reason = 0; reason < DROP_MAX; reason++)
		out += counter_read(&c->dropped[reason]);
	ALWAYS(counter_read(&c->received) + counter_read(&c->cloned) == out);
}

/*
 * Closes, clears, and lets pass what is done once a second. The next input begins as all do: so
 * long after a tick, and ticks are at whole seconds, by which neighbours age.
 */
static void end_alike(void)
{
	struct error err;
	int64_t tick;

	for (int i = 0; i < SOCKETS; i++)
		napi_udp_close(app[i].socket);
	/* What waits for neighbours waits no longer. */
	ALWAYS(!engine_handler_set(engine, port, NULL, &err));
	tick = (engine->next_tick / NSEC_PER_SEC + 1) * NSEC_PER_SEC;
	engine->next_tick = tick;
	run(tick + 100 * NSEC_PER_MSEC - machine_now(machine));
	net_drain();
	ALWAYS(!atomic_load(&udp_of(udp)->neighbours->entries));
	udp_of(udp)->neighbours->look = 0;
	udp_of(udp)->ephemeral = 0;
}

static void once(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	struct error err;

	sent_hash = 0;
	begin_alike();
	program_run(&in);
	sockets_check();
	end_alike();
	books_check();
	pool_cache_drain(&context->cache);
	if (engine_check(engine, &err)) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint32_t runs;
	uint64_t before;

	if (!machine) {
		start();
		once((const uint8_t *)"", 0);
	}
	once(data, size);
	if (runs++ % 16)
		return 0;
	before = sent_hash;
	once(data, size);
	ALWAYS(sent_hash == before);
	return 0;
}

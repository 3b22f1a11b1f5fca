/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merged, and apart again: what programs send comes out as it was, through GRO, the bridge and
 * either the packets that came, or a TAP, whose kernel takes them apart.
 */
#include "test.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include <core/gro.h>
#include <core/napi.h>

#include "rig.h"
#include "traffic.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define BYTES (UINT64_C(64) << 20)

static void run(struct rig *rig, unsigned ns, const char *command)
{
	assert_int_equal(netns_run(&rig->links, ns, "%s", command), 0);
}

/* IPv6, beside the IPv4 addresses of the rig. */
static void addresses_add(struct rig *rig, unsigned ns, const char *interface, int last)
{
	assert_int_equal(netns_run(&rig->links, ns,
				   "sysctl -qw net.ipv6.conf.%s.disable_ipv6=0 && "
				   "ip addr add fd09::%d/64 dev %s nodad",
				   interface, last, interface),
			 0);
}

static uint32_t types_of(const struct port *port)
{
	return atomic_load(&port->queue[0].napi->record->gro);
}

static void merge_on(struct rig *rig, const struct port *port)
{
	const struct queue_settings settings = {.gro_set = true, .gro = GRO_ON};

	assert_int_equal(ASK_PATIENTLY(engine_queue_set(rig->engine.engine, port->name, -1,
							&settings, NULL, NULL)),
			 0);
}

/*
 * How many segments of a stream come behind another one is a matter of time: an engine that polls
 * after each of them has none to merge. So what is asked for may take a few streams; whatever
 * comes of it, each of them is whole. Exactly is in tests/virtual/gro.c.
 */
#define STREAMS 5

/* A quarter of a stream's segments; it is mostly nearly all of them. */
static bool merged_enough(const struct port *port, uint64_t before)
{
	uint64_t merged = RIG_SUM(port, merged) - before;

	printf("  %s: %lu of %lu segments merged, %.1f packets a poll\n", port->name,
	       (unsigned long)merged, (unsigned long)(BYTES / 1448),
	       (double)RIG_SUM(port, received) / (double)RIG_SUM(port, polls));
	return merged > BYTES / 1448 / 4;
}

/* Merged at `in`, and at `between` too, where that is not NULL. */
static void carries_through(struct rig *rig, const struct port *in, const struct port *between,
			    unsigned from, unsigned to, const char *address)
{
	bool enough = false;

	for (int i = 0; i < STREAMS && !enough; i++) {
		uint64_t before[2] = {RIG_SUM(in, merged), between ? RIG_SUM(between, merged) : 0};

		stream_run(&rig->links, from, to, address, BYTES);
		enough = merged_enough(in, before[0]) &&
			 (!between || merged_enough(between, before[1]));
	}
	assert_true(enough);
}

static void carries(struct rig *rig, const struct port *in, unsigned from, unsigned to,
		    const char *address)
{
	carries_through(rig, in, NULL, from, to, address);
}

/* Between two XDP ports, which send single packets: out goes what came in. */
static void through_two_wires(enum poller poller)
{
	struct rig *rig = rig_begin(poller);
	struct port *a = rig_port(rig, rig->inner, "xdp:in0");
	struct port *b = rig_port(rig, rig->inner, "xdp:in1");

	assert_int_equal(types_of(a), 0); /* by itself it merges nothing here */
	merge_on(rig, a);
	merge_on(rig, b);
	addresses_add(rig, rig->left, NETNS_OUTER, 1);
	addresses_add(rig, rig->right, NETNS_OUTER, 2);
	carries(rig, a, rig->left, rig->right, "10.9.8.2");
	carries(rig, b, rig->right, rig->left, "fd09::1");
	rig_end(rig);
}

static void bridge_softirq(void **state)
{
	(void)state;
	through_two_wires(POLLER_SOFTIRQ);
}

static void bridge_thread(void **state)
{
	(void)state;
	through_two_wires(POLLER_THREAD);
}

static struct port *member(struct rig *rig, struct handler *bridge, const char *text, bool untagged)
{
	const struct bridge_vlan vlan = {.vid = 10, .pvid = untagged, .untagged = untagged};
	struct port *port;

	rig->bridge = bridge;
	port = rig_port(rig, rig->inner, text);
	assert_int_equal(bridge_vlan_add(bridge, port, &vlan, NULL), 0);
	merge_on(rig, port);
	return port;
}

/*
 * Two bridges with a trunk between them: each of the packets that were merged gets a tag at the
 * one, is merged with others that have one, and loses it at the other.
 */
static void bridge_tags(void **state)
{
	const struct bridge_config config = {.vlan_filtering = true};
	struct rig *rig = rig_begin(POLLER_SOFTIRQ);
	struct handler *bridge[2];
	struct port *a, *b, *from_a, *from_b;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(bridge_create(rig->engine.engine, &config, &bridge[i], NULL), 0);
	a = member(rig, bridge[0], "xdp:in0", true);
	from_b = member(rig, bridge[0], "mem:trunk0,peer=trunk1", false);
	from_a = member(rig, bridge[1], "mem:trunk1", false);
	b = member(rig, bridge[1], "xdp:in1", true);
	addresses_add(rig, rig->left, NETNS_OUTER, 1);
	addresses_add(rig, rig->right, NETNS_OUTER, 2);
	carries_through(rig, a, from_a, rig->left, rig->right, "10.9.8.2");
	carries_through(rig, b, from_b, rig->right, rig->left, "fd09::1");
	rig_end(rig);
}

/* To the host's kernel: one system call for many packets, by itself. */
static void into_a_tap(enum poller poller)
{
	struct rig *rig = rig_begin(poller);
	struct port *wire = rig_port(rig, rig->inner, "xdp:in0");
	struct port *tap = rig_port(rig, rig->inner, "tap:t0");

	assert_int_equal(types_of(wire), GRO_TCP | GRO_UDP);
	assert_int_equal(types_of(tap), 0);
	run(rig, rig->inner, "ip addr add 10.9.8.9/24 dev t0");
	addresses_add(rig, rig->left, NETNS_OUTER, 1);
	addresses_add(rig, rig->inner, "t0", 9);
	carries(rig, wire, rig->left, rig->inner, "10.9.8.9");
	carries(rig, wire, rig->left, rig->inner, "fd09::9");
	/* They went in as one: none was taken apart again. */
	netns_assert_conserved(wire);
	assert_int_equal(RIG_SUM(wire, cloned), 0);
	stream_run(&rig->links, rig->inner, rig->left, "10.9.8.1", BYTES);
	rig_end(rig);
}

static void tap_softirq(void **state)
{
	(void)state;
	into_a_tap(POLLER_SOFTIRQ);
}

static void tap_busy_poll(void **state)
{
	(void)state;
	into_a_tap(POLLER_BUSY_POLL);
}

enum { DATAGRAM = 1000, TRAIN = 40, TRAINS = 200 };

static void datagram_fill(uint8_t *at, uint32_t number)
{
	memset(at, (int)(uint8_t)number, DATAGRAM);
	memcpy(at, &number, sizeof(number));
}

/* Answers each train once it has come whole. */
static int datagrams_receive(void *arg, int up)
{
	const struct timeval patience = {.tv_sec = TRAFFIC_SECONDS};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4712)}, from;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 1 << 20;
	uint8_t bytes[2 * DATAGRAM], wanted[DATAGRAM];

	(void)arg;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || !netns_up(up))
		return 1;
	for (uint32_t i = 0; i < TRAINS * TRAIN; i++) {
		socklen_t size = sizeof(from);

		if (recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size) !=
		    DATAGRAM)
			return 2;
		datagram_fill(wanted, i);
		if (memcmp(bytes, wanted, DATAGRAM))
			return 3;
		if (i % TRAIN == TRAIN - 1 &&
		    sendto(fd, bytes, 1, 0, (struct sockaddr *)&from, size) != 1)
			return 4;
	}
	return 0;
}

static int datagrams_send(void *arg)
{
	const struct timeval patience = {.tv_sec = TRAFFIC_SECONDS};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4712)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = DATAGRAM;
	static uint8_t train[TRAIN * DATAGRAM];

	(void)arg;
	inet_pton(AF_INET, "10.9.8.9", &address.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)))
		return 1;
	for (uint32_t i = 0; i < TRAINS; i++) {
		for (uint32_t k = 0; k < TRAIN; k++)
			datagram_fill(train + k * DATAGRAM, i * TRAIN + k);
		if (send(fd, train, sizeof(train), 0) != sizeof(train))
			return 2;
		if (recv(fd, train, 1, 0) != 1)
			return 3;
	}
	return 0;
}

static uint64_t datagrams_merged(struct rig *rig, const struct port *wire)
{
	uint64_t before = RIG_SUM(wire, merged), merged;
	pid_t receiver, sender;

	receiver = netns_fork_up(&rig->links, rig->inner, datagrams_receive, NULL);
	sender = netns_fork(&rig->links, rig->left, datagrams_send, NULL);
	assert_int_equal(netns_wait(sender, TRAFFIC_SECONDS), 0);
	assert_int_equal(netns_wait(receiver, TRAFFIC_SECONDS), 0);
	merged = RIG_SUM(wire, merged) - before;
	printf("  %lu of %d datagrams merged\n", (unsigned long)merged, TRAINS * TRAIN);
	return merged;
}

/* A socket that knows nothing of it gets each datagram by itself. */
static void datagrams(void **state)
{
	struct rig *rig = rig_begin(POLLER_SOFTIRQ);
	struct port *wire = rig_port(rig, rig->inner, "xdp:in0");
	uint64_t merged = 0;

	(void)state;
	rig_port(rig, rig->inner, "tap:t0");
	run(rig, rig->inner, "ip addr add 10.9.8.9/24 dev t0");
	for (int i = 0; i < STREAMS && merged <= TRAINS * TRAIN / 4; i++)
		merged = datagrams_merged(rig, wire);
	assert_true(merged > TRAINS * TRAIN / 4);
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bridge_softirq), cmocka_unit_test(bridge_thread),
		cmocka_unit_test(bridge_tags),	  cmocka_unit_test(tap_softirq),
		cmocka_unit_test(tap_busy_poll),  cmocka_unit_test(datagrams),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

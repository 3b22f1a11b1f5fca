/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include "rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <port/netdev.h>

#define ETHERTYPE_TEST 0x88b5 /* for local experiments */
#define AHEAD 32

static struct rig *rig_open; /* one that a failed test has left keeps its threads, not its links */

#define CHECK(call)                                                                                \
	do {                                                                                       \
		struct error err = {0};                                                            \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

struct rig *rig_begin(enum poller poller)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	struct netlab *lab;

	assert_non_null(rig);
	if (rig_open)
		netns_links_close(&rig_open->links);
	netns_links_open(&rig->links, false);
	rig_open = rig;
	lab = rig->links.lab;
	rig->left = rig->links.outer[0];
	rig->right = rig->links.outer[1];
	rig->inner = rig->links.inner[0];
	CHECK(netlab_address_add(lab, rig->left, NETNS_OUTER, "10.9.8.1", 24, &err));
	CHECK(netlab_address_add(lab, rig->right, NETNS_OUTER, "10.9.8.2", 24, &err));
	netns_engine_open(&rig->engine, poller);
	CHECK(bridge_create(rig->engine.engine, &(struct bridge_config){0}, &rig->bridge, &err));
	return rig;
}

void rig_end(struct rig *rig)
{
	struct engine *engine = rig->engine.engine;

	for (uint32_t i = 0; i < 64; i++) {
		struct port *port = engine_port_at(engine, i);

		if (!port)
			continue;
		CHECK(engine_handler_set(engine, port, NULL, &err));
		netns_assert_conserved(port);
		CHECK(ASK_PATIENTLY(engine_port_remove(engine, port, &err)));
	}
	netns_engine_close(&rig->engine);
	rig_open = NULL;
	netns_links_close(&rig->links);
	free(rig);
}

static int port_add(struct rig *rig, unsigned ns, const char *text, struct port **port,
		    struct error *err)
{
	struct port_config config;
	int rc = port_config_parse(text, &config, err);

	if (rc)
		return rc;
	snprintf(config.netns, sizeof(config.netns), "%s", rig->links.lab->namespace[ns].name);
	return engine_port_add(rig->engine.engine, &config, port, err);
}

struct port *rig_port(struct rig *rig, unsigned ns, const char *text)
{
	struct port *port = NULL;

	CHECK(port_add(rig, ns, text, &port, &err));
	CHECK(engine_handler_set(rig->engine.engine, port, rig->bridge, &err));
	return port;
}

int rig_port_refused(struct rig *rig, unsigned ns, const char *text, struct error *err)
{
	struct port *port;
	int rc = port_add(rig, ns, text, &port, err);

	assert_true(rc < 0);
	assert_int_equal(err->code, rc);
	printf("  %s\n", err->text);
	return rc;
}

uint64_t rig_sum(const struct port *port, size_t napi_counter)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < port->queues; i++) {
		const char *counters = (const char *)napi_counters(port->queue[i].napi);

		sum += counter_read((const counter *)(counters + napi_counter));
	}
	return sum;
}

void rig_check_super(const struct port *port, uint64_t bytes)
{
	uint64_t packets = RIG_SUM(port, received);

	printf("  %lu bytes in %lu packets\n", bytes, packets);
	assert_true(RIG_SUM(port, received_bytes) > bytes);
	assert_true(packets < bytes / 1448 / 2);
}

bool rig_eventually(bool (*happened)(void *arg), void *arg)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < RIG_SECONDS * 1000; i++) {
		if (happened(arg))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

struct sum_wish {
	const struct port *port;
	size_t counter;
	uint64_t sum;
};

static bool sum_is(void *arg)
{
	const struct sum_wish *wish = arg;

	return rig_sum(wish->port, wish->counter) == wish->sum;
}

void rig_sum_is(const struct port *port, size_t napi_counter, uint64_t sum)
{
	struct sum_wish wish = {.port = port, .counter = napi_counter, .sum = sum};

	rig_eventually(sum_is, &wish);
	assert_int_equal(rig_sum(port, napi_counter), sum);
}

struct state_wish {
	const struct port *port;
	int state;
};

static bool state_is(void *arg)
{
	struct state_wish *wish = arg;

	return atomic_load((_Atomic int *)&wish->port->state) == wish->state;
}

void rig_wait_state(const struct port *port, enum port_state state)
{
	struct state_wish wish = {port, (int)state};

	if (!rig_eventually(state_is, &wish))
		fail_msg("port %s is not %s but %s", port->name, port_state_name(state),
			 port_state_name(port->state));
}

int rig_raw(struct rig *rig, unsigned ns, const char *interface)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int back, fd, on = 1;

	CHECK(netns_enter(rig->links.lab->namespace[ns].name, &back, &err));
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	address.sll_ifindex = (int)if_nametoindex(interface);
	netns_leave(back);
	assert_true(fd >= 0 && address.sll_ifindex);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

void rig_frame(struct rig_frame *frame, bool from_left, uint32_t i, unsigned tags)
{
	static const uint8_t addresses[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	uint8_t *at = frame->bytes;
	uint32_t value = i * 2654435761u;

	/* AF_PACKET sends one 802.1Q tag beyond the MTU, no other. */
	frame->size = 60 + i * 37 % (RIG_FRAME_MAX + 1 - 60) + (tags == 1 ? 4 : 0);
	memcpy(at, addresses[from_left], 6);
	memcpy(at + 6, addresses[!from_left], 6);
	at += 12;
	for (unsigned tag = 0; tag < tags; tag++, at += 4) {
		at[0] = tag + 1 < tags ? 0x88 : 0x81;
		at[1] = tag + 1 < tags ? 0xa8 : 0x00;
		at[2] = 0xa0 | ((100 + tag) >> 8); /* priority 5 */
		at[3] = (uint8_t)(100 + tag);
	}
	at[0] = ETHERTYPE_TEST >> 8;
	at[1] = ETHERTYPE_TEST & 0xff;
	at += 2;
	memcpy(at, &i, sizeof(i));
	for (at += sizeof(i); at < frame->bytes + frame->size; at++) {
		value = value * 1664525 + 1013904223;
		*at = (uint8_t)(value >> 24);
	}
}

void rig_frame_send(int fd, const struct rig_frame *frame)
{
	ssize_t sent = -1;

	/* The queue of a CPU, or an interface, that is full for a moment refuses it. */
	for (int i = 0; i < RIG_SECONDS * 1000 && sent < 0; i++) {
		sent = send(fd, frame->bytes, frame->size, 0);
		if (sent < 0 && errno != ENOBUFS)
			break;
		if (sent < 0)
			usleep(1000);
	}
	assert_int_equal(sent, frame->size);
}

/* Where packets were last seen, for who has to find out why one did not come. */
static void rig_explain(void)
{
	for (uint32_t i = 0; rig_open && i < 64; i++) {
		struct port *port = engine_port_at(rig_open->engine.engine, i);

		if (!port)
			continue;
		printf("  %s: %s, received %lu, transmitted %lu, lost %lu", port->spec,
		       port_state_name(port->state), RIG_SUM(port, received),
		       RIG_SUM(port, transmitted), RIG_SUM(port, lost));
		for (int reason = 0; reason < DROP_MAX; reason++)
			if (RIG_DROPPED(port, reason))
				printf(", %s %lu", drop_name(reason), RIG_DROPPED(port, reason));
		printf("\n");
	}
}

ssize_t rig_receive(int fd, struct iovec *iov, size_t n, struct tpacket_auxdata *auxdata)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(*auxdata))];
	struct msghdr message = {.msg_iov = iov,
				 .msg_iovlen = n,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	ssize_t size;

	if (poll(&wait, 1, RIG_SECONDS * 1000) != 1) {
		rig_explain();
		return -ETIMEDOUT;
	}
	size = recvmsg(fd, &message, 0);
	assert_true(size > 0 && !(message.msg_flags & MSG_TRUNC));
	assert_non_null(CMSG_FIRSTHDR(&message));
	memcpy(auxdata, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(*auxdata));
	return size;
}

static void tag_restore(struct rig_frame *frame, const struct tpacket_auxdata *auxdata)
{
	uint16_t tag[2] = {htons(auxdata->tp_vlan_tpid), htons(auxdata->tp_vlan_tci)};

	if (!(auxdata->tp_status & TP_STATUS_VLAN_VALID))
		return;
	memmove(frame->bytes + 16, frame->bytes + 12, frame->size - 12);
	memcpy(frame->bytes + 12, tag, 4);
	frame->size += 4;
}

/* Behind its tags a frame of ours has the test's type; others (ARP, …) are passed over. */
static bool frame_is_ours(const struct rig_frame *frame)
{
	uint32_t at = 12;

	while (at + 6 < frame->size && (frame->bytes[at] == 0x81 || frame->bytes[at + 1] == 0xa8))
		at += 4;
	return frame->bytes[at] == ETHERTYPE_TEST >> 8 &&
	       frame->bytes[at + 1] == (ETHERTYPE_TEST & 0xff);
}

bool rig_frame_waits(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, 0) == 1;
}

bool rig_frame_receive(int fd, struct rig_frame *frame)
{
	for (unsigned others = 0; others < 1000; others++) {
		struct iovec iov = {frame->bytes, sizeof(frame->bytes)};
		struct tpacket_auxdata auxdata;
		ssize_t size = rig_receive(fd, &iov, 1, &auxdata);

		if (size < 0)
			return false;
		frame->size = (uint32_t)size;
		tag_restore(frame, &auxdata);
		if (frame_is_ours(frame))
			return true;
	}
	return false;
}

void rig_pass(int from, int to, bool from_left, uint32_t first, uint32_t n, unsigned tags)
{
	struct rig_frame frame, got;
	uint32_t sent = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (; sent < n && sent < i + AHEAD; sent++) {
			rig_frame(&frame, from_left, first + sent, tags);
			rig_frame_send(from, &frame);
		}
		if (!rig_frame_receive(to, &got))
			fail_msg("frame %u of %u did not come", i, n);
		rig_frame(&frame, from_left, first + i, tags);
		assert_int_equal(got.size, frame.size);
		assert_memory_equal(got.bytes, frame.bytes, frame.size);
	}
}

int rig_socket(struct rig *rig, unsigned ns, int type)
{
	struct timeval patience = {.tv_sec = RIG_SECONDS};
	int back, fd;

	CHECK(netns_enter(rig->links.lab->namespace[ns].name, &back, &err));
	fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	netns_leave(back);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

#define CHUNK 65536

static void chunk_fill(uint8_t *chunk, uint64_t at)
{
	for (uint32_t i = 0; i < CHUNK; i += 8, at += 8)
		memcpy(chunk + i, &(uint64_t){at * UINT64_C(0x9e3779b97f4a7c15)}, 8);
}

static void tcp_send(int fd, uint64_t bytes)
{
	uint8_t chunk[CHUNK];

	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		size_t size = bytes - at < CHUNK ? bytes - at : CHUNK;

		chunk_fill(chunk, at);
		for (size_t done = 0; done < size;) {
			ssize_t part = send(fd, chunk + done, size - done, MSG_NOSIGNAL);

			if (part <= 0)
				_exit(1);
			done += (size_t)part;
		}
	}
	_exit(0);
}

static void tcp_receive(int fd, uint64_t bytes)
{
	uint8_t chunk[CHUNK], wanted[CHUNK];

	for (uint64_t at = 0; at < bytes; at += CHUNK) {
		size_t size = bytes - at < CHUNK ? bytes - at : CHUNK;
		ssize_t got = recv(fd, chunk, size, MSG_WAITALL);

		if (got != (ssize_t)size)
			fail_msg("after %lu of %lu bytes: %s", at, bytes,
				 got < 0 ? strerror(errno) : "end");
		chunk_fill(wanted, at);
		assert_memory_equal(chunk, wanted, size);
	}
}

void rig_tcp(struct rig *rig, unsigned from, unsigned to_ns, const char *to, uint64_t bytes)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4242)};
	int listener = rig_socket(rig, to_ns, SOCK_STREAM);
	int client = rig_socket(rig, from, SOCK_STREAM);
	int server, status, on = 1;
	pid_t child;

	inet_pton(AF_INET, to, &address.sin_addr);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	if (connect(client, (struct sockaddr *)&address, sizeof(address)))
		fail_msg("connect: %s", strerror(errno));
	server = accept(listener, NULL, NULL);
	assert_true(server >= 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		tcp_send(client, bytes);
	close(client);
	tcp_receive(server, bytes);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(server);
	close(listener);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet ports on veth: exact frames, tags, super-packets, and what goes wrong. */
#include "test.h"

#include "rig.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES 20000

/* Two packet ports on the bridge, and a raw socket at the far end of each. */
struct crossing {
	struct rig *rig;
	struct port *a, *b;
	int at_a, at_b;
};

static void crossing_begin(struct crossing *c, enum poller poller, const char *a, const char *b)
{
	struct rig *rig = c->rig = rig_begin(poller);

	c->a = rig_port(rig, rig->inner, a);
	c->b = rig_port(rig, rig->inner, b);
	c->at_a = rig_raw(rig, rig->left, NETNS_OUTER);
	c->at_b = rig_raw(rig, rig->right, NETNS_OUTER);
}

/* Sends frames [first, first + n) through, both ways. */
static void crossing_pass(struct crossing *c, uint32_t first, uint32_t n, unsigned tags)
{
	rig_pass(c->at_a, c->at_b, true, first, n, tags);
	rig_pass(c->at_b, c->at_a, false, first, n, tags);
}

static void crossing_end(struct crossing *c)
{
	close(c->at_a);
	close(c->at_b);
	rig_end(c->rig);
}

static void check_nothing_dropped(const struct port *port)
{
	for (int reason = 0; reason < DROP_MAX; reason++)
		assert_int_equal(RIG_DROPPED(port, reason), 0);
	assert_int_equal(RIG_SUM(port, lost), 0);
}

static void frames_pass(enum poller poller)
{
	struct crossing c;

	crossing_begin(&c, poller, "packet:in0", "packet:in1");
	assert_string_equal(c.a->mode, "vnet header, qdisc bypass");
	assert_int_equal(c.a->mtu, 1500);
	crossing_pass(&c, 0, FRAMES, 0);
	RIG_SUM_IS(c.a, received, FRAMES);
	RIG_SUM_IS(c.a, transmitted, FRAMES);
	RIG_SUM_IS(c.b, received, FRAMES);
	RIG_SUM_IS(c.b, transmitted, FRAMES);
	check_nothing_dropped(c.a);
	check_nothing_dropped(c.b);
	crossing_end(&c);
}

static void frames_pass_softirq(void **state)
{
	(void)state;
	frames_pass(POLLER_SOFTIRQ);
}

static void frames_pass_thread(void **state)
{
	(void)state;
	frames_pass(POLLER_THREAD);
}

static void tags_pass(void **state)
{
	struct crossing c;

	(void)state;
	crossing_begin(&c, POLLER_THREAD, "packet:in0", "packet:in1,qdisc_bypass=off");
	for (unsigned tags = 1; tags <= 2; tags++)
		crossing_pass(&c, 0, 2000, tags);
	crossing_end(&c);
}

static void tcp_keeps_super_packets(void **state)
{
	const uint64_t bytes = 64 << 20;
	struct rig *rig;
	struct port *a;

	(void)state;
	rig = rig_begin(POLLER_SOFTIRQ);
	a = rig_port(rig, rig->inner, "packet:in0");
	rig_port(rig, rig->inner, "packet:in1");
	rig_tcp(rig, rig->left, rig->right, "10.9.8.2", bytes);
	rig_check_super(a, bytes);
	rig_end(rig);
}

/* 60 KiB of TCP in VLAN 7, with what the headers of a local sender's super-packet say. */
#define SUPER_SIZE (14 + 4 + 20 + 20 + 61440)

static void super_packet(uint8_t *bytes, struct virtio_net_hdr *header)
{
	static const uint8_t headers[] = {
		0x02, 0,    0,	  0,	0,    0x02, 0x02, 0, 0,	   0,	 0,    0x01,
		0x81, 0x00, 0xa0, 0x07, /* VLAN 7 */
		0x08, 0x00, 0x45, 0x00, 0xf0, 0x28, 0,	  0, 0x40, 0x00, 0x40, 0x06,
		0,    0,							  /* IPv4 */
		10,   9,    8,	  1,	10,   9,    8,	  2,			  /* addresses */
		0x12, 0x34, 0x43, 0x21, 0,    0,    0,	  1, 0,	   0,	 0,    1, /* TCP */
		0x50, 0x10, 0x20, 0x00, 0,    0,    0,	  0,
	};

	memcpy(bytes, headers, sizeof(headers));
	for (uint32_t i = sizeof(headers); i < SUPER_SIZE; i++)
		bytes[i] = (uint8_t)(i * 3 + i / 256);
	*header = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = sizeof(headers),
		.gso_size = 1448,
		.csum_start = 38,
		.csum_offset = 16,
	};
}

/*
 * The kernel takes the tag out of super-packets as well, and counts csum_start without it: at both
 * ends of the way the header says 34, with the tag beside the packet.
 */
static void super_packets_keep_tags(void **state)
{
	uint8_t *bytes = malloc(SUPER_SIZE), *got = malloc(SUPER_SIZE);
	struct virtio_net_hdr header;
	struct iovec iov[2] = {{&header, sizeof(header)}, {bytes, SUPER_SIZE}};
	struct tpacket_auxdata auxdata;
	struct crossing c;
	int on = 1;

	(void)state;
	crossing_begin(&c, POLLER_SOFTIRQ, "packet:in0", "packet:in1");
	assert_int_equal(setsockopt(c.at_a, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	assert_int_equal(setsockopt(c.at_b, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
	super_packet(bytes, &header);
	assert_int_equal(writev(c.at_a, iov, 2), sizeof(header) + SUPER_SIZE);

	memset(&header, 0, sizeof(header));
	iov[1].iov_base = got;
	assert_int_equal(rig_receive(c.at_b, iov, 2, &auxdata), sizeof(header) + SUPER_SIZE - 4);
	assert_int_equal(header.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(header.gso_type, VIRTIO_NET_HDR_GSO_TCPV4);
	assert_int_equal(header.gso_size, 1448);
	assert_int_equal(header.csum_start, 34);
	assert_int_equal(header.csum_offset, 16);
	assert_int_equal(auxdata.tp_vlan_tci, 0xa007);
	assert_int_equal(auxdata.tp_vlan_tpid, 0x8100);
	assert_memory_equal(got, bytes, 12);
	assert_memory_equal(got + 12, bytes + 16, SUPER_SIZE - 16);
	crossing_end(&c);
	free(bytes);
	free(got);
}

static bool bypass_is_off(void *engine)
{
	return netns_logged(engine, "qdisc_bypass is now off");
}

/* A device that cannot segment: past the queueing discipline the kernel refuses, and we see it. */
static void bypass_ends_where_it_must(void **state)
{
	struct error err = {0};
	struct rig *rig;

	(void)state;
	rig = rig_begin(POLLER_THREAD);
	assert_int_equal(
		netlab_offload_set(rig->links.lab, rig->inner, "in1", NETLAB_TSO, false, &err), 0);
	rig_port(rig, rig->inner, "packet:in0");
	rig_port(rig, rig->inner, "packet:in1");
	rig_tcp(rig, rig->left, rig->right, "10.9.8.2", 16 << 20);
	assert_true(rig_eventually(bypass_is_off, &rig->engine));
	rig_end(rig);

	/* It could, and cannot any more. */
	rig = rig_begin(POLLER_THREAD);
	rig_port(rig, rig->inner, "packet:in0");
	rig_port(rig, rig->inner, "packet:in1");
	rig_tcp(rig, rig->left, rig->right, "10.9.8.2", 4 << 20);
	assert_false(netns_logged(&rig->engine, "qdisc_bypass"));
	assert_int_equal(
		netlab_offload_set(rig->links.lab, rig->inner, "in1", NETLAB_TSO, false, &err), 0);
	for (int i = 0; i < 40 && !bypass_is_off(&rig->engine); i++)
		rig_tcp(rig, rig->left, rig->right, "10.9.8.2", 1 << 20);
	assert_true(rig_eventually(bypass_is_off, &rig->engine));
	rig_end(rig);
}

static void queues_share(void **state)
{
	struct crossing c;
	struct rig *rig;
	struct port *a;
	int host, off = 0;
	unsigned used = 0;

	(void)state;
	crossing_begin(&c, POLLER_SOFTIRQ, "packet:in0,queues=4", "packet:in1,queues=2");
	rig = c.rig;
	a = c.a;
	assert_int_equal(a->queues, 4);
	host = rig_raw(rig, rig->inner, "in0");
	/* Past the queueing discipline nobody would see what it sends. */
	assert_int_equal(setsockopt(host, SOL_PACKET, PACKET_QDISC_BYPASS, &off, sizeof(off)), 0);
	/* One flow stays in order, and what the host itself sends on ma is not received from it. */
	rig_pass(c.at_a, c.at_b, true, 0, 2000, 0);
	rig_pass(host, c.at_a, false, 5000, 100, 0);
	RIG_SUM_IS(a, received, 2000);
	/* Many flows spread. */
	for (int i = 0; i < 16; i++)
		rig_tcp(rig, rig->left, rig->right, "10.9.8.2", 100000);
	for (uint32_t i = 0; i < a->queues; i++)
		used += counter_read(&napi_counters(a->queue[i].napi)->received) > 2;
	assert_true(used > 1);
	close(host);
	crossing_end(&c);
}

/* By the port or, which knows the state too, by the bridge. */
static bool ten_are_dropped(void *arg)
{
	struct port *a = arg;

	return RIG_DROPPED(a, DROP_TX_DOWN) + RIG_DROPPED(a, DROP_BRIDGE_NO_PORT) == 10;
}

/* Takes b's interface down or up; returns when the port has seen it. */
static void link_set(struct crossing *c, bool up)
{
	struct error err = {0};

	netlab_link_up(c->rig->links.lab, c->rig->inner, "in1", up, &err);
	rig_wait_state(c->b, up ? PORT_UP : PORT_DOWN);
}

static void interface_down_up_away(void **state)
{
	struct error err = {0};
	struct rig_frame frame;
	struct crossing c;

	(void)state;
	crossing_begin(&c, POLLER_SOFTIRQ, "packet:in0", "packet:in1");
	rig_pass(c.at_a, c.at_b, true, 0, 100, 0);

	link_set(&c, false);
	rig_frame(&frame, true, 0, 0);
	for (int i = 0; i < 10; i++)
		rig_frame_send(c.at_a, &frame);
	assert_true(rig_eventually(ten_are_dropped, c.a));
	assert_false(rig_frame_waits(c.at_b));

	link_set(&c, true);
	/* From there first: so its poller has read the error that the socket had of being down. */
	rig_pass(c.at_b, c.at_a, false, 100, 100, 0);
	rig_pass(c.at_a, c.at_b, true, 100, 100, 0);

	assert_int_equal(netlab_link_delete(c.rig->links.lab, c.rig->inner, "in1", &err), 0);
	rig_wait_state(c.b, PORT_GONE);
	rig_frame(&frame, true, 0, 0);
	rig_frame_send(c.at_a, &frame);
	crossing_end(&c);
}

/* The socket's error is read only once the interface is up again: it is up all the same. */
static void an_old_error_is_old(void **state)
{
	struct crossing c;

	(void)state;
	crossing_begin(&c, POLLER_THREAD, "packet:in0", "packet:in1");
	assert_int_equal(napi_disable(c.b->queue[0].napi, 60 * NSEC_PER_SEC), 0);
	link_set(&c, false);
	link_set(&c, true);
	assert_int_equal(napi_enable(c.b->queue[0].napi), 0);
	rig_pass(c.at_b, c.at_a, false, 0, 100, 0);
	rig_pass(c.at_a, c.at_b, true, 0, 100, 0);
	assert_int_equal(c.b->state, PORT_UP);
	crossing_end(&c);
}

/* The interface goes away while super-packets are on their way, and comes again under its name. */
static void reopens_by_name(void **state)
{
	struct error err = {0};
	struct rig *rig;
	struct port *b;
	int at_a, at_b;

	(void)state;
	rig = rig_begin(POLLER_THREAD);
	rig_port(rig, rig->inner, "packet:in0");
	b = rig_port(rig, rig->inner, "packet:in1");
	netlab_link_delete(rig->links.lab, rig->inner, "in1", &err);
	rig_wait_state(b, PORT_GONE);
	assert_int_equal(engine_port_remove(rig->engine.engine, b, &err), 0);
	assert_int_equal(
		netlab_veth_add(rig->links.lab, rig->right, NETNS_OUTER, rig->inner, "in1", &err),
		0);
	netlab_link_up(rig->links.lab, rig->right, NETNS_OUTER, true, &err);
	b = rig_port(rig, rig->inner, "packet:in1");
	assert_true(netns_logged(&rig->engine, "the interface is down: ip link set in1 up"));
	assert_int_equal(b->state, PORT_DOWN);
	netlab_link_up(rig->links.lab, rig->inner, "in1", true, &err);
	rig_wait_state(b, PORT_UP);
	at_a = rig_raw(rig, rig->left, NETNS_OUTER);
	at_b = rig_raw(rig, rig->right, NETNS_OUTER);
	/* As above: it was opened while its interface was down. */
	rig_pass(at_b, at_a, false, 0, 100, 0);
	rig_pass(at_a, at_b, true, 0, 100, 0);
	close(at_a);
	close(at_b);
	rig_end(rig);
}

static bool some_are_received(void *arg)
{
	return RIG_SUM((struct port *)arg, received) > 0;
}

static bool all_are_counted(void *arg)
{
	struct port *port = arg;

	return RIG_SUM(port, received) + RIG_SUM(port, lost) == 1001;
}

/*
 * What the kernel had no room for is counted, and with what came is all that was sent. The count
 * comes with the first packet after.
 */
static void lost_is_counted(void **state)
{
	struct rig_frame frame;
	struct rig *rig;
	struct port *a;
	int at_a;

	(void)state;
	rig = rig_begin(POLLER_SOFTIRQ);
	a = rig_port(rig, rig->inner, "packet:in0,ring=16");
	at_a = rig_raw(rig, rig->left, NETNS_OUTER);
	assert_int_equal(napi_disable(a->queue[0].napi, 60 * NSEC_PER_SEC), 0);
	rig_frame(&frame, true, 40, 0);
	for (int i = 0; i < 1000; i++)
		rig_frame_send(at_a, &frame);
	assert_int_equal(napi_enable(a->queue[0].napi), 0);
	assert_true(rig_eventually(some_are_received, a));
	rig_frame_send(at_a, &frame);
	assert_true(rig_eventually(all_are_counted, a));
	printf("  received %lu, lost %lu\n", RIG_SUM(a, received), RIG_SUM(a, lost));
	assert_true(RIG_SUM(a, lost) > 900);
	close(at_a);
	rig_end(rig);
}

static bool four_are_sent(void *arg)
{
	struct port *port = arg;

	return counter_read(&port->queue[0].transmit->packets) == 4;
}

/* A super-packet for a port that takes none comes out in segments. */
static void segments_for_mem(void **state)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
	int size = 1000, fd;
	uint8_t payload[4000] = {0};
	struct rig *rig;
	struct port *a, *mem;

	(void)state;
	rig = rig_begin(POLLER_SOFTIRQ);
	a = rig_port(rig, rig->inner, "packet:in0");
	mem = rig_port(rig, rig->inner, "mem:sink");
	assert_int_equal(
		netns_run(&rig->links, rig->left,
			  "ip neigh add 10.9.8.3 lladdr 02:00:00:00:00:03 dev " NETNS_OUTER),
		0);
	inet_pton(AF_INET, "10.9.8.3", &to.sin_addr);
	fd = rig_socket(rig, rig->left, SOCK_DGRAM);
	assert_int_equal(setsockopt(fd, SOL_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
	assert_int_equal(
		sendto(fd, payload, sizeof(payload), 0, (struct sockaddr *)&to, sizeof(to)),
		sizeof(payload));
	assert_true(rig_eventually(four_are_sent, mem));
	assert_int_equal(counter_read(&mem->queue[0].transmit->bytes), 4 * 1042);
	RIG_SUM_IS(a, received, 1);
	RIG_SUM_IS(a, cloned, 3);
	close(fd);
	rig_end(rig);
}

static void errors_say_the_fix(void **state)
{
	struct error err = {0};
	struct rig *rig;

	(void)state;
	rig = rig_begin(POLLER_SOFTIRQ);
	rig_port(rig, rig->inner, "packet:in0");
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:nothere", &err), -ENODEV);
	assert_non_null(strstr(err.text, "nothere"));
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:averyverylongname0", &err),
			 -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:in1,queues=65", &err), -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:in1,ring=70000", &err), -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:in1,color=red", &err), -EINVAL);
	assert_non_null(strstr(err.text, "qdisc_bypass"));
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:in1,qdisc_bypass=1", &err),
			 -EINVAL);
	/* Open already, here or in another engine. */
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:in0,name=again", &err),
			 -EADDRINUSE);
	assert_non_null(strstr(err.text, "packet:in0"));
	assert_int_equal(netns_run(&rig->links, rig->inner, "ip tuntap add tun0 mode tun"), 0);
	assert_int_equal(rig_port_refused(rig, rig->inner, "packet:tun0", &err), -EINVAL);
	assert_non_null(strstr(err.text, "not an Ethernet"));
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_pass_softirq),
		cmocka_unit_test(frames_pass_thread),
		cmocka_unit_test(tags_pass),
		cmocka_unit_test(tcp_keeps_super_packets),
		cmocka_unit_test(super_packets_keep_tags),
		cmocka_unit_test(bypass_ends_where_it_must),
		cmocka_unit_test(queues_share),
		cmocka_unit_test(interface_down_up_away),
		cmocka_unit_test(an_old_error_is_old),
		cmocka_unit_test(reopens_by_name),
		cmocka_unit_test(lost_is_counted),
		cmocka_unit_test(segments_for_mem),
		cmocka_unit_test(errors_say_the_fix),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The xdp port on veth pairs: packets, counters, opening and closing. */
#include "xdp_rig.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

static void crosses(const char *options, const char *mode, enum poller poller, bool apart)
{

	netns_links_open(&links, apart);
	netns_engine_open(&e, poller);
	ports_open(options);
	assert_string_equal(e.port[0]->mode, mode);
	if (apart)
		assert_int_equal(e.port[0]->ifindex, e.port[1]->ifindex);
	assert_int_equal(netns_cross(&links, 0, 20000, 60), 20000);
	assert_int_equal(netns_cross(&links, 1, 5000, 1514), 5000);
	netns_assert_received(e.port[0], 20000);
	netns_assert_transmitted(e.port[1], 20000);
	netns_assert_received(e.port[1], 5000);
	netns_assert_transmitted(e.port[0], 5000);
	netns_assert_conserved(e.port[0]);
	netns_assert_conserved(e.port[1]);
}

static void softirq_native(void **state)
{
	(void)state;
	crosses("", "native, copy", POLLER_SOFTIRQ, false);
}

/* Two namespaces, in which the interfaces have the same name and index. */
static void thread_native(void **state)
{
	(void)state;
	crosses("mode=native,zerocopy=off", "native, copy", POLLER_THREAD, true);
}

static void softirq_generic(void **state)
{
	(void)state;
	crosses("mode=generic", "generic, copy", POLLER_SOFTIRQ, true);
}

static void thread_generic(void **state)
{
	(void)state;
	crosses("mode=generic,ring=512", "generic, copy", POLLER_THREAD, false);
}

/* Each queue's sending is a NAPI of its own, by another poller on another CPU. */
static void tx_napi_native(void **state)
{
	struct queue_settings settings = {.poller_set = true, .cpu_set = true};

	(void)state;
	for (unsigned poller = 0; poller < POLLER_MAX; poller++) {
		settings.poller = (enum poller)poller;
		settings.cpu = 1;
		netns_links_open(&links, false);
		netns_engine_open(&e, (enum poller)((poller + 1) % POLLER_MAX));
		for (int i = 0; i < 2; i++)
			assert_int_equal(
				ASK_PATIENTLY(engine_queue_set(e.engine, i ? "p1-tx" : "p0-tx", -1,
							       &settings, NULL, NULL)),
				0);
		ports_open("tx_napi=yes");
		assert_int_equal(napi_poller(e.port[1]->queue[0].tx), poller);
		assert_int_equal(netns_cross(&links, 0, 10000, 60), 10000);
		assert_int_equal(netns_cross(&links, 1, 5000, 1514), 5000);
		netns_assert_transmitted(e.port[1], 10000);
		/* Live, back to who sends. */
		assert_int_equal(ASK_PATIENTLY(engine_port_remove(
					 e.engine, engine_port_find(e.engine, "p1-tx"), NULL)),
				 0);
		assert_int_equal(netns_cross(&links, 0, 10000, 60), 10000);
		netns_assert_conserved(e.port[0]);
		netns_assert_conserved(e.port[1]);
		netns_engine_ports_remove(&e);
		netns_engine_close(&e);
		netns_links_close(&links);
	}
}

/* More than can be taken: each packet was received, or is counted as lost. */
static void flood_is_accounted(void **state)
{
	struct flooded flooded = {.side = 0};

	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_THREAD);
	ports_open("ring=64");
	flooded.given = netns_flood(&links, 0, 200000, 60);
	assert_true(eventually(is_accounted, &flooded));
	assert_true(netns_received(e.port[0]) > 0);
	netns_assert_conserved(e.port[0]);
}

static void addresses_add(const char *interface)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(netns_run(&links, links.outer[i],
					   "ip addr add 10.9.9.%d/24 dev %s && ip link set %s up",
					   i + 1, interface, interface),
				 0);
	}
}

/*
 * Senders on veth leave checksums to the device, and AF_XDP does not see that they do: napier
 * completes them, says so once, and can be told not to.
 */
static void completes_checksums(void **state)
{
	const char *said;

	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_THREAD);
	addresses_add(NETNS_OUTER);
	ports_open("");
	assert_true(netns_tcp(&links, links.outer[0], links.outer[1], "10.9.9.2", 3000000, 60));
	said = "p0: a sender leaves TCP and UDP checksums to its device";
	assert_true(log_says(said));
	sleep_ms(1500);
	assert_int_equal(netns_logged(&e, said), 1);
	netns_assert_conserved(e.port[0]);
	netns_assert_conserved(e.port[1]);
	netns_engine_ports_remove(&e);

	/* Without it the connection does not come about: this is what is being prevented. */
	netns_log_clear(&e);
	ports_open("checksum=off");
	assert_false(netns_tcp(&links, links.outer[0], links.outer[1], "10.9.9.2", 1000, 3));
	netns_engine_ports_remove(&e);

	/* With complete checksums from the senders there is nothing to say. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			netns_run(&links, links.outer[i], "ethtool -K out tx off >/dev/null"), 0);
	ports_open("");
	assert_true(netns_tcp(&links, links.outer[1], links.outer[0], "10.9.9.1", 3000000, 60));
	sleep_ms(1500);
	assert_nothing_said();
}

/* Inside a tunnel, too: the outer checksum is complete, the inner one is not. */
static void completes_checksums_in_tunnels(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	addresses_add(NETNS_OUTER);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			netns_run(&links, links.outer[i],
				  "ip link add vx type vxlan id 7 remote 10.9.9.%d dev out "
				  "dstport %d && ip addr add 10.9.8.%d/24 dev vx && "
				  "ip link set vx up",
				  2 - i, 4789, i + 1),
			0);
	ports_open("");
	assert_true(netns_tcp(&links, links.outer[0], links.outer[1], "10.9.8.2", 300000, 60));
}

#define TAG 0x2007 /* priority 1, VLAN 7 */

/* Makes the stack at this end send with a tag beside the packet, as it does for VLAN interfaces. */
static int tag_egress(void *arg)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = htons(0x8100)},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = TAG},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_vlan_push},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_EGRESS,
		    .ifindex = (int)if_nametoindex(NETNS_OUTER));
	LIBBPF_OPTS(bpf_tc_opts, options);

	(void)arg;
	options.prog_fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "tag", "Dual BSD/GPL", code,
					sizeof(code) / sizeof(*code), NULL);
	return options.prog_fd < 0 || bpf_tc_hook_create(&hook) || bpf_tc_attach(&hook, &options);
}

/* The tag with which a frame comes out at this end, -1: none comes. */
static int tag_receive(int side, int from)
{
	uint8_t frame[2048], control[256];
	struct iovec iov = {.iov_base = frame, .iov_len = sizeof(frame)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct timeval limit = {.tv_sec = NETNS_SECONDS};
	struct sockaddr_ll address;
	socklen_t size = sizeof(address);
	int fd = links.far[side], one = 1;

	/* A socket for one protocol gets its packets after the tag was taken off. */
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	address.sll_protocol = htons(ETH_P_ALL);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	netns_flood(&links, from, 1, 60);
	if (recvmsg(fd, &message, 0) < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		struct tpacket_auxdata aux;

		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		return aux.tp_status & TP_STATUS_VLAN_VALID ? aux.tp_vlan_tci : 0;
	}
	return -1;
}

/*
 * The kernel keeps a VLAN's tag beside the packet until the device puts it in; a veth never does.
 * In native mode the tag is there all the same. In generic mode it cannot be, which is said.
 */
static void keeps_vlan_tags(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	ports_open("");
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
	assert_int_equal(
		netns_wait(netns_fork(&links, links.outer[0], tag_egress, NULL), NETNS_SECONDS), 0);
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
	/* The longest that the MTU allows, which is longer still with the tag. */
	assert_int_equal(netns_cross(&links, 0, 1000, 1514), 1000);
	assert_int_equal(tag_receive(1, 0), TAG);
	assert_nothing_said();
	netns_engine_ports_remove(&e);

	ports_open("mode=generic");
	assert_true(netns_logged(&e, "p0: VLAN tags that the peer's stack leaves to the device are "
				     "lost: at the peer, ethtool -K PEER txvlan off"));
}

static unsigned descriptors(void)
{
	DIR *files = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(files);
	while (readdir(files))
		n++;
	closedir(files);
	return n;
}

static long resident_kb(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size, resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* With traffic in both directions while it closes; every frame comes back each time. */
static void opens_and_closes_fifty_times(void **state)
{
	unsigned files = 0;
	long memory = 0;

	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_THREAD);
	for (int i = 0; i < 50; i++) {
		ports_open(i % 5 == 0 ? "mode=generic" : i % 2 ? "tx_napi=yes" : "");
		/* What is left of a flood has another size, and is passed over. */
		assert_int_equal(netns_cross(&links, i % 2, 300, 200), 300);
		netns_flood(&links, 0, 500, 60);
		netns_flood(&links, 1, 500, 60);
		netns_engine_ports_remove(&e);
		netns_drain(&links, 0);
		netns_drain(&links, 1);
		if (i == 4) {
			files = descriptors();
			memory = resident_kb();
		}
	}
	assert_int_equal(descriptors(), files);
	/* A sanitizer keeps freed memory for a while, and looks for leaks itself. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)memory;
#else
	assert_in_range(resident_kb(), 0, memory + 512);
#endif
}

static int run_engine(void *arg, int up)
{
	(void)arg;
	netns_engine_open(&e, POLLER_SOFTIRQ);
	ports_open("");
	if (netns_up(up))
		pause();
	return 1;
}

static void killed_engine_leaves_the_interface(void **state)
{
	pid_t pid;

	(void)state;
	netns_links_open(&links, false);
	pid = netns_fork_up(&links, links.inner[0], run_engine, NULL);
	assert_int_equal(netns_cross(&links, 0, 100, 60), 100);
	kill(pid, SIGKILL);
	assert_int_equal(netns_wait(pid, NETNS_SECONDS), -1);
	/* No program, not promiscuous; the kernel's own stack has the interface again. */
	assert_int_equal(netns_run(&links, links.inner[0],
				   "! ip -d link show in0 | grep -e xdp -e 'promiscuity [1-9]'"),
			 0);
	assert_int_equal(netns_run(&links, links.outer[0], "ip addr add 10.9.9.1/24 dev out"), 0);
	assert_int_equal(netns_run(&links, links.inner[0], "ip addr add 10.9.9.2/24 dev in0"), 0);
	assert_true(netns_tcp(&links, links.outer[0], links.inner[0], "10.9.9.2", 100000, 60));
	netns_engine_open(&e, POLLER_SOFTIRQ);
	ports_open("");
	assert_int_equal(netns_cross(&links, 1, 100, 60), 100);
}

static void second_engine_is_told_of_the_first(void **state)
{
	struct error err = {0};
	char wanted[64];
	pid_t pid;

	(void)state;
	netns_links_open(&links, false);
	pid = netns_fork_up(&links, links.inner[0], run_engine, NULL);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	assert_int_equal(netns_engine_ports(&e, &links, "xdp", "", &err), -EBUSY);
	snprintf(wanted, sizeof(wanted), "'napier', held by process %d (netns-xdp)", pid);
	assert_non_null(strstr(err.text, wanted));
	assert_non_null(strstr(err.text, "xdp:in0: "));
	/* The first is not disturbed. */
	assert_int_equal(netns_cross(&links, 0, 100, 60), 100);
	kill(pid, SIGKILL);
	netns_wait(pid, NETNS_SECONDS);
}

static void takes_all_queues(void **state)
{
	cpu_set_t before;
	int one = 1;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	netns_links_open(&links, false);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			netns_run(&links, links.inner[i], "ethtool -L %s rx 2 tx 2", links.name[i]),
			0);
		assert_int_equal(netns_run(&links, links.outer[i], "ethtool -L out rx 2 tx 2"), 0);
	}
	netns_engine_open(&e, POLLER_THREAD);
	ports_open("");
	assert_int_equal(e.port[0]->queues, 2);
	assert_nothing_said();
	/* Without a qdisc the sender's CPU chooses its queue. */
	setsockopt(links.far[0], SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
	for (int cpu = 0; cpu < 2; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		assert_int_equal(netns_cross(&links, 0, 2000, 60), 2000);
	}
	sched_setaffinity(0, sizeof(before), &before);
	netns_assert_received(e.port[0], 4000);
	netns_assert_transmitted(e.port[1], 4000);
	for (int i = 0; i < 2; i++) {
		const struct port_queue *in = &e.port[0]->queue[i], *out = &e.port[1]->queue[i];

		assert_int_equal(counter_read(&napi_counters(in->napi)->received), 2000);
		assert_int_equal(counter_read(&out->transmit->packets), 2000);
	}
	netns_assert_conserved(e.port[0]);
	netns_engine_ports_remove(&e);

	/* Fewer than there are: those that nobody polls are named. */
	ports_open("queues=1");
	assert_true(netns_logged(&e, "p0: receive queue 1 is polled by nobody"));
	assert_true(netns_logged(&e, "ethtool -L in0 rx 1 tx 1, or queues=2"));
}

/* A pool that the rings would swallow whole: they get less, it is said, and traffic flows. */
static void shares_a_small_pool(void **state)
{
	struct flooded flooded[] = {{.side = 0}, {.side = 1}};

	(void)state;
	netns_links_open(&links, false);
	netns_engine_open_small(&e, POLLER_SOFTIRQ, 512);
	ports_open("");
	assert_true(netns_logged(&e, "p0: only 256 frames a queue to receive into (ring=2048)"));
	assert_true(netns_logged(&e, "p1: only 128 frames a queue to receive into (ring=2048)"));
	/* More at once than there are frames: some are lost, none stays, nothing gets stuck. */
	for (int i = 0; i < 20; i++)
		for (int side = 0; side < 2; side++)
			flooded[side].given += netns_flood(&links, side, 2000, 61);
	for (int side = 0; side < 2; side++)
		assert_true(eventually(is_accounted, &flooded[side]));
	for (int side = 0; side < 2; side++) {
		netns_assert_conserved(e.port[side]);
		assert_true(eventually(queue_idle, &side));
		netns_drain(&links, side);
	}
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(netns_cross(&links, i % 2, 32, 60), 32);
	netns_assert_conserved(e.port[0]);
	netns_assert_conserved(e.port[1]);
}

/* Keeps all that comes in. */
static struct {
	struct handler base;
	_Atomic uint32_t n;
	struct packet *v[4096];
} hoard;

static void hoard_input(struct handler *handler, struct context *context, struct port *in,
			struct packet **v, uint32_t n)
{
	(void)handler;
	(void)context;
	(void)in;
	assert_true(hoard.n + n <= sizeof(hoard.v) / sizeof(*hoard.v));
	memcpy(hoard.v + hoard.n, v, n * sizeof(*v));
	hoard.n += n;
}

static const struct handler_ops hoard_ops = {.name = "hoard", .input = hoard_input};

/* What the kernel has no frame for does not reach the port, and so does not wake it. */
static bool receives_again(void *before)
{
	netns_flood(&links, 0, 1, 61);
	return netns_received(e.port[0]) > *(const uint64_t *)before;
}

/*
 * Others have all frames, so the kernel has none to receive into, and no packet will come to wake
 * the port: when there are frames again it has to notice by itself.
 */
static void recovers_from_an_empty_pool(void **state)
{
	struct context *context;
	struct error err = {0};
	uint64_t before;

	(void)state;
	netns_links_open(&links, false);
	netns_engine_open_small(&e, POLLER_THREAD, 512);
	ports_open("");
	hoard.base.ops = &hoard_ops;
	hoard.base.engine = e.engine;
	assert_int_equal(engine_handler_set(e.engine, e.port[0], &hoard.base, &err), 0);
	netns_flood(&links, 0, 2000, 61);
	/* All but those that wait at the other port. */
	netns_wait_received(e.port[0], 512 - 128);
	/* The watch wakes the port to have the lost ones counted: after that nothing does. */
	sleep_ms(2500);
	assert_int_equal(engine_handler_set(e.engine, e.port[0], e.cross, &err), 0);

	assert_int_equal(engine_context_open(e.engine, &context), 0);
	for (uint32_t i = 0; i < hoard.n; i += PACKET_VECTOR_MAX) {
		uint32_t n = hoard.n - i;

		packet_free(&context->cache, hoard.v + i,
			    n < PACKET_VECTOR_MAX ? n : PACKET_VECTOR_MAX);
	}
	hoard.n = 0;
	engine_context_close(context);
	before = netns_received(e.port[0]);
	assert_true(eventually(receives_again, &before));
	assert_int_equal(netns_cross(&links, 0, 100, 60), 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		XDP_TEST(softirq_native),
		XDP_TEST(thread_native),
		XDP_TEST(softirq_generic),
		XDP_TEST(thread_generic),
		XDP_TEST(tx_napi_native),
		XDP_TEST(flood_is_accounted),
		XDP_TEST(completes_checksums),
		XDP_TEST(completes_checksums_in_tunnels),
		XDP_TEST(keeps_vlan_tags),
		XDP_TEST(opens_and_closes_fifty_times),
		XDP_TEST(killed_engine_leaves_the_interface),
		XDP_TEST(second_engine_is_told_of_the_first),
		XDP_TEST(takes_all_queues),
		XDP_TEST(shares_a_small_pool),
		XDP_TEST(recovers_from_an_empty_pool),
	};

	netns_require();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]); /* by hand: one of them */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

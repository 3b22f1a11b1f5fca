/* SPDX-License-Identifier: BSD-2-Clause */
/* What the xdp port sees of its interface, and says: up and down, MTU, queues, program, silence. */
#include "xdp_rig.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <port/device.h>

static bool is_state(void *state)
{
	return e.port[0]->state == *(const int *)state;
}

/* Port and kernel have seen that the link is up again; before that a sender's packets are dropped.
 */
static void wait_up(void)
{
	int up = PORT_UP;

	assert_true(eventually(is_state, &up));
	assert_int_equal(
		netns_run(&links, links.outer[0],
			  "for i in $(seq 300); do ip link show out | grep -q 'state UP' && "
			  "exit 0; sleep 0.1; done; exit 1"),
		0);
}

/* Up and down, away and back. */
static void follows_its_interface(void **state)
{
	int down = PORT_DOWN, gone = PORT_GONE;
	struct flooded flooded = {.side = 1};
	int side = 0;

	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_THREAD);
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 down"), 0);
	ports_open("");
	assert_int_equal(e.port[0]->state, PORT_DOWN);
	assert_true(netns_logged(&e, "p0: the interface is down: ip link set in0 up\n"));
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 up"), 0);
	wait_up();
	assert_int_equal(netns_cross(&links, 0, 1000, 60), 1000);
	assert_int_equal(netns_cross(&links, 1, 1000, 60), 1000);

	/*
	 * Down with packets under way, and up again: nothing stays stuck. Late ones are told from
	 * those that cross afterwards by their size.
	 */
	netns_assert_received(e.port[1], 1000);
	flooded.given = accounted(1) + netns_flood(&links, 1, 1000, 61);
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 down"), 0);
	flooded.given += netns_flood(&links, 1, 1000, 61);
	/* Before it is up, or its port might see late that it was down. */
	assert_true(eventually(is_state, &down));
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 up"), 0);
	wait_up();
	/* Received and handed on; what has still to be would take the room of those that follow. */
	assert_true(eventually(is_accounted, &flooded));
	netns_assert_conserved(e.port[1]);
	/* What was given to it when it was down goes out now, without further traffic. */
	assert_true(eventually(queue_idle, &side));
	netns_drain(&links, 0);
	assert_int_equal(netns_cross(&links, 1, 1000, 60), 1000);

	/* Away: closing works, and all frames come back (the removal checks). */
	assert_int_equal(netns_run(&links, links.inner[0], "ip link del in0"), 0);
	assert_true(eventually(is_state, &gone));
	netns_flood(&links, 1, 100, 60);
	netns_assert_conserved(e.port[1]);
	netns_engine_ports_remove(&e);
}

static bool has_new_mtu(void *port)
{
	return device_mtu(port) == 1700;
}

static void sees_the_mtu_change(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_THREAD);
	ports_open("");
	assert_int_equal(device_mtu(e.port[0]), 1500);
	for (int i = 0; i < 2; i++) {
		const char *name = links.name[i];

		assert_int_equal(netns_run(&links, links.inner[i], "ip link set %s mtu 1700", name),
				 0);
		assert_int_equal(netns_run(&links, links.outer[i], "ip link set out mtu 1700"), 0);
	}
	assert_true(eventually(has_new_mtu, e.port[1]));
	assert_int_equal(netns_cross(&links, 0, 100, 1714), 100);
	assert_false(netns_logged(&e, "MTU"));
	assert_int_equal(netns_run(&links, links.inner[0], "ip link set in0 mtu 3000"), 0);
	assert_true(log_says("p0: its MTU is 3000 now: packets longer than 1792 bytes do not fit"));
}

/* The id of the XDP program that an inner end has. */
static uint32_t program_of(const char *name)
{
	struct netdev_link link = {0};
	struct error err = {0};
	struct netdev dev;
	int back;

	assert_int_equal(netns_enter(links.lab->namespace[links.inner[0]].name, &back, &err), 0);
	assert_int_equal(netdev_open(&dev, name, &err), 0);
	netns_leave(back);
	assert_int_equal(netdev_link(&dev, &link), 0);
	netdev_close(&dev);
	assert_int_not_equal(link.xdp_program, 0);
	return link.xdp_program;
}

/* Whoever may can take the program off behind our back. */
static void program_detach(void)
{
	uint32_t id = 0, ours = program_of("in0");

	while (!bpf_link_get_next_id(id, &id)) {
		struct bpf_link_info info = {0};
		uint32_t size = sizeof(info);
		int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &size) && info.type == BPF_LINK_TYPE_XDP &&
		    info.prog_id == ours)
			bpf_link_detach(fd);
		close(fd);
	}
}

static void says_that_its_program_is_gone(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	ports_open("");
	program_detach();
	assert_true(log_says("p0: its XDP program was replaced (it has none now)"));
	assert_int_equal(netns_logged(&e, "p1: its XDP program"), 0);
}

/* Case 23. */
static void sees_queues_change(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	ports_open("");
	assert_nothing_said();
	assert_int_equal(netns_run(&links, links.inner[0], "ethtool -L in0 rx 2 tx 2"), 0);
	assert_true(log_says("p0: receive queue 1 is polled by nobody"));
	/* Once. */
	sleep_ms(2500);
	assert_int_equal(netns_logged(&e, "polled by nobody"), 1);
}

/* Takes the socket out of the map that the program looks into. */
static void redirection_break(void)
{
	uint32_t map = 0, queue = 0, size = sizeof(struct bpf_prog_info);
	struct bpf_prog_info info = {.nr_map_ids = 1, .map_ids = (uint64_t)(uintptr_t)&map};
	int fd = bpf_prog_get_fd_by_id(program_of("in0"));

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	close(fd);
	fd = bpf_map_get_fd_by_id(map);
	assert_int_equal(bpf_map_delete_elem(fd, &queue), 0);
	close(fd);
}

static bool flood_says_that_nothing_comes(void *arg)
{
	(void)arg;
	netns_flood(&links, 0, 10, 60);
	return netns_logged(&e, "p0: attached, but nothing is delivered");
}

/* Case 24: attached, and nothing is delivered. */
static void says_that_nothing_is_delivered(void **state)
{
	(void)state;
	netns_links_open(&links, false);
	netns_engine_open(&e, POLLER_SOFTIRQ);
	ports_open("");
	assert_int_equal(netns_cross(&links, 0, 100, 60), 100);
	/* Quiet is not silent. */
	sleep_ms(4500);
	assert_nothing_said();
	redirection_break();
	assert_true(eventually(flood_says_that_nothing_comes, NULL));
	assert_false(netns_logged(&e, "p1: attached"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		XDP_TEST(follows_its_interface),	  XDP_TEST(sees_the_mtu_change),
		XDP_TEST(says_that_its_program_is_gone),  XDP_TEST(sees_queues_change),
		XDP_TEST(says_that_nothing_is_delivered),
	};

	netns_require();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]); /* by hand: one of them */
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tap ports: this host at one end, a packet port on veth at the other. */
#include "test.h"

#include <net/if.h>
#include <unistd.h>

#include <port/netdev.h>

#include "rig.h"

#define FRAMES 10000

/* In the inner namespace; 0: there is no such interface. */
static unsigned interface_index(struct rig *rig, const char *name)
{
	struct error err = {0};
	unsigned index;
	int back;

	assert_int_equal(netns_enter(rig->links.lab->namespace[rig->inner].name, &back, &err), 0);
	index = if_nametoindex(name);
	netns_leave(back);
	return index;
}

static void run(struct rig *rig, const char *command)
{
	assert_int_equal(netns_run(&rig->links, rig->inner, "%s", command), 0);
}

static void frames_pass(enum poller poller)
{
	struct rig *rig = rig_begin(poller);
	struct port *packet = rig_port(rig, rig->inner, "packet:in0");
	struct port *tap = rig_port(rig, rig->inner, "tap:t0");
	int far, host;

	assert_int_equal(tap->state, PORT_UP);
	assert_int_equal(tap->mtu, 1500);
	assert_int_equal(tap->ifindex, interface_index(rig, "t0"));
	assert_memory_not_equal(tap->address, "\0\0\0\0\0\0", 6);
	far = rig_raw(rig, rig->left, NETNS_OUTER);
	host = rig_raw(rig, rig->inner, "t0");
	rig_pass(far, host, true, 0, FRAMES, 0);
	rig_pass(host, far, false, 0, FRAMES, 0);
	RIG_SUM_IS(packet, received, FRAMES);
	RIG_SUM_IS(packet, transmitted, FRAMES);
	RIG_SUM_IS(tap, received, FRAMES);
	RIG_SUM_IS(tap, transmitted, FRAMES);
	for (unsigned tags = 1; tags <= 2; tags++) {
		rig_pass(far, host, true, 0, 1000, tags);
		rig_pass(host, far, false, 0, 1000, tags);
	}
	close(far);
	close(host);
	rig_end(rig);
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

/* Both ways, and whole super-packets. */
static void tcp_keeps_super_packets(void **state)
{
	const uint64_t bytes = 32 << 20;
	struct rig *rig = rig_begin(POLLER_SOFTIRQ);
	struct port *packet = rig_port(rig, rig->inner, "packet:in0");
	struct port *tap = rig_port(rig, rig->inner, "tap:t0");

	(void)state;
	run(rig, "ip addr add 10.9.8.9/24 dev t0");
	rig_tcp(rig, rig->left, rig->inner, "10.9.8.9", bytes);
	rig_check_super(packet, bytes);
	rig_tcp(rig, rig->inner, rig->left, "10.9.8.1", bytes);
	rig_check_super(tap, bytes);
	rig_end(rig);
}

static void created_goes_away(void **state)
{
	struct rig *rig = rig_begin(POLLER_THREAD);
	struct port *tap = rig_port(rig, rig->inner, "tap:t0,queues=2");
	struct error err = {0};

	(void)state;
	assert_int_equal(tap->queues, 2);
	assert_true(interface_index(rig, "t0"));
	assert_int_equal(engine_port_remove(rig->engine.engine, tap, &err), 0);
	assert_false(interface_index(rig, "t0"));

	tap = rig_port(rig, rig->inner, "tap:t0,persist=on");
	assert_int_equal(engine_port_remove(rig->engine.engine, tap, &err), 0);
	assert_true(interface_index(rig, "t0"));
	rig_end(rig);
}

/* One that is there is attached to as it was made, is not set up, and stays. */
static void existing_is_attached_to(void **state)
{
	struct rig *rig = rig_begin(POLLER_THREAD);
	struct error err = {0};
	struct port *tap;
	int far, host;

	(void)state;
	run(rig, "ip tuntap add single mode tap");
	run(rig, "ip tuntap add several mode tap multi_queue");
	tap = rig_port(rig, rig->inner, "tap:single");
	assert_int_equal(tap->state, PORT_DOWN);
	assert_true(netns_logged(&rig->engine, "ip link set single up"));
	run(rig, "ip link set single up");
	rig_wait_state(tap, PORT_UP);
	assert_int_equal(engine_port_remove(rig->engine.engine, tap, &err), 0);
	assert_true(interface_index(rig, "single"));
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:single,queues=2", &err), -EINVAL);
	assert_non_null(strstr(err.text, "multi_queue"));

	run(rig, "ip link set several up");
	tap = rig_port(rig, rig->inner, "tap:several,queues=3");
	assert_int_equal(engine_port_remove(rig->engine.engine, tap, &err), 0);
	rig_port(rig, rig->inner, "tap:several");
	rig_port(rig, rig->inner, "packet:in0");
	far = rig_raw(rig, rig->left, NETNS_OUTER);
	host = rig_raw(rig, rig->inner, "several");
	rig_pass(far, host, true, 0, 100, 0);
	rig_pass(host, far, false, 0, 100, 0);
	close(far);
	close(host);
	rig_end(rig);
}

static void queues_share(void **state)
{
	struct rig *rig = rig_begin(POLLER_SOFTIRQ);
	struct port *tap = rig_port(rig, rig->inner, "tap:t0,queues=4");
	unsigned used = 0;

	(void)state;
	rig_port(rig, rig->inner, "packet:in0");
	run(rig, "ip addr add 10.9.8.9/24 dev t0");
	/*
	 * The kernel sends a flow to the queue by which it comes, the packet port's one, but its
	 * first packet wherever chance has it: there are connections until it had it elsewhere.
	 */
	for (int n = 0; n < 500 && used < 2; n++) {
		rig_tcp(rig, rig->inner, rig->left, "10.9.8.1", 100000);
		used = 0;
		for (uint32_t i = 0; i < tap->queues; i++)
			used += counter_read(&napi_counters(tap->queue[i].napi)->received) > 2;
	}
	assert_true(used > 1);
	rig_end(rig);
}

/* By the port or, which knows the state too, by the bridge. */
static bool twenty_are_dropped(void *arg)
{
	struct port *packet = arg;

	return RIG_DROPPED(packet, DROP_TX_DOWN) + RIG_DROPPED(packet, DROP_BRIDGE_NO_PORT) == 20;
}

static void interface_down_up_away(void **state)
{
	struct rig *rig = rig_begin(POLLER_SOFTIRQ);
	struct port *packet = rig_port(rig, rig->inner, "packet:in0");
	struct port *tap = rig_port(rig, rig->inner, "tap:t0");
	struct rig_frame frame;
	int far, host;

	(void)state;
	far = rig_raw(rig, rig->left, NETNS_OUTER);
	host = rig_raw(rig, rig->inner, "t0");
	rig_pass(far, host, true, 0, 100, 0);
	run(rig, "ip link set t0 down");
	/* By what the write said, or by the tick; none is left that would come when it is up. */
	rig_frame(&frame, true, 0, 0);
	for (int i = 0; i < 20; i++)
		rig_frame_send(far, &frame);
	assert_true(rig_eventually(twenty_are_dropped, packet));
	rig_wait_state(tap, PORT_DOWN);
	run(rig, "ip link set t0 up");
	rig_wait_state(tap, PORT_UP);
	close(host);
	host = rig_raw(rig, rig->inner, "t0");
	rig_pass(far, host, true, 100, 100, 0);
	rig_pass(host, far, false, 100, 100, 0);
	close(host);
	run(rig, "ip link del t0");
	rig_wait_state(tap, PORT_GONE);
	rig_frame_send(far, &frame);
	close(far);
	rig_end(rig);
}

static void errors_say_the_fix(void **state)
{
	struct rig *rig = rig_begin(POLLER_SOFTIRQ);
	struct error err = {0};

	(void)state;
	rig_port(rig, rig->inner, "tap:t0");
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:t0,name=again", &err), -EBUSY);
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:in0", &err), -EEXIST);
	assert_non_null(strstr(err.text, "veth"));
	run(rig, "ip tuntap add tun0 mode tun");
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:tun0", &err), -EEXIST);
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:averyverylongname0", &err),
			 -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:t1,queues=65", &err), -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:t1,ring=512", &err), -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:t1,persist=maybe", &err), -EINVAL);
	assert_int_equal(rig_port_refused(rig, rig->inner, "tap:t1,mode=l2", &err), -EINVAL);
	assert_false(interface_index(rig, "t1"));
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_pass_softirq),	   cmocka_unit_test(frames_pass_thread),
		cmocka_unit_test(tcp_keeps_super_packets), cmocka_unit_test(created_goes_away),
		cmocka_unit_test(existing_is_attached_to), cmocka_unit_test(queues_share),
		cmocka_unit_test(interface_down_up_away),  cmocka_unit_test(errors_say_the_fix),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

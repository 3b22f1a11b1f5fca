/* SPDX-License-Identifier: BSD-2-Clause */
/* The xdp port on veth pairs, native and generic. */
#include "test.h"

#include "netns.h"

static void crosses(const char *options, enum poller poller, bool apart)
{
	struct netns_links links;
	struct netns_engine e;
	struct error err = {0};

	netns_links_open(&links, apart);
	netns_engine_open(&e, poller);
	if (netns_engine_ports(&e, &links, "xdp", options, &err))
		fail_msg("%s", err.text);
	assert_int_equal(netns_cross(&links, 0, 20000, 60), 20000);
	assert_int_equal(netns_cross(&links, 1, 5000, 1514), 5000);
	assert_int_equal(netns_received(e.port[0]), 20000);
	assert_int_equal(netns_transmitted(e.port[1]), 20000);
	assert_int_equal(netns_received(e.port[1]), 5000);
	assert_int_equal(netns_transmitted(e.port[0]), 5000);
	netns_assert_conserved(e.port[0]);
	netns_assert_conserved(e.port[1]);
	puts(e.port[0]->mode);
	puts(e.log);
	netns_engine_close(&e);
	netns_links_close(&links);
}

static void softirq_native(void **state)
{
	(void)state;
	crosses("mode=native", POLLER_SOFTIRQ, false);
}

static void thread_native(void **state)
{
	(void)state;
	crosses("mode=native", POLLER_THREAD, true);
}

static void softirq_generic(void **state)
{
	(void)state;
	crosses("mode=generic", POLLER_SOFTIRQ, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(softirq_native),
		cmocka_unit_test(thread_native),
		cmocka_unit_test(softirq_generic),
	};

	netns_require();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

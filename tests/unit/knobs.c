/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs by name, their values as text, and what a setting was, in a line. */
#include "test.h"

#include <lab/run/knob.h>

static void assert_parsed(const char *key, const char *value, const char *expected)
{
	const struct knob *knob = knob_find(key);
	char out[KNOB_VALUE_MAX];
	struct error err = {0};

	assert_non_null(knob);
	if (knob_parse(knob, value, out, &err))
		fail_msg("%s", err.text);
	assert_string_equal(out, expected);
}

static void assert_refused(const char *key, const char *value, const char *why)
{
	struct error err = {0};
	bool of_interface;

	assert_int_equal(knob_check(key, value, &of_interface, &err), -EINVAL);
	assert_non_null(strstr(err.text, key));
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
}

static void values_are_canonical(void **state)
{
	(void)state;
	assert_parsed("threaded", "1", "on");
	assert_parsed("threaded", "off", "off");
	assert_parsed("threaded", "busy-poll", "busy-poll");
	assert_parsed("gro", "true", "on");
	assert_parsed("rps_cpus", "3", "3");
	assert_parsed("rps_cpus", "0xf", "0-3");
	assert_parsed("rps_cpus", "0xFF,00000001", "0,32-39");
	assert_parsed("rps_cpus", "2-3,0", "0,2-3");
	assert_parsed("rps_cpus", "0x0", "none");
	assert_parsed("rps_cpus", "none", "none");
	assert_parsed("gro_flush_timeout", "007", "7");
	assert_parsed("irq_suspend_timeout", "5000000000", "5000000000");
}

static void others_are_refused(void **state)
{
	(void)state;
	assert_refused("threaded", "maybe", "off, on, busy-poll");
	assert_refused("gro", "busy-poll", "off, on");
	assert_refused("gro", "", "off, on");
	assert_refused("rps_cpus", "0xg", "mask");
	assert_refused("rps_cpus", "0x", "mask");
	assert_refused("rps_cpus", "", "none");
	assert_refused("rps_cpus", "5-3", "list");
	assert_refused("irq_cpus", "none", "list");
	assert_refused("busy_poll", "-1", "number");
	assert_refused("busy_poll", "1x", "number");
	assert_refused("busy_poll", "", "number");
	assert_refused("busy_poll", "99999999999999999999", "number");
	assert_refused("busy_poll", "4294967296", "2147483647");
	assert_refused("dev_weight", "0", "1 to");
}

/* Every one of the header, and what it is of. */
static void the_unknown_lists_all(void **state)
{
	static const char *const interface[] = {"threaded",
						"napi_defer_hard_irqs",
						"gro_flush_timeout",
						"irq_suspend_timeout",
						"rps_cpus",
						"irq_cpus",
						"rps_flow_cnt",
						"gro",
						"gso",
						"tso",
						"tx_csum",
						"rx_csum",
						"rx_usecs",
						"rx_frames",
						"tx_usecs",
						"adaptive_rx"};
	static const char *const system[] = {
		"busy_poll",	       "busy_read",  "rps_sock_flow_entries", "netdev_budget",
		"netdev_budget_usecs", "dev_weight", "netdev_max_backlog"};
	struct error err = {0};
	bool of_interface;

	(void)state;
	assert_int_equal(knob_check("thraeded", "1", &of_interface, &err), -EINVAL);
	assert_non_null(strstr(err.text, "'thraeded'"));
	for (size_t i = 0; i < sizeof(interface) / sizeof(*interface); i++) {
		assert_non_null(strstr(err.text, interface[i]));
		assert_int_equal(knob_check(interface[i], "1", &of_interface, NULL), 0);
		assert_true(of_interface);
	}
	for (size_t i = 0; i < sizeof(system) / sizeof(*system); i++) {
		assert_non_null(strstr(err.text, system[i]));
		assert_int_equal(knob_check(system[i], "1", &of_interface, NULL), 0);
		assert_false(of_interface);
	}
}

static void states_are_lines(void **state)
{
	const struct knob *knob = knob_find("gro_flush_timeout");
	struct knob_state s = {.base = "20", .all = 3}, again;
	char text[128];

	(void)state;
	assert_string_equal(knob_state_value(&s), "20");
	assert_int_equal(knob_state_part(&s, knob, 7, "20", NULL), 0); /* as the others */
	assert_int_equal(s.parts, 0);
	assert_int_equal(knob_state_part(&s, knob, 8, "0", NULL), 0);
	assert_int_equal(knob_state_part(&s, knob, 9, "5", NULL), 0);
	assert_null(knob_state_value(&s));
	assert_string_equal(knob_state_of(&s, 7), "20");
	assert_string_equal(knob_state_of(&s, 9), "5");
	assert_int_equal(knob_state_format(&s, text, sizeof(text)), strlen("20 8=0 9=5"));
	assert_string_equal(text, "20 8=0 9=5");
	assert_int_equal(knob_state_format(&s, text, 4), strlen("20 8=0 9=5"));
	assert_string_equal(text, "20 ");
	assert_int_equal(knob_state_parse(knob, "20 8=0 9=5", &again), 0);
	assert_string_equal(again.base, "20");
	assert_int_equal(again.parts, 2);
	assert_string_equal(knob_state_of(&again, 8), "0");
	assert_int_equal(knob_state_parse(knob, "", &again), -EINVAL);
	assert_int_equal(knob_state_parse(knob, "x", &again), -EINVAL);
	assert_int_equal(knob_state_parse(knob, "1 8", &again), -EINVAL);
	assert_int_equal(knob_state_parse(knob, "1 8=x", &again), -EINVAL);
	/* All parts alike, and not as the interface says of those to come. */
	s = (struct knob_state){.base = "0", .all = 1};
	assert_int_equal(knob_state_part(&s, knob, 8, "4", NULL), 0);
	assert_string_equal(knob_state_value(&s), "4");
	for (unsigned i = 0; i < KNOB_PARTS_MAX; i++)
		knob_state_part(&s, knob, 9 + i, "4", NULL);
	assert_int_equal(knob_state_part(&s, knob, 1000, "4", NULL), -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_canonical),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(the_unknown_lists_all),
		cmocka_unit_test(states_are_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

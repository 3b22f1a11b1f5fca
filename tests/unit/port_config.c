/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <napier/port.h>

static void parses(void **state)
{
	struct port_config c;
	char value[32];

	(void)state;
	assert_int_equal(port_config_parse("mem:a", &c, NULL), 0);
	assert_string_equal(c.kind, "mem");
	assert_string_equal(c.target, "a");
	assert_string_equal(c.options, "");
	assert_non_null(c.ops);

	assert_int_equal(port_config_parse("mem:b,x=1,name=left,queues=4,y=two,ring=512,netns=blue",
					   &c, NULL),
			 0);
	assert_string_equal(c.name, "left");
	assert_string_equal(c.netns, "blue");
	assert_int_equal(c.queues, 4);
	assert_int_equal(c.ring, 512);
	assert_string_equal(c.options, "x=1,y=two");
	assert_int_equal(port_option(&c, "y", value, sizeof(value)), 1);
	assert_string_equal(value, "two");
	assert_string_equal(c.options, "x=1");
	assert_int_equal(port_option(&c, "z", value, sizeof(value)), 0);
	assert_int_equal(port_option(&c, "x", value, sizeof(value)), 1);
	assert_string_equal(c.options, "");
	assert_int_equal(port_options_end(&c, "", NULL), 0);
}

#define TARGET_64 "0123456789012345678901234567890123456789012345678901234567890123"

static void refuses(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"eth0", "KIND:TARGET"},
		{"nope:eth0", "no kind 'nope'"},
		{"mem:a,queues=x", "queues=x"},
		{"mem:a,queues=0", "queues=0"},
		{"mem:a,ring=-1", "ring=-1"},
		{"mem:a,ring=99999999999999999999", "ring="},
		{"mem:a,name=12345678901234567890123456789012", "longer than 31 bytes"},
		{"mem:a,netns=" TARGET_64 "4", "longer than 63 bytes"},
		{"mem:" TARGET_64 TARGET_64 TARGET_64 TARGET_64, "too long"},
	};
	struct port_config c;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct error err = {0};

		assert_int_equal(port_config_parse(wrong[i].text, &c, &err), -EINVAL);
		assert_non_null(strstr(err.text, wrong[i].says));
		assert_null(strchr(err.text, '\n'));
	}
}

static void names_what_is_left(void **state)
{
	struct error err = {0};
	struct port_config c;

	(void)state;
	assert_int_equal(port_config_parse("mem:a,colour=red", &c, NULL), 0);
	assert_int_equal(port_options_end(&c, "ring", &err), -EINVAL);
	assert_non_null(strstr(err.text, "colour=red"));
	assert_non_null(strstr(err.text, "netns, name, queues, tx_napi, ring"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(refuses),
		cmocka_unit_test(names_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

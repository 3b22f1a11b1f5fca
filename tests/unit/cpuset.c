/* SPDX-License-Identifier: BSD-2-Clause */
#include "test.h"

#include <napier/machine.h>

static void round_trips(void **state)
{
	static const char *const texts[] = {"0", "0-1", "1,3,5-7", "0-1023", "63-64,1023"};
	char text[256];
	struct cpuset s;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_int_equal(cpuset_parse(texts[i], &s), 0);
		assert_int_equal(cpuset_format(&s, text, sizeof(text)), (int)strlen(texts[i]));
		assert_string_equal(text, texts[i]);
	}
	assert_int_equal(cpuset_parse("0,1,2,2-3", &s), 0);
	cpuset_format(&s, text, sizeof(text));
	assert_string_equal(text, "0-3");
	assert_int_equal(cpuset_count(&s), 4);
	assert_int_equal(cpuset_next(&s, 2), 2);
	assert_int_equal(cpuset_next(&s, 4), CPU_MAX);
}

static void refuses(void **state)
{
	static const char *const wrong[] = {"", "a", "1,", ",1", "3-1", "1-", "-1", "1 2", "0x1"};
	struct cpuset s = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(cpuset_parse(wrong[i], &s), -EINVAL);
	assert_int_equal(cpuset_parse("1024", &s), -ERANGE);
	assert_int_equal(cpuset_parse("0-99999999999999999999", &s), -ERANGE);
	assert_true(cpuset_empty(&s));
}

static void format_is_bounded(void **state)
{
	struct cpuset s = {0};
	char text[4];

	(void)state;
	assert_int_equal(cpuset_format(&s, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	cpuset_parse("10,12,14", &s);
	assert_int_equal(cpuset_format(&s, text, sizeof(text)), 8);
	assert_string_equal(text, "10,");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(refuses),
		cmocka_unit_test(format_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

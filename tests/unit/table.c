/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables and quantities as people read them. */
#include "test.h"

#include <cmd/table.h>

static void aligns(void **state)
{
	static const char *const titles[] = {"<NAME", "N", "<LAST"};
	struct table *table = table_create(3, titles);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	table_cell(table, COLOUR_NONE, "a");
	table_cell(table, COLOUR_BAD, "%d", 1234);
	table_cell(table, COLOUR_NONE, "x");
	table_cell(table, COLOUR_NONE, "%s", "longer");
	table_cell(table, COLOUR_NONE, "%d", 5);
	table_cell(table, COLOUR_NONE, "y z");
	table_cell(table, COLOUR_NONE, "±ü");
	table_cell(table, COLOUR_NONE, "±%d", 1);
	table_cell(table, COLOUR_NONE, "z");
	table_print(table, out);
	fclose(out);
	assert_string_equal(text, "NAME       N  LAST\n"
				  "a       1234  x\n"
				  "longer     5  y z\n"
				  "±ü        ±1  z\n");
	free(text);
}

static void has_no_line_of_titles_without_one(void **state)
{
	static const char *const titles[] = {"<", ""};
	struct table *table = table_create(2, titles);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	table_cell(table, COLOUR_NONE, "lost");
	table_cell(table, COLOUR_NONE, "%d", 12);
	table_print(table, out);
	fclose(out);
	assert_string_equal(text, "lost  12\n");
	free(text);
}

static void prints_nothing_of_nothing(void **state)
{
	static const char *const titles[] = {"A"};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	table_print(table_create(1, titles), out);
	table_print(NULL, out);
	fclose(out);
	assert_string_equal(text, "");
	free(text);
}

static void tells_durations(void **state)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},	     {999, "999 ns"},	     {1000, "1 us"},
		{41270, "41 us"},    {999400, "999 us"},     {1250000, "1.25 ms"},
		{12500000, "12 ms"}, {3000000000, "3.00 s"}, {90000000000, "90 s"},
	};
	char text[DURATION_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(duration_text(cases[i].ns, text), cases[i].text);
}

static void tells_sizes(void **state)
{
	char text[SIZE_MAX_TEXT];

	(void)state;
	assert_string_equal(size_text(0, text), "0 B");
	assert_string_equal(size_text(999, text), "999 B");
	assert_string_equal(size_text(1000, text), "1.0 kB");
	assert_string_equal(size_text(1234567, text), "1.2 MB");
	assert_string_equal(size_text(UINT64_MAX, text), "18.4 EB");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aligns),
		cmocka_unit_test(has_no_line_of_titles_without_one),
		cmocka_unit_test(prints_nothing_of_nothing),
		cmocka_unit_test(tells_durations),
		cmocka_unit_test(tells_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
